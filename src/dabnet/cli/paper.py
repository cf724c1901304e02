"""`dabnet paper`: the commands in the folder `paper`, which is beside this package in a clone, and in no wheel."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dabnet._lazy import load
from dabnet.errors import InputError

if TYPE_CHECKING:
    import typer

CLONE = Path(__file__).parents[3]


def find_commands(clone: Path) -> typer.Typer:
    """Import the commands from a clone of the repository."""
    if not (clone / "paper" / "commands.py").is_file():
        raise InputError(
            "dabnet paper needs a clone of the repository, where its code and the runs that it shows are: run make in "
            "one, and then .venv/bin/dabnet paper."
        )
    if str(clone) not in sys.path:
        sys.path.insert(0, str(clone))
    found: typer.Typer = load("paper.commands").paper
    return found


paper = find_commands(CLONE)
