"""New classes beside those that a packed model knows: rows of its last layer for them, while all others stay.

The old classes' drawings are not there; their features are made up (`class_features.py`). From these and from several
changed views of the new drawings `growing_head.py` learns the rows. What comes out is a packed model for all classes,
and the features of all of them, so that more can be added.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from dabnet.errors import InputError
from dabnet.packed.int8 import round_weights
from dabnet.packed.model import Model
from dabnet.packed.nodes import Conv
from dabnet.runtime import Session
from dabnet.sketches.raster import show_batch
from dabnet.sketches.scribbles import draw_scribble
from dabnet.sketches.vocabulary import match_classes, spelling
from dabnet.training.class_features import ClassFeatures
from dabnet.training.finetune import BATCH, MOST_IMAGES, find_features, take_features
from dabnet.training.growing_head import Head, Lesson

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from dabnet.sketches.store import SketchSet
    from dabnet.training.recipe import Recipe

DECAY = 0.03
MADE_UP = 20
"""Drawings of each old class that are made up to learn with, and as many others to count what it costs."""
SCRIBBLES = 500


class Added(NamedTuple):
    """A packed model that knows more classes, and how it was made."""

    model: Model
    features: ClassFeatures
    """The features of all its classes, so that more can be added."""
    new: tuple[str, ...]
    known: tuple[str, ...]
    """Classes that it knew already, and got more drawings of."""
    drawings: int
    """Drawings that it learnt from."""
    views: int
    """Views of each of them."""
    weight_decay: float
    accuracy: float
    """Share of held-back drawings that were guessed among all classes, by rows that had not seen them."""
    among: float
    """The same among the classes that were given."""
    cost: float
    """Share of old classes' made-up drawings that were right before, and are not any more."""


def add_classes(
    model: Model,
    features: ClassFeatures,
    sketches: SketchSet,
    recipe: Recipe,
    fold: int,
    *,
    threads: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Added:
    """Teach a packed model the classes of a set beside its own, from all folds but one.

    `recipe` is a `tuning_recipe`, and `progress` gets the views seen and all views.
    """
    weight, bias = read_head(model)
    names, targets = match_targets(model, sketches, recipe.classes)
    if fold not in sketches.folds:
        raise InputError(f"'{sketches.path}' has no fold {fold} to test on: it has "
                         f"{', '.join(map(str, sorted({*sketches.folds.tolist()})))}.")  # fmt: skip
    rows = np.flatnonzero((targets >= 0) & (sketches.folds != fold))
    missing = set(range(len(names))) - set(targets[rows].tolist())
    if missing:
        raise InputError(f"there is no drawing of '{names[min(missing)]}' to learn from: add some.")
    views = max(1, min(recipe.epochs, MOST_IMAGES // len(rows)))
    session = Session(model.part(find_features(model)), threads)
    seen = take_features(session, sketches, targets, rows, replace(recipe, epochs=views), progress)

    old_rows = [model.labels.index(name) if name in model.labels else -1 for name in names]
    head = Head(weight, bias, old_rows, model.temperature)
    scribbles = take_scribbles(session, recipe)
    lesson = Lesson(seen, torch.from_numpy(targets[rows]), *features.sample(MADE_UP, recipe.seed), scribbles)
    decay = recipe.weight_decay or DECAY
    learnt = head.learn(lesson, decay)
    shift, cost = head.balance(learnt, *features.sample(MADE_UP, recipe.seed + 1))
    held = head.answer_held_back(lesson, decay, shift, recipe.seed)
    weight, bias = head.grow(learnt, shift)

    labels = (*model.labels, *(name for name, old_row in zip(names, old_rows, strict=True) if old_row < 0))
    known = tuple(name for name in names if name in model.labels)
    answers = held.argmax(dim=1)
    own = held[:, head.columns]
    return Added(
        replace_head(model, weight, bias, labels),
        extend_features(features, labels, lesson, old_rows),
        labels[len(model.labels) :],
        known,
        len(rows),
        views,
        decay,
        float((answers == torch.tensor(head.columns)[lesson.targets]).double().mean()),
        float((own.argmax(dim=1) == lesson.targets).double().mean()),
        cost,
    )


def take_scribbles(session: Session, recipe: Recipe) -> Tensor:
    """Return the features, (scribbles, features) as float64, of drawings of nothing."""
    drawn = [draw_scribble(np.random.default_rng([recipe.seed, number])) for number in range(SCRIBBLES)]
    parts = [show_batch(drawn[start : start + BATCH], recipe.raster) for start in range(0, SCRIBBLES, BATCH)]
    return torch.from_numpy(np.concatenate([session.run(part) for part in parts]).astype(np.float64))


def match_targets(
    model: Model, sketches: SketchSet, chosen: Sequence[str] | None
) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names of a set's classes, spelt as the model does where it knows them, and each drawing's number."""
    given = list(sketches.classes if chosen is None else chosen)
    unknown = [name for name in given if name not in sketches.classes]
    if unknown:
        raise InputError(f"'{sketches.path}' has no class '{unknown[0]}'.")
    names = [model.labels[at] if at >= 0 else name
             for name, at in zip(given, match_classes(given, model.labels), strict=True)]  # fmt: skip
    for at, name in enumerate(names):
        if spelling(name) in map(spelling, names[:at]):
            raise InputError(f"two of the classes are '{name}': put their drawings together.")
    numbers = np.full(len(sketches.classes), -1)
    numbers[[sketches.classes.index(name) for name in given]] = np.arange(len(given))
    return names, numbers[sketches.labels]


def read_head(model: Model) -> tuple[Tensor, Tensor]:
    """Return weight (classes, features) and bias (classes,) of a packed model's last layer, as float64."""
    if not model.labels:
        raise InputError("the model has no labels, so it has no classes to keep: export it with labels.")
    value, last = find_features(model), model.nodes[-1]
    if last.inputs[0] != value:
        raise InputError(
            "the model's last layer has signs for inputs, and --add needs a real one: train it with real_last = true, "
            "or give it other classes with --data."
        )
    width = model.shapes[value].channels
    session = Session(Model((width, 1, 1), (replace(last, inputs=(0,)),)))
    at_zero = session.run(np.zeros((1, width, 1, 1), dtype=np.float32)).astype(np.float64)
    at_one = session.run(np.eye(width, dtype=np.float32)[:, :, None, None]).astype(np.float64)
    weight = (at_one - at_zero).T
    if isinstance(last, Conv) and last.bits is None:
        weight = last.real_weight()[:, 0, 0].astype(np.float64)  # exactly
    return torch.from_numpy(weight.copy()), torch.from_numpy(at_zero[0])


def replace_head(model: Model, weight: Tensor, bias: Tensor, labels: Sequence[str]) -> Model:
    """Return a model with another last layer, of as many bits per weight as the former."""
    value, last = find_features(model), model.nodes[-1]
    head = Conv(
        inputs=(value,),
        name=last.name,
        filters=len(weight),
        weight=weight[:, None, None].float().numpy(),
        bias=bias.float().numpy(),
    )
    if isinstance(last, Conv) and last.int8 is not None:
        assert head.weight is not None
        same = np.flatnonzero((head.weight[: last.filters] == last.real_weight()).all(axis=(1, 2, 3)))
        head = round_weights(head)
        assert head.int8 is not None
        assert head.scale is not None
        assert last.scale is not None
        head.int8[same], head.scale[same] = last.int8[same], last.scale[same]  # rows that were not learnt stay exactly
    return replace(model, nodes=(*model.nodes[:value], head), labels=tuple(labels))


def extend_features(
    features: ClassFeatures, labels: Sequence[str], lesson: Lesson, old_rows: Sequence[int]
) -> ClassFeatures:
    """Return the features of a model's old and new classes; those of old ones stay."""
    means = [lesson.views[0, lesson.targets == row].mean(dim=0) for row, old_row in enumerate(old_rows) if old_row < 0]
    added = [mean.numpy().astype(np.float32)[None] for mean in means]
    return replace(features, labels=tuple(labels), means=np.concatenate([features.means, *added]))
