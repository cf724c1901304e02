"""Table 2: what the three networks get right, in five variants each, on one scale; and the trainings that are missing.

Each row is a recipe, `small/DATA-NETWORK-VARIANT` or its full twin without `small/`. A finished run of it counts,
whether it is among the published results or was trained here. `train_missing` trains the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dabnet.errors import InputError, check_choice
from dabnet.sketches.store import SketchSet
from dabnet.training.data import divide
from dabnet.training.fit import fit
from dabnet.training.recipe import load_recipe
from dabnet.training.run import RUN, begin_run, open_run
from paper.finding import Finding, Table
from paper.published import ACCURACY, DATA_SETS, NAMES, NETWORKS, VARIANTS
from paper.rivalry import RIVALS, conclude, find_rivalries, settled_table
from paper.runs import Scale, find_runs, run_name, summarize

if TYPE_CHECKING:
    from rich.console import Console


def train_missing(
    scale: Scale,
    data: Path,
    data_set: str,
    folder: Path,
    *,
    networks: Sequence[str],
    folds: Sequence[int],
    seeds: Sequence[int],
    device: str = "auto",
    console: Console,
) -> None:
    """Train what no finished run is there of, one after the other; those that were stopped go on where they were."""
    sketches = SketchSet(data)
    for recipe in _recipes(scale, data_set, networks):
        settings = load_recipe(recipe)
        there = {(run.fold, run.seed) for run in find_runs(recipe, scale.runs)}
        for fold in folds:
            for seed in seeds:
                if (fold, seed) in there:
                    continue
                target = folder / run_name(recipe.stem, fold, seed)
                console.print(f"\n{target}", highlight=False)
                wanted = replace(settings, seed=seed)
                divide(sketches, wanted, fold)  # a fold or a class that is not there fails before anything is written
                if not (target / RUN).exists():
                    begin_run(target, wanted, data, fold)
                elif open_run(target)[:3] != (wanted, data.resolve(), fold):
                    raise InputError(
                        f"'{target}' was begun with other settings, sketches or another fold: move it away, or choose "
                        "another folder with --runs."
                    )
                fit(target, wanted, sketches, fold, device=device, console=console)


def _recipes(scale: Scale, data_set: str, networks: Sequence[str]) -> list[Path]:
    check_choice("data set", data_set, tuple(DATA_SETS))
    for network in networks:
        check_choice("network", network, tuple(NAMES))
    paths = [scale.recipe(data_set, network, variant) for network in networks for variant in VARIANTS]
    return [path for path in paths if path.exists()]


def find_table2(scale: Scale) -> Finding:
    """Show the finished runs of every recipe beside the paper's figures, and say what is missing."""
    found: dict[str, Any] = {}
    missing: list[str] = []
    rows = []
    for network, name in NETWORKS.items():
        for variant in VARIANTS:
            cells = [f"{name}, {VARIANTS[variant]}"]
            for data in DATA_SETS:
                accuracy = _find_cell(scale, data, network, variant, found, missing)
                cells += [accuracy, f"{ACCURACY[data][network][variant]:.1f}"]
            rows.append(tuple(cells))
        rows += [_gain_row(scale, network, *pair) for pair in RIVALS]
    ours = [
        (f"{name}, {VARIANTS[variant]}", _find_cell(scale, data, network, variant, found, missing), DATA_SETS[data])
        for network, name in NAMES.items()
        for data in DATA_SETS
        for variant in VARIANTS
        if network not in NETWORKS and scale.recipe(data, network, variant).exists()
    ]
    columns = [column for name in DATA_SETS.values() for column in (name, "paper")]
    rivalries = find_rivalries(scale)
    tables = [
        Table(f"Top-1 in percent, ten crops, {scale.name} scale, beside the paper's", ("network", *columns), rows),
        Table(
            "Ours: a shortcut around every convolution, or one of the paper's choices changed",
            ("network", "top-1", "data"),
            ours,
        ),
        settled_table(rivalries),
    ]
    return Finding(
        "table2" if scale.name == "small" else f"table2-{scale.name}",
        f"Table 2: accuracy, {scale.name} scale",
        {"scale": scale.name, "runs": found, "missing": missing, "rivals": [asdict(each) for each in rivalries]},
        [table for table in tables if table.rows],
        [*conclude(rivalries), *_tell_missing(scale, missing)],
    )


def _find_cell(scale: Scale, data: str, network: str, variant: str, found: dict[str, Any], missing: list[str]) -> str:
    """Return a cell of the table, and note what it is made of."""
    recipe, runs = scale.recipe(data, network, variant), scale.find(data, network, variant)
    accuracy = summarize(runs)
    if accuracy is None:
        missing.append(recipe.stem)
        return "-"
    found[recipe.stem] = {
        "top1": accuracy.mean,
        "spread": accuracy.spread,
        "runs": [{"fold": run.fold, "seed": run.seed, "top1": run.top1, "top5": run.top5} for run in runs],
    }
    return str(accuracy)


def _gain_row(scale: Scale, network: str, rival: str, dab: str) -> tuple[str, ...]:
    precision, name = VARIANTS[rival].split()
    cells = [f"{precision}: DAB-Net minus {name}"]
    for data in DATA_SETS:
        theirs, mine = (summarize(scale.find(data, network, variant)) for variant in (rival, dab))
        cells.append(f"{100 * (mine.mean - theirs.mean):+.1f}" if mine and theirs else "-")
        cells.append(f"{ACCURACY[data][network][dab] - ACCURACY[data][network][rival]:+.1f}")
    return tuple(cells)


def _tell_missing(scale: Scale, missing: list[str]) -> list[str]:
    said = []
    for data, name in DATA_SETS.items():
        lacking = [recipe.removeprefix(f"{data}-") for recipe in missing if recipe.startswith(data)]
        if not lacking:
            continue
        which = "all" if len(lacking) >= len(NETWORKS) * len(VARIANTS) else ", ".join(lacking)
        said.append(
            f"Missing of {name}: {which}. To train them: dabnet paper table2 --scale {scale.name} --data "
            f"{data}.parquet --data-set {data} --runs runs. It can be stopped, and goes on where it was; dabnet data "
            "list tells how to get the sketches."
        )
    return said
