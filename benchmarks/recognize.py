"""How soon does `dabnet recognize` answer, how many drawings per second, and does its memory grow?

    python -m benchmarks.recognize [--data quickdraw.parquet] [--drawings 10000] [--runs 10]

A start is a whole process with one drawing, from the shell's command to its end. Then so many drawings come from one
.ndjson file: those of --data, or without it drawings made by a program.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.record import write_results
from dabnet.sketches import Sketch, SketchSet
from dabnet.sketches.synthetic import synthetic_strokes

EXAMPLE = Path(__file__).parents[1] / "examples" / "umbrella.json"
WANTED_SECONDS, WANTED_BYTES = 0.5, 120e6
FLAT = 1.1
"""Memory is flat if ten times the drawings take less than this many times the memory."""
TELLING_ITS_PEAK = (
    "import atexit, pathlib, runpy, sys\n"
    "status = pathlib.Path('/proc/self/status')\n"
    "atexit.register(lambda: print(status.read_text().split('VmHWM:')[1].split()[0], file=sys.stderr))\n"
    "atexit.register(lambda: print('torch' in sys.modules, file=sys.stderr))\n"
    "runpy.run_module('dabnet', run_name='__main__')\n"
)


def recognize(path: Path) -> dict[str, Any]:
    """Run the command on a file: its seconds from start to end, its peak of memory, and whether it loaded torch."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-m", "dabnet", "recognize", str(path), "--json"], check=True, capture_output=True)
    seconds = time.perf_counter() - begun
    told = subprocess.run(
        [sys.executable, "-c", TELLING_ITS_PEAK, "recognize", str(path), "--json"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    torch, peak = told.stderr.split()[-2:]
    return {"drawings": told.stdout.count("\n"), "seconds": seconds, "peak": 1024 * int(peak), "torch": torch == "True"}


def drawings(data: Path | None) -> Iterator[str]:
    """Yield drawings as lines of Quick, Draw!'s form, again from the first when there are no more."""
    sketches: Iterable[Sketch]
    if data is None:
        sketches = synthetic_strokes(1000)[0]
    else:
        prepared = SketchSet(data)
        sketches = (prepared[row] for row in range(len(prepared)))
    lines = ([stroke.T.round(2).tolist() for stroke in sketch.strokes] for sketch in sketches)
    return (json.dumps({"drawing": strokes}) for strokes in cycle(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a prepared set of strokes; left out, drawings made by a program")
    parser.add_argument("--drawings", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=10, help="starts, of which the least and the median are told")
    arguments = parser.parse_args()
    console = Console()
    starts = [recognize(EXAMPLE) for _ in track(range(arguments.runs), description="starts", transient=True)]
    with tempfile.TemporaryDirectory() as folder, console.status("many drawings"):
        path = Path(folder, "drawings.ndjson")
        many = []
        for count in (arguments.drawings // 10, arguments.drawings):
            path.write_text("".join(f"{line}\n" for line in islice(drawings(arguments.data), count)))
            many.append({**recognize(path), "file": path.stat().st_size})
    least, peak = min(run["seconds"] for run in starts), max(run["peak"] for run in starts)
    median = statistics.median(run["seconds"] for run in starts)
    loaded = any(run["torch"] for run in (*starts, *many))
    table = Table("what", "seconds", "per second", "peak of memory", title="dabnet recognize, a process each")
    table.add_row("one drawing, least", f"{least:.2f}", "", "")
    table.add_row("one drawing, median", f"{median:.2f}", "", f"{peak / 1e6:.1f} MB")
    for run in many:
        rate = f"{run['drawings'] / run['seconds']:,.0f}"
        table.add_row(
            f"{run['drawings']:,} drawings, {run['file'] / 1e6:.1f} MB", f"{run['seconds']:.2f}", rate,
            f"{run['peak'] / 1e6:.1f} MB",
        )  # fmt: skip
    console.print(table)
    growth = many[1]["peak"] / many[0]["peak"]
    for holds, told in (
        (median < WANTED_SECONDS, f"a start takes less than {WANTED_SECONDS} s: {median:.2f}"),
        (peak < WANTED_BYTES, f"in less than {WANTED_BYTES / 1e6:.0f} MB: {peak / 1e6:.1f}"),
        (growth < FLAT, f"ten times the drawings take the same memory: {growth:.2f}x"),
        (not loaded, "torch is not loaded"),
    ):
        console.print(f"{'yes' if holds else 'NO '}  {told}", highlight=False)
    path = write_results("recognize", {"data": arguments.data and arguments.data.name, "starts": starts, "many": many})
    console.print(f"Written to {path.relative_to(path.parents[2])}")


if __name__ == "__main__":
    main()
