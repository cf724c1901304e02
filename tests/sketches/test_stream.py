from __future__ import annotations

import io
from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dabnet.errors import InputError
from dabnet.sketches import stream
from dabnet.sketches.read import read_sketch
from dabnet.sketches.sketch import Sketch

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
                found.append((f"-:{number}", read_sketch(line)))
            except InputError as error:
                found.append((f"-:{number}", str(error)))
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
