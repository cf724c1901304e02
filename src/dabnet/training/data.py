"""Batches of a prepared set for training, the same on every run: a batch depends on the seed, the epoch and its number.

So a training that was stopped goes on with the batches it would have had, and several devices see the parts that one
device would see in turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from dabnet.errors import InputError, suggest
from dabnet.sketches.crops import crop_source_size
from dabnet.sketches.folds import TRAIN_ONLY, stratified_folds
from dabnet.sketches.raster import rasterize_batch
from dabnet.sketches.scribbles import draw_scribble, to_bitmap
from dabnet.training.augment import to_network
from dabnet.training.augment_strokes import pen_widths
from dabnet.training.mixing import Batch, mix

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from numpy.typing import NDArray
    from torch import Tensor

    from dabnet.sketches.raster import Raster
    from dabnet.sketches.store import SketchSet
    from dabnet.training.recipe import Recipe


class Parts(NamedTuple):
    """The rows of a set that a training learns from, chooses its best epoch by, and is tested on; and all labels."""

    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]
    labels: NDArray[np.int64]
    """(drawings,), counted over the chosen classes; -1 for others."""
    classes: list[str]
    groups: NDArray[np.int64]
    """(drawings,): drawings of the same class and source have the same number."""


LEAST_HELD_BACK = 0.01
"""Share of the training folds below which the drawings that another run held back are too few to judge by."""


def divide(sketches: SketchSet, recipe: Recipe, fold: int, held_back: Collection[str] = ()) -> Parts:
    """Divide a set: the fold is for the test, and a share of the other folds, of every class, for validation.

    Drawings that are for training only are in neither. `held_back` has the ids of drawings that a network which this
    one starts from was not trained on: they are for validation then, since of all others it knows the answers.
    """
    classes = sketches.classes if recipe.classes is None else recipe.classes
    for name in classes:
        if name not in sketches.classes:
            raise InputError(f"'{sketches.path}' has no class '{name}'.{suggest(name, sketches.classes)}")
    if len(set(classes)) < 2:
        raise InputError(f"a training needs at least two classes, and '{sketches.path}' gives {len(set(classes))}.")
    numbers = np.full(len(sketches.classes), -1)
    numbers[[sketches.classes.index(name) for name in classes]] = np.arange(len(classes))
    labels = numbers[sketches.labels]
    folds = sorted({*sketches.folds.tolist()} - {TRAIN_ONLY})
    if fold not in folds or len({*sketches.folds.tolist()}) < 2:
        raise InputError(f"'{sketches.path}' has no fold {fold} to test on: it has {', '.join(map(str, folds))}.")
    rows = np.flatnonzero((labels >= 0) & (sketches.folds != fold))
    candidates = rows[sketches.folds[rows] != TRAIN_ONLY] if len(folds) > 1 else rows
    validation = candidates[np.isin(sketches.ids[candidates], list(held_back))] if held_back else candidates[:0]
    if len(validation) < LEAST_HELD_BACK * len(candidates):
        parts = stratified_folds(labels[candidates], max(2, round(1 / recipe.validation)), recipe.seed)
        validation = candidates[parts == 0]
    test = np.flatnonzero((labels >= 0) & (sketches.folds == fold))
    groups = sketches.sources.astype(np.int64) * len(classes) + labels
    return Parts(np.setdiff1d(rows, validation), validation, test, labels, classes, groups)


class Key(NamedTuple):
    """What names a batch: all of its randomness comes from the epoch and the number."""

    epoch: int
    number: int
    rows: NDArray[np.int64]


class Batches(Sampler[Key]):
    """The batches of an epoch, in a random order of the drawings; every device takes its part of each."""

    def __init__(
        self,
        rows: NDArray[np.int64],
        recipe: Recipe,
        devices: int = 1,
        device: int = 0,
        shares: NDArray[np.float64] | None = None,
    ) -> None:
        self._rows, self._recipe, self._devices, self._device = rows, recipe, devices, device
        self._shares = shares
        self._drawn = recipe.epoch_size or len(rows)
        self.parts = recipe.accumulate * devices
        if recipe.batch_size % self.parts:
            raise InputError(
                f"a batch of {recipe.batch_size} cannot be divided into {self.parts} equal parts: "
                f"change batch_size or accumulate, or the number of devices, {devices}."
            )
        if min(len(rows), self._drawn) < recipe.batch_size:
            raise InputError(
                f"there are {min(len(rows), self._drawn)} sketches to learn from in an epoch, fewer than a batch of "
                f"{recipe.batch_size}: set batch_size to {min(len(rows), self._drawn)} or less."
            )
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch; the trainer calls this."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self._drawn // self._recipe.batch_size * self._recipe.accumulate

    def __iter__(self) -> Iterator[Key]:
        order = self._draw(np.random.default_rng([self._recipe.seed, self.epoch]))
        whole = order[: len(order) // self._recipe.batch_size * self._recipe.batch_size]
        for number, rows in enumerate(whole.reshape(-1, self._recipe.batch_size // self.parts)):
            if number % self._devices == self._device:
                yield Key(self.epoch, number, rows)

    def _draw(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return the rows of an epoch in the order that they are learnt from."""
        if self._shares is None and self._drawn == len(self._rows):
            return rng.permutation(self._rows)
        # Systematic sampling: evenly spaced marks on the shares laid end to end, in a random order. A row is drawn as
        # often as its share asks for, rounded up or down.
        order = rng.permutation(len(self._rows))
        shares = np.full(len(order), 1 / len(order)) if self._shares is None else self._shares[order]
        marks = (np.arange(self._drawn) + rng.random()) / self._drawn
        drawn = np.searchsorted(shares.cumsum(), marks, side="right").clip(max=len(order) - 1)
        return rng.permutation(self._rows[order[drawn]])


def sampling_shares(
    groups: NDArray[np.int64], sources: NDArray[np.integer[Any]], balance: float, balance_sources: float
) -> NDArray[np.float64]:
    """Return how large a share of an epoch each drawing is.

    Within its source, a group of n drawings gets n^(1 - balance); then a source with the sum N of these gets
    N^(1 - balance_sources).

    >>> sampling_shares(np.array([0, 0, 0, 1]), np.zeros(4, int), balance=1.0, balance_sources=0.0)
    array([0.16666667, 0.16666667, 0.16666667, 0.5       ])
    >>> sampling_shares(np.array([0, 0, 0, 1]), np.array([0, 0, 0, 1]), balance=0.0, balance_sources=1.0)
    array([0.16666667, 0.16666667, 0.16666667, 0.5       ])
    """
    _, members, counts = np.unique(groups, return_inverse=True, return_counts=True)
    shares = counts[members] ** -float(balance)
    _, members = np.unique(sources, return_inverse=True)
    shares *= np.bincount(members, shares)[members] ** -float(balance_sources)
    normal: NDArray[np.float64] = shares / shares.sum()
    return normal


NO_CLASS = -1
"""The label of a scribble."""


class Changed(Dataset[Batch]):
    """Batches of sketches, changed a little, as float images (N, 1, size, size) and labels (N,)."""

    def __init__(self, sketches: SketchSet, labels: NDArray[np.int64], recipe: Recipe) -> None:
        self._sketches, self._labels, self._recipe = sketches, torch.from_numpy(labels), recipe
        self._strokes, self._images, self._raster = recipe.strokes, recipe.images, recipe.raster

    def __getitem__(self, key: Key) -> Batch:
        seed = np.random.SeedSequence([self._recipe.seed, key.epoch, key.number]).generate_state(1, np.uint64)[0]
        generator = torch.Generator().manual_seed(int(seed >> np.uint64(1)))
        drawn, labels = self._sketches.read(key.rows), self._labels[key.rows]
        if self._recipe.scribbles:
            rng = np.random.default_rng(seed)
            scribbles = min(rng.binomial(len(drawn), self._recipe.scribbles), len(drawn) - 1)
            for row in rng.choice(len(drawn), scribbles, replace=False):
                scribble = draw_scribble(rng, drawn)
                # Else a network could tell scribbles by how lines look, and be unsure of all that looks so.
                drawn[row] = scribble if drawn[row].bitmap is None else to_bitmap(scribble, drawn[row].line_width)
                labels[row] = NO_CLASS
        sketches, factors = self._strokes.apply(drawn, generator)
        larger = type(self._raster)(crop_source_size(self._raster.size), self._raster.margin, self._raster.pen)
        images = torch.from_numpy(rasterize_batch(sketches, larger, pen_widths(larger, factors)))
        changed = self._images.apply(images, self._raster.size, generator)
        return mix(changed, labels, labels != NO_CLASS, self._recipe.mixup, self._recipe.cutmix, generator)

    def unchanged(self, rows: NDArray[np.int64]) -> Tensor:
        """Return the sketches of some rows as they are, (N, 1, size, size)."""
        return _show(self._sketches, rows, self._raster)


def _show(sketches: SketchSet, rows: NDArray[np.int64], raster: Raster) -> Tensor:
    return to_network(torch.from_numpy(rasterize_batch(sketches.read(rows), raster)))


class Plain(Dataset[tuple["Tensor", "Tensor", "Tensor"]]):
    """Batches of sketches as they are: float images (N, 1, size, size), labels (N,), and sources (N,)."""

    def __init__(self, sketches: SketchSet, labels: NDArray[np.int64], recipe: Recipe) -> None:
        self._sketches, self._labels, self._raster = sketches, torch.from_numpy(labels), recipe.raster

    def __getitem__(self, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor, Tensor]:
        sources = torch.from_numpy(self._sketches.sources[rows])
        return _show(self._sketches, rows, self._raster), self._labels[rows], sources


def training_loader(
    sketches: SketchSet, parts: Parts, recipe: Recipe, devices: int = 1, device: int = 0, workers: int = 0
) -> DataLoader[Batch]:
    """Load the batches of an epoch, each made whole by one worker."""
    shares = None
    if recipe.balance or recipe.balance_sources:
        rows = parts.train
        shares = sampling_shares(parts.groups[rows], sketches.sources[rows], recipe.balance, recipe.balance_sources)
    batches = Batches(parts.train, recipe, devices, device, shares)
    data = Changed(sketches, parts.labels, recipe)
    return DataLoader(data, batch_size=None, sampler=batches, num_workers=workers, persistent_workers=workers > 0)


def validation_loader(
    sketches: SketchSet, parts: Parts, recipe: Recipe, devices: int = 1, device: int = 0, workers: int = 0
) -> DataLoader[tuple[Tensor, Tensor, Tensor]]:
    """Load the drawings that the best epoch is chosen by, in batches; every device takes its share."""
    rows = parts.validation[device::devices]
    batches = np.array_split(rows, max(1, -(-len(rows) // 128)))
    return DataLoader(Plain(sketches, parts.labels, recipe), batch_size=None, sampler=batches, num_workers=workers)
