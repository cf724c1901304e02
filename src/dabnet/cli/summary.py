"""`dabnet summary`: what each layer of a network is and costs."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from dabnet.cli import named
from dabnet.errors import InputError, suggest
from dabnet.exporting.summary import summary as summarize
from dabnet.networks.catalog import NETWORKS, build
from dabnet.packed import find_model
from dabnet.training.run import load_model


def summary(
    model: Annotated[str, typer.Argument(help=f"A run's folder, a weights file, or one of {', '.join(NETWORKS)}.")],
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
    file has no labels.
    """
    if find_model(model).exists():
        trained = load_model(model)
        side = trained.raster.size
        found = summarize(trained.net, (1, side, side), trained.classes, raster=trained.raster.to_dict())
    elif model in NETWORKS:
        settings = named.build_settings(weights, activations, precision, method, changes, width=width, input_size=size)
        net = build(model, classes, **settings)
        found = summarize(net, (1, net.input_size, net.input_size))
    else:
        raise InputError(f"'{model}' is neither a file nor a network's name.{suggest(model, list(NETWORKS))}")
    typer.echo(json.dumps(found.to_dict(), indent=2) if as_json else str(found))
