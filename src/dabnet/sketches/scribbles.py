"""Drawings of nothing that has a name: scribbles, letters, signs, and shapes or strokes put together at random.

A recognizer learns from them when to be unsure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dabnet.sketches.raster import Raster, rasterize
from dabnet.sketches.sketch import GRID, Sketch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Stroke = NDArray[np.float64]

MOST_STROKES = 24
MOST_POINTS = 300
MOST_LETTERS = 6

LETTERS = {
    "A": "04 20 44/12 32",
    "B": "04 00 30 41 32 02/32 43 34 04",
    "D": "04 00 20 42 24 04",
    "E": "40 00 04 44/02 32",
    "F": "40 00 04/02 32",
    "G": "41 30 10 01 03 14 34 43 42 22",
    "H": "00 04/40 44/02 42",
    "J": "10 40/30 33 24 14 03",
    "K": "00 04/40 02 44",
    "L": "00 04 44",
    "M": "04 00 22 40 44",
    "N": "04 00 44 40",
    "P": "04 00 30 41 32 02",
    "Q": "20 02 24 42 20/33 44",
    "R": "04 00 30 41 32 02/22 44",
    "S": "41 30 10 01 12 32 43 34 14 03",
    "T": "00 40/20 24",
    "U": "00 03 14 34 43 40",
    "W": "00 14 22 34 40",
    "X": "00 44/40 04",
    "Y": "00 22 40/22 24",
    "2": "01 10 30 41 04 44",
    "3": "00 40 22 43 34 14 03",
    "4": "34 30 03 43",
    "5": "40 00 02 32 43 34 04",
    "6": "40 12 03 14 34 43 32 12",
    "8": "22 01 10 30 41 22 03 14 34 43 22",
    "9": "43 41 30 10 01 12 41",
    "?": "01 10 30 41 22 23/24",
    "&": "44 11 20 31 03 14 42",
    "+": "20 24/02 42",
    "=": "01 41/03 43",
    "%": "40 04/00 10 11 01 00/33 43 44 34 33",
    "#": "10 14/30 34/01 41/03 43",
    "@": "32 21 12 23 32 43 40 10 01 03 14 44",
}
"""Strokes of letters, digits and signs on a grid of 5x5, a corner as its column and row. O, I, C, V, Z, 0, 1 and 7 are
missing: they look like a circle, a line, a moon or a zigzag."""


def draw_scribble(rng: np.random.Generator, others: Sequence[Sketch] = ()) -> Sketch:
    """Draw a scribble, a few letters, a sign, or shapes put together at random; or put strokes of `others` together.

    >>> draw_scribble(np.random.default_rng(0))
    Sketch(... strokes, ... points)
    """
    kinds: list[Callable[[np.random.Generator], list[Stroke]]] = [_wander, _wander, _write, _compose, _sign, _sign]
    with_strokes = [sketch for sketch in others if sketch.points is not None]
    if with_strokes:
        kinds += [lambda rng: _jumble(rng, with_strokes)] * 2
    drawn = kinds[rng.integers(len(kinds))](rng)
    if sum(map(len, drawn)) == 1:  # a single speck has no size
        drawn.append(drawn[0] + 0.1)
    return Sketch.from_strokes(drawn)


def _wander(rng: np.random.Generator) -> list[Stroke]:
    """Draw strokes that begin anywhere: specks, lines, waves, tangles, as the pen keeps its direction or not."""
    strokes = int(np.exp(rng.uniform(0, np.log(MOST_STROKES))))
    points = int(np.exp(rng.uniform(0, np.log(MOST_POINTS))))
    length = np.exp(rng.uniform(np.log(0.05), np.log(10)))  # of a stroke, where the paper's side is 1
    turn = np.exp(rng.uniform(np.log(0.02), np.log(1.5)))  # radians per point
    return [_wandering_stroke(rng, max(1, rng.poisson(points)), length, turn) for _ in range(strokes)]


def _wandering_stroke(rng: np.random.Generator, points: int, length: float, turn: float) -> Stroke:
    start = rng.uniform(size=(1, 2))
    bend = rng.normal(scale=0.3 * turn)  # a stroke may curl
    directions = rng.uniform(0, 2 * np.pi) + np.cumsum(rng.normal(bend, turn, points - 1))
    steps = np.stack([np.cos(directions), np.sin(directions)], axis=1) * rng.gamma(2, length / 2 / points)
    return np.concatenate([start, start + np.cumsum(steps, axis=0)])


def _write(rng: np.random.Generator) -> list[Stroke]:
    """Write one to six letters in one or two lines, upright or slanted, with an unsteady hand."""
    count = int(rng.integers(1, MOST_LETTERS + 1))
    per_line = count if rng.random() < 0.7 else -(-count // 2)
    narrow, slant, shake = rng.uniform(0.5, 1.1), rng.normal(scale=0.2), rng.uniform(0, 0.3)
    drawn = []
    for number, letter in enumerate(rng.choice(list(LETTERS), count)):
        corner = np.array([number % per_line * 5.5, number // per_line * 6.0])
        for stroke in LETTERS[letter].split("/"):
            points = np.array([(int(pair[0]), int(pair[1])) for pair in stroke.split()], dtype=np.float64)
            points = corner + points + rng.normal(scale=shake, size=points.shape)
            drawn.append(points @ np.array([[narrow, 0], [-slant, 1]]))
    return drawn


def _compose(rng: np.random.Generator) -> list[Stroke]:
    """Put three to eight shapes together: polygons, arcs, spirals, waves and hatching, beside and across each other."""
    shapes = [_shape(rng) for _ in range(int(rng.integers(3, 9)))]
    if rng.random() < 0.3:  # the same shape again and again, as in patterns and signs
        shapes = [shapes[0]] * len(shapes)
    drawn = []
    for shape in shapes:
        size = np.exp(rng.uniform(np.log(0.1), np.log(0.8)))
        drawn.append(rng.uniform(size=2) + size * _turn(shape, rng.uniform(0, 2 * np.pi)))
    return drawn


def _sign(rng: np.random.Generator) -> list[Stroke]:
    """Draw a sign: a few shapes or lines, mirrored or repeated around the middle, in a frame or not, as emblems are."""
    parts = []
    for _ in range(int(rng.integers(1, 4))):
        start, end = rng.uniform(-1, 1, (2, 2)) * rng.choice([0, 1], (2, 1), p=[0.3, 0.7])
        line = np.linspace(start, end + 0.05, 2)
        shape = rng.uniform(-0.6, 0.6, 2) + rng.uniform(0.1, 0.6) * _turn(_shape(rng), rng.uniform(0, 2 * np.pi))
        parts.append(line if rng.random() < 0.5 else shape)
    copies = int(rng.choice([1, 2, 2, 3, 4, 5, 6]))
    if rng.random() < 0.5:
        drawn = parts + [part * [-1, 1] for part in parts]
    else:
        drawn = [_turn(part, 2 * np.pi * copy / copies) for part in parts for copy in range(copies)]
    if rng.random() < 0.5:
        corners = int(rng.choice([3, 4, 5, 6, 8, 40, 40, 40]))
        angles = rng.uniform(0, 2 * np.pi) + np.linspace(0, 2 * np.pi, corners + 1)
        drawn.append(np.stack([np.cos(angles), rng.uniform(0.6, 1.1) * np.sin(angles)], axis=1))
    return [stroke + rng.normal(scale=0.015, size=stroke.shape) for stroke in drawn[:MOST_STROKES]]


def _jumble(rng: np.random.Generator, sketches: Sequence[Sketch]) -> list[Stroke]:
    """Put about half of the strokes of two to four drawings together, each turned, resized and moved."""
    drawn = []
    for number in rng.integers(len(sketches), size=int(rng.integers(2, 5))):
        strokes = [stroke.astype(np.float64) for stroke in sketches[number].strokes]
        points = np.concatenate(strokes)
        middle, size = points.mean(axis=0), np.ptp(points, axis=0).max() or 1.0
        scale, move, angle = np.exp(rng.uniform(-1, 0)) / size, rng.uniform(-0.5, 0.5, 2), rng.uniform(0, 2 * np.pi)
        kept = rng.permutation(len(strokes))[: -(-len(strokes) // 2)]
        drawn += [move + scale * _turn(strokes[stroke] - middle, angle) for stroke in kept]
    return drawn[:MOST_STROKES]


def _turn(points: Stroke, angle: float) -> Stroke:
    turned: Stroke = points @ np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return turned


def _shape(rng: np.random.Generator) -> Stroke:
    """Return one stroke of about size 1 around (0, 0)."""
    kind = rng.integers(4)
    if kind == 0:  # a polygon, closed or not
        corners = np.sort(rng.uniform(0, 2 * np.pi, rng.integers(2, 8)))
        points = np.stack([np.cos(corners), np.sin(corners)], axis=1) * rng.uniform(0.4, 1, (len(corners), 1))
        return np.concatenate([points, points[:1]]) if rng.random() < 0.6 else points
    times = np.linspace(0, 1, 40)
    if kind == 1:  # an arc of an ellipse, up to a whole one
        angles = times * rng.uniform(1, 2 * np.pi)
        return np.stack([np.cos(angles), rng.uniform(0.2, 1) * np.sin(angles)], axis=1)
    if kind == 2:  # a spiral
        angles = times * rng.uniform(6, 25)
        return np.stack([times * np.cos(angles), times * np.sin(angles)], axis=1)
    waves = times * rng.integers(1, 9) * 2 * np.pi  # a wave, round or pointed
    heights = np.sin(waves) if rng.random() < 0.5 else np.sign(np.sin(waves))
    return np.stack([2 * times - 1, rng.uniform(0.1, 0.8) * heights], axis=1)


def to_bitmap(sketch: Sketch, line_width: float) -> Sketch:
    """Return a drawing of strokes as a bitmap with lines of this width, in the bitmap's pixels.

    >>> to_bitmap(Sketch.from_strokes([[(0, 0), (9, 5)]]), line_width=2.0).line_width
    2.0
    """
    levels = (rasterize(sketch, Raster(GRID, pen=line_width / GRID)).astype(np.uint16) * 15 + 127) // 255
    return Sketch.from_bitmap((levels[:, ::2] << 4 | levels[:, 1::2]).astype(np.uint8), line_width)
