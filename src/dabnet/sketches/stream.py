"""Drawings one after another, from files, folders, lists of drawings and standard input; never all in memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from dabnet.errors import InputError
from dabnet.sketches.quickdraw import parse_json, read_records
from dabnet.sketches.read import MAX_FILE_BYTES, MAX_TEXT_BYTES, SUFFIXES, read_sketch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dabnet.sketches.sketch import Sketch

LISTS = (".ndjson", ".jsonl")
"""How the names of files with a drawing a line end."""
RECORDS = ".bin"
"""And of Quick, Draw!'s files of bytes."""
STANDARD_INPUT = "-"


class Item(NamedTuple):
    """A drawing with a name to tell it by, or what is wrong with it."""

    name: str
    sketch: Sketch | InputError


def stream_drawings(sources: Iterable[str], standard_input: BinaryIO) -> Iterator[Item]:
    r"""Read the drawings of files, of folders and all that is in them, and of standard input where a source is "-".

    >>> import io
    >>> lines = io.BytesIO(b'{"strokes": [[[0, 0], [9, 4]]]}\n[[[1, 2]]]\n')
    >>> for name, sketch in stream_drawings(["-"], lines):
    ...     print(name, sketch)
    -:1 Sketch(1 strokes, 2 points)
    -:2 the drawing is a single point: it needs at least two different ones.
    """
    for source in sources:
        if source == STANDARD_INPUT:
            yield from _read_open(source, standard_input)
        elif Path(source).is_dir():
            yield from _read_folder(Path(source))
        else:
            yield from _read_file(Path(source))


def _read_folder(folder: Path) -> Iterator[Item]:
    known = (*SUFFIXES, *LISTS, RECORDS)
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in known and path.is_file())
    if not found:
        sentence = f"the folder '{folder}' has no drawings: they are files that end in {', '.join(known)}."
        yield Item(str(folder), InputError(sentence))
    for path in found:
        yield from _read_file(path)


def _read_file(path: Path) -> Iterator[Item]:
    if path.suffix.lower() not in (*LISTS, RECORDS):
        yield _try(str(path), path)
        return
    try:
        with path.open("rb") as file:
            if path.suffix.lower() == RECORDS:
                yield from (Item(f"{path}:{entry.key}", entry.sketch) for entry in read_records(file))
            else:
                yield from _read_lines(str(path), file)
    except OSError as problem:
        yield Item(str(path), InputError(f"cannot read '{path}' ({problem.strerror}): check the path."))


def _read_open(name: str, file: BinaryIO) -> Iterator[Item]:
    """Read a file of any kind that comes in a stream: a drawing per line if its first line is one, else one drawing."""
    first = file.readline(MAX_TEXT_BYTES + 1)
    if first.lstrip()[:1] in (b"[", b"{"):
        try:
            parse_json(first)
        except InputError:  # JSON on several lines, perhaps
            pass
        else:
            yield from _read_lines(name, file, first)
            return
    yield _try(name, first + file.read(MAX_FILE_BYTES))


def _read_lines(name: str, file: BinaryIO, first: bytes = b"") -> Iterator[Item]:
    number, line = 0, first or file.readline(MAX_TEXT_BYTES + 1)
    while line:
        number += 1
        if line.strip():
            yield _try(f"{name}:{number}", line)
        while len(line) > MAX_TEXT_BYTES and not line.endswith(b"\n"):
            line = file.readline(MAX_TEXT_BYTES + 1)  # the rest of what was too long
        line = file.readline(MAX_TEXT_BYTES + 1)


def _try(name: str, drawing: Path | bytes) -> Item:
    try:
        return Item(name, read_sketch(drawing))
    except InputError as problem:
        return Item(name, problem)
    except Exception as problem:  # one file's fault must not end the others' turn
        return Item(name, InputError(f"{name}: the drawing cannot be read ({problem or type(problem).__name__})."))
