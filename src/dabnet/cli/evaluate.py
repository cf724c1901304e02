"""`dabnet evaluate`: what a trained network gets right."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from dabnet._text import printable
from dabnet.cli.console import PlainConsole
from dabnet.cli.progress import show_progress
from dabnet.errors import InputError
from dabnet.packed import Model, find_model, is_packed, read_model
from dabnet.runtime import Session
from dabnet.runtime.recognizer import raster_of
from dabnet.sketches.raster import Raster, show_batch
from dabnet.sketches.store import SketchSet
from dabnet.training.evaluate import Evaluation, ask_session, compare
from dabnet.training.evaluate import evaluate as run_test
from dabnet.training.pictures import draw_confusion
from dabnet.training.run import RUN, load_model, open_run

RUNS = 300
"""Timed runs of a packed model; a tenth as many come first, to warm up."""


def evaluate(
    model: Annotated[Path, typer.Argument(help="A run's folder, a weights file, a packed model, or 'default'.")],
    data: Annotated[Path | None, typer.Option(help="A prepared set; a run remembers its own.")] = None,
    fold: Annotated[int | None, typer.Option(help="The fold to test on; a run remembers its own.", min=0)] = None,
    crops: Annotated[int, typer.Option(help="Views of each sketch, 1 or 10.")] = 1,
    against: Annotated[Path | None, typer.Option(help="Another one, to see the gap on the same sketches.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The picture of confusions.")] = Path("confusion.png"),
    threads: Annotated[int, typer.Option(help="Threads; 0 leaves the choice to torch, or takes one.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON, and nothing else.")] = False,
) -> None:
    """Test a trained network: top-1, top-5, per class, and a picture of what it takes for what.

    A packed model is tested in dabnet's runtime, with the probabilities that its temperature gives, and timed: one
    sketch at a time, on one thread, without the drawing of it.
    """
    if threads:
        torch.set_num_threads(threads)
    if (model / RUN).exists():
        begun = open_run(model)
        data, fold = data or begun.data, begun.fold if fold is None else fold
    tested = _open(model, threads)
    other = None if against is None else _open(against, threads)
    if data is None:
        raise InputError("a test needs sketches: give a prepared set with --data.")
    sketches = SketchSet(data)
    is_known = tested.label(sketches) >= 0
    if other is not None:
        is_known &= other.label(sketches) >= 0
    rows = np.flatnonzero(is_known & (True if fold is None else sketches.folds == fold))
    if not len(rows):
        raise InputError(
            f"'{data}' has no sketch of the network's classes{'' if fold is None else f' in fold {fold}'}."
        )
    console = PlainConsole(quiet=as_json)
    found = tested.test(sketches, rows, crops, console)
    rival = None if other is None else other.test(sketches, rows, crops, console)
    packed = tested.packed
    figures: dict[str, Any] = {}
    if packed is not None:
        figures = {"bytes": tested.path.stat().st_size, "temperature": packed.temperature}
        figures["latency_ms"] = _time(packed, sketches, rows)
    if rival is not None:
        figures["against"] = {**rival.to_dict(), **dict(zip(("gap", "gap_error"), compare(found, rival), strict=True))}
    draw_confusion(found, output)
    if as_json:
        typer.echo(json.dumps({**found.to_dict(), **figures, "picture": str(output)}, indent=2))
        return
    console.print(
        f"{found.drawings:,} sketches, {crops} view{'s' if crops > 1 else ''} each: top-1 {found.top1:.2%}, "
        f"top-5 {found.top5:.2%}, calibration error {found.ece():.1%}.",
    )
    if packed is not None:
        times = figures["latency_ms"]
        console.print(
            f"{figures['bytes']:,} bytes; one sketch on one thread takes {times['min']:.2f} ms at least, "
            f"{times['median']:.2f} ms as a rule.",
        )
    if rival is not None:
        gap, error = (100 * share for share in compare(found, rival))
        console.print(
            f"{against}: top-1 {rival.top1:.2%}, top-5 {rival.top5:.2%}. Gap {gap:+.2f} points "
            f"(standard error {error:.2f}, from the sketches on which they differ).",
        )
    table = Table("hardest classes", "right", box=None)
    known = [(name, share) for name, share in found.per_class().items() if share is not None]
    for name, share in sorted(known, key=lambda pair: pair[1])[:8]:
        table.add_row(printable(name), f"{share:.0%}")
    console.print(table)
    console.print(f"What is taken for what: {output}")


@dataclass(frozen=True)
class _Opened:
    """A network that can be asked, whatever it came from."""

    path: Path
    packed: Model | None
    ask: Any
    classes: list[str]
    raster: Raster

    def label(self, sketches: SketchSet) -> NDArray[np.int64]:
        """Give each sketch's place among the network's classes; -1 where it has none."""
        places = {name: place for place, name in enumerate(self.classes)}
        return np.array([places.get(name, -1) for name in sketches.classes])[sketches.labels]

    def test(self, sketches: SketchSet, rows: NDArray[np.int64], crops: int, console: Console) -> Evaluation:
        with show_progress(f"Testing {self.path.name}", console) as progress:
            return run_test(
                self.ask, sketches, rows, self.raster,
                crops=crops, labels=self.label(sketches), class_names=self.classes, progress=progress,
            )  # fmt: skip


def _open(model: Path, threads: int) -> _Opened:
    path = find_model(model)
    if is_packed(path):
        packed = read_model(path)
        return _Opened(path, packed, ask_session(Session(packed, threads or 1)), list(packed.labels), raster_of(packed))
    net, classes, raster = load_model(path)
    return _Opened(path, None, net, classes, raster)


def _time(model: Model, sketches: SketchSet, rows: NDArray[np.int64]) -> dict[str, float]:
    """Give the least and the median of the milliseconds that one sketch takes on one thread."""
    chosen = np.random.default_rng(0).choice(rows, min(len(rows), RUNS), replace=False)
    images = show_batch(sketches.read(chosen), raster_of(model))
    session, seconds = Session(model, threads=1), []
    for run in range(-RUNS // 10, RUNS):
        image = images[run % len(images)][None]
        start = time.perf_counter()
        session.run(image)
        if run >= 0:
            seconds.append(time.perf_counter() - start)
    return {"min": 1e3 * min(seconds), "median": 1e3 * float(np.median(seconds))}
