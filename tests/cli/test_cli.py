from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dabnet
from dabnet.cli import COMMANDS


def run(*arguments: str, code: str | None = None) -> subprocess.CompletedProcess[str]:
    program = ["-c", code] if code else ["-m", "dabnet"]
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
    return subprocess.run(
        [sys.executable, *program, *arguments], capture_output=True, text=True, timeout=300, env=environment
    )


@pytest.mark.parametrize(("option", "words"), [("--version", f"dabnet {dabnet.__version__}"), ("--help", "demo")])
def test_version_and_help_do_not_load_torch(option: str, words: str) -> None:
    code = "import sys; from dabnet.cli import main\ntry: main()\nfinally: print('torch' in sys.modules)"
    done = run(option, code=code)
    assert done.returncode == 0
    assert words in done.stdout
    assert done.stdout.endswith("False\n")


def test_help_lists_every_command_and_teaches() -> None:
    listed = run("--help").stdout
    for name, line in COMMANDS.items():
        assert f"{name}  {line}" in listed
    text = run("demo", "--help").stdout
    for words in ("--output", "--json", "Folder for the picture"):
        assert words in text


def test_demo_prints_the_table_and_draws_the_picture(tmp_path: Path) -> None:
    done = run("demo", "--output", str(tmp_path / "new" / "demo"), "--epochs", "1", "--sketches", "128")
    assert done.returncode == 0, done.stderr
    for words in ("dab", "xnor", "bnn", "K/n", "packed", "times smaller"):
        assert words in done.stdout
    assert "…" not in done.stdout
    assert (tmp_path / "new" / "demo" / "split.png").stat().st_size > 10_000


def test_demo_as_json_is_reproducible_and_dab_loses_least(tmp_path: Path) -> None:
    arguments = (
        "demo",
        "--output",
        str(tmp_path),
        "--epochs",
        "1",
        "--sketches",
        "128",
        "--threads",
        "1",
        "--json",
    )
    first, second = (json.loads(run(*arguments).stdout) for _ in range(2))
    assert first == second
    assert len(first["layers"]) == 4
    for layer in first["layers"]:
        assert layer["error_dab"] <= layer["error_xnor"] <= layer["error_bnn"]
        assert 0 < layer["k_share"] < 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["demonstrate"], "demonstrate"),
        (["demo", "--epochs", "0"], "--epochs"),
        (["demo", "--colour", "red"], "--colour"),
    ],
)
def test_bad_words_on_the_command_line_exit_with_2(arguments: list[str], words: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_an_output_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = run("demo", "--output", str(tmp_path / "file"), "--epochs", "1", "--sketches", "128")
    assert done.returncode == 2
    assert done.stderr.startswith("dabnet: cannot write to ")
    assert "--output" in done.stderr
    assert "Traceback" not in done.stderr
