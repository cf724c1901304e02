"""Parts of a data set for testing and training in turn, each with its share of every class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

TRAIN_ONLY = -1
"""The fold of drawings that no test may use."""


def stratified_folds(
    labels: NDArray[Any], folds: int, seed: int = 0, groups: NDArray[Any] | None = None
) -> NDArray[np.int8]:
    """Assign each drawing to a fold, so that every class is spread evenly; the same seed gives the same folds.

    Drawings of one class with the same group (sketches of one photo, say) stay together.

    >>> stratified_folds(np.array([0, 0, 0, 1, 1, 1]), folds=3).reshape(2, 3)
    array([[2, 0, 1],
           [2, 1, 0]], dtype=int8)
    """
    rng = np.random.default_rng(seed)
    result = np.empty(len(labels), dtype=np.int8)
    by_class = np.argsort(labels, kind="stable")
    dealt = 0
    for rows in np.split(by_class, np.flatnonzero(np.diff(labels[by_class])) + 1):
        members = np.arange(len(rows)) if groups is None else np.unique(groups[rows], return_inverse=True)[1]
        count = int(members.max(initial=-1)) + 1
        # Deal the class's groups out in turn, going on where the class before stopped.
        turn = rng.permutation(count)
        result[rows] = (turn[members] + dealt) % folds
        dealt += count
    return result
