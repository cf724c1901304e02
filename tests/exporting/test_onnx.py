from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dabnet.errors import InputError
from dabnet.exporting.onnx_file import to_onnx
from dabnet.packed.bits import pack
from dabnet.packed.model import Model
from dabnet.packed.nodes import (
    OPS,
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
)
from dabnet.runtime import reference
from tests.runtime.models import convolutions, halves, pools, signs

Floats = NDArray[np.float32]
rng = np.random.RandomState(7)
quick = settings(max_examples=40)


def numbers(*shape: int) -> Floats:
    """Quarters from -2 to 2: their products and sums are exact, in any order."""
    return (rng.randint(-8, 9, shape) / 4).astype(np.float32)


def coins(*shape: int) -> NDArray[np.uint8]:
    return pack(rng.randint(0, 2, shape).astype(np.bool_))


def one_bit(filters: int, channels: int, *, kernel: tuple[int, int] = (1, 1), offset: bool = True, **more: Any) -> Conv:
    """Make a convolution with one-bit weights; `channels` are those of a group."""
    return Conv(
        filters=filters,
        kernel=kernel,
        bits=coins(filters, kernel[0] * kernel[1] * channels),
        scale=numbers(filters),
        offset=numbers(filters) if offset else None,
        **{"inputs": (0,), **more},
    )


def start(data: bytes) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def expected(model: Model, x: Floats) -> Floats:
    last = reference.run(model, x)[-1]
    if last.dtype == np.bool_:
        last = np.where(last, np.float32(1), np.float32(-1))
    return last.astype(np.float32).transpose(0, 3, 1, 2).reshape(len(x), -1)


def check(model: Model, *, tolerance: float = 0) -> None:
    """Compare onnxruntime's answers with the reference's, for two sketches."""
    x = numbers(2, *model.input_size)
    (logits,) = start(to_onnx(model)).run(["logits"], {"sketches": x})
    assert logits.dtype == np.float32
    assert logits.shape == (2, model.answers)
    np.testing.assert_allclose(logits, expected(model, x), rtol=tolerance, atol=tolerance)


def alone(*nodes: Node, size: tuple[int, int, int] = (3, 5, 6)) -> Model:
    return Model(size, nodes)


INFINITE = np.array([np.inf, -np.inf, 0.25], dtype=np.float32)

EXACT = {
    "conv": alone(Conv(inputs=(0,), filters=4, kernel=(2, 3), weight=numbers(4, 2, 3, 3), bias=numbers(4))),
    "conv with groups": alone(
        Conv(inputs=(0,), filters=6, groups=3, kernel=(3, 2), weight=numbers(6, 3, 2, 1), stride=(2, 1))
    ),
    "conv with options": alone(
        Conv(
            inputs=(0,),
            filters=2,
            kernel=(2, 3),
            weight=numbers(2, 2, 3, 3),
            stride=(1, 2),
            padding=(3, 0, 1, 2),
            dilation=(3, 2),
        )
    ),
    "one-bit conv of numbers": alone(one_bit(5, 3, kernel=(3, 3), padding=(1, 1, 1, 1), bias=numbers(5))),
    "one-bit conv without offset": alone(one_bit(5, 3, kernel=(3, 3), offset=False)),
    "signs padded with 0": alone(
        Sign(inputs=(0,)), one_bit(4, 3, kernel=(3, 3), inputs=(1,), padding=(0, 1, 2, 3), stride=(2, 2))
    ),
    "signs padded with 1": alone(
        Sign(inputs=(0,)),
        one_bit(4, 3, kernel=(3, 3), inputs=(1,), padding=(0, 1, 2, 3), dilation=(2, 1), pad_value=1, bias=numbers(4)),
    ),
    "signs that could be padded with 1": alone(Sign(inputs=(0,)), one_bit(4, 3, inputs=(1,), pad_value=1)),
    "sign": alone(Sign(inputs=(0,))),
    "sign with thresholds": alone(Sign(inputs=(0,), threshold=numbers(3))),
    "sign with flips": alone(Sign(inputs=(0,), flip=pack(np.array([True, False, True])))),
    "sign at infinity": alone(Sign(inputs=(0,), threshold=INFINITE)),
    "sign at infinity with flips": alone(Sign(inputs=(0,), threshold=INFINITE, flip=pack(np.ones(3, dtype=np.bool_)))),
    "quantize to 4 bits": alone(Quantize(inputs=(0,), scale=2.0, low=0, high=15)),
    "quantize to 8 bits": alone(Quantize(inputs=(0,), scale=100.0, low=-150, high=105)),
    "whole numbers": alone(
        Quantize(inputs=(0,), scale=2.0, low=-2, high=3),
        one_bit(4, 3, kernel=(3, 3), inputs=(1,), padding=(0, 1, 2, 3)),
    ),
    "affine": alone(Affine(inputs=(0,), scale=numbers(3), shift=numbers(3))),
    "relu": alone(Relu(inputs=(0,))),
    "clamp": alone(Clamp(inputs=(0,), low=-0.5, high=1.25)),
    "prelu": alone(PRelu(inputs=(0,), slope=numbers(3))),
    "max pool": alone(MaxPool(inputs=(0,), kernel=(3, 2), stride=(2, 2), padding=(1, 0, 2, 1))),
    "max pool with wide padding": alone(MaxPool(inputs=(0,), kernel=(2, 3), dilation=(3, 1), padding=(2, 1, 2, 1))),
    "max pool with padding out of reach": alone(
        MaxPool(inputs=(0,), kernel=(1, 1), stride=(9, 9), padding=(0, 0, 3, 2))
    ),
    "avg pool": alone(AvgPool(inputs=(0,), kernel=(2, 2), stride=(2, 2))),
    "avg pool of all taps": alone(AvgPool(inputs=(0,), kernel=(2, 4), padding=(1, 2, 0, 3), count_padding=1)),
    "avg pool with padding out of reach": alone(
        AvgPool(inputs=(0,), kernel=(1, 2), stride=(9, 9), padding=(0, 0, 3, 2), count_padding=1)
    ),
    "avg pool with dilation": alone(AvgPool(inputs=(0,), kernel=(2, 2), dilation=(2, 3), padding=(1, 2, 2, 0))),
    "adaptive max pool of everything": alone(AdaptiveMaxPool(inputs=(0,), size=(1, 1))),
    "adaptive max pool of equal parts": alone(AdaptiveMaxPool(inputs=(0,), size=(5, 3))),
    "adaptive max pool of unequal parts": alone(AdaptiveMaxPool(inputs=(0,), size=(3, 4))),
    "adaptive max pool of parts of one axis": alone(AdaptiveMaxPool(inputs=(0,), size=(5, 4))),
    "adaptive avg pool to a larger map": alone(AdaptiveAvgPool(inputs=(0,), size=(7, 12))),
    "add": alone(Relu(inputs=(0,)), Add(inputs=(0, 1))),
    "add a value to itself": alone(Add(inputs=(0, 0))),
    "concat": alone(Relu(inputs=(0,)), Concat(inputs=(1, 0, 1))),
    "flatten": alone(Flatten(inputs=(0,)), Conv(inputs=(1,), filters=2, weight=numbers(2, 1, 1, 90))),
}

ROUNDED = {
    "avg pool of what is no padding": alone(AvgPool(inputs=(0,), kernel=(3, 3), padding=(0, 1, 2, 1), stride=(2, 1))),
    "adaptive avg pool of everything": alone(AdaptiveAvgPool(inputs=(0,), size=(1, 1))),
    "adaptive avg pool of equal parts": alone(AdaptiveAvgPool(inputs=(0,), size=(1, 2))),
    "adaptive avg pool of unequal parts": alone(AdaptiveAvgPool(inputs=(0,), size=(2, 4))),
}


@pytest.mark.parametrize("name", EXACT)
def test_each_step_gives_the_very_same_numbers(name: str) -> None:
    check(EXACT[name])


@pytest.mark.parametrize("name", ROUNDED)
def test_means_are_the_same_but_for_rounding(name: str) -> None:
    check(ROUNDED[name], tolerance=1e-6)


def test_the_models_above_have_every_operation() -> None:
    models = [*EXACT.values(), *ROUNDED.values()]
    assert {type(node) for model in models for node in model.nodes} == set(OPS.values())


SHAPES = st.builds(Shape, st.integers(1, 6), st.integers(1, 8), st.integers(1, 8))


@quick
@given(st.data(), SHAPES)
def test_any_convolution_of_real_weights(data: st.DataObject, shape: Shape) -> None:
    conv = data.draw(convolutions(0, shape, one_bit=False, numbers=halves))
    check(Model(shape[:3], (conv,)), tolerance=0 if conv.int8 is None else 1e-5)


@quick
@given(st.data(), SHAPES, st.booleans())
def test_any_convolution_of_one_bit(data: st.DataObject, shape: Shape, of_signs: bool) -> None:
    nodes: list[Node] = [data.draw(signs(0, shape))] if of_signs else []
    nodes.append(
        data.draw(
            convolutions(len(nodes), shape._replace(element="bit" if of_signs else "f32"), one_bit=True, numbers=halves)
        )
    )
    check(Model(shape[:3], tuple(nodes)))


@quick
@given(st.data(), SHAPES)
def test_any_pool(data: st.DataObject, shape: Shape) -> None:
    pool = data.draw(pools(0, shape))
    check(Model(shape[:3], (pool,)), tolerance=1e-6 if isinstance(pool, AvgPool | AdaptiveAvgPool) else 0)


def network() -> Model:
    """Make a small network with a shortcut, a fork, names that repeat, and a value that nobody uses."""
    rng.seed(7)
    nodes = (
        Conv(inputs=(0,), name="stem", filters=8, kernel=(3, 3), weight=numbers(8, 3, 3, 1), padding=(1, 1, 1, 1)),
        MaxPool(inputs=(1,), kernel=(3, 3), stride=(2, 2), padding=(1, 1, 1, 1)),
        Sign(inputs=(2,), name="block", threshold=numbers(8), flip=coins(8)),
        one_bit(8, 8, name="block", inputs=(3,), kernel=(3, 3), padding=(1, 1, 1, 1), pad_value=1),
        Affine(inputs=(4,), name="block", scale=numbers(8), shift=numbers(8)),
        Add(inputs=(5, 2)),
        PRelu(inputs=(6,), slope=numbers(8)),
        one_bit(4, 8, inputs=(7,)),
        Concat(inputs=(7, 8, 2)),
        Clamp(inputs=(9,), low=-3, high=3),
        AdaptiveMaxPool(inputs=(10,), size=(2, 3)),
        Relu(inputs=(1,), name="nobody's"),
        Flatten(inputs=(11,)),
        Conv(inputs=(13,), filters=5, weight=numbers(5, 1, 1, 120), bias=numbers(5)),
    )
    return Model((1, 9, 9), nodes, ("cat", "dog", "château", "日本", "a b"), {"size": 9, "margin": 1.0, "pen": 0.5})


def test_a_whole_network_takes_any_number_of_sketches() -> None:
    model = network()
    session = start(to_onnx(model))
    (taken,), (given_back,) = session.get_inputs(), session.get_outputs()
    assert (taken.name, taken.shape, taken.type) == ("sketches", ["N", 1, 9, 9], "tensor(float)")
    assert (given_back.name, given_back.shape, given_back.type) == ("logits", ["N", 5], "tensor(float)")
    for count in (1, 2, 7):
        x = numbers(count, 1, 9, 9)
        np.testing.assert_array_equal(session.run(["logits"], {"sketches": x})[0], expected(model, x))


def test_every_value_of_a_network_is_the_same() -> None:
    model = network()
    for through in range(1, len(model.nodes) + 1):
        check(model.part(through))


@pytest.mark.parametrize("model", [network(), *EXACT.values(), *ROUNDED.values()])
def test_the_file_needs_standard_operators_only(model: Model) -> None:
    file = onnx.load_from_string(to_onnx(model))
    assert [(item.domain, item.version) for item in file.opset_import] == [("", 17)]
    assert {node.domain for node in file.graph.node} == {""}
    assert file.ir_version <= 10
    assert not file.functions


def test_names_are_unique_and_tell_the_layer() -> None:
    graph = onnx.load_from_string(to_onnx(network())).graph
    names = [name for node in graph.node for name in node.output] + [item.name for item in graph.initializer]
    assert len(set(names)) == len(names)
    assert {"0.stem/Conv", "0.stem/weight", "3.block/Conv", "5.add/Add"} <= set(names)


def test_constants_are_raw_bytes() -> None:
    constants = onnx.load_from_string(to_onnx(network())).graph.initializer
    assert all(item.HasField("raw_data") and not item.float_data for item in constants)


def test_labels_and_raster_are_in_the_metadata() -> None:
    model = network()
    found = start(to_onnx(model)).get_modelmeta().custom_metadata_map
    assert {key: json.loads(text) for key, text in found.items()} == {
        "labels": list(model.labels),
        "raster": model.raster,
    }
    assert not onnx.load_from_string(to_onnx(model.part(3))).metadata_props


def test_the_same_model_gives_the_same_bytes() -> None:
    model = network()
    assert to_onnx(model) == to_onnx(model)


def test_a_model_too_large_for_onnx_gets_its_sentence() -> None:
    side = 1 << 15
    zeros = np.zeros(side, dtype=np.float32)
    conv = Conv(inputs=(0,), filters=side, bits=np.zeros((side, side // 8), dtype=np.uint8), scale=zeros)
    with pytest.raises(InputError, match=r"take 4,294,967,296 bytes as real numbers"):
        to_onnx(Model((side, 1, 1), (conv,)))
