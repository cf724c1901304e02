from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Annotated, Any

import pytest

from dabnet._settings import Within
from dabnet.binarizers.choices import translate_names
from dabnet.errors import InputError
from dabnet.recipes import FOLDER, describe, find_recipe, read_settings, recipe_names
from dabnet.training.recipe import Recipe, change_recipe, load_recipe

RESOLVED = json.loads((Path(__file__).parent / "resolved.json").read_text())
"""What every recipe said when each file still listed every setting: what most have in common, and the differences."""

VARIANTS = {
    "fprec": ("real", "real"),
    "wbin-bwn": ("xnor", "real"),
    "fbin-xnor": ("xnor", "sign"),
    "wbin-dab": ("dab", "real"),
    "fbin-dab": ("dab", "sign"),
}
PAPER = [
    f"{data}-{network}-{variant}"
    for data in ("tuberlin", "sketchy")
    for network in ("sketch-a-net", "resnet18", "googlenet")
    for variant in VARIANTS
]


@pytest.mark.parametrize("name", RESOLVED["recipes"])
def test_a_recipe_resolves_to_the_settings_that_it_always_had(name: str) -> None:
    resolved, defaults = load_recipe(name).to_dict(), Recipe().to_dict()
    before = translate_names({**RESOLVED["common"], **RESOLVED["recipes"][name]})
    assert {key: resolved[key] for key in before} == before
    added = resolved.keys() - before.keys()
    assert {key: resolved[key] for key in added} == {key: defaults[key] for key in added}


def test_every_network_variant_and_set_of_the_paper_has_a_recipe_and_a_small_twin() -> None:
    names = recipe_names()
    assert [name for name in names if "/" not in name] == sorted(PAPER)
    assert {f"small/{name}" for name in PAPER} < set(names)
    assert set(names) >= set(RESOLVED["recipes"])


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_says_what_its_name_says_in_one_line_and_repeats_nothing(name: str) -> None:
    recipe = load_recipe(name)
    for variant, names in VARIANTS.items():
        if name.endswith(variant):
            assert (recipe.weights, recipe.activations) == names
            assert recipe.network.replace("_", "-") in name
    assert describe(name).endswith(".")
    own = tomllib.loads(find_recipe(name).read_text())
    base = own.pop("base", "bases/")
    if not base.startswith("bases/"):
        above = load_recipe(base).to_dict()
        assert not [key for key, value in own.items() if above[key] == value]


@pytest.mark.parametrize("name", PAPER)
def test_full_recipes_are_the_papers(name: str) -> None:
    recipe = load_recipe(name)
    assert (recipe.learning_rate, recipe.least_learning_rate, recipe.halve_every) == (0.002, 0.00005, 50)
    assert (recipe.schedule, recipe.weight_decay, recipe.crops, recipe.centre) == ("steps", 0, 10, True)
    sizes = (225, 256) if recipe.network == "sketch_a_net" else (224, 128)
    assert (recipe.size, recipe.batch_size) == sizes
    assert (recipe.width, recipe.shortcuts, recipe.gradient) == (1, "block", None)


def test_a_new_setting_is_one_field_and_no_recipe_changes() -> None:
    new: Any = ("mixing", Annotated[float, Within(0, 1)], dataclasses.field(default=0.25))
    longer: Any = dataclasses.make_dataclass("Longer", [new], bases=(Recipe,), frozen=True)
    for name in recipe_names():
        settings = read_settings(find_recipe(name))
        recipe = longer.from_dict(settings)
        assert recipe.to_dict() == {**Recipe.from_dict(settings).to_dict(), "mixing": 0.25}
        assert "\nmixing = 0.25\n" in recipe.to_toml()
    assert change_recipe(recipe, ["mixing=1"]).to_dict()["mixing"] == 1.0
    with pytest.raises(InputError, match="the recipe's mixing must be from 0 to 1, not 2"):
        change_recipe(recipe, ["mixing=2"])


def test_a_file_of_your_own_builds_on_a_shipped_recipe_or_on_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('base = "small/tuberlin-resnet18-fbin-dab"\nepochs = 7\n')
    (tmp_path / "twin.toml").write_text('base = "mine.toml"\nseed = 1\n')
    shipped = load_recipe("small/tuberlin-resnet18-fbin-dab")
    assert load_recipe(tmp_path / "mine.toml") == dataclasses.replace(shipped, epochs=7)
    assert load_recipe(tmp_path / "twin.toml") == dataclasses.replace(shipped, epochs=7, seed=1)
    assert load_recipe(tmp_path / "twin.toml", ["epochs=9"]) == dataclasses.replace(shipped, epochs=9, seed=1)


def test_a_bad_base_is_one_sentence(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine.toml", tmp_path / "other.toml"
    mine.write_text('base = "smal/tuberlin-resnet18-fbin-dab"')
    with pytest.raises(InputError, match=r"mine.toml: its base .* Did you mean 'small/tuberlin-resnet18-fbin-dab'\?"):
        load_recipe(mine)
    mine.write_text('base = "nowhere.toml"')
    with pytest.raises(InputError, match=r"mine.toml: its base cannot be found: cannot read the recipe 'nowhere.toml'"):
        load_recipe(mine)
    mine.write_text("base = 3")
    with pytest.raises(InputError, match=r"mine.toml: base must be a recipe's name or file, not 3"):
        load_recipe(mine)
    mine.write_text('base = "other.toml"')
    other.write_text('base = "mine.toml"')
    with pytest.raises(InputError, match=r"other.toml: its base 'mine.toml' is built on 'other.toml' itself"):
        load_recipe(mine)
    with pytest.raises(InputError, match=r"no recipe 'tuberlin-resnet' .*'dabnet recipes' lists|Did you mean"):
        load_recipe("tuberlin-resnet")


def test_listing_recipes_needs_no_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None; from dabnet.cli import main\n"
        "try: main(['recipes'])\nexcept SystemExit as end: assert not end.code"
    )
    listed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert [line.split()[0] for line in listed.splitlines()] == recipe_names()


def test_recipes_lie_in_the_package_so_that_they_ship_with_it() -> None:
    import dabnet

    assert Path(str(dabnet.__file__)).parent in FOLDER.parents
