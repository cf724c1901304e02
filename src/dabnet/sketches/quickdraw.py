"""Quick, Draw!'s files: one JSON per line (raw or simplified), or records of bytes.

Raw strokes carry times beside x and y; they are left out. See https://github.com/googlecreativelab/quickdraw-dataset.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from dabnet.errors import InputError
from dabnet.sketches.files import parse_json
from dabnet.sketches.sketch import MAX_POINTS, Sketch

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LINE = 8_000_000
"""Bytes of a line of JSON: a drawing of MAX_POINTS has a tenth of that."""
_HEADER = struct.Struct("<Q2sbIH")  # key, country, recognized, time, strokes


class Entry(NamedTuple):
    """A drawing of a file, or what is wrong with it."""

    key: str
    sketch: Sketch | InputError


def sketch_from_record(record: Any) -> Sketch:
    """Take a Quick, Draw! JSON object; its `drawing` is a list of strokes `[[x, ...], [y, ...]]`.

    >>> sketch_from_record({"word": "line", "drawing": [[[0, 5, 9], [0, 0, 1]]]})
    Sketch(1 strokes, 3 points)
    """
    drawing = record.get("drawing") if isinstance(record, dict) else None
    if not isinstance(drawing, list):
        raise InputError("the line is not a Quick, Draw! drawing: it needs an object with 'drawing'.")
    if len(drawing) > MAX_POINTS:
        raise InputError(f"the drawing has more than {MAX_POINTS:,} strokes: simplify it first.")
    strokes = []
    for number, stroke in enumerate(drawing, start=1):
        if not _is_stroke(stroke):
            raise InputError(f"stroke {number} is not Quick, Draw!'s [[x, ...], [y, ...]]: both must be as long.")
        if len(stroke[0]) > MAX_POINTS:
            raise InputError(f"the drawing has more than {MAX_POINTS:,} points: simplify its strokes first.")
        strokes.append(list(zip(stroke[0], stroke[1], strict=True)))
    return Sketch.from_strokes(strokes)


def read_lines(file: BinaryIO, start: int, stop: int) -> Iterator[Entry]:
    """Read the drawings of an ndjson file whose lines begin at bytes from `start` up to `stop`."""
    for position, line in find_lines(file, start, stop):
        key = f"at byte {position}"
        try:
            if len(line) > MAX_LINE:
                raise InputError(f"the line has more than {MAX_LINE:,} bytes: simplify the drawing first.")
            record = parse_json(line, None)
            if isinstance(record, dict):
                key = f"{record.get('key_id', key)!s:.100}"
            yield Entry(key, sketch_from_record(record))
        except InputError as error:
            yield Entry(key, error)


def find_lines(file: BinaryIO, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    r"""Yield the lines that begin at bytes from `start` up to `stop` and are not blank, each with where it begins.

    Of a line that is too long it yields MAX_LINE + 1 bytes, and goes on with the next one.

    >>> import io
    >>> list(find_lines(io.BytesIO(b"one\ntwo\n\nthree\n"), 1, 10))
    [(4, b'two\n'), (9, b'three\n')]
    """
    file.seek(max(0, start - 1))
    if start > 0:
        _skip_line(file, stop)  # belongs to the piece before, unless it ends right here
    while (position := file.tell()) < stop and (line := file.readline(MAX_LINE + 1)):
        if len(line) > MAX_LINE and not line.endswith(b"\n"):
            _skip_line(file, stop)
        if line.strip() or len(line) > MAX_LINE:
            yield position, line


def read_records(file: BinaryIO) -> Iterator[Entry]:
    """Read the drawings of a .bin file: a header, then for each stroke a count and as many bytes of x and of y."""
    while header := file.read(_HEADER.size):
        try:
            key, _, _, _, strokes = _HEADER.unpack(header)
            points, total = [], 0
            for _ in range(strokes):
                (count,) = struct.unpack("<H", file.read(2))
                axes = np.frombuffer(file.read(2 * count), dtype=np.uint8).reshape(2, count)
                total += count
                if total <= MAX_POINTS:  # the rest is read past
                    points.append(axes.T)
        except (struct.error, ValueError):
            yield Entry(f"at byte {file.tell()}", InputError("the file ends in the middle of a drawing."))
            return
        try:
            if total > MAX_POINTS:
                raise InputError(f"the drawing has more than {MAX_POINTS:,} points: simplify its strokes first.")
            yield Entry(str(key), Sketch.from_strokes(points))
        except InputError as error:
            yield Entry(str(key), error)


def _skip_line(file: BinaryIO, stop: int) -> None:
    """Read past the end of a line, but not far past `stop`: what begins there is another piece's."""
    while file.tell() < stop and (line := file.readline(MAX_LINE)) and not line.endswith(b"\n"):
        pass


def _is_stroke(stroke: Any) -> bool:
    if not isinstance(stroke, list) or len(stroke) not in (2, 3) or not all(isinstance(axis, list) for axis in stroke):
        return False
    return len({len(axis) for axis in stroke}) == 1
