"""`RecognizeBatch`: from an Arrow batch with drawings to one with labels, for any engine that hands batches out."""

from __future__ import annotations

import atexit
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dabnet.distributed.columns import ColumnReader, drawing_columns
from dabnet.errors import InputError
from dabnet.runtime.recognizer import Recognizer
from dabnet.runtime.session import DEFAULT_MAX_WORK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import PathLike

ROWS = 1024
"""Rows that are read together: any number of them takes no more memory than this."""
GUESS = pa.struct([("label", pa.string()), ("probability", pa.float64())])
ANSWERS = (
    pa.field("label", pa.string()),
    pa.field("probability", pa.float64()),
    pa.field("top", pa.list_(GUESS)),
    pa.field("error", pa.string()),
)
"""What is added to a batch's other columns; all but `error` are null where there is one."""
GIVEN = "given_"
"""What the name of another column begins with afterwards, if it is that of an answer."""


class RecognizeBatch:
    """Recognizes the drawings of Arrow batches, on one thread; it goes to other processes with the model's bytes.

    Args:
        model: a path, the bytes of a file, or the name of a model that ships; by default the one that is the default.
        top: how many guesses `top` has.
        max_work: multiply-adds that the model may take for a drawing; see `Session`.

    A batch has its drawings in a column `drawing` or `strokes` (lists of lists of numbers, or JSON) or `image` (a
    picture's bytes). The result has the other columns, and `label`, `probability`, `top` and `error`.

    >>> batch = pa.record_batch({"key": [7, 8], "drawing": [[[[0, 90, 50], [0, 0, 80]]], [[[5], [5]]]]})
    >>> answers = RecognizeBatch(top=2)(batch)
    >>> answers.schema.names
    ['key', 'label', 'probability', 'top', 'error']
    >>> answers["error"].to_pylist()
    [None, 'the drawing is a single point: it needs at least two different ones.']
    """

    def __init__(
        self,
        model: str | PathLike[str] | bytes | None = None,
        top: int = 5,
        *,
        max_work: float = DEFAULT_MAX_WORK,
    ) -> None:
        if not hasattr(top, "__index__") or top < 1:
            raise InputError(f"an answer has at least one label: top must be 1 or more, not {top!r}.")
        recognizer = Recognizer.load(model, max_work=max_work)  # a file that is refused is refused here
        self.model, self.top, self.max_work = recognizer.session.data, int(top), max_work

    @property
    def recognizer(self) -> Recognizer:
        """The model, which a process opens once however often it is handed over."""
        return _open(self.model, self.max_work)

    def __call__(self, batch: Any) -> Any:
        """Return a `RecordBatch` for a `RecordBatch`, and a `Table` for a `Table`."""
        if isinstance(batch, pa.Table):
            return pa.Table.from_batches(self.stream(batch.to_batches(), batch.schema), answer_schema(batch.schema))
        if not isinstance(batch, pa.RecordBatch):
            raise InputError(f"a {type(batch).__name__} is not an Arrow batch: ask the engine for batches of pyarrow.")
        parts = list(self.stream([batch]))
        return parts[0] if len(parts) == 1 else pa.concat_batches(parts)

    def stream(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the answers to batches that follow one another, `ROWS` at a time; so Spark's `mapInArrow` takes it."""
        reader, answers = None, None
        for batch in batches:
            if reader is None:
                reader, answers = ColumnReader(schema or batch.schema), answer_schema(schema or batch.schema)
            for start in range(0, max(batch.num_rows, 1), ROWS):
                yield self._recognize(batch.slice(start, ROWS), reader, answers)

    def _recognize(self, rows: pa.RecordBatch, reader: ColumnReader, schema: pa.Schema) -> pa.RecordBatch:
        read = reader.read(rows)
        found = self.recognizer.answer(read, self.top)
        ranked = [found.get(row) for row in range(rows.num_rows)]
        errors = [str(read.errors[row]) if row in read.errors else None for row in range(rows.num_rows)]
        columns = [
            *(rows.column(at) for at, name in enumerate(rows.schema.names) if name not in reader.columns),
            pa.array([answer and answer[0][0] for answer in ranked], pa.string()),
            pa.array([answer and answer[0][1] for answer in ranked], pa.float64()),
            _top_column(ranked),
            pa.array(errors, pa.string()),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def __repr__(self) -> str:
        return f"RecognizeBatch(<{len(self.model):,} bytes>, top={self.top})"


def answer_schema(schema: pa.Schema) -> pa.Schema:
    """Return what the answers to batches of a schema look like; an `InputError` if these have no drawings."""
    drawings, answers = drawing_columns(schema), [field.name for field in ANSWERS]
    kept = [schema.field(at) for at, name in enumerate(schema.names) if name not in drawings]
    kept = [field.with_name(GIVEN + field.name) if field.name in answers else field for field in kept]
    for name in {field.name for field in kept if [other.name for other in kept].count(field.name) > 1}:
        raise InputError(f"there would be two columns '{name}': rename one of them.")
    return pa.schema([*kept, *ANSWERS])


@lru_cache(maxsize=4)
def _open(model: bytes, max_work: float) -> Recognizer:
    return Recognizer.load(model, max_work=max_work)


atexit.register(_open.cache_clear)  # native objects that outlive Python are reported as leaks


def _top_column(ranked: list[list[tuple[str, float]] | None]) -> pa.Array:
    guesses = [guess for answer in ranked if answer for guess in answer]
    values = pa.StructArray.from_arrays(
        [
            pa.array([label for label, _ in guesses], pa.string()),
            pa.array([chance for _, chance in guesses], pa.float64()),
        ],
        fields=list(GUESS),
    )
    ends, offsets = 0, [0]
    for answer in ranked:
        ends += len(answer or ())
        offsets.append(ends)
    is_null = pa.array([answer is None for answer in ranked], pa.bool_())
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=is_null)
