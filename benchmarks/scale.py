"""How many drawings per second and core beside a bare loop, on this machine's cores and on Ray.

    python -m benchmarks.scale [--data quickdraw.parquet] [--drawings 200000] [--workers 1,2]

Needs what `make test-scale` installs. A bare loop is a process per worker that recognizes strokes which are in memory
already, and keeps nothing. Then the same drawings go through `RecognizeBatch` alone, and from a Parquet file through
`dabnet recognize -o` with each engine, from the shell's command to its end; Ray runs on two nodes with a core each,
both on 127.0.0.1. Where other work takes the processor, the seconds that were spent on it tell more than those that
went by: both are shown. Those of an engine include all of Ray's processes, and starting them; the bare loop's do not.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.record import write_results
from dabnet.distributed import RecognizeBatch
from dabnet.distributed.columns import ColumnReader
from dabnet.runtime import Recognizer
from dabnet.sketches import SketchSet
from dabnet.sketches.synthetic import synthetic_strokes
from tests.scale.cluster import Nodes, two_nodes

KIND = pa.list_(pa.list_(pa.list_(pa.int16())))
ROWS_PER_GROUP = 16_384
LOOP_DRAWINGS = 20_000
MINUTES = 60
"""That a command may take."""


class Rate(NamedTuple):
    """Drawings per second."""

    clock: float
    """That went by, and per core."""
    processor: float
    """That was spent on it, which other work on the machine changes little."""


class Run(NamedTuple):
    """What the command told at its end, and what it took."""

    summary: dict[str, Any]
    seconds: float
    processor_seconds: float
    """Of the command, its workers and all of Ray."""
    others: float
    """What other work took meanwhile, as a share of what this machine has: if it is much, `seconds` tell nothing."""
    answer_bytes: int

    def rate(self, workers: int) -> Rate:
        """Return its drawings per second, and per second of the processor."""
        drawings = self.summary["drawings"]
        return Rate(drawings / self.seconds / workers, drawings / self.processor_seconds)

    def figures(self) -> dict[str, Any]:
        """Return what is kept of it."""
        return {name: value for name, value in self._asdict().items() if name != "summary"}


def read_drawings(data: Path | None) -> list[Any]:
    """Return the drawings of a prepared set, or some made by a program, in Quick, Draw!'s form."""
    prepared = None if data is None else SketchSet(data)
    sketches = synthetic_strokes(2000)[0] if prepared is None else (prepared[row] for row in range(len(prepared)))
    return [[np.round(stroke).astype(np.int16).T.tolist() for stroke in sketch.strokes] for sketch in sketches]


def write_drawings(drawings: list[Any], rows: int, path: Path) -> None:
    """Write so many, again from the first when there are no more: `key` is the row, and `drawing` the drawing."""
    column = pa.array(drawings, KIND)
    schema = pa.schema([("key", pa.int64()), ("drawing", KIND)])
    numbers = np.arange(rows)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for start in range(0, rows, ROWS_PER_GROUP):
            keys = numbers[start : start + ROWS_PER_GROUP]
            writer.write_table(pa.table([pa.array(keys), column.take(pa.array(keys % len(drawings)))], schema))


def choose(drawings: list[Any]) -> list[Any]:
    """Return `LOOP_DRAWINGS` of them, of all classes where they stand class by class."""
    return [drawings[number * len(drawings) // LOOP_DRAWINGS] for number in range(LOOP_DRAWINGS)]


def run_loops(drawings: list[Any], workers: int, seconds: float = 15.0) -> Rate:
    """Return the mean rate of so many bare loops at a time."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(workers) as pool:
        rates = pool.starmap(_loop, [(choose(drawings), seconds)] * workers, chunksize=1)
    return mean_rate(rates)


def mean_rate(rates: Sequence[Rate]) -> Rate:
    """Return the mean of some rates."""
    return Rate(*(statistics.mean(each) for each in zip(*rates, strict=True)))


def _loop(drawings: list[Any], seconds: float) -> Rate:
    rows = pa.record_batch({"drawing": pa.array(drawings, KIND)})
    recognizer = Recognizer.load()
    batches = [ColumnReader(rows.schema).read(rows.slice(at, 1024)) for at in range(0, len(rows), 1024)]
    return _repeat(lambda number: len(recognizer.answer(batches[number % len(batches)])), seconds)


def run_callable(drawings: list[Any], seconds: float = 15.0) -> Rate:
    """Return the rate of `RecognizeBatch`, given Arrow batches."""
    rows = pa.record_batch({"drawing": pa.array(choose(drawings), KIND)})
    batches = [rows.slice(at, 1024) for at in range(0, len(rows), 1024)]
    recognize = RecognizeBatch()
    return _repeat(lambda number: int(recognize(batches[number % len(batches)]).num_rows), seconds)


def _repeat(work: Callable[[int], int], seconds: float) -> Rate:
    begun, spent, drawings = time.perf_counter(), time.process_time(), 0
    for number in count():
        drawings += work(number)
        if time.perf_counter() - begun > seconds:
            break
    return Rate(drawings / (time.perf_counter() - begun), drawings / (time.process_time() - spent))


def run_engine(path: Path, out: Path, workers: int, *options: str, nodes: Nodes | None = None) -> Run:
    """Run the command from start to end, into a folder."""
    command = [sys.executable, "-m", "dabnet", "recognize", str(path), "-o", str(out), "--workers", str(workers)]
    begun, before = time.perf_counter(), machine_seconds()
    with subprocess.Popen([*command, "--json", *options], stdout=subprocess.PIPE, text=True) as process:
        try:
            with watching(process.pid, *([] if nodes is None else [nodes.process])) as spent:
                told = process.communicate(timeout=60 * MINUTES)[0]
        finally:
            process.kill()  # which does nothing to one that has ended
    assert process.returncode == 0
    seconds, others = time.perf_counter() - begun, machine_seconds() - before - spent()
    size = sum(file.stat().st_size for file in out.glob("*.parquet"))
    return Run(json.loads(told), seconds, spent(), others / (seconds * (os.cpu_count() or 1)), size)


def machine_seconds() -> float:
    """Return what all processes of this machine, and its host, have taken of the processors so far."""
    user, nice, system, _, _, *more = map(int, Path("/proc/stat").read_text().split()[1:9])  # in between: idle
    return (user + nice + system + sum(more)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def watching(*roots: int) -> Iterator[Callable[[], float]]:
    """Count what processes, and all that they start, take of the processor; yields what tells it.

    They are looked at twice a second: of a process that ends, nobody knows afterwards, since Ray does not wait for its.
    """
    before = _tree_seconds(roots)
    seen = dict(before)
    is_over = threading.Event()

    def look() -> None:
        while not is_over.wait(0.5):
            seen.update(_tree_seconds(roots))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield lambda: sum(seen.values()) - sum(before.values())
    finally:
        is_over.set()
        thread.join()
        seen.update(_tree_seconds(roots))


def _tree_seconds(roots: Sequence[int]) -> dict[int, float]:
    """Return what each process, and each that it started, has taken so far, by its number."""
    found, waiting = {}, list(roots)
    while waiting:
        pid = waiting.pop()
        with suppress(OSError):  # it has just ended
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            found[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            for task in Path(f"/proc/{pid}/task").glob("*"):
                waiting += map(int, (task / "children").read_text().split())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a prepared set of strokes; left out, drawings made by a program")
    parser.add_argument("--drawings", type=int, default=200_000)
    parser.add_argument("--workers", default="1,2")
    arguments = parser.parse_args()
    console = Console()
    drawings = read_drawings(arguments.data)
    figures: dict[str, Any] = {"data": arguments.data and arguments.data.name, "drawings": arguments.drawings}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "drawings.parquet")
        write_drawings(drawings, arguments.drawings, path)
        figures["bytes_per_drawing"] = path.stat().st_size / arguments.drawings
        figures |= compare_rates(drawings, path, list(map(int, arguments.workers.split(","))), console)
    written = write_results("scale", figures)
    console.print(f"Written to {written.relative_to(written.parents[2])}")


def compare_rates(drawings: list[Any], path: Path, counts: list[int], console: Console) -> dict[str, Any]:
    """Run everything with so many workers each, and tell what share of the bare loop's rate each has."""
    figures: dict[str, Any] = {"rates": {}, "runs": {}}
    table = Table("workers", "what", "per second and core", "share", "per second of the processor", "share")
    for workers in counts:
        before, alone = run_loops(drawings, workers), run_callable(drawings) if workers == 1 else None
        runs = run_engines(path, workers)
        bare = mean_rate([before, run_loops(drawings, workers)])
        rates = {"bare loop": bare, **({"RecognizeBatch": alone} if alone else {})}
        rates |= {name: run.rate(workers) for name, run in runs.items()}
        for name, rate in rates.items():
            cells = [(f"{each:,.0f}", f"{each / other:.0%}") for each, other in zip(rate, bare, strict=True)]
            table.add_row(str(workers), name, *cells[0], *cells[1])
        figures["rates"][workers] = {name: rate._asdict() for name, rate in rates.items()}
        figures["runs"][workers] = {name: run.figures() for name, run in runs.items()}
    console.print(table)
    return figures


def run_engines(path: Path, workers: int) -> dict[str, Run]:
    """Run the command with each engine."""
    with tempfile.TemporaryDirectory() as folder:
        runs = {"local": run_engine(path, Path(folder, "local"), workers)}
        with two_nodes() as nodes:
            options = ("--engine", "ray", "--address", nodes.address)
            runs["ray"] = run_engine(path, Path(folder, "ray"), workers, *options, nodes=nodes)
    return runs


if __name__ == "__main__":
    main()
