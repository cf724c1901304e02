from __future__ import annotations

import json
from pathlib import Path

import pytest

from dabnet.cli import main
from dabnet.cli.paper import find_commands
from dabnet.errors import InputError

ROOT = Path(__file__).parents[2]
RESULTS = ("--results", ROOT / "docs" / "results")


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["paper", *map(str, arguments)])
    return int(ended.value.code or 0)


def test_outside_of_a_clone_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"needs a clone of the repository, .*: run make in one"):
        find_commands(tmp_path)


def test_theorem1_takes_its_layers_as_a_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("theorem1", "--n", 6, "--layers", 1, 2, 3, "-o", tmp_path) == 0
    printed = capsys.readouterr().out
    for words in ("64", "20", "22", "8.0000", "3 x 2 x 1", "theorem1.png"):
        assert words in printed
    found = json.loads((tmp_path / "theorem1.json").read_text())
    assert found["command"] == "dabnet paper theorem1 --n 6 --layers 1 2 3"
    assert list(found["networks"]) == ["1", "2", "3"]


def test_tables_are_shown_from_the_published_results_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for table in ("table2", "table3"):
        options = ("--runs", tmp_path / "none", "-o", tmp_path)
        assert run(table, *RESULTS, *options, "--json") == 0
        found = json.loads(capsys.readouterr().out)
        assert found["scale"] == "small"
        assert sorted(path.name for path in tmp_path.glob(f"{table}.*")) == [f"{table}.json", f"{table}.md"]
    assert run("table2", "--scale", "full", *RESULTS, "--runs", tmp_path / "none", "-o", tmp_path) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "To train them: dabnet paper table2 --scale full --data tuberlin.parquet" in printed


def test_split_error_shows_dab_to_be_least(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("split-error", *RESULTS, "-o", tmp_path, "--json") == 0
    assert json.loads(capsys.readouterr().out)["dab_is_always_least"] is True


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["split-error", "--results", "nowhere"], "run this in a clone"),
        (["figure", "k-time", "--results", "nowhere"], "run this in a clone"),
        (["figure", "alpha-beta", "--pair", "both"], "choose one of fbin, wbin, ours"),
        (["figure", "responses", "--sketch", "1000", *RESULTS], "choose another with --sketch"),
        (["table2", "--recipes", "nowhere"], "holds no recipes"),
        (["table2", "--scale", "large"], "choose one of small, full"),
        (["table2", "--data", "x.parquet", "--folds", "one"], "such as 0,1,2"),
        (["theorem1", "--n", "99"], "must be from 2 to 12"),
        (["filters", "--runs", "nowhere"], "train it by its recipe"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    arguments: list[object],
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir())
