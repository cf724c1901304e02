"""Ten views of a drawing for a test: corners, centre, and their mirror images."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dabnet.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def crop_source_size(size: int) -> int:
    """Return the size to rasterize at for crops of a size: the paper takes 224 pixels of 256.

    >>> crop_source_size(224), crop_source_size(64)
    (256, 73)
    """
    return round(size * 256 / 224)


def ten_crop(images: NDArray[np.uint8], size: int) -> NDArray[np.float32]:
    """Make ten float views (N, 10, 1, size, size), ink 1 on 0, of uint8 images (N, H, W), ink 255 on 0.

    They are the corners, top left, top right, bottom left, bottom right, then the centre, then the mirror images of
    these five. A network's answer is the mean over the ten.
    """
    if images.dtype != np.uint8 or images.ndim != 3:
        raise InputError(f"images must be uint8 of (N, H, W), not {images.dtype} of {images.shape}.")
    count, height, width = images.shape
    if min(height, width) < size:
        raise InputError(f"images of {width}x{height} have no crops of {size}x{size}: rasterize them larger.")
    bottom, right = height - size, width - size
    crops = np.empty((count, 10, 1, size, size), dtype=np.float32)
    for i, (y, x) in enumerate([(0, 0), (0, right), (bottom, 0), (bottom, right), (bottom // 2, right // 2)]):
        crops[:, i, 0] = images[:, y : y + size, x : x + size]
        crops[:, i + 5] = crops[:, i, :, :, ::-1]
    crops /= 255
    return crops
