"""A packed model for your own classes, in seconds: its layers stay as they are, and its last one is learnt anew.

What enters the last layer are numbers that describe a drawing, its features. They are taken of every drawing, as it is
and changed a little several times, and a multinomial logistic regression learns the classes from them:

    loss = mean over the views of cross_entropy(weight feature + bias, label) + weight_decay / 2 |weight|^2

on features that were brought to mean 0 and deviation 1; that is undone in the weights that are kept. How strong the
decay is, and the temperature, is told by drawings that were held back: each part of the drawings in turn if they are
few, so that all of them count, or else one part.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from dabnet.errors import InputError, suggest
from dabnet.packed.model import Model
from dabnet.packed.nodes import Conv, Quantize, Sign
from dabnet.runtime import Session
from dabnet.runtime.recognizer import raster_of
from dabnet.sketches.folds import stratified_folds
from dabnet.training.calibrate import fit_temperature
from dabnet.training.data import Changed, Key, Plain, divide
from dabnet.training.recipe import Recipe, change_recipe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from dabnet.sketches.store import SketchSet

BATCH = 64
MOST_IMAGES = 30_000
"""Views that are learnt from, in all: of many drawings there are fewer views each."""
DECAYS = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
LEAST_TEMPERATURE = 0.5
"""Few drawings may all be guessed: that is no reason to be sure beyond measure."""
PARTS = 4
"""How many parts the drawings are divided into; one of them is held back at a time."""
FEW = 2_000
"""Up to so many drawings, each part is held back in turn."""
SETTINGS = (
    "classes", "crop_ratio", "crop_scale", "crops", "deform", "deform_strokes", "degrees", "epochs", "flip",
    "pen_factors", "remove_strokes", "seed", "weight_decay",
)  # fmt: skip
"""Settings of a recipe that matter here: an epoch is one view of each drawing, and a decay of 0 is to be chosen."""


class Tuned(NamedTuple):
    """A packed model for new classes, and how it was made."""

    model: Model
    drawings: int
    """How many drawings it learnt from."""
    views: int
    """How many views of each drawing it learnt from."""
    weight_decay: float
    accuracy: float
    """The share of held-back drawings that were guessed, by heads that had not seen them."""


def tuning_recipe(model: Model, changes: Sequence[str] = ()) -> Recipe:
    """Return the settings for fine-tuning, with `changes` such as `epochs=30`; sketches are drawn as the model says."""
    raster = raster_of(model)
    for change in changes:
        key = change.partition("=")[0].strip()
        if key not in SETTINGS:
            raise InputError(
                f"'{key}' does not matter where a packed model is tuned: set one of {', '.join(SETTINGS)}."
                f"{suggest(key, SETTINGS)}"
            )
    # Not mirrored: the classes may be left and right.
    recipe = Recipe(
        epochs=20, crops=1, flip=0.0, deform=0.02, remove_strokes=0.05, pen_factors=(0.8, 1.25), deform_strokes=0.02,
        **raster.to_dict(),
    )  # fmt: skip
    return change_recipe(recipe, changes)


def finetune(
    model: Model,
    sketches: SketchSet,
    recipe: Recipe,
    fold: int,
    *,
    threads: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Tuned:
    """Replace a packed model's last layer by one for the classes of a set, learnt from all folds but one.

    `recipe` is a `tuning_recipe`, and `progress` gets the views seen and all views.
    """
    value = find_features(model)
    parts = divide(sketches, recipe, fold)
    rows = np.sort(np.concatenate([parts.train, parts.validation]))
    labels = torch.from_numpy(parts.labels[rows])
    missing = set(range(len(parts.classes))) - set(labels.tolist())
    if missing:
        raise InputError(f"there is no drawing of '{parts.classes[min(missing)]}' to learn from: add some.")
    views = max(1, min(recipe.epochs, MOST_IMAGES // len(rows)))
    session = Session(model.part(value), threads)
    features = take_features(session, sketches, parts.labels, rows, replace(recipe, epochs=views), progress)

    mean, deviation = features.mean(dim=(0, 1)), features.std(dim=(0, 1), correction=0)
    deviation[deviation < 1e-6] = 1
    features = (features - mean) / deviation
    decay, held, answers = choose_decay(features, labels, len(parts.classes), recipe)
    weight, bias = fit_head(features.flatten(0, 1), labels.repeat(views), len(parts.classes), decay)
    weight = weight / deviation
    bias = bias - weight @ mean

    head = Conv(
        inputs=(value,),
        name=model.nodes[-1].name,
        filters=len(parts.classes),
        weight=weight[:, None, None].float().numpy(),
        bias=bias.float().numpy(),
    )
    temperature = max(LEAST_TEMPERATURE, float(f"{fit_temperature(answers, held):.4g}"))
    tuned = Model(model.input_size, (*model.nodes[:value], head), tuple(parts.classes), model.raster, temperature)
    return Tuned(tuned, len(rows), views, decay, float((answers.argmax(axis=1) == held).mean()))


def find_features(model: Model) -> int:
    """Return the number of the value that goes into the last layer; real numbers, if need be those before signs."""
    value = model.nodes[-1].inputs[0]
    while value and isinstance(model.nodes[value - 1], Sign | Quantize):
        value = model.nodes[value - 1].inputs[0]
    shape = model.shapes[value]
    if not isinstance(model.nodes[-1], Conv) or not value or (shape.height, shape.width) != (1, 1):
        raise InputError("the packed model does not end with a linear layer, so there is none to learn anew.")
    return value


def take_features(
    session: Session,
    sketches: SketchSet,
    labels: NDArray[np.int64],
    rows: NDArray[np.int64],
    recipe: Recipe,
    progress: Callable[[int, int], None] | None = None,
) -> Tensor:
    """Return (epochs, rows, features) as float64: first of the drawings as they are, then of changed ones."""
    plain, changed = Plain(sketches, labels, recipe), Changed(sketches, labels, recipe)
    features = torch.empty(recipe.epochs, len(rows), session.answers, dtype=torch.float64)
    for epoch in range(recipe.epochs):
        for number, start in enumerate(range(0, len(rows), BATCH)):
            some = slice(start, start + BATCH)
            images = (changed[Key(epoch, number, rows[some])] if epoch else plain[rows[some]])[0]
            features[epoch, some] = torch.from_numpy(session.run(images.numpy()))
            if progress:
                progress(epoch * len(rows) + min(start + BATCH, len(rows)), features.shape[0] * len(rows))
    return features


def choose_decay(
    features: Tensor, labels: Tensor, classes: int, recipe: Recipe
) -> tuple[float, NDArray[np.int64], NDArray[np.float64]]:
    """Return the decay that does best on drawings held back, their labels, and the logits that they got with it."""
    drawings = len(labels)
    part = torch.from_numpy(stratified_folds(labels.numpy(), PARTS, recipe.seed))
    turns = range(PARTS if drawings <= FEW else 1)
    held = torch.cat([torch.nonzero(part == turn).flatten() for turn in turns])
    best = (np.inf, 0.0, torch.empty(0))
    for decay in (recipe.weight_decay,) if recipe.weight_decay else DECAYS:
        answers = []
        for turn in turns:
            learnt = part != turn
            seen = features[:, learnt]
            weight, bias = fit_head(seen.flatten(0, 1), labels[learnt].repeat(len(seen)), classes, decay)
            answers.append(features[0, ~learnt] @ weight.T + bias)
        logits = torch.cat(answers)
        best = min(best, (float(F.cross_entropy(logits, labels[held])), decay, logits), key=lambda found: found[0])
    return best[1], labels[held].numpy(), best[2].numpy()


def fit_head(features: Tensor, labels: Tensor, classes: int, decay: float) -> tuple[Tensor, Tensor]:
    """Return weight (classes, features) and bias (classes,) of the multinomial logistic regression; float64."""
    weight = torch.zeros(classes, features.shape[1], dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(classes, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weight, bias], max_iter=200, tolerance_grad=1e-5, tolerance_change=1e-9, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = F.cross_entropy(features @ weight.T + bias, labels) + decay / 2 * weight.square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    return weight.detach(), bias.detach()
