from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dabnet.packed.model import Model
from dabnet.packed.nodes import Conv
from dabnet.runtime.evaluation import Evaluation, judge, log_mean
from dabnet.training.calibrate import LEAST, MOST, fit_temperature, with_temperature


def losses(logits: NDArray[Any], labels: NDArray[Any], temperatures: NDArray[np.float64]) -> NDArray[np.float64]:
    """The negative log likelihood at each temperature, (temperatures,)."""
    values = logits[None] / temperatures[:, None, None]
    top = values.max(axis=2, keepdims=True)
    totals = np.log(np.exp(values - top).sum(axis=2)) + top[..., 0]
    found: NDArray[np.float64] = (totals - values[:, np.arange(len(labels)), labels]).mean(axis=1)
    return found


def draw(seed: int, count: int, classes: int, scale: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Logits, and labels drawn with the probabilities that logits / scale give."""
    rng = np.random.default_rng(seed)
    honest = rng.normal(size=(count, classes)) * 2
    gumbel = rng.gumbel(size=honest.shape)
    return honest * scale, (honest + gumbel).argmax(axis=1)


@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(2, 9), st.floats(0.02, 30))
@settings(max_examples=60)
def test_no_temperature_of_a_fine_grid_is_likelier(seed: int, count: int, classes: int, scale: float) -> None:
    logits, labels = draw(seed, count, classes, scale)
    found = fit_temperature(logits, labels)
    assert LEAST <= found <= MOST
    grid = np.geomspace(LEAST, MOST, 2000)
    assert losses(logits, labels, np.array([found]))[0] <= losses(logits, labels, grid).min() + 1e-9


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.5])
def test_logits_that_were_scaled_get_their_scale_as_temperature(scale: float) -> None:
    logits, labels = draw(1, 20_000, 10, scale)
    assert fit_temperature(logits, labels) == pytest.approx(scale, rel=0.03)


def test_each_source_counts_as_much_as_any_other() -> None:
    # A source of few drawings whose logits are thrice too large, beside a large one that is honest.
    (few, few_labels), (many, many_labels) = draw(4, 200, 6, 3.0), draw(5, 2000, 6, 1.0)
    logits, labels = np.concatenate([few, many]), np.concatenate([few_labels, many_labels])
    found = fit_temperature(logits, labels, np.repeat([0, 7], [200, 2000]))
    repeated = np.concatenate([np.repeat(few, 10, axis=0), many])
    assert found == pytest.approx(fit_temperature(repeated, np.concatenate([np.repeat(few_labels, 10), many_labels])))
    assert found > 1.1 * fit_temperature(logits, labels)


def test_float32_logits_of_any_size_and_shift_are_fine() -> None:
    logits, labels = draw(2, 300, 5, 1.0)
    found = fit_temperature(logits, labels)
    assert fit_temperature((logits + 1e4).astype(np.float32), labels) == pytest.approx(found, rel=1e-2)
    assert fit_temperature(logits * 1e6, labels) == pytest.approx(MOST)
    assert fit_temperature(np.eye(3) * 9, np.arange(3)) == pytest.approx(LEAST)  # all right: the surer the better


def test_a_boaster_is_less_wrong_about_itself_with_its_temperature() -> None:
    logits, labels = draw(3, 5000, 4, 3.0)
    weight = np.zeros((4, 1, 1, 1), dtype=np.float32)
    model = Model((1, 1, 1), (Conv(inputs=(0,), filters=4, weight=weight),), ("a", "b", "c", "d"))
    found = with_temperature(model, logits, labels)
    assert (model.temperature, found.sketches) == (1.0, 5000)
    assert found.model.temperature == pytest.approx(3, rel=0.05)
    assert found.ece_after < 0.03 < 0.1 < found.ece_before


def test_the_mean_of_views_is_as_sure_as_it_is_right_with_a_temperature_of_its_own() -> None:
    rng = np.random.default_rng(5)
    logits, labels = draw(5, 4000, 4, 1.0)
    views = logits[:, None] + rng.normal(scale=2, size=(4000, 10, 4))
    modest, fitted = (
        Evaluation(labels.astype(np.int64), *judge(views, labels, temperature), ("a", "b", "c", "d"))
        for temperature in (1.0, fit_temperature(log_mean(views), labels))
    )
    assert np.array_equal(modest.ranks, fitted.ranks)
    assert fitted.ece() < 0.03 < modest.ece()
