"""A sketch: strokes as the pen drew them, or an image of 256x256 pixels in 16 greys."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dabnet import _native
from dabnet.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

GRID = 256
"""Pixels per side of a sketch that is an image."""
MAX_POINTS = 32_768
"""Points a sketch may have: no hand draws more, and a stranger's file must not keep us busy for long."""


@dataclass(frozen=True, eq=False, repr=False)
class Sketch:
    """A drawing. Make one with `from_strokes`, `from_ink`, or `dabnet.sketches.read_sketch`.

    >>> Sketch.from_strokes([[(0, 0), (9, 4)], [(3, 3)]])
    Sketch(2 strokes, 3 points)
    """

    points: NDArray[np.float32] | None = None
    """(points, 2): x, y, y downwards, of all strokes in turn, at any scale."""
    ends: NDArray[np.int64] | None = None
    """(strokes,): stroke i ends before points[ends[i]]."""
    bitmap: NDArray[np.uint8] | None = None
    """(256, 128): two pixels per byte, the left one in the high bits; 15 is full ink, 0 is paper."""
    line_width: float = 0.0
    """How wide the bitmap's lines are, in its pixels."""

    @classmethod
    def from_strokes(cls, strokes: Iterable[ArrayLike]) -> Sketch:
        """Take strokes, each a list of (x, y); types and counts are checked before any array is made."""
        arrays, count = [], 0
        for number, stroke in enumerate(strokes, start=1):
            if number > MAX_POINTS:  # empty ones take time, too
                raise _too_many_points()
            array = _stroke(number, stroke, MAX_POINTS - count)
            if len(array):
                arrays.append(array)
                count += len(array)
        if not arrays:
            raise InputError("the drawing has no ink: it needs at least one stroke.")
        return cls.from_points(np.concatenate(arrays), np.cumsum([len(array) for array in arrays]))

    @classmethod
    def from_points(cls, points: NDArray[Any], ends: NDArray[Any]) -> Sketch:
        """Take the points (points, 2) of all strokes in turn, and where each stroke ends; checks every value."""
        if not len(ends) or ends[-1] != len(points) or ends[0] < 1 or (np.diff(ends) < 1).any():
            raise InputError("the drawing's strokes must end one after another, the last at the last point.")
        if len(points) > MAX_POINTS:
            raise _too_many_points()
        with np.errstate(over="ignore"):
            points = np.ascontiguousarray(points, dtype=np.float32)
        if not np.isfinite(points).all():
            raise InputError("the drawing has a coordinate that is not a finite number: remove that point.")
        if (points == points[0]).all():
            raise InputError("the drawing is a single point: it needs at least two different ones.")
        return cls(points=points, ends=np.ascontiguousarray(ends, dtype=np.int64))

    @classmethod
    def from_ink(cls, ink: NDArray[np.uint8]) -> Sketch:
        """Take an image (height, width) of at most 256 a side, ink 255 on 0; keeps 16 greys."""
        if ink.ndim != 2 or ink.dtype != np.uint8 or max(ink.shape) > GRID:
            raise InputError(f"ink must be uint8 of at most {GRID}x{GRID}, not {ink.dtype} of shape {ink.shape}.")
        levels = np.zeros((GRID, GRID), dtype=np.uint8)
        top, left = ((GRID - side) // 2 for side in ink.shape)
        levels[top : top + ink.shape[0], left : left + ink.shape[1]] = (ink.astype(np.uint16) * 15 + 127) // 255
        return cls.from_bitmap((levels[:, 0::2] << 4 | levels[:, 1::2]).astype(np.uint8))

    @classmethod
    def from_bitmap(cls, bitmap: NDArray[np.uint8], line_width: float | None = None) -> Sketch:
        """Take a packed bitmap (256, 128), and how wide its lines are if that is known."""
        if bitmap.shape != (GRID, GRID // 2) or bitmap.dtype != np.uint8:
            raise InputError(
                f"a bitmap must be uint8 of shape {(GRID, GRID // 2)}, not {bitmap.dtype} of shape {bitmap.shape}."
            )
        bitmap = np.ascontiguousarray(bitmap)
        # As a float32, so that a prepared set gives back the very same sketch.
        width = float(np.float32(_native.measure_line_width(bitmap) if line_width is None else line_width))
        if not 0 < width <= GRID:
            raise InputError("the image has no ink: there is nothing on the paper.")
        return cls(bitmap=bitmap, line_width=width)

    @property
    def strokes(self) -> list[NDArray[np.float32]]:
        """The strokes, each (points, 2); none if the sketch is an image."""
        if self.points is None or self.ends is None:
            return []
        return np.split(self.points, self.ends[:-1])

    def beginning(self, share: float) -> Sketch:
        """Return the first strokes, such a share of them, rounded up; more where these are only a dot.

        >>> Sketch.from_strokes([[(0, 0), (9, 4)], [(3, 3)], [(5, 5), (6, 6)]]).beginning(0.5)
        Sketch(2 strokes, 3 points)
        """
        if self.points is None or self.ends is None:
            return self
        moved = np.flatnonzero((self.points != self.points[0]).any(axis=1))[0]
        least = int(np.searchsorted(self.ends, moved, side="right"))
        last = max(least, math.ceil(share * len(self.ends)) - 1)
        return Sketch(self.points[: self.ends[last]], self.ends[: last + 1])

    @property
    def image(self) -> NDArray[np.uint8] | None:
        """The image (256, 256), ink 255 on 0; None if the sketch is strokes."""
        if self.bitmap is None:
            return None
        return np.stack([self.bitmap >> 4, self.bitmap & 15], axis=-1).reshape(GRID, GRID) * np.uint8(17)

    def __repr__(self) -> str:
        if self.points is None or self.ends is None:
            return f"Sketch(image, lines {self.line_width:.1f} pixels wide)"
        return f"Sketch({len(self.ends)} strokes, {len(self.points)} points)"


def _stroke(number: int, stroke: Any, room: int) -> NDArray[np.float64]:
    """Make an array (points, 2) of a stroke of at most `room` points."""
    wrong = f"stroke {number} is not a list of points: write it as [[x, y], [x, y], ...]."
    if _is_point(stroke):
        raise InputError(f"{wrong} Points alone are no strokes: put a list around them, even if there is one stroke.")
    if isinstance(stroke, str | bytes | dict):
        raise InputError(wrong)
    if isinstance(stroke, list | tuple):
        # Not left to numpy: it would make texts of numbers, and pad each text to the longest.
        if len(stroke) > room:
            raise _too_many_points()
        if not all(map(_is_point, stroke)):
            raise InputError(wrong)
    try:
        array = np.asarray(stroke, dtype=np.float64 if isinstance(stroke, list | tuple) else None)
    except (ValueError, TypeError):
        raise InputError(wrong) from None
    except OverflowError:  # a whole number of hundreds of digits
        raise InputError("the drawing has a coordinate that is not a finite number: remove that point.") from None
    if array.size == 0:
        return np.empty((0, 2))
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iuf":
        raise InputError(wrong)
    if len(array) > room:
        raise _too_many_points()
    return array.astype(np.float64)


def _is_point(point: Any) -> bool:
    if isinstance(point, np.ndarray):
        return point.shape == (2,) and point.dtype.kind in "iuf"
    return isinstance(point, list | tuple) and len(point) == 2 and _is_number(point[0]) and _is_number(point[1])


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) or isinstance(value, np.integer | np.floating)


def _too_many_points() -> InputError:
    return InputError(f"the drawing has more than {MAX_POINTS:,} points: simplify its strokes first.")
