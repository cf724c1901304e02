"""`dabnet evaluate`: what a trained network gets right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from dabnet.errors import InputError
from dabnet.sketches.store import SketchSet
from dabnet.training.evaluate import evaluate as run_test
from dabnet.training.pictures import draw_confusion
from dabnet.training.run import RUN, load_model, open_run


def evaluate(
    model: Annotated[Path, typer.Argument(help="A run's folder, or a weights file.")],
    data: Annotated[Path | None, typer.Option(help="A prepared set; a run remembers its own.")] = None,
    fold: Annotated[int | None, typer.Option(help="The fold to test on; a run remembers its own.", min=0)] = None,
    crops: Annotated[int, typer.Option(help="Views of each sketch, 1 or 10.")] = 1,
    output: Annotated[Path, typer.Option("--output", "-o", help="The picture of confusions.")] = Path("confusion.png"),
    threads: Annotated[int, typer.Option(help="Threads for torch; 0 leaves the choice to it.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON, and nothing else.")] = False,
) -> None:
    """Test a trained network: top-1, top-5, per class, and a picture of what it takes for what."""
    if threads:
        torch.set_num_threads(threads)
    trained = load_model(model)
    if (model / RUN).exists():
        begun = open_run(model)
        data, fold = data or begun.data, begun.fold if fold is None else fold
    if data is None:
        raise InputError("a test needs sketches: give a prepared set with --data.")
    sketches = SketchSet(data)
    places = np.full(len(sketches.classes), -1)
    for place, name in enumerate(trained.classes):
        if name in sketches.classes:
            places[sketches.classes.index(name)] = place
    labels = places[sketches.labels]
    chosen = (labels >= 0) & (True if fold is None else sketches.folds == fold)
    if not chosen.any():
        raise InputError(
            f"'{data}' has no sketch of the network's classes{'' if fold is None else f' in fold {fold}'}."
        )
    console = Console(quiet=as_json)
    with Progress(
        TextColumn("Testing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console, transient=True
    ) as bar:
        task = bar.add_task("", total=None)
        found = run_test(
            trained.net,
            sketches,
            np.flatnonzero(chosen),
            trained.raster,
            crops=crops,
            labels=labels,
            class_names=trained.classes,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    draw_confusion(found, output)
    if as_json:
        typer.echo(json.dumps({**found.to_dict(), "picture": str(output)}, indent=2))
        return
    console.print(
        f"{found.drawings:,} sketches, {crops} view{'s' if crops > 1 else ''} each: top-1 {found.top1:.2%}, "
        f"top-5 {found.top5:.2%}, calibration error {found.ece():.1%}.",
        highlight=False,
    )
    table = Table("hardest classes", "right", box=None)
    known = [(name, share) for name, share in found.per_class().items() if share is not None]
    for name, share in sorted(known, key=lambda pair: pair[1])[:8]:
        table.add_row(name, f"{share:.0%}")
    console.print(table)
    console.print(f"What is taken for what: {output}", highlight=False)
