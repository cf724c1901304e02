"""A small prepared set for everything that trains."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from dabnet.sketches.prepare import prepare
from dabnet.sketches.sources import open_source, unite
from dabnet.sketches.vocabulary import Vocabulary
from dabnet.training.recipe import Recipe

TINY = Recipe(
    width=0.125, shortcuts="conv", size=32, pen=0.04, epochs=3, batch_size=32, schedule="one-cycle", crops=1,
    remove_strokes=0.05, pen_factors=(0.9, 1.1), deform_strokes=0.01, classes=["cat", "house", "key", "sun", "tree"],
)  # fmt: skip
"""Five things, and a network that learns a little of them in seconds."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small networks do not gain from more, and lose much where other work goes on."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def union_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two times the synthetic things, once in three folds and once for training only, as one set."""
    folder = tmp_path_factory.mktemp("union")
    sources = [open_source("synthetic", limit=limit) for limit in (30, 15)]
    sources[1].title = "more things"
    words = Vocabulary("things", {name: (name,) for name in sources[0].classes})
    united = unite(sources, words)
    return prepare(united, folder / "union.parquet", folds=[3, 0], workers=1).path


@pytest.fixture(scope="session")
def small_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty drawings of each synthetic thing, in three folds."""
    return prepare(open_source("synthetic", limit=60), tmp_path_factory.mktemp("set") / "small.parquet", workers=1).path
