from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dabnet.cli import main
from dabnet.packed import read_model, to_bytes
from dabnet.packed.model import Model
from dabnet.runtime import Session

from .test_evaluate import RECIPE, main_quietly
from .test_evaluate import run as run


def test_a_run_is_exported_and_verified(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(run.parent)
    main_quietly("export", run)
    printed = capsys.readouterr().out
    size = Path("model.safetensors").stat().st_size
    assert f"model.safetensors: {size:,} bytes" in printed
    assert f"dabnet verify {run} model.safetensors" in printed
    session = Session("model.safetensors")
    assert session.labels == ["cat", "sun"]
    assert session.model.raster == {"size": 32, "margin": RECIPE.raster.margin, "pen": RECIPE.raster.pen}

    main_quietly("verify", run, "model.safetensors", "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["is_fine"]
    assert found["sketches"] == found["layer_sketches"] > 10
    main_quietly("verify", run, "model.safetensors", "--sketches", 5)
    printed = " ".join(capsys.readouterr().out.split())
    assert "From end to end, 5 sketches: the same class for 5 (100.00%)" in printed
    assert "All that differs is rounding" in printed

    main_quietly("summary", run, "--json")
    assert json.loads(capsys.readouterr().out)["bytes"] == size


def test_a_weights_file_is_verified_on_synthetic_sketches(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights, packed = run / "best.safetensors", run.parent / "m.safetensors"
    main_quietly("export", weights, "-o", packed, "--json")
    assert json.loads(capsys.readouterr().out)["bytes"] == packed.stat().st_size
    main_quietly("verify", weights, packed, "--sketches", 8, "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["sketches"] == 8
    assert found["torch_right"] is None


def test_a_file_with_other_weights_ends_with_exit_code_1(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = run.parent / "m.safetensors"
    main_quietly("export", run, "-o", packed)
    model = read_model(packed)
    nodes = list(model.nodes)
    first = nodes[0]
    object.__setattr__(first, "weight", first.weight * np.float32(1.5))  # type: ignore[attr-defined]
    packed.write_bytes(to_bytes(Model(model.input_size, tuple(nodes), model.labels, model.raster)))
    with pytest.raises(SystemExit) as stopped:
        main(["verify", str(run), str(packed), "--sketches", "5"])
    assert stopped.value.code == 1
    assert "larger than rounding" in capsys.readouterr().out


def test_onnx_is_written_on_request(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run.parent / "m.onnx"
    main_quietly("export", run, "--format", "onnx", "-o", path)
    assert "m.onnx" in capsys.readouterr().out
    assert path.stat().st_size > 10_000


def test_a_network_is_summed_up_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    main_quietly("summary", "resnet18", "--width", 0.125, "--size", 32, "--classes", 10, "--precision", "wbin")
    printed = capsys.readouterr().out
    assert "BinaryConv2d" in printed
    assert "times smaller" in printed


def test_bad_input_gets_one_sentence(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = run.parent / "other.safetensors"
    main_quietly("export", run, "-o", other)
    for arguments, words in (
        (["verify", run, run / "best.safetensors"], "dabnet export packs it"),
        (["verify", run, run.parent / "nothing"], "check the path"),
        (["verify", run, other, "--fold", 77], "has no sketch in fold 77"),
        (["export", run.parent / "nothing"], "is not there"),
        (["export", other], "is a packed model"),
        (["evaluate", other], "is a packed model"),
        (["export", run, "-o", run / "no" / "where"], "cannot write"),
        (["summary", "resnet19"], "Did you mean 'resnet18'?"),
    ):
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        assert stopped.value.code == 2
        error = capsys.readouterr().err
        assert words in error
        assert "Traceback" not in error
