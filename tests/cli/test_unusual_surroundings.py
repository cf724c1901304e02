"""Commands where something that is usually there is not: standard streams, short names, valid text."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dabnet
from dabnet.cli.console import PlainConsole
from dabnet.cli.progress import show_progress
from dabnet.sketches.sheet import SheetRow, draw_sheet
from dabnet.web.page import write_folder
from tests.distributed.lists import run_command

STAR = [[[0, 50, 100, 20, 80, 0], [100, 0, 100, 40, 40, 100]]]
POINTS = [[[0, 100], [50, 0], [100, 100], [20, 40], [80, 40], [0, 100]]]
"""The same, point by point."""
LINE = json.dumps({"word": "star", "drawing": STAR})


def run(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = line.replace("dabnet", f"{sys.executable} -m dabnet", 1)
    return subprocess.run(["/bin/sh", "-c", command], cwd=folder, capture_output=True, text=True, timeout=120)


def test_drawings_are_recognized_without_standard_streams(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(POINTS))
    (tmp_path / "b.ndjson").write_text(LINE + "\n" + LINE + "\n")
    assert run("dabnet recognize a.json <&-", tmp_path).returncode == 0
    done = run("dabnet recognize --json a.json b.ndjson 2>&-", tmp_path)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 3)


def test_a_name_that_is_too_long_and_a_mark_before_lines_stop_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(POINTS))
    done = run(f"dabnet recognize --json {300 * 'x'}.png a.json", tmp_path)
    assert done.returncode == 1
    assert [("error" in json.loads(line)) for line in done.stdout.splitlines()] == [True, False]
    (tmp_path / "bom.ndjson").write_bytes(b"\xef\xbb\xbf" + f"{LINE}\n{LINE}\n".encode())
    assert len(run("dabnet recognize --json - < bom.ndjson", tmp_path).stdout.splitlines()) == 2


def test_text_that_is_none_is_told_row_by_row(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"word": "\\ud800", "drawing": [[[0, 9], [0, 9]]]}\n' + LINE + "\n")
    summary = json.loads(run_command(tmp_path / "a.ndjson", "-o", tmp_path / "out", "--workers", "1", "--json"))
    assert (summary["drawings"], summary["errors"]) == (2, 0)
    texts = pa.array([b"\xff\xfe\xff", json.dumps(POINTS).encode()]).view(pa.string())
    pq.write_table(pa.table({"drawing": texts}), tmp_path / "b.parquet")
    summary = json.loads(run_command(tmp_path / "b.parquet", "-o", tmp_path / "out2", "--workers", "1", "--json"))
    assert (summary["drawings"], summary["errors"]) == (2, 1)


@pytest.mark.parametrize("first", [{"drawing": STAR}, json.dumps(POINTS).encode(), [[], [(0, 0), (9, 9)]]])
def test_a_list_of_drawings_of_any_kind_is_one(first: object) -> None:
    recognizer = dabnet.Recognizer.load()
    drawings: Any = [bytearray(first) if isinstance(first, bytes) else first, first]
    assert [len(answer) for answer in recognizer.recognize(drawings, top=2)] == [2, 2]


def test_an_empty_folder_is_filled_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    write_folder(Path(), {"a.txt": b"a"})
    assert Path("a.txt").read_bytes() == b"a"
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


def test_a_class_without_drawings_and_any_name_can_be_shown() -> None:
    assert draw_sheet([SheetRow("ant", "0", [])]).width > 0
    with show_progress("net[/b] {1}.safetensors", PlainConsole(quiet=True)) as progress:
        progress(1, 2)
