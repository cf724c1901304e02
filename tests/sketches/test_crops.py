from __future__ import annotations

import numpy as np
import pytest

from dabnet.errors import InputError
from dabnet.sketches.crops import crop_source_size, ten_crop


def test_the_ten_crops_are_corners_and_centre_then_their_mirror_images() -> None:
    images = np.random.default_rng(0).integers(0, 256, (3, 64, 64)).astype(np.uint8)
    assert crop_source_size(56) == 64
    crops = ten_crop(images, 56)
    assert crops.shape == (3, 10, 1, 56, 56)
    plain = [images[:, :56, :56], images[:, :56, 8:], images[:, 8:, :56], images[:, 8:, 8:], images[:, 4:60, 4:60]]
    for i, part in enumerate(plain):
        assert np.array_equal(crops[:, i, 0], part.astype(np.float32) / 255)
        assert np.array_equal(crops[:, i + 5, 0], part[:, :, ::-1].astype(np.float32) / 255)
    assert ten_crop(images[:0], 56).shape == (0, 10, 1, 56, 56)


def test_the_source_of_a_crop_is_as_much_larger_as_in_the_paper() -> None:
    assert [crop_source_size(size) for size in (224, 225, 64, 56)] == [256, 257, 73, 64]


def test_images_that_have_no_crops_are_refused() -> None:
    with pytest.raises(InputError, match=r"images must be uint8 of \(N, H, W\), not float64 of \(2, 8, 8\)"):
        ten_crop(np.zeros((2, 8, 8)), 8)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="images of 60x50 have no crops of 56x56: rasterize them larger"):
        ten_crop(np.zeros((1, 50, 60), dtype=np.uint8), 56)
