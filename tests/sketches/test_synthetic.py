from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from dabnet.errors import InputError
from dabnet.sketches.synthetic import CLASSES, draw_thing, synthetic_labels, synthetic_sketches, synthetic_strokes
from dabnet.sketches.things import THINGS

if TYPE_CHECKING:
    from numpy.typing import NDArray


def test_sketches_are_ink_on_blank_paper_and_every_class_comes_up() -> None:
    images, labels, names = synthetic_sketches(10 * len(CLASSES), size=40, seed=3)
    assert images.shape == (len(labels), 40, 40)
    assert images.dtype == np.uint8
    assert labels.dtype == np.int64
    assert names == list(CLASSES)
    assert np.bincount(labels).tolist() == [10] * len(names)
    ink = (images > 127).mean(axis=(1, 2))
    assert (ink > 0.03).all()
    assert (ink < 0.4).all()


def test_there_are_many_classes_in_order() -> None:
    assert len(CLASSES) >= 16
    assert list(CLASSES) == sorted(set(THINGS))


def test_a_seed_gives_the_same_sketches_and_another_gives_others() -> None:
    first, again, other = (synthetic_sketches(9, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first[0], again[0])
    assert np.array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])
    assert not np.array_equal(first[1], other[1])


@pytest.mark.parametrize(("start", "count"), [(0, 1), (7, 30), (19, 2), (20, 20), (47, 3)])
def test_a_drawing_depends_only_on_the_seed_and_its_number(start: int, count: int) -> None:
    sketches, labels, _ = synthetic_strokes(50, seed=4)
    some, some_labels, _ = synthetic_strokes(count, seed=4, start=start)
    assert np.array_equal(some_labels, labels[start : start + count])
    assert np.array_equal(some_labels, synthetic_labels(count, seed=4, start=start))
    assert len(some) == count
    for sketch, same in zip(some, sketches[start:], strict=False):
        np.testing.assert_array_equal(sketch.points, same.points)
        np.testing.assert_array_equal(sketch.ends, same.ends)


def test_labels_are_balanced_in_any_range_but_in_no_order() -> None:
    labels = synthetic_labels(1000, seed=9)
    for start in (0, 20, 333):
        counts = np.bincount(labels[start : start + 100], minlength=len(CLASSES))
        assert counts.max() - counts.min() <= 2
    rounds = labels.reshape(-1, len(CLASSES))
    assert len({tuple(order) for order in rounds.tolist()}) == len(rounds)


@pytest.mark.parametrize("name", CLASSES)
def test_drawings_of_a_class_differ_and_look_like_a_pen_made_them(name: str) -> None:
    drawings = [draw_thing(name, np.random.default_rng([5, number])) for number in range(40)]
    points = [sketch.points for sketch in drawings if sketch.points is not None]
    assert len({array.tobytes() for array in points}) == len(drawings)
    for sketch, array in zip(drawings, points, strict=True):
        assert 20 <= len(array) <= 300
        assert np.abs(array).max() < 2.5
        assert np.ptp(array, axis=0).max() > 1
        for stroke in sketch.strokes:
            assert len(stroke) >= 2
            assert np.hypot(*np.diff(stroke, axis=0).T).max() < 0.5


def test_lines_meant_straight_bend_a_little() -> None:
    bends = []  # of the rails and rungs of ladders: how far off the straight line, as a share of its length
    for number in range(40):
        for stroke in draw_thing("ladder", np.random.default_rng([6, number])).strokes:
            along = stroke[-1] - stroke[0]
            off = (stroke - stroke[0]) @ np.array([-along[1], along[0]])
            bends.append(np.abs(off).max() / (along @ along))
    assert 0.005 < np.median(bends) < 0.08


def test_classes_can_be_told_apart_by_their_mean_images() -> None:
    """The nearest of the class means gets 0.9 right; chance is 0.05."""
    images, labels, names = synthetic_sketches(800, seed=1)
    others, truth, _ = synthetic_sketches(400, seed=2)
    means = np.stack([_blurred(images[labels == label]).mean(axis=0) for label in range(len(names))])
    guesses = np.square(_blurred(others)[:, None] - means).sum(axis=2).argmin(axis=1)
    assert (guesses == truth).mean() > 0.75


def _blurred(images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Shrink 32x32 to 16x16, blur by 3x3, and scale to length 1."""
    small = images.reshape(-1, 16, 2, 16, 2).mean(axis=(2, 4))
    padded = np.pad(small, ((0, 0), (1, 1), (1, 1)))
    sums = sum((padded[:, y : y + 16, x : x + 16] for y in range(3) for x in range(3)), np.zeros_like(small))
    flat = sums.reshape(len(images), -1)
    return np.asarray(flat / np.linalg.norm(flat, axis=1, keepdims=True))


def test_an_unknown_thing_and_a_negative_number_are_refused_in_one_sentence() -> None:
    with pytest.raises(InputError, match=r"no 'dragon' among .* apple, "):
        draw_thing("dragon", np.random.default_rng(0))
    with pytest.raises(InputError, match="must be 0 or more, not 3, -1 and 0"):
        synthetic_sketches(3, seed=-1)
