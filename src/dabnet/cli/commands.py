"""All commands as typer sees them; only the one that was asked for is imported."""

from __future__ import annotations

from typing import Annotated

import typer

from dabnet import __version__
from dabnet._lazy import load
from dabnet.cli.interrupts import ended_by_interrupts


def run(arguments: list[str], commands: dict[str, str]) -> None:
    """Run the command that is asked for; `commands` has the line that --help says of each."""
    asked = next((word for word in arguments if not word.startswith("-")), None)
    app = typer.Typer(
        help="Sketch recognition with one bit per weight.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    for name, line in commands.items():
        with ended_by_interrupts():
            function = getattr(load(f"dabnet.cli.{name}"), name) if name == asked else _placeholder
        if isinstance(function, typer.Typer):
            app.add_typer(function, name=name, help=line)
        else:
            app.command(name, short_help=line)(function)
    app(arguments)


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
