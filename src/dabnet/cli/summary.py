"""`dabnet summary`: what each layer of a network is and costs."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from dabnet.errors import InputError, suggest
from dabnet.exporting.summary import summary as summarize
from dabnet.networks.catalog import NETWORKS, build
from dabnet.packed import find_model
from dabnet.training.run import load_model


def summary(
    model: Annotated[str, typer.Argument(help=f"A run's folder, a weights file, or one of {', '.join(NETWORKS)}.")],
    precision: Annotated[str, typer.Option(help="Of a network given by name: fprec, wbin or fbin.")] = "fbin",
    method: Annotated[str, typer.Option(help="Of a network given by name: dab, xnor or bnn.")] = "dab",
    classes: Annotated[int, typer.Option(help="Of a network given by name.")] = 250,
    width: Annotated[float, typer.Option(help="Of a network given by name: factor on all channels.")] = 1.0,
    size: Annotated[int | None, typer.Option(help="Of a network given by name: pixels a side.")] = None,
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
        net = build(model, classes, precision, method, width=width, input_size=size)  # type: ignore[arg-type]  # it checks
        found = summarize(net, (1, net.input_size, net.input_size))
    else:
        raise InputError(f"'{model}' is neither a file nor a network's name.{suggest(model, list(NETWORKS))}")
    typer.echo(json.dumps(found.to_dict(), indent=2) if as_json else str(found))
