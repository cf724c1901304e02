"""What is kept of the drawings that a packed model learnt, so that classes can be added to it without them.

Features are what enters the last layer. Those of a class are taken to be normal, with a mean of its own and one
covariance for all classes, `spread spread^T`; drawings of it can then be made up, as far as the last layer sees them:

    feature = mean[class] + spread z,    z ~ N(0, 1)

The file stands beside the model, `NAME.features.safetensors`: means of one byte per feature, and the lower triangle of
`spread` in 16 bits. `probe` is what the model makes of one fixed image: features of another model are refused by it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load, save

from dabnet.errors import InputError
from dabnet.runtime import Session
from dabnet.training.finetune import find_features, take_features, tuning_recipe

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray
    from torch import Tensor

    from dabnet.packed.model import Model
    from dabnet.sketches.store import SketchSet

SUFFIX = ".features.safetensors"
PROBE_TOLERANCE = 0.05
"""How far the probe may be off, as a share of its length: rounding turns a sign here and there on other machines."""


@dataclass(frozen=True, eq=False)
class ClassFeatures:
    """How the features of each class are distributed."""

    labels: tuple[str, ...]
    means: NDArray[np.float32]
    """(classes, features)."""
    spread: NDArray[np.float32]
    """(features, features), lower triangular."""
    probe: NDArray[np.float32]
    """(features,): of the model's fixed image."""

    def sample(self, each: int, seed: int) -> tuple[Tensor, Tensor]:
        """Make up `each` drawings of every class: features (classes * each, features) as float64, and labels."""
        generator = torch.Generator().manual_seed(seed)
        classes, width = self.means.shape
        noise = torch.randn(classes, each, width, generator=generator, dtype=torch.float64)
        features = torch.from_numpy(self.means).double()[:, None] + noise @ torch.from_numpy(self.spread).double().T
        return features.flatten(0, 1), torch.arange(classes).repeat_interleave(each)

    def to_bytes(self) -> bytes:
        """Return the bytes of the file."""
        low = self.means.min(axis=0)
        step = np.maximum((self.means.max(axis=0) - low) / 255, 1e-12).astype(np.float32)
        triangle = np.tril_indices(len(self.spread))
        tensors = {
            "means": np.rint((self.means - low) / step).clip(0, 255).astype(np.uint8),
            "low": low,
            "step": step,
            "spread": self.spread[triangle].astype(np.float16),
            "probe": self.probe,
        }
        return save(tensors, {"dabnet": json.dumps({"classes": list(self.labels)}, ensure_ascii=False)})

    @classmethod
    def from_bytes(cls, data: bytes) -> ClassFeatures:
        """Read the bytes of a file; a `ValueError` or `KeyError` says that they are not one."""
        length = int.from_bytes(data[:8], "little")
        about = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["dabnet"])
        tensors = load(data)
        width = len(tensors["low"])
        spread = np.zeros((width, width), dtype=np.float32)
        spread[np.tril_indices(width)] = tensors["spread"]
        means = tensors["low"] + tensors["step"] * tensors["means"].astype(np.float32)
        found = cls(tuple(map(str, about["classes"])), means.astype(np.float32), spread, tensors["probe"])
        if found.means.shape != (len(found.labels), width) or found.probe.shape != (width,):
            raise ValueError("its arrays do not fit each other")
        if not all(np.isfinite(array).all() for array in (found.means, found.spread, found.probe)):
            raise ValueError("it holds a number that is not finite")
        return found


def features_path(model: Path) -> Path:
    """Return where a packed model's features are: beside it."""
    return model.with_name(model.name.removesuffix(".safetensors") + SUFFIX)


def read_features(path: Path, model: Model) -> ClassFeatures:
    """Read the features of a packed model, and make sure that they are this model's."""
    remedy = "make them with: dabnet features MODEL --data SET, from drawings of all its classes."
    try:
        found = ClassFeatures.from_bytes(path.read_bytes())
    except OSError as problem:
        raise InputError(f"a model's classes are kept by its features, and there is no '{path}' "
                         f"({problem.strerror}): {remedy}") from None  # fmt: skip
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as problem:
        raise InputError(f"'{path}' does not hold the features of a model ({problem!s:.80}): {remedy}") from None
    expected = probe_features(model)
    fits = found.labels == model.labels and found.probe.shape == expected.shape
    if not fits or np.linalg.norm(found.probe - expected) > PROBE_TOLERANCE * np.linalg.norm(expected) + 1e-6:
        raise InputError(f"'{path}' holds the features of another model: {remedy}")
    return found


def probe_features(model: Model) -> NDArray[np.float32]:
    """Return the features, (features,), of one fixed image: stripes."""
    channels, height, width = model.input_size
    stripes = (np.add.outer(np.arange(height), 2 * np.arange(width)) % 11 < 3).astype(np.float32)
    images = np.broadcast_to(stripes, (1, channels, height, width))
    features: NDArray[np.float32] = Session(model.part(find_features(model))).run(np.ascontiguousarray(images))[0]
    return features


def collect_features(
    model: Model,
    sketches: SketchSet,
    labels: NDArray[np.int64],
    rows: NDArray[np.int64],
    *,
    threads: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> ClassFeatures:
    """Take the features of some rows of a set; `labels` are those of all its rows, counted over the model's."""
    here = labels[rows]
    missing = set(range(len(model.labels))) - set(here.tolist())
    if missing:
        more = f" and of {len(missing) - 1} more" if len(missing) > 1 else ""
        raise InputError(f"'{sketches.path}' has no drawing of '{model.labels[min(missing)]}'{more} to take features "
                         "of, and the model knows it: give a set with all its classes.")  # fmt: skip
    session = Session(model.part(find_features(model)), threads)
    recipe = tuning_recipe(model, ["epochs=1"])
    features = take_features(session, sketches, labels, rows, recipe, progress)[0].numpy()
    return describe_features(model, features, here)


def describe_features(model: Model, features: NDArray[np.float64], labels: NDArray[np.int64]) -> ClassFeatures:
    """Return how features, (drawings, features), of labelled drawings are distributed."""
    counts = np.bincount(labels, minlength=len(model.labels))
    means = np.stack([features[labels == number].mean(axis=0) for number in range(len(counts))])
    rest = features - means[labels]
    covariance = rest.T @ rest / max(1, len(rest) - len(means))
    # A ridge, so that few drawings, or features that never change, have a triangle too.
    ridge = 1e-4 * max(float(covariance.diagonal().mean()), 1e-6)
    spread = np.linalg.cholesky(covariance + ridge * np.eye(len(covariance)))
    probe = probe_features(model)
    return ClassFeatures(model.labels, means.astype(np.float32), spread.astype(np.float32), probe)
