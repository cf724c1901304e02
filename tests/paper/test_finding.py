from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from dabnet.errors import InputError
from paper.figures import new_figure
from paper.finding import Finding, Table, keep


def test_what_was_found_is_kept_with_its_origin(tmp_path: Path) -> None:
    picture = new_figure(4, 3)
    picture.subplots().plot([1, 2], [3, 4])
    table = Table("Sizes", ("what", "bytes"), [("a", "1"), ("b", "22")])
    finding = Finding("thing", "A thing", {"size": 23}, [table], ["It is small."], picture, seed=7)
    record = keep(finding, "dabnet paper thing", tmp_path / "deep")
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["thing.json", "thing.md", "thing.png"]
    assert json.loads((tmp_path / "deep" / "thing.json").read_text()) == record
    assert (record["command"], record["seed"], record["size"]) == ("dabnet paper thing", 7, 23)
    assert record["date"]
    assert record["processor"]
    text = (tmp_path / "deep" / "thing.md").read_text()
    for words in ("# A thing", "| b | 22 |", "* It is small.", "`dabnet paper thing`", record["date"], "seed 7"):
        assert words in text
    with Image.open(tmp_path / "deep" / "thing.png") as image:
        assert image.size == (480, 360)
        assert json.loads(image.info["Comment"])["command"] == "dabnet paper thing"


def test_figures_alone_are_kept_as_json_alone(tmp_path: Path) -> None:
    keep(Finding("bare", "Bare", {}), "dabnet paper bare", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["bare.json"]


def test_what_is_found_again_keeps_its_date_and_version(tmp_path: Path) -> None:
    found = Finding("bare", "Bare", {"size": [23, 0.5]}, [Table("Sizes", ("what",), [("a",)])])
    record = keep(found, "dabnet paper bare", tmp_path)
    (tmp_path / "bare.json").write_text(json.dumps({**record, "date": "2001-02-03", "dabnet": "0.0.1"}))
    assert keep(found, "dabnet paper bare", tmp_path) == {**record, "date": "2001-02-03", "dabnet": "0.0.1"}
    assert "2001-02-03" in (tmp_path / "bare.md").read_text()
    other = keep(Finding("bare", "Bare", {"size": [24, 0.5]}), "dabnet paper bare", tmp_path)
    assert (other["date"], other["dabnet"]) == (record["date"], record["dabnet"])


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="choose another folder with -o"):
        keep(Finding("bare", "Bare", {}), "x", tmp_path / "file" / "deep")
