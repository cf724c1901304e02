from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from dabnet.cli import main
from dabnet.networks.catalog import build
from dabnet.packed import find_model, read_model
from dabnet.sketches.prepare import prepare
from dabnet.sketches.sources import open_source
from dabnet.training.recipe import Recipe
from dabnet.training.run import begin_run, save_weights

RECIPE = Recipe(width=0.125, shortcuts="conv", size=32, classes=["cat", "sun"])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run's folder with a network that was never trained."""
    data = prepare(open_source("synthetic", limit=6), tmp_path / "set.parquet", workers=1).path
    begin_run(tmp_path / "run", RECIPE, data, fold=1)
    net = build(**RECIPE.network_settings(2))
    save_weights(net, tmp_path / "run" / "best.safetensors", ["cat", "sun"], RECIPE.raster)
    return tmp_path / "run"


@pytest.mark.parametrize("crops", [1, 10])
def test_a_run_is_tested_on_its_own_set_and_fold(run: Path, capsys: pytest.CaptureFixture[str], crops: int) -> None:
    picture = run.parent / "confusion.png"
    main_quietly("evaluate", run, "--crops", crops, "-o", picture, "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["drawings"] == 4  # two of six drawings a class
    assert set(found["per_class"]) == {"cat", "sun"}
    assert 0 <= found["top1"] <= found["top5"] == 1
    assert picture.stat().st_size > 5_000
    main_quietly("evaluate", run, "--crops", crops, "-o", picture)
    printed = " ".join(capsys.readouterr().out.split())
    assert f"4 sketches, {crops} view" in printed
    assert f"top-1 {found['top1']:.2%}" in printed


def test_a_weights_file_is_tested_on_any_set(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights, data = run / "best.safetensors", run.parent / "set.parquet"
    main_quietly("evaluate", weights, "--data", data, "-o", run.parent / "confusion.png", "--json")
    assert json.loads(capsys.readouterr().out)["drawings"] == 12


@pytest.mark.parametrize("crops", [1, 10])
def test_a_packed_model_is_tested_and_timed(run: Path, capsys: pytest.CaptureFixture[str], crops: int) -> None:
    packed, data, picture = run.parent / "m.safetensors", run.parent / "set.parquet", run.parent / "confusion.png"
    is_calibrated = crops == 1  # a temperature changes which class the mean of ten views makes likeliest
    main_quietly("export", run, "-o", packed, *(["--calibrate"] if is_calibrated else []))
    capsys.readouterr()
    main_quietly("evaluate", run, "--crops", crops, "-o", picture, "--json")
    trained = json.loads(capsys.readouterr().out)
    arguments = (packed, "--data", data, "--fold", 1, "--crops", crops, "--threads", 1, "-o", picture)
    main_quietly("evaluate", *arguments, "--json")
    found = json.loads(capsys.readouterr().out)
    for figure in ("drawings", "top1", "top5", "per_class"):
        assert found[figure] == trained[figure]
    assert (found["ece"] == pytest.approx(trained["ece"], rel=1e-3)) != is_calibrated
    assert found["bytes"] == packed.stat().st_size
    assert found["temperature"] == read_model(packed).temperature
    assert 0 < found["latency_ms"]["min"] <= found["latency_ms"]["median"]
    main_quietly("evaluate", *arguments)
    printed = " ".join(capsys.readouterr().out.split())
    assert f"{found['bytes']:,} bytes; one sketch on one thread takes" in printed
    assert f"calibration error {found['ece']:.1%}" in printed


def test_two_networks_are_compared_on_the_same_sketches(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = run.parent / "other.safetensors"
    net = build(**RECIPE.network_settings(3))
    save_weights(net, other, ["sun", "moon", "cat"], RECIPE.raster)  # more classes, in another order
    picture = run.parent / "confusion.png"
    main_quietly("evaluate", run, "--against", other, "-o", picture, "--json")
    found = json.loads(capsys.readouterr().out)
    main_quietly("evaluate", other, "--data", run.parent / "set.parquet", "--fold", 1, "-o", picture, "--json")
    alone = json.loads(capsys.readouterr().out)
    rival = found["against"]
    assert {name: rival[name] for name in ("drawings", "top1")} == {name: alone[name] for name in ("drawings", "top1")}
    assert rival["gap"] == pytest.approx(found["top1"] - rival["top1"])
    main_quietly("evaluate", run, "--against", run, "-o", picture)
    assert "Gap +0.00 points (standard error 0.00" in " ".join(capsys.readouterr().out.split())


def test_the_shipped_model_is_tested_by_its_name(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(run.parent)
    main_quietly("evaluate", "default", "--data", "set.parquet", "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["bytes"] == find_model("default").stat().st_size
    assert set(found["per_class"]) <= set(read_model("default").labels)


def test_what_cannot_be_tested_is_one_sentence(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    others = run.parent / "others.safetensors"
    settings = dataclasses.replace(RECIPE).network_settings(2)
    save_weights(build(**settings), others, ["dragon", "elf"], RECIPE.raster)
    for arguments, words in (
        ([run / "best.safetensors"], "give a prepared set with --data"),
        (["default"], "give a prepared set with --data"),
        ([run.parent / "nothing"], "is not there"),
        ([run, "--crops", 3], "crops must be 1 or 10"),
        ([run, "--fold", 8], "has no sketch of the network's classes in fold 8"),
        ([others, "--data", run.parent / "set.parquet"], "has no sketch of the network's classes"),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(["evaluate", *map(str, arguments)])
        errors = capsys.readouterr().err
        assert stopped.value.code == 2
        assert words in errors
        assert errors.count("\n") == 1


def main_quietly(*arguments: object) -> None:
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, arguments)))
    assert ended.value.code in (0, None)
