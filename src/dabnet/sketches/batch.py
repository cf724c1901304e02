"""Drawings that were read together: strokes where native code takes them from, and what takes a longer way."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dabnet import _native
from dabnet.errors import InputError
from dabnet.sketches.files import MAX_TEXT_BYTES, parse_json

if TYPE_CHECKING:
    from dabnet.sketches.sketch import Sketch


class Batch:
    """Drawings by number, each of them strokes, a sketch, or an error.

    >>> batch = Batch()
    >>> batch.add("a", [[(0, 0), (9, 4)], [(3, 3)]])
    >>> batch.try_to_add("b", b"[[[1, 2]]]")
    >>> batch.names, batch.errors, batch.sketch(0)
    (['a', 'b'], {1: InputError('the drawing is a single point: ...')}, Sketch(2 strokes, 3 points))
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.strokes = _native.Drawings()
        """Those that are neither in `sketches` nor in `errors`, in order."""
        self.sketches: dict[int, Sketch] = {}
        self.errors: dict[int, InputError] = {}

    def __len__(self) -> int:
        return len(self.names)

    def add(self, name: str, drawing: Any) -> None:
        """Add whatever `read_sketch` takes; what it does not is an `InputError`."""
        if not self._add_plain(drawing):
            sketch = _read(drawing)
            if sketch.points is None or sketch.ends is None:
                self.sketches[len(self)] = sketch
            else:
                self.strokes.add(sketch.points, sketch.ends)
        self.names.append(name)

    def _add_plain(self, drawing: Any) -> bool:
        if isinstance(drawing, list | tuple):
            return self.strokes.add_strokes(drawing)
        if isinstance(drawing, Path) and drawing.suffix.lower() == ".json" and drawing.is_file():
            with suppress(OSError), drawing.open("rb") as file:
                drawing = file.read(MAX_TEXT_BYTES)
        return isinstance(drawing, bytes) and self.strokes.add_json(drawing)

    def try_to_add(self, name: str, drawing: Any) -> None:
        """Add a drawing, or what is wrong with it: one file's fault must not end the others' turn."""
        try:
            self.add(name, drawing)
        except InputError as problem:
            self.fail(name, problem)
        except Exception as problem:
            self.fail(name, InputError(f"{name}: the drawing cannot be read ({problem or type(problem).__name__})."))

    def fail(self, name: str, error: InputError) -> None:
        """Add what is wrong with a drawing."""
        self.errors[len(self)] = error
        self.names.append(name)

    def sketch(self, number: int) -> Sketch | None:
        """Return a drawing, if it could be read."""
        from dabnet.sketches.sketch import Sketch

        if number in self.errors:
            return None
        if number in self.sketches:
            return self.sketches[number]
        elsewhere = sum(other < number for other in (*self.sketches, *self.errors))
        return Sketch(*self.strokes.strokes(number - elsewhere))


def read_lines(name: str, lines: bytes, before: int, threads: int) -> tuple[Batch, int]:
    """Read a drawing per line, `before` of which came before these; return how many lines there are, too."""
    batch = Batch()
    found, count = batch.strokes.add_lines(lines, threads)
    for number, start, end, is_read in found:
        named = f"{name}:{before + number + 1}"
        if is_read:
            batch.names.append(named)
        else:
            _add_slowly(batch, named, lines[start : end + 1], before + number + 1)
    return batch, count


def _add_slowly(batch: Batch, name: str, line: bytes, number: int) -> None:
    """Add a line that native code left: an error mostly. Its strokes would come after those of later lines."""
    alone = Batch()
    try:
        if line.lstrip()[:1] in (b"[", b"{") and len(line) <= MAX_TEXT_BYTES:
            parse_json(line.rstrip(), number)  # which tells the line's number
        alone.try_to_add(name, line)
    except InputError as problem:
        alone.fail(name, problem)
    if alone.errors:
        batch.errors[len(batch)] = alone.errors[0]
    elif (sketch := alone.sketch(0)) is not None:
        batch.sketches[len(batch)] = sketch
    batch.names.append(name)


def _read(drawing: Any) -> Sketch:
    from dabnet.sketches.read import read_sketch  # numpy and Pillow take longer to load than strokes to recognize

    return read_sketch(drawing)
