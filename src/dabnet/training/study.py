"""A study: a table of trainings that differ in a few settings, each with several seeds, and what they tell.

A study is a TOML file:

    title = "DAB against XNOR"
    recipe = "small/tuberlin-resnet18-fbin-dab"      # what all runs have in common
    seeds = [0, 1, 2]
    compare = "values"                               # the factor whose levels are compared, pair by pair
    measures = ["top1", "trace:error"]               # columns of metrics.csv (of the last epoch), or of result.json;
                                                     # trace: the mean over layers of a column of traces.csv

    [settings]                                       # of every run, beside the recipe's
    epochs = 20

    [factors.values]                                 # every combination of the factors' levels is a cell
    "DAB" = { method = "dab" }
    "XNOR" = { method = "xnor" }

    [factors.centring]
    "centred" = { centre = true }
    "not centred" = { centre = false }

    [[exclude]]                                      # combinations that are left out
    values = "XNOR"
    centring = "centred"

The first level of the compared factor is the one that the others are measured against. A difference is taken between
runs of the same seed, so what the seed decides cancels out; its interval is Student's, at 95 %.
"""

from __future__ import annotations

import csv
import itertools
import json
import re
import tomllib
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dabnet._settings import check_names, check_settings
from dabnet.errors import InputError
from dabnet.training.means import Mean, average, pooled_interval
from dabnet.training.recipe import Recipe, load_recipe

if TYPE_CHECKING:
    from collections.abc import Sequence

    Results = dict[tuple[tuple[str, ...], int], dict[str, float]]
    """What was measured, by a cell's levels and a seed."""


class Cell(NamedTuple):
    """One combination of levels."""

    levels: tuple[str, ...]
    """The level of each factor."""
    settings: dict[str, Any]


class StudyRun(NamedTuple):
    """A training of a study."""

    cell: Cell
    seed: int
    folder: str
    recipe: Recipe


@dataclass(frozen=True)
class StudySettings:
    """What a study's file says beside its factors."""

    recipe: str = ""
    """The name of a recipe that ships, or a file; its path is relative to the study's."""
    title: str = ""
    compare: str | None = None
    measures: list[str] = field(default_factory=lambda: ["validation_accuracy"])
    test: bool = False
    """Whether each run looks at the test fold at its end."""


@dataclass(frozen=True)
class Study:
    """A table of trainings."""

    name: str
    about: StudySettings
    seeds: tuple[int, ...]
    factors: dict[str, list[str]]
    """The levels of each factor."""
    cells: list[Cell]

    @property
    def runs(self) -> list[StudyRun]:
        """All trainings, first seeds first, so that early results are of all cells."""
        return [self._run(cell, seed) for seed in self.seeds for cell in self.cells]

    def _run(self, cell: Cell, seed: int) -> StudyRun:
        words = "-".join(re.sub(r"[^a-z0-9]+", "-", level.lower()).strip("-") for level in cell.levels) or "run"
        common = load_recipe(self.about.recipe).to_dict()
        recipe = Recipe.from_dict({**common, **cell.settings, "seed": seed})
        return StudyRun(cell, seed, f"{words}-seed{seed}", recipe)

    def pairs(self) -> list[tuple[Cell, Cell]]:
        """Return pairs of cells that differ in the compared factor only: (any other level, the first one)."""
        if self.about.compare is None:
            return []
        which = list(self.factors).index(self.about.compare)
        first = self.factors[self.about.compare][0]
        by_levels = {cell.levels: cell for cell in self.cells}
        pairs = []
        for cell in self.cells:
            partner = by_levels.get((*cell.levels[:which], first, *cell.levels[which + 1 :]))
            if partner is not None and partner is not cell:
                pairs.append((cell, partner))
        return pairs


def load_study(path: str | Path) -> Study:
    """Read a study's file, and check every recipe that it makes."""
    path = Path(path)
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise InputError(f"cannot read the study '{path}' ({problem.strerror}): check the path.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InputError(f"the study '{path}' is not valid TOML ({problem}).") from None
    try:
        if isinstance(beside := found.get("recipe"), str) and (path.parent / beside).is_file():
            found["recipe"] = str(path.parent / beside)
        study = _make(path.stem, found)
        folders = Counter(run.folder for run in study.runs)  # which checks the recipes
        name, times = folders.most_common(1)[0]
        if times > 1:
            raise InputError(f"two cells would be trained in '{name}': let their levels differ in letters or digits.")
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return study


def _make(name: str, found: dict[str, Any]) -> Study:
    seeds = found.pop("seeds", [0])
    common, factors = found.pop("settings", {}), found.pop("factors", {})
    exclude = found.pop("exclude", [])
    if not isinstance(factors, dict) or not isinstance(common, dict):
        raise InputError("[settings] and [factors.NAME] must be tables.")
    check_names("a study", found, StudySettings, "seeds", "settings", "factors", "exclude")
    about = StudySettings(**found)
    check_settings("the study's", about)
    if not about.recipe:
        raise InputError('a study needs a recipe, such as recipe = "small/tuberlin-resnet18-fbin-dab".')
    if not isinstance(seeds, list) or not seeds or not all(type(seed) is int and seed >= 0 for seed in seeds):
        raise InputError(f"the study's seeds must be a list of whole numbers, such as [0, 1, 2], not {seeds!r}.")
    for factor, levels in factors.items():
        if not isinstance(levels, dict) or not levels or not all(isinstance(each, dict) for each in levels.values()):
            raise InputError(f"the factor '{factor}' needs levels, each with its settings: name = {{ key = value }}.")
    taken = {"measure", "against", "pooled", "seed", "run", *Mean._fields, *about.measures} & set(factors)
    if taken:
        raise InputError(f"no factor can be called '{min(taken)}': the results have a column of that name.")
    if not about.measures:
        raise InputError('a study needs something to measure, such as measures = ["validation_accuracy"].')
    for rule in exclude if isinstance(exclude, list) else [exclude]:
        if not isinstance(rule, dict) or not rule or any(rule[name] not in factors.get(name, ()) for name in rule):
            raise InputError(f"[[exclude]] must name levels of the study's factors, not {rule!r}.")
    if about.compare is not None and about.compare not in factors:
        raise InputError(f"the study compares '{about.compare}', and its factors are: {', '.join(factors)}.")
    cells = []
    for combination in itertools.product(*(levels.items() for levels in factors.values())):
        levels = dict(zip(factors, (level for level, _ in combination), strict=True))
        if any(all(levels.get(factor) == level for factor, level in rule.items()) for rule in exclude):
            continue
        settings = dict(common)
        for _, changes in combination:
            settings |= changes
        cells.append(Cell(tuple(levels.values()), settings))
    if not cells:
        raise InputError("[[exclude]] leaves no cell of the study.")
    return Study(
        name, about, tuple(dict.fromkeys(seeds)), {factor: list(each) for factor, each in factors.items()}, cells
    )


def check_runs(study: Study, folder: Path) -> None:
    """Refuse a folder with runs that were trained with other settings than the study has."""
    for run in study.runs:
        kept = folder / run.folder / "recipe.toml"
        if kept.exists() and _without_teacher(load_recipe(kept)) != _without_teacher(run.recipe):
            raise InputError(
                f"'{kept.parent}' was trained with other settings than the study has now: choose another folder with "
                "-o, or delete it."
            )


def _without_teacher(recipe: Recipe) -> Recipe:
    """Leave out what a run's own recipe has as an absolute path."""
    return replace(recipe, teacher=None, teacher_share=None, teacher_temperature=None)


def is_finished(folder: Path, study: Study) -> bool:
    """Say whether a run is done: its pictures are drawn last, or its test is."""
    return (folder / ("result.json" if study.about.test else "curves.png")).exists()


def read_measures(folder: Path, measures: Sequence[str]) -> dict[str, float]:
    """Read what a finished run measured: columns of the last epoch in metrics.csv, or entries of result.json.

    "trace:NAME" is the mean over binary layers of a column of traces.csv, in the last epoch.
    """
    figures: dict[str, Any] = _read_table(folder / "metrics.csv")[-1]
    if (folder / "traces.csv").exists():
        rows = _read_table(folder / "traces.csv")
        last = [row for row in rows if row["epoch"] == rows[-1]["epoch"]]
        for name in rows[0]:
            if name not in ("epoch", "layer"):
                figures[f"trace:{name}"] = float(np.mean([float(row[name]) for row in last]))
    if (folder / "result.json").exists():
        figures |= json.loads((folder / "result.json").read_text(encoding="utf-8"))
    for measure in measures:
        if measure not in figures:
            known = ", ".join(name for name, value in figures.items() if not isinstance(value, dict))
            raise InputError(f"'{folder}' did not measure '{measure}': it has {known}.")
    return {measure: float(figures[measure]) for measure in measures}


def _read_table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


class Difference(NamedTuple):
    """By how much a cell is ahead of the one that it is compared with, over the seeds that both have."""

    cell: Cell
    partner: Cell
    gain: Mean
    pooled: float
    """Half of the 95 % interval's width with the spread of all cells that are compared; not a number if unknown."""


def compare_cells(study: Study, results: Results, measure: str) -> list[Difference]:
    """Return each pair's difference."""
    pairs: list[tuple[Cell, Cell, list[float]]] = []
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell, partner in study.pairs():
        if seeds := _seeds_of(study, results, [cell, partner]):
            gains = [results[cell.levels, seed][measure] - results[partner.levels, seed][measure] for seed in seeds]
            pairs.append((cell, partner, gains))
            groups.setdefault(partner.levels, [partner]).append(cell)
    values = [
        np.array([[results[cell.levels, seed][measure] for seed in seeds] for cell in cells])
        for cells in groups.values()
        if (seeds := _seeds_of(study, results, cells))
    ]
    return [
        Difference(cell, partner, average(gains), pooled_interval(values, len(gains))) for cell, partner, gains in pairs
    ]


def _seeds_of(study: Study, results: Results, cells: Sequence[Cell]) -> list[int]:
    """Return the seeds that all of these have results of."""
    return [seed for seed in study.seeds if all((cell.levels, seed) in results for cell in cells)]
