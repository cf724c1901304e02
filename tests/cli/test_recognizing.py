from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dabnet.cli import COMMANDS, commands, recognize, recognizing

EXAMPLE = Path(__file__).parents[2] / "examples" / "umbrella.json"
WORDS = st.sampled_from(
    (
        *("a.json", "b c", "-", "", "--", "--json", "--top", "--model", "--sheet", "--threads", "--min-confidence"),
        *("--max-work", "--help", "--tops", "---top", "--min_confidence", "--top=2", "--files", "--as-json", "-h"),
        *("0", "1", "2", "07", "1_0", "+1", "-1", "0.5", ".5", "1.", "1e0", "nan", "2.5", "9" * 12, "\u0663", "x"),
    )
)


def read_by_typer(arguments: list[str]) -> recognizing.Settings | None:
    """What typer makes of a command line; None if it refuses it, or prints help."""
    told: list[recognizing.Settings] = []

    def note(settings: recognizing.Settings) -> int:
        told.append(settings)
        return 0

    with mock.patch.object(recognize, "recognize_files", note), pytest.raises(SystemExit):
        commands.run(["recognize", *arguments], COMMANDS)
    return told[0] if told else None


@settings(max_examples=150, deadline=None)
@given(st.lists(WORDS, max_size=6))
@example(["a.json", "--top", "2", "--json", "--model", "m", "--sheet", "s.png", "--threads", "3"])
@example(["-", "--min-confidence", "0.25", "--max-work", "20"])
@example(["a.json", "--top", "1", "--top", "2"])
def test_a_plain_command_line_is_read_as_typer_reads_it(arguments: list[str]) -> None:
    found = recognizing.read_plainly(arguments)
    if found is not None:
        assert found == read_by_typer(arguments)


def test_usual_command_lines_are_plain() -> None:
    everything = ["--top", "2", "--json", "--model", "m", "--sheet", "s.png", "--threads", "3", "--min-confidence", "0"]
    found = recognizing.read_plainly(["a.png", "-", *everything, "--max-work", "1.5"])
    assert found == recognizing.Settings(["a.png", "-"], "m", 2, 0.0, Path("s.png"), 3, 1.5, True)
    assert recognizing.read_plainly(["a.png"]) == recognizing.Settings(["a.png"])


def test_strokes_are_recognized_without_numpy_pillow_and_typer(tmp_path: Path) -> None:
    lines = tmp_path / "lines.ndjson"
    lines.write_bytes(b"".join(EXAMPLE.read_bytes().split(b"\n")) + b"\n")
    code = (
        "import sys; from dabnet.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print({'numpy', 'PIL', 'typer', 'pydantic', 'rich'} & set(sys.modules), file=sys.stderr)\n"
    )
    for path in (EXAMPLE, lines):
        done = subprocess.run([sys.executable, "-c", code, "recognize", path], capture_output=True, text=True)
        assert done.returncode == 0
        assert "umbrella" in done.stdout
        assert done.stderr == "set()\n"


def test_a_stream_that_lacks_letters_gets_utf8(tmp_path: Path) -> None:
    path = tmp_path / "Regenschirm über.json"
    path.write_bytes(EXAMPLE.read_bytes())
    done = subprocess.run(
        [sys.executable, "-m", "dabnet", "recognize", path],
        capture_output=True,
        env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PATH": "/usr/bin"},
    )
    assert done.returncode == 0, done.stderr
    assert "über".encode() in done.stdout
