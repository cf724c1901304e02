from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from dabnet.cli import main
from dabnet.comparing.entering import make_entry
from dabnet.comparing.leaderboard import Entry, group_entries, read_entries, write_entry
from dabnet.errors import InputError
from dabnet.training.recipe import Recipe

ROOT = Path(__file__).parents[2]
ENTRY = Entry("A", "resnet18, 0.25 of the width", "10 drawings", [0, 1, 2], [0.5, 0.52, 0.54], 1234, 0.5, "a chip")


def finished_run(folder: Path, seed: int, top1: float, **changes: object) -> Path:
    """What a run without its weights leaves."""
    folder.mkdir()
    settings = {
        "network": "resnet18",
        "width": 0.125,
        "size": 16,
        "epochs": 3,
        "crops": 1,
        "shortcuts": "conv",
        **changes,
    }
    (folder / "recipe.toml").write_text(Recipe.from_dict({**settings, "seed": seed}).to_toml())
    result = {"top1": top1, "drawings": 40, "per_class": {"cat": 0.4, "tree": 0.6}}
    (folder / "result.json").write_text(json.dumps(result))
    return folder


def test_an_entry_is_read_as_it_was_written_and_the_best_comes_first(tmp_path: Path) -> None:
    better = replace(ENTRY, method="B, which is better", top1=[0.6, 0.6, 0.6], settings={"centre": True})
    elsewhere = replace(ENTRY, method="C", network="googlenet")
    for entry in (ENTRY, better, elsewhere):
        (tmp_path / entry.file_name()).write_text(entry.to_toml())
    found = read_entries(tmp_path)
    assert found == [elsewhere, better, ENTRY]
    assert [len(members) for members in group_entries(found).values()] == [1, 2]
    assert ENTRY.accuracy.mean == pytest.approx(0.52)
    assert ENTRY.accuracy.interval == pytest.approx(4.303 * 0.02 / 3**0.5)


def test_runs_of_one_method_become_an_entry(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [
        finished_run(tmp_path / str(seed), seed, 0.5 + seed / 10, weights="adabin", centre=False) for seed in (0, 2)
    ]
    with pytest.raises(SystemExit) as ended:
        main(
            ["leaderboard", *map(str, runs), "--add", "AdaBin's weights", "--folder", str(tmp_path / "board"), "--json"]
        )
    assert ended.value.code == 0
    (shown,) = json.loads(capsys.readouterr().out)
    assert (shown["method"], shown["seeds"], shown["top1"]) == ("AdaBin's weights", [0, 2], [0.5, 0.7])
    assert shown["network"] == "resnet18, 0.125 of the width, 16 pixels, 3 epochs"
    assert shown["settings"] == {"weights": "adabin", "activations": "sign", "shortcuts": "conv", "centre": False}
    assert (shown["mean"], shown["interval"]) == (pytest.approx(0.6), pytest.approx(12.706 * 0.1))
    assert shown["bytes"] > 1000
    assert 0 < shown["milliseconds"] < 1000
    (entry,) = read_entries(tmp_path / "board")
    assert entry.method == "AdaBin's weights"


def test_runs_that_are_not_one_method_are_refused(tmp_path: Path) -> None:
    first = finished_run(tmp_path / "a", 0, 0.5)
    with pytest.raises(InputError, match="has other settings than"):
        make_entry("mine", [first, finished_run(tmp_path / "b", 1, 0.5, centre=False)])
    with pytest.raises(InputError, match="two runs have the same seed"):
        make_entry("mine", [first, finished_run(tmp_path / "c", 0, 0.5)])
    other = finished_run(tmp_path / "d", 1, 0.5)
    (other / "result.json").write_text(json.dumps({"top1": 0.5, "drawings": 4, "per_class": {"cat": 0, "tree": 1}}))
    with pytest.raises(InputError, match="were tested on different drawings"):
        make_entry("mine", [first, other])
    (first / "result.json").unlink()
    with pytest.raises(InputError, match="has no test result"):
        make_entry("mine", [first])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("method = [", "is not an entry of the leaderboard"),
        ("size = 3", "is not an entry of the leaderboard"),
        (ENTRY.to_toml().replace("0.52, ", ""), "an accuracy in top1 for each of them"),
        (ENTRY.to_toml().replace("[0, 1, 2]", "[0, 0, 2]"), "needs seeds that differ"),
        (ENTRY.to_toml().replace("0.52, ", "1.52, "), "needs shares from 0 to 1"),
        (ENTRY.to_toml().replace("1234", '"many"'), "its bytes is 'many'"),
        (ENTRY.to_toml().replace("[0, 1, 2]", "3"), "is not an entry of the leaderboard"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(InputError, match=sentence):
        read_entries(tmp_path)


def test_an_entry_never_takes_the_place_of_another(tmp_path: Path) -> None:
    write_entry(ENTRY, tmp_path / "board")
    write_entry(replace(ENTRY, top1=[0.6, 0.6, 1]), tmp_path / "board")  # of the same method again
    assert read_entries(tmp_path / "board")[0].top1 == [0.6, 0.6, 1]
    with pytest.raises(InputError, match=r"is 'A' with resnet18, 0\.25 of the width: choose another name"):
        write_entry(replace(ENTRY, network="resnet18, 0.5 of the width"), tmp_path / "board")
    with pytest.raises(InputError, match="no letter from a to z"):
        write_entry(replace(ENTRY, method="方法"), tmp_path / "board")


def test_a_name_without_runs_and_a_missing_folder_get_their_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, words in (
        (["--add", "mine"], "give its runs and its name"),
        (["--folder", str(tmp_path / "nowhere")], "run this in a clone of dabnet"),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(["leaderboard", *arguments])
        assert stopped.value.code == 2
        assert words in capsys.readouterr().err


def test_the_entries_that_are_kept_can_be_read() -> None:
    entries = read_entries(ROOT / "docs/results/leaderboard")
    assert len(entries) >= 7
    assert all(
        entry.file_name() in {path.name for path in (ROOT / "docs/results/leaderboard").iterdir()} for entry in entries
    )


def test_the_method_on_the_page_is_one() -> None:
    page = (ROOT / "docs/leaderboard.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    found: dict[str, Any] = {"__name__": "median"}
    exec(code, found)
    weight = torch.tensor([[-3.0, 0.0, 0.5, 1.0]], requires_grad=True)
    binary, values = found["MedianWeights"]().with_values(weight)
    assert binary.tolist() == [[-1.125, -1.125, 1.125, 1.125]]
    torch.testing.assert_close(binary, torch.where(values.mask, values.alpha, values.beta))
    binary.sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [[0.0, 1.0, 1.0, 1.0]]
