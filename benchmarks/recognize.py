"""How soon does `dabnet recognize` answer, how many drawings per second beside a bare Session, in how much memory?

    python -m benchmarks.recognize [--data quickdraw.parquet] [--drawings 10000] [--runs 10] [--threads 1,2]

A start is a whole process with one drawing, from the shell's command to its end. Then so many drawings come from one
.ndjson file: those of --data, or without it drawings made by a program. Rates are of the same drawings on the same
cores, in turns: a Session that is given images, a Recognizer that is given sketches or lists of numbers, and the whole
command, its start included. Where other work takes the processor, the seconds that were spent on it tell more than
those that went by: both are shown, and what is wanted is asked of the former.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.record import write_results
from dabnet.runtime import Recognizer
from dabnet.sketches import Sketch, SketchSet
from dabnet.sketches.batch import read_lines
from dabnet.sketches.synthetic import synthetic_strokes

EXAMPLE = Path(__file__).parents[1] / "examples" / "umbrella.json"
WANTED_SECONDS, WANTED_BYTES, WANTED_SHARE = 0.4, 120e6, 0.7
COMMAND = "dabnet recognize, of lines"
SESSION_DRAWINGS = 256
"""Images that are in memory at once."""
FLAT = 1.1
"""Memory is flat if ten times the drawings take less than this many times the memory."""
TELLING_ITS_PEAK = (
    "import atexit, pathlib, runpy, sys\n"
    "status = pathlib.Path('/proc/self/status')\n"
    "atexit.register(lambda: print(status.read_text().split('VmHWM:')[1].split()[0], file=sys.stderr))\n"
    "atexit.register(lambda: print('torch' in sys.modules, file=sys.stderr))\n"
    "runpy.run_module('dabnet', run_name='__main__')\n"
)


def run_command(path: Path, threads: int = 1) -> tuple[float, float]:
    """Run the command on a file: its seconds from start to end, and those of the processor."""
    command = [sys.executable, "-m", "dabnet", "recognize", str(path), "--json", "--threads", str(threads)]
    begun, spent = time.perf_counter(), _spent_by_children()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - begun, _spent_by_children() - spent


def _spent_by_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def recognize(path: Path) -> dict[str, Any]:
    """Run the command on a file: its seconds, its peak of memory, and whether it loaded torch."""
    seconds, spent = run_command(path)
    told = subprocess.run(
        [sys.executable, "-c", TELLING_ITS_PEAK, "recognize", str(path), "--json"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    torch, peak = told.stderr.split()[-2:]
    return {
        "drawings": told.stdout.count("\n"),
        "seconds": seconds,
        "processor_seconds": spent,
        "peak": 1024 * int(peak),
        "torch": torch == "True",
    }


def rates(path: Path, threads: int, turns: int) -> dict[str, dict[str, float]]:
    """Return drawings per second, by the clock and by the processor's, of a Session and of what recognizes strokes."""
    batch, _ = read_lines("", path.read_bytes(), 0, 1)
    sketches = [batch.sketch(number) for number in range(len(batch))]
    drawn = [sketch for sketch in sketches if sketch is not None]
    lists = [[stroke.tolist() for stroke in sketch.strokes] for sketch in drawn]
    recognizer = Recognizer.load(threads=threads)
    some = recognizer.show(drawn[:SESSION_DRAWINGS])

    def run_session() -> None:
        for start in range(0, len(drawn), SESSION_DRAWINGS):
            recognizer.session.run(some[: len(drawn) - start])

    contestants: dict[str, Callable[[], tuple[float, float]]] = {
        "Session.run, of images": lambda: _timed(run_session),
        "Recognizer.recognize, of sketches": lambda: _timed(lambda: recognizer.recognize(drawn)),
        "Recognizer.recognize, of lists": lambda: _timed(lambda: recognizer.recognize(lists)),
        COMMAND: lambda: run_command(path, threads),
    }
    best = {name: (float("inf"), float("inf")) for name in contestants}
    for _ in range(turns):
        for name, contestant in contestants.items():
            clock, spent = contestant()
            best[name] = min(best[name][0], clock), min(best[name][1], spent)
    return {
        name: {"per_second": len(drawn) / clock, "per_processor_second": len(drawn) / spent}
        for name, (clock, spent) in best.items()
    }


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    begun, spent = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - begun, time.process_time() - spent


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


def _print_rates(console: Console, threads: int, told: dict[str, dict[str, float]]) -> list[tuple[bool, str]]:
    """Print the rates of so many threads; return what is wanted of them, and whether it is so."""
    title = f"Drawings per second, {threads} thread{'s' if threads > 1 else ''}"
    table = Table("what", "per second", "share", "per second of the processor", "share", title=title)
    promises = []
    bare = next(iter(told.values()))
    for name, rate in told.items():
        shares = {clock: rate[clock] / bare[clock] for clock in rate}
        table.add_row(name, *(text for clock in rate for text in (f"{rate[clock]:,.0f}", f"{shares[clock]:.0%}")))
        share = shares["per_processor_second"]
        if share != 1:
            sentence = f"{name}, {threads} thread(s): at least {WANTED_SHARE:.0%} of the bare Session's: {share:.0%}"
            promises.append((share >= WANTED_SHARE, sentence))
    console.print(table)
    return promises


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a prepared set of strokes; left out, drawings made by a program")
    parser.add_argument("--drawings", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=10, help="starts, of which the least and the median are told")
    parser.add_argument("--threads", default="1,2", help="with how many threads drawings are recognized")
    parser.add_argument("--turns", type=int, default=3, help="of which the best is told")
    arguments = parser.parse_args()
    console = Console()
    starts = [recognize(EXAMPLE) for _ in track(range(arguments.runs), description="starts", transient=True)]
    with tempfile.TemporaryDirectory() as folder, console.status("many drawings"):
        path = Path(folder, "drawings.ndjson")
        many = []
        for count in (arguments.drawings // 10, arguments.drawings):
            path.write_text("".join(f"{line}\n" for line in islice(drawings(arguments.data), count)))
            many.append({**recognize(path), "file": path.stat().st_size})
        found = {threads: rates(path, threads, arguments.turns) for threads in map(int, arguments.threads.split(","))}
    peak = max(run["peak"] for run in starts)
    median = {name: statistics.median(run[name] for run in starts) for name in ("seconds", "processor_seconds")}
    loaded = any(run["torch"] for run in (*starts, *many))
    table = Table("what", "seconds", "of the processor", "peak of memory", title="dabnet recognize, a process each")
    rows = [(f"one drawing, median of {len(starts)}", median, peak)]
    rows += [(f"{run['drawings']:,} drawings, {run['file'] / 1e6:.1f} MB", run, run["peak"]) for run in many]
    for what, run, bytes_ in rows:
        table.add_row(what, f"{run['seconds']:.2f}", f"{run['processor_seconds']:.3f}", f"{bytes_ / 1e6:.1f} MB")
    console.print(table)
    promises = [
        (
            median["processor_seconds"] <= WANTED_SECONDS,
            f"a start takes at most {WANTED_SECONDS} s of the processor: {median['processor_seconds']:.3f} "
            f"({median['seconds']:.2f} by the clock, {os.getloadavg()[0]:.1f} processes at work)",
        ),
        (peak < WANTED_BYTES, f"in less than {WANTED_BYTES / 1e6:.0f} MB: {peak / 1e6:.1f}"),
        (
            many[1]["peak"] / many[0]["peak"] < FLAT,
            f"ten times the drawings take the same memory: {many[1]['peak'] / many[0]['peak']:.2f}x",
        ),
        (not loaded, "torch is not loaded"),
    ]
    for threads, told in found.items():
        promises += _print_rates(console, threads, told)
    for holds, sentence in promises:
        console.print(f"{'yes' if holds else 'NO '}  {sentence}", highlight=False)
    figures = {"data": arguments.data and arguments.data.name, "starts": starts, "many": many, "rates": found}
    path = write_results("recognize", figures)
    console.print(f"Written to {path.relative_to(path.parents[2])}")


if __name__ == "__main__":
    main()
