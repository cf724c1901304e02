from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

import pytest

from dabnet.errors import InputError
from dabnet.training.recipe import Recipe, change_recipe, load_recipe


def test_a_recipe_survives_being_written() -> None:
    recipe = Recipe(classes=["cat", 'a "dog"'], max_k_step=0.01, crop_scale=(0.5, 0.9), gradient="ste")
    assert Recipe.from_dict(tomllib.loads(recipe.to_toml())) == recipe


def test_changes_are_read_as_toml_or_as_text() -> None:
    changes = ["epochs=3", "method=xnor", "width=1", "centre=false", 'classes=["cat", "dog"]', "crop_scale = [0.8, 1]"]
    recipe = change_recipe(Recipe(), changes)
    assert (recipe.epochs, recipe.weights, recipe.width, recipe.centre) == (3, "xnor", 1.0, False)
    assert (recipe.classes, recipe.crop_scale) == (["cat", "dog"], (0.8, 1))
    untouched = {field.name for field in dataclasses.fields(Recipe)} - {
        "epochs", "weights", "width", "centre", "classes", "crop_scale",
    }  # fmt: skip
    assert all(getattr(recipe, name) == getattr(Recipe(), name) for name in untouched)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("epoch=3", "no setting 'epoch'. Did you mean 'epochs'?"),
        ("epochs", "write --set KEY=VALUE"),
        ("epochs=0", "epochs must be from 1 to"),
        ("epochs=2.5", "epochs must be a whole number"),
        ("epochs=many", "epochs must be from"),
        ("precision=bin", "'bin' is not a precision: choose one of fprec, wbin, fbin. Did you mean"),
        (
            "weights=dap",
            "the recipe's weights must be one of real, dab, xnor, bnn, dab-learned, irnet, recu, adabin, not",
        ),
        ("activations=int7", "activations must be one of real, int8, int4, sign, not 'int7'. Did you mean"),
        ("gradient=exakt", "Did you mean 'exact'?"),
        ("schedule=linear", "schedule must be one of steps, one-cycle, cosine, not 'linear'"),
        ("size=3", "the rasterizer's size must be from 8"),
        ("crops=5", "crops must be 1 or 10"),
        ("accumulate=3", "cannot be divided into 3 equal parts"),
        ("crop_scale=[1, 0.5]", "crop_scale must be two numbers"),
        ("flip=2", "flip must be from 0 to 1"),
        ("learning_rate=nan", "learning_rate must be from"),
        ("centre=7", "centre must be true or false"),
        ("teacher=7", "teacher must be text"),
        ("teacher_share=2", "teacher_share must be from 0 to 1"),
        ("teacher_temperature=0", "teacher_temperature must be from 0.1"),
        ("scribbles=0.6", "scribbles must be from 0 to 0.5"),
        ("classes=cat", "classes must be a list of names"),
    ],
)
def test_a_bad_change_is_one_sentence(change: str, words: str) -> None:
    with pytest.raises(InputError) as error:
        change_recipe(Recipe(), [change])
    assert words in str(error.value)


def test_a_bad_file_is_named_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    with pytest.raises(InputError, match=r"cannot read the recipe '.*mine.toml' \(no such file"):
        load_recipe(path)
    path.write_text("epochs = = 3")
    with pytest.raises(InputError, match=r"mine.toml' is not valid TOML"):
        load_recipe(path)
    path.write_text("lerning_rate = 0.1")
    with pytest.raises(
        InputError, match=r"mine.toml: a recipe has no setting 'lerning_rate'. Did you mean 'learning_rate'"
    ):
        load_recipe(path)
