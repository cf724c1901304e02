"""The command line. One file a command; only the one that is asked for is imported, so that the others cost nothing."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dabnet import __version__
from dabnet._lazy import load
from dabnet.errors import DabnetError

COMMANDS = {
    "bench": "Compare a model's speed and size with other engines.",
    "classes": "List what a model knows.",
    "data": "Get data sets of sketches, prepare them, and look at them.",
    "demo": "Train three small networks, real and binary, and compare them.",
    "evaluate": "Test a trained network, and show what it confuses.",
    "export": "Pack a trained network into one small file.",
    "features": "Write what a packed model needs to learn more classes.",
    "models": "List the models that ship, with their size and accuracy.",
    "paper": "Check the paper's claims with runs of our own.",
    "recipes": "List the trainings that go by name, or show one.",
    "recognize": "Tell what drawings show.",
    "serve": "Serve a page to draw on, and recognition over HTTP.",
    "study": "Train a table of runs, and compare them.",
    "summary": "Tell what each layer of a network is and costs.",
    "train": "Train a network by a recipe.",
    "verify": "Compare a packed model with its network.",
}
"""Each command and the line that --help says of it; its function, or its group of commands, has the same name, in a
module of that name."""


def main(arguments: list[str] | None = None) -> None:
    """Run a command; an error that dabnet raised on purpose becomes one sentence and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    asked = next((word for word in arguments if not word.startswith("-")), None)
    app = typer.Typer(
        help="Sketch recognition with one bit a weight.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    try:
        for name, line in COMMANDS.items():
            function = getattr(load(f"dabnet.cli.{name}"), name) if name == asked else _placeholder
            if isinstance(function, typer.Typer):
                app.add_typer(function, name=name, help=line)
            else:
                app.command(name, short_help=line)(function)
        app(arguments)
    except DabnetError as error:
        typer.echo(f"dabnet: {error}", err=True)
        raise SystemExit(2) from None


def _placeholder() -> None:
    """Stand for a command that was not asked for, in the list that --help prints."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dabnet {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Take the options that come before any command."""
