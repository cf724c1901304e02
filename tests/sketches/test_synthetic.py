from __future__ import annotations

import numpy as np

from dabnet.sketches.synthetic import synthetic_sketches


def test_sketches_are_ink_on_blank_paper_and_every_class_comes_up() -> None:
    images, labels, names = synthetic_sketches(90, size=40, seed=3)
    assert images.shape == (90, 40, 40)
    assert images.dtype == np.uint8
    assert np.bincount(labels).tolist() == [10] * len(names)
    ink = (images > 127).mean(axis=(1, 2))
    assert (ink > 0.005).all()
    assert (ink < 0.4).all()


def test_a_seed_gives_the_same_sketches_and_another_gives_others() -> None:
    first, again, other = (synthetic_sketches(9, seed=seed)[0] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
