"""Prepared data sets: Parquet files that give any drawing by its row, without loading the rest.

A set is one file, or a folder of files (shards). A row has

    id          string
    label       int32                   index of its class
    fold        int8                    part of the set that it belongs to
    strokes     list<list<float32>>     x, y, x, y, ... a stroke; or null
    bitmap      fixed binary (32768)    256x256 pixels of 4 bits, the left one of two in the high bits; or null
    line_width  float32                 of the bitmap's lines, in its pixels; or null

and the schema's metadata has a JSON entry `dabnet`: see `SetInfo`.
"""

from __future__ import annotations

import dataclasses
import json
from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dabnet.errors import InputError
from dabnet.sketches.raster import Raster
from dabnet.sketches.sketch import GRID, Sketch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

FORMAT = 1
BITMAP_BYTES = GRID * GRID // 2
CACHE_BYTES = 2**30
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("label", pa.int32()),
        ("fold", pa.int8()),
        ("strokes", pa.list_(pa.list_(pa.float32()))),
        ("bitmap", pa.binary(BITMAP_BYTES)),
        ("line_width", pa.float32()),
    ]
)


@dataclass(frozen=True)
class SetInfo:
    """What a prepared set says about itself."""

    title: str
    licence: str
    classes: list[str]
    raster: Raster
    """How its makers would show the drawings to a network; a recipe may say otherwise."""
    left_out: list[tuple[str, str]] = field(default_factory=list)
    """Drawings that could not be read, and why."""
    sources: list[tuple[str, int]] = field(default_factory=list)
    """In a union: the name of each source, and how many rows it has; rows are in this order."""

    def to_json(self) -> str:
        """Write it for the schema's metadata."""
        values = dataclasses.asdict(self)
        if not self.sources:
            del values["sources"]
        return json.dumps({"format": FORMAT, **values})

    @classmethod
    def from_json(cls, text: bytes) -> SetInfo:
        """Read it from the schema's metadata."""
        try:
            found = json.loads(text)
            version = found.pop("format")
            if version != FORMAT:
                raise InputError(f"the set has format {version}, and this dabnet reads format {FORMAT}: update dabnet.")
            info = cls(**found)
            if not all(isinstance(name, str) for name in (info.title, info.licence, *info.classes)):
                raise TypeError
            return dataclasses.replace(
                info,
                raster=Raster.from_dict(found["raster"]),
                left_out=[(str(name), str(reason)) for name, reason in info.left_out],
                sources=[(str(name), int(rows)) for name, rows in info.sources],
            )
        except InputError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise InputError("the set's description is damaged: prepare it again.") from None


class SketchSet:
    """A prepared set of drawings, on disk; `set[row]` is a `Sketch`.

    What was read lately stays in memory, up to `cache_bytes`. A set can be sent to another process.
    """

    def __init__(self, path: str | Path, cache_bytes: int = CACHE_BYTES) -> None:
        self.path = Path(path)
        paths = sorted(self.path.glob("*.parquet")) if self.path.is_dir() else [self.path]
        if not paths:
            raise InputError(f"'{path}' holds no prepared set: make one with 'dabnet data prepare'.")
        self._files = [_open(found) for found in paths]
        self.info = _info(paths[0], self._files[0])
        if any(file.schema_arrow.metadata != self._files[0].schema_arrow.metadata for file in self._files):
            raise InputError(f"the files in '{path}' belong to different sets: prepare it again.")
        self._groups: list[tuple[int, int]] = []  # (file, row group)
        self._starts = [0]
        for number, file in enumerate(self._files):
            sizes = _group_sizes(paths[number], file)
            self._groups += [(number, group) for group in range(len(sizes))]
            self._starts += (self._starts[-1] + np.cumsum(sizes)).tolist()
        self._bitmaps: dict[int, NDArray[np.bool_]] = {}  # of each file, which rows are bitmaps
        self._cache: OrderedDict[int, _Rows] = OrderedDict()
        self._cached_bytes, self._cache_bytes = 0, cache_bytes

    @property
    def classes(self) -> list[str]:
        """The classes' names; labels are indices into this list."""
        return self.info.classes

    @cached_property
    def labels(self) -> NDArray[np.int32]:
        """Each drawing's class, (drawings,)."""
        labels = self._column("label").astype(np.int32)
        if len(labels) and not (labels.min() >= 0 and labels.max() < len(self.classes)):
            raise InputError(f"'{self.path}' has labels without a class name: prepare it again.")
        return labels

    @cached_property
    def folds(self) -> NDArray[np.int8]:
        """Each drawing's fold, (drawings,); `dabnet.sketches.folds.TRAIN_ONLY` where no test may use it."""
        return self._column("fold").astype(np.int8)

    @cached_property
    def sources(self) -> NDArray[np.int8]:
        """Which of `info.sources` each drawing of a union comes from, (drawings,); 0 where there is one source only."""
        counts = [rows for _, rows in self.info.sources] or [len(self)]
        if sum(counts) != len(self) or min(counts) < 0:
            raise InputError(f"'{self.path}' does not have the rows that its description counts: prepare it again.")
        return np.arange(len(counts), dtype=np.int8).repeat(counts)

    @cached_property
    def ids(self) -> NDArray[np.str_]:
        """Each drawing's name in its source, (drawings,)."""
        return self._column("id").astype(np.str_)

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, row: int) -> Sketch:
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of a set of {len(self)} drawings")
        row %= len(self)
        group = bisect_right(self._starts, row) - 1
        try:
            return self._rows(group).sketch(row - self._starts[group])
        except InputError as error:
            raise InputError(f"row {row} of '{self.path}': {error}") from None

    def read(self, rows: Iterable[int]) -> list[Sketch]:
        """Read several drawings, in any order."""
        return [self[int(row)] for row in rows]

    def _rows(self, group: int) -> _Rows:
        rows = self._cache.get(group)
        if rows is None:
            number, index = self._groups[group]
            try:
                table = self._files[number].read_row_group(index, self._columns(group), use_threads=False)
                if len(table) != self._starts[group + 1] - self._starts[group]:
                    raise ValueError("rows are missing")
                rows = _Rows(table)
            except (pa.ArrowException, OSError, ValueError, MemoryError) as problem:
                raise InputError(f"the file is damaged here ({_first_line(problem)}): prepare it again.") from None
            self._cache[group] = rows
            self._cached_bytes += rows.bytes
            while self._cached_bytes > self._cache_bytes and len(self._cache) > 1:
                self._cached_bytes -= self._cache.popitem(last=False)[1].bytes
        else:
            self._cache.move_to_end(group)
        return rows

    def _columns(self, group: int) -> list[str]:
        """Name the columns that a row group has drawings in; not to read the others saves half the time.

        The group's statistics would tell, too, but asking a damaged file for them ends the process.
        """
        number, index = self._groups[group]
        if number not in self._bitmaps:
            widths = self._files[number].read(["line_width"], use_threads=False).column(0)
            self._bitmaps[number] = widths.is_valid().to_numpy()
        start = self._starts[group] - self._starts[group - index]
        found = self._bitmaps[number][start : start + self._starts[group + 1] - self._starts[group]]
        if found.all():
            return ["bitmap", "line_width"]
        return ["strokes", "bitmap", "line_width"] if found.any() else ["strokes"]

    def _column(self, name: str) -> NDArray[Any]:
        try:
            parts = [file.read([name]).column(0).to_numpy() for file in self._files]
            if sum(map(len, parts)) != len(self):
                raise ValueError("rows are missing")
        except (pa.ArrowException, OSError, ValueError, MemoryError) as problem:
            raise InputError(f"'{self.path}' is damaged ({_first_line(problem)}): prepare it again.") from None
        return np.concatenate(parts)

    def __reduce__(self) -> tuple[type[SketchSet], tuple[Path, int]]:
        return SketchSet, (self.path, self._cache_bytes)

    def __repr__(self) -> str:
        return f"SketchSet('{self.path}', {len(self):,} drawings, {len(self.classes)} classes)"


class _Rows:
    """The drawings of a row group, as arrays that single drawings are cut from."""

    def __init__(self, table: pa.Table) -> None:
        self.bytes = table.nbytes
        self._stroke_at = np.zeros(len(table) + 1, dtype=np.int32)  # (rows + 1,): where each row's strokes begin
        self._is_bitmap = np.zeros(len(table), dtype=np.bool_)
        if "strokes" in table.column_names:
            strokes = _one_chunk(table.column("strokes"))
            self._stroke_at = strokes.offsets.to_numpy()
            self._value_at = strokes.values.offsets.to_numpy()  # (strokes + 1,): where each stroke's values begin
            self._values = strokes.values.values.to_numpy(zero_copy_only=False)  # x, y, x, y, ...
        if "bitmap" in table.column_names:
            bitmaps = _one_chunk(table.column("bitmap"))
            self._is_bitmap = bitmaps.is_valid().to_numpy(zero_copy_only=False)
            start = bitmaps.offset * BITMAP_BYTES
            pixels = np.frombuffer(bitmaps.buffers()[1] or b"", dtype=np.uint8)
            self._bitmaps = pixels[start : start + len(bitmaps) * BITMAP_BYTES].reshape(-1, GRID, GRID // 2)
            self._widths = _one_chunk(table.column("line_width")).to_numpy(zero_copy_only=False)

    def sketch(self, row: int) -> Sketch:
        if self._is_bitmap[row]:
            return Sketch.from_bitmap(self._bitmaps[row], self._widths[row])
        first, last = self._stroke_at[row], self._stroke_at[row + 1]
        if first == last:
            raise InputError("there is no drawing in this row: prepare the set again.")
        begin, end = self._value_at[first], self._value_at[last]
        lengths = self._value_at[first + 1 : last + 1] - begin
        if (lengths % 2).any():
            raise InputError("a stroke has an x without a y: prepare the set again.")
        return Sketch.from_points(self._values[begin:end].reshape(-1, 2), lengths // 2)


def make_table(ids: Sequence[str], labels: Sequence[int], sketches: Sequence[Sketch]) -> pa.Table:
    """Put drawings into rows; `fold` is 0 until it is known."""
    lengths: list[Any] = [np.diff(sketch.ends, prepend=0) if sketch.ends is not None else [] for sketch in sketches]
    points = [sketch.points.ravel() for sketch in sketches if sketch.points is not None]
    inner_ends = 2 * np.cumsum(np.concatenate([[0], *lengths]), dtype=np.int32)
    outer_ends = np.cumsum([0, *map(len, lengths)], dtype=np.int32)
    values = np.concatenate(points) if points else np.empty(0, dtype=np.float32)
    inner = pa.ListArray.from_arrays(pa.array(inner_ends.astype(np.int32)), pa.array(values, pa.float32()))
    no_strokes = pa.array([sketch.points is None for sketch in sketches], pa.bool_())
    bitmaps = [None if sketch.bitmap is None else sketch.bitmap.tobytes() for sketch in sketches]
    widths = [None if sketch.bitmap is None else sketch.line_width for sketch in sketches]
    columns = [
        pa.array(ids, pa.string()),
        pa.array(labels, pa.int32()),
        pa.array(np.zeros(len(ids), dtype=np.int8)),
        pa.ListArray.from_arrays(pa.array(outer_ends), inner, mask=no_strokes),
        pa.array(bitmaps, pa.binary(BITMAP_BYTES)),
        pa.array(widths, pa.float32()),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def open_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Open a file for rows: bitmaps in a fast compression, the rest in a tight one."""
    compression = {name: "lz4" if name == "bitmap" else "zstd" for name in _leaves(schema)}
    dictionary = [name for name in _leaves(schema) if name not in ("bitmap", "line_width")]
    return pq.ParquetWriter(
        path,
        schema,
        compression=compression,
        use_dictionary=dictionary,
        write_statistics=["label", "fold", "line_width"],
    )


def rows_per_group(table: pa.Table) -> int:
    """How many rows are read at a time to get one: few if they are bitmaps, which are large."""
    return 8 if table.column("bitmap").null_count < len(table) else 128


def _leaves(schema: pa.Schema) -> list[str]:
    """Name a schema's columns as Parquet does."""
    return ["strokes.list.element.list.element" if name == "strokes" else name for name in schema.names]


def _open(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path, memory_map=True, pre_buffer=False)
    except FileNotFoundError:
        raise InputError(f"'{path}' is not there: make it with 'dabnet data prepare'.") from None
    except (pa.ArrowException, OSError, ValueError) as problem:
        raise InputError(f"'{path}' is not a whole Parquet file ({_first_line(problem)}): prepare it again.") from None


def _group_sizes(path: Path, file: pq.ParquetFile) -> list[int]:
    """Count the rows of each row group."""
    found = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
    if any(size < 0 for size in found) or sum(found) != file.metadata.num_rows:
        raise InputError(f"'{path}' is damaged (its groups have other rows than it says): prepare it again.")
    return found


def _info(path: Path, file: pq.ParquetFile) -> SetInfo:
    metadata = (file.schema_arrow.metadata or {}).get(b"dabnet")
    if metadata is None or file.schema_arrow.remove_metadata() != SCHEMA:
        raise InputError(f"'{path}' is not a set that dabnet prepared: make one with 'dabnet data prepare'.")
    try:
        return SetInfo.from_json(metadata)
    except InputError as error:
        raise InputError(f"'{path}': {error}") from None


def _one_chunk(column: pa.ChunkedArray) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _first_line(problem: Exception) -> str:
    return str(problem).splitlines()[0].rstrip(".") if str(problem) else type(problem).__name__
