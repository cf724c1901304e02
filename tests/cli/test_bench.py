from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from dabnet.cli import main
from dabnet.runtime import Session

from .test_evaluate import main_quietly
from .test_evaluate import run as run

TINY = ("--width", 0.125, "--size", 32, "--classes", 10, "--runs", 5)


@pytest.fixture
def layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps with known times."""

    def layer_times(session: Session, x: NDArray[np.float32], repeats: int) -> list[tuple[str, float]]:
        assert x.shape == (1, *session.input_size)
        assert repeats == 5
        return [("real conv 7x7", 0.003), ("one-bit conv 3x3", 0.001)]

    monkeypatch.setattr(Session, "layer_times", layer_times, raising=False)


def test_json_has_every_figure_and_the_chart_is_drawn(
    layers: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chart = tmp_path / "bars.png"
    engines = "torch,onnxruntime,openvino"
    main_quietly("bench", "resnet18", "--against", engines, *TINY, "--batches", "1,4", "--chart", chart, "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["input_size"] == [1, 32, 32]
    assert (found["threads"], found["runs"], found["chart"]) == (1, 5, str(chart))
    assert 0.02 < found["ink"] < 0.3
    assert [engine["name"] for engine in found["engines"]] == ["dabnet", *engines.split(",")]
    for engine in found["engines"]:
        times = engine["latency_ms"]
        assert 0 < times["min"] <= times["median"] <= times["p99"]
        assert engine["ratio"] == pytest.approx(times["min"] / found["engines"][0]["latency_ms"]["min"])
        assert set(engine["sketches_per_second"]) == {"1", "4"}
        assert 0 < engine["memory"]["growth"] < engine["memory"]["peak"]
        assert engine["version"]
    ours, *others = (engine["bytes"] for engine in found["engines"])
    assert all(size > 5 * ours for size in others)
    assert found["layers"] == [{"step": "real conv 7x7", "ms": 3.0}, {"step": "one-bit conv 3x3", "ms": 1.0}]
    assert chart.stat().st_size > 10_000


def test_a_packed_file_and_its_run_are_compared(layers: None, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = run.parent / "m.safetensors"
    main_quietly("export", run, "-o", packed)
    for source in (packed, run, run / "best.safetensors"):
        capsys.readouterr()
        main_quietly("bench", source, "--against", "onnxruntime", "--batches", "2", "--runs", 5)
        printed = " ".join(capsys.readouterr().out.split())
        assert "milliseconds of one sketch of 32x32, 1 thread" in printed
        for words in ("float32 twin", "packed model", "batch 2", "of the pixels inked", "one-bit conv 3x3", "75.0%"):
            assert words in printed
        assert "…" not in printed.replace(str(source), "")
        assert f"{packed.stat().st_size / 1e6:.2f}" in printed


def test_bad_input_gets_one_sentence(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run.parent / "text").write_text("nothing")
    for arguments, words in (
        (["resnet19"], "'resnet19' is neither a file nor a network's name. Did you mean 'resnet18'?"),
        (["resnet18", "--against", "onnxruntim"], "Did you mean 'onnxruntime'?"),
        (["resnet18", "--batches", "1,two"], "--batches takes numbers"),
        (["resnet18", "--batches", "0"], "--batches takes numbers"),
        (["resnet18", "--precision", "binary", "--size", 32], "'binary' is not a precision"),
        ([run.parent / "text"], "does not hold a network of dabnet's"),
        (["resnet18", *TINY, "--precision", "wbin", "--against", "openvino-binary"], "binary activations (fbin)"),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(["bench", *map(str, arguments)])
        assert stopped.value.code == 2
        error = capsys.readouterr().err
        assert words in error
        assert "Traceback" not in error


def test_a_missing_library_is_named_with_its_extra(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(SystemExit) as stopped:
        main(["bench", "resnet18", "--against", "openvino"])
    assert stopped.value.code == 2
    assert capsys.readouterr().err == (
        "dabnet: this needs openvino, which is not installed: pip install 'dabnet[bench]'.\n"
    )


def test_a_packed_model_is_timed_without_torch_beside_the_engines_that_are_installed() -> None:
    script = (
        "import sys; sys.modules['torch'] = sys.modules['openvino'] = None; from dabnet.cli import main; "
        "main(['bench', 'default', '--runs', '5', '--batches', '1', '--json'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert [engine["name"] for engine in json.loads(done.stdout)["engines"]] == ["dabnet", "onnxruntime"]
