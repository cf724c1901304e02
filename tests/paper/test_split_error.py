from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from paper.filters import TrainedFilters
from paper.split_error import KINDS, METHODS, TIE, binarize_as_released, find_split_error, relative_errors

weights = arrays(
    np.float32,
    st.tuples(st.integers(1, 4), st.integers(2, 40)),
    elements=st.floats(-1, 1, width=32, allow_subnormal=False).filter(lambda w: w == 0 or abs(w) > 1e-6),
).filter(lambda w: bool((np.abs(w).max(axis=1) > 0).all()))


@given(weights)
def test_no_method_is_closer_than_dab(w: NDArray[np.float32]) -> None:
    dab = relative_errors(w, "dab")
    for method in METHODS:
        assert (dab <= relative_errors(w, method) * (1 + TIE) + 1e-12).all()


def released(w: list[float]) -> list[float]:
    """What the released code does, in plain loops."""
    n, total = len(w), sum(w)
    picks = []
    for order in (sorted(w, reverse=True), sorted(w)):
        prefix, gains = 0.0, []
        for i, weight in enumerate(order, start=1):
            prefix += weight
            gains.append(prefix**2 / i + (total - prefix) ** 2 / (n - i + 1))
        best = gains.index(max(gains))
        picks.append((best, order[best]))
    threshold = picks[0][1] if picks[0][0] >= picks[1][0] else picks[1][1]
    above, below = [x for x in w if x > threshold], [x for x in w if x <= threshold]
    upper = sum(map(abs, above)) / max(len(above), 1)
    lower = sum(map(abs, below)) / max(len(below), 1)
    return [upper if x > threshold else -lower for x in w]


@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=30))
def test_the_released_way_is_as_its_loops_say(w: list[int]) -> None:
    exact = [float(x) for x in w]
    assert binarize_as_released(np.array([exact]))[0] == pytest.approx(released(exact))


def test_dab_is_least_in_every_row_and_far_ahead_on_skewed_filters() -> None:
    gaussian = np.random.default_rng(1).normal(size=(2, 4, 3, 3)).astype(np.float32)
    found: dict[str, Any] = find_split_error([TrainedFilters("a run", "a layer", [0, 1], gaussian)]).figures
    assert found["dab_is_always_least"]
    rows = found["rows"]
    assert list(rows) == [*KINDS, "a run, a layer"]
    assert rows["log-normal"]["dab"] < 0.5 * rows["log-normal"]["xnor"]
    assert rows["log-normal"]["dab"] < 0.5 * rows["log-normal"]["released"]
    assert rows["Gaussian"]["dab"] == pytest.approx(rows["Gaussian"]["xnor"], rel=0.01)
