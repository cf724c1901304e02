"""From a source to a prepared set: every core reads pieces, and what was read is never read again.

Each piece becomes a file in OUTPUT.partial; a run that was stopped goes on with the pieces that are missing. When all
are there, the folds are dealt out and the pieces are merged into one file, or a folder of shards if it is a large set.
"""

from __future__ import annotations

import functools
import json
import shutil
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dabnet._files import beside_name, open_beside, write_beside
from dabnet._text import encodable
from dabnet._workers import WorkersDiedError, count_cores, work_in_processes
from dabnet.errors import InputError
from dabnet.sketches.alone import only_writer
from dabnet.sketches.folds import TRAIN_ONLY, stratified_folds
from dabnet.sketches.raster import Raster
from dabnet.sketches.sources.union import UnionSource
from dabnet.sketches.store import SCHEMA, SetInfo, make_table, open_writer, rows_per_group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from dabnet.sketches.sources.source import Source

SHARD_ROWS = 200_000
REPORTED = 1_000
"""How many unreadable drawings a set remembers by name."""
PART_SCHEMA = pa.schema(
    [
        *SCHEMA,
        ("given_fold", pa.int8()),
        ("group", pa.string()),
        ("own_label", pa.int32()),
        ("member", pa.int8()),
    ]
)


@dataclass(frozen=True)
class Prepared:
    """What came of it."""

    path: Path
    drawings: int
    classes: int
    left_out: list[tuple[str, str]]
    bytes: int
    resumed: int
    """Pieces that an earlier run had read."""


def prepare(
    source: Source,
    output: Path,
    *,
    raster: Raster | None = None,
    folds: int | Sequence[int] | None = None,
    seed: int = 0,
    workers: int | None = None,
    shard_rows: int = SHARD_ROWS,
    progress: Callable[[int, int, int], None] | None = None,
) -> Prepared:
    """Read all of a source into a prepared set at `output`; `progress` gets pieces done, all pieces, drawings read.

    `folds` is how many folds to deal the drawings into where the source has none of its own; for a union, one number
    for each source, 0 for a source that is for training only.
    """
    counts = _fold_counts(source, folds)
    with only_writer(output):
        return _prepare(source, output, raster or Raster(), counts, seed, workers, shard_rows, progress)


def _prepare(
    source: Source,
    output: Path,
    raster: Raster,
    counts: list[int],
    seed: int,
    workers: int | None,
    shard_rows: int,
    progress: Callable[[int, int, int], None] | None,
) -> Prepared:
    if output.exists():
        raise InputError(f"'{output}' is already there: delete it first, or write to another file with -o.")
    partial = output.with_name(output.name + ".partial")
    parts = [partial / f"piece-{piece:06d}.parquet" for piece in range(len(source))]
    _begin(partial, source)
    there = {piece: _count_rows(part) for piece, part in enumerate(parts) if part.exists()}
    missing = [piece for piece in range(len(parts)) if there.get(piece) is None]
    resumed = len(parts) - len(missing)
    drawings = sum(count or 0 for count in there.values())
    try:
        if progress:
            progress(resumed, len(parts), drawings)
        for done, count in enumerate(_read_pieces(source, missing, parts, workers or count_cores()), start=1):
            drawings += count
            if progress:
                progress(resumed + done, len(parts), drawings)
    except WorkersDiedError:
        hint = "perhaps memory ran out: run the same command again, with fewer --workers"
        raise InputError(f"one process after another was ended while it read; {hint}.") from None
    except OSError as problem:
        raise InputError(f"the work stopped ({problem}): see to that, and run the same command again.") from None

    left_out = [problem for part in parts for problem in _left_out(part)]
    if not drawings:
        shutil.rmtree(partial)
        why = f" (the first: {left_out[0][0]}: {left_out[0][1]})" if left_out else ""
        raise InputError(f"'{source.path}' holds no drawing that can be read{why}.")
    table = pa.concat_tables(
        pq.read_table(part, columns=["given_fold", "group", "own_label", "member"]) for part in parts
    )
    dealt = _deal_each(table, counts, seed)
    info = SetInfo(source.title, source.licence, source.classes, raster, left_out[:REPORTED], _count(table, source))
    _merge(parts, dealt, info, output, shard_rows)
    shutil.rmtree(partial)
    size = sum(file.stat().st_size for file in ([output] if output.is_file() else output.iterdir()))
    return Prepared(output, drawings, len(source.classes), left_out, size, resumed)


def _begin(partial: Path, source: Source) -> None:
    """Make the folder for pieces; one that was begun with something else is emptied first."""
    plan = partial / "plan.json"
    fingerprint = source.fingerprint()
    begun = json.dumps(fingerprint).encode()
    try:
        if partial.exists() and (not plan.exists() or plan.read_bytes() != begun):
            shutil.rmtree(partial)
        partial.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"cannot write to '{partial}' ({problem}): choose another place with -o.") from None
    write_beside(plan, begun)


def _read_pieces(source: Source, missing: list[int], parts: list[Path], workers: int) -> Iterator[int]:
    """Read pieces, each to its file, and yield the number of drawings of each."""
    if workers == 1 or len(missing) < 2:
        for piece in missing:
            yield _read_piece(source, parts, piece)
        return
    read = functools.partial(_read_piece, source, parts)
    yield from work_in_processes(read, missing, workers)


def _read_piece(source: Source, parts: list[Path], piece: int) -> int:
    """Read a piece into a file; what cannot be read is noted in its metadata."""
    drawings = list(source.read(piece))
    good = [drawing for drawing in drawings if not isinstance(drawing.sketch, InputError)]
    problems = [
        (encodable(drawing.id), encodable(str(drawing.sketch)))
        for drawing in drawings
        if isinstance(drawing.sketch, InputError)
    ]
    table = make_table(
        [encodable(drawing.id) for drawing in good],
        [drawing.label for drawing in good],
        [drawing.sketch for drawing in good if not isinstance(drawing.sketch, InputError)],
    )
    groups = [drawing.group and encodable(drawing.group) for drawing in good]
    table = table.append_column(PART_SCHEMA.field("given_fold"), pa.array([d.fold for d in good], pa.int8()))
    table = table.append_column(PART_SCHEMA.field("group"), pa.array(groups, pa.string()))
    own = [d.label if d.own_label is None else d.own_label for d in good]
    table = table.append_column(PART_SCHEMA.field("own_label"), pa.array(own, pa.int32()))
    table = table.append_column(PART_SCHEMA.field("member"), pa.array([d.member for d in good], pa.int8()))
    table = table.replace_schema_metadata({"left_out": json.dumps(problems)})
    with open_beside(parts[piece], "run the same command again") as file:
        pq.write_table(table, file, compression="lz4", use_dictionary=["label"], write_statistics=False)
    return len(good)


def _count_rows(part: Path) -> int | None:
    """Count the drawings of a piece that was read before; None if it must be read again."""
    try:
        return int(pq.read_metadata(part).num_rows)
    except (pa.ArrowException, OSError, ValueError):
        return None


def _left_out(part: Path) -> list[tuple[str, str]]:
    metadata = pq.read_schema(part).metadata or {}
    return [(name, reason) for name, reason in json.loads(metadata[b"left_out"])]


def _fold_counts(source: Source, folds: int | Sequence[int] | None) -> list[int]:
    """Return how many folds each source is dealt into; 0 is for training only."""
    members = source.members if isinstance(source, UnionSource) else [source]
    if folds is None:
        return [member.folds for member in members]
    counts = [folds] * len(members) if isinstance(folds, int) else list(folds)
    if len(counts) != len(members):
        raise InputError(f"there are {len(members)} sources and {len(counts)} numbers of folds: give one for each.")
    if not any(counts):
        raise InputError("every source is for training only: let at least one have folds to test on.")
    return counts


def _count(table: pa.Table, source: Source) -> list[tuple[str, int]]:
    """Count the drawings of each source of a union."""
    if not isinstance(source, UnionSource):
        return []
    counts = np.bincount(table.column("member").to_numpy(), minlength=len(source.members))
    return [(member.title, int(count)) for member, count in zip(source.members, counts, strict=True)]


def _deal_each(table: pa.Table, counts: list[int], seed: int) -> NDArray[np.int8]:
    """Deal the drawings of each source by its own classes, so that its folds are those it has when prepared alone."""
    members = table.column("member").to_numpy()
    dealt = np.full(len(table), TRAIN_ONLY, dtype=np.int8)
    for member, folds in enumerate(counts):
        mine = members == member
        if folds and mine.any():
            dealt[mine] = _deal(table.filter(pa.array(mine)), folds, seed)
    return dealt


def _deal(table: pa.Table, folds: int, seed: int) -> NDArray[np.int8]:
    """Return every drawing's fold: the one its source names, or one dealt out by class and group."""
    labels = table.column("own_label").to_numpy()
    given = table.column("given_fold")
    groups = table.column("group")
    names = groups.to_numpy().astype(str) if groups.null_count == 0 else None
    if given.null_count == 0:
        return np.asarray(given.to_numpy())
    if given.null_count == len(given):
        return stratified_folds(labels, folds, seed, names)
    # The source names some: those keep their fold, and the others share the folds that are left.
    known = given.is_valid().to_numpy()
    dealt: NDArray[np.int8] = given.fill_null(0).to_numpy().copy()
    taken = int(dealt[known].max()) + 1
    rest = None if names is None else names[~known]
    dealt[~known] = taken + stratified_folds(labels[~known], max(1, folds - taken), seed, rest)
    return dealt


def _merge(parts: list[Path], folds: NDArray[np.int8], info: SetInfo, output: Path, shard_rows: int) -> None:
    """Merge the pieces into one file, or into a folder of shards."""
    schema = SCHEMA.with_metadata({"dabnet": info.to_json()})
    sharded = len(folds) > shard_rows
    writer, shard, row, in_shard = None, 0, 0, 0
    with _becoming(output) as beside:
        if sharded:
            beside.mkdir()
        for part in parts:
            table = pq.read_table(part, columns=SCHEMA.names)
            fold = pa.array(folds[row : row + len(table)])
            table = table.set_column(SCHEMA.get_field_index("fold"), SCHEMA.field("fold"), fold)
            row += len(table)
            for batch in (table.slice(start, shard_rows) for start in range(0, len(table), shard_rows)):
                if writer is not None and in_shard + len(batch) > shard_rows:
                    writer.close()
                    writer, shard, in_shard = None, shard + 1, 0
                if writer is None:
                    writer = open_writer(beside / f"{shard:05d}.parquet" if sharded else beside, schema)
                writer.write_table(batch.replace_schema_metadata(schema.metadata), row_group_size=rows_per_group(batch))
                in_shard += len(batch)
        if writer is not None:
            writer.close()


@contextmanager
def _becoming(output: Path) -> Iterator[Path]:
    """Return a name for a file or folder that becomes the output at the end, or nothing if something goes wrong."""
    beside = beside_name(output)
    try:
        yield beside
        beside.replace(output)
    except OSError as problem:
        raise InputError(f"cannot write '{output}' ({problem}): make room, and run the same command again.") from None
    finally:
        with suppress(OSError):  # it is there only if something went wrong
            shutil.rmtree(beside) if beside.is_dir() else beside.unlink()
