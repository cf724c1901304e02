"""Drawings made to differ a little each time a network sees them: their strokes, before they are rasterized.

All randomness comes from the generator that the caller gives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from dabnet.errors import check_number, check_range
from dabnet.sketches.raster import PENS, Raster
from dabnet.sketches.sketch import Sketch
from dabnet.training.bend import NODES, STRENGTHS, draw_bends, spline_weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Generator, Tensor

REMOVALS = (0.0, 0.5)
PEN_FACTORS = (0.25, 4.0)

ORDER_WEIGHT = 2.0
"""The last stroke is exp(2), about 7, times as likely to be the one left out as the first."""
LENGTH_WEIGHT = 2.0
"""A dot is exp(2), about 7, times as likely to be the one left out as the longest stroke."""


LEAST_PREFIX = 0.2
"""Least share of its points that an unfinished drawing has."""


@dataclass(frozen=True)
class StrokeAugmentation:
    """What changes in a drawing before it is rasterized; `StrokeAugmentation(0, (1, 1), 0)` changes nothing.

    >>> cross = Sketch.from_strokes([[(0, 0), (2, 2)], [(2, 0), (0, 2)]])
    >>> sketches, factors = StrokeAugmentation(remove=0.5, pen=(2, 2)).apply([cross], torch.Generator())
    >>> sketches, factors
    ([Sketch(1 strokes, 2 points)], array([2.]))
    """

    remove: float = 0.1
    """Mean share of a drawing's strokes that are left out, later and shorter ones more often; one always stays."""
    pen: tuple[float, float] = (0.8, 1.25)
    """Least and most that the pen's width is multiplied by; images' lines grow with it too."""
    deform: float = 0.02
    """How far points move on average (root mean square), as a share of the drawing's longer side; lines
    between two points stay straight."""
    prefix: float = 0.0
    """Share of drawings that are left unfinished: only their first 20 to 100 % of points stay."""

    def __post_init__(self) -> None:
        check_number("the augmentation's remove", self.remove, REMOVALS)
        object.__setattr__(self, "pen", check_range("the augmentation's pen", self.pen, PEN_FACTORS))
        check_number("the augmentation's deform", self.deform, STRENGTHS)
        check_number("the augmentation's prefix", self.prefix, (0.0, 1.0))

    def apply(self, sketches: Sequence[Sketch], generator: Generator) -> tuple[list[Sketch], NDArray[np.float64]]:
        """Return the changed sketches, and for each the factor on its pen's width: see `pen_widths`.

        The points of a deformed sketch have a new scale. Sketches that are images stay the same but for the pen.
        """
        low, high = (math.log(factor) for factor in self.pen)
        factors = np.exp(low + (high - low) * _uniform((len(sketches),), generator))
        factors = factors.clip(*self.pen)  # the exponential of a logarithm may round to just outside
        result = list(sketches)
        rows = [row for row, sketch in enumerate(sketches) if sketch.points is not None]
        if rows and (self.remove or self.deform or self.prefix):
            drawings = _Drawings.gather([sketches[row] for row in rows])
            if self.prefix:
                drawings = drawings.cut(_choose_points(drawings, self.prefix, generator))
            if self.remove:
                drawings = drawings.select(_choose_strokes(drawings, self.remove, generator))
            if self.deform:
                drawings = drawings.bend(draw_bends(self.deform, len(rows), generator))
            for row, sketch in zip(rows, drawings.split(), strict=True):
                result[row] = sketch
        return result, factors


def pen_widths(raster: Raster, factors: NDArray[np.float64]) -> list[float]:
    """Return each sketch's pen width, within what the rasterizer takes, for `rasterize_batch`."""
    widths: list[float] = (raster.pen * factors).clip(*PENS).tolist()
    return widths


@dataclass(frozen=True, eq=False)
class _Drawings:
    """The strokes of several sketches, end to end, so that one call of numpy serves them all."""

    points: NDArray[np.float32]
    """(points, 2)."""
    lengths: NDArray[np.int64]
    """(strokes,): points of each stroke."""
    strokes: NDArray[np.int64]
    """(sketches,): strokes of each sketch."""

    @classmethod
    def gather(cls, sketches: Sequence[Sketch]) -> _Drawings:
        ends = [sketch.ends for sketch in sketches if sketch.ends is not None]
        strokes = np.array([len(array) for array in ends])
        offsets = _starts(np.array([array[-1] for array in ends]))
        lengths = np.diff(np.concatenate(ends) + offsets.repeat(strokes), prepend=0)
        return cls(
            np.concatenate([sketch.points for sketch in sketches if sketch.points is not None]), lengths, strokes
        )

    def split(self) -> list[Sketch]:
        """Return the sketches one by one; what made them keeps them valid, so nothing is checked again."""
        stroke_ends = self.strokes.cumsum()
        point_ends = self.lengths.cumsum()
        sketches, stroke, point = [], 0, 0
        for next_stroke in stroke_ends.tolist():
            next_point = int(point_ends[next_stroke - 1])
            sketches.append(Sketch(self.points[point:next_point], point_ends[stroke:next_stroke] - point))
            stroke, point = next_stroke, next_point
        return sketches

    def select(self, keep: NDArray[np.bool_]) -> _Drawings:
        """Leave out strokes; of each sketch one stays at least."""
        strokes = np.add.reduceat(keep, _starts(self.strokes), dtype=np.int64)
        return _Drawings(self.points[keep.repeat(self.lengths)], self.lengths[keep], strokes)

    def cut(self, counts: NDArray[np.int64]) -> _Drawings:
        """Keep the first so many points of each sketch, at least one."""
        points = np.add.reduceat(self.lengths, _starts(self.strokes))
        before = _starts(self.lengths) - _starts(points).repeat(self.strokes)  # (strokes,): points of the same sketch
        lengths = np.minimum(self.lengths, counts.repeat(self.strokes) - before).clip(0)
        position = np.arange(len(self.points)) - _starts(points).repeat(points)
        strokes = np.add.reduceat(lengths > 0, _starts(self.strokes), dtype=np.int64)
        return _Drawings(self.points[position < counts.repeat(points)], lengths[lengths > 0], strokes)

    def bend(self, bends: Tensor) -> _Drawings:
        """Bend each sketch with its (6, 6, 2) control points, in the square around its box; that square becomes 1x1."""
        counts = np.add.reduceat(self.lengths, _starts(self.strokes))
        starts = _starts(counts)
        low, high = (corner.astype(np.float64) for corner in _boxes(self.points, starts))  # (sketches, 2)
        sides = (high - low).max(axis=1, keepdims=True)
        centred = (self.points - ((low + high) / 2).repeat(counts, axis=0)) / sides.repeat(counts, axis=0)
        weights = spline_weights(torch.from_numpy(centred) + 0.5).numpy()  # (points, x and y, 6)
        moves = np.empty((len(self.points), NODES * 2))
        for start, count, bend in zip(starts.tolist(), counts.tolist(), bends.double().cpu().numpy(), strict=True):
            np.matmul(weights[start : start + count, 1], bend.reshape(NODES, -1), out=moves[start : start + count])
        centred += np.einsum("pl,plc->pc", weights[:, 0], moves.reshape(-1, NODES, 2))
        return _Drawings(centred.astype(np.float32), self.lengths, self.strokes)


def _choose_points(drawings: _Drawings, share: float, generator: Generator) -> NDArray[np.int64]:
    """Say how many of its first points each sketch keeps, (sketches,): all, or so many that it is still a drawing."""
    first_strokes = _starts(drawings.strokes)
    points = np.add.reduceat(drawings.lengths, first_strokes)
    draws = _uniform((2, len(points)), generator)
    counts = np.ceil(points * (LEAST_PREFIX + (1 - LEAST_PREFIX) * draws[1])).astype(np.int64)
    # Two different points at least: where the first ones are all the same, the whole drawing stays.
    starts = _starts(points)
    moved = (drawings.points != drawings.points[starts].repeat(points, axis=0)).any(axis=1)
    position = np.arange(len(moved)) - starts.repeat(points)
    first_move = np.minimum.reduceat(np.where(moved, position, len(moved)), starts)
    counts = np.where(first_move < points, np.maximum(counts, first_move + 1), points)
    return np.where(draws[0] < share, counts, points)


def _choose_strokes(drawings: _Drawings, remove: float, generator: Generator) -> NDArray[np.bool_]:
    """Say which strokes stay, (strokes,).

    Yu et al. (Sketch-a-Net that beats humans) leave out stroke i with a probability that grows as
    exp(alpha order_i - beta length_i). Here order is from 0 to 1, and length a share of the sketch's longest stroke, so
    that neither the number of strokes nor the scale matters.
    """
    points, strokes = drawings.points, drawings.strokes
    first_points, first_strokes = _starts(drawings.lengths), _starts(strokes)
    steps = np.zeros(len(points))
    steps[1:] = np.hypot(*np.diff(points.astype(np.float64), axis=0).T)
    steps[first_points] = 0  # the way from one stroke to the next is not drawn
    lengths = np.add.reduceat(steps, first_points)
    longest = np.maximum.reduceat(lengths, first_strokes)
    lengths /= np.where(longest > 0, longest, 1).repeat(strokes)
    index = np.arange(len(lengths))
    order = (index - first_strokes.repeat(strokes)) / np.maximum(strokes - 1, 1).repeat(strokes)

    # How many go: a uniform share whose mean is `remove`, rounded up or down at random, that leaves at least one.
    draws = _uniform((2, len(strokes)), generator)
    most = np.minimum(2 * remove, 1 - 1 / strokes)
    share = 2 * remove - most + 2 * (most - remove) * draws[0]
    count = np.floor(share * strokes + draws[1]).clip(0, strokes - 1)
    # Which go: in the order of an exponential variable over its weight, the first `count` are a weighted draw without
    # replacement.
    waits = -np.log1p(-_uniform((len(lengths),), generator))
    waits *= np.exp(LENGTH_WEIGHT * lengths - ORDER_WEIGHT * order)
    by_wait = np.lexsort((waits, np.arange(len(strokes)).repeat(strokes)))
    keep = np.empty(len(lengths), dtype=np.bool_)
    keep[by_wait] = index >= (first_strokes + count).repeat(strokes)

    # A single point is no drawing: then all stays.
    low, high = _boxes(points, first_points)
    kept = _starts(np.add.reduceat(keep, first_strokes, dtype=np.int64))
    low, high = np.minimum.reduceat(low[keep], kept), np.maximum.reduceat(high[keep], kept)
    keep |= (low == high).all(axis=1).repeat(strokes)
    return keep


def _starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Say where each group starts if groups of so many stand end to end."""
    starts: NDArray[np.int64] = counts.cumsum() - counts
    return starts


def _boxes(points: NDArray[np.float32], starts: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the top left and the bottom right corner of each group of points, (groups, 2)."""
    return np.minimum.reduceat(points, starts), np.maximum.reduceat(points, starts)


def _uniform(shape: tuple[int, ...], generator: Generator) -> NDArray[np.float64]:
    """Draw numbers from 0 to 1, without 1."""
    shares = torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float64)
    array: NDArray[np.float64] = shares.cpu().numpy()
    return array
