"""`dabnet verify`: does a packed model answer as its network does?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

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
from dabnet.exporting.verify import BATCH, ROUNDING, Verification
from dabnet.exporting.verify import verify as compare
from dabnet.packed import read_model
from dabnet.sketches.raster import Raster, show_batch
from dabnet.sketches.sketch import Sketch
from dabnet.sketches.store import SketchSet
from dabnet.sketches.synthetic import synthetic_strokes
from dabnet.training.run import RUN, load_trained, open_run


def verify(
    network: Annotated[Path, typer.Argument(help="A run's folder, or a weights file.")],
    packed: Annotated[Path, typer.Argument(help="The file that dabnet export wrote from it.")],
    data: Annotated[
        Path | None, typer.Option(help="A prepared set; a run remembers its own. Without one, synthetic sketches.")
    ] = None,
    fold: Annotated[int | None, typer.Option(help="The fold to take; a run remembers its own.", min=0)] = None,
    count: Annotated[int, typer.Option("--sketches", help="How many sketches, chosen at random.", min=1)] = 200,
    layers: Annotated[int, typer.Option(help="How many of them to compare layer by layer.", min=0)] = 200,
    threads: Annotated[int, typer.Option(help="Threads for both.", min=1)] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON, and nothing else.")] = False,
) -> None:
    """Run a network and its packed twin on the same sketches, layer by layer and from end to end.

    Every class that differs is explained by the first bit that flipped. The exit code is 1 if anything differs by more
    than rounding.
    """
    torch.set_num_threads(threads)
    trained = load_trained(network)
    model = read_model(packed)
    if (network / RUN).exists():
        begun = open_run(network)
        fold = begun.fold if fold is None else fold
        data = data or (begun.data if begun.data.exists() else None)
    sketches, labels = _choose(data, fold, count, trained.classes)
    console = PlainConsole(quiet=as_json)
    with show_progress("Comparing", console) as progress:
        found = compare(
            trained.net,
            model,
            _batches(sketches, trained.raster),
            labels,
            layer_sketches=layers,
            threads=threads,
            progress=lambda done: progress(done, len(sketches)),
        )
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2))
    else:
        _print(console, found)
    if not found.is_fine:
        raise typer.Exit(1)


def _choose(
    data: Path | None, fold: int | None, count: int, classes: list[str]
) -> tuple[list[Sketch], NDArray[np.int64] | None]:
    """Return sketches, and their classes where those are known."""
    if data is None:
        return synthetic_strokes(count)[0], None
    found = SketchSet(data)
    rows = np.arange(len(found)) if fold is None else np.flatnonzero(found.folds == fold)
    if not len(rows):
        raise InputError(f"'{data}' has no sketch in fold {fold}.")
    rows = np.random.default_rng(0).permutation(rows)[:count]
    numbers = {name: number for number, name in enumerate(classes)}
    labels = np.array([numbers.get(found.classes[label], -1) for label in found.labels[rows]])
    return found.read(rows), labels if (labels >= 0).any() else None


def _batches(sketches: list[Sketch], raster: Raster) -> Iterator[NDArray[np.float32]]:
    for start in range(0, len(sketches), BATCH):
        yield show_batch(sketches[start : start + BATCH], raster)


def _print(console: Console, found: Verification) -> None:
    if found.layer_sketches:
        table = Table(title=f"Each layer on torch's own inputs, {found.layer_sketches} sketches")
        table.add_column("layer", overflow="fold")
        table.add_column("step", overflow="fold")
        for heading in ("error", "bits", "flipped", "beyond rounding"):
            table.add_column(heading, justify="right")
        for layer in found.layers:
            bits = [f"{n:,}" for n in (layer.signs, layer.flips, layer.flips_beyond)] if layer.signs else [""] * 3
            style = None if layer.is_fine else "bold red"
            table.add_row(
                printable(layer.name),
                printable(layer.op),
                "" if layer.signs else f"{layer.error:.1e}",
                *bits,
                style=style,
            )
        console.print(table)
    console.print(
        f"From end to end, {found.sketches:,} sketches: the same class for {found.equal:,} "
        f"({found.equal / found.sketches:.2%}), logits within {found.logits_error:.1e} of the largest.",
    )
    if found.torch_right is not None and found.packed_right is not None:
        in_torch, packed = found.torch_right / found.sketches, found.packed_right / found.sketches
        console.print(f"Right: {in_torch:.2%} in torch, {packed:.2%} packed.")
    if found.has_int8:
        console.print("Its real weights have 8 bits: layers are compared with these, classes with torch's weights.")
    for item in found.disagreements:
        console.print(printable(f"  {item}"))
    console.print(
        f"All that differs is rounding ({ROUNDING:g})."
        if found.is_fine
        else f"Some differences are larger than rounding ({ROUNDING:g}): was the file exported from other weights?",
        style=None if found.is_fine else "bold red",
    )
