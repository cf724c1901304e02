"""Drawings as files in a folder or zip archive, a subfolder per class: TU-Berlin, Sketchy, or your own."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from dabnet._text import counted, encodable
from dabnet.errors import InputError
from dabnet.sketches.files import MAX_FILE_BYTES, SUFFIXES
from dabnet.sketches.read import read_sketch
from dabnet.sketches.sources.source import SKETCHY_LICENCE, TU_BERLIN_LICENCE, Drawing, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES_PER_PIECE = 250
SKETCHY_VIEW = "tx_000000000000"
"""Sketchy holds each sketch several times, moved and scaled; this folder has them as drawn."""
SPLITS = {"test": 0, "train": 1, "val": 2, "valid": 2, "validation": 2}
"""Folders above the classes that divide a set already, and the fold each becomes."""


@dataclass
class Files:
    """The files under a folder or in a zip archive, by their paths from its root."""

    path: Path

    @cached_property
    def names(self) -> list[PurePosixPath]:
        """All files, sorted; hidden ones are left out."""
        if self._zip is not None:
            names = list(self._members)
        else:
            names = [
                PurePosixPath(Path(folder, name).relative_to(self.path))
                for folder, _, found in os.walk(self.path)
                for name in found
                if Path(folder, name).is_file()  # no pipes: nobody may ever write to them
            ]
        visible = (name for name in names if not any(part.startswith((".", "__MACOSX")) for part in name.parts))
        return sorted(visible, key=lambda name: [_natural(part) for part in name.parts])

    def version(self, name: PurePosixPath) -> str:
        """Return what changes with a file."""
        if self._zip is not None:
            return ""  # with the archive
        found = (self.path / name).stat()
        return f"{found.st_size} {found.st_mtime_ns}"

    def read(self, name: PurePosixPath) -> bytes:
        """Read a file, unless it is too large."""
        try:
            with self._zip.open(self._members[name]) if self._zip else (self.path / name).open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except Exception as problem:  # zipfile lets through what a dozen libraries raise
            raise InputError(f"the file cannot be read ({problem or type(problem).__name__}).") from None
        if len(data) > MAX_FILE_BYTES:
            raise InputError(f"the file has more than {MAX_FILE_BYTES:,} bytes: make it smaller first.")
        return data

    @cached_property
    def _zip(self) -> zipfile.ZipFile | None:
        if self.path.is_dir():
            return None
        try:
            return zipfile.ZipFile(self.path)
        except Exception as problem:
            raise InputError(f"'{self.path}' is not a whole zip archive ({problem}): download it again.") from None

    @cached_property
    def _members(self) -> dict[PurePosixPath, zipfile.ZipInfo]:
        """The archive's files by their paths, which may be written in many ways: ./a/1.png, a//1.png."""
        assert self._zip is not None
        found: dict[PurePosixPath, zipfile.ZipInfo] = {}
        for info in self._zip.infolist():
            if not info.filename.endswith("/"):
                found.setdefault(PurePosixPath(info.filename), info)
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}  # an open archive stays in its process


@dataclass
class TreeSource(Source):
    """One file per drawing; the folder it lies in is its class."""

    files: Files
    members: list[PurePosixPath]
    test_photos: set[str] = field(default_factory=set)
    others: list[PurePosixPath] = field(default_factory=list)
    """Files that are no drawings by their names, or lie in no class's folder."""

    def __len__(self) -> int:
        return -(-len(self.members) // FILES_PER_PIECE)

    def read(self, piece: int) -> Iterator[Drawing]:
        """Read the drawings of a piece."""
        labels = {name: label for label, name in enumerate(self.classes)}
        for member in self.members[piece * FILES_PER_PIECE : (piece + 1) * FILES_PER_PIECE]:
            try:
                sketch: Any = read_sketch(self.files.read(member))
            except InputError as error:
                sketch = error
            except Exception as problem:  # whatever a file raises is that file's error
                sketch = InputError(f"the drawing cannot be read ({problem or type(problem).__name__}).")
            group = f"{member.parent.name}/{member.stem.rsplit('-', 1)[0]}" if self.title == "Sketchy" else None
            fold = 0 if group in self.test_photos else SPLITS.get(member.parent.parent.name.lower())
            name = member.stem if self.title == "TU-Berlin" else str(member)
            yield Drawing(name, labels[encodable(member.parent.name)], sketch, fold, group)

    @property
    def skipped(self) -> list[str]:
        """The files that are no drawings of a class."""
        return [encodable(str(name)) for name in self.others]

    def fingerprint(self) -> dict[str, Any]:
        """Tell whether work that was begun can go on: with the very same files."""
        listed = hashlib.sha256()
        for member in self.members:
            listed.update(f"{encodable(str(member))} {self.files.version(member)}\n".encode())
        return {**super().fingerprint(), "files": listed.hexdigest()}


def open_tree(path: Path, limit: int | None) -> TreeSource:
    """List a folder or a zip archive; at most `limit` drawings per class."""
    files = Files(path)
    drawings = [name for name in files.names if name.suffix.lower() in SUFFIXES]
    members = [name for name in drawings if len(name.parts) > 1]
    if drawings and not members:
        raise InputError(
            f"'{path}' has {counted(len(drawings), 'drawing')}, but in no subfolder: put those of each class into a "
            f"folder with its name, such as {path}/cat/{drawings[0].name}."
        )
    views = [name for name in members if SKETCHY_VIEW in name.parts and "sketch" in name.parts]
    if views:
        members, title, licence, folds = views, "Sketchy", SKETCHY_LICENCE, 10
    elif members and all(name.parent.parent.name in ("png", "svg") and name.stem.isdecimal() for name in members):
        title, licence, folds = "TU-Berlin", TU_BERLIN_LICENCE, 3
    else:
        title, licence, folds = path.stem, "not known", 3
    classes = sorted({encodable(name.parent.name) for name in members})
    found, seen = members, Counter[str]()
    if limit:
        members = [name for name in members if _count(seen, name.parent.name) <= limit]
    photos = _test_photos(files) if views else set()
    # Sketchy's other views and photographs are left out on purpose.
    others = [] if views else sorted(set(files.names) - set(found))
    return TreeSource(path, title, licence, classes, folds, files, members, photos, others)


def _test_photos(files: Files) -> set[str]:
    """Read Sketchy's own list of photos for testing, if it lies beside the sketches: a line `class/photo.jpg` each."""
    for name in files.names:
        if name.name == "testset.txt":
            lines = files.read(name).decode("utf-8", errors="replace").splitlines()
            return {str(PurePosixPath(line.strip()).with_suffix("")) for line in lines if line.strip()}
    return set()


def _count(seen: Counter[str], name: str) -> int:
    seen[name] += 1
    return seen[name]


def _natural(text: str) -> tuple[int, int, str]:
    """Sort 2.png before 10.png."""
    stem = text.split(".")[0]
    return (0, int(stem), text) if stem.isdecimal() and len(stem) < 18 else (1, 0, text)
