"""Drawings batch after batch, from files, folders, lists of drawings and standard input; never all in memory."""

from __future__ import annotations

import codecs
import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from dabnet.errors import InputError
from dabnet.sketches.batch import Batch, read_lines
from dabnet.sketches.files import MAX_FILE_BYTES, MAX_TEXT_BYTES, SUFFIXES, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from io import BufferedReader, BytesIO

LISTS = (".ndjson", ".jsonl")
"""How the names of files with a drawing a line end."""
RECORDS = ".bin"
"""And of Quick, Draw!'s files of bytes."""
STANDARD_INPUT = "-"
AHEAD = 8
"""Files for each thread that are read before they are asked for."""
BATCH = 32
"""Drawings with a file each that are read together."""
BLOCK_BYTES = 1 << 18
"""Of lines that are read together, at most: some hundreds of drawings."""


class Item(NamedTuple):
    """A drawing with a name to tell it by, or what is wrong with it."""

    name: str
    drawing: Any


def stream_drawings(
    sources: Sequence[str],
    standard_input: BufferedReader | BytesIO,
    threads: int = 1,
    skipped: list[str] | None = None,
) -> Iterator[Batch]:
    r"""Read the drawings of files, of folders and all that is in them, and of standard input where a source is "-".

    Lines of standard input come as soon as they can be read. `skipped` gets the names of files in folders that are no
    drawings by their names.

    >>> import io
    >>> lines = io.BytesIO(b'{"strokes": [[[0, 0], [9, 4]]]}\n[[[1, 2]]]\n')
    >>> for batch in stream_drawings(["-"], lines):
    ...     print(batch.names, len(batch.strokes), batch.errors)
    ['-:1'] 1 {}
    ['-:2'] 0 {0: InputError('the drawing is a single point: it needs at least two different ones.')}
    """
    batch = Batch()
    parts = _read_sources(sources, standard_input, threads, [] if skipped is None else skipped)
    if threads > 1 and STANDARD_INPUT not in sources:
        parts = _read_ahead(parts, threads)
    for part in parts:
        if isinstance(part, Batch):
            if len(batch):
                yield batch
                batch = Batch()
            if len(part):
                yield part
        elif isinstance(part.drawing, InputError):
            batch.fail(*part)
        else:
            batch.try_to_add(*part)
        if len(batch) == BATCH:
            yield batch
            batch = Batch()
    if len(batch):
        yield batch


def _read_ahead(parts: Iterator[Item | Batch], threads: int) -> Iterator[Item | Batch]:
    """Let threads decode files before their turn comes; the order stays."""
    ahead: deque[Future[Item] | Item | Batch] = deque()
    with ThreadPoolExecutor(threads, "reader") as pool:
        try:
            for part in parts:
                is_file = isinstance(part, Item) and isinstance(part.drawing, Path)
                ahead.append(pool.submit(_read_alone, cast("Item", part)) if is_file else part)
                if len(ahead) >= AHEAD * threads:
                    yield _wait(ahead.popleft())
            while ahead:
                yield _wait(ahead.popleft())
        finally:
            pool.shutdown(cancel_futures=True)


def _wait(part: Future[Item] | Item | Batch) -> Item | Batch:
    return part.result() if isinstance(part, Future) else part


def _read_alone(item: Item) -> Item:
    alone = Batch()
    alone.try_to_add(*item)
    return Item(item.name, alone.errors.get(0) or alone.sketch(0))


def _read_sources(
    sources: Iterable[str], standard_input: BufferedReader | BytesIO, threads: int, skipped: list[str]
) -> Iterator[Item | Batch]:
    for source in sources:
        if source == STANDARD_INPUT:
            yield from _read_open(source, standard_input, threads)
        elif os.path.isdir(source):  # noqa: PTH112  # a path's own method raises for names that are too long
            yield from _read_folder(Path(source), threads, skipped)
        else:
            yield from _read_file(Path(source), threads)


def _read_folder(folder: Path, threads: int, skipped: list[str]) -> Iterator[Item | Batch]:
    known = (*SUFFIXES, *LISTS, RECORDS)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    found = [path for path in files if path.suffix.lower() in known]
    skipped += [str(path) for path in files if path.suffix.lower() not in known and not _is_hidden(path, folder)]
    if not found:
        sentence = f"the folder '{folder}' has no drawings: they are files that end in {', '.join(known)}."
        yield Item(str(folder), InputError(sentence))
    for path in found:
        yield from _read_file(path, threads)


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _read_file(path: Path, threads: int) -> Iterator[Item | Batch]:
    if path.suffix.lower() not in (*LISTS, RECORDS):
        yield Item(str(path), path)
        return
    try:
        with path.open("rb") as file:
            if path.suffix.lower() == RECORDS:
                from dabnet.sketches.quickdraw import read_records

                yield from (Item(f"{path}:{entry.key}", entry.sketch) for entry in read_records(file))
            else:
                yield from _read_lines(str(path), file, threads)
    except OSError as problem:
        yield Item(str(path), InputError(f"cannot read '{path}' ({problem.strerror}): check the path."))


def _read_open(name: str, file: BufferedReader | BytesIO, threads: int) -> Iterator[Item | Batch]:
    """Read a file of any kind that comes in a stream: a drawing per line if its first line is one, else one drawing."""
    first = file.readline(MAX_TEXT_BYTES + 1)
    if first.removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"[", b"{"):
        try:
            parse_json(first)
        except InputError:  # JSON on several lines, perhaps
            pass
        else:
            yield from _read_lines(name, file, threads, first)
            return
    yield Item(name, first + file.read(MAX_FILE_BYTES))


def _read_lines(name: str, file: BufferedReader | BytesIO, threads: int, first: bytes = b"") -> Iterator[Batch]:
    number = 0
    for block in _read_blocks(file, first):
        batch, count = read_lines(name, block, number, threads)
        yield batch
        number += count


def _read_blocks(file: BufferedReader | BytesIO, rest: bytes) -> Iterator[bytes]:
    """Read whole lines, as many as are there; of one that is too long, as much as tells that it is."""
    while True:
        end = rest.rfind(b"\n") + 1
        if end:
            yield rest[:end]
            rest = rest[end:]
        elif len(rest) > MAX_TEXT_BYTES:
            yield rest[: MAX_TEXT_BYTES + 1]
            rest = _skip_line(file)
            continue
        if not (block := file.read1(BLOCK_BYTES)):
            break
        rest += block
    if rest:
        yield rest


def _skip_line(file: BufferedReader | BytesIO) -> bytes:
    """Read past the end of a line; return what was read behind it."""
    while block := file.read1(BLOCK_BYTES):
        _, end, behind = block.partition(b"\n")
        if end:
            return behind
    return b""
