"""A packed model as a module of torch's, for whoever has one already, and for comparisons.

Signs are +1 and -1 here, and a convolution of one-bit weights is torch's own with weights +1 and -1. Its sums are
integers, so they are exact, and they are scaled in the order that docs/file-format.md gives: wherever signs or whole
numbers go in, the very numbers of `dabnet.runtime.Session` come out. No gradient passes them: the weights that were
trained are gone.
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dabnet.errors import UnsupportedError
from dabnet.packed.bits import unpack
from dabnet.packed.model import Model
from dabnet.packed.nodes import (
    AdaptiveAvgPool,
    AdaptiveMaxPool,
    Add,
    Affine,
    AvgPool,
    Clamp,
    Concat,
    Conv,
    Flatten,
    MaxPool,
    Node,
    PRelu,
    Quantize,
    Relu,
    Shape,
    Sign,
    Windowed,
)

Arrays = dict[str, Tensor]


class PackedNetwork(nn.Module):
    """(N, C, H, W) -> (N, answers), each node a function of torch's, its arrays buffers."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model
        self._names: list[list[str]] = []
        for at, node in enumerate(model.nodes):
            arrays = _unpack(node, model.shapes[node.inputs[0]])
            self._names.append(list(arrays))
            for name, tensor in arrays.items():
                self.register_buffer(f"{name}_{at}", tensor)

    def forward(self, x: Tensor) -> Tensor:
        """Run the nodes in order."""
        values = [x]
        for at, (node, names) in enumerate(zip(self.model.nodes, self._names, strict=True)):
            arrays = {name: self.get_buffer(f"{name}_{at}") for name in names}
            values.append(_compute(node, arrays, *(values[i] for i in node.inputs)))
        return values[-1].flatten(1)


def _unpack(node: Node, shape: Shape) -> Arrays:
    """Return a node's arrays as tensors, bits as what they stand for; `shape` is of what it takes."""
    arrays = {name: torch.from_numpy(values.copy()) for name, values in node.arrays()}
    if isinstance(node, Sign) and node.flip is not None:
        arrays["flip"] = torch.from_numpy(unpack(node.flip, shape.channels))
    if isinstance(node, Conv) and node.bits is not None:
        signs = np.where(unpack(node.bits, node.taps(shape)), np.float32(1), np.float32(-1))
        signs = signs.reshape(node.filters, *node.kernel, -1)
        arrays["weight"] = torch.from_numpy(signs)
        del arrays["bits"]
        if shape.is_real:  # then the weights are the two values themselves, as if they were real
            offset = arrays.pop("middle", torch.zeros(node.filters))
            arrays["weight"] = arrays.pop("scale")[:, None, None, None] * arrays["weight"] + offset[:, None, None, None]
    if isinstance(node, Conv) and node.int8 is not None:
        arrays["weight"] = torch.from_numpy(node.real_weight())
        del arrays["int8"], arrays["scale"]
    if isinstance(node, Conv):
        arrays["weight"] = arrays["weight"].permute(0, 3, 1, 2)  # channels last, which is the faster way
    return arrays


@singledispatch
def _compute(node: Node, arrays: Arrays, *inputs: Tensor) -> Tensor:
    """Return the value that a node makes."""
    raise NotImplementedError(type(node).__name__)


def _pad(node: Windowed, x: Tensor, number: float) -> tuple[Tensor, tuple[int, int]]:
    """Pad where the sides differ, where a pool refuses to, or with other than 0; return also what is left to pad."""
    top, left, bottom, right = node.padding
    can_pad = not number if isinstance(node, Conv) else 2 * top <= node.kernel[0] and 2 * left <= node.kernel[1]
    if can_pad and (top, left) == (bottom, right):
        return x, (top, left)
    return F.pad(x, (left, right, top, bottom), value=number), (0, 0)


@_compute.register(Conv)
def _(node: Conv, arrays: Arrays, x: Tensor) -> Tensor:
    x, padding = _pad(node, x, node.pad_value)
    rest = (node.stride, padding, node.dilation, node.groups)
    weight, bias = arrays["weight"], arrays.get("bias")
    if "scale" not in arrays:
        return F.conv2d(x, weight, bias, *rest)
    value = arrays["scale"][:, None, None] * F.conv2d(x, weight, None, *rest)
    if "middle" in arrays:
        sums = F.conv2d(x, torch.ones_like(weight[: node.groups]), None, *rest)
        value = value + arrays["middle"][:, None, None] * sums.repeat_interleave(node.filters // node.groups, dim=1)
    return value if bias is None else value + bias[:, None, None]


@_compute.register(Sign)
def _(node: Sign, arrays: Arrays, x: Tensor) -> Tensor:
    ones = x >= arrays["threshold"][:, None, None] if "threshold" in arrays else x >= 0
    if "flip" in arrays:
        ones = ones ^ arrays["flip"][:, None, None]
    return ones.to(x.dtype) * 2 - 1


@_compute.register(Quantize)
def _(node: Quantize, arrays: Arrays, x: Tensor) -> Tensor:
    return (x * node.scale).clamp(node.low, node.high).round()


@_compute.register(Affine)
def _(node: Affine, arrays: Arrays, x: Tensor) -> Tensor:
    return x * arrays["scale"][:, None, None] + arrays["shift"][:, None, None]


@_compute.register(Relu)
def _(node: Relu, arrays: Arrays, x: Tensor) -> Tensor:
    return F.relu(x)


@_compute.register(Clamp)
def _(node: Clamp, arrays: Arrays, x: Tensor) -> Tensor:
    return x.clamp(node.low, node.high)


@_compute.register(PRelu)
def _(node: PRelu, arrays: Arrays, x: Tensor) -> Tensor:
    return F.prelu(x, arrays["slope"])


@_compute.register(MaxPool)
def _(node: MaxPool, arrays: Arrays, x: Tensor) -> Tensor:
    x, padding = _pad(node, x, -torch.inf)
    return F.max_pool2d(x, node.kernel, node.stride, padding, node.dilation)


@_compute.register(AvgPool)
def _(node: AvgPool, arrays: Arrays, x: Tensor) -> Tensor:
    if node.dilation != (1, 1):
        raise UnsupportedError("torch has no dilated means.")
    padded, padding = _pad(node, x, 0)
    means = F.avg_pool2d(padded, node.kernel, node.stride, padding, count_include_pad=bool(node.count_padding))
    if padded is x or node.count_padding:
        return means
    inside, _ = _pad(node, torch.ones_like(x[:1, :1]), 0)
    return means / F.avg_pool2d(inside, node.kernel, node.stride)


@_compute.register(AdaptiveAvgPool)
def _(node: AdaptiveAvgPool, arrays: Arrays, x: Tensor) -> Tensor:
    return F.adaptive_avg_pool2d(x, node.size)


@_compute.register(AdaptiveMaxPool)
def _(node: AdaptiveMaxPool, arrays: Arrays, x: Tensor) -> Tensor:
    return F.adaptive_max_pool2d(x, node.size)


@_compute.register(Add)
def _(node: Add, arrays: Arrays, x: Tensor, y: Tensor) -> Tensor:
    return x + y


@_compute.register(Concat)
def _(node: Concat, arrays: Arrays, *inputs: Tensor) -> Tensor:
    return torch.cat(inputs, dim=1)


@_compute.register(Flatten)
def _(node: Flatten, arrays: Arrays, x: Tensor) -> Tensor:
    return x.flatten(1)[:, :, None, None]
