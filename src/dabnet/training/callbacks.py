"""What happens beside the steps of a training: seeds, traces of binary layers, files, and the line on the screen."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch
from lightning.pytorch.callbacks import Callback, Checkpoint
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from dabnet.errors import InputError
from dabnet.networks.convert import binary_layers
from dabnet.training.module import Training
from dabnet.training.run import BEST, LAST, save_weights, write_table

if TYPE_CHECKING:
    from pathlib import Path

    from lightning.pytorch import LightningModule, Trainer
    from rich.console import Console
    from torch import Tensor, nn

    from dabnet.networks.layers import BinaryLayer
    from dabnet.sketches.raster import Raster


class Keeper(Checkpoint):
    """Writes a run's files after every epoch, each whole or not at all, so that a run can be killed at any time.

    All randomness of an epoch, but for the batches', starts from its number: a run that goes on from the last epoch's
    end takes the very steps it would have taken.
    """

    def __init__(self, folder: Path, classes: list[str], raster: Raster) -> None:
        self._folder, self._classes, self._raster = folder, classes, raster
        self._metrics: list[dict[str, Any]] = []
        self._traces: list[dict[str, Any]] = []
        self._best = -1.0
        self._sides: list[Tensor] = []
        self._start = 0.0

    def state_dict(self) -> dict[str, Any]:
        """Return what belongs into the checkpoint."""
        return {"metrics": self._metrics, "traces": self._traces, "best": self._best}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up what an earlier run had."""
        self._metrics, self._traces, self._best = state["metrics"], state["traces"], state["best"]

    def on_train_epoch_start(self, trainer: Trainer, module: LightningModule) -> None:
        """Seed the epoch, and remember where each weight belongs."""
        training = _training(module)
        recipe = training.recipe
        torch.manual_seed((recipe.seed * 1_000_003 + trainer.current_epoch) * 1_009 + trainer.global_rank)
        self._sides = [upper_side(layer) for layer in binary_layers(training.net)]
        self._start = time.perf_counter()

    def on_train_epoch_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Write the metrics, the traces, the best weights and the state to go on from."""
        figures = {name: float(value) for name, value in trainer.callback_metrics.items()}
        seconds = time.perf_counter() - self._start
        training = _training(module)
        row = {
            "epoch": trainer.current_epoch + 1,
            **{
                f"{part}_{what}": figures.get(f"{part}_{what}") for part in ("train", "validation") for what in _FIGURES
            },
            **{name: value for name, value in figures.items() if name.startswith("validation_accuracy:")},
            "learning_rate": float(trainer.optimizers[0].param_groups[0]["lr"]),
            "images_per_second": training.steps_per_epoch * training.recipe.batch_size / seconds,
            "seconds": seconds,
        }
        self._metrics.append(row)
        self._traces += trace(training.net, self._sides, trainer.current_epoch + 1)
        accuracy = figures.get("validation_accuracy", 0.0)
        if training.recipe.in_first_stage(trainer.current_epoch):
            accuracy = -1.0  # of a network whose weights are real: not what is trained for
        improved = accuracy > self._best
        self._best = max(self._best, accuracy)
        if trainer.is_global_zero:
            write_table(self._folder / "metrics.csv", self._metrics)
            if self._traces:
                write_table(self._folder / "traces.csv", self._traces)
            if improved:
                save_weights(training.judged, self._folder / BEST, self._classes, self._raster)
        self._save(trainer)

    def _save(self, trainer: Trainer) -> None:
        beside = self._folder / f"{LAST}.writing"
        try:
            trainer.save_checkpoint(beside)
            if trainer.is_global_zero:
                beside.replace(self._folder / LAST)
        except (OSError, RuntimeError) as problem:
            beside.unlink(missing_ok=True)
            raise InputError(
                f"cannot write '{self._folder / LAST}' ({problem}): make room, and resume the run."
            ) from None


_FIGURES = ("loss", "accuracy")


def _training(module: LightningModule) -> Training:
    assert isinstance(module, Training)
    return module


@torch.no_grad()
def upper_side(layer: BinaryLayer) -> Tensor:
    """Say which weights take the larger of the two values; whether that is alpha or beta does not matter."""
    mask, alpha, beta = layer.two_values()
    return mask.flatten(1) == (alpha >= beta)


@torch.no_grad()
def trace(net: nn.Module, sides: list[Tensor], epoch: int) -> list[dict[str, Any]]:
    """Return a row per binary layer.

    alpha and beta are mean magnitudes, k_share is K/n, flip the share of weights that changed side, error that of the
    two values as a share of the weights' squares, and skew how far a filter's mean is from its median, in its standard
    deviations: 0 for a symmetric one, at most 1.
    """
    rows = []
    for layer, before in zip(binary_layers(net), sides, strict=True):
        mask, alpha, beta = layer.two_values()
        weight = layer.weight.flatten(1)
        error = (weight - torch.where(mask.flatten(1), alpha, beta)).square().sum() / weight.square().sum()
        rows.append(
            {
                "epoch": epoch,
                "layer": layer.name,
                "alpha": float(alpha.abs().mean()),
                "beta": float(beta.abs().mean()),
                "k_share": float(mask.double().mean()),
                "flip": float((upper_side(layer) != before).double().mean()),
                "error": float(error),
                "skew": float(skew_of_filters(weight).mean()),
            }
        )
    return rows


def skew_of_filters(weight: Tensor) -> Tensor:
    """Return how skewed each row of weights is, (filters,): |mean - median| in standard deviations, at most 1.

    >>> skew_of_filters(torch.tensor([[-1.0, 0.0, 1.0], [0.0, 0.0, 3.0]]))
    tensor([0.0000, 0.7071])
    """
    median = weight.quantile(0.5, dim=1)
    deviation = weight.std(dim=1, correction=0).clamp(min=torch.finfo(weight.dtype).tiny)
    return (weight.mean(dim=1) - median).abs() / deviation


class Bar(Callback):
    """The line on the screen: epoch, loss, accuracy, images per second, time left."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(), console=console,
        )  # fmt: skip
        self._seen, self._since, self._validation = 0, 0.0, ""

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        """Show the line."""
        total = _training(module).recipe.epochs * int(trainer.num_training_batches)
        done = trainer.current_epoch * int(trainer.num_training_batches)
        self._task = self._progress.add_task("training", total=total, completed=done, note="")
        self._progress.start()

    def on_train_epoch_start(self, trainer: Trainer, module: LightningModule) -> None:
        """Count images from here on."""
        self._seen, self._since = 0, time.perf_counter()

    def on_train_batch_end(
        self,
        trainer: Trainer,
        module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Tell how it goes."""
        self._seen += len(batch[0]) * trainer.world_size
        rate = self._seen / (time.perf_counter() - self._since)
        loss = float(outputs["loss"]) * trainer.accumulate_grad_batches
        self._progress.update(
            self._task,
            advance=1,
            description=f"epoch {trainer.current_epoch + 1} of {_training(module).recipe.epochs}",
            note=f"loss {loss:.3f}{self._validation}, {rate:.0f} images/s",
        )

    def on_train_epoch_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Tell how the validation went, and let the line of this epoch stay."""
        figures = {name: float(value) for name, value in trainer.callback_metrics.items()}
        self._validation = f", validation {figures.get('validation_accuracy', 0):.1%}"
        self._progress.console.print(
            f"epoch {trainer.current_epoch + 1:3}  loss {figures.get('train_loss', 0):.3f}  "
            f"right {figures.get('train_accuracy', 0):6.1%}  validation {figures.get('validation_accuracy', 0):6.1%}  "
            f"{self._seen / (time.perf_counter() - self._since):.0f} images/s",
            highlight=False,
        )

    def on_train_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Take the line away."""
        self._progress.stop()

    def on_exception(self, trainer: Trainer, module: LightningModule, exception: BaseException) -> None:
        """Take the line away."""
        self._progress.stop()
