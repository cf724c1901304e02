"""The packed layers in plain numpy: the specification that the native ones are tested against.

Values are arrays (N, height, width, channels), real numbers as float32, whole numbers as int16 and signs as bools. A
convolution of signs or of whole numbers counts in integers; then every product and every sum is rounded to float32 on
its own, in the order written here, so that the native layers can give the very same numbers. A convolution of real
numbers is summed in float64, and rounded once.
"""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from dabnet.packed.bits import unpack
from dabnet.packed.nodes import (
    AdaptiveAvgPool,
    AdaptiveMaxPool,
    AdaptivePool,
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
    Sign,
    Windowed,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from dabnet.packed.model import Model

    Value = NDArray[Any]


def run(model: Model, x: NDArray[np.float32]) -> list[Value]:
    """Return every value of a model for sketches (N, C, H, W), the input first."""
    values: list[Value] = [x.transpose(0, 2, 3, 1)]
    for node in model.nodes:
        values.append(compute(node, *(values[i] for i in node.inputs)))
    return values


def answers(model: Model, x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return what `Session.run` returns: (N, answers)."""
    last = run(model, x)[-1]
    if last.dtype == np.bool_:
        last = np.where(last, np.float32(1), np.float32(-1))
    return last.astype(np.float32).transpose(0, 3, 1, 2).reshape(len(x), model.answers)


@singledispatch
def compute(node: Node, *inputs: Value) -> Value:
    """Return the value that a node makes."""
    raise NotImplementedError(type(node).__name__)


@compute.register(Conv)
def _(node: Conv, x: Value) -> Value:
    filters, groups = node.filters, node.groups
    is_real = x.dtype == np.float32
    # Taps of signs hold +1, -1, or 0 where padding counts for nothing.
    signs_as_numbers = np.where(x, 1, -1) if x.dtype == np.bool_ else x
    numbers = signs_as_numbers.astype(np.float64 if is_real else np.int64)
    taps = windows(node, numbers, pad=node.pad_value)  # (N, height, width, kernel height, kernel width, channels)
    count = node.kernel[0] * node.kernel[1] * x.shape[-1] // groups
    taps = taps.reshape(*taps.shape[:5], groups, x.shape[-1] // groups)
    taps = np.moveaxis(taps, 5, 3).reshape(*taps.shape[:3], groups, count)
    weights = _weights(node, count, is_real).reshape(groups, filters // groups, count)
    dots = np.einsum("nhwgt,gft->nhwgf", taps, weights).reshape(*taps.shape[:3], filters).astype(np.float32)
    if not is_real:
        assert node.scale is not None
        dots = node.scale * dots
        if node.offset is not None:
            sums = np.repeat(taps.sum(axis=-1), filters // groups, axis=-1).astype(np.float32)
            dots = dots + node.offset * sums
    result: Value = dots if node.bias is None else dots + node.bias
    return result


def _weights(node: Conv, count: int, is_real: bool) -> Value:
    """Return the weights as (filters, weights): numbers for real numbers, and else signs."""
    if node.bits is None:
        return node.real_weight().reshape(node.filters, -1).astype(np.float64)
    signs = np.where(unpack(node.bits, count), 1, -1)
    if not is_real:
        return signs
    assert node.scale is not None
    values = node.scale[:, None] * signs.astype(np.float32)
    return (values if node.offset is None else values + node.offset[:, None]).astype(np.float64)


@compute.register(Sign)
def _(node: Sign, x: Value) -> Value:
    ones: Value = x >= (np.float32(0) if node.threshold is None else node.threshold)
    return ones if node.flip is None else ones ^ unpack(node.flip, x.shape[-1])


@compute.register(Quantize)
def _(node: Quantize, x: Value) -> Value:
    clamped = np.clip(np.float32(node.scale) * x, np.float32(node.low), np.float32(node.high))
    return np.rint(clamped).astype(np.int16)


@compute.register(Affine)
def _(node: Affine, x: Value) -> Value:
    return node.scale * x + node.shift


@compute.register(Relu)
def _(node: Relu, x: Value) -> Value:
    return np.maximum(x, np.float32(0))


@compute.register(Clamp)
def _(node: Clamp, x: Value) -> Value:
    return np.minimum(np.maximum(x, np.float32(node.low)), np.float32(node.high))


@compute.register(PRelu)
def _(node: PRelu, x: Value) -> Value:
    return np.where(x > 0, x, node.slope * x)


@compute.register(MaxPool)
def _(node: MaxPool, x: Value) -> Value:
    result: Value = windows(node, x, pad=-np.inf).max(axis=(3, 4))
    return result


@compute.register(AvgPool)
def _(node: AvgPool, x: Value) -> Value:
    sums = windows(node, x.astype(np.float64), pad=0).sum(axis=(3, 4))
    if node.count_padding:
        counts = np.float64(node.kernel[0] * node.kernel[1])
    else:
        counts = windows(node, np.ones_like(x[:, :, :, :1], dtype=np.float64), pad=0).sum(axis=(3, 4))
    means: Value = (sums / counts).astype(np.float32)
    return means


@compute.register(AdaptiveAvgPool)
def _(node: AdaptiveAvgPool, x: Value) -> Value:
    return _parts(node, x.astype(np.float64), np.mean).astype(np.float32)


@compute.register(AdaptiveMaxPool)
def _(node: AdaptiveMaxPool, x: Value) -> Value:
    return _parts(node, x, np.max)


@compute.register(Add)
def _(node: Add, x: Value, y: Value) -> Value:
    result: Value = x + y
    return result


@compute.register(Concat)
def _(node: Concat, *inputs: Value) -> Value:
    return np.concatenate(inputs, axis=-1)


@compute.register(Flatten)
def _(node: Flatten, x: Value) -> Value:
    return x.transpose(0, 3, 1, 2).reshape(len(x), 1, 1, x.shape[1] * x.shape[2] * x.shape[3])


def windows(node: Windowed, x: Value, pad: float) -> Value:
    """Return what lies under each position of a window: (N, height, width, kernel height, kernel width, channels)."""
    top, left, bottom, right = node.padding
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=pad)
    rows = _taps(padded.shape[1], node.kernel[0], node.stride[0], node.dilation[0])
    columns = _taps(padded.shape[2], node.kernel[1], node.stride[1], node.dilation[1])
    under: Value = padded[:, rows[:, None, :, None], columns[None, :, None, :]]
    return under


def _taps(size: int, kernel: int, stride: int, dilation: int) -> NDArray[Any]:
    """Return the indices under each position of a window, (positions, kernel)."""
    positions = (size - dilation * (kernel - 1) - 1) // stride + 1
    return np.arange(positions)[:, None] * stride + np.arange(kernel) * dilation


def _parts(node: AdaptivePool, x: Value, reduce: Callable[..., Value]) -> Value:
    (_, height, width, _), (h, w) = x.shape, node.size
    rows = [slice(i * height // h, -(-(i + 1) * height // h)) for i in range(h)]
    columns = [slice(i * width // w, -(-(i + 1) * width // w)) for i in range(w)]
    return np.stack([np.stack([reduce(x[:, r, c], axis=(1, 2)) for c in columns], axis=1) for r in rows], axis=1)
