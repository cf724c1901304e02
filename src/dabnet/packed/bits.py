"""Bits in bytes: a row's first bit is the lowest of its first byte, and the last byte is filled with zeros."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def pack(ones: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Pack the last axis.

    >>> pack(np.array([True, False, False, True] + [False] * 4 + [True]))
    array([9, 1], dtype=uint8)
    """
    return np.packbits(ones, axis=-1, bitorder="little")


def unpack(packed: NDArray[np.uint8], count: int) -> NDArray[np.bool_]:
    """Undo `pack`.

    >>> unpack(np.array([9, 1], dtype=np.uint8), 9).astype(int)
    array([1, 0, 0, 1, 0, 0, 0, 0, 1])
    """
    ones: NDArray[Any] = np.unpackbits(packed, axis=-1, count=count, bitorder="little")
    return ones.astype(np.bool_)


def is_filled_with_zeros(packed: NDArray[np.uint8], count: int) -> bool:
    """Say whether the bits after the first `count` are 0."""
    spare = 8 * packed.shape[-1] - count
    return not spare or not (packed[..., -1] >> (8 - spare)).any()
