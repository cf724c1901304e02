"""How sure a network may be: one temperature T that makes its probabilities fit how often it is right.

Probabilities are softmax(logits / T). The T that makes the right classes of some sketches likeliest, that is, has the
least negative log likelihood, is found as b = 1/T: there the function is convex, and its derivative is

    mean over the sketches of (sum over the classes c of p[c] logits[c]) - logits[label],  p = softmax(b logits)

Guo et al., On Calibration of Modern Neural Networks, 2017.

The mean p of several views' probabilities is too modest: a second temperature, fitted to log p the same way, mends it.

In a union, each source counts as much as any other, however many of its sketches were held back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dabnet.errors import InputError
from dabnet.runtime import Session
from dabnet.runtime.evaluation import Evaluation, log_mean, show_crops
from dabnet.sketches.raster import show_batch
from dabnet.sketches.store import SketchSet
from dabnet.training.data import divide
from dabnet.training.run import RUN, open_run, read_held_back

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from dabnet.packed import Model
    from dabnet.sketches.raster import Raster

LEAST, MOST = 0.05, 20.0
"""A temperature's limits: of sketches that are all guessed, or of guesses that mean nothing, the best is beyond any."""
BATCH = 64


class Calibration(NamedTuple):
    """A packed model with its temperature, and what that changed."""

    model: Model
    sketches: int
    """How many it was fitted on."""
    ece_before: float
    ece_after: float
    """The expected calibration error on these, with the temperature 1 and with the model's."""


def fit_temperature(
    logits: NDArray[np.floating[Any]], labels: NDArray[np.integer[Any]], sources: NDArray[np.integer[Any]] | None = None
) -> float:
    """Return the temperature, from 0.05 to 20, that has the least negative log likelihood.

    Logits are (N, classes), labels and sources (N,).

    >>> logits = np.array([[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [4.0, 0.0]])
    >>> round(fit_temperature(logits, np.array([0, 0, 0, 1])), 2)  # 4 / log(3): it is right three times of four
    3.64
    """
    values = np.asarray(logits, dtype=np.float64)
    values = values - values.max(axis=1, keepdims=True)
    shares = None
    if sources is not None:
        _, members, counts = np.unique(sources, return_inverse=True, return_counts=True)
        shares = 1 / counts[members]
    right = np.average(values[np.arange(len(values)), labels], weights=shares)
    low, high = 1 / MOST, 1 / LEAST
    for _ in range(60):  # the derivative rises with b: halve the range that its zero is in
        b = (low + high) / 2
        weights = np.exp(b * values)
        slope = np.average((weights * values).sum(axis=1) / weights.sum(axis=1), weights=shares) - right
        low, high = (low, b) if slope > 0 else (b, high)
    return float(2 / (low + high))


def calibrate(
    model: Model, folder: Path, *, threads: int = 1, progress: Callable[[int, int], None] | None = None
) -> Calibration:
    """Fit a packed model's temperature on the sketches that its run held back to choose the best epoch by."""
    if not (folder / RUN).exists():
        raise InputError(
            f"a temperature is fitted on the sketches that a run held back, and '{folder}' is not a run's folder: "
            "give one, or leave out --calibrate."
        )
    begun = open_run(folder)
    if not begun.data.exists():
        raise InputError(
            f"the run's sketches, '{begun.data}', are not there any more: put them back, or leave out --calibrate."
        )
    sketches = SketchSet(begun.data)
    parts = divide(sketches, begun.recipe, begun.fold, read_held_back(folder, begun.start))
    if tuple(parts.classes) != model.labels:
        raise InputError(f"'{begun.data}' has other classes than the run learnt: put its own sketches back.")
    rows = parts.validation
    session = Session(model, threads)
    logits = ask(session, sketches, rows, begun.recipe.raster, progress)
    found = with_temperature(model, logits, parts.labels[rows], sketches.sources[rows])
    views = ask_views(session, found.model.temperature, sketches, rows, begun.recipe.raster, progress)
    sharpness = float(f"{fit_temperature(views, parts.labels[rows], sketches.sources[rows]):.4g}")
    return found._replace(model=replace(found.model, views_temperature=sharpness))


def with_temperature(
    model: Model,
    logits: NDArray[np.floating[Any]],
    labels: NDArray[np.integer[Any]],
    sources: NDArray[np.integer[Any]] | None = None,
) -> Calibration:
    """Set a model's temperature to the one that fits its logits, (N, classes), and tell what that changes."""
    temperature = float(f"{fit_temperature(logits, labels, sources):.4g}")
    before, after = (
        Evaluation.from_logits(labels, logits / divisor, model.labels).ece() for divisor in (1.0, temperature)
    )
    return Calibration(replace(model, temperature=temperature), len(labels), before, after)


def ask(
    session: Session,
    sketches: SketchSet,
    rows: NDArray[np.integer[Any]],
    raster: Raster,
    progress: Callable[[int, int], None] | None = None,
) -> NDArray[np.float32]:
    """Return a packed model's logits, (rows, classes), of some rows of a set; `progress` gets those done, and all."""
    logits = np.empty((len(rows), session.answers), dtype=np.float32)
    for start in range(0, len(rows), BATCH):
        batch = slice(start, start + BATCH)
        logits[batch] = session.run(show_batch(sketches.read(rows[batch]), raster))
        if progress:
            progress(min(start + BATCH, len(rows)), len(rows))
    return logits


def ask_views(
    session: Session,
    temperature: float,
    sketches: SketchSet,
    rows: NDArray[np.integer[Any]],
    raster: Raster,
    progress: Callable[[int, int], None] | None = None,
) -> NDArray[np.float64]:
    """Return the logarithms of the mean probabilities, (rows, classes), of ten crops of some rows of a set."""
    scores = np.empty((len(rows), session.answers))
    for start in range(0, len(rows), BATCH):
        batch = slice(start, start + BATCH)
        logits = session.run(show_crops(sketches.read(rows[batch]), raster)) / temperature
        scores[batch] = log_mean(logits.reshape(-1, 10, session.answers))
        if progress:
            progress(min(start + BATCH, len(rows)), len(rows))
    return scores
