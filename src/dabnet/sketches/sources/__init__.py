"""Where drawings come from: TU-Berlin, Sketchy, Quick, Draw!, folders, arrays or a program, all read in one way."""

from __future__ import annotations

from pathlib import Path

from dabnet.errors import InputError
from dabnet.sketches.sources.arrays import open_arrays
from dabnet.sketches.sources.quickdraw import SUFFIXES, is_listed, open_quickdraw
from dabnet.sketches.sources.source import Drawing, Source
from dabnet.sketches.sources.synthetic import open_synthetic
from dabnet.sketches.sources.tree import open_tree
from dabnet.sketches.sources.union import UnionSource, unite

__all__ = ["Drawing", "Source", "UnionSource", "open_source", "unite"]


def open_source(path: str | Path, limit: int | None = None) -> Source:
    """Find out what a file or folder holds, and list it; at most `limit` drawings per class.

    `synthetic` is a source too, unless there is a file of that name.
    """
    path = Path(path)
    if str(path) == "synthetic" and not path.exists():
        return open_synthetic(limit)
    if not path.exists():
        raise InputError(f"'{path}' is not there: check the path, or get a data set with 'dabnet data download'.")
    if path.is_dir():
        found = any(map(is_listed, path.iterdir()))
        return open_quickdraw(path, limit) if found else open_tree(path, limit)
    if not path.is_file():
        raise InputError(f"'{path}' is neither a file nor a folder: save the data set to a file first.")
    if path.suffix == ".npz":
        return open_arrays(path, limit)
    if path.suffix in SUFFIXES:
        return open_quickdraw(path, limit)
    if path.suffix == ".zip":
        return open_tree(path, limit)
    raise InputError(f"'{path}' is no data set that can be read: give a folder, .zip, .ndjson, .bin, .npy or .npz.")
