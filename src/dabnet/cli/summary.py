"""`dabnet summary`: what each layer of a network is and costs."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from dabnet._lazy import load
from dabnet.cli import named
from dabnet.networks.names import NAMES
from dabnet.packed import Model, find_model
from dabnet.packed.summary import summarize_packed
from dabnet.training.opening import open_model


def summary(
    model: Annotated[
        str,
        typer.Argument(
            help=f"A packed model, by file or name; a run's folder, a weights file, or one of {', '.join(NAMES)}."
        ),
    ],
    weights: named.Weights = None,
    activations: named.Activations = None,
    precision: named.Precision = None,
    method: named.Method = None,
    classes: named.Classes = 250,
    width: named.Width = 1.0,
    size: named.Size = None,
    changes: named.Changes = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON, and nothing else.")] = False,
) -> None:
    """Print a network's layers with their bits, multiply-adds, K/n and error, and the packed file's exact size.

    A network given by name has fresh weights: sizes and counts are those of a trained one, K/n and errors are not. Its
    file has no labels. A packed model has no errors: the weights that were rounded to two values are not in its file.
    """
    if not find_model(model).exists():
        named.check_network(model)
        settings = named.build_settings(weights, activations, precision, method, changes, width=width, input_size=size)
        net = load("dabnet.networks.catalog").build(model, classes, **settings)
        found = load("dabnet.exporting.summary").summary(net, (1, net.input_size, net.input_size))
    elif isinstance(opened := open_model(model), Model):
        found = summarize_packed(opened)
    else:
        side, raster = opened.raster.size, opened.raster.to_dict()
        found = load("dabnet.exporting.summary").summary(opened.net, (1, side, side), opened.classes, raster=raster)
    typer.echo(json.dumps(found.to_dict(), indent=2) if as_json else str(found))
