from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import dabnet
from dabnet.cli import main
from dabnet.errors import InputError
from dabnet.exporting.lower import lower
from dabnet.exporting.quantize import quantize_activations
from dabnet.packed import read_model, to_bytes
from dabnet.packed.model import Model
from dabnet.packed.nodes import Quantize
from dabnet.runtime import Session
from dabnet.sketches.raster import show_batch
from dabnet.sketches.store import SketchSet
from dabnet.training.calibrate import fit_temperature
from dabnet.training.data import divide
from dabnet.training.run import open_run

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


def test_a_temperature_is_fitted_on_the_runs_held_back_sketches(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run.parent / "m.safetensors"
    main_quietly("export", run, "-o", path, "--calibrate", "--json")
    figures = json.loads(capsys.readouterr().out)
    model = read_model(path)
    assert figures["temperature"] == model.temperature != 1
    sketches = SketchSet(run.parent / "set.parquet")
    parts = divide(sketches, RECIPE, fold=1)
    assert figures["calibration_sketches"] == len(parts.validation)
    logits = Session(path).run(show_batch(sketches.read(parts.validation), RECIPE.raster))
    assert model.temperature == pytest.approx(fit_temperature(logits, parts.labels[parts.validation]), rel=1e-3)

    main_quietly("export", run, "-o", path, "--calibrate")
    assert f"Temperature {model.temperature:.4g}, fitted on the run's" in capsys.readouterr().out
    main_quietly("verify", run, path, "--sketches", 3)


def test_what_cannot_be_calibrated_is_one_sentence(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refusal(*arguments: object) -> str:
        with pytest.raises(SystemExit) as stopped:
            main(["export", *map(str, arguments), "--calibrate", "-o", str(run.parent / "m.safetensors")])
        assert stopped.value.code == 2
        errors = capsys.readouterr().err
        assert errors.count("\n") == 1
        assert not (run.parent / "m.safetensors").exists()
        return errors

    assert "is not a run's folder: give one, or leave out --calibrate" in refusal(run / "best.safetensors")
    assert "cannot hold a temperature" in refusal(run, "--format", "onnx")
    (run.parent / "set.parquet").unlink()
    assert "are not there any more: put them back, or leave out --calibrate" in refusal(run)


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
        (["export", "default"], "is a packed model"),
        (["export", run, "-o", run / "no" / "where"], "cannot write"),
        (["summary", "resnet19"], "Did you mean 'resnet18'?"),
    ):
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        assert stopped.value.code == 2
        error = capsys.readouterr().err
        assert words in error
        assert "Traceback" not in error


def test_a_network_of_real_activations_gets_whole_numbers_that_suit_its_sketches(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(0)
    binary = dabnet.build("resnet18", 2, weights="dab", activations="real", width=0.125, input_size=32)
    real = lower(binary.eval(), (1, 32, 32)).model
    sketches = SketchSet(open_run(run).data)
    x = show_batch(sketches.read(range(20)), RECIPE.raster)
    expected = Session(real).run(x)
    for activations, share in (("int8", 0.1), ("int4", 0.5)):
        rounded = quantize_activations(real, activations, x)  # type: ignore[arg-type]  # of the loop
        assert sum(isinstance(node, Quantize) for node in rounded.nodes) > 10
        assert np.abs(Session(rounded).run(x) - expected).max() < share * np.abs(expected).max()
        assert np.array_equal(Session(rounded).run(x), Session(to_bytes(rounded)).run(x))
    with pytest.raises(InputError, match="'int8' has nothing to round"):
        quantize_activations(rounded, "int8", x)
    for options in (["--activations", "int8"], ["--data", str(open_run(run).data)]):
        with pytest.raises(SystemExit) as ended:
            main(["export", str(run), *options])
        assert ended.value.code == 2
        assert "--activations and --data go together" in capsys.readouterr().err
