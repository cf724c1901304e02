from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dabnet.errors import InputError
from dabnet.sketches.sketch import MAX_POINTS, Sketch

POINTS = st.tuples(st.integers(-99, 99), st.integers(-99, 99))


@given(st.lists(st.lists(POINTS, max_size=5), max_size=5))
def test_strokes_come_back_as_they_were_given_without_empty_ones(strokes: list[list[tuple[int, int]]]) -> None:
    kept = [stroke for stroke in strokes if stroke]
    if len({point for stroke in kept for point in stroke}) < 2:
        with pytest.raises(InputError, match=r"no ink|single point"):
            Sketch.from_strokes(strokes)
        return
    sketch = Sketch.from_strokes(strokes)
    assert [stroke.tolist() for stroke in sketch.strokes] == [[list(point) for point in stroke] for stroke in kept]
    assert sketch.image is None


@given(hnp.arrays(np.uint8, hnp.array_shapes(min_dims=2, max_dims=2, max_side=40)))
def test_an_image_comes_back_in_16_greys_in_the_middle_of_the_grid(ink: np.ndarray[Any, Any]) -> None:
    if ink.max() < 9:  # the first of the greys begins at 8.5
        with pytest.raises(InputError, match="the image has no ink"):
            Sketch.from_ink(ink)
        return
    image = Sketch.from_ink(ink).image
    assert image is not None
    top, left = ((256 - side) // 2 for side in ink.shape)
    cut = image[top : top + ink.shape[0], left : left + ink.shape[1]]
    assert np.abs(cut.astype(int) - ink).max() <= 8
    assert image.astype(int).sum() == cut.astype(int).sum()
    assert not (image % 17).any()


@pytest.mark.parametrize(
    ("strokes", "words"),
    [
        ([], "the drawing has no ink"),
        ([[], []], "the drawing has no ink"),
        ([[(3, 4)]], "a single point"),
        ([[(3, 4), (3, 4)], [(3, 4)]], "a single point"),
        ([[(0, 0), (math.nan, 1)]], "not a finite number"),
        ([[(0, 0), (math.inf, 1)]], "not a finite number"),
        ([[(0, 0), (1e300, 1)]], "not a finite number"),
        ([[(0, 0), (10**400, 1)]], "not a finite number"),
        ([[(0, 0), (None, 1)]], "stroke 1 is not a list of points"),
        ([[("0", "0"), ("1", "1")]], "stroke 1 is not a list of points"),
        ([[(True, False), (False, True)]], "stroke 1 is not a list of points"),
        ([[(0, 0), (1, 1)], [1, 2, 3]], "stroke 2 is not a list of points"),
        ([[(0, 0), (1, 1)], 5], "stroke 2 is not a list of points"),
        ([[(0, 0, 0), (1, 1, 1)]], "stroke 1 is not a list of points"),
        ([[(0, 0), (1,)]], "stroke 1 is not a list of points"),
        (["ab"], "stroke 1 is not a list of points"),
        ([[(i, i % 7) for i in range(50_000)]], "more than 32,768 points"),
    ],
)
def test_bad_strokes_are_refused_in_a_sentence(strokes: list[Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Sketch.from_strokes(strokes)


def test_as_many_points_as_allowed_are_taken() -> None:
    assert len(Sketch.from_strokes([[(i, i % 7) for i in range(MAX_POINTS)]]).strokes[0]) == MAX_POINTS


@pytest.mark.parametrize("ends", [[], [1], [3], [0, 2], [2, 2], [2, 1], [-1, 2]])
def test_ends_that_do_not_fit_the_points_are_refused(ends: list[int]) -> None:
    with pytest.raises(InputError, match="must end one after another"):
        Sketch.from_points(np.array([[0, 0], [1, 1]]), np.array(ends, dtype=np.int64))


def test_bitmaps_of_another_shape_or_kind_are_refused() -> None:
    for bitmap in (np.zeros((128, 256), np.uint8), np.zeros((256, 128), np.int8)):
        with pytest.raises(InputError, match="a bitmap must be uint8"):
            Sketch.from_bitmap(bitmap)  # type: ignore[arg-type]
    for width in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(InputError, match="no ink"):
            Sketch.from_bitmap(np.ones((256, 128), np.uint8), width)
    for ink in (np.zeros((257, 10), np.uint8), np.zeros((10, 10)), np.zeros(10, np.uint8)):
        with pytest.raises(InputError, match="ink must be uint8"):
            Sketch.from_ink(ink)  # type: ignore[arg-type]
