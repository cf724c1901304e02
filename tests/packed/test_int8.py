"""Real weights in 8 bits: what they stand for, what they cost, and that everything that reads a file knows them."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save

import dabnet
from dabnet.errors import InputError, ModelFormatError
from dabnet.exporting.verify import verify
from dabnet.networks.packed import PackedNetwork
from dabnet.packed import Model, read_model, to_bytes
from dabnet.packed.int8 import round_filters, store_real_weights
from dabnet.packed.nodes import Conv, Relu
from dabnet.runtime import Session, reference

from ..runtime.models import models, sketches

SETTINGS: dict[str, Any] = {"classes": 10, "precision": "fbin", "width": 0.25, "input_size": 32}
SIZE = (1, 32, 32)


def version(data: bytes) -> int:
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return int(json.loads(header["__metadata__"]["dabnet"])["version"])


@given(
    seed=st.integers(0, 2**32), exponent=st.integers(-44, 37), shape=st.sampled_from([(1, 1), (3, 50), (7, 2, 3, 4)])
)
@settings(max_examples=100)
def test_a_weight_is_rounded_by_at_most_half_a_step(seed: int, exponent: int, shape: tuple[int, ...]) -> None:
    weight = (np.random.default_rng(seed).standard_normal(shape) * 10.0**exponent).astype(np.float32)
    weight[np.random.default_rng(seed).random(shape) < 0.3] = 0
    int8, scale = round_filters(weight)
    step = scale.reshape(-1, *[1] * (len(shape) - 1)).astype(np.float64)
    assert np.isfinite(128 * scale).all()
    assert (scale > 0).all()
    assert (np.abs(int8 * step - weight) <= 0.5001 * step).all()


@given(model=models(), seed=st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_a_model_answers_as_with_the_weights_that_its_8_bits_stand_for(model: Model, seed: int) -> None:
    rounded = store_real_weights(model, "int8")
    plain = Model(model.input_size, tuple(_as_float32(node) for node in rounded.nodes))
    x = sketches(model, 2, seed)
    np.testing.assert_array_equal(Session(rounded).run(x), Session(plain).run(x))
    np.testing.assert_array_equal(reference.answers(rounded, x), reference.answers(plain, x))


def _as_float32(node: Any) -> Any:
    if not isinstance(node, Conv) or node.int8 is None:
        return node
    values = vars(node) | {"weight": node.real_weight(), "int8": None, "scale": None}
    return Conv(**values)


def test_only_models_that_have_some_are_version_2() -> None:
    net = dabnet.build("resnet18", **SETTINGS).eval()
    model = _export(net)
    assert version(to_bytes(model)) == 1
    rounded = store_real_weights(model, "int8")
    assert version(to_bytes(rounded)) == 2
    assert to_bytes(read_model(to_bytes(rounded))) == to_bytes(rounded)
    assert to_bytes(store_real_weights(model, "float32")) == to_bytes(model)


def _export(net: Any, **options: Any) -> Model:
    with TemporaryDirectory() as folder:
        return dabnet.export(net, Path(folder) / "m.safetensors", SIZE, **options)


def test_a_quarter_of_the_real_weights_bytes_is_left() -> None:
    net = dabnet.build("resnet18", **SETTINGS).eval()
    plain, rounded = _export(net), _export(net, real_weights="int8")
    real = sum(node.weight.nbytes for node in plain.nodes if isinstance(node, Conv) and node.weight is not None)
    saved = len(to_bytes(plain)) - len(to_bytes(rounded))
    assert 0.6 * real < saved < 0.75 * real
    assert dabnet.summary(net, SIZE, real_weights="int8").bytes == len(to_bytes(rounded))
    with pytest.raises(InputError, match="'int4' is not a way to store real weights"):
        _export(net, real_weights="int4")


def test_torch_onnx_and_verify_follow(tmp_path: Path) -> None:
    net = dabnet.build("sketch_a_net", classes=10, precision="wbin", width=0.1, input_size=96).eval()
    size = (1, 96, 96)
    model = dabnet.export(net, tmp_path / "m.safetensors", size, real_weights="int8")
    x = np.random.default_rng(0).random((4, *size), dtype=np.float32)
    expected = Session(tmp_path / "m.safetensors").run(x)
    with torch.inference_mode():
        found = PackedNetwork(model)(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    verification = verify(net, model, [x])
    assert verification.is_fine
    assert verification.has_int8
    assert verification.logits_error > 1e-5  # 8 bits are not 32
    spoilt = list(model.nodes)
    at = next(i for i, node in enumerate(spoilt) if isinstance(node, Conv) and node.int8 is not None)
    conv = spoilt[at]
    assert isinstance(conv, Conv)
    assert conv.int8 is not None
    spoilt[at] = Conv(**(vars(conv) | {"int8": np.roll(conv.int8, 1, axis=1)}))
    assert not verify(net, Model(size, tuple(spoilt)), [x]).is_fine


def test_onnx_has_the_weights_that_the_8_bits_stand_for() -> None:
    onnx = pytest.importorskip("onnx")
    from dabnet.exporting.onnx_file import to_onnx

    rng = np.random.default_rng(0)
    int8, scale = round_filters(rng.standard_normal((3, 2, 2, 1)).astype(np.float32))
    model = Model((1, 4, 4), (Conv(inputs=(0,), filters=3, kernel=(2, 2), int8=int8, scale=scale), Relu(inputs=(1,))))
    graph = onnx.load_from_string(to_onnx(model)).graph
    weights = [onnx.numpy_helper.to_array(each) for each in graph.initializer if each.dims == [3, 1, 2, 2]]
    np.testing.assert_array_equal(weights[0], (int8 * scale[:, None, None, None]).transpose(0, 3, 1, 2))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"version": 1}, "weights of 8 bits need version 2 of the format"),
        ({"0.scale": None}, "it needs either 'weight', or 'bits' and 'scale'"),
        ({"0.weight": np.ones((2, 1, 1, 1), np.float32)}, "it needs either 'weight', or 'bits' and 'scale'"),
        ({"0.middle": np.ones(2, np.float32)}, "weights of 8 bits take real numbers, and have no 'middle'"),
        ({"0.int8": np.ones((2, 1, 1, 1), np.uint8)}, r"'int8' is uint8 \(2, 1, 1, 1\), and has to be int8"),
        (
            {"0.int8": np.ones((2, 1, 1, 2), np.int8)},
            r"is int8 \(2, 1, 1, 2\), and has to be int8 \(2, 1, 1, 1\)",
        ),
        ({"0.scale": np.full(2, 3e38, np.float32)}, "'scale' makes weights that are not finite"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], sentence: str) -> None:
    conv = Conv(inputs=(0,), filters=2, int8=np.ones((2, 1, 1, 1), np.int8), scale=np.ones(2, np.float32))
    data = to_bytes(Model((1, 3, 3), (conv,)))
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    about = json.loads(header["__metadata__"]["dabnet"]) | {k: v for k, v in change.items() if k == "version"}
    tensors = load(data) | {name: array for name, array in change.items() if name != "version"}
    kept = {name: array for name, array in tensors.items() if array is not None}
    with pytest.raises(ModelFormatError, match=sentence):
        Session(save(kept, {"dabnet": json.dumps(about)}))
