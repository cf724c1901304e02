"""A run's folder: the recipe, the weights, and what happened, so that it can be resumed, opened and looked at.

recipe.toml         every setting, with the changes of the command line
run.json            data set, fold, the weights it started from, whether to test
held_back.txt       ids of the drawings that the best epoch is chosen by; a run that starts from this one keeps to them
metrics.csv         a row per epoch
traces.csv          a row per epoch and binary layer: alpha, beta, K/n, flips, error, skew
last.ckpt           all that it takes to go on
best.safetensors    the weights of the epoch that was best on the validation sketches
result.json         the test, once, at the end
curves.png traces.png confusion.png
tensorboard/
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from dabnet._files import write_beside
from dabnet.errors import InputError
from dabnet.networks.catalog import build
from dabnet.packed import find_model
from dabnet.sketches.raster import Raster
from dabnet.training.recipe import Recipe, load_recipe

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import nn

BEST, LAST, METRICS, RECIPE, RUN = "best.safetensors", "last.ckpt", "metrics.csv", "recipe.toml", "run.json"
HELD_BACK = "held_back.txt"


class TrainedNetwork(NamedTuple):
    """A trained network, what its outputs mean, and how it sees sketches."""

    net: nn.Module
    classes: list[str]
    raster: Raster


def write_table(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: f"{v:.6g}" if isinstance(v, float) else v for key, v in row.items()} for row in rows)
    write_beside(path, text.getvalue().encode(), then="resume the run")


def save_weights(net: nn.Module, path: Path, classes: Sequence[str], raster: Raster) -> None:
    """Write a network's weights with all that is needed to build it again."""
    about = {"settings": net.settings, "classes": list(classes), "raster": raster.to_dict()}
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in net.state_dict().items()}
    write_beside(path, save(tensors, {"dabnet": json.dumps(about)}), then="resume the run")


def load_trained(path: str | Path) -> TrainedNetwork:
    """Load the network of a run's folder, or of a weights file."""
    path = find_model(path)
    file = path / BEST if path.is_dir() else path
    if not file.exists():
        what = "has no finished epoch yet: train it first" if path.is_dir() else "is not there: check the path"
        raise InputError(f"'{path}' {what}.")
    try:
        with safe_open(file, "pt") as opened:
            about = json.loads((opened.metadata() or {})["dabnet"])
            if "nodes" in about:
                raise InputError(
                    f"'{file}' is a packed model, without the weights that were trained: give the run that it was "
                    "packed from."
                )
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118  # it is no dict
        net = build(**about["settings"])
        net.load_state_dict(tensors)
        return TrainedNetwork(net, [str(name) for name in about["classes"]], Raster.from_dict(about["raster"]))
    except (OSError, SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(f"'{file}' does not hold a network of dabnet's ({_short(problem)}).") from None


class RunFolder(NamedTuple):
    """What a run was begun with."""

    recipe: Recipe
    data: Path
    fold: int
    start: Path | None = None
    test: bool = True


def begin_run(
    folder: Path, recipe: Recipe, data: Path, fold: int, *, start: Path | None = None, test: bool = True
) -> None:
    """Make a run's folder, and note what it is begun with."""
    check_new(folder)
    make_folder(folder)
    write_beside(folder / RECIPE, recipe.to_toml().encode(), then="resume the run")
    about = {
        "data": str(data.resolve()),
        "fold": fold,
        "start": None if start is None else str(start.resolve()),
        "test": test,
    }
    write_beside(folder / RUN, json.dumps(about, indent=2).encode(), then="resume the run")


@contextmanager
def beginning(folder: Path, keep: type[Exception] | tuple[()] = ()) -> Iterator[None]:
    """Leave nothing behind that would block the next try if a run fails before its first epoch's end.

    What was in the folder before stays there, and errors of the kind `keep` change nothing. Where an epoch was trained,
    and could not be written for want of room, the run can be resumed.
    """
    was_there = folder.exists()
    before = set(folder.iterdir()) if folder.is_dir() else set()
    try:
        yield
    except Exception as problem:
        if isinstance(problem, keep) or (folder / METRICS).exists() or not folder.is_dir():
            raise
        for made in set(folder.iterdir()) - before:
            shutil.rmtree(made) if made.is_dir() and not made.is_symlink() else made.unlink()
        if not was_there:
            folder.rmdir()
        raise


def make_folder(folder: Path) -> None:
    """Make a run's folder, unless it is there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"cannot make '{folder}' ({problem.strerror}): choose another folder with -o.") from None


def check_new(folder: Path) -> None:
    """Refuse a folder that holds a run."""
    if (folder / RUN).exists():
        raise InputError(f"'{folder}' holds a run already: go on with --resume {folder}, or choose another with -o.")


def open_run(folder: Path) -> RunFolder:
    """Read what a run was begun with."""
    try:
        about = json.loads((folder / RUN).read_text())
        start = about.get("start")
        return RunFolder(
            load_recipe(folder / RECIPE),
            Path(about["data"]),
            int(about["fold"]),
            None if start is None else Path(start),
            bool(about.get("test", True)),
        )
    except (OSError, ValueError, KeyError, TypeError) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(f"'{folder}' holds no run that can be resumed ({_short(problem)}).") from None


def write_held_back(folder: Path, ids: Sequence[str]) -> None:
    """Note the drawings that a run chooses its best epoch by, one id per line."""
    write_beside(folder / HELD_BACK, "".join(f"{json.dumps(name)}\n" for name in ids).encode(), then="resume the run")


def read_held_back(folder: Path, start: Path | None) -> list[str]:
    """Return the drawings that a run has to hold back because the run that it starts from did; none if there is none.

    A run that began has noted them itself, so the other one may be gone by then.
    """
    if start is None:
        return []
    noted = next((path for path in (folder / HELD_BACK, start / HELD_BACK) if path.is_file()), None)
    try:
        return [] if noted is None else [str(json.loads(line)) for line in noted.read_text().splitlines()]
    except (OSError, ValueError) as problem:
        raise InputError(f"'{noted}' is damaged ({_short(problem)}): restore it, or delete it.") from None


def check_checkpoint(path: Path, net: nn.Module) -> None:
    """Refuse a checkpoint that cannot be gone on with, before anything is changed."""
    try:
        saved = torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
        shapes = {name.removeprefix("net."): tuple(tensor.shape) for name, tensor in saved.items()}
    except Exception as problem:  # a damaged file may raise anything
        raise InputError(
            f"'{path}' is damaged ({_short(problem)}): delete it to start the run over, or restore a copy."
        ) from None
    for name, tensor in net.state_dict().items():
        if shapes.get(name) != tuple(tensor.shape):
            raise InputError(
                f"'{path}' is of another network ('{name}' is {shapes.get(name)} there, {tuple(tensor.shape)} here): "
                "the recipe or the set's classes were changed since; restore them, or begin a new run."
            )


def _short(problem: Exception) -> str:
    return (str(problem).splitlines() or [type(problem).__name__])[0][:120]
