"""`dabnet models`: the models that ship with the package."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from dabnet.errors import InputError, suggest
from dabnet.packed.cards import Card, read_card
from dabnet.packed.shipped import ALIASES, model_names


def models(
    name: Annotated[str | None, typer.Argument(help="A model that ships, to see its card.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")] = False,
) -> None:
    """List the models that ship with their classes, bytes and accuracy; of one that is named, show the card.

    Every command that takes a packed model takes these names. Without one it takes 'default', which stands for the
    first of them. 'dabnet classes NAME' lists what a model knows.
    """
    if name is None:
        cards = [read_card(each) for each in model_names()]
        if as_json:
            typer.echo(json.dumps([_to_dict(card) for card in cards], indent=2))
        else:
            _print_table(cards)
        return
    names = [*model_names(), *ALIASES]
    if name not in names:
        raise InputError(f"no model '{name}' ships: 'dabnet models' lists those that do.{suggest(name, names)}")
    card = read_card(name)
    if as_json:
        typer.echo(json.dumps(_to_dict(card), indent=2))
    else:
        _print_card(card)


def _to_dict(card: Card) -> dict[str, object]:
    return {"name": card.name, "aliases": _aliases(card), **card.to_dict()}


def _aliases(card: Card) -> list[str]:
    return [alias for alias, name in ALIASES.items() if name == card.name]


def _print_table(cards: list[Card]) -> None:
    rows = [("model", "classes", "bytes", "right at first guess")]
    for card in cards:
        name = ", also ".join([card.name, *_aliases(card)])
        rows.append((name, f"{card.classes}", f"{card.bytes:,}", str(card.accuracy[0])))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, classes, size, accuracy in rows:
        typer.echo(f"{name:{widths[0]}}  {classes:>{widths[1]}}  {size:>{widths[2]}}  {accuracy}")


def _print_card(card: Card) -> None:
    typer.echo(f"{', also '.join([card.name, *_aliases(card)])}: {card.about}")
    typer.echo(f"{card.classes} classes, {card.bytes:,} bytes, made {card.made}, licence {card.licence}; {card.page}")
    typer.echo("\nLearnt from")
    for source in card.data:
        typer.echo(f"  {source.set}: {source.used}. {source.licence}; {source.attribution}")
    typer.echo("\nRight at first guess")
    for figures in card.accuracy:
        typer.echo(
            f"  {figures} ({figures.drawings:,} drawings, {figures.measured}); top-5 {figures.top5:.1%}, calibration "
            f"error {figures.calibration_error:.1%}\n    {figures.command}"
        )
