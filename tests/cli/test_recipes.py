from __future__ import annotations

import json

import pytest

from dabnet.cli import main
from dabnet.recipes import describe, recipe_names
from dabnet.training.recipe import Recipe, load_recipe


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["recipes", *arguments])
    return int(ended.value.code or 0)


def test_recipes_are_listed_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(maxsplit=1) for line in lines] == [[name, describe(name)] for name in recipe_names()]
    assert run("--json") == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)] == recipe_names()


def test_one_recipe_is_shown_with_what_it_builds_on(capsys: pytest.CaptureFixture[str]) -> None:
    name = "small/tuberlin-resnet18-ste-fbin-dab"
    assert run(name, "--json") == 0
    assert Recipe.from_dict(json.loads(capsys.readouterr().out)["settings"]) == load_recipe(name)
    assert run(name) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"# {describe(name)}"
    assert 'gradient = "ste"' in lines


def test_an_unknown_recipe_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("small/tuberlin-resnet18-fbin-dap") == 2
    assert "Did you mean 'small/tuberlin-resnet18-fbin-dab'?" in capsys.readouterr().err
