"""`dabnet leaderboard`: methods by their accuracy, from results that were committed."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from dabnet._lazy import load
from dabnet._text import printable
from dabnet.cli.console import PlainConsole
from dabnet.comparing.leaderboard import Entry, group_entries, read_entries, write_entry
from dabnet.errors import InputError


def leaderboard(
    runs: Annotated[
        list[Path] | None, typer.Argument(help="With --add: the finished runs of one method, one per seed.")
    ] = None,
    add: Annotated[str | None, typer.Option(help="Write the entry of a method by this name first.")] = None,
    folder: Annotated[Path, typer.Option(help="Where the entries are.")] = Path("docs/results/leaderboard"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the entries as JSON, and nothing else.")] = False,
) -> None:
    """List methods by their accuracy on the test fold, with its 95 % interval over seeds, bytes and milliseconds.

    Methods stand in one table where they have the same network, width, size, epochs and test. docs/leaderboard.md tells
    how to add one.
    """
    if bool(runs) != (add is not None):
        raise InputError('to add a method, give its runs and its name: dabnet leaderboard RUN ... --add "NAME".')
    if runs and add is not None:
        write_entry(load("dabnet.comparing.entering").make_entry(add, runs), folder)
    entries = read_entries(folder)
    if as_json:
        typer.echo(json.dumps([_to_dict(entry) for entry in entries], indent=2))
        return
    if not entries:
        raise InputError(f"'{folder}' has no entries: add one with dabnet leaderboard RUN ... --add NAME.")
    console = PlainConsole()
    for (test, network), members in group_entries(entries).items():
        console.print(_table(f"{network}; test: {test}", members))
        console.print(f"Milliseconds on {printable(', '.join(sorted({entry.processor for entry in members})))}.")


def _to_dict(entry: Entry) -> dict[str, object]:
    mean = entry.accuracy
    interval = mean.interval if mean.seeds > 1 else None
    return dataclasses.asdict(entry) | {"mean": mean.mean, "interval": interval}


def _table(title: str, entries: list[Entry]) -> Table:
    table = Table("method", title=printable(title), title_justify="left")
    for heading in ("top-1", "± 95 %", "seeds", "bytes", "ms"):
        table.add_column(heading, justify="right")
    for entry in entries:
        accuracy = entry.accuracy
        interval = f"{100 * accuracy.interval:.1f}" if accuracy.seeds > 1 else ""
        table.add_row(
            printable(entry.method), f"{100 * accuracy.mean:.1f}", interval, str(accuracy.seeds), f"{entry.bytes:,}",
            f"{entry.milliseconds:.2f}",
        )  # fmt: skip
    return table
