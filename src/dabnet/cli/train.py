"""`dabnet train`: from a recipe and a prepared set to a trained network."""

from __future__ import annotations

import csv
import json
import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import torch
import typer
from rich.console import Console

from dabnet.cli.console import PlainConsole
from dabnet.cli.devices import check_device
from dabnet.cli.tuning import Tuning, prepare_drawings, tune
from dabnet.errors import InputError
from dabnet.packed import find_model, is_packed
from dabnet.sketches.alone import only_writer
from dabnet.sketches.store import SketchSet
from dabnet.training.fit import Stopped, fit
from dabnet.training.recipe import Recipe, change_recipe, load_recipe
from dabnet.training.run import (
    LAST,
    RECIPE,
    RunFolder,
    begin_run,
    beginning,
    check_new,
    load_trained,
    open_run,
    read_held_back,
)

if TYPE_CHECKING:
    from dabnet.runtime.evaluation import Evaluation


def train(
    recipe: Annotated[
        str | None, typer.Argument(help="A recipe: a file, or a name that 'dabnet recipes' lists.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="A prepared set, or anything that 'dabnet data prepare' takes.")
    ] = None,
    add: Annotated[
        Path | None,
        typer.Option(help="Drawings of classes that a packed model is to learn beside its own; goes with --from."),
    ] = None,
    fold: Annotated[int, typer.Option(help="The fold to test on, once, at the end.", min=0)] = 0,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The run's folder.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="Change a setting: KEY=VALUE; may be given again.")
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with the run in this folder.")] = None,
    start: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Start from the weights of this run or file, as far as names and shapes agree; or give a packed model "
            "(by file or name) a new last layer.",
        ),
    ] = None,
    teacher: Annotated[
        Path | None, typer.Option(help="Learn from the answers of this run's network, too; as --set teacher=RUN.")
    ] = None,
    no_test: Annotated[bool, typer.Option("--no-test", help="Leave the test fold alone: to compare settings.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    workers: Annotated[int, typer.Option(help="Processes that load sketches; 0 loads them in this one.", min=0)] = 0,
    threads: Annotated[int, typer.Option(help="Threads for torch; 0 leaves the choice to it.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")] = False,
) -> None:
    """Train a network by a recipe.

    Writes everything to the run's folder, after every epoch. If it is stopped or killed, --resume goes on from the last
    epoch's end, to the same weights. The best epoch is chosen on sketches held back from the training folds; the test
    fold is looked at once, at the end, or never with --no-test.

    --from starts from what another network learnt, and --teacher learns from its answers: the same classes, but any
    width and precision. What the run of --from held back is held back again, as far as it is in this set.

    --from a packed model, such as 'default', takes no recipe: its layers stay as they are, and only the last one is
    learnt anew, for the classes of --data. With --add instead of --data it keeps the classes that it knows, and learns
    yours beside them; drawings of a class that it knows already make it better at these. A few drawings of each and a
    minute will do. It leaves a packed model, model.safetensors, in the run's folder.

    On several devices or machines: torchrun --nproc-per-node N -m dabnet train ...
    """
    check_device(device)
    if threads:
        torch.set_num_threads(threads)
    first = int(os.environ.get("RANK", 0)) == 0
    console = PlainConsole(quiet=as_json or not first)
    if start is not None and resume is None and is_packed(find_model(start)):
        if recipe or teacher:
            raise InputError("a packed model is tuned without a recipe and without a teacher: leave them out.")
        tune(Tuning(start, data, add, fold, output, changes or [], not no_test, as_json), console)
        return
    if add is not None:
        raise InputError("--add adds classes to a packed model: say which with --from, such as --from default.")
    try:
        if resume is not None:
            if recipe or data or changes or start or teacher or no_test:
                raise InputError("--resume goes on as the run was begun: leave out the recipe and all that changes it.")
            folder, begun = resume, open_run(resume)
            with only_writer(folder) if first else nullcontext():
                found = _fit(folder, begun, device, workers, console)
        else:
            if data is None:
                raise InputError("a training needs sketches: give a prepared set with --data.")
            settings, folder = _begin(recipe, start, changes or [], output, fold)
            if teacher or settings.teacher:
                settings = replace(settings, teacher=str(Path(teacher or settings.teacher or "").resolve()))
            if start is not None:
                load_trained(start)  # which says what is wrong with it, before anything is made
            check_new(folder)
            with (
                only_writer(folder) if first else nullcontext(),
                beginning(folder, keep=Stopped) if first else nullcontext(),
            ):
                begun = RunFolder(settings, prepare_drawings(data, folder, console), fold, start, not no_test)
                if first:
                    begin_run(folder, *begun[:3], start=start, test=begun.test)
                found = _fit(folder, begun, device, workers, console)
    except Stopped:
        typer.echo(f"Stopped. Every finished epoch is kept: go on with: dabnet train --resume {folder}", err=True)
        raise typer.Exit(130) from None
    if found is None:
        if first:
            _tell_best(folder, console, as_json=as_json)
        return
    if as_json:
        typer.echo(json.dumps({"run": str(folder), **found.to_dict()}, indent=2))
        return
    console.print(
        f"On {found.drawings:,} sketches of fold {begun.fold}, never seen before: top-1 {found.top1:.1%}, "
        f"top-5 {found.top5:.1%}. Everything is in {folder}: look at curves.png and confusion.png.",
    )


def _fit(folder: Path, begun: RunFolder, device: str, workers: int, console: Console) -> Evaluation | None:
    settings, data, fold, start, test = begun
    model = load_trained(start) if start and not (folder / LAST).exists() else None
    return fit(
        folder, settings, SketchSet(data), fold,
        start=model, held_back=read_held_back(folder, start), test=test,
        device=device, workers=workers, console=console,
    )  # fmt: skip


def _tell_best(folder: Path, console: Console, *, as_json: bool) -> None:
    """Tell how a run that is not tested did on the sketches that its best epoch was chosen by."""
    recipe = load_recipe(folder / RECIPE)
    with (folder / "metrics.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if not recipe.in_first_stage(int(row["epoch"]) - 1)]
    best = max(rows, key=lambda row: float(row["validation_accuracy"]))
    epoch, accuracy = int(best["epoch"]), float(best["validation_accuracy"])
    if as_json:
        typer.echo(json.dumps({"run": str(folder), "epoch": epoch, "validation_accuracy": accuracy}, indent=2))
    console.print(
        f"Not tested. On sketches held back from training, in epoch {epoch}: top-1 {accuracy:.1%}. "
        f"Everything is in {folder}.",
    )


def _begin(
    recipe: str | None, start: Path | None, changes: list[str], output: Path | None, fold: int
) -> tuple[Recipe, Path]:
    """Find the settings and the folder of a new run."""
    if recipe is not None:
        settings = load_recipe(recipe, changes)
    elif start is not None and (start / RECIPE).exists():
        former = replace(load_recipe(start / RECIPE), teacher=None, teacher_share=None, teacher_temperature=None)
        settings = change_recipe(former, changes)
    else:
        raise InputError(
            "a training needs a recipe: give a file or a name that 'dabnet recipes' lists, or a run with --from."
        )
    name = Path(recipe).stem if recipe is not None else f"{start.name if start else 'run'}-tuned"
    return settings, output or Path("runs") / f"{name}-fold{fold}-seed{settings.seed}"
