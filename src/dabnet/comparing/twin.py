"""The real-valued network that a packed model stands for: what one would run instead."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dabnet.packed.nodes import Conv, Quantize, Relu, Sign

if TYPE_CHECKING:
    from dabnet.packed.model import Model
    from dabnet.packed.nodes import Node, Shape


def real_twin(model: Model, seed: int = 0) -> Model:
    """Return a model of the same layers with weights of 32 bits; a peer's speed does not depend on their values.

    One-bit filters become random ones of the size that He's start gives them, with a bias, as a norm leaves one that
    was folded into a convolution, and signs and whole numbers become ReLUs. What was real stays as it is.
    """
    rng = np.random.default_rng(seed)
    return replace(model, nodes=tuple(_make_real(node, model.shapes[node.inputs[0]], rng) for node in model.nodes))


def _make_real(node: Node, shape: Shape, rng: np.random.Generator) -> Node:
    if isinstance(node, Sign | Quantize):
        return Relu(inputs=node.inputs, name=node.name)
    if not isinstance(node, Conv) or node.bits is None:
        return node
    channels, taps = shape.channels // node.groups, node.taps(shape)
    weight = rng.standard_normal((node.filters, *node.kernel, channels), dtype=np.float32) * np.sqrt(2 / taps)
    bias = np.zeros(node.filters, dtype=np.float32)
    real = {"bits": None, "scale": None, "offset": None, "pad_value": 0}
    return replace(node, weight=weight.astype(np.float32), bias=bias, **real)  # type: ignore[arg-type]  # of many kinds
