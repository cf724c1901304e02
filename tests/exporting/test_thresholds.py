from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dabnet.exporting.thresholds import Thresholds

numbers = st.one_of(st.floats(-4, 4, width=32), st.sampled_from([0.0, 1.0, -1.0]))
steps = st.one_of(
    st.tuples(st.just("affine"), numbers, numbers),
    st.tuples(st.just("clamp"), st.floats(-2, 0), st.floats(0, 2)),
    st.tuples(st.just("relu"), st.just(0.0), st.just(0.0)),
    st.tuples(st.just("prelu"), st.one_of(st.just(0.0), st.floats(0.01, 3)), st.just(0.0)),
)


@given(chain=st.lists(steps, max_size=5), x=st.lists(st.floats(-10, 10, width=32), min_size=1, max_size=30))
def test_a_threshold_gives_the_sign_of_what_stood_before_it(
    chain: list[tuple[str, float, float]], x: list[float]
) -> None:
    """Wherever the number before the sign is not within rounding of 0."""
    given_x = np.array(x, dtype=np.float32)
    value = given_x.astype(np.float64)
    size = np.abs(value)  # of the terms, which is what rounding is relative to
    for kind, a, b in chain:
        if kind == "affine":
            value, size = a * value + b, abs(a) * size + abs(b)
        elif kind == "prelu":
            value = np.where(value > 0, value, a * value)
        else:
            value = np.clip(value, a, np.inf if kind == "relu" else b)
    thresholds = Thresholds.zeros(1)
    for kind, a, b in reversed(chain):
        thresholds = before(thresholds, kind, a, b)
    at, flip = thresholds.to_float32()
    sure = (np.abs(value) > 1e-5 * np.maximum(size, 1)) | (value == 0) & (size == 0)
    np.testing.assert_array_equal(((given_x >= at) != flip)[sure], (value >= 0)[sure])


def before(thresholds: Thresholds, kind: str, a: float, b: float) -> Thresholds:
    if kind == "affine":
        return thresholds.before_affine(np.array([a]), np.array([b]))
    if kind == "prelu":
        return thresholds.before_prelu(np.array([a]))
    return thresholds.before_clamp(a, np.inf if kind == "relu" else b)


def signs(thresholds: Thresholds, x: list[float]) -> NDArray[np.bool_]:
    at, flip = thresholds.to_float32()
    found: NDArray[np.bool_] = (np.array(x, dtype=np.float32)[:, None] >= at) != flip
    return found


def test_a_threshold_itself_counts_as_above_whichever_way_it_is_turned() -> None:
    turned = Thresholds.zeros(2).before_affine(np.array([1.0, -1.0]), np.array([-0.5, 0.5]))
    above, below = np.nextafter(np.float32(0.5), np.array([1, 0], dtype=np.float32))
    np.testing.assert_array_equal(signs(turned, [below, 0.5, above]), [[False, True], [True, True], [True, False]])


def test_a_norm_that_scales_by_zero_gives_one_sign_only() -> None:
    flat = Thresholds.zeros(2).before_affine(np.zeros(2), np.array([0.0, -1e-9]))
    np.testing.assert_array_equal(signs(flat, [-3e38, 0.0, 3e38]), [[True, False]] * 3)


def test_a_norm_that_scales_by_almost_zero_does_so_too() -> None:
    tiny = Thresholds.zeros(4).before_affine(np.array([1e-300, 1e-300, -1e-300, -1e-300]), np.array([1, -1, 1, -1.0]))
    np.testing.assert_array_equal(signs(tiny, [-3e38, 0.0, 3e38]), [[True, False, True, False]] * 3)
