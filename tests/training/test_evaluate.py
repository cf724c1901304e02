from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dabnet.errors import InputError
from dabnet.networks.convert import binarize_
from dabnet.sketches import open_source
from dabnet.sketches.crops import crop_source_size, ten_crop
from dabnet.sketches.prepare import prepare
from dabnet.sketches.raster import Raster, rasterize_batch
from dabnet.sketches.store import SketchSet
from dabnet.training.augment import to_network
from dabnet.training.evaluate import evaluate

RASTER = Raster(size=24)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> SketchSet:
    path = tmp_path_factory.mktemp("set") / "synthetic.parquet"
    prepare(open_source("synthetic", limit=3), path, workers=1)
    return SketchSet(path)


class Projection(nn.Module):
    """Answers with fixed sums over the image, different for its mirror image, and notes how it was asked."""

    def __init__(self, classes: int, size: int = RASTER.size) -> None:
        super().__init__()
        self.dropout = nn.Dropout()
        weight = torch.randn(classes, size * size, generator=torch.Generator().manual_seed(0))
        self.weight = nn.Parameter(weight / 4)
        self.batches: list[int] = []
        self.modes: list[tuple[bool, bool]] = []

    def forward(self, x: Tensor) -> Tensor:
        self.batches.append(len(x))
        self.modes.append((self.training, torch.is_grad_enabled()))
        answers: Tensor = self.dropout(x.flatten(1)) @ self.weight.T
        return answers


class InkCounter(nn.Module):
    """Guesses the class whose number is the rank of the ink, among the amounts that it was told."""

    def __init__(self, amounts: NDArray[np.float64]) -> None:
        super().__init__()
        self.amounts = torch.from_numpy(np.sort(amounts))

    def forward(self, x: Tensor) -> Tensor:
        ink = x.double().sum(dim=(1, 2, 3))
        return -(ink[:, None] - self.amounts).abs()


def answers_by_hand(net: nn.Module, stored: SketchSet, rows: Any, crops: int) -> Tensor:
    """Return the mean probabilities, (drawings, classes), a drawing at a time."""
    found = []
    net.eval()
    with torch.no_grad():
        for row in rows:
            size = RASTER.size if crops == 1 else crop_source_size(RASTER.size)
            image = rasterize_batch([stored[row]], Raster(size=size))
            plain = to_network(torch.from_numpy(image))
            views = plain if crops == 1 else torch.from_numpy(ten_crop(image, RASTER.size)[0])
            found.append(net(views).double().softmax(dim=1).mean(dim=0))
    net.train()
    return torch.stack(found)


def test_a_network_that_counts_ink_gets_the_drawings_right_that_have_it(stored: SketchSet) -> None:
    """The classes' amounts of ink are those of their first drawings, in order, so these are guessed."""
    firsts = [int(np.flatnonzero(stored.labels == label)[0]) for label in range(len(stored.classes))]
    ink = rasterize_batch(stored.read(firsts), RASTER).sum(axis=(1, 2), dtype=np.float64) / 255
    assert len(set(ink)) == len(ink)
    labels = np.full(len(stored), -1)  # drawings that are not asked for need no class
    labels[firsts] = np.argsort(np.argsort(ink))
    names = [stored.classes[i] for i in np.argsort(ink)]
    found = evaluate(InkCounter(ink), stored, np.array(firsts), RASTER, labels=labels, class_names=names)
    assert found.top1 == 1
    assert found.class_names == tuple(names)
    assert [found.class_names[label] for label in found.labels] == stored.classes
    labels[firsts] = len(ink) - 1 - labels[firsts]
    found = evaluate(InkCounter(ink), stored, np.array(firsts), RASTER, labels=labels, class_names=names)
    assert found.top1 == (len(ink) % 2) / len(ink)


@pytest.mark.parametrize("crops", [1, 10])
@pytest.mark.parametrize("batch_size", [1, 7, 64])
def test_the_answer_is_the_mean_of_the_views_probabilities(stored: SketchSet, crops: int, batch_size: int) -> None:
    net = Projection(len(stored.classes))
    rows = np.random.default_rng(1).permutation(len(stored))[:20]
    found = evaluate(net, stored, rows, RASTER, crops=crops, batch_size=batch_size)
    probabilities = answers_by_hand(net, stored, rows, crops).numpy()
    assert found.labels.tolist() == stored.labels[rows].tolist()
    assert found.guesses.tolist() == probabilities.argmax(axis=1).tolist()
    np.testing.assert_allclose(found.confidences, probabilities.max(axis=1), rtol=1e-4)
    order = np.argsort(-probabilities, axis=1)
    assert found.ranks.tolist() == [row.tolist().index(label) for row, label in zip(order, found.labels, strict=True)]
    assert found.class_names == tuple(stored.classes)


@pytest.mark.parametrize(("crops", "batch_size", "most"), [(1, 8, 8), (10, 8, 10), (10, 25, 20)])
def test_no_batch_is_larger_than_asked_for_but_for_one_drawings_crops(
    stored: SketchSet, crops: int, batch_size: int, most: int
) -> None:
    net = Projection(len(stored.classes))
    evaluate(net, stored, np.arange(21), RASTER, crops=crops, batch_size=batch_size)
    assert max(net.batches) == most
    assert sum(net.batches) == 21 * crops


def test_the_network_is_asked_in_eval_mode_and_each_part_returns_to_its_own(stored: SketchSet) -> None:
    net = Projection(len(stored.classes))
    net.dropout.eval()
    evaluate(net, stored, np.arange(3), RASTER)
    assert net.modes == [(False, False)]
    assert net.training
    assert not net.dropout.training
    net.eval()
    evaluate(net, stored, np.arange(3), RASTER)
    assert not net.training
    net.train()
    with pytest.raises(InputError):
        evaluate(net, stored, np.arange(3), RASTER, class_names=["a"], labels=np.zeros(len(stored), dtype=np.int64))
    assert net.training


def test_a_network_can_be_trained_after_it_was_evaluated(stored: SketchSet) -> None:
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.Flatten())
    net.append(nn.Linear(4 * 20 * 20, len(stored.classes)))
    binarize_(net, precision="fbin", method="dab")
    evaluate(net, stored, np.arange(4), RASTER)
    net(torch.rand(2, 1, RASTER.size, RASTER.size)).sum().backward()
    assert all(parameter.grad is not None for parameter in net.parameters())


def test_progress_rises_to_all_drawings(stored: SketchSet) -> None:
    told: list[tuple[int, int]] = []
    net = Projection(len(stored.classes))
    evaluate(net, stored, np.arange(10), RASTER, batch_size=4, progress=lambda *now: told.append(now))
    assert told == [(4, 10), (8, 10), (10, 10)]


@pytest.mark.parametrize(
    ("rows", "changes", "sentence"),
    [
        ([], {}, "no drawings to evaluate"),
        ([0], {"crops": 5}, "crops must be 1 or 10, not 5"),
        ([0], {"batch_size": 0}, "the batch size must be from 1"),
        ([-1], {}, "from 0 to"),
        ([10**6], {}, "from 0 to"),
        ([[0]], {}, "list of whole numbers"),
        ([True, False], {}, "list of whole numbers"),
        ([0], {"labels": np.array([0])}, r"labels of shape \(1,\) do not fit a set of"),
        ([0], {"class_names": ["a", "b"], "labels": "zeros"}, "outputs, and there are 2 classes"),
        ([0], {"class_names": ["a", "b"], "labels": "twos"}, "from 0 to 1: there are 2 classes"),
    ],
)
def test_what_cannot_be_evaluated_is_a_sentence(
    stored: SketchSet, rows: Any, changes: dict[str, Any], sentence: str
) -> None:
    if isinstance(changes.get("labels"), str):
        changes = changes | {"labels": np.full(len(stored), 2 if changes["labels"] == "twos" else 0)}
    with pytest.raises(InputError, match=sentence):
        evaluate(Projection(len(stored.classes)), stored, np.array(rows), RASTER, **changes)


def test_a_network_of_other_classes_is_told_both_numbers(stored: SketchSet) -> None:
    with pytest.raises(InputError, match=f"the network has 7 outputs, and there are {len(stored.classes)} classes"):
        evaluate(Projection(7), stored, np.arange(3), RASTER)


def test_a_network_that_answers_with_images_is_an_error(stored: SketchSet) -> None:
    with pytest.raises(InputError, match=r"3 images with a tensor of shape \(3, 1, 24, 24\)"):
        evaluate(nn.Identity(), stored, np.arange(3), RASTER)
