"""A few filters of trained networks, kept in a small file, for figures that need real-valued weights.

Which ones is fixed beforehand: some layers, and in each of them filters at equal distances.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from dabnet._files import write_beside
from dabnet.errors import InputError
from paper.finding import OUTPUT

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

TRAINED_FILTERS = OUTPUT / "filters.safetensors"
CHOSEN = {
    "tuberlin-sketch-a-net-fprec": {"conv1.conv": 16},
    "tuberlin-resnet18-fprec": {"stage2.1.branch.conv2.conv": 3, "stage4.1.branch.conv2.conv": 3},
    "tuberlin-resnet18-fbin-xnor": {"stage2.1.branch.conv2.conv": 3, "stage4.1.branch.conv2.conv": 3},
    "tuberlin-resnet18-fbin-dab": {"stage2.1.branch.conv2.conv": 3, "stage4.1.branch.conv2.conv": 3},
    "tuberlin-resnet18-shortcuts-fbin-dab": {"stage2.1.conv2.branch.conv": 3, "stage4.1.conv2.branch.conv": 3},
}
"""How many filters of which layers of which runs."""


class TrainedFilters(NamedTuple):
    """Filters of one layer of a trained network."""

    run: str
    layer: str
    indices: list[int]
    """Which of the layer's filters they are."""
    weights: NDArray[np.float32]
    """(filters, channels, height, width)"""

    @property
    def rows(self) -> NDArray[np.float32]:
        """The weights as (filters, n)."""
        return self.weights.reshape(len(self.weights), -1)


def keep_filters(runs: Path, path: Path) -> list[TrainedFilters]:
    """Take the chosen filters from runs, with their best weights, and write them to a file."""
    found = []
    for run, layers in CHOSEN.items():
        file = runs / run / "best.safetensors"
        try:
            with safe_open(file, "np") as opened:
                for layer, count in layers.items():
                    weights = opened.get_tensor(f"{layer}.weight")
                    indices = np.linspace(0, len(weights) - 1, count).round().astype(int)
                    found.append(TrainedFilters(run, layer, indices.tolist(), weights[indices]))
        except (OSError, SafetensorError) as problem:
            raise InputError(
                f"cannot take filters from '{file}' ({problem}): train it by its recipe, dabnet train small/{run}."
            ) from None
    about: list[dict[str, Any]] = [{"run": each.run, "layer": each.layer, "places": each.indices} for each in found]
    tensors = {_key(each.run, each.layer, each.indices): np.ascontiguousarray(each.weights) for each in found}
    write_beside(path, save(tensors, {"filters": json.dumps(about)}))
    return found


def load_filters(path: Path) -> list[TrainedFilters]:
    """Read the filters that were kept."""
    try:
        with safe_open(path, "np") as opened:
            about = json.loads((opened.metadata() or {})["filters"])
            described = [(each["run"], each["layer"], each["places"]) for each in about]
            return [TrainedFilters(*each, opened.get_tensor(_key(*each))) for each in described]
    except (OSError, SafetensorError, KeyError, ValueError, TypeError):
        raise InputError(
            f"'{path}' holds no trained filters: run this in a clone of dabnet's repository, or take some from your "
            "own trainings with dabnet paper filters --runs FOLDER."
        ) from None


def _key(run: str, layer: str, indices: list[int]) -> str:
    """Name a layer's filters in the file."""
    return f"{run}/{layer}/{indices[0]}-{indices[-1]}"
