"""A packed model as an OpenVINO graph of `BinaryConvolution`, the nearest thing to our runtime that others offer.

A sign becomes a FakeQuantize of two levels, and a convolution of signs a BinaryConvolution of one-bit constants with a
scale per filter. It is XNOR-Net's arithmetic, +1 and -1 alike: what DAB adds, `offset` times the sum of the inputs, has
no operator there and is left out. So the answers are ours where no `offset` is, as in a network of method "xnor".
"""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino as ov
from openvino import opset8 as ops

from dabnet.errors import UnsupportedError
from dabnet.packed.bits import pack, unpack
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
    Relu,
    Shape,
    Sign,
    Windowed,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Value = Any  # a node of OpenVINO's


def to_binary_graph(model: Model) -> ov.Model:
    """Return the graph: "sketches" (N, C, H, W) for any N go in, logits (N, answers) come out."""
    if not any(shape.is_signs for shape in model.shapes):
        raise UnsupportedError("openvino-binary is for networks with binary activations (fbin): this one has none.")
    sketches = ops.parameter([-1, *model.input_size], np.float32, "sketches")
    values: list[Value] = [sketches]
    for node in model.nodes:
        inputs = [values[i] for i in node.inputs]
        if isinstance(node, Sign) and isinstance(model.nodes[node.inputs[0] - 1], Add) and _is_blind_to_relu(node):
            # The ReLU that stood there: OpenVINO does it with the sum, and else might do the sum of the signs.
            inputs = [ops.relu(inputs[0])]
        values.append(_add(node, [model.shapes[i] for i in node.inputs], *inputs))
    logits = ops.reshape(values[-1], np.array([0, -1]), special_zero=True)
    return ov.Model([logits], [sketches], "dabnet")


def _is_blind_to_relu(node: Sign) -> bool:
    """Say whether a ReLU before it would change no bit."""
    return node.threshold is not None and bool(((node.threshold > 0) | np.isneginf(node.threshold)).all())


def _per_channel(numbers: NDArray[Any]) -> NDArray[np.float32]:
    """Shape numbers, one per channel, to meet maps."""
    return numbers.astype(np.float32).reshape(1, -1, 1, 1)


@singledispatch
def _add(node: Node, shapes: list[Shape], *inputs: Value) -> Value:
    """Add a node's twin; return its value."""
    raise UnsupportedError(f"a binary graph has no {node.OP}.")


@_add.register(Conv)
def _(node: Conv, shapes: list[Shape], x: Value) -> Value:
    window = (node.stride, node.padding[:2], node.padding[2:], node.dilation)
    taps = (node.filters, *node.kernel, shapes[0].channels // node.groups)
    if node.groups > 1:
        raise UnsupportedError("a binary graph has no convolutions in groups.")
    if node.bits is None:
        y = ops.convolution(x, node.real_weight().transpose(0, 3, 1, 2), *window)
    else:
        assert node.scale is not None
        ones = unpack(node.bits, node.taps(shapes[0])).reshape(taps).transpose(0, 3, 1, 2)
        if shapes[0].is_signs:
            y = ops.binary_convolution(x, _bits(ones), *window, "xnor-popcount", float(node.pad_value))
        else:
            y = ops.convolution(x, np.where(ones, np.float32(1), np.float32(-1)), *window)
        y = ops.multiply(y, _per_channel(node.scale))
    return y if node.bias is None else ops.add(y, _per_channel(node.bias))


def _bits(ones: NDArray[np.bool_]) -> Value:
    """Make a constant of one-bit numbers; its CPU kernels take a byte's lowest bit first."""
    packed = pack(ones.reshape(-1))  # a tensor only borrows it, and must not outlive it
    return ov.op.Constant(ov.Tensor(packed, ov.Shape(list(ones.shape)), ov.Type.u1), shared_memory=False)


@_add.register(Sign)
def _(node: Sign, shapes: list[Shape], x: Value) -> Value:
    channels = shapes[0].channels
    threshold = np.zeros(channels, dtype=np.float32) if node.threshold is None else node.threshold
    flip = np.zeros(channels, dtype=np.bool_) if node.flip is None else unpack(node.flip, channels)
    limit = _per_channel(np.nextafter(threshold, np.float32(-np.inf)))  # it asks for more than, not for at least
    return ops.fake_quantize(x, limit, limit, _per_channel(flip), _per_channel(~flip), 2)  # 0 stands for -1


@_add.register(Affine)
def _(node: Affine, shapes: list[Shape], x: Value) -> Value:
    return ops.add(ops.multiply(x, _per_channel(node.scale)), _per_channel(node.shift))


@_add.register(Relu)
def _(node: Relu, shapes: list[Shape], x: Value) -> Value:
    return ops.relu(x)


@_add.register(Clamp)
def _(node: Clamp, shapes: list[Shape], x: Value) -> Value:
    return ops.clamp(x, node.low, node.high)


@_add.register(PRelu)
def _(node: PRelu, shapes: list[Shape], x: Value) -> Value:
    return ops.prelu(x, node.slope)


def _window(node: Windowed) -> tuple[Any, ...]:
    return node.stride, node.padding[:2], node.padding[2:], node.kernel


@_add.register(MaxPool)
def _(node: MaxPool, shapes: list[Shape], x: Value) -> Value:
    stride, begin, end, kernel = _window(node)
    return ops.max_pool(x, stride, node.dilation, begin, end, kernel).output(0)


@_add.register(AvgPool)
def _(node: AvgPool, shapes: list[Shape], x: Value) -> Value:
    if node.dilation != (1, 1):
        raise UnsupportedError("a binary graph has no dilated means.")
    return ops.avg_pool(x, *_window(node), exclude_pad=not node.count_padding)


@_add.register(AdaptiveAvgPool)
def _(node: AdaptiveAvgPool, shapes: list[Shape], x: Value) -> Value:
    if node.size == (1, 1):
        return ops.reduce_mean(x, np.array([2, 3]), keep_dims=True)
    return ops.adaptive_avg_pool(x, np.array(node.size))


@_add.register(AdaptiveMaxPool)
def _(node: AdaptiveMaxPool, shapes: list[Shape], x: Value) -> Value:
    return ops.adaptive_max_pool(x, np.array(node.size)).output(0)


@_add.register(Add)
def _(node: Add, shapes: list[Shape], x: Value, y: Value) -> Value:
    return ops.add(x, y)


@_add.register(Concat)
def _(node: Concat, shapes: list[Shape], *inputs: Value) -> Value:
    return ops.concat(list(inputs), 1)


@_add.register(Flatten)
def _(node: Flatten, shapes: list[Shape], x: Value) -> Value:
    count = shapes[0].channels * shapes[0].height * shapes[0].width
    return ops.reshape(x, np.array([0, count, 1, 1]), special_zero=True)
