"""Drawings in one .npz file: `labels` and `class_names`, with `images` or with strokes.

Images are uint8 (drawings, height, width). Strokes are `points` (all points, 2), `end_of_stroke` (all points,) which is
1 at a stroke's last point, and `offsets` (drawings + 1,): drawing i is points[offsets[i]:offsets[i + 1]]. Drawings may
have `ids` (or `key_ids`) and a `fold` (or `fold3`).
"""

from __future__ import annotations

import hashlib
import math
import sys
import zipfile
from dataclasses import dataclass
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from dabnet._text import encodable
from dabnet.errors import InputError
from dabnet.sketches.decode import MAX_PIXELS
from dabnet.sketches.images import sketch_from_array
from dabnet.sketches.sketch import MAX_POINTS, Sketch
from dabnet.sketches.sources.source import QUICKDRAW_LICENCE, TU_BERLIN_LICENCE, Drawing, Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

DRAWINGS_PER_PIECE = 500
MAX_FOLDS = 100
MAX_BYTES = 2**30
"""The most bytes of all arrays but the images: every process that reads has them in memory."""
IDS, FOLDS = ("ids", "key_ids"), ("fold", "fold3")
USED = ("labels", "class_names", "points", "end_of_stroke", "offsets", *IDS, *FOLDS)


class Member(NamedTuple):
    """An array in the archive, read a few rows at a time: images need more memory than there may be."""

    file: IO[bytes]
    start: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Read some rows; going forward is fast, going back begins anew."""
        row = int(np.prod(self.shape[1:], dtype=np.int64)) * self.dtype.itemsize
        target = self.start + start * row
        if target < self.file.tell():
            self.file.seek(0)
        while (missing := target - self.file.tell()) > 0:  # seek would do this in steps that are slow to decompress
            if not self.file.read(min(missing, 2**18)):
                raise EOFError
        data = self.file.read((stop - start) * row)
        return np.frombuffer(data, dtype=self.dtype).reshape(stop - start, *self.shape[1:])


@dataclass
class ArraySource(Source):
    """Rows of arrays."""

    rows: NDArray[np.int64]
    """Which drawings to take."""

    def __len__(self) -> int:
        return -(-len(self.rows) // DRAWINGS_PER_PIECE)

    def fingerprint(self) -> dict[str, Any]:
        """Tell whether work that was begun can go on: with the same drawings."""
        return {**super().fingerprint(), "rows": hashlib.sha256(self.rows.tobytes()).hexdigest()}

    def read(self, piece: int) -> Iterator[Drawing]:
        """Read the drawings of a piece."""
        rows = self.rows[piece * DRAWINGS_PER_PIECE : (piece + 1) * DRAWINGS_PER_PIECE]
        archive = self._archive
        ids, folds = _find(archive, IDS), _find(archive, FOLDS)
        for row in rows:
            try:
                sketch: Any = self._sketch(int(row))
            except InputError as error:
                sketch = error
            name = str(row) if ids is None else _to_text(ids[row])
            yield Drawing(name, int(archive["labels"][row]), sketch, None if folds is None else int(folds[row]))

    def _sketch(self, row: int) -> Sketch:
        archive = self._archive
        if self._images is not None:
            try:
                image = self._images.rows(row, row + 1)[0]
            except Exception:  # a damaged archive can raise what zipfile, zlib and numpy do
                raise InputError("the archive is damaged here: download it again.") from None
            return sketch_from_array(image, is_clean=True)
        start, stop = archive["offsets"][row : row + 2]
        if stop - start > MAX_POINTS:
            raise InputError(f"the drawing has more than {MAX_POINTS:,} points: simplify its strokes first.")
        ends = np.flatnonzero(archive["end_of_stroke"][start:stop]) + 1
        return Sketch.from_points(archive["points"][start:stop], ends)

    @cached_property
    def _archive(self) -> dict[str, NDArray[Any]]:
        return _load(self.path)

    @cached_property
    def _images(self) -> Member | None:
        return _open_images(self.path)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state.pop("_archive", None)  # read again where it is needed
        state.pop("_images", None)
        return state


def open_arrays(path: Path, limit: int | None) -> ArraySource:
    """Check an .npz file; at most `limit` drawings per class."""
    archive, images = _load(path), _open_images(path)
    for key in ("labels", "class_names") + (() if images else ("points", "end_of_stroke", "offsets")):
        if key not in archive:
            raise InputError(f"'{path}' has no '{key}': it needs labels, class_names, and images or strokes.")
    labels, names = archive["labels"], archive["class_names"]
    if names.ndim != 1 or names.dtype.kind not in "US":
        raise InputError(f"the class_names in '{path}' must be a list of texts, not {names.dtype} {names.shape}.")
    classes = [encodable(_to_text(name)) for name in names]
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise InputError(f"the labels in '{path}' must be one integer per drawing, not {labels.dtype} {labels.shape}.")
    if len(labels) and not (labels.min() >= 0 and labels.max() < len(classes)):
        raise InputError(f"the labels in '{path}' must be from 0 to {len(classes) - 1}, one for each class name.")
    if images:
        _check_images(path, images, len(labels))
    else:
        _check_strokes(path, archive, len(labels))
    _check_notes(path, archive, len(labels))
    rows = np.arange(len(labels))
    if limit:
        rank = np.empty(len(labels), dtype=np.int64)
        for label in np.unique(labels):
            mine = labels == label
            rank[mine] = np.arange(mine.sum())
        rows = rows[rank < limit]
    if images:
        licence = TU_BERLIN_LICENCE if len(classes) == 250 else "not known"
    else:
        licence = QUICKDRAW_LICENCE if "key_ids" in archive else "not known"
    return ArraySource(path, path.stem, licence, classes, 3, rows)


def _check_images(path: Path, images: Member, drawings: int) -> None:
    if len(images.shape) != 3 or images.dtype != np.uint8 or images.shape[0] != drawings:
        raise InputError(
            f"the images in '{path}' must be uint8 ({drawings}, height, width), not {images.dtype} {images.shape}."
        )
    if images.shape[1] * images.shape[2] > MAX_PIXELS:
        raise InputError(f"the images in '{path}' have more than {MAX_PIXELS:,} pixels: make them smaller first.")


def _check_strokes(path: Path, archive: dict[str, NDArray[Any]], drawings: int) -> None:
    points, ends, offsets = archive["points"], archive["end_of_stroke"], archive["offsets"]
    if points.ndim != 2 or points.shape[1] != 2 or ends.shape != (len(points),):
        raise InputError(f"'{path}' must have points (all points, 2) and end_of_stroke (all points,).")
    if points.dtype.kind not in "iuf" or ends.dtype.kind not in "biuf" or offsets.dtype.kind not in "iu":
        kinds = f"{points.dtype}, {ends.dtype} and {offsets.dtype}"
        raise InputError(f"the points, end_of_stroke and offsets in '{path}' must be numbers, not {kinds}.")
    # Compared, and not subtracted: integers without a sign would wrap around.
    whole = offsets.shape == (drawings + 1,) and offsets[0] == 0 and offsets[-1] == len(points)
    if not whole or (offsets[1:] < offsets[:-1]).any():
        raise InputError(f"the offsets in '{path}' must rise from 0 to the number of points, one more than labels.")


def _check_notes(path: Path, archive: dict[str, NDArray[Any]], drawings: int) -> None:
    ids, folds = _find(archive, IDS), _find(archive, FOLDS)
    if ids is not None and (ids.shape != (drawings,) or ids.dtype.kind not in "iuUS"):
        raise InputError(f"the ids in '{path}' must be one text or number per drawing, not {ids.dtype} {ids.shape}.")
    if folds is None:
        return
    if folds.shape != (drawings,) or folds.dtype.kind not in "iu":
        raise InputError(f"the folds in '{path}' must be one integer per drawing, not {folds.dtype} {folds.shape}.")
    if drawings and not (folds.min() >= 0 and folds.max() < MAX_FOLDS):
        raise InputError(f"the folds in '{path}' must be from 0 to {MAX_FOLDS - 1}.")


def _find(archive: dict[str, NDArray[Any]], names: tuple[str, ...]) -> NDArray[Any] | None:
    return next((archive[name] for name in names if name in archive), None)


def _to_text(name: Any) -> str:
    return name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else str(name)


def _load(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays that are used, but for the images; what they would take is counted before any is read."""
    found: dict[str, NDArray[Any]] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            members = [info for info in archive.infolist() if info.filename.removesuffix(".npy") in USED]
            if sum(info.file_size for info in members) > MAX_BYTES:
                raise InputError(f"the arrays in '{path}' have more than {MAX_BYTES:,} bytes: divide the set first.")
            for info in members:
                with archive.open(info) as file:
                    shape, _, dtype = _read_header(file)
                    if math.prod(shape) * dtype.itemsize > info.file_size:  # numpy would take memory for what it claims
                        raise InputError(f"'{info.filename}' in '{path}' is cut off: download it again.")
                with archive.open(info) as file:
                    array = npy.read_array(file, allow_pickle=False)
                _check_letters(info.filename, array)
                found[info.filename.removesuffix(".npy")] = array
    except InputError:
        raise
    except Exception as problem:
        raise InputError(f"'{path}' is not a whole .npz file ({problem}): download it again.") from None
    return found


def _check_letters(name: str, array: NDArray[Any]) -> None:
    """Refuse texts with letters that Unicode does not have: numpy makes strings of them that Python stumbles over."""
    if array.dtype.kind == "U" and array.dtype.itemsize and array.size:
        codes = np.ascontiguousarray(array).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        if codes.max() > sys.maxunicode:
            raise ValueError(f"'{name}' has letters that do not exist")


def _open_images(path: Path) -> Member | None:
    archive = zipfile.ZipFile(path)
    if "images.npy" not in archive.namelist():
        archive.close()
        return None
    try:
        file = archive.open("images.npy")
        shape, by_columns, dtype = _read_header(file)
    except Exception as problem:
        raise InputError(f"the images in '{path}' cannot be read ({problem}).") from None
    if by_columns or dtype.hasobject:
        raise InputError(f"the images in '{path}' must be stored row by row, as numbers.")
    return Member(file, file.tell(), shape, dtype)


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read an array's shape, whether it is stored by columns, and its type."""
    version = npy.read_magic(file)
    header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, by_columns, dtype = header(file)
    if any(size < 0 for size in shape):
        raise ValueError("an array of less than nothing")
    return shape, by_columns, dtype
