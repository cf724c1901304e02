"""All commands as typer sees them; only the one that was asked for is imported."""

from __future__ import annotations

import inspect
import platform
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
            _unwrap_group(function)
            app.add_typer(function, name=name, help=line)
        else:
            app.command(name, short_help=line, help=_unwrap(function.__doc__))(function)
    app(arguments)


def _unwrap(text: str | None) -> str:
    r"""Return a docstring with each paragraph in one line, for --help to break where the terminal ends.

    >>> _unwrap("Tell it.\n\n    Broken to fit\n    the source.\n")
    'Tell it.\n\nBroken to fit the source.'
    """
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in inspect.cleandoc(text or "").split("\n\n"))


def _unwrap_group(group: typer.Typer) -> None:
    for command in group.registered_commands:
        command.help = command.help or _unwrap(getattr(command.callback, "__doc__", None))
    for inner in group.registered_groups:
        if inner.typer_instance is not None:
            _unwrap_group(inner.typer_instance)


def _placeholder() -> None:
    """Stand for a command that was not asked for, in the list that --help prints."""


def _version(wanted: bool) -> None:
    if not wanted:
        return
    with ended_by_interrupts():
        native = load("dabnet._native")
    abi = "the stable ABI of Python 3.12" if native.IS_STABLE_ABI else "this Python's own ABI"
    typer.echo(f"dabnet {__version__}")
    typer.echo(
        f"kernels: {', '.join(native.kernel_names())}; the first of them runs unless DABNET_KERNELS names another"
    )
    typer.echo(f"built: by {native.COMPILER.strip()}, for {abi}")
    typer.echo(f"here: Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version, kernels and build, and exit.", is_eager=True, callback=_version
        ),
    ] = False,
) -> None:
    """Take the options that come before any command."""
