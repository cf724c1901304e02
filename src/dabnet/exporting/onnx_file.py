"""Packed models as ONNX files of standard operators, for the runtimes that know no bits.

Signs become the real numbers +1 and -1, and one-bit weights the two real numbers that they stand for. Whole numbers are
a pair of QuantizeLinear and DequantizeLinear. So an answer is the packed model's up to the rounding of sums, unless a
number falls so near a threshold that its sign depends on that, or so near a half that its whole number does.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

from dabnet.errors import InputError
from dabnet.packed.bits import unpack
from dabnet.packed.model import Model
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
    Shape,
    Sides,
    Sign,
    Windowed,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from onnx import ModelProto, NodeProto

OPSET = 17
IR_VERSION = 8
"""The version of the file format that came with the opset: newer ones shut out older runtimes."""
MAX_WEIGHTS_BYTES = 2_000_000_000
"""Protocol buffers end at 2 GiB."""
NO_PADDING: Sides = (0, 0, 0, 0)


class Value(NamedTuple):
    """A value of the packed model, and what it is called in the file."""

    name: str
    shape: Shape


class OnnxGraph:
    """The file's operators and constants while they are written; `scope` begins their names."""

    def __init__(self) -> None:
        self.scope = ""
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self._uses: Counter[str] = Counter()

    def add(self, operator: str, *inputs: str, **settings: Any) -> str:
        """Add an operator, and return the name of what it makes."""
        name = self._name(operator)
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **settings))
        return name

    def constant(self, name: str, values: NDArray[Any]) -> str:
        """Add a constant, and return its name in the file."""
        name = self._name(name)
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def integers(self, name: str, *values: int) -> str:
        """Add a list of integers as a constant."""
        return self.constant(name, np.array(values, dtype=np.int64))

    def number(self, name: str, value: float) -> str:
        """Add one real number as a constant."""
        return self.constant(name, np.array(value, dtype=np.float32))

    def per_channel(self, name: str, values: NDArray[Any] | None) -> str:
        """Add a constant with one number per channel, shaped to meet maps."""
        assert values is not None
        return self.constant(name, values.reshape(-1, 1, 1))

    def pad(self, x: str, padding: Sides, number: float) -> str:
        """Surround maps with a number."""
        sides = self.integers("padding", 0, 0, *padding[:2], 0, 0, *padding[2:])
        return self.add("Pad", x, sides, self.number("pad_value", number))

    def _name(self, word: str) -> str:
        name = f"{self.scope}/{word}"
        self._uses[name] += 1
        return name if self._uses[name] == 1 else f"{name}_{self._uses[name]}"


def to_onnx(model: Model) -> bytes:
    """Return a packed model as the bytes of an ONNX file.

    It takes "sketches" (N, C, H, W) for any N, and gives "logits" (N, answers). The metadata holds "labels" and
    "raster", as JSON, where the model has them.
    """
    _check_size(model)
    graph = OnnxGraph()
    values = [Value("sketches", model.shapes[0])]
    for at, node in enumerate(model.nodes):
        graph.scope = f"{at}.{node.name or node.OP}"
        name = _WRITERS[type(node)](graph, node, *(values[i] for i in node.inputs))
        values.append(Value(name, model.shapes[at + 1]))
    graph.nodes.append(helper.make_node("Flatten", [values[-1].name], ["logits"], name="logits", axis=1))
    data: bytes = _assemble(model, graph).SerializeToString(deterministic=True)
    checker.check_model(data, full_check=True)
    return data


def _check_size(model: Model) -> None:
    """Refuse a model whose weights no ONNX file could hold, before they are unpacked."""
    weights = sum(
        node.filters * node.taps(model.shapes[node.inputs[0]]) for node in model.nodes if isinstance(node, Conv)
    )
    size = weights * np.dtype(np.float32).itemsize
    if size > MAX_WEIGHTS_BYTES:
        raise InputError(
            f"the model's weights take {size:,} bytes as real numbers, and an ONNX file holds {MAX_WEIGHTS_BYTES:,}: "
            "export the packed format instead."
        )


def _assemble(model: Model, graph: OnnxGraph) -> ModelProto:
    result = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "dabnet",
            [helper.make_tensor_value_info("sketches", TensorProto.FLOAT, ["N", *model.input_size])],
            [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", model.answers])],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="dabnet",
    )
    about = {"labels": model.labels or None, "raster": model.raster}
    helper.set_model_props(result, {key: json.dumps(found) for key, found in about.items() if found is not None})
    return result


def _conv(graph: OnnxGraph, node: Conv, x: Value) -> str:
    source, padding = x.name, node.padding
    if node.pad_value and any(padding):
        source, padding = graph.pad(source, padding, node.pad_value), NO_PADDING
    inputs = [source, graph.constant("weight", _filters(node, x.shape))]
    if node.bias is not None:
        inputs.append(graph.constant("bias", node.bias))
    return graph.add("Conv", *inputs, group=node.groups, dilations=node.dilation, **_window(node, padding))


def _filters(node: Conv, shape: Shape) -> NDArray[np.float32]:
    """Return the weights as real numbers: (filters, input channels of a group, kernel height, kernel width)."""
    if node.bits is None:
        weight = node.real_weight()
    else:
        assert node.scale is not None
        offset = np.zeros_like(node.scale) if node.offset is None else node.offset
        ones = unpack(node.bits, node.taps(shape))
        weight = np.where(ones, (offset + node.scale)[:, None], (offset - node.scale)[:, None])
        weight = weight.reshape(node.filters, *node.kernel, -1)
    return weight.transpose(0, 3, 1, 2)


def _sign(graph: OnnxGraph, node: Sign, x: Value) -> str:
    channels = x.shape.channels
    threshold = np.zeros(channels, dtype=np.float32) if node.threshold is None else node.threshold
    flip = np.zeros(channels, dtype=np.bool_) if node.flip is None else unpack(node.flip, channels)
    above = np.where(flip, np.float32(-1), np.float32(1))
    reached = graph.add("GreaterOrEqual", x.name, graph.per_channel("threshold", threshold))
    return graph.add("Where", reached, graph.per_channel("above", above), graph.per_channel("below", -above))


def _quantize(graph: OnnxGraph, node: Quantize, x: Value) -> str:
    """Scale and clamp first, which is exact where the operator's own division would not be, and bytes have 8 bits."""
    scaled = graph.add("Mul", x.name, graph.number("scale", node.scale))
    clamped = graph.add("Clip", scaled, graph.number("low", node.low), graph.number("high", node.high))
    zero = graph.constant("zero_point", np.array(-node.low, dtype=np.uint8))
    step = graph.number("step", 1)
    return graph.add("DequantizeLinear", graph.add("QuantizeLinear", clamped, step, zero), step, zero)


def _affine(graph: OnnxGraph, node: Affine, x: Value) -> str:
    scaled = graph.add("Mul", x.name, graph.per_channel("scale", node.scale))
    return graph.add("Add", scaled, graph.per_channel("shift", node.shift))


def _relu(graph: OnnxGraph, _: Relu, x: Value) -> str:
    return graph.add("Relu", x.name)


def _clamp(graph: OnnxGraph, node: Clamp, x: Value) -> str:
    return graph.add("Clip", x.name, graph.number("low", node.low), graph.number("high", node.high))


def _prelu(graph: OnnxGraph, node: PRelu, x: Value) -> str:
    return graph.add("PRelu", x.name, graph.per_channel("slope", node.slope))


def _max_pool(graph: OnnxGraph, node: MaxPool, x: Value) -> str:
    source, padding = x.name, node.padding
    if not _is_padding_within_kernel(node):
        source, padding = graph.pad(source, padding, -np.inf), NO_PADDING
    return graph.add("MaxPool", source, dilations=node.dilation, **_window(node, padding))


def _avg_pool(graph: OnnxGraph, node: AvgPool, x: Value) -> str:
    if node.dilation != (1, 1) or not _is_padding_within_kernel(node):
        return _avg_pool_by_conv(graph, node, x)
    return graph.add("AveragePool", x.name, count_include_pad=node.count_padding, **_window(node, node.padding))


def _avg_pool_by_conv(graph: OnnxGraph, node: AvgPool, x: Value) -> str:
    """Sum with a convolution, then divide: the operator for means has no dilation before opset 19."""
    channels = x.shape.channels
    ones = graph.constant("ones", np.ones((channels, 1, *node.kernel), dtype=np.float32))
    window = _window(node, node.padding)
    sums = graph.add("Conv", x.name, ones, group=channels, dilations=node.dilation, **window)
    return graph.add("Div", sums, graph.constant("counts", _counts(node, x.shape)))


def _counts(node: AvgPool, shape: Shape) -> NDArray[np.float32]:
    """Return what each window's sum is divided by: (height, width)."""
    positions = node.positions(shape)
    if node.count_padding:
        return np.full(positions, node.kernel[0] * node.kernel[1], dtype=np.float32)
    rows, columns = (
        _taps_inside(
            size, positions[axis], node.kernel[axis], node.stride[axis], node.padding[axis], node.dilation[axis]
        )
        for axis, size in enumerate((shape.height, shape.width))
    )
    return rows[:, None] * columns


def _taps_inside(size: int, positions: int, kernel: int, stride: int, pad: int, dilation: int) -> NDArray[np.float32]:
    """Count the taps of each position of a window that are no padding, along one axis."""
    taps = np.arange(positions)[:, None] * stride - pad + np.arange(kernel) * dilation
    counts: NDArray[np.float32] = np.sum((taps >= 0) & (taps < size), axis=1, dtype=np.float32)
    return counts


def _is_padding_within_kernel(node: Windowed) -> bool:
    """Say whether padding is narrower than the kernel on each side: onnxruntime refuses other pools."""
    return all(pad < side for pad, side in zip(node.padding, node.kernel * 2, strict=True))


def _window(node: Windowed, padding: Sides) -> dict[str, Any]:
    """Return what convolutions and pools are told alike; pools of means know no dilation."""
    return {"kernel_shape": node.kernel, "strides": node.stride, "pads": padding}


def _adaptive_avg_pool(graph: OnnxGraph, node: AdaptiveAvgPool, x: Value) -> str:
    return _parts(graph, node, x, "GlobalAveragePool", "AveragePool", "ReduceMean")


def _adaptive_max_pool(graph: OnnxGraph, node: AdaptiveMaxPool, x: Value) -> str:
    return _parts(graph, node, x, "GlobalMaxPool", "MaxPool", "ReduceMax")


def _parts(graph: OnnxGraph, node: AdaptivePool, x: Value, whole: str, pool: str, reduce: str) -> str:
    """Reduce each part of the map: at once if there is one, with a pool if all are equal, and else one by one."""
    (_, height, width, _), (rows, columns) = x.shape, node.size
    if node.size == (1, 1):
        return graph.add(whole, x.name)
    if height % rows == 0 and width % columns == 0:
        part = (height // rows, width // columns)
        return graph.add(pool, x.name, kernel_shape=part, strides=part)
    parts = _parts_of_axis(graph, x.name, 2, height, rows, reduce)
    return _parts_of_axis(graph, parts, 3, width, columns, reduce)


def _parts_of_axis(graph: OnnxGraph, x: str, axis: int, size: int, count: int, reduce: str) -> str:
    """Reduce `count` parts of one axis: parts are rectangles, so that the axes can take turns."""
    if count == size:
        return x
    parts = []
    for i in range(count):
        start, end = i * size // count, -(-(i + 1) * size // count)
        bounds = (graph.integers("start", start), graph.integers("end", end), graph.integers("axis", axis))
        parts.append(graph.add(reduce, graph.add("Slice", x, *bounds), axes=[axis], keepdims=1))
    return graph.add("Concat", *parts, axis=axis)


def _add(graph: OnnxGraph, _: Add, x: Value, y: Value) -> str:
    return graph.add("Add", x.name, y.name)


def _concat(graph: OnnxGraph, _: Concat, *inputs: Value) -> str:
    return graph.add("Concat", *(x.name for x in inputs), axis=1)


def _flatten(graph: OnnxGraph, _: Flatten, x: Value) -> str:
    count = x.shape.channels * x.shape.height * x.shape.width
    return graph.add("Reshape", x.name, graph.integers("shape", 0, count, 1, 1))


_WRITERS: dict[type[Node], Callable[..., str]] = {
    Conv: _conv,
    Sign: _sign,
    Quantize: _quantize,
    Affine: _affine,
    Relu: _relu,
    Clamp: _clamp,
    PRelu: _prelu,
    MaxPool: _max_pool,
    AvgPool: _avg_pool,
    AdaptiveAvgPool: _adaptive_avg_pool,
    AdaptiveMaxPool: _adaptive_max_pool,
    Add: _add,
    Concat: _concat,
    Flatten: _flatten,
}
"""What writes each kind of node: it gets the graph, the node and its inputs, and returns its value's name."""
