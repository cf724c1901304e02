"""`dabnet classes`: what a model knows."""

from __future__ import annotations

import difflib
import shutil
import sys
from typing import Annotated

import typer

from dabnet._text import printable, to_json
from dabnet.errors import InputError
from dabnet.packed import read_model
from dabnet.sketches.vocabulary import spelling

NEAR = 5
"""Names that are offered, at most, where none has the text."""
LEAST_LIKENESS = 0.7


def classes(
    model: Annotated[str, typer.Argument(help="A packed model, or a name that 'dabnet models' lists.")] = "default",
    search: Annotated[
        str | None, typer.Option(help="Only classes with this text in their name; if there is none, the nearest.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list, and nothing else.")] = False,
) -> None:
    """List the classes that a model knows: in columns on a terminal, one per line elsewhere.

    dabnet classes --search clock

    With --search, the exit code is 1 where no class has the text.
    """
    labels = sorted(read_model(model).labels, key=str.casefold)
    if not labels:
        raise InputError(f"the model '{model}' has no labels: nobody named its classes.")
    if search is None:
        _print(labels, as_json=as_json)
        return
    found = [label for label in labels if spelling(search) in spelling(label)]
    _print(found, as_json=as_json)
    if not found:
        near = nearest(search, labels)
        hint = f" Near it: {', '.join(near)}." if near else ""
        typer.echo(printable(f"'{model}' knows no '{search}'.{hint}"), err=True)
        raise typer.Exit(1)


def nearest(text: str, labels: list[str]) -> list[str]:
    """Return the labels that are most like a text, or have a word that is.

    >>> nearest("clok", ["alarm clock", "cloud", "cat", "zebra"])
    ['alarm clock']
    """
    words = {label: [spelling(label), *spelling(label).split()] for label in labels}
    likeness = {
        label: max(difflib.SequenceMatcher(None, spelling(text), word).ratio() for word in some)
        for label, some in words.items()
    }
    best = sorted(labels, key=lambda label: -likeness[label])[:NEAR]
    return [label for label in best if likeness[label] >= LEAST_LIKENESS]


def _print(labels: list[str], *, as_json: bool) -> None:
    if as_json:
        typer.echo(to_json(labels, indent=2))
    elif sys.stdout is not None and sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
        for line in in_columns([printable(label, width) for label in labels], width):
            typer.echo(line)
    else:
        for label in labels:
            typer.echo(printable(label))


def in_columns(names: list[str], width: int) -> list[str]:
    """Return lines of at most `width` characters that hold the names in columns, to be read downwards.

    >>> in_columns(["ant", "bee", "camel", "dog", "eel"], width=15)
    ['ant  camel  eel', 'bee  dog']
    """
    for height in range(1, len(names) + 1):
        columns = [names[start : start + height] for start in range(0, len(names), height)]
        widths = [max(map(len, column)) for column in columns]
        if sum(widths) + 2 * (len(widths) - 1) <= width or height == len(names):
            rows = [[column[row] for column in columns if row < len(column)] for row in range(height)]
            return ["  ".join(f"{name:{widths[at]}}" for at, name in enumerate(row)).rstrip() for row in rows]
    return []
