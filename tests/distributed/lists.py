"""Lists of drawings for tests, the answers they must get, and commands that are killed meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dabnet.distributed import RecognizeBatch
from dabnet.sketches.synthetic import synthetic_strokes

PATIENCE = 120.0
"""Seconds that anything may take."""


def drawings(count: int) -> list[Any]:
    """Return so many drawings in Quick, Draw!'s form, a few of them broken."""
    some = [[stroke.T.tolist() for stroke in sketch.strokes] for sketch in synthetic_strokes(min(count, 100))[0]]
    return [[[[1.0], [2.0, 3.0]]] if row % 97 == 5 else some[row % len(some)] for row in range(count)]


def write_parquet(path: Path, count: int, rows_per_group: int = 400) -> pa.Table:
    """Write so many drawings with their numbers; return the answers that a single process gives."""
    table = pa.table({"key": range(count), "drawing": drawings(count)})
    pq.write_table(table, path, row_group_size=rows_per_group)
    return RecognizeBatch(top=3)(table)


def write_lines(path: Path, count: int) -> list[str]:
    """Write so many drawings as lines of JSON, one of them no JSON at all."""
    records = [{"key_id": str(row), "drawing": drawing} for row, drawing in enumerate(drawings(count))]
    lines = [json.dumps(record) for record in records]
    lines[count // 2] = "{no JSON"
    path.write_text("\n".join(lines))
    return lines


def assert_same_answers(folder: Path, expected: pa.Table) -> None:
    """Nothing is lost, nothing is there twice, nothing is half-written, and every bit is the same."""
    found = pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("*.parquet"))])
    assert found.sort_by("key").combine_chunks().equals(expected.combine_chunks())
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


def start_command(*arguments: str | Path, **environment: str) -> subprocess.Popen[str]:
    """Start `dabnet recognize` in a process of its own."""
    command = [sys.executable, "-m", "dabnet", "recognize", *map(str, arguments)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, env={**os.environ, **environment}, **streams)  # type: ignore[call-overload,no-any-return]


def run_command(*arguments: str | Path, **environment: str) -> str:
    """Run `dabnet recognize` to its end; return what it printed."""
    process = start_command(*arguments, **environment)
    output, problems = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, problems
    return output


def wait_for(condition: Callable[[], Any]) -> Any:
    """Return what a condition gives as soon as that is something."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")


def wait_for_answers(folder: Path, count: int = 1) -> None:
    """Wait until so many partitions are done."""
    wait_for(lambda: len(list(folder.glob("*.parquet"))) >= count)


def children(pid: int) -> list[int]:
    """Return the processes that a process started."""
    tasks = Path(f"/proc/{pid}/task")
    return [int(child) for task in tasks.glob("*") for child in (task / "children").read_text().split()]


def named(pid: int, words: str) -> bool:
    """Say whether a process runs, and has these words in its command line."""
    try:
        return words in Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return False


def kill(pid: int) -> None:
    """Kill a process as if its machine had been switched off."""
    os.kill(pid, signal.SIGKILL)
