from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor, nn

from dabnet.errors import InputError
from dabnet.networks.convert import binarize_
from dabnet.sketches import open_source
from dabnet.sketches.prepare import prepare
from dabnet.sketches.raster import Raster, rasterize_batch
from dabnet.sketches.store import SketchSet
from dabnet.training.augment import crop_source_size, ten_crop, to_network
from dabnet.training.evaluate import Evaluation, compare, evaluate

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


def random_answers(seed: int, drawings: int, classes: int, ties: bool) -> tuple[NDArray[Any], NDArray[Any], list[str]]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=drawings)
    logits = rng.normal(size=(drawings, classes)) * 3
    return labels, logits.round() if ties else logits, [f"class {i}" for i in range(classes)]


def softmax(row: Any) -> list[float]:
    powers = [math.exp(value - max(row)) for value in row]
    return [power / sum(powers) for power in powers]


def answers_by_hand(net: nn.Module, stored: SketchSet, rows: Any, crops: int) -> Tensor:
    """Give the mean probabilities, (drawings, classes), a drawing at a time."""
    found = []
    net.eval()
    with torch.no_grad():
        for row in rows:
            size = RASTER.size if crops == 1 else crop_source_size(RASTER.size)
            image = torch.from_numpy(rasterize_batch([stored[row]], Raster(size=size)))
            views = to_network(image) if crops == 1 else ten_crop(image, RASTER.size)[0]
            found.append(net(views).double().softmax(dim=1).mean(dim=0))
    net.train()
    return torch.stack(found)


answers = st.builds(random_answers, st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 9), st.booleans())


@given(answers)
def test_the_figures_are_those_of_plain_loops(data: tuple[NDArray[Any], NDArray[Any], list[str]]) -> None:
    labels, logits, names = data
    found = Evaluation.from_logits(labels, logits, names)
    confusion = [[0] * len(names) for _ in names]
    first = five = 0
    for label, row in zip(labels, logits, strict=True):
        order = sorted(range(len(names)), key=lambda i: (-row[i], i))
        confusion[label][order[0]] += 1
        first += label == order[0]
        five += label in order[:5]
    assert found.drawings == len(labels)
    assert found.top1 == first / len(labels)
    assert found.top5 == five / len(labels)
    assert found.confusion().tolist() == confusion
    accuracies = {names[i]: row[i] / sum(row) for i, row in enumerate(confusion) if any(row)}
    assert found.per_class() == accuracies
    pairs = [(i, j) for i in range(len(names)) for j in range(len(names)) if i != j and confusion[i][j]]
    mistakes = [(names[i], names[j], confusion[i][j]) for i, j in pairs]
    mistakes.sort(key=lambda mistake: -mistake[2])  # which leaves equal counts in the matrix's order
    assert found.worst_confusions(4) == mistakes[:4]
    assert found.worst_confusions(1000) == mistakes
    figures = found.to_dict()
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures
    assert (figures["top1"], figures["drawings"], figures["per_class"]) == (found.top1, len(labels), accuracies)


@given(answers, st.integers(0, 2**32))
def test_a_difference_counts_what_one_wins_and_the_other_loses(
    data: tuple[NDArray[Any], NDArray[Any], list[str]], seed: int
) -> None:
    labels, logits, names = data
    others = np.random.default_rng(seed).normal(size=logits.shape)
    one, other = (Evaluation.from_logits(labels, outputs, names) for outputs in (logits, others))
    won = int(((one.ranks == 0) & (other.ranks > 0)).sum())
    lost = int(((one.ranks > 0) & (other.ranks == 0)).sum())
    n = len(labels)
    gap, error = compare(one, other)
    assert gap == pytest.approx((won - lost) / n)
    assert error == pytest.approx(math.sqrt(won + lost - (won - lost) ** 2 / n) / n, abs=1e-12)
    with pytest.raises(InputError, match="cannot be compared"):
        compare(one, Evaluation.from_logits(np.append(labels, 0), np.vstack([logits, logits[:1]]), names))


@given(answers, st.integers(1, 20))
def test_the_calibration_error_is_that_of_plain_loops(
    data: tuple[NDArray[Any], NDArray[Any], list[str]], bins: int
) -> None:
    labels, logits, names = data
    found = Evaluation.from_logits(labels, logits, names)
    np.testing.assert_allclose(found.confidences, [max(softmax(row)) for row in logits], rtol=1e-6)
    error = 0.0
    for b in range(bins):
        members = [i for i, c in enumerate(found.confidences) if b / bins < float(c) <= (b + 1) / bins]
        if members:
            accuracy = sum(logits[i].argmax() == labels[i] for i in members) / len(members)
            confidence = sum(float(found.confidences[i]) for i in members) / len(members)
            error += len(members) / len(labels) * abs(accuracy - confidence)
    assert found.ece(bins) == pytest.approx(error, abs=1e-9)


def test_a_network_as_sure_as_it_is_right_is_calibrated_and_a_boaster_is_not() -> None:
    labels = np.array([0] * 75 + [1] * 25)
    honest = np.tile(np.log([0.75, 0.25]), (100, 1))
    assert Evaluation.from_logits(labels, honest, ["a", "b"]).ece() == pytest.approx(0, abs=1e-6)
    assert Evaluation.from_logits(labels, honest * 1000, ["a", "b"]).ece() == pytest.approx(0.25, abs=1e-6)


def test_classes_are_ranked_even_where_their_probabilities_are_all_0() -> None:
    logits = np.array([[5000.0, *range(9)]])
    found = Evaluation.from_logits(np.array([8]), logits, list("abcdefghij"))
    assert found.ranks.tolist() == [2]
    assert found.confidences.tolist() == [1]


def test_a_network_that_cannot_choose_is_not_taken_to_be_right() -> None:
    labels = np.repeat(np.arange(10), 3)
    found = Evaluation.from_logits(labels, np.zeros((30, 10)), list("abcdefghij"))
    assert (found.top1, found.top5) == (0.1, 0.5)


def test_a_class_that_a_network_rules_out_may_have_minus_infinity() -> None:
    logits = np.array([[0.0, -np.inf, 1.0], [0.0, -np.inf, -1.0]])
    found = Evaluation.from_logits(np.array([1, 0]), logits, ["a", "b", "c"])
    assert found.ranks.tolist() == [2, 0]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_network_that_diverged_is_an_error(bad: float) -> None:
    with pytest.raises(InputError, match=r"not finite.*learning rate"):
        Evaluation.from_logits(np.array([0]), np.array([[bad, 1.0]]), ["a", "b"])


@pytest.mark.parametrize(
    ("labels", "logits", "sentence"),
    [
        (np.array([0, 1]), np.zeros((2, 3)), r"shape \(2, 3\) do not fit 2 drawings of 2 classes"),
        (np.array([0, 1]), np.zeros((3, 2)), r"shape \(3, 2\) do not fit 2 drawings of 2 classes"),
        (np.array([], dtype=np.int64), np.zeros((0, 2)), "at least one"),
        (np.array([0, 2]), np.zeros((2, 2)), "from 0 to 1: there are 2 classes"),
        (np.array([0, -1]), np.zeros((2, 2)), "from 0 to 1: there are 2 classes"),
        (np.array([0.0, 1.0]), np.zeros((2, 2)), "from 0 to 1: there are 2 classes"),
    ],
)
def test_answers_that_do_not_fit_are_an_error(labels: Any, logits: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Evaluation.from_logits(labels, logits, ["a", "b"])


@pytest.mark.parametrize("bins", [0, -1, "many"])
def test_a_calibration_without_bins_is_an_error(bins: Any) -> None:
    found = Evaluation.from_logits(np.array([0]), np.zeros((1, 2)), ["a", "b"])
    with pytest.raises(InputError, match="the number of bins must be from 1"):
        found.ece(bins)


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
