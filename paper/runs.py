"""Finished trainings: which there are of a recipe, what they got right, and what became of their binary layers.

A run's folder is called as its recipe, with -foldF and -seedS behind it where these are not 0, and holds the recipe as
it was run, result.json and, of binary layers, traces.csv.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dabnet.errors import InputError, check_choice
from dabnet.training.recipe import Recipe, load_recipe


class Run(NamedTuple):
    """A finished training."""

    folder: Path
    fold: int
    seed: int
    top1: float
    top5: float


class Accuracy(NamedTuple):
    """What the runs of a recipe got right."""

    mean: float
    spread: float | None
    """Standard deviation over folds and seeds; one run has none."""
    runs: int

    def __str__(self) -> str:
        """Return it in percent.

        >>> print(Accuracy(0.5, None, 1), Accuracy(0.5, 0.01, 3))
        50.0 50.0 ± 1.0 (3 runs)
        """
        if self.spread is None:
            return f"{self.mean:.1%}".rstrip("%")
        return f"{100 * self.mean:.1f} ± {100 * self.spread:.1f} ({self.runs} runs)"


def run_name(recipe: str, fold: int, seed: int) -> str:
    """Name the folder of a run.

    >>> run_name("tuberlin-resnet18-fprec", 0, 0), run_name("tuberlin-resnet18-fprec", 2, 1)
    ('tuberlin-resnet18-fprec', 'tuberlin-resnet18-fprec-fold2-seed1')
    """
    return recipe + (f"-fold{fold}" if fold else "") + (f"-seed{seed}" if seed else "")


def find_runs(recipe: Path, folders: Iterable[Path]) -> list[Run]:
    """Find the finished runs of a recipe, with any seed and fold, but no other change; of twins the first counts."""
    wanted = load_recipe(recipe)
    found: dict[tuple[int, int], Run] = {}
    for parent in folders:
        for folder in sorted(parent.glob(f"{recipe.stem}*")):
            name = re.fullmatch(r"(-fold(\d+))?(-seed\d+)?", folder.name.removeprefix(recipe.stem))
            if name is None or not (folder / "result.json").exists():
                continue
            trained = load_recipe(folder / "recipe.toml")
            if _in_essence(trained) != _in_essence(wanted):
                continue
            fold = int(name[2] or 0)
            result = _read_result(folder / "result.json")
            found.setdefault((fold, trained.seed), Run(folder, fold, trained.seed, *result))
    return [found[key] for key in sorted(found)]


def _in_essence(recipe: Recipe) -> Recipe:
    return replace(recipe, seed=0)


def _read_result(path: Path) -> tuple[float, float]:
    try:
        result = json.loads(path.read_text())
        return float(result["top1"]), float(result["top5"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"'{path}' holds no result: delete it, and test the run again with dabnet train.") from None


def summarize(runs: Sequence[Run]) -> Accuracy | None:
    """Return mean and spread of the runs' top-1; None if there is no run."""
    if not runs:
        return None
    shares = [run.top1 for run in runs]
    return Accuracy(float(np.mean(shares)), float(np.std(shares, ddof=1)) if len(shares) > 1 else None, len(shares))


@dataclass(frozen=True)
class Scale:
    """Where the recipes of a scale are, and where its runs may be."""

    name: str
    recipes: Path
    runs: Sequence[Path]

    def recipe(self, data: str, network: str, variant: str) -> Path:
        """Return the path of a recipe, whether it is there or not."""
        folder = self.recipes / "small" if self.name == "small" else self.recipes
        return folder / f"{data}-{network}-{variant}.toml"

    def find(self, data: str, network: str, variant: str) -> list[Run]:
        """Find the runs of a recipe; there are none where there is no recipe."""
        recipe = self.recipe(data, network, variant)
        return find_runs(recipe, self.runs) if recipe.exists() else []


def open_scale(name: str, recipes: Path, runs: Sequence[Path]) -> Scale:
    """Check that there are recipes."""
    check_choice("scale", name, ("small", "full"))
    scale = Scale(name, recipes, runs)
    if not scale.recipe("tuberlin", "resnet18", "fbin-dab").exists():
        raise InputError(
            f"'{recipes}' holds no recipes of the scale '{name}': leave out --recipes for those that ship, or give "
            "another folder."
        )
    return scale


Traces = dict[str, dict[str, list[float]]]
"""For each layer, in the network's order, a list a column: epoch, alpha, beta, k_share, flip, error."""


def read_traces(folder: Path) -> Traces:
    """Read what became of each binary layer, epoch by epoch."""
    path = folder / "traces.csv"
    found: Traces = {}
    try:
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                layer = found.setdefault(row.pop("layer"), {name: [] for name in row})
                for name, value in row.items():
                    layer[name].append(float(value))
    except (OSError, ValueError, KeyError, csv.Error):
        raise InputError(
            f"'{path}' holds no traces of binary layers: run this in a clone of dabnet's repository, or train the "
            f"network by the recipe small/{folder.name} and give the folder that holds its run with --results."
        ) from None
    return found


def mean_over_layers(traces: Traces, column: str) -> list[float]:
    """Return a column's mean over the layers, an epoch at a time."""
    return [float(np.mean(values)) for values in zip(*(layer[column] for layer in traces.values()), strict=True)]
