"""`dabnet features`: what `dabnet train --add` needs of the drawings that a packed model learnt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from dabnet._files import check_output, write_beside
from dabnet._text import counted, printable
from dabnet.cli.console import PlainConsole
from dabnet.cli.interrupts import heed_interrupts
from dabnet.cli.progress import show_progress
from dabnet.packed import find_model, read_model
from dabnet.sketches.store import SketchSet
from dabnet.sketches.vocabulary import match_classes
from dabnet.training.class_features import collect_features, features_path


def features(
    model: Annotated[str, typer.Argument(help="A packed model, by file or name.")],
    data: Annotated[Path, typer.Option(help="A prepared set with drawings of all its classes.")],
    fold: Annotated[int, typer.Option(help="The fold to leave out, as it was kept for the test.", min=0)] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; beside the model if left out.")
    ] = None,
    threads: Annotated[int, typer.Option(help="Threads.", min=1)] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON, and nothing else.")] = False,
) -> None:
    """Write what is needed to add classes to a packed model: how the features of its own classes are distributed.

    Features are what enters the last layer. The file, NAME.features.safetensors beside NAME.safetensors, holds each
    class's mean and a covariance for all of them, no drawings. 'dabnet train --from MODEL --add DRAWINGS' reads it.
    """
    packed = read_model(model)
    target = output or features_path(find_model(model))
    check_output(target)
    sketches = SketchSet(data)
    labels = np.array(match_classes(sketches.classes, packed.labels), dtype=np.int64)[sketches.labels]
    rows = np.flatnonzero((labels >= 0) & (sketches.folds != fold))
    heed_interrupts()
    try:
        with show_progress("Looking at the drawings", PlainConsole(quiet=as_json)) as progress:
            found = collect_features(packed, sketches, labels, rows, threads=threads, progress=progress)
    except KeyboardInterrupt:
        typer.echo("Stopped, before there was anything to keep: run the same command again.", err=True)
        raise typer.Exit(130) from None
    written = found.to_bytes()
    write_beside(target, written)
    classes, width = found.means.shape
    if as_json:
        figures = {"path": str(target), "bytes": len(written), "classes": classes, "features": width}
        typer.echo(json.dumps({**figures, "drawings": len(rows)}, indent=2))
        return
    numbers = f"{counted(classes, 'class', 'classes')}, {width} features, {counted(len(rows), 'drawing')}"
    said = f"{target}: {len(written):,} bytes; {numbers}."
    typer.echo(printable(said))
