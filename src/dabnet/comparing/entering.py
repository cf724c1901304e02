"""From the finished runs of a method to its entry in the leaderboard: what it got right, weighs and takes."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dabnet._settings import setting_types
from dabnet.comparing.leaderboard import Entry, processor
from dabnet.errors import InputError
from dabnet.exporting.lower import lower
from dabnet.exporting.verify import verify
from dabnet.networks.catalog import build
from dabnet.networks.convert import change_weights_
from dabnet.networks.settings import NetworkOptions
from dabnet.packed import to_bytes
from dabnet.runtime import Session
from dabnet.sketches.synthetic import synthetic_sketches
from dabnet.training.recipe import Recipe, load_recipe
from dabnet.training.run import BEST, RECIPE, load_trained

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import nn

VERIFIED = 20
"""Drawings on which the runtime must answer as the network does."""
TIMED = 300
"""Runs, of which the fastest counts."""
_TRACK = ("network", "width", "size")


def make_entry(method: str, runs: Sequence[Path]) -> Entry:
    """Make the entry of a method from its runs, one per seed; its runtime is held to its network first.

    A run without its weights will do: its network is built anew by its recipe, for bytes and time do not depend on what
    was learnt.
    """
    recipes = [load_recipe(run / RECIPE) for run in runs]
    results = [_read_result(run) for run in runs]
    seeds = [recipe.seed for recipe in recipes]
    first = recipes[0]
    for run, recipe in zip(runs, recipes, strict=True):
        if dataclasses.replace(recipe, seed=first.seed) != first:
            raise InputError(f"'{run}' has other settings than '{runs[0]}' beside its seed: they are not one method.")
    if len(set(seeds)) < len(seeds):
        raise InputError(f"two runs have the same seed, of {seeds}: each counts once.")
    if len({(result["drawings"], tuple(result["per_class"])) for result in results}) > 1:
        raise InputError("the runs were tested on different drawings: an entry takes runs of one set and one fold.")
    classes = len(results[0]["per_class"])
    net = load_trained(runs[0]).net if (runs[0] / BEST).exists() else _build(first, classes)
    drawings = synthetic_sketches(VERIFIED, first.size)[0][:, None].astype(np.float32) / np.float32(255)
    model = lower(net, (1, first.size, first.size)).model
    if not verify(net, model, [drawings]).is_fine:
        raise InputError(f"the runtime answers otherwise than the network of '{runs[0]}': 'dabnet verify' tells where.")
    packed = to_bytes(model)
    return Entry(
        method=method,
        network=f"{first.network}, {first.width:g} of the width, {first.size} pixels, {first.epochs} epochs",
        test=f"{results[0]['drawings']} drawings of {classes} classes, {first.crops} views each",
        seeds=seeds,
        top1=[round(float(result["top1"]), 6) for result in results],
        bytes=len(packed),
        milliseconds=round(1000 * _fastest(packed, drawings[:1]), 3),
        processor=processor(),
        settings=_differences(first),
    )


def _read_result(run: Path) -> dict[str, Any]:
    path = run / "result.json"
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        _ = found["top1"], found["drawings"], found["per_class"]
    except (OSError, ValueError, KeyError) as problem:
        raise InputError(
            f"'{run}' has no test result ({problem}): an entry takes finished runs that were tested."
        ) from None
    return found


def _build(recipe: Recipe, classes: int) -> nn.Module:
    net = build(**recipe.network_settings(classes))
    if recipe.final_weights is not None:
        change_weights_(net, recipe.final_weights)
    return net


def _fastest(packed: bytes, drawing: NDArray[np.float32]) -> float:
    """Return the seconds of the fastest run on one thread."""
    session = Session(packed, threads=1)
    seconds = []
    for _ in range(TIMED):
        start = time.perf_counter()
        session.run(drawing)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _differences(recipe: Recipe) -> dict[str, Any]:
    """Return what tells the method: settings of the network and its weights that are not the defaults."""
    names = [*setting_types(NetworkOptions), "centre", "final_weights", "binary_decay", "decay_to", "first_stage"]
    mine, plain = recipe.to_dict(), Recipe().to_dict()
    always = ("weights", "activations")
    return {
        name: mine[name]
        for name in names
        if mine[name] is not None and name not in _TRACK and (name in always or mine[name] != plain[name])
    }
