"""`dabnet demo`: three small networks learn the same sketches, one in real numbers and two in one bit per number."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
import typer
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter
from rich.console import Console
from rich.table import Table
from torch import nn

from dabnet._files import write_beside
from dabnet.binarizers import binarize
from dabnet.binarizers.choices import Method, Precision, translate_names
from dabnet.errors import InputError
from dabnet.exporting.summary import summary
from dabnet.networks.convert import binary_layers
from dabnet.sketches.prepare import prepare
from dabnet.sketches.raster import Raster, rasterize_batch
from dabnet.sketches.sheet import SheetRow, draw_sheet
from dabnet.sketches.sources.synthetic import open_synthetic
from dabnet.sketches.store import SketchSet
from dabnet.training.filter_picture import DAB_COLOUR, XNOR_COLOUR, draw_weights
from dabnet.training.fit import Stopped, fit
from dabnet.training.recipe import Recipe
from dabnet.training.run import LAST, RUN, RunFolder, begin_run, load_trained, open_run

FOLD = 0
"""The third of the sketches that the networks are tested on."""
CHANCE = 0.02
"""About so much can two trainings differ in what they get right, if nothing but the seed does."""


class Kind(NamedTuple):
    """One of the networks that are compared."""

    name: str
    folder: str
    precision: Precision
    method: Method
    about: str
    colour: str


KINDS = (
    Kind("FPrec", "demo-fprec", "fprec", "dab", "real weights, real inputs of layers", "#475569"),
    Kind("XNOR-Net", "demo-xnor", "fbin", "xnor", "one bit each; a filter's two values are +a and -a", XNOR_COLOUR),
    Kind("DAB-Net", "demo-dab", "fbin", "dab", "one bit each; a filter's two values fit its weights", DAB_COLOUR),
)


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for pictures and networks.")] = Path("demo"),
    epochs: Annotated[int, typer.Option(help="Passes over the sketches, for each network.", min=1)] = 5,
    sketches: Annotated[int, typer.Option(help="Sketches of each thing; a third is for the test.", min=10)] = 200,
    seed: Annotated[int, typer.Option(help="The same seed on as many threads gives the same figures.", min=0)] = 0,
    threads: Annotated[int, typer.Option(help="Threads for torch; 0 leaves the choice to it.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON, and nothing else.")] = False,
) -> None:
    """Train three small sketch networks, and compare them by what they get right and how many bytes they take.

    Draws sketches of simple things and trains one network with real numbers and two with one bit per number, XNOR-Net
    and DAB-Net, by one recipe. If it is stopped, run the same command again: it goes on where it was.
    """
    start = time.perf_counter()
    console = Console(quiet=as_json, highlight=False)
    if threads:
        torch.set_num_threads(threads)
    try:
        output.mkdir(parents=True, exist_ok=True)
        drawn = _draw_sketches(output, sketches, console)
        results = [_train(kind, output / kind.folder, drawn, epochs, seed, console) for kind in KINDS]
        pictures = {name: output / f"{name}.png" for name in ("sketches", "curves", "split")}
        _draw_curves(output, pictures["curves"])
        _draw_split(load_trained(output / KINDS[-1].folder).net, pictures["split"])
    except (Stopped, KeyboardInterrupt):
        typer.echo("Stopped. Every finished epoch is kept: run the same command again to go on.", err=True)
        raise typer.Exit(130) from None
    except OSError as problem:
        raise InputError(
            f"cannot write to '{output}' ({problem.strerror or problem}): choose another folder with --output."
        ) from None
    tested = int((drawn.folds == FOLD).sum())
    if as_json:
        figures = {"sketches": len(drawn), "tested": tested, "epochs": epochs, "seed": seed, "networks": results}
        typer.echo(json.dumps({**figures, "pictures": {name: str(path) for name, path in pictures.items()}}, indent=2))
        return
    console.print("", _table(results, tested), conclude(results, tested), sep="\n")
    console.print(f"How they learned: {pictures['curves']}, and the weights of one filter: {pictures['split']}")
    console.print(f"All of it took {time.perf_counter() - start:.0f} s.")


def _draw_sketches(output: Path, each: int, console: Console) -> SketchSet:
    """Draw the sketches, or take those of an earlier demo, and a sheet of some of them."""
    path, source = output / "sketches.parquet", open_synthetic(each)
    found = SketchSet(path) if path.exists() else None
    if found is not None and found.info.title != source.title:
        raise InputError(f"'{path}' holds other sketches: choose another folder with --output.")
    if found is None or len(found) != each * len(found.classes):
        for kind in KINDS:
            (output / kind.folder / RUN).unlink(missing_ok=True)  # it learned from other sketches, and must start over
        path.unlink(missing_ok=True)
        prepare(source, path, workers=1)
    sketches = SketchSet(path)
    rows = []
    for label, name in enumerate(sketches.classes):
        shown = sketches.read(np.flatnonzero(sketches.labels == label)[:12])
        rows.append(SheetRow(name, "", list(rasterize_batch(shown, Raster(size=64)))))
    picture = io.BytesIO()
    draw_sheet(rows).save(picture, "PNG", optimize=True)
    write_beside(output / "sketches.png", picture.getvalue())
    console.print(
        f"{len(sketches):,} sketches of {len(rows)} things, drawn by a program: {output / 'sketches.png'}",
        soft_wrap=True,
    )
    return sketches


def _recipe(kind: Kind, epochs: int, seed: int) -> Recipe:
    """Return the recipe of all three, small enough for two cores."""
    return Recipe(
        network="resnet18", width=0.25, shortcuts="conv", size=48, pen=0.05, epochs=epochs, batch_size=64,
        learning_rate=0.005, schedule="one-cycle", seed=seed, crops=1,
        **translate_names({"precision": kind.precision, "method": kind.method}),
    )  # fmt: skip


def _train(kind: Kind, folder: Path, sketches: SketchSet, epochs: int, seed: int, console: Console) -> dict[str, Any]:
    """Train a network, from where an earlier demo with these settings left it, and test it."""
    recipe = _recipe(kind, epochs, seed)
    if not _began_alike(folder, recipe, sketches):
        if folder.exists():
            shutil.rmtree(folder)
        begin_run(folder, recipe, sketches.path, FOLD)
    before = f", after {len(_validation(folder))} epochs of an earlier demo" if (folder / LAST).exists() else ""
    console.print(f"\n[bold]{kind.name}[/]: {kind.about}{before}")
    result = folder / "result.json"
    if not result.exists():
        fit(folder, recipe, sketches, FOLD, device="cpu", console=console)
    accuracy = json.loads(result.read_text())["top1"]
    model = load_trained(folder)
    size = summary(model.net, (1, recipe.size, recipe.size), model.classes)
    names = {"name": kind.name, "precision": kind.precision, "method": kind.method}
    return {**names, "accuracy": accuracy, "bytes": size.bytes, "float_bytes": size.float_bytes}


def _began_alike(folder: Path, recipe: Recipe, sketches: SketchSet) -> bool:
    with suppress(InputError):
        return open_run(folder) == RunFolder(recipe, sketches.path.resolve(), FOLD)
    return False


def _validation(folder: Path) -> list[float]:
    """Read the accuracy on the validation sketches after each epoch."""
    with (folder / "metrics.csv").open(newline="") as file:
        return [float(row["validation_accuracy"]) for row in csv.DictReader(file)]


def _table(results: list[dict[str, Any]], tested: int) -> Table:
    table = Table("network", title=f"Right on {tested:,} sketches that no network saw before", title_justify="left")
    for heading in ("right", "bytes, packed", "as float32", "times smaller"):
        table.add_column(heading, justify="right")
    for row in results:
        sizes = (f"{row['bytes']:,}", f"{row['float_bytes']:,}", f"{row['float_bytes'] / row['bytes']:.1f}")
        table.add_row(row["name"], f"{row['accuracy']:.1%}", *sizes)
    return table


def conclude(results: list[dict[str, Any]], tested: int) -> str:
    """Say what the figures mean, and no more than they do."""
    real, xnor, dab = (row["accuracy"] for row in results)
    smaller = results[-1]["float_bytes"] / results[-1]["bytes"]
    loss = f"{100 * (real - dab):.1f} sketches in a hundred fewer" if real > dab else "no fewer sketches"
    said = f"One bit per weight makes DAB-Net {smaller:.0f} times smaller; it gets {loss} right than with real numbers."
    gain = dab - xnor
    error = math.sqrt((dab * (1 - dab) + xnor * (1 - xnor)) / tested)
    if abs(gain) <= max(2 * error, CHANCE):
        return f"{said} XNOR-Net does about as well: a difference of {100 * abs(gain):.1f} in a hundred can be chance."
    more = "more" if gain > 0 else "fewer"
    return f"{said} In this one training of each it gets {100 * abs(gain):.1f} in a hundred {more} right than XNOR-Net."


def _draw_curves(output: Path, path: Path) -> None:
    """Draw what each network got right on the validation sketches, epoch by epoch."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")  # not pyplot's, which would pick a backend for everyone
    axes = figure.subplots()
    for kind in KINDS:
        shares = _validation(output / kind.folder)
        axes.plot(range(1, len(shares) + 1), shares, "o-", color=kind.colour, linewidth=2, label=kind.name)
    axes.set(xlabel="epoch", ylabel="right", title="Sketches held back from training, after each epoch", ylim=(0, 1.02))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.grid(color="#e2e8f0")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", frameon=False)
    picture = io.BytesIO()
    figure.savefig(picture, dpi=150, format="png")
    write_beside(path, picture.getvalue())


def _draw_split(net: nn.Module, path: Path) -> None:
    """Draw the filter of the largest binary layer on which DAB gains most over XNOR-Net."""
    layer = max(binary_layers(net), key=lambda layer: layer.weight.numel())
    weights = layer.weight.detach().flatten(1)
    dab, xnor = ((weights - binarize(weights, method)).square().sum(dim=1) for method in ("dab", "xnor"))
    chosen = int(((xnor - dab) / weights.square().sum(dim=1)).argmax())
    title = f"Filter {chosen} of layer {layer.name}, and the values that stand for it"
    draw_weights(weights[chosen].numpy(), path, title)
