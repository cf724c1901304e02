"""From columns of Arrow to drawings that were read together, row by row.

Strokes come as lists of lists of numbers, in one of two forms:

    points        [[[x, y], ...], ...]              every innermost list has two numbers
    Quick, Draw!  [[[x, ...], [y, ...]], ...]       every stroke has two lists of the same length, or three with times

A column called `strokes` has points. One called `drawing` has what most drawings of its first batch have; short lines
fit both forms, and while there is nothing else, it is Quick, Draw!'s, which calls its column so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from dabnet.errors import InputError
from dabnet.sketches.batch import Batch
from dabnet.sketches.sketch import MAX_POINTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

DRAWINGS = ("drawing", "strokes", "image")
"""The columns that a drawing may be in, in the order in which they are looked at."""
ROW = "the row"
_STROKES = pa.large_list(pa.large_list(pa.large_list(pa.float64())))
_NOTHING = InputError("there is no drawing in this row: its columns are null.")


def drawing_columns(schema: pa.Schema) -> list[str]:
    """Return the names of a schema's columns with drawings; an `InputError` says what is wrong with them."""
    found = [name for name in DRAWINGS if name in schema.names]
    if not found:
        have = ", ".join(map(repr, schema.names[:10])) or "nothing"
        raise InputError(
            f"there is no column 'drawing', 'strokes' or 'image', but {have}: rename the one with drawings."
        )
    for name in found:
        if schema.names.count(name) > 1:
            raise InputError(f"there are two columns '{name}': rename one of them.")
        kind = schema.field(name).type
        if not (_is_bytes(kind) or pa.types.is_null(kind) or (name != "image" and _are_strokes(kind))):
            wanted = "bytes of a picture" if name == "image" else "lists of lists of numbers, or JSON"
            raise InputError(f"the column '{name}' has {kind}, and should have {wanted}: convert it first.")
    return found


class ColumnReader:
    """Reads the drawings of batches that follow one another and have the same columns."""

    def __init__(self, schema: pa.Schema) -> None:
        self.columns = drawing_columns(schema)
        self._has_points: bool | None = None
        """Whether the column `drawing` has points; None while nothing tells."""

    def read(self, rows: pa.RecordBatch) -> Batch:
        """Read the drawing of every row; what cannot be read is an error in the batch."""
        batch = Batch()
        columns = [self._open(rows.column(name), name) for name in self.columns]
        for row in range(rows.num_rows):
            column = next((column for column in columns if column.has[row]), None)
            if column is None:
                batch.fail(ROW, _NOTHING)
            else:
                column.add(row, batch)
        return batch

    def _open(self, column: pa.Array, name: str) -> _Bytes | _Strokes:
        if not _are_strokes(column.type):
            return _Bytes(column.is_valid().to_numpy(zero_copy_only=False), column)
        if name == "strokes":
            return _Strokes(column, has_points=True)
        if self._has_points is None:
            self._has_points = _tell_form(column)
        return _Strokes(column, bool(self._has_points))


class _Bytes(NamedTuple):
    """A column with the bytes of files: pictures, SVG or JSON."""

    has: NDArray[np.bool_]
    values: pa.Array

    def add(self, row: int, batch: Batch) -> None:
        # Never a text, which would be the path of a file, and need not be valid.
        batch.try_to_add(ROW, self.values[row].as_buffer().to_pybytes())


class _Strokes:
    """A column with strokes, as arrays that single drawings are cut from."""

    def __init__(self, column: pa.Array, has_points: bool) -> None:
        self.has = column.is_valid().to_numpy(zero_copy_only=False)
        self._values, self._has_points = column, has_points
        lists = _Lists(column)
        fits = lists.fit(has_points)
        row, first, count = lists.cut(fits, has_points)
        ends = count.cumsum()
        number = np.arange(count.sum()) - np.repeat(ends - count, count)  # (points,): of each in its stroke
        at = lists.number_at[first], lists.number_at[first] + 1 if has_points else lists.number_at[first + 1]
        self._points = np.empty((len(number), 2), dtype=np.float32)  # x, y of all strokes in turn
        with np.errstate(over="ignore"):
            for axis, begin in enumerate(at):
                self._points[:, axis] = lists.numbers[np.repeat(begin, count) + number * (2 if has_points else 1)]
        self._stroke_ends = ends
        self._stroke_at = np.concatenate([[0], np.bincount(row, minlength=len(column)).cumsum()])  # (rows + 1,)
        self._point_at = np.concatenate([[0], ends])[self._stroke_at]  # (rows + 1,)
        self._is_plain = fits & _can_be_drawn(self._points, self._point_at)

    def add(self, row: int, batch: Batch) -> None:
        if self._is_plain[row]:
            first, end = self._point_at[row], self._point_at[row + 1]
            ends = self._stroke_ends[self._stroke_at[row] : self._stroke_at[row + 1]] - first
            batch.strokes.add(self._points[first:end], ends)
            batch.names.append(ROW)
        else:  # a reader that tells what is wrong
            strokes = self._values[row].as_py()
            batch.try_to_add(ROW, strokes if self._has_points else {"drawing": strokes})


class _Lists:
    """The three levels of lists in a column, each by where its lists begin."""

    def __init__(self, column: pa.Array) -> None:
        self.stroke_at, strokes = _flatten(column.cast(_STROKES, safe=False))
        self.list_at, lists = _flatten(strokes)
        self.number_at, numbers = _flatten(lists)
        self.numbers = numbers.to_numpy(zero_copy_only=False)  # where a null is not a number
        self._row = _owners(self.stroke_at)  # (strokes,): whose each of them is
        self._is_null = strokes.is_null().to_numpy(zero_copy_only=False)
        self._is_null = self._is_null | ~_all_of(lists.is_valid().to_numpy(zero_copy_only=False), self.list_at)

    def fit(self, has_points: bool) -> NDArray[np.bool_]:
        """Say of each row whether its lists have the lengths of points, or of Quick, Draw!'s strokes."""
        lengths, count = np.diff(self.number_at), np.diff(self.list_at)
        if has_points:
            fits = _all_of(lengths == 2, self.list_at)
        else:
            firsts = lengths[self.list_at[:-1][count > 0]]
            fits = _all_of(lengths == np.repeat(firsts, count[count > 0]), self.list_at) & (count >= 2) & (count <= 3)
        found: NDArray[np.bool_] = _all_of(fits & ~self._is_null, self.stroke_at)
        return found & (np.diff(self.stroke_at) <= MAX_POINTS)

    def cut(self, fits: NDArray[np.bool_], has_points: bool) -> tuple[Integers, Integers, Integers]:
        """Return the row, the first list and the count of points of each stroke that has any, of rows that fit."""
        is_read = fits[self._row]
        row, first = self._row[is_read], self.list_at[:-1][is_read]
        count = np.diff(self.list_at)[is_read] if has_points else np.diff(self.number_at)[first]
        return row[count > 0], first[count > 0], count[count > 0]


def _tell_form(column: pa.Array) -> bool | None:
    """Say whether most drawings that fit one form only have points; None if there are none."""
    lists = _Lists(column)
    points, quickdraw = lists.fit(True), lists.fit(False)
    difference = int((points & ~quickdraw).sum()) - int((quickdraw & ~points).sum())
    return None if difference == 0 else difference > 0


def _can_be_drawn(points: NDArray[np.float32], point_at: Integers) -> NDArray[np.bool_]:
    """Say of each drawing whether it has two different points, not too many, and all of them finite."""
    is_first = np.logical_and.reduce(points == points[point_at[_owners(point_at)]], axis=1)
    is_finite = np.logical_and.reduce(np.isfinite(points), axis=1)
    count = np.diff(point_at)
    return ~_all_of(is_first, point_at) & _all_of(is_finite, point_at) & (count <= MAX_POINTS)


def _flatten(lists: Any) -> tuple[Integers, Any]:
    """Return where each list begins, and the last one ends, from 0 on; and what is in them."""
    offsets = lists.offsets.to_numpy()
    return offsets - offsets[0], lists.values.slice(offsets[0], offsets[-1] - offsets[0])


def _owners(begins: Integers) -> Integers:
    """Return the number of the list that each item is in."""
    return np.repeat(np.arange(len(begins) - 1), np.diff(begins))


def _all_of(holds: NDArray[np.bool_], begins: Integers) -> NDArray[np.bool_]:
    """Say of each list whether something holds for all of its items."""
    result = np.ones(len(begins) - 1, dtype=np.bool_)
    result[_owners(begins)[~holds]] = False
    return result


def _is_bytes(kind: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(test(kind) for test in tests)


def _are_strokes(kind: pa.DataType) -> bool:
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    for _ in range(3):
        if not any(test(kind) for test in tests):
            return False
        kind = kind.value_type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind))
