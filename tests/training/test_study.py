from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dabnet.errors import InputError
from dabnet.training.means import average, pooled_interval
from dabnet.training.study import check_runs, compare_cells, load_study, read_measures

FACTORS = """
[factors.values]
"XNOR" = { method = "xnor" }
"DAB" = { method = "dab" }
[factors.centring]
"centred" = { centre = true }
"not centred" = { centre = false, epochs = 7 }
"""
HEAD = """
recipe = "small/tuberlin-resnet18-fbin-dab"
seeds = [0, 3]
compare = "values"
[settings]
epochs = 2
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(text)
    return path


def test_every_combination_of_levels_is_a_cell_with_every_seed(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, HEAD + FACTORS))
    assert [cell.levels for cell in study.cells] == [
        ("XNOR", "centred"), ("XNOR", "not centred"), ("DAB", "centred"), ("DAB", "not centred"),
    ]  # fmt: skip
    runs = study.runs
    assert [run.seed for run in runs] == [0] * 4 + [3] * 4
    assert len({run.folder for run in runs}) == 8
    run = runs[-1]
    assert (run.folder, run.recipe.method, run.recipe.centre, run.recipe.epochs, run.recipe.seed) == (
        "dab-not-centred-seed3", "dab", False, 7, 3,
    )  # fmt: skip
    assert runs[0].recipe.epochs == 2
    assert [(a.levels, b.levels) for a, b in study.pairs()] == [
        (("DAB", "centred"), ("XNOR", "centred")),
        (("DAB", "not centred"), ("XNOR", "not centred")),
    ]


def test_combinations_can_be_left_out(tmp_path: Path) -> None:
    rule = '[[exclude]]\nvalues = "XNOR"\ncentring = "centred"\n'
    study = load_study(write(tmp_path, HEAD + FACTORS + rule))
    assert ("XNOR", "centred") not in [cell.levels for cell in study.cells]
    assert len(study.cells) == 3
    assert len(study.pairs()) == 1


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[2] / "studies").glob("*.toml")), ids=lambda path: path.stem
)
def test_the_studies_that_are_kept_can_be_run(path: Path) -> None:
    study = load_study(path)
    assert len({run.folder for run in study.runs}) == len(study.cells) * len(study.seeds)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("recipe = [", "is not valid TOML"),
        ("seeds = [0]", "needs a recipe"),
        ('recipe = "nope"', "nope"),
        (HEAD.replace("[0, 3]", "[]") + FACTORS, "seeds must be a list of whole numbers"),
        (HEAD.replace("values", "colours") + FACTORS, "compares 'colours', and its factors are: values, centring"),
        (HEAD + "[factors.a]\nb = 3\n", "the factor 'a' needs levels"),
        (HEAD.replace("epochs = 2", "epoch = 2") + FACTORS, "has no setting 'epoch'"),
        (HEAD.replace("epochs = 2", "epochs = 0") + FACTORS, "epochs must be from 1"),
        (HEAD.replace("compare =", "comapre =") + FACTORS, "Did you mean 'compare'"),
        (HEAD + FACTORS.replace('"not centred"', '"Centred!"'), "two cells would be trained in '"),
        (
            HEAD + FACTORS + '[[exclude]]\nvalue = "DAB"\n',
            "must name levels of the study's factors, not {'value': 'DAB'}",
        ),
        (HEAD + FACTORS + "[[exclude]]\n", "must name levels of the study's factors, not {}"),
        (HEAD + FACTORS + "[factors.error]\na = {}\n", "no factor can be called 'error'"),
        ("factors = 3\n" + HEAD, "must be tables"),
    ],
)
def test_a_study_that_makes_no_sense_is_refused_before_anything_runs(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence.replace("[", r"\[")):
        load_study(write(tmp_path, text))


def test_the_interval_of_a_mean_is_students(tmp_path: Path) -> None:
    values = [0.50, 0.53, 0.51, 0.55]
    found = average(values)
    deviation = math.sqrt(sum((v - np.mean(values)) ** 2 for v in values) / 3)
    assert found.error == pytest.approx(deviation / 2)
    assert found.interval == pytest.approx(3.182 * deviation / 2)
    alone = average([0.5])
    assert alone.mean == 0.5
    assert math.isnan(alone.interval)


def test_the_pooled_interval_of_one_pair_is_its_own() -> None:
    pair = np.array([[0.50, 0.53, 0.51], [0.52, 0.54, 0.55]])
    assert pooled_interval([pair], 3) == pytest.approx(average(pair[1] - pair[0]).interval)
    assert math.isnan(pooled_interval([pair[:, :1]], 1))
    assert math.isnan(pooled_interval([], 3))


def test_pooled_intervals_hold_as_often_as_they_say() -> None:
    """Ten cells against one, two seeds: the noise of the one is in all differences, and is counted once."""
    random = np.random.default_rng(0)
    held = 0
    for _ in range(2000):
        values = random.normal(size=(11, 2)) + 3 * random.normal(size=2)  # and what a seed adds to all
        held += abs((values[1] - values[0]).mean()) <= pooled_interval([values], 2)
    assert 0.94 < held / 2000 < 0.965


def test_differences_are_between_runs_of_the_same_seed(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, HEAD + FACTORS))
    results = {(cell.levels, seed): {"top1": 0.5 + 0.1 * seed} for cell in study.cells for seed in (0, 3)}
    for seed, gain in ((0, 0.02), (3, 0.04)):
        results[("DAB", "centred"), seed] = {"top1": 0.5 + 0.1 * seed + gain}
    del results[("XNOR", "not centred"), 3]
    centred, other = compare_cells(study, results, "top1")
    assert centred[2].mean == pytest.approx(0.03)
    assert centred[2].error == pytest.approx(0.01)
    assert (other[2].mean, other[2].seeds) == (0, 1)


def test_runs_of_other_settings_are_not_taken_for_the_studys(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, HEAD + FACTORS))
    run = study.runs[0]
    (tmp_path / run.folder).mkdir()
    (tmp_path / run.folder / "recipe.toml").write_text(run.recipe.to_toml())
    check_runs(study, tmp_path)
    (tmp_path / run.folder / "recipe.toml").write_text(replace(run.recipe, epochs=1).to_toml())
    with pytest.raises(InputError, match="was trained with other settings than the study has now"):
        check_runs(study, tmp_path)


def test_measures_are_the_last_epochs_and_the_tests(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text("epoch,validation_accuracy\n1,0.9\n2,0.4\n")
    assert read_measures(tmp_path, ["validation_accuracy"]) == {"validation_accuracy": 0.4}
    with pytest.raises(InputError, match="did not measure 'top1': it has epoch, validation_accuracy"):
        read_measures(tmp_path, ["top1"])
    (tmp_path / "traces.csv").write_text("epoch,layer,flip\n1,a,0.9\n2,a,0.1\n2,b,0.3\n")
    assert read_measures(tmp_path, ["trace:flip"]) == {"trace:flip": pytest.approx(0.2)}
    (tmp_path / "result.json").write_text('{"top1": 0.3, "per_class": {}}')
    assert read_measures(tmp_path, ["top1", "validation_accuracy"]) == {"top1": 0.3, "validation_accuracy": 0.4}
