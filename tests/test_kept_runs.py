"""Runs and models that were kept go on loading, and answer as they did when they were trained."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dabnet
from dabnet.networks.packed import PackedNetwork
from dabnet.packed import find_model
from dabnet.sketches import synthetic_sketches
from dabnet.training.recipe import Recipe, load_recipe

RESULTS = Path(__file__).parents[1] / "docs" / "results"
SMALL = Path(__file__).parent / "kept"
"""Networks of a twentieth of the width, not trained: weights with settings as the first version wrote them, and packed
models."""
SHIPPED = find_model("default")
ANSWERS: dict[str, list[list[float]]] = json.loads((Path(__file__).parent / "kept_runs.json").read_text())
"""By a file's SHA-256, the first five logits of three synthetic sketches, by the code that it was made with."""


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


KEPT = [SHIPPED, *sorted(RESULTS.rglob("best.safetensors")), *sorted(SMALL.iterdir())]
KNOWN = [path for path in KEPT if digest(path) in ANSWERS]


def test_there_are_answers_of_runs_and_of_packed_models() -> None:
    assert {path.stem.rpartition("-")[2] for path in KNOWN} >= {"best", "model"}
    assert set(KNOWN) >= set(SMALL.iterdir())


@pytest.mark.parametrize("path", KNOWN, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_kept_model_loads_and_answers_as_it_did(path: Path) -> None:
    logits, expected = answer(dabnet.load(path)), torch.tensor(ANSWERS[digest(path)])
    assert torch.allclose(logits, expected, rtol=1e-3, atol=1e-3 * float(expected.abs().max()))


def test_the_model_that_ships_answers() -> None:
    assert torch.isfinite(answer(dabnet.load("default"))).all()


@pytest.mark.parametrize("path", sorted(RESULTS.rglob("recipe.toml")), ids=lambda path: path.parent.name)
def test_the_recipe_of_a_kept_run_loads_and_is_written_out_whole(path: Path, tmp_path: Path) -> None:
    recipe = load_recipe(path)
    again = tmp_path / "recipe.toml"
    again.write_text(recipe.to_toml())
    assert load_recipe(again) == recipe
    left_out = {name for name, value in recipe.to_dict().items() if value is None}
    assert {line.partition(" ")[0] for line in recipe.to_toml().splitlines()} == set(Recipe().to_dict()) - left_out


def answer(net: Any) -> torch.Tensor:
    size = net.model.input_size[1] if isinstance(net, PackedNetwork) else net.input_size
    images = synthetic_sketches(3, size)[0][:, None].astype(np.float32) / np.float32(255)
    with torch.inference_mode():
        logits: torch.Tensor = net(torch.from_numpy(images))[:, :5]
    return logits


def write_answers() -> None:
    """Keep the answers of all models that are there."""
    found = {digest(path): answer(dabnet.load(path)).double().round(decimals=5).tolist() for path in KEPT}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(rows)}" for name, rows in found.items())
    (Path(__file__).parent / "kept_runs.json").write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    write_answers()
