from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
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
    assert found["drawings"] == 4  # two of six drawings per class
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


def test_nothing_is_written_that_was_not_asked_for(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run.parent / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    main_quietly("evaluate", run)
    assert "add -o confusion.png" in capsys.readouterr().out
    assert not list(folder.iterdir())


def test_what_the_model_does_not_know_is_counted_and_named(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = run.parent / "set.parquet"
    main_quietly("evaluate", run, "--fold", 1)
    printed = " ".join(capsys.readouterr().out.split())
    assert "Tested 4 of 40 drawings; 18 classes are unknown to the model: apple, bicycle, boat" in printed
    assert "car (near 'cat')" in printed
    assert "and 6 more." in printed
    main_quietly("evaluate", run / "best.safetensors", "--data", data, "--fold", 1, "--json")
    left_out = json.loads(capsys.readouterr().out)["left_out"]
    assert (left_out["drawings"], left_out["of"], len(left_out["classes"])) == (36, 40, 18)


def test_names_match_regardless_of_spelling_and_by_the_vocabulary(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = run.parent / "names.safetensors"
    labels = ["CAT", "Suv", "T_Shirt"]  # a set's "car" is an "suv" only by a vocabulary that says so
    save_weights(build(**RECIPE.network_settings(3)), weights, labels, RECIPE.raster)
    words = run.parent / "words.toml"
    words.write_text("suv = ['car']")
    for vocabulary, known in (("none", {"CAT"}), ("everyday", {"CAT"}), (words, {"CAT", "Suv"})):
        main_quietly("evaluate", weights, "--data", run.parent / "set.parquet", "--vocabulary", vocabulary, "--json")
        assert set(json.loads(capsys.readouterr().out)["per_class"]) == known


def test_answers_can_be_limited_to_the_sets_classes(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = run.parent / "many.safetensors"
    save_weights(build(**RECIPE.network_settings(4)), weights, ["elf", "cat", "orc", "ent"], RECIPE.raster)
    main_quietly("evaluate", weights, "--data", run.parent / "set.parquet", "--only-set-classes", "--json")
    assert json.loads(capsys.readouterr().out)["top1"] == 1  # a cat is the only thing that both know


def test_unfinished_drawings_are_tested_and_drawn(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = run.parent / "unfinished.png"
    main_quietly("evaluate", run, "--unfinished", picture, "--json")
    found = json.loads(capsys.readouterr().out)
    assert [row["share"] for row in found["unfinished"]] == [0.25, 0.5, 0.75, 1]
    assert found["unfinished"][-1]["top1"] == found["top1"]
    assert picture.stat().st_size > 5_000
    main_quietly("evaluate", run, "--unfinished", picture)
    assert "strokes drawn" in capsys.readouterr().out


def test_a_folder_of_drawings_is_tested_as_it_is(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("cat", "sun"):
        (run.parent / "mine" / name).mkdir(parents=True)
        for number in range(2):
            strokes = [[[10 * number, 0], [50, 90]], [[50, 0], [10, 90]]]
            (run.parent / "mine" / name / f"{number}.json").write_text(json.dumps({"strokes": strokes}))
    before = sorted(path for path in run.parent.rglob("*"))
    main_quietly("evaluate", run / "best.safetensors", "--data", run.parent / "mine", "--json")
    assert json.loads(capsys.readouterr().out)["drawings"] == 4
    assert sorted(path for path in run.parent.rglob("*")) == before


def test_a_packed_model_is_tested_without_torch(run: Path) -> None:
    script = (
        "import sys; sys.modules['torch'] = None; from dabnet.cli import main; "
        f"main(['evaluate', 'default', '--data', {str(run.parent / 'set.parquet')!r}, '--json'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["drawings"] > 0


def test_what_cannot_be_tested_is_one_sentence(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    others = run.parent / "others.safetensors"
    settings = dataclasses.replace(RECIPE).network_settings(2)
    save_weights(build(**settings), others, ["dragon", "elf"], RECIPE.raster)
    for arguments, words in (
        ([run / "best.safetensors"], "give a prepared set, or a folder of drawings, with --data"),
        (["default"], "give a prepared set, or a folder of drawings, with --data"),
        ([run.parent / "nothing"], "is not there"),
        ([run, "--crops", 3], "crops must be 1 or 10"),
        ([run, "--fold", 8], "has no sketch of the network's classes in fold 8"),
        ([others, "--data", run.parent / "set.parquet"], "has no sketch of the network's classes"),
        ([run, "-o", "matrix.xyz"], "end its name in .png, .svg or .pdf"),
        ([run, "-o", run / "nowhere" / "matrix.png"], "there is no folder"),
        ([run, "--vocabulary", "klingon"], "there is no vocabulary 'klingon'"),
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
