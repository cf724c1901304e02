"""From a recipe and a prepared set to a trained network: the whole training, resumable, on any number of devices."""

from __future__ import annotations

import json
import logging
import os
import signal
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from lightning.pytorch import Trainer
from lightning.pytorch.loggers import TensorBoardLogger
from rich.console import Console
from torch import nn

from dabnet._files import write_beside
from dabnet.errors import InputError
from dabnet.networks.catalog import build
from dabnet.training.callbacks import Bar, Keeper
from dabnet.training.data import divide, training_loader, validation_loader
from dabnet.training.evaluate import evaluate
from dabnet.training.module import Training
from dabnet.training.pictures import draw_confusion, draw_curves, draw_traces
from dabnet.training.run import LAST, TrainedNetwork, check_checkpoint, load_trained, write_held_back
from dabnet.training.teacher import load_teacher

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from dabnet.runtime.evaluation import Evaluation
    from dabnet.sketches.store import SketchSet
    from dabnet.training.recipe import Recipe


class Stopped(Exception):  # noqa: N818  # not an error: someone wants it to stop
    """Ctrl-C or SIGTERM, in the midst of a training."""


def fit(
    folder: Path,
    recipe: Recipe,
    sketches: SketchSet,
    fold: int,
    *,
    start: TrainedNetwork | None = None,
    held_back: Collection[str] = (),
    test: bool = True,
    device: str = "auto",
    workers: int = 0,
    console: Console | None = None,
) -> Evaluation | None:
    """Train in a run's folder, from its last epoch if it has one, and test the best network once, on the fold.

    `start` gives the first weights, and `held_back` the ids of drawings that these never saw, to choose the best epoch
    by. `test=False` leaves the fold alone and gives None. Under torchrun every process calls this; all but the first
    get None.
    """
    console = console or Console(quiet=True)
    parts = divide(sketches, recipe, fold, held_back)
    devices, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    torch.manual_seed(recipe.seed)
    net = build(**recipe.network_settings(len(parts.classes)))
    last = folder / LAST
    if start is not None and not last.exists():
        taken, new = take_over(net, start.net)
        console.print(f"{len(taken)} of {len(taken) + len(new)} tensors are taken over; new: {_name_some(new)}.")
    teacher = load_teacher(recipe, parts.classes)
    net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    loader = training_loader(sketches, parts, recipe, devices, rank, workers)
    steps = len(loader) // recipe.accumulate
    if last.exists():
        check_checkpoint(last, net)
    elif rank == 0:
        write_held_back(folder, sketches.ids[parts.validation].tolist())
    with _quiet(), _stoppable():
        trainer = Trainer(
            accelerator=device,
            strategy="ddp" if devices > 1 else "auto",
            devices=int(os.environ.get("LOCAL_WORLD_SIZE", 1)),
            num_nodes=devices // int(os.environ.get("LOCAL_WORLD_SIZE", devices)),
            max_epochs=recipe.epochs,
            accumulate_grad_batches=recipe.accumulate,
            precision=recipe.arithmetic,
            # Its writer may sleep through the end of a run that is stopped, until the next time to flush.
            logger=TensorBoardLogger(folder, name="tensorboard", version="", flush_secs=1),
            callbacks=[Keeper(folder, parts.classes, recipe.raster), Bar(console)],
            use_distributed_sampler=False,
            num_sanity_val_steps=0,
            log_every_n_steps=max(1, min(50, steps)),
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(
            Training(net, recipe, steps, teacher, [name for name, _ in sketches.info.sources]),
            loader,
            validation_loader(sketches, parts, recipe, devices, rank, workers),
            ckpt_path=last if last.exists() else None,
            weights_only=True,
        )
        if not trainer.is_global_zero:
            return None
        draw_curves(folder / "metrics.csv", folder / "curves.png")
        if (folder / "traces.csv").exists():
            draw_traces(folder / "traces.csv", folder / "traces.png")
        if not test:
            return None
        with console.status("Testing"):
            return _test(folder, sketches, parts, recipe)


def _test(folder: Path, sketches: SketchSet, parts: Any, recipe: Recipe) -> Evaluation:
    """Look at the test fold, once, and leave the figures and a picture."""
    best = load_trained(folder)
    found = evaluate(
        best.net, sketches, parts.test, best.raster, crops=recipe.crops, labels=parts.labels, class_names=best.classes
    )
    write_beside(folder / "result.json", (json.dumps(found.to_dict(), indent=2) + "\n").encode(), then="resume the run")
    draw_confusion(found, folder / "confusion.png")
    return found


def take_over(net: nn.Module, start: nn.Module) -> tuple[list[str], list[str]]:
    """Start from another network's weights, and name the tensors that were taken over and those that stay new.

    Whatever has the same name and shape is taken over. So a last layer for other classes starts anew, and a binary
    network can start from a real one.
    """
    mine, theirs = net.state_dict(), start.state_dict()
    fitting = {name: tensor for name, tensor in theirs.items() if name in mine and tensor.shape == mine[name].shape}
    if not any(tensor.ndim > 1 for tensor in fitting.values()):
        raise InputError("the network to start from is built otherwise: use the network and width of its recipe.")
    net.load_state_dict({**mine, **fitting})
    return list(fitting), [name for name in mine if name not in fitting]


def _name_some(names: list[str], most: int = 4) -> str:
    """Name the first few, and count the others."""
    more = [f"{len(names) - most} more"] if len(names) > most else []
    return ", ".join(names[:most] + more) or "none"


@contextmanager
def _stoppable() -> Iterator[None]:
    """Turn Ctrl-C and SIGTERM into `Stopped`."""
    asked = False

    def stop(*_: object) -> None:
        nonlocal asked
        asked = True
        raise Stopped

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except BaseException as problem:
        if asked and not isinstance(problem, Stopped):
            raise Stopped from problem  # what was interrupted put it in words of its own
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Lightning from explaining itself."""
    logger = logging.getLogger("lightning.pytorch")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
