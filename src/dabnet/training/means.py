"""The mean over a few seeds, and how sure it is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def pooled_intervals(means: Sequence[Mean]) -> list[float]:
    """Return the 95 % intervals of means whose values spread alike: the spread is that of all of them together.

    With two or three seeds each, that is far better known than one by one.

    >>> few = [average([0.010, 0.020]), average([0.030, 0.032]), average([0.000, 0.006])]
    >>> [round(each.interval, 3) for each in few], [round(each, 3) for each in pooled_intervals(few)]
    ([0.064, 0.013, 0.038], [0.011, 0.011, 0.011])
    """
    freedom = sum(each.seeds - 1 for each in means)
    if freedom == 0:
        return [math.nan] * len(means)
    squares = sum((each.seeds - 1) * each.seeds * each.error**2 for each in means if each.seeds > 1)
    return [_student(freedom) * math.sqrt(squares / freedom / each.seeds) for each in means]


def _student(freedom: int) -> float:
    return _T[min(freedom, len(_T)) - 1] if freedom > 0 else math.nan
