"""What a network gets right: how often, on which classes, what it takes for what, and how sure it is of it.

With ten crops a network's answer is the arithmetic mean p of the ten views' probabilities (softmax of its logits) or,
where the model says how much too modest that is, softmax(log p / views_temperature).
Nothing here needs torch: `dabnet.training.evaluate` does the same for a network of torch's.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dabnet.errors import InputError, check_number
from dabnet.sketches.crops import crop_source_size, ten_crop
from dabnet.sketches.raster import rasterize_batch, show_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from dabnet.runtime.session import Session
    from dabnet.sketches.raster import Raster
    from dabnet.sketches.sketch import Sketch
    from dabnet.sketches.store import SketchSet

    Ask = Callable[[NDArray[np.float32]], NDArray[np.floating[Any]]]

BATCH_SIZES = (1, 65536)
BINS = (1, 10_000)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A network's answers to drawings whose classes are known: four numbers per drawing, for any number of classes.

    >>> logits = np.array([[2.0, 0.0, 1.0], [3.0, 1.0, 2.0], [0.0, 0.0, 4.0]])
    >>> found = Evaluation.from_logits(np.array([0, 2, 2]), logits, ["cat", "cow", "dog"])
    >>> round(found.top1, 3), found.per_class(), found.worst_confusions()
    (0.667, {'cat': 1.0, 'dog': 0.5}, [('dog', 'cat', 1)])
    """

    labels: NDArray[np.int64]
    """Each drawing's class, (drawings,)."""
    guesses: NDArray[np.int64]
    """The class that the network thinks likeliest; of several, the first."""
    ranks: NDArray[np.int64]
    """How many classes the network thinks likelier than the right one; equally likely ones before it count too."""
    confidences: NDArray[np.float32]
    """The probability that the network gives its guess."""
    class_names: tuple[str, ...]
    """Labels and guesses are indices into these."""

    @classmethod
    def from_logits(
        cls, labels: NDArray[np.integer[Any]], logits: NDArray[np.floating[Any]], class_names: Sequence[str]
    ) -> Evaluation:
        """Take a network's outputs, (drawings, classes), before any softmax; logarithms of probabilities serve too."""
        labels, logits = np.asarray(labels), np.ascontiguousarray(logits, dtype=np.float64)
        if not len(labels) or logits.shape != (len(labels), len(class_names)):
            raise InputError(
                f"outputs of shape {tuple(logits.shape)} do not fit {len(labels)} drawings of {len(class_names)} "
                "classes: give a row for each drawing, at least one, and a column for each class."
            )
        _check_labels(labels, len(class_names))
        judged = judge(logits[:, None], labels)
        return cls(labels.astype(np.int64), *judged, tuple(class_names))

    @property
    def drawings(self) -> int:
        """How many drawings were looked at."""
        return len(self.labels)

    @property
    def top1(self) -> float:
        """The share of drawings whose class was guessed."""
        return float((self.ranks < 1).mean())

    @property
    def top1_error(self) -> float:
        """The standard error of `top1`."""
        return math.sqrt(self.top1 * (1 - self.top1) / self.drawings)

    @property
    def top5(self) -> float:
        """The share of drawings whose class is among the five likeliest; of fewer classes, among all of them."""
        return float((self.ranks < 5).mean())

    def per_class(self) -> dict[str, float]:
        """Return the share of each class's drawings that were guessed; a class without drawings is left out."""
        confusion = self.confusion()
        counts = confusion.sum(axis=1)
        return {name: float(confusion[i, i] / counts[i]) for i, name in enumerate(self.class_names) if counts[i] > 0}

    def confusion(self) -> NDArray[np.int64]:
        """Count drawings by class and guess: (classes, classes), one row per true class."""
        classes = len(self.class_names)
        cells = np.bincount(self.labels * classes + self.guesses, minlength=classes**2)
        return cells.reshape(classes, classes).astype(np.int64)

    def worst_confusions(self, n: int = 15) -> list[tuple[str, str, int]]:
        """Name the up to n mistakes made most often: true class, guess and count, the most frequent first."""
        mistakes = self.confusion()
        np.fill_diagonal(mistakes, 0)
        worst = np.argsort(-mistakes, axis=None, kind="stable")[:n]
        pairs = zip(*np.unravel_index(worst, mistakes.shape), strict=True)
        names = self.class_names
        return [(names[i], names[j], int(mistakes[i, j])) for i, j in pairs if mistakes[i, j]]

    def ece(self, bins: int = 15) -> float:
        """Return the expected calibration error: how far confidence is from accuracy, on average over the drawings.

        Drawings are binned by confidence; bin b holds confidences above b/bins, up to (b + 1)/bins.
        """
        check_number("the number of bins", bins, BINS)
        confidences = self.confidences.astype(np.float64)
        which = np.searchsorted(np.arange(1, bins) / bins, confidences, side="left")
        gaps = np.bincount(which, weights=(self.ranks < 1) - confidences, minlength=bins)  # sums, so weighted by count
        return float(np.abs(gaps).sum() / len(confidences))

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain numbers and strings, for JSON."""
        figures = {"drawings": self.drawings, "top1": self.top1, "top1_error": self.top1_error, "top5": self.top5}
        figures["ece"] = self.ece()
        return {**figures, "per_class": self.per_class()}


def compare(one: Evaluation, other: Evaluation) -> tuple[float, float]:
    """Return how much more `one` gets right than `other` of the same drawings, and that difference's standard error.

    Drawings that both get right, or neither, tell nothing of the difference: with b won and c lost of n, it is
    (b - c) / n, and its error sqrt(b + c - (b - c)^2 / n) / n.

    >>> logits = np.array([[2.0, 0.0], [0.0, 1.0], [1.0, 0.0], [3.0, 0.0]])
    >>> right = Evaluation.from_logits(np.array([0, 1, 0, 0]), logits, ["cat", "cow"])
    >>> wrong = Evaluation.from_logits(np.array([0, 1, 0, 0]), -logits, ["cat", "cow"])
    >>> compare(right, wrong), compare(right, right)
    ((1.0, 0.0), (0.0, 0.0))
    """
    if one.drawings != other.drawings:
        raise InputError(
            f"{one.drawings} and {other.drawings} drawings cannot be compared: test both on the same ones."
        )
    gain = (one.ranks < 1).astype(np.int64) - (other.ranks < 1)
    return float(gain.mean()), float(gain.std() / math.sqrt(len(gain)))


def evaluate(
    ask: Ask,
    sketches: SketchSet,
    rows: NDArray[np.integer[Any]],
    raster: Raster,
    *,
    crops: int = 1,
    batch_size: int = 64,
    labels: NDArray[np.integer[Any]] | None = None,
    class_names: Sequence[str] | None = None,
    allowed: NDArray[np.bool_] | None = None,
    views_temperature: float = 1.0,
    change: Callable[[Sketch], Sketch] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Show some rows of a set to a network, and compare its answers with their classes.

    Args:
        ask: takes images (N, 1, size, size) to logits (N, classes). For a packed model see `ask_session`.
        sketches: the set.
        rows: which of its drawings, (drawings,).
        raster: how the network sees a drawing.
        crops: 1 for the whole drawing; 10 for the mean of ten views of it, see `ten_crop`.
        batch_size: images that the network sees at a time; a drawing's ten crops are ten images.
        labels: a class for each drawing of the set, (len(sketches),), for a network that knows some classes only;
            drawings that are not in `rows` may have any.
        class_names: the classes that `labels` counts; the set's if left out.
        allowed: (classes,): which classes may be answered; all if left out.
        views_temperature: what makes the mean of ten crops as sure as it is right (`Session.views_temperature`).
        change: what is done to each drawing before it is shown.
        progress: gets the drawings done and all drawings, after each batch.
    """
    names = tuple(sketches.classes if class_names is None else class_names)
    rows, labels = _chosen(sketches, np.asarray(rows), labels, len(names))
    if crops not in (1, 10):
        raise InputError(f"crops must be 1 or 10, not {crops}.")
    check_number("the batch size", batch_size, BATCH_SIZES)
    step = max(1, int(batch_size) // crops)
    sharpness = 1.0 if crops == 1 else views_temperature

    judged = []
    for start in range(0, len(rows), step):
        batch = slice(start, start + step)
        drawn = sketches.read(rows[batch])
        drawn = drawn if change is None else [change(sketch) for sketch in drawn]
        views = show_batch(drawn, raster) if crops == 1 else show_crops(drawn, raster)
        logits = _check_outputs(ask(views), len(views), len(names))
        if allowed is not None:
            logits = np.where(allowed, logits, -np.inf)
        judged.append(judge(logits.reshape(-1, crops, len(names)), labels[batch], sharpness))
        if progress:
            progress(min(start + step, len(rows)), len(rows))
    guesses, ranks, confidences = (np.concatenate(column) for column in zip(*judged, strict=True))
    return Evaluation(labels, guesses, ranks, confidences, names)


def show_crops(drawn: Sequence[Sketch], raster: Raster) -> NDArray[np.float32]:
    """Return the ten crops of each drawing, (10 drawings, 1, size, size), for a network."""
    larger = dataclasses.replace(raster, size=crop_source_size(raster.size))
    return ten_crop(rasterize_batch(drawn, larger), raster.size).reshape(-1, 1, raster.size, raster.size)


def ask_session(session: Session) -> Ask:
    """Ask a packed model as a network is asked; the softmax of what it gives are the probabilities that it claims."""
    return lambda images: session.run(images).astype(np.float64) / session.temperature


def judge(
    logits: NDArray[np.floating[Any]], labels: NDArray[np.integer[Any]], views_temperature: float = 1.0
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Return guesses, ranks and confidences, (drawings,) each, of logits (drawings, views, classes)."""
    # The logarithm of the mean probability: unlike that itself, it tells small ones apart, down to the last rank.
    scores = log_mean(logits)
    if views_temperature != 1:
        scores = _log_softmax(scores / views_temperature)
    if np.isnan(scores).any():
        raise InputError(
            "the network answers with numbers that are not finite: its training went astray, "
            "go back to an earlier checkpoint or lower the learning rate."
        )
    everyone = np.arange(len(scores))
    guesses = scores.argmax(axis=1)
    right = scores[everyone, labels][:, None]
    before = np.arange(scores.shape[1]) < np.asarray(labels)[:, None]
    ranks = ((scores > right) | ((scores == right) & before)).sum(axis=1)
    confidences = np.exp(scores[everyone, guesses]).astype(np.float32)
    return guesses.astype(np.int64), ranks.astype(np.int64), confidences


def _log_softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithm of the softmax over the last axis."""
    with np.errstate(invalid="ignore"):  # infinity less infinity is no number, and is found out
        shifted = logits - logits.max(axis=-1, keepdims=True)
    result: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result


def log_mean(logits: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return the log of the views' mean probability, (drawings, classes), of logits (drawings, views, classes)."""
    logs = _log_softmax(np.asarray(logits, dtype=np.float64))
    if logs.shape[1] == 1:
        return logs[:, 0]
    most = logs.max(axis=1)
    finite = np.where(np.isfinite(most), most, 0.0)
    with np.errstate(divide="ignore"):  # -infinity is right for what no view allows
        result: NDArray[np.float64] = np.log(np.exp(logs - finite[:, None]).mean(axis=1)) + finite
    return result


def _chosen(
    sketches: SketchSet, rows: NDArray[Any], labels: NDArray[Any] | None, classes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows, checked, and their labels."""
    if not rows.size:
        raise InputError("there are no drawings to evaluate: choose at least one row of the set.")
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= len(sketches):
        raise InputError(
            f"rows must be a list of whole numbers from 0 to {len(sketches) - 1}: the set has {len(sketches)} drawings."
        )
    labels = sketches.labels if labels is None else np.asarray(labels)
    if labels.shape != (len(sketches),):
        raise InputError(f"labels of shape {labels.shape} do not fit a set of {len(sketches)} drawings: give one each.")
    return rows.astype(np.int64), _check_labels(labels[rows], classes).astype(np.int64)


def _check_labels(labels: NDArray[Any], classes: int) -> NDArray[Any]:
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= classes:
        raise InputError(f"labels must be whole numbers from 0 to {classes - 1}: there are {classes} classes.")
    return labels


def _check_outputs(outputs: NDArray[Any], images: int, classes: int) -> NDArray[Any]:
    if outputs.ndim != 2 or len(outputs) != images:
        raise InputError(
            f"the network answers {images} images with a tensor of shape {tuple(outputs.shape)}: "
            "it must give a row for each image and a column for each class."
        )
    if outputs.shape[1] != classes:
        raise InputError(
            f"the network has {outputs.shape[1]} outputs, and there are {classes} classes: "
            "give it the set that it was trained on, or the labels and names of the classes that it knows."
        )
    return outputs
