"""`dabnet recipes`: the trainings that go by name."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from dabnet.recipes import describe, find_recipe, read_settings, recipe_names


def recipes(
    name: Annotated[
        str | None, typer.Argument(help="A recipe, by name or file, to show with what it builds on.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")] = False,
) -> None:
    """List the recipes that ship, one line each; of one that is named, show every setting that it changes.

    Train by one with: dabnet train NAME --data DATA. Begin a file of your own with base = "NAME", and write below it
    what differs.
    """
    if name is not None:
        settings = read_settings(find_recipe(name))
        if as_json:
            typer.echo(json.dumps({"name": name, "about": describe(name), "settings": settings}, indent=2))
            return
        typer.echo(f"# {describe(name)}")
        for key, value in settings.items():
            typer.echo(f"{key} = {json.dumps(value)}")
        return
    found = {each: describe(each) for each in recipe_names()}
    if as_json:
        typer.echo(json.dumps([{"name": each, "about": about} for each, about in found.items()], indent=2))
        return
    width = max(map(len, found))
    for each, about in found.items():
        typer.echo(f"{each:{width}}  {about}")
