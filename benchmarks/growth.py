"""How does recognition grow? FBin ResNet-18 by the sketches of a batch and by their pixels: time and memory.

    python -m benchmarks.growth [--threads 1] [--runs 20]

Time should grow with both and no faster; memory is what the runtime counts itself (`Session.memory`), and what a
process that did nothing else had resident at most.
"""

from __future__ import annotations

import argparse
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.record import best_of, write_results
from dabnet.comparing.engines import OURS
from dabnet.comparing.fresh import fresh_model
from dabnet.comparing.measure import start_engines
from dabnet.comparing.sketches import draw_sketches
from dabnet.runtime import Session

CLASSES = 250
BATCHES = (1, 2, 4, 8, 16, 32, 64)
SIZES = (64, 96, 128, 160, 224, 320, 448)


def grow_batch(threads: int, runs: int) -> list[dict[str, Any]]:
    """Time batches in turns: milliseconds, and milliseconds per sketch."""
    model = fresh_model("resnet18", CLASSES, precision="fbin")
    session, x = Session(model, threads), draw_sketches(max(BATCHES), model.input_size)
    best = dict.fromkeys(BATCHES, float("inf"))
    for _ in track(range(runs), description="batches", transient=True):
        found = best_of(1, **{str(batch): lambda batch=batch: session.run(x[:batch]) for batch in BATCHES})
        best = {batch: min(seconds, found[str(batch)]) for batch, seconds in best.items()}
    return [{"batch": n, "ms": seconds * 1e3, "ms_per_sketch": seconds * 1e3 / n} for n, seconds in best.items()]


def grow_pixels(threads: int, runs: int) -> list[dict[str, Any]]:
    """Time sizes in turns: milliseconds, and nanoseconds per pixel."""
    sessions = {}
    for size in track(SIZES, description="networks", transient=True):
        model = fresh_model("resnet18", CLASSES, precision="fbin", input_size=size)
        sessions[size] = (Session(model, threads), draw_sketches(1, model.input_size))
    best = dict.fromkeys(SIZES, float("inf"))
    for _ in track(range(runs), description="pixels", transient=True):
        turn = {str(size): lambda size=size: sessions[size][0].run(sessions[size][1]) for size in SIZES}
        found = best_of(2, **turn)
        best = {size: min(seconds, found[str(size)]) for size, seconds in best.items()}
    return [
        {"size": n, "ms": s * 1e3, "ns_per_pixel": s * 1e9 / n**2, "memory": sessions[n][0].memory}
        for n, s in best.items()
    ]


def measure_memory(threads: int) -> list[dict[str, Any]]:
    """Return bytes for one sketch, and for the largest batch."""
    model = fresh_model("resnet18", CLASSES, precision="fbin")
    rows = []
    for batch in (1, max(BATCHES)):
        with start_engines(model, [OURS], threads=threads, sketches=batch) as ready:
            ready[OURS].worker.time(batch, 2)
            memory = ready[OURS].worker.memory()
        rows.append({"batch": batch, "session": Session(model, threads).memory, **memory._asdict()})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=20, help="timed runs of each batch and size")
    arguments = parser.parse_args()
    console = Console()
    figures = {
        "batches": grow_batch(arguments.threads, arguments.runs),
        "pixels": grow_pixels(arguments.threads, arguments.runs),
        "memory": measure_memory(arguments.threads),
    }
    headings = {
        "batches": ("sketches at once", "ms", "ms per sketch"),
        "pixels": ("pixels per side", "ms", "ns per pixel", "Session.memory"),
        "memory": ("sketches at once", "Session.memory", "process's peak", "of that the model"),
    }
    for name, rows in figures.items():
        table = Table(title=f"resnet18 fbin: {name}")
        for heading in headings[name]:
            table.add_column(heading, justify="right")
        for row in rows:
            table.add_row(*(f"{value:,.2f}" if isinstance(value, float) else f"{value:,}" for value in row.values()))
        console.print(table)
    for name, each in (("batches", "ms_per_sketch"), ("pixels", "ns_per_pixel")):
        first, last = figures[name][0][each], figures[name][-1][each]
        console.print(f"{name}: the largest costs {last / first:.2f}x the smallest's {each.replace('_', ' ')}")
    path = write_results("growth", {"threads": arguments.threads, **figures})
    console.print(f"Written to {path.relative_to(path.parents[2])}")


if __name__ == "__main__":
    main()
