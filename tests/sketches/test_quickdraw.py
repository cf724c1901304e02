from __future__ import annotations

import io
import itertools
import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dabnet.errors import InputError
from dabnet.sketches.quickdraw import read_lines, read_records, sketch_from_record
from dabnet.sketches.sketch import Sketch
from tests.sketches.drawings import HOUSE

BYTE = st.integers(0, 255)
STROKES = st.lists(st.lists(st.tuples(BYTE, BYTE), min_size=1, max_size=5), min_size=1, max_size=4).filter(
    lambda strokes: len({point for stroke in strokes for point in stroke}) > 1
)


def record(strokes: list[Any], key: int = 1, times: bool = False) -> dict[str, Any]:
    drawing = [
        [*map(list, zip(*stroke, strict=True)), *([list(range(len(stroke)))] if times else [])] for stroke in strokes
    ]
    return {"word": "house", "key_id": str(key), "recognized": True, "drawing": drawing}


def pack(strokes: list[Any], key: int = 1) -> bytes:
    data = struct.pack("<Q2sbIH", key, b"DE", 1, 0, len(strokes))
    for stroke in strokes:
        xs, ys = zip(*stroke, strict=True)
        data += struct.pack("<H", len(stroke)) + bytes(xs) + bytes(ys)
    return data


def points(sketch: Sketch | InputError) -> list[list[tuple[float, float]]]:
    assert isinstance(sketch, Sketch)
    return [[(float(x), float(y)) for x, y in stroke] for stroke in sketch.strokes]


@given(STROKES, st.booleans())
def test_raw_and_simplified_records_give_their_strokes(strokes: list[Any], times: bool) -> None:
    assert points(sketch_from_record(record(strokes, times=times))) == strokes


@given(st.lists(STROKES, max_size=6), st.lists(st.integers(0, 2000), max_size=4), st.booleans())
def test_pieces_of_a_file_hold_every_line_once(drawings: list[Any], cuts: list[int], last_newline: bool) -> None:
    lines = [json.dumps(record(strokes, key)) for key, strokes in enumerate(drawings)]
    data = "\n".join(lines).encode() + (b"\n" if last_newline else b"")
    borders = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    entries = [
        entry for start, stop in itertools.pairwise(borders) for entry in read_lines(io.BytesIO(data), start, stop)
    ]
    assert [entry.key for entry in entries] == [str(key) for key in range(len(drawings))]
    assert [points(entry.sketch) for entry in entries] == drawings


@given(st.lists(STROKES, max_size=5))
def test_binary_records_give_their_strokes(drawings: list[Any]) -> None:
    data = b"".join(pack(strokes, key + 2**60) for key, strokes in enumerate(drawings))
    entries = list(read_records(io.BytesIO(data)))
    assert [entry.key for entry in entries] == [str(key + 2**60) for key in range(len(drawings))]
    assert [points(entry.sketch) for entry in entries] == drawings


def test_a_broken_line_is_told_and_the_others_are_read() -> None:
    good = json.dumps(record(HOUSE, 7))
    data = f"{good}\n{good[:40]}\n\n[1, 2]\n{good}\n".encode()
    entries = list(read_lines(io.BytesIO(data), 0, len(data)))
    assert [entry.key for entry in entries] == ["7", f"at byte {len(good) + 1}", f"at byte {len(good) + 43}", "7"]
    assert [str(entry.sketch) for entry in entries[1:3]] == [
        "this is not valid JSON (column 41: Invalid control character): mend it there.",
        "the line is not a Quick, Draw! drawing: it needs an object with 'drawing'.",
    ]


def test_a_file_that_ends_in_a_drawing_keeps_those_before() -> None:
    whole = pack([[(0, 0), (9, 9)]]) + pack([[(1, 2), (3, 4), (5, 6)]], key=2)
    for cut in range(len(pack([[(0, 0), (9, 9)]])) + 1, len(whole)):
        entries = list(read_records(io.BytesIO(whole[:cut])))
        assert points(entries[0].sketch) == [[(0, 0), (9, 9)]]
        assert len(entries) == 2
        assert "ends in the middle of a drawing" in str(entries[1].sketch)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"drawing": [[[1, 2], [3]]]}, "stroke 1 is not Quick, Draw!'s"),
        ({"drawing": [[[1, 2]]]}, "stroke 1 is not"),
        ({"drawing": [[[1, 2], [3, 4]], "xy"]}, "stroke 2 is not"),
        ({"drawing": [[1, 2]]}, "stroke 1 is not"),
        ({"drawing": [[["a", "b"], [3, 4]]]}, "stroke 1 is not a list of points"),
        ({"drawing": "no"}, "needs an object with 'drawing'"),
        ({"drawing": []}, "the drawing has no ink"),
        ({}, "needs an object with 'drawing'"),
        (7, "needs an object with 'drawing'"),
    ],
)
def test_bad_records_are_refused_in_a_sentence(content: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        sketch_from_record(content)


@given(st.binary(max_size=200))
def test_any_bytes_give_entries_and_an_end(data: bytes) -> None:
    for entry in (*read_records(io.BytesIO(data)), *read_lines(io.BytesIO(data), 0, len(data))):
        assert isinstance(entry.sketch, Sketch | InputError)
