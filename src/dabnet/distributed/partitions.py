"""Partitions: the pieces of files that workers recognize one by one, each of which becomes one file of answers.

A partition of a Parquet file is so many rows, and of lines of JSON so many bytes. How files are cut depends on nothing
but them and the wanted size, so a command that is run again finds what it wrote before. A file of answers says in its
footer, in a JSON entry `dabnet`, what it is the answers to, and counts them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from dabnet._text import encodable
from dabnet.distributed.recognize_batch import answer_schema
from dabnet.errors import InputError
from dabnet.sketches.files import parse_json
from dabnet.sketches.quickdraw import find_lines
from dabnet.sketches.stream import LISTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PARQUET = ".parquet"
LINE_BYTES = 512
"""What a line of JSON is taken to have, when a partition's bytes are chosen."""
READ_ROWS = 1024
"""Rows of a partition that are in memory at once."""
LINE_SCHEMA = pa.schema(
    [
        ("offset", pa.int64()),
        ("key_id", pa.string()),
        ("word", pa.string()),
        ("countrycode", pa.string()),
        ("timestamp", pa.string()),
        ("recognized", pa.bool_()),
        ("drawing", pa.binary()),
    ]
)
"""What a line of JSON becomes: where it begins, Quick, Draw!'s fields, and the line itself."""
FOOTER = b"dabnet"


class Partition(NamedTuple):
    """A piece of a file, and where its answers go."""

    source: str
    size: int
    """The bytes of the whole file."""
    first: int
    end: int
    """Rows of a Parquet file, or bytes that lines begin at."""
    output: str

    @property
    def drawings(self) -> int:
        """How many there are, about."""
        count = self.end - self.first
        return count if self.source.endswith(PARQUET) else count // LINE_BYTES


class Outcome(NamedTuple):
    """What became of a partition."""

    output: str
    drawings: int
    errors: int
    labels: dict[str, int]
    """How many drawings got each label."""


def plan_partitions(sources: Sequence[str], folder: Path, drawings: int) -> list[Partition]:
    """Cut files, and the files of folders, into partitions; an `InputError` says which file cannot be read, and why."""
    partitions: list[Partition] = []
    stems: dict[str, Path] = {}
    schema = None
    for path in _find_files(sources):
        if path.stem in stems:
            both = f"'{stems[path.stem]}' and '{path}'"
            raise InputError(f"{both} would be answered in files of the same name: recognize them into two folders.")
        stems[path.stem] = path
        found, pieces = _cut(path, drawings)
        schema = schema or found
        if found != schema:
            first = next(iter(stems.values()))
            raise InputError(f"'{path}' has other columns than '{first}': recognize them into two folders.")
        size = path.stat().st_size
        partitions += [
            Partition(str(path), size, *piece, str(folder / f"{path.stem}-{number:05}{PARQUET}"))
            for number, piece in enumerate(pieces)
        ]
    return partitions


def read_partition(partition: Partition) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a partition, some at a time."""
    try:
        if partition.source.endswith(PARQUET):
            yield from _read_rows(partition)
        else:
            yield from _read_lines(partition)
    except (pa.ArrowException, OSError) as problem:
        reason = str(problem).partition("\n")[0]
        where = f"from {partition.first:,} to {partition.end:,}"
        raise InputError(f"'{partition.source}' cannot be read {where} ({reason}): mend it, or leave it out.") from None


def write_outcome(outcome: Outcome, partition: Partition, made_with: dict[str, Any]) -> dict[bytes, str]:
    """Return the footer's entry of a partition's answers."""
    counts = {"drawings": outcome.drawings, "errors": outcome.errors, "labels": outcome.labels}
    return {FOOTER: json.dumps({**_identity(partition), **made_with, **counts})}


def read_outcome(partition: Partition, made_with: dict[str, Any]) -> Outcome | None:
    """Return what became of a partition, None if it is still to be done; refuse answers to something else."""
    path = Path(partition.output)
    if not path.exists():
        return None
    wrong = f"'{path}' is there, and is not what this command writes"
    try:
        said = json.loads((pq.read_metadata(path).metadata or {})[FOOTER])
        for name, value in {**_identity(partition), **made_with}.items():
            if said[name] != value:
                differs = f"its {name} is {said[name]!s:.20}, not {value!s:.20}"
                raise InputError(f"{wrong} ({differs}): choose another folder.")
        return Outcome(str(path), int(said["drawings"]), int(said["errors"]), dict(said["labels"]))
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(f"{wrong}: choose another folder, or delete it.") from None


def _identity(partition: Partition) -> dict[str, Any]:
    source, size, first, end, _ = partition
    return {"source": Path(source).name, "size": size, "first": first, "end": end}


def _find_files(sources: Sequence[str]) -> list[Path]:
    known = (PARQUET, *LISTS)
    found: list[Path] = []
    for source in sources:
        path = Path(source).absolute()
        inside = sorted(file for file in path.glob("*") if file.suffix in known) if path.is_dir() else [path]
        wrong = [file for file in inside if file.suffix not in known]
        if wrong or not inside:
            named = ", ".join(known)
            raise InputError(f"'{source}' is no list of drawings: with -o, give files that end in {named}, or folders.")
        found += inside
    return found


def _cut(path: Path, drawings: int) -> tuple[pa.Schema, list[tuple[int, int]]]:
    """Return what the answers of a file look like, and the first row, or byte, and the end of each of its pieces."""
    try:
        if path.suffix != PARQUET:
            path.open("rb").close()
            return answer_schema(LINE_SCHEMA), _pieces(0, path.stat().st_size, drawings * LINE_BYTES)
        with pq.ParquetFile(path) as file:
            schema, start = answer_schema(file.schema_arrow.remove_metadata()), 0
            pieces: list[tuple[int, int]] = []
            for number in range(file.num_row_groups):
                rows = file.metadata.row_group(number).num_rows
                # A piece ends where a row group does, if it can, since a group is read from its beginning.
                if pieces and start + rows - pieces[-1][0] <= drawings:
                    pieces[-1] = (pieces[-1][0], start + rows)
                else:
                    pieces += _pieces(start, start + rows, drawings)
                start += rows
            return schema, pieces
    except FileNotFoundError:
        raise InputError(f"'{path}' is not there: check the path.") from None
    except InputError as problem:
        raise InputError(f"{path}: {problem}") from None
    except (pa.ArrowException, OSError) as problem:
        reason = str(problem).partition("\n")[0]
        raise InputError(f"'{path}' cannot be read ({reason}): mend it, or leave it out.") from None


def _pieces(start: int, end: int, most: int) -> list[tuple[int, int]]:
    return [(first, min(first + most, end)) for first in range(start, end, most)]


def _read_rows(partition: Partition) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(partition.source) as file:
        groups, start, begin = [], 0, None
        for number in range(file.num_row_groups):
            rows = file.metadata.row_group(number).num_rows
            if start < partition.end and partition.first < start + rows:
                groups.append(number)
                begin = start if begin is None else begin
            start += rows
        at = begin or 0
        for batch in file.iter_batches(READ_ROWS, row_groups=groups, use_threads=False):
            first, end = max(partition.first - at, 0), min(partition.end - at, batch.num_rows)
            if first < end:
                yield batch.slice(first, end - first)
            at += batch.num_rows
            if at >= partition.end:
                return


def _read_lines(partition: Partition) -> Iterator[pa.RecordBatch]:
    rows: list[dict[str, Any]] = []
    with Path(partition.source).open("rb") as file:
        for offset, line in find_lines(file, partition.first, partition.end):
            rows.append({"offset": offset, **_fields(line), "drawing": line})
            if len(rows) == READ_ROWS:
                yield pa.RecordBatch.from_pylist(rows, LINE_SCHEMA)
                rows = []
    yield pa.RecordBatch.from_pylist(rows, LINE_SCHEMA)


def _fields(line: bytes) -> dict[str, Any]:
    """Return Quick, Draw!'s fields of a line; None for what is something else."""
    try:
        record = parse_json(line, None)
    except InputError:  # which recognizing it will tell
        return {}
    fields: dict[str, Any] = {}
    for name in ("key_id", "word", "countrycode", "timestamp"):
        value = record.get(name) if isinstance(record, dict) else None
        fields[name] = str(value) if isinstance(value, int) else encodable(value) if isinstance(value, str) else None
    recognized = record.get("recognized") if isinstance(record, dict) else None
    return {**fields, "recognized": recognized if isinstance(recognized, bool) else None}
