"""Does the memory of workers stay flat, on this machine's cores and on Ray, with one worker and with two?

    python -m benchmarks.scale_memory [--data quickdraw.parquet] [--minutes 10] [--engines local,ray] [--workers 1,2]

Needs what `make test-scale` installs. `dabnet recognize -o` runs with each engine and each number of workers, all of
them at the same time, and every five seconds the memory of each worker's process is noted. Ray's are on two nodes with
a core each, which take turns where there is one worker.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.record import write_results
from benchmarks.scale import read_drawings, write_drawings
from tests.distributed.lists import children, named
from tests.scale.cluster import two_nodes

ROWS = 1024
"""Per partition: many partitions tell more than large ones."""
EVERY = 5.0
FLAT = 1.05
"""Memory is flat if its median in the last third is less than this many times that in the middle third."""
NAMES = {"local": "spawn_main", "ray": "ray::Map(recognize)"}
"""What a worker that is at work has in its command line."""


def watch(path: Path, engine: str, workers: int, minutes: float) -> dict[str, Any]:
    """Run the command for so long; return its workers' megabytes, by their process, and how many drawings they did."""
    options = ["--workers", str(workers), "--partition", str(ROWS), "--engine", engine]
    with tempfile.TemporaryDirectory() as folder, two_nodes() if engine == "ray" else nullcontext() as nodes:
        options += ["--address", nodes.address] if nodes else []
        command = [sys.executable, "-m", "dabnet", "recognize", str(path), "-o", folder, *options]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        parents = nodes.raylets if nodes else [process.pid]
        seen: dict[int, list[float]] = {}
        end = time.monotonic() + 60 * minutes
        while process.poll() is None and time.monotonic() < end:
            time.sleep(EVERY)
            with suppress(OSError):  # one has just ended
                found = [pid for parent in parents for pid in children(parent)]
                for pid in found:
                    if pid in seen or named(pid, NAMES[engine]):
                        seen.setdefault(pid, []).append(megabytes(pid))
        ended = process.poll()
        process.terminate()
        process.wait()
        drawings = ROWS * len(list(Path(folder).glob("*.parquet")))
    if ended is not None:
        raise SystemExit(f"{engine} with {workers} ended with code {ended} before its time was over.")
    return {"engine": engine, "workers": workers, "drawings": drawings, "megabytes": list(seen.values())}


def megabytes(pid: int) -> float:
    """Return the memory that a process has, without what it shares with others."""
    resident, shared = map(int, Path(f"/proc/{pid}/statm").read_text().split()[1:3])
    return round((resident - shared) * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


def summarize(samples: list[float]) -> tuple[float, float]:
    """Return the median of the middle third, and of the last one."""
    third = len(samples) // 3
    return statistics.median(samples[third : 2 * third]), statistics.median(samples[2 * third :])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a prepared set of strokes; left out, drawings made by a program")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--engines", default="local,ray")
    parser.add_argument("--workers", default="1,2")
    arguments = parser.parse_args()
    console = Console()
    runs = list(product(arguments.engines.split(","), map(int, arguments.workers.split(","))))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(len(runs)) as pool:
        path = Path(folder, "drawings.parquet")
        write_drawings(read_drawings(arguments.data), int(8e3 * 60 * arguments.minutes), path)  # more than two can do
        watched = list(pool.map(lambda run: watch(path, run[0], run[1], arguments.minutes), runs))
    for run in watched:
        for number, samples in enumerate(run["megabytes"], 1):
            middle, last = summarize(samples)
            holds = "yes" if last < FLAT * middle else "NO "
            which = f"{run['engine']}, {run['workers']} worker(s), number {number}"
            console.print(f"{holds}  memory is flat: {which}: {middle:.0f} MB, then {last:.0f} MB")
        console.print(f"     {run['drawings']:,} drawings")
    figures = {"data": arguments.data and arguments.data.name, "minutes": arguments.minutes, "rows": ROWS}
    written = write_results("scale-memory", {**figures, "every_seconds": EVERY, "runs": watched})
    console.print(f"Written to {written.relative_to(written.parents[2])}")


if __name__ == "__main__":
    main()
