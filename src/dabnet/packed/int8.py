"""Real weights in 8 bits, with one scale per filter: a quarter of the bytes.

A filter w has scale = max |w| / 127 and int8 = round(w / scale); a runtime computes with int8 * scale, rounded to
float32.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from dabnet.errors import check_choice
from dabnet.packed.nodes import Conv

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dabnet.packed.model import Model

RealWeights = Literal["float32", "int8"]
REAL_WEIGHTS: tuple[RealWeights, ...] = ("float32", "int8")
"""How weights that are not binary may be stored."""
LARGEST = 127


def store_real_weights(model: Model, how: RealWeights) -> Model:
    """Return a model whose real weights are stored in 32 bits, as they are, or rounded to 8."""
    check_choice("way to store real weights", how, REAL_WEIGHTS)
    return (
        model
        if how == "float32"
        else replace(
            model, nodes=tuple(round_weights(node) if isinstance(node, Conv) else node for node in model.nodes)
        )
    )


def round_filters(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return filters (filters, ...) as whole numbers from -127 to 127, and a scale for each filter.

    >>> round_filters(np.array([[0.5, -1.0], [0.0, 0.0]], dtype=np.float32))[0].tolist()
    [[64, -127], [0, 0]]
    """
    largest = np.abs(weight).reshape(len(weight), -1).max(axis=1)
    scale = np.where(largest > 0, largest / np.float32(LARGEST), np.float32(1)).astype(np.float32)
    scale = np.maximum(scale, np.finfo(np.float32).tiny)  # else the quotient could overflow
    per_filter = scale.reshape(-1, *[1] * (weight.ndim - 1))
    return np.clip(np.rint(weight / per_filter), -LARGEST, LARGEST).astype(np.int8), scale


def round_weights(node: Conv) -> Conv:
    """Return a convolution whose weights have 8 bits, unless they are binary or have them already."""
    if node.weight is None:
        return node
    int8, scale = round_filters(node.weight)
    return replace(node, weight=None, int8=int8, scale=scale)
