"""Everyday things as exact strokes, each time with parts and proportions of its own.

A thing is a function from a random generator to strokes (points, 2): x, y in about -1 .. 1, y downwards. Angles are in
degrees: 0 points right, 90 down. The hand that draws the strokes is in `synthetic`.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    Rng = np.random.Generator
    Point = tuple[float, float]
    Stroke = NDArray[np.float64]

_SIDES = (-1, 1)


def _pick(rng: Rng, *ranges: tuple[float, float]) -> list[float]:
    """Pick a number from each range."""
    shares = rng.random(len(ranges)).tolist()
    return [low + (high - low) * share for (low, high), share in zip(ranges, shares, strict=True)]


def _toss(rng: Rng, *chances: float) -> list[bool]:
    """Decide on parts, each with a chance of its own."""
    return [share < chance for chance, share in zip(chances, rng.random(len(chances)).tolist(), strict=True)]


def _spread(low: float, high: float, count: int) -> list[float]:
    return [low + (high - low) * i / (count - 1) for i in range(count)]


def _line(*points: Point) -> Stroke:
    return np.array(points, dtype=np.float64)


def _polygon(*corners: Point) -> Stroke:
    return _line(*corners, corners[0])


def _spoke(x: float, y: float, inner: float, outer: float, angle: float) -> Stroke:
    dx, dy = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    return _line((x + inner * dx, y + inner * dy), (x + outer * dx, y + outer * dy))


def _curve(*points: Point) -> Stroke:
    """Draw a smooth line through points."""
    return _curve_weights(len(points)) @ np.array(points, dtype=np.float64)


@functools.cache
def _curve_weights(points: int) -> NDArray[np.float64]:
    """Return the weight of each point at each step along a Catmull-Rom curve, four steps per point."""
    t = np.arange(4)[:, None, None] / 4
    span, point = np.arange(points - 1), np.eye(points)
    here, there = point[span], point[span + 1]
    leave = (there - point[np.maximum(span - 1, 0)]) / 2  # the curve's direction at both ends of a span
    arrive = (point[np.minimum(span + 2, points - 1)] - here) / 2
    rise = there - here
    spans = here + t * (leave + t * (3 * rise - 2 * leave - arrive + t * (leave + arrive - 2 * rise)))
    return np.concatenate([spans.swapaxes(0, 1).reshape(-1, points), point[-1:]])


def _arc(x: float, y: float, rx: float, ry: float, start: float, end: float, grow: float = 0.0) -> Stroke:
    """Draw a part of an ellipse around (x, y), which grows by a share on the way."""
    sweep = math.radians(end - start)
    steps = math.ceil(abs(sweep) * max(1.2, 5 * (rx + ry)))
    shares = np.arange(steps + 1) / steps
    angles = shares * sweep + math.radians(start)
    radius = 1 + grow * shares
    stroke = np.empty((steps + 1, 2))
    stroke[:, 0] = np.cos(angles) * radius * rx + x
    stroke[:, 1] = np.sin(angles) * radius * ry + y
    return stroke


def _circle(rng: Rng, x: float, y: float, rx: float, ry: float | None = None) -> Stroke:
    """Draw an ellipse from about the top, as a hand does: it overshoots or does not quite close."""
    start, more, grow = rng.standard_normal(3).tolist()
    return _arc(x, y, rx, ry or rx, 40 * start - 90, 40 * start + 272 + 12 * more, 0.05 * grow)


def _apple(rng: Rng) -> list[Stroke]:
    wide, low, dent, tip = _pick(rng, (0.75, 0.95), (0.8, 0.95), (-0.5, -0.38), (0.45, 0.6))
    lean, (leaf, shine) = rng.normal(0, 0.12), _toss(rng, 0.7, 0.4)
    half = [(0.0, dent), (0.35, dent - 0.18), (0.85, -0.42), (1.0, 0.05), (0.75, low - 0.25), (0.35, low)]
    right, left = ([(side * wide * x, y) for x, y in half] for side in (1, -1))
    strokes = [_curve(*right, (0, low - 0.1), *left[::-1])]
    strokes.append(_curve((0, dent + 0.05), (lean / 2, dent - 0.25), (lean, dent - 0.5)))
    if leaf:
        top = dent - 0.5
        strokes.append(_curve((0.03, top + 0.3), (0.2, top), (tip, top), (0.3, top + 0.25), (0.03, top + 0.3)))
    if shine:
        strokes.append(_arc(-0.1, 0.15, 0.7 * wide - 0.1, 0.45, 150, 220))
    return strokes


def _bicycle(rng: Rng) -> list[Stroke]:
    r, x, high, grip = _pick(rng, (0.36, 0.46), (0.52, 0.62), (-0.48, -0.36), (-0.02, 0.12))
    seat, bar, pedal, rear, front = (-0.22, -0.35), (0.36, high), (rng.normal(-0.05, 0.03), 0.32), (-x, 0.3), (x, 0.3)
    chain, spokes = _toss(rng, 0.5, 0.3)
    strokes = [_circle(rng, *hub, r) for hub in (rear, front)]
    strokes += [_polygon(rear, (-0.18, -0.2), pedal), _line((-0.18, -0.2), (0.4, -0.22), pedal), _line(front, bar)]
    strokes += [_line(pedal, seat), _line((-0.36, -0.35), (-0.08, -0.35))]
    strokes.append(_curve(bar, (0.28, high - 0.1), (0.14, high - grip)))
    if chain:
        strokes.append(_circle(rng, *pedal, 0.09))
    if spokes:
        turn = rng.uniform(0, 90)
        strokes += [_spoke(*hub, 0, r, turn + angle) for hub in (rear, front) for angle in (0, 90, 180, 270)]
    return strokes


def _boat(rng: Rng) -> list[Stroke]:
    deck, keel, narrow, sail = _pick(rng, (0.3, 0.45), (0.75, 0.95), (0.45, 0.65), (0.55, 0.8))
    mast, (jib, flag, waves) = rng.normal(-0.05, 0.06), _toss(rng, 0.6, 0.4, 0.5)
    strokes = [_polygon((-0.95, deck), (-narrow, keel), (narrow, keel), (0.95, deck))]
    strokes.append(_line((mast, deck), (mast, -0.95)))
    strokes.append(_polygon((mast + 0.06, -0.85), (mast + sail, deck - 0.18), (mast + 0.06, deck - 0.18)))
    if jib:
        strokes.append(_polygon((mast - 0.06, -0.7), (mast - 0.8 * sail, deck - 0.15), (mast - 0.06, deck - 0.15)))
    if flag:
        strokes.append(_line((mast, -0.95), (mast - 0.22, -0.87), (mast, -0.8)))
    if waves:
        positions = _spread(-1.1, 1.1, int(rng.integers(7, 12)))
        strokes.append(_curve(*((x, keel + 0.14 + 0.05 * (-1) ** i) for i, x in enumerate(positions))))
    return strokes


def _car(rng: Rng) -> list[Stroke]:
    r, front, rear, roof, hood = _pick(rng, (0.17, 0.23), (-0.58, -0.5), (0.5, 0.58), (-0.55, -0.42), (-0.08, 0.02))
    b, c, d, share = _pick(rng, (-0.35, -0.15), (0.35, 0.5), (0.6, 0.85), (0.4, 0.6))
    hubs, panes, handle, lamp = _toss(rng, 0.7, 0.6, 0.5, 0.5)
    post, glass, floor = b + share * (c - b), roof + 0.1, 0.4
    nose = [(front - r, floor), (-0.97, floor), (-0.95, hood + 0.08), (-0.5, hood)]
    tail = [(d, hood), (0.97, hood + 0.05), (0.97, floor), (rear + r, floor)]
    strokes = [_line(*nose, (b, roof), (c, roof), *tail), _line((front + r, floor), (rear - r, floor))]
    strokes += [_circle(rng, x, floor, size) for size in ((r, 0.4 * r) if hubs else (r,)) for x in (front, rear)]
    if panes:
        strokes.append(_polygon((-0.37, hood), (b + 0.05, glass), (post - 0.04, glass), (post - 0.04, hood)))
        strokes.append(_polygon((post + 0.04, hood), (post + 0.04, glass), (c - 0.04, glass), (d - 0.12, hood)))
    else:
        strokes += [_line((-0.5, hood), (d, hood)), _line((post, hood), (post, roof))]
    if handle:
        strokes.append(_line((post + 0.08, hood + 0.1), (post + 0.2, hood + 0.1)))
    if lamp:
        strokes.append(_circle(rng, -0.87, hood + 0.19, 0.06))
    return strokes


def _cat(rng: Rng) -> list[Stroke]:
    wide, tip, out, eye = _pick(rng, (0.75, 0.92), (-1.1, -0.9), (0.6, 0.8), (0.25, 0.36))
    nose, tall, reach = _pick(rng, (0.12, 0.22), (0.05, 0.14), (0.8, 1.1))
    chin, brow = _arc(0, 0.05, wide, 0.75, -35, 215), _arc(0, 0.05, wide, 0.75, -115, -65)
    strokes = [np.concatenate([chin, _line((-out, tip)), brow, _line((out, tip)), chin[:1]])]
    strokes.append(_polygon((-0.08, nose), (0.08, nose), (0, nose + 0.09)))
    lips = ((-0.22, 0.18), (-0.1, 0.25), (0, 0.1), (0.1, 0.25), (0.22, 0.18))
    strokes.append(_curve(*((x, nose + y) for x, y in lips)))
    strokes += [_circle(rng, side * eye, -0.12, 0.08, tall) for side in _SIDES]
    if tall > 0.1:
        strokes += [_line((side * eye, -0.18), (side * eye, -0.06)) for side in _SIDES]
    whiskers = (-0.12, 0.0, 0.12) if rng.random() < 0.6 else (-0.08, 0.08)
    y = nose + 0.08
    return strokes + [_line((s * 0.3, y + dy / 3), (s * reach, y + 1.6 * dy)) for s in _SIDES for dy in whiskers]


def _chair(rng: Rng) -> list[Stroke]:
    seat, deep, top, right, shift = _pick(rng, (0.05, 0.2), (0.18, 0.28), (-1, -0.85), (0.2, 0.35), (0.22, 0.34))
    back, a, b, slats = seat - deep, shift - 0.55, shift + right, int(rng.integers(2, 6))
    strokes = [_polygon((-0.55, seat), (right, seat), (b, back), (a, back))]
    strokes.append(_line((a, back), (a, top), (b, top), (b, back)))
    strokes += [_line((-0.55, seat), (-0.55, 0.95)), _line((right, seat), (right, 0.95))]
    strokes += [_line((a, seat), (a, 0.68)), _line((b, back), (b, 0.68))]
    if rng.random() < 0.5:
        return strokes + [_line((x, top), (x, back)) for x in _spread(a, b, slats)[1:-1]]
    return strokes + [_line((a, y), (b, y)) for y in _spread(top, back, slats)[1:-1]]


def _clock(rng: Rng) -> list[Stroke]:
    r, minute = _pick(rng, (0.8, 0.95), (0, 60))
    marks, hour, kind = (4, 12, 12)[rng.integers(3)], 30 * rng.integers(12) + minute / 2, rng.random()
    strokes = [_circle(rng, 0, 0, r)]
    strokes += [_spoke(0, 0, 0.82 * r, 0.95 * r, 360 / marks * mark) for mark in range(marks)]
    strokes += [_spoke(0, 0, 0, 0.68 * r, 6 * minute - 90), _spoke(0, 0, 0, 0.42 * r, hour - 90)]
    if kind < 0.3:
        strokes.append(_circle(rng, 0, 0, r + 0.12))
    elif kind < 0.6:  # an alarm clock
        strokes += [_arc(side * 0.55 * r, -0.95 * r, 0.25, 0.25, 45 * side - 180, 45 * side) for side in _SIDES]
        strokes += [_line((side * 0.5 * r, 0.87 * r), (side * 0.65 * r, 1.15 * r)) for side in _SIDES]
    return strokes


def _cup(rng: Rng) -> list[Stroke]:
    wide, foot, top, rim, ear = _pick(rng, (0.5, 0.62), (0.38, 0.5), (-0.55, -0.3), (0.1, 0.16), (0.28, 0.38))
    thick, steam, saucer = _toss(rng, 0.7, 0.6, 0.35)
    strokes = [_circle(rng, 0, top, wide, rim)]
    strokes.append(np.concatenate([_line((-wide, top)), _arc(0, 0.7, foot, 0.13, 180, 0), _line((wide, top))]))
    insets = (0.0, 0.13) if thick else (0.0,)
    strokes += [_arc((wide + foot) / 2, 0.12, ear + 0.06 - inset, ear - inset, -75, 90) for inset in insets]
    if steam:
        wisp = ((0, -0.2), (0.08, -0.32), (-0.06, -0.46), (0.03, -0.6))
        strokes += [_curve(*((x + dx, top + y) for dx, y in wisp)) for x in _spread(-0.3, 0.3, int(rng.integers(2, 4)))]
    if saucer:
        strokes.append(_arc(0, 0.72, 0.95, 0.22, -25, 205))
    return strokes


def _envelope(rng: Rng) -> list[Stroke]:
    (tall, point), (folds, seal) = _pick(rng, (0.55, 0.7), (0, 0.2)), _toss(rng, 0.6, 0.3)
    strokes = [_polygon((-1, -tall), (-1, tall), (1, tall), (1, -tall))]
    strokes.append(_line((-1, -tall), (rng.normal(0, 0.03), point), (1, -tall)))
    if folds:
        strokes += [_line((side, tall), (side * 0.25, point - 0.15)) for side in _SIDES]
    if seal:
        strokes.append(_circle(rng, 0, point, 0.13))
    return strokes


def _face(rng: Rng) -> list[Stroke]:
    wide, eye, high, size, drop = _pick(rng, (0.68, 0.9), (0.25, 0.36), (-0.3, -0.15), (0.05, 0.14), (0.3, 1.0))
    (smile, mouth), (brows, nose, open_mouth) = _pick(rng, (-0.1, 0.25), (0.28, 0.42)), _toss(rng, 0.4, 0.7, 0.5)
    strokes = [_circle(rng, 0, 0, wide, 0.92), *(_circle(rng, side * eye, high, size) for side in _SIDES)]
    if size > 0.09:
        strokes += [_circle(rng, side * eye, high, 0.03) for side in _SIDES]
    if brows:
        strokes += [_arc(side * eye, high - 0.1, 0.16, 0.12, -150, -30) for side in _SIDES]
    if nose:
        strokes.append(_curve((0.02, high + 0.1), (-0.1, 0.2), (0.05, 0.24)))
    corner = 0.48 - smile / 3
    strokes.append(_curve((-mouth, corner), (0, 0.48 + smile), (mouth, corner)))
    if open_mouth and smile > 0.12:
        strokes.append(_line((-mouth, corner), (mouth, corner)))
    hair = rng.integers(3)
    if hair == 0:  # none, but ears
        return strokes + [_arc(side * wide, 0, 0.14, 0.2, 90 * side - 180, 90 * side) for side in _SIDES]
    if hair == 1:
        return strokes + [_spoke(0, 0.1, 0.88, 1.2, angle) for angle in _spread(-130, -50, int(rng.integers(4, 8)))]
    for side in _SIDES:
        x = side * wide
        strokes.append(_curve((0, -0.9), (0.55 * x, -0.6), (x, -0.2)))
        strokes.append(_curve((0, -0.98), (0.8 * x, -0.85), (1.2 * x, -0.2), (1.25 * x, drop)))
    return strokes


def _fish(rng: Rng) -> list[Stroke]:
    fat, joint, tail, notch, eye = _pick(rng, (0.4, 0.58), (0.4, 0.55), (0.3, 0.45), (0.78, 0.95), (0.04, 0.09))
    gill, fin, belly, scales, mouth = _toss(rng, 0.6, 0.5, 0.4, 0.4, 0.4)
    back = ((0.1, 0.8 * fat), (-0.4, fat), (-0.8, 0.5 * fat), (-1, 0))
    strokes = [_curve((joint, -0.04 * side), *((x, side * y) for x, y in back)) for side in _SIDES]
    strokes.append(_line((joint, -0.04), (1, -tail), (notch, 0), (1, tail), (joint, 0.04)))
    strokes.append(_circle(rng, -0.66, -0.12, eye))
    if gill:
        strokes.append(_arc(-0.6, 0, 0.22, 0.7 * fat, -60, 60))
    if fin:
        strokes.append(_curve((-0.5, -fat), (-0.25, -fat - 0.25), (0.1, -fat - 0.2), (0.05, -0.85 * fat)))
    if belly:
        strokes.append(_curve((-0.3, fat), (-0.05, fat + 0.22), (0, 0.9 * fat)))
    if scales:
        strokes += [_arc(x, y, 0.08, 0.1, -80, 80) for x, y in ((-0.15, -0.12), (-0.15, 0.12), (0.08, 0))]
    if mouth:
        strokes.append(_line((-0.95, 0.08), (-0.78, 0.1)))
    return strokes


def _flower(rng: Rng) -> list[Stroke]:
    (heart, reach, turn), petals = _pick(rng, (0.12, 0.18), (0.46, 0.56), (0, 360)), int(rng.integers(5, 9))
    bend, leaves, y = rng.normal(0, 0.12), _toss(rng, 0.65, 0.65), -0.45
    half = np.array([-0.75, -0.95, 0, 0.95, 0.75]) * np.pi / petals
    from_heart = np.array([heart, 0.75 * reach, reach, 0.75 * reach, heart])
    strokes = [_circle(rng, 0, y, heart), _curve((0, y + reach), (bend, 0.5), (bend / 2, 1))]
    for petal in range(petals):
        angles = half + math.radians(turn + 360 / petals * petal)
        strokes.append(_curve(*zip(from_heart * np.cos(angles), y + from_heart * np.sin(angles), strict=True)))
    for side, leaf in zip(_SIDES, leaves, strict=True):
        if leaf:
            base, tip = _pick(rng, (0.55, 0.75), (0.35, 0.5))
            shape = ((0, 0), (0.2, -0.25), (tip, -0.22), (0.25, -0.02), (0, 0))
            strokes.append(_curve(*((bend + side * x, base + dy) for x, dy in shape)))
    return strokes


def _house(rng: Rng) -> list[Stroke]:
    wide, eave, top, out = _pick(rng, (0.6, 0.8), (-0.2, 0), (-0.95, -0.75), (0, 0.2))
    half, lintel, size, ridge = _pick(rng, (0.12, 0.18), (0.3, 0.45), (0.12, 0.17), (0.3, 0.45))
    hipped, knob, chimney, smoke = _toss(rng, 0.35, 0.5, 0.5, 0.5)
    out, ridge, door = out + wide, ridge if hipped else 0, (-0.38, 0, 0.38)[rng.integers(3)] * wide
    strokes = [_line((-wide, eave), (-wide, 0.9), (wide, 0.9), (wide, eave))]
    strokes.append(_polygon((-out, eave), (-ridge, top), (ridge, top), (out, eave)))
    strokes.append(_line((door - half, 0.9), (door - half, lintel), (door + half, lintel), (door + half, 0.9)))
    if knob:
        strokes.append(_circle(rng, door + half / 2, (lintel + 0.9) / 2, 0.03))
    for x in (-0.62 * wide, 0.62 * wide):
        if abs(x - door) > 0.35 and rng.random() < 0.85:
            a, b, c, d = x - size, x + size, 0.3 - size, 0.3 + size
            strokes += [_polygon((a, c), (a, d), (b, d), (b, c)), _line((x, c), (x, d)), _line((a, 0.3), (b, 0.3))]
    if chimney:
        a, b = 0.4 * out, 0.4 * out + 0.2
        feet = [top + (eave - top) * max(0, x - ridge) / (out - ridge) for x in (a, b)]
        strokes.append(_line((a, feet[0]), (a, top - 0.08), (b, top - 0.08), (b, feet[1])))
        if smoke:
            wisp = ((0.1, -0.15), (0.2, -0.26), (0.08, -0.36), (0.22, -0.5))
            strokes.append(_curve(*((a + x, top + y) for x, y in wisp)))
    return strokes


def _key(rng: Rng) -> list[Stroke]:
    r, thick, hole, tall = _pick(rng, (0.28, 0.38), (0.05, 0.08), (0.3, 0.6), (0.85, 1.15))
    start, turn = 2 * r - 0.95, math.radians(rng.normal(0, 25))
    strokes = [_circle(rng, r - 0.95, 0, r, r * tall), _circle(rng, 0.9 * r - 0.95, 0, hole * r)]
    path = [(start, -thick), (1, -thick), (1, thick)]
    for tooth in range(rng.integers(2, 4)):
        right, deep = 1 - 0.24 * tooth, thick + rng.uniform(0.14, 0.26)
        path += [(right, thick), (right, deep), (right - 0.12, deep), (right - 0.12, thick)]
    strokes.append(_line(*path, (start, thick)))
    rotation = np.array([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]])
    return [stroke @ rotation for stroke in strokes]


def _ladder(rng: Rng) -> list[Stroke]:
    (top, foot), lean = _pick(rng, (0.2, 0.36), (0.34, 0.44)), rng.normal(0, 0.2)
    ends = [((side * top + lean, -1), (side * foot - lean, 1)) for side in _SIDES]
    rungs = _spread(0.08, 0.92, int(rng.integers(5, 9)))
    return [_line(*rail) for rail in ends] + [
        _line(*((x0 + (x1 - x0) * rung, 2 * rung - 1) for (x0, _), (x1, _) in ends)) for rung in rungs
    ]


def _mushroom(rng: Rng) -> list[Stroke]:
    brim, tall, stem, wide = _pick(rng, (0, 0.15), (0.75, 0.95), (0.18, 0.3), (0.8, 0.98))
    (low, flare), (spots, ring) = _pick(rng, (0.08, 0.2), (1, 1.5)), _toss(rng, 0.75, 0.3)
    foot, top = stem * flare, brim + 0.9 * low
    strokes = [np.concatenate([_arc(0, brim, wide, tall, 180, 360), _arc(0, brim, wide, low, 0, 180)])]
    side = ((stem, top), (stem, 0.6), (foot, 0.88))
    strokes.append(_curve(*((-x, y) for x, y in side), (0, 0.95), *side[::-1]))
    if spots:
        positions = ((-0.45, 0.35), (0.05, 0.65), (0.48, 0.3), (0.02, 0.2))[: rng.integers(2, 5)]
        strokes += [_circle(rng, x * wide, brim - y * tall, rng.uniform(0.08, 0.15)) for x, y in positions]
    if ring:
        strokes.append(_curve((-stem, top + 0.2), (0, top + 0.3), (stem, top + 0.2)))
    return strokes


def _star(rng: Rng) -> list[Stroke]:
    angles = np.radians(36 * np.arange(11) - 90)
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    if rng.random() < 0.4:  # in one line that crosses itself
        return [points[[0, 4, 8, 2, 6, 0]]]
    points[1::2] *= rng.uniform(0.35, 0.52)
    return [points]


def _sun(rng: Rng) -> list[Stroke]:
    (r, turn), rays = _pick(rng, (0.38, 0.52), (0, 360)), int(rng.integers(8, 14))
    uneven, smiling = _toss(rng, 0.5, 0.25)
    strokes = [_circle(rng, 0, 0, r)]
    strokes += [_spoke(0, 0, r + 0.12, 0.82 if uneven and i % 2 else 1, turn + 360 / rays * i) for i in range(rays)]
    if smiling:
        strokes += [_circle(rng, side * 0.16, -0.08, 0.04) for side in _SIDES]
        strokes.append(_arc(0, 0.05, 0.2, 0.16, 20, 160))
    return strokes


def _tree(rng: Rng) -> list[Stroke]:
    trunk, flare, deep, wide, tall = _pick(rng, (0.1, 0.16), (0, 0.1), (0.1, 0.2), (0.6, 0.85), (0.5, 0.62))
    fir, ground, fruit = _toss(rng, 0.35, 0.6, 0.35)
    if fir:
        tiers = int(rng.integers(2, 5))
        edge = [(x * (0.3 + 0.4 * t / tiers), 1.55 * t / tiers - 0.95) for t in range(1, tiers + 1) for x in (1, 0.45)]
        crown = _line((0, -1), *edge[:-1], *((-x, y) for x, y in edge[-2::-1]), (0, -1))
        return [crown, _line((-trunk, 0.6), (-trunk, 1), (trunk, 1), (trunk, 0.6))]
    bumps = int(rng.integers(6, 11))
    angles = np.linspace(0, 2 * np.pi, 6 * bumps + 1)
    radius = 1 - deep + deep * np.abs(np.sin(bumps / 2 * angles))
    strokes = [np.stack([wide * radius * np.sin(angles), tall * radius * np.cos(angles) - 0.4], axis=1)]
    edge = [(trunk, tall * (1 - deep) - 0.42), (trunk, 0.7), (trunk + flare, 1)]
    strokes += [_curve(*((side * x, y) for x, y in edge)) for side in _SIDES]
    if ground:
        strokes.append(_line((-trunk - flare, 1), (trunk + flare, 1)))
    if fruit:
        positions = rng.uniform(-0.5, 0.5, (int(rng.integers(3, 6)), 2)).tolist()
        strokes += [_circle(rng, x * wide, y * tall - 0.4, 0.07) for x, y in positions]
    return strokes


def _umbrella(rng: Rng) -> list[Stroke]:
    brim, tall, hook, low = _pick(rng, (-0.1, 0.05), (0.7, 0.85), (0.12, 0.2), (0.7, 0.8))
    (ribs, spike), scallops = _toss(rng, 0.6, 0.6), int(rng.integers(3, 6))
    hems = _spread(-0.95, 0.95, scallops + 1)
    half, top = 0.95 / scallops, brim - tall
    strokes = [_arc(0, brim, 0.95, tall, 180, 360)]
    strokes.append(np.concatenate([_arc(x + half, brim, half, 0.14, 180, 360) for x in hems[:-1]]))
    stick = _line((0, brim - 0.13 * (scallops % 2)))
    strokes.append(np.concatenate([stick, _arc(hook, low, hook, hook, 180, 10)]))
    if ribs:
        strokes += [_curve((0, top), (0.7 * x, brim - 0.7 * tall), (x, brim)) for x in hems[1:-1]]
    if spike:
        strokes.append(_line((0, top), (0, top - 0.14)))
    return strokes


_ALL: Iterable[Callable[[Rng], list[Stroke]]] = (
    _apple, _bicycle, _boat, _car, _cat, _chair, _clock, _cup, _envelope, _face,
    _fish, _flower, _house, _key, _ladder, _mushroom, _star, _sun, _tree, _umbrella,
)  # fmt: skip
THINGS = {thing.__name__[1:]: thing for thing in _ALL}
"""Every thing by its name."""
