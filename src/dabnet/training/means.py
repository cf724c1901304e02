"""The mean over a few seeds, and how sure it is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
"""Student's t for 1, 2, ... degrees of freedom: 95 % of the distribution lie within it."""


class Mean(NamedTuple):
    """The mean over seeds, and how sure it is."""

    mean: float
    error: float
    """Standard error; not a number where there is one seed only."""
    interval: float
    """Half of the 95 % interval's width, by Student's t."""
    seeds: int


def average(values: Sequence[float]) -> Mean:
    """Return the mean, its standard error and its 95 % interval.

    >>> average([0.5, 0.52, 0.54])
    Mean(mean=0.52, error=0.0115..., interval=0.0496..., seeds=3)
    """
    count = len(values)
    error = float(np.std(values, ddof=1)) / math.sqrt(count) if count > 1 else math.nan
    return Mean(float(np.mean(values)), error, _student(count - 1) * error, count)


def pooled_interval(groups: Sequence[NDArray[np.float64]], seeds: int) -> float:
    """Return the 95 % interval of a difference between two cells over so many seeds, by the spread of all cells.

    Each group is an array (cells, seeds) of cells that are compared with one another. With two or three seeds the
    spread is far better known from all of them than from one pair, if they spread alike. What a seed adds to all cells
    of a group, and what a cell adds to all seeds, is no spread; for a single pair the interval is that of its
    differences.

    >>> few = np.array([[0.51, 0.50], [0.52, 0.52], [0.54, 0.52]])
    >>> average(few[1] - few[0]).interval, pooled_interval([few], seeds=2)
    (0.063..., 0.030...)
    """
    squares, freedom = 0.0, 0
    for values in groups:
        residuals = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
        squares += float(np.square(residuals).sum())
        freedom += (values.shape[0] - 1) * (values.shape[1] - 1)
    return _student(freedom) * math.sqrt(2 * squares / freedom / seeds) if freedom else math.nan


def _student(freedom: int) -> float:
    return _T[min(freedom, len(_T)) - 1] if freedom > 0 else math.nan
