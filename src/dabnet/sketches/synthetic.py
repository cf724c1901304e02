"""Sketches drawn by a program: everyday things in an unsteady hand, any number of them, for work without data.

Drawing i of a set depends on the set's seed and on i alone, so any range of a set can be drawn without the rest.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dabnet.errors import InputError
from dabnet.sketches.raster import Raster, rasterize_batch
from dabnet.sketches.sketch import Sketch
from dabnet.sketches.things import THINGS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Points = NDArray[np.float64]  # (points, 2): x, y in about -1 .. 1, y downwards

CLASSES: tuple[str, ...] = tuple(sorted(THINGS))
"""Names of the things that can be drawn; a label is an index into them."""
PEN = 0.04
"""Width of a line in `synthetic_sketches`, as a share of the size: wide enough to be seen in a small image."""
_WAVES = 6  # that make up the drift of a hand


def synthetic_sketches(
    count: int, size: int = 32, seed: int = 0
) -> tuple[NDArray[np.uint8], NDArray[np.int64], list[str]]:
    """Draw a set as images (count, size, size) with ink 255 on 0; gives also its labels (count,) and class names.

    >>> images, labels, names = synthetic_sketches(20, size=24)
    >>> images.shape, sorted(names[label] for label in labels) == list(CLASSES)
    ((20, 24, 24), True)
    """
    sketches, labels, names = synthetic_strokes(count, seed)
    return rasterize_batch(sketches, Raster(size=size, pen=PEN)), labels, names


def synthetic_strokes(count: int, seed: int = 0, start: int = 0) -> tuple[list[Sketch], NDArray[np.int64], list[str]]:
    """Draw a set as strokes, or `count` drawings of it from number `start` on; gives also labels and class names.

    >>> sketches, labels, names = synthetic_strokes(2, seed=5, start=1000)
    >>> [(names[label], sketch) for sketch, label in zip(sketches, labels, strict=True)]
    [('face', Sketch(11 strokes, 132 points)), ('sun', Sketch(10 strokes, 64 points))]
    """
    labels = synthetic_labels(count, seed, start)
    rngs = (np.random.default_rng([seed, number]) for number in range(start, start + count))
    return [draw_thing(CLASSES[label], rng) for label, rng in zip(labels, rngs, strict=True)], labels, list(CLASSES)


def synthetic_labels(count: int, seed: int = 0, start: int = 0) -> NDArray[np.int64]:
    """Return the labels of `synthetic_strokes` without drawing; every class comes once before any comes again.

    >>> synthetic_labels(4, seed=5, start=1000)
    array([ 9, 17,  8, 18])
    """
    if min(count, seed, start) < 0:
        raise InputError(f"a set's count, seed and start must be 0 or more, not {count}, {seed} and {start}.")
    first, last = start // len(CLASSES), (start + count) // len(CLASSES)
    # The third number keeps these generators apart from those of the drawings.
    rounds = [np.random.default_rng([seed, number, 1]).permutation(len(CLASSES)) for number in range(first, last + 1)]
    return np.concatenate(rounds)[start - first * len(CLASSES) :][:count].astype(np.int64)


def draw_thing(name: str, rng: np.random.Generator) -> Sketch:
    """Draw one of the `CLASSES`, unlike any other drawing of it.

    >>> draw_thing("house", np.random.default_rng(0))
    Sketch(9 strokes, 117 points)
    """
    if name not in THINGS:
        raise InputError(f"there is no '{name}' among the things that can be drawn: choose from {', '.join(CLASSES)}.")
    points, ends = _trace(THINGS[name](rng), rng)
    return Sketch.from_points(_shake(points, ends, rng), ends)


def _trace(strokes: list[Points], rng: np.random.Generator) -> tuple[Points, NDArray[np.int64]]:
    """Return the points that a pen would record along the strokes, and where the pen is lifted."""
    strokes = [s[::-1] if share < 0.3 else s for s, share in zip(strokes, rng.random(len(strokes)), strict=True)]
    corners = np.concatenate(strokes)
    moves = corners[1:] - corners[:-1]
    lifted = np.zeros(len(moves), dtype=bool)  # the pen is, after a move
    lifted[np.array([len(stroke) for stroke in strokes]).cumsum() - 2] = True
    drawn = np.ones(len(moves), dtype=bool)  # not in the air, from one stroke to the next
    drawn[1:] = ~lifted[:-1]
    corners, moves, lifted = corners[:-1][drawn], moves[drawn], lifted[drawn]
    lengths = np.hypot(moves[:, 0], moves[:, 1]) + 1e-9

    if rng.random() < 0.5:  # this hand lifts the pen at sharp corners too, and misses them when it goes on
        cosines = (moves[1:] * moves[:-1]).sum(axis=1) / (lengths[1:] * lengths[:-1])
        lifted[:-1] |= (cosines < 0.5) & (rng.random(len(cosines)) < 0.6)

    parts = np.ceil(lengths / rng.uniform(0.1, 0.16)).astype(np.int64)
    counts = parts + lifted  # the last point of a move is the first of the next
    ends = counts.cumsum()
    move = np.repeat(np.arange(len(counts)), counts)
    share = (np.arange(len(move)) - (ends - counts)[move]) / parts[move]
    share -= 0.08 * np.sin(2 * np.pi * share)  # a pen is slow at both ends
    return corners[move] + share[:, None] * moves[move], ends[lifted]


def _shake(points: Points, ends: NDArray[np.int64], rng: np.random.Generator) -> Points:
    """Move points as an unsteady hand does, near ones alike."""
    first, last = np.zeros_like(ends), ends - 1
    first[1:] = ends[:-1]
    steps = np.zeros_like(points)
    steps[1:] = points[1:] - points[:-1]

    # A hand in a hurry rounds corners.
    bends = np.zeros_like(points)
    bends[:-1] = steps[1:] - steps[:-1]
    bends[first] = bends[last] = 0
    drawn = points + rng.uniform(0, 0.25) * bends

    # It begins and ends a stroke a little early or late.
    early, late = rng.normal(0.1, 0.3, (2, len(ends), 1))
    drawn[first] -= early * steps[first + 1]
    drawn[last] += late * steps[last]

    # It drifts slowly along its way, and comes down elsewhere after each lift.
    way = np.hypot(steps[:, 0], steps[:, 1])
    way[first] = rng.uniform(5, 25, len(ends))
    speeds = rng.uniform(0.5, 8, _WAVES)
    waves = np.cos(way.cumsum()[:, None] * speeds + rng.uniform(0, 2 * np.pi, _WAVES))
    drawn += (waves / (1 + speeds)) @ rng.normal(0, rng.uniform(0.03, 0.08), (_WAVES, 2))

    # The paper lies askew, and half of all things look the other way.
    taper, lean, turn, wide, tall = rng.normal(0, 0.08, 5).tolist()
    wide, tall = math.copysign(math.exp(wide), rng.random() - 0.5), math.exp(tall)
    drawn *= 1 + taper * drawn[:, 1:]
    right = [math.cos(turn) * wide, math.sin(turn) * tall]
    below = [(lean - math.sin(turn)) * wide, math.cos(turn) * tall]
    return drawn @ np.array([right, below], dtype=np.float64)
