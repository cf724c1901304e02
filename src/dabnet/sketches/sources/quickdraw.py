"""Quick, Draw! as published: a file per class, `.ndjson` (raw or simplified), `.bin`, or `.npy` bitmaps of 28x28."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dabnet._text import encodable
from dabnet.errors import InputError
from dabnet.sketches import quickdraw
from dabnet.sketches.quickdraw import Entry
from dabnet.sketches.sketch import Sketch
from dabnet.sketches.sources.source import QUICKDRAW_LICENCE, Drawing, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

SUFFIXES = (".ndjson", ".bin", ".npy")
PREFIXES = ("full_simplified_", "full_raw_", "full_binary_", "full_numpy_bitmap_")
"""What browsers put before the class's name, since they cannot keep the folders it came from."""
BYTES_PER_PIECE = 4_000_000
BITMAPS_PER_PIECE = 2_000


class Piece(NamedTuple):
    """Part of a file: bytes of lines, or rows of bitmaps; a .bin file can only be read whole."""

    label: int
    path: Path
    start: int
    stop: int


@dataclass
class QuickDrawSource(Source):
    """A file per class."""

    pieces: list[Piece]
    limit: int | None

    def __len__(self) -> int:
        return len(self.pieces)

    def read(self, piece: int) -> Iterator[Drawing]:
        """Read the drawings of a piece."""
        part = self.pieces[piece]
        for entry in itertools.islice(_entries(part), self.limit):
            name = entry.key if entry.key.isdecimal() else f"{part.path.name} {entry.key}"
            yield Drawing(name, part.label, entry.sketch)

    def fingerprint(self) -> dict[str, Any]:
        """Tell whether work that was begun can go on: with the same files, and as many drawings of each."""
        stats = {path.name: path.stat() for path in dict.fromkeys(piece.path for piece in self.pieces)}
        files = [[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats.items()]
        return {**super().fingerprint(), "limit": self.limit, "files": files}

    @property
    def skipped(self) -> list[str]:
        """Whatever lies beside the files of Quick, Draw!'s."""
        if self.path.is_file():
            return []
        names = sorted(found.name for found in self.path.iterdir() if not is_listed(found))
        return [name for name in names if not name.startswith(".")]


def open_quickdraw(path: Path, limit: int | None) -> QuickDrawSource:
    """List a file or a folder of files; at most `limit` drawings per class."""
    paths = [path] if path.is_file() else sorted(filter(is_listed, path.iterdir()))
    classes = [_class_name(found) for found in paths]
    twice = next((name for name, other in itertools.pairwise(sorted(classes)) if name == other), None)
    if twice:
        raise InputError(f"'{path}' holds more than one file of class '{twice}': keep one form of each.")
    pieces = []
    for label, found in enumerate(paths):
        total = len(_open_bitmaps(found)) if found.suffix == ".npy" else found.stat().st_size
        step = BITMAPS_PER_PIECE if found.suffix == ".npy" else BYTES_PER_PIECE
        if limit or found.suffix == ".bin":
            step = max(total, 1)
        pieces += [Piece(label, found, start, min(start + step, total)) for start in range(0, total, step)]
    return QuickDrawSource(path, "Quick, Draw!", QUICKDRAW_LICENCE, classes, 3, pieces, limit)


def is_listed(path: Path) -> bool:
    """Tell whether a path is a file of Quick, Draw!'s, by its name, and not a pipe or a folder."""
    return path.suffix in SUFFIXES and path.is_file()


def _entries(piece: Piece) -> Iterator[Entry]:
    if piece.path.suffix == ".npy":
        bitmaps = _open_bitmaps(piece.path)
        for row in range(piece.start, piece.stop):
            try:
                yield Entry(f"row {row}", Sketch.from_ink(np.ascontiguousarray(bitmaps[row].reshape(28, 28))))
            except InputError as error:
                yield Entry(f"row {row}", error)
        return
    with piece.path.open("rb") as file:
        if piece.path.suffix == ".bin":
            yield from quickdraw.read_records(file)
        else:
            yield from quickdraw.read_lines(file, piece.start, piece.stop)


def _open_bitmaps(path: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    try:
        bitmaps = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception:  # a header can be wrong in many ways
        raise InputError(f"'{path}' is not a whole .npy file: download it again.") from None
    if bitmaps.ndim != 2 or bitmaps.shape[1] != 784 or bitmaps.dtype != np.uint8:
        raise InputError(f"'{path}' is not Quick, Draw!'s bitmaps: it must be uint8 (drawings, 784).")
    return bitmaps  # type: ignore[no-any-return]


def _class_name(path: Path) -> str:
    name = path.stem
    for prefix in PREFIXES:
        name = name.removeprefix(prefix)
    return encodable(name)
