"""A packed model of real numbers as a module of torch's, norms folded as they are for every other engine."""

from __future__ import annotations

from functools import singledispatch

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dabnet.errors import UnsupportedError
from dabnet.packed.model import (
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
    Model,
    Node,
    PRelu,
    Relu,
    Windowed,
)

Arrays = dict[str, Tensor]


class TorchTwin(nn.Module):
    """(N, C, H, W) -> (N, answers), one function of torch's a node."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model
        self._arrays: list[Arrays] = []
        for node in model.nodes:
            arrays = {name: torch.from_numpy(values.copy()) for name, values in node.arrays()}
            if isinstance(node, Conv) and "weight" in arrays:
                arrays["weight"] = arrays["weight"].permute(0, 3, 1, 2)  # channels last, which is the faster way
            self._arrays.append(arrays)

    def forward(self, x: Tensor) -> Tensor:
        """Run the nodes in order."""
        values = [x]
        for node, arrays in zip(self.model.nodes, self._arrays, strict=True):
            values.append(_compute(node, arrays, *(values[i] for i in node.inputs)))
        return values[-1].flatten(1)


@singledispatch
def _compute(node: Node, arrays: Arrays, *inputs: Tensor) -> Tensor:
    """Give the value that a node makes."""
    raise UnsupportedError(f"torch's twin of a model has no {node.OP}: it is for real numbers.")


def _pad(node: Windowed, x: Tensor, number: float) -> tuple[Tensor, tuple[int, int]]:
    """Pad where the sides differ, or a pool refuses to; give also what is left to pad."""
    top, left, bottom, right = node.padding
    can_pad = isinstance(node, Conv) or (2 * top <= node.kernel[0] and 2 * left <= node.kernel[1])
    if can_pad and (top, left) == (bottom, right):
        return x, (top, left)
    return F.pad(x, (left, right, top, bottom), value=number), (0, 0)


@_compute.register(Conv)
def _(node: Conv, arrays: Arrays, x: Tensor) -> Tensor:
    x, padding = _pad(node, x, 0)
    return F.conv2d(x, arrays["weight"], arrays.get("bias"), node.stride, padding, node.dilation, node.groups)


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
