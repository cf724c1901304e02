"""How many drawings per second and core beside a bare loop, on this machine's cores and on Ray; is memory flat?

    python -m benchmarks.scale [--data quickdraw.parquet] [--drawings 200000] [--workers 1,2]
    python -m benchmarks.scale [--data quickdraw.parquet] --minutes 10

Needs what `make test-scale` installs. A bare loop is a process per worker that recognizes strokes which are in memory
already, and keeps nothing. Then the same drawings go through `RecognizeBatch` alone, and from a Parquet file through
`dabnet recognize -o` with each engine, from the shell's command to its end; Ray runs on two nodes with a core each,
both on 127.0.0.1. Where other work takes the processor, the seconds that were spent on it tell more than those that
went by: both are shown, and what is wanted is asked of the former, Ray's own processes included.

With --minutes, two workers of the local engine work for so long, and their memory is noted.
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
from itertools import count, cycle, islice
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

WANTED = 0.8
"""Of the bare loop's rate, per core."""
KIND = pa.list_(pa.list_(pa.list_(pa.int16())))
ROWS_PER_GROUP = 16_384
LOOP_DRAWINGS = 20_000
WATCHED_ROWS = 1024
"""Per partition while memory is watched: many partitions tell more than large ones."""
FLAT = 1.05
"""Memory is flat if its median in the last third is less than this many times that in the middle third."""


class Rate(NamedTuple):
    """Drawings per second."""

    clock: float
    """That went by, and per core."""
    processor: float
    """That was spent on it, which other work on the machine changes little."""


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


def run_loops(drawings: list[Any], workers: int, seconds: float = 15.0) -> Rate:
    """Return the mean rate of so many bare loops at a time."""
    context = multiprocessing.get_context("spawn")
    some = list(islice(cycle(drawings[:LOOP_DRAWINGS]), LOOP_DRAWINGS))
    with context.Pool(workers) as pool:
        rates = pool.starmap(_loop, [(some, seconds)] * workers, chunksize=1)
    return Rate(*(statistics.mean(each) for each in zip(*rates, strict=True)))


def _loop(drawings: list[Any], seconds: float) -> Rate:
    rows = pa.record_batch({"drawing": pa.array(drawings, KIND)})
    recognizer = Recognizer.load()
    batches = [ColumnReader(rows.schema).read(rows.slice(at, 1024)) for at in range(0, len(rows), 1024)]
    return _repeat(lambda number: len(recognizer.answer(batches[number % len(batches)])), seconds)


def run_callable(drawings: list[Any], seconds: float = 15.0) -> Rate:
    """Return the rate of `RecognizeBatch`, given Arrow batches."""
    rows = pa.record_batch({"drawing": pa.array(drawings[:LOOP_DRAWINGS], KIND)})
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


def run_engine(path: Path, workers: int, *options: str, nodes: Nodes | None = None) -> dict[str, Any]:
    """Run the command from start to end: its seconds, and those that it, its workers and Ray took of the processor."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "dabnet", "recognize", str(path), "-o", folder, "--workers", str(workers)]
        begun = time.perf_counter()
        with subprocess.Popen([*command, "--json", *options], stdout=subprocess.PIPE, text=True) as process:
            with watching(process.pid, *([] if nodes is None else [nodes.process])) as spent:
                told = process.communicate()[0]
            assert process.returncode == 0
        seconds = time.perf_counter() - begun
        size = sum(file.stat().st_size for file in Path(folder).glob("*.parquet"))
    drawings = json.loads(told)["drawings"]
    return {"drawings": drawings, "seconds": seconds, "processor_seconds": spent(), "answer_bytes": size}


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


def watch_memory(path: Path, minutes: float, *options: str) -> tuple[list[list[float]], int]:
    """Run the command for so long; return its workers' memory in MB, every five seconds, and the count of files."""
    samples: list[list[float]] = []
    end = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "dabnet", "recognize", str(path), "-o", folder, "--json", *options]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and time.monotonic() < end:
            time.sleep(5)
            if found := sorted(worker_memory(process.pid)):
                samples.append(found)
        process.terminate()
        process.wait()
        written = len(list(Path(folder).glob("*.parquet")))
    return samples, written


def worker_memory(pid: int) -> list[float]:
    """Return the resident memory of the workers that a command started, in MB."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        for child in (task / "children").read_text().split():
            words = Path(f"/proc/{child}/cmdline").read_bytes()
            if b"spawn_main" in words:
                pages = int(Path(f"/proc/{child}/statm").read_text().split()[1])
                found.append(pages * os.sysconf("SC_PAGE_SIZE") / 1e6)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a prepared set of strokes; left out, drawings made by a program")
    parser.add_argument("--drawings", type=int, default=200_000)
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--minutes", type=float, help="watch memory for so long, instead of comparing rates")
    arguments = parser.parse_args()
    console = Console()
    drawings = read_drawings(arguments.data)
    figures: dict[str, Any] = {"data": arguments.data and arguments.data.name}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "drawings.parquet")
        if arguments.minutes:
            write_drawings(drawings, int(8e3 * 60 * arguments.minutes), path)  # more than two can do
            figures |= report_memory(path, arguments.minutes, console)
        else:
            write_drawings(drawings, arguments.drawings, path)
            figures["bytes_per_drawing"] = path.stat().st_size / arguments.drawings
            figures |= compare_rates(drawings, path, list(map(int, arguments.workers.split(","))), console)
    written = write_results("scale-memory" if arguments.minutes else "scale", figures)
    console.print(f"Written to {written.relative_to(written.parents[2])}")


def compare_rates(drawings: list[Any], path: Path, counts: list[int], console: Console) -> dict[str, Any]:
    """Run everything with so many workers each, and tell what share of the bare loop's rate each has."""
    figures: dict[str, Any] = {"rates": {}, "runs": {}}
    table = Table("workers", "what", "per second and core", "share", "per second of the processor", "share")
    promises = []
    for workers in counts:
        bare = run_loops(drawings, workers)
        rates = {"bare loop": bare, **({"RecognizeBatch": run_callable(drawings)} if workers == 1 else {})}
        runs = {"local": run_engine(path, workers)}
        with two_nodes() as nodes:
            runs["ray"] = run_engine(path, workers, "--engine", "ray", "--address", nodes.address, nodes=nodes)
        for name, run in runs.items():
            clock = run["drawings"] / run["seconds"] / workers
            rates[name] = Rate(clock, run["drawings"] / run["processor_seconds"])
            share = rates[name].processor / bare.processor
            promises.append(
                (share, f"{name}, {workers} worker(s): at least {WANTED:.0%} of the bare loop: {share:.0%}")
            )
        for name, rate in rates.items():
            cells = [(f"{each:,.0f}", f"{each / other:.0%}") for each, other in zip(rate, bare, strict=True)]
            table.add_row(str(workers), name, *cells[0], *cells[1])
        figures["rates"][workers] = {name: rate._asdict() for name, rate in rates.items()}
        figures["runs"][workers] = runs
    console.print(table)
    for share, sentence in promises:
        console.print(f"{'yes' if share >= WANTED else 'NO '}  {sentence}")
    return figures


def report_memory(path: Path, minutes: float, console: Console) -> dict[str, Any]:
    """Watch two workers, and tell whether they take more and more memory."""
    samples, files = watch_memory(path, minutes, "--workers", "2", "--partition", str(WATCHED_ROWS))
    third = len(samples) // 3
    middle, last = (
        statistics.median(statistics.mean(sample) for sample in part)
        for part in (samples[third : 2 * third], samples[2 * third :])
    )
    holds = "yes" if last < FLAT * middle else "NO "
    console.print(
        f"{holds}  memory per worker is flat: {middle:.0f} MB, then {last:.0f} MB ({files:,} partitions done)"
    )
    partitions = {"partitions": files, "rows_per_partition": WATCHED_ROWS}
    return {"minutes": minutes, **partitions, "megabytes": samples, "middle": middle, "last": last}


if __name__ == "__main__":
    main()
