from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from dabnet.cli import main
from dabnet.comparing.fresh import fresh_model
from dabnet.packed import find_model, model_names, read_model, to_bytes
from dabnet.packed.cards import read_card


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main([*arguments])
    return int(ended.value.code or 0)


def test_models_are_listed_with_classes_bytes_and_accuracy(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("models") == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[0].rstrip(",") for line in lines] == model_names()
    for name, line in zip(model_names(), lines, strict=True):
        card = read_card(name)
        assert all(part in line for part in (f" {card.classes} ", f"{card.bytes:,}", f"{card.accuracy[0].top1:.1%}"))
    assert "also default" in lines[0]


def test_models_as_json_hold_their_cards(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("models", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in found] == model_names()
    assert found[0]["aliases"] == ["default"]
    assert run("models", "default", "--json") == 0
    assert json.loads(capsys.readouterr().out) == found[0]
    assert {"licence", "attribution", "used", "set"} == set(found[0]["data"][0])


def test_a_card_is_shown_with_whom_to_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("models", "tuberlin") == 0
    said = capsys.readouterr().out
    card = read_card("tuberlin")
    assert all(source.attribution in said for source in card.data)
    assert all(figures.command in said for figures in card.accuracy)


@pytest.mark.parametrize(
    "command",
    ["models", "classes", "recognize x --model", "evaluate", "bench", "serve --port 0 --model", "train --from"],
)
def test_a_wrong_name_suggests_the_nearest(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*command.split(), "tubrelin") == 2
    errors = capsys.readouterr().err
    assert "Did you mean 'tuberlin'?" in errors
    assert errors.count("\n") == 1


def test_classes_are_listed_one_per_line_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    labels = sorted(read_model("tuberlin").labels, key=str.casefold)
    assert run("classes", "tuberlin") == 0
    assert capsys.readouterr().out.splitlines() == labels
    assert run("classes", str(find_model("tuberlin")), "--json") == 0
    assert json.loads(capsys.readouterr().out) == labels


def test_labels_of_strangers_are_printed_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = fresh_model("resnet18", 2, width=0.125, input_size=32)
    path = tmp_path / "m.safetensors"
    path.write_bytes(to_bytes(replace(model, labels=("cat\x1b[2J", "dog\ncow"))))
    assert run("classes", str(path)) == 0
    assert capsys.readouterr().out == "cat\\x1b[2J\ndog\\ncow\n"
    assert run("classes", str(path), "--json") == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert json.loads(said) == ["cat\x1b[2J", "dog\ncow"]


def test_classes_are_in_columns_on_a_terminal() -> None:
    terminal, end = pty.openpty()
    environment = {**os.environ, "COLUMNS": "70", "LINES": "50"}
    process = subprocess.Popen([sys.executable, "-m", "dabnet", "classes", "tuberlin"], stdout=end, env=environment)
    os.close(end)
    printed = b""
    with suppress(OSError):  # which is how a terminal ends
        while some := os.read(terminal, 1 << 16):
            printed += some
    assert process.wait() == 0
    lines = printed.decode().splitlines()
    os.close(terminal)
    assert max(map(len, lines)) <= 70
    assert len(lines) < 150
    labels = read_model("tuberlin").labels
    assert {name.strip() for line in lines for name in line.split("  ") if name.strip()} == set(labels)


def test_classes_are_searched_whatever_the_spelling(capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("Ice Cream", "ice_cream", "ICE-CREAM"):
        assert run("classes", "tuberlin", "--search", text) == 0
        assert capsys.readouterr().out.splitlines() == ["ice-cream-cone"]
    assert run("classes", "tuberlin", "--search", "umbrela") == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "'tuberlin' knows no 'umbrela'. Near it: umbrella.\n"
    assert run("classes", "tuberlin", "--search", "qqqq", "--json") == 1
    said = capsys.readouterr()
    assert json.loads(said.out) == []
    assert said.err == "'tuberlin' knows no 'qqqq'.\n"
