from __future__ import annotations

import io
import json
import threading
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dabnet.errors import InputError
from dabnet.sketches import stream
from dabnet.sketches.read import read_sketch
from dabnet.sketches.sketch import Sketch

from .drawings import HOUSE, encode, paint

LINES = st.sampled_from(
    [
        b"",
        b"  ",
        b"[[[0, 0], [9, 4]]]",
        b'{"drawing": [[[0, 1, 2], [3, 4, 6]], [[5], [5]]], "key_id": "7"}',
        b'{"strokes": 7, "drawing": [[[0, 1], [3, 4]]]}',
        b"\xef\xbb\xbf[[[0, 0], [3, 4]]]",
        b"[[[1, 2]]]",
        b'{"strokes": [[[1, "2"]]]}',
        b"[[[0, 0], [1e999, 4]]]",
        b"[1, 2",
        b"<svg><path d='M0 0L9 4'/></svg>",
        b"\x89PNG\r",
        b"[[[0, 0], [9, 4]]]" + b" " * 90,
    ]
)


def read_slowly(data: bytes) -> list[tuple[str, Sketch | str]]:
    """What each line is to the reader of single drawings."""
    found: list[tuple[str, Sketch | str]] = []
    for number, line in enumerate(data.splitlines(keepends=True) if data else [], start=1):
        if line.strip():
            try:
                found.append((f"-:{number}", read_sketch(line.rstrip())))
            except InputError as error:
                found.append((f"-:{number}", str(error).replace("(line 1, ", f"(line {number}, ")))
    return found


@given(st.lists(LINES, max_size=12), st.integers(1, 200), st.booleans())
def test_lines_are_what_each_of_them_is_alone(lines: list[bytes], block: int, last_newline: bool) -> None:
    data = b"[[[0, 0], [9, 4]]]\n" + b"\n".join(line.replace(b"\r", b"") for line in lines) + b"\n" * last_newline
    expected = read_slowly(data)
    found: list[tuple[str, Sketch | str | None]] = []
    with mock.patch.object(stream, "BLOCK_BYTES", block):
        for batch in stream.stream_drawings(["-"], io.BytesIO(data), threads=2):
            for number, name in enumerate(batch.names):
                found.append((name, str(batch.errors[number]) if number in batch.errors else batch.sketch(number)))
    assert [name for name, _ in found] == [name for name, _ in expected]
    for (_, one), (_, other) in zip(found, expected, strict=True):
        if isinstance(other, str):
            assert one == other
        else:
            assert isinstance(one, Sketch)
            np.testing.assert_array_equal(one.points, other.points)
            np.testing.assert_array_equal(one.ends, other.ends)


@given(st.integers(50, 400), st.integers(1, 300))
def test_a_line_that_is_too_long_is_told_and_the_next_is_read(length: int, block: int) -> None:
    data = b"[" * length + b"\n[[[0, 0], [9, 4]]]\n"
    with mock.patch.object(stream, "BLOCK_BYTES", block), mock.patch.object(stream, "MAX_TEXT_BYTES", 40):
        batches = list(stream._read_lines("f", io.BytesIO(data), 1))
    names = [name for batch in batches for name in batch.names]
    assert names == ["f:1", "f:2"]
    assert next(bool(batch.errors) for batch in batches if len(batch))
    assert sum(len(batch.strokes) for batch in batches) == 1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(40):
        (tmp_path / f"{number:02d}.png").write_bytes(b"bad" if number % 7 == 3 else encode(paint(HOUSE)))
    (tmp_path / "lines.ndjson").write_text((json.dumps(HOUSE) + "\n") * 3 + "[\n")
    return tmp_path


def test_several_threads_read_the_same_in_the_same_order(folder: Path) -> None:
    alone, together = (
        [
            (name, number in batch.errors)
            for batch in stream.stream_drawings([str(folder)], io.BytesIO(), threads)
            for number, name in enumerate(batch.names)
        ]
        for threads in (1, 3)
    )
    assert together == alone
    assert len(together) == 44
    assert together[3] == (str(folder / "03.png"), True)


def test_files_are_read_side_by_side_and_only_some_ahead(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names, begun = set(), list[object]()

    def read(drawing: object) -> Sketch:
        if isinstance(drawing, Path):
            names.add(threading.current_thread().name)
            begun.append(drawing)
            time.sleep(0.005)
        return Sketch.from_strokes(HOUSE)

    monkeypatch.setattr("dabnet.sketches.read.read_sketch", read)
    batches = stream.stream_drawings([str(folder)], io.BytesIO(), threads=2)
    first = next(batches)
    assert len(begun) <= len(first) + 2 * stream.AHEAD
    assert len(names) == 2
    batches.close()  # type: ignore[attr-defined]  # whoever has enough waits for what is being read, and no more
    assert len(begun) <= len(first) + 2 * stream.AHEAD
