from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dabnet.errors import InputError
from dabnet.runtime.evaluation import Evaluation, compare, evaluate
from dabnet.sketches.prepare import prepare
from dabnet.sketches.raster import Raster
from dabnet.sketches.sketch import Sketch
from dabnet.sketches.sources import open_source
from dabnet.sketches.store import SketchSet


def random_answers(seed: int, drawings: int, classes: int, ties: bool) -> tuple[NDArray[Any], NDArray[Any], list[str]]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=drawings)
    logits = rng.normal(size=(drawings, classes)) * 3
    return labels, logits.round() if ties else logits, [f"class {i}" for i in range(classes)]


def softmax(row: Any) -> list[float]:
    powers = [math.exp(value - max(row)) for value in row]
    return [power / sum(powers) for power in powers]


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


def test_answers_may_be_limited_and_drawings_changed_before_they_are_shown(tmp_path: Path) -> None:
    stored = SketchSet(prepare(open_source("synthetic", limit=2), tmp_path / "set.parquet", workers=1).path)
    rng = np.random.default_rng(0)
    classes, shown = len(stored.classes), []

    def ask(images: NDArray[np.float32]) -> NDArray[Any]:
        shown.append(images)
        return rng.normal(size=(len(images), classes))

    allowed = np.zeros(classes, dtype=np.bool_)
    allowed[[2, 5]] = True
    rows = np.flatnonzero(np.isin(stored.labels, [2, 5]))
    line = Sketch.from_strokes([[(0, 0), (1, 0)]])
    found = evaluate(ask, stored, rows, Raster(size=24), allowed=allowed, change=lambda _: line)
    assert set(found.guesses.tolist()) <= {2, 5}
    assert (found.ranks < 2).all()
    assert len({image.tobytes() for image in np.concatenate(shown)}) == 1
