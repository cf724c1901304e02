from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from dabnet.comparing.engines import ENGINES, check_engines
from dabnet.comparing.fresh import fresh_model
from dabnet.comparing.measure import Worker, start_engines, take_turns
from dabnet.comparing.sketches import draw_sketches
from dabnet.comparing.twin import real_twin
from dabnet.errors import InputError, MissingExtraError, UnsupportedError
from dabnet.packed.model import Model
from dabnet.packed.nodes import Conv, Quantize, Sign
from dabnet.runtime import Session, reference
from tests.runtime.models import models


@pytest.fixture(scope="module")
def model() -> Model:
    return fresh_model("resnet18", 10, precision="fbin", method="xnor", width=0.125, input_size=32)


def run_engine(name: str, model: Model, folder: Path, x: NDArray[np.float32]) -> NDArray[np.float32]:
    engine = ENGINES[name]
    return engine.open(engine.write(model, folder), 1)(x)


def test_every_float32_engine_gives_the_twins_answers(model: Model, tmp_path: Path) -> None:
    for count in (1, 3):
        x = draw_sketches(count, model.input_size)
        expected = reference.answers(real_twin(model), x)
        for name in ("torch", "onnxruntime", "openvino"):
            np.testing.assert_allclose(run_engine(name, model, tmp_path, x), expected, rtol=1e-4, atol=1e-4)


def test_int8_engines_answer_nearly_as_the_twin(model: Model, tmp_path: Path) -> None:
    x = draw_sketches(8, model.input_size)
    expected = reference.answers(real_twin(model), x)
    for name in ("onnxruntime-int8", "openvino-int8"):
        found = run_engine(name, model, tmp_path, x)
        assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.98
        assert np.abs(found - expected).max() > 1e-4  # or it would not be 8 bits
    assert (tmp_path / "twin-int8.onnx").stat().st_size < 0.4 * (tmp_path / "twin.onnx").stat().st_size


@pytest.mark.parametrize(
    ("network", "more"),
    [("resnet18", {}), ("resnet18", {"shortcuts": "conv"}), ("googlenet", {}), ("sketch_a_net", {"input_size": 96})],
)
def test_openvinos_binary_graph_gives_our_answers_without_a_second_sum(
    network: str, more: dict[str, object], tmp_path: Path
) -> None:
    settings = {"precision": "fbin", "method": "xnor", "width": 0.125, "input_size": 48, **more}
    model = fresh_model(network, 10, **settings)
    x = draw_sketches(2, model.input_size, seed=3)
    np.testing.assert_allclose(run_engine("openvino-binary", model, tmp_path, x), Session(model).run(x), atol=1e-4)


def test_a_binary_graph_needs_signs(tmp_path: Path) -> None:
    model = fresh_model("resnet18", 10, precision="wbin", width=0.125, input_size=32)
    with pytest.raises(UnsupportedError, match="openvino-binary is for networks with binary activations"):
        ENGINES["openvino-binary"].write(model, tmp_path)


@given(model=models())
@settings(max_examples=60, deadline=None)
def test_a_twin_has_the_same_layers_in_real_numbers(model: Model) -> None:
    twin = real_twin(model)
    assert [shape[:3] for shape in twin.shapes] == [shape[:3] for shape in model.shapes]
    for node, real in zip(model.nodes, twin.nodes, strict=True):
        assert not isinstance(real, Sign | Quantize)
        assert not isinstance(real, Conv) or real.bits is None
        if not isinstance(node, Sign | Quantize | Conv):
            assert real is node


def test_a_fresh_network_has_signs_of_both_kinds_everywhere(model: Model) -> None:
    values = reference.run(model, draw_sketches(4, model.input_size))
    for shape, value in zip(model.shapes, values, strict=True):
        assert not shape.is_signs or 0.05 < value.mean() < 0.95


def test_unknown_and_missing_engines_have_their_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"'openvin' is not a known engine.*Did you mean 'openvino'\?"):
        check_engines(["torch", "openvin"])
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match=r"needs onnxruntime, .* pip install 'dabnet\[bench\]'"):
        check_engines(["onnxruntime-int8"])


def test_engines_take_turns_in_processes_of_their_own(model: Model) -> None:
    with start_engines(model, ["dabnet", "onnxruntime"], sketches=2) as ready:
        seconds = take_turns(ready, batch=2, turns=2, runs=3)
        for name in ready:
            assert len(seconds[name]) == 6
            assert min(seconds[name]) > 0
            memory = ready[name].worker.memory()
            assert 0 < memory.growth < memory.peak
        ours = np.array(ready["dabnet"].worker.logits(2), dtype=np.float32)
    np.testing.assert_array_equal(ours, Session(model).run(draw_sketches(2, model.input_size)))


def test_an_engine_that_fails_says_why_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"nothing")
    np.save(tmp_path / "x.npy", np.zeros((1, 1, 8, 8), dtype=np.float32))
    with pytest.raises(InputError, match=r"onnxruntime cannot run this model \(.+\): leave it out\."):
        Worker("onnxruntime", tmp_path / "bad.onnx", tmp_path / "x.npy")
