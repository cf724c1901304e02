from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dabnet.errors import InputError
from dabnet.training.recipe import Recipe
from paper.runs import find_runs, mean_over_layers, read_traces, run_name, summarize

RECIPE = Recipe(network="resnet18", width=0.125, size=32, epochs=1)


def write_run(folder: Path, recipe: Recipe, top1: float | None) -> Path:
    """A run's folder, with a result unless it is not finished."""
    folder.mkdir(parents=True)
    (folder / "recipe.toml").write_text(recipe.to_toml())
    if top1 is not None:
        (folder / "result.json").write_text(json.dumps({"top1": top1, "top5": 1.0}))
    return folder


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipes" / "small" / "tuberlin-net-fbin-dab.toml"
    path.parent.mkdir(parents=True)
    path.write_text(RECIPE.to_toml())
    return path


def test_runs_of_any_seed_and_fold_count_and_no_others(recipe: Path, tmp_path: Path) -> None:
    published, mine, name = tmp_path / "published", tmp_path / "mine", recipe.stem
    write_run(published / run_name(name, 0, 0), RECIPE, 0.5)
    write_run(published / run_name(name, 0, 1), replace(RECIPE, seed=1), 0.6)
    write_run(mine / run_name(name, 2, 0), RECIPE, 0.7)
    write_run(mine / run_name(name, 0, 0), RECIPE, 0.1)  # a twin of a published one
    write_run(mine / run_name(name, 1, 0), RECIPE, None)  # not finished
    write_run(mine / run_name(name, 0, 3), replace(RECIPE, seed=3, epochs=2), 0.9)  # another recipe
    write_run(mine / f"{name}-again", RECIPE, 0.9)
    found = find_runs(recipe, [published, mine, tmp_path / "nowhere"])
    assert [(run.fold, run.seed, run.top1) for run in found] == [(0, 0, 0.5), (0, 1, 0.6), (2, 0, 0.7)]
    accuracy = summarize(found)
    assert accuracy is not None
    assert (accuracy.mean, accuracy.spread) == pytest.approx((0.6, 0.1))
    assert str(accuracy) == "60.0 ± 10.0 (3 runs)"
    assert summarize([]) is None


def test_traces_are_read_layer_by_layer(tmp_path: Path) -> None:
    (tmp_path / "traces.csv").write_text("epoch,layer,k_share\n1,a,0.5\n1,b,0.3\n2,a,0.4\n2,b,0.2\n")
    traces = read_traces(tmp_path)
    assert traces == {"a": {"epoch": [1, 2], "k_share": [0.5, 0.4]}, "b": {"epoch": [1, 2], "k_share": [0.3, 0.2]}}
    assert mean_over_layers(traces, "k_share") == pytest.approx([0.4, 0.3])
    with pytest.raises(InputError, match="holds no traces of binary layers"):
        read_traces(tmp_path / "nowhere")


def test_a_broken_result_is_one_sentence(recipe: Path, tmp_path: Path) -> None:
    run = write_run(tmp_path / recipe.stem, RECIPE, 0.5)
    (run / "result.json").write_text("{}")
    with pytest.raises(InputError, match="holds no result"):
        find_runs(recipe, [tmp_path])
