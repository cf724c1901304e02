"""The native reader of strokes against the one in Python, which stays the specification."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dabnet._native import Drawings
from dabnet.errors import InputError
from dabnet.sketches.files import MAX_LISTS, MAX_TEXT_BYTES
from dabnet.sketches.read import read_sketch
from dabnet.sketches.sketch import MAX_POINTS, Sketch

NUMBERS = st.integers(-(10**17), 10**17) | st.floats(allow_nan=True, allow_infinity=True) | st.floats(width=32)
LEAVES = NUMBERS | st.booleans() | st.none() | st.text(max_size=3)
POINTS = st.lists(NUMBERS, min_size=2, max_size=2) | st.tuples(NUMBERS, NUMBERS)
STROKES = st.lists(st.lists(POINTS, max_size=4), max_size=4)
AXES = st.integers(0, 4).flatmap(
    lambda n: st.lists(st.lists(NUMBERS, min_size=n, max_size=n), min_size=2, max_size=3)
)  # fmt: skip
ANYTHING = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3), max_leaves=12)
RECORDS = st.fixed_dictionaries(
    {}, optional={"word": ANYTHING, "strokes": STROKES | ANYTHING, "drawing": st.lists(AXES, max_size=4) | ANYTHING}
)


def expected(drawing: Any) -> Sketch | None:
    """What the slow reader makes of it; None where it says what is wrong."""
    try:
        return read_sketch(drawing)
    except InputError:
        return None


def assert_agrees(drawings: Drawings, was_added: bool, sketch: Sketch | None) -> None:
    """Whatever the native reader took, the other one takes too, and makes the same of it, bit for bit."""
    assert len(drawings) == was_added
    if was_added:
        assert sketch is not None
        assert sketch.points is not None
        points, ends = drawings.strokes(0)
        np.testing.assert_array_equal(points.view(np.uint32), sketch.points.view(np.uint32))
        np.testing.assert_array_equal(ends, sketch.ends)


@given(STROKES | RECORDS | ANYTHING, st.sampled_from([None, 1]), st.booleans())
def test_json_is_read_as_python_reads_it(content: Any, indent: int | None, plain: bool) -> None:
    data = json.dumps(content, indent=indent, ensure_ascii=plain).encode("utf-8", "surrogatepass")
    drawings = Drawings()
    assert_agrees(drawings, drawings.add_json(data), expected(data))


@given(STROKES | RECORDS, st.randoms(use_true_random=False))
def test_broken_json_is_left_to_python(content: Any, source: random.Random) -> None:
    data = bytearray(json.dumps(content).encode())
    for _ in range(source.randint(1, 3)):
        at = source.randrange(len(data))
        data[at : at + source.randint(0, 2)] = source.choice(
            [b"", b"[", b"]", b",", b"-", b"0", b".", b"e", b'"', b"\\", b" ", b"\xff", b"\0", b"1e5", b"1e400", b"NaN"]
        )
        if not data:
            return
    drawings = Drawings()
    assert_agrees(drawings, drawings.add_json(bytes(data)), expected(bytes(data)))


@given(st.decimals(allow_nan=False, allow_infinity=False), st.sampled_from(["", "e3", "E-7", "e+0", "e-300"]))
def test_a_number_is_rounded_as_python_rounds_it(number: Any, exponent: str) -> None:
    data = f"[[[{number:f}{exponent}, -0], [1, -0.0]]]".encode()
    drawings = Drawings()
    assert_agrees(drawings, drawings.add_json(data), expected(data))


@pytest.mark.parametrize(
    "drawing",
    [
        {"word": "cat", "key_id": "5", "timestamp": "2017-03", "recognized": True, "drawing": [[[0, 5], [1, 9]]]},
        {"drawing": [[[0.5, 5], [1, 9], [0, 15]], [[7], [7], [99]]], "key_id": 4875421654302720123},
        {"strokes": [[[0, 0], [9, 1e-3]], [], [[2, 2.25]]], "colour": {"ink": ["black", None], "é": "\u2028"}},
        [[[1, 2], [3, 4]]],
        [[[123456789012345, -1], [0.1234567890123456789, 2]]],
    ],
)
def test_what_drawings_are_saved_as_is_read_natively(drawing: Any) -> None:
    for data in (json.dumps(drawing).encode(), json.dumps(drawing, ensure_ascii=False, indent=2).encode()):
        drawings = Drawings()
        assert drawings.add_json(data)
        assert_agrees(drawings, True, expected(data))


@pytest.mark.parametrize(
    "data",
    [
        b'{"strokes": null, "drawing": [[[0, 5], [1, 9]]]}',
        b'{"drawing": [[[0, 5], [1, 9]]], "drawing": []}',
        b'{"dr\\u0061wing": [[[0, 5], [1, 9]]]}',
        b" " * 2000 + b"[[[0, 0], [1, 1]]]",
        b"[[[0, 0], [1, 1]]]" + b" " * MAX_TEXT_BYTES,
        b"[[[0, 0], [1, 1]]" + b",[]" * MAX_LISTS + b"]",
        json.dumps([[[i, i] for i in range(MAX_POINTS + 1)]]).encode(),
        b"[[[3, 3], [3, 3]]]",
        b"[]",
        b"[[[0, 0], [1e39, 1]]]",
        b"[[[0, 0], [1, 1]]] x",
        b"\xef\xbb\xbf[[[0, 0], [1, 1]]]",
        '[[[0, 0], [1, 1]]]'.encode("utf-16-le"),
        b"[" * 200_000,
    ],
)  # fmt: skip
def test_what_is_unusual_is_left_to_python(data: bytes) -> None:
    drawings = Drawings()
    assert drawings.add_json(b"[[[0, 0], [1, 1]]]")
    assert not drawings.add_json(data)
    assert len(drawings) == 1
    assert drawings.add_json(b"[[[5, 5], [6, 6]], [[7, 7]]]")  # nothing of it is left behind
    points, ends = drawings.strokes(1)
    assert (points.tolist(), ends.tolist()) == ([[5, 5], [6, 6], [7, 7]], [2, 3])


@given(STROKES | ANYTHING | st.lists(st.lists(st.tuples(NUMBERS, LEAVES), max_size=2), max_size=2))
@example([[(10**400, 1), (2, 3)]])
@example([[(True, 1), (2, 3)]])
def test_lists_of_numbers_are_read_as_python_reads_them(strokes: Any) -> None:
    drawings = Drawings()
    was_added = drawings.add_strokes(strokes)
    assert_agrees(drawings, was_added, expected(strokes) if isinstance(strokes, list | tuple) else None)


def test_long_lists_and_lists_in_themselves_are_left_to_python() -> None:
    endless: list[Any] = []
    endless.append(endless)
    several: list[list[Any]] = [endless, [[(i, i) for i in range(MAX_POINTS + 1)]], [[]] * (MAX_POINTS + 1)]
    for strokes in several:
        drawings = Drawings()
        assert not drawings.add_strokes(strokes)
        assert not len(drawings)


@given(st.lists(st.sampled_from(["", " \t\x0b", "[[[0, 0], [1, 1]]]", '{"drawing": [[[1, 2], [3, 5]]]}', "[1", "\r"])))
def test_lines_keep_their_numbers_on_any_number_of_threads(lines: list[str]) -> None:
    lines = lines * 40  # so that threads have some each
    data = "\n".join(lines).encode()
    wanted = [(number, line) for number, line in enumerate(data.split(b"\n")) if line.strip()]
    for threads in (1, 3):
        drawings = Drawings()
        found, count = drawings.add_lines(data, threads)
        assert count == data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
        assert [(number, data[start:end]) for number, start, end, _ in found] == wanted
        good = [line for number, line in wanted if expected(line) is not None]
        assert [is_read for *_, is_read in found] == [line in good for _, line in wanted]
        assert len(drawings) == len(good)
        for i, line in enumerate(good):
            sketch = read_sketch(line)
            np.testing.assert_array_equal(drawings.strokes(i)[0], sketch.points)
            np.testing.assert_array_equal(drawings.strokes(i)[1], sketch.ends)
