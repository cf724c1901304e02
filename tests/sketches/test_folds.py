from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dabnet.sketches.folds import stratified_folds

LABELS = hnp.arrays(np.int32, st.integers(0, 60), elements=st.integers(0, 5))


@given(LABELS, st.integers(2, 10), st.integers(0, 99))
def test_every_class_and_the_whole_are_spread_evenly(labels: np.ndarray[Any, Any], folds: int, seed: int) -> None:
    dealt = stratified_folds(labels, folds, seed)
    assert np.array_equal(dealt, stratified_folds(labels, folds, seed))
    for chosen in (slice(None), *(labels == label for label in range(6))):
        counts = np.bincount(dealt[chosen], minlength=folds)
        assert counts.max() - counts.min() <= 1
        assert len(counts) == folds


def test_tu_berlins_three_folds_hold_26_or_27_of_each_class() -> None:
    labels = np.repeat(np.arange(250), 80)
    dealt = stratified_folds(labels, folds=3)
    assert set(np.bincount(3 * labels + dealt)) == {26, 27}
    assert sorted(np.bincount(dealt)) == [6666, 6667, 6667]
    assert not np.array_equal(dealt, stratified_folds(labels, folds=3, seed=1))


@given(LABELS, st.integers(0, 99), st.data())
def test_a_group_is_never_divided(labels: np.ndarray[Any, Any], seed: int, data: st.DataObject) -> None:
    photos = data.draw(hnp.arrays(np.int32, len(labels), elements=st.integers(0, 4)))
    dealt = stratified_folds(labels, 3, seed, photos.astype(str))
    for label in range(6):
        for photo in range(5):
            assert len(set(dealt[(labels == label) & (photos == photo)])) <= 1
        present = {photo for photo in range(5) if ((labels == label) & (photos == photo)).any()}
        assert len(set(dealt[labels == label])) == min(3, len(present))
