from __future__ import annotations

import subprocess
import sys
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dabnet.binarizers import Split, optimal_split
from dabnet.binarizers.sweep import sweep_split
from dabnet.errors import InputError, NonFiniteError

from .filters import DRAWN, arbitrary_filters, drawn_filters, every_gain, squared_error

EXCESS = 1e-9  # of the filter's centred energy

each_kind = pytest.mark.parametrize("kind", DRAWN)


def values(split: Split[Any], row: int = 0) -> NDArray[Any]:
    binary: NDArray[Any] = np.where(split.mask[row], split.alpha[row], split.beta[row])
    return binary


def assert_optimal(w: NDArray[np.float32], split: Split[Any], row: int = 0) -> None:
    gains, energy = every_gain(w)
    least = energy - gains.max() if len(w) > 1 else energy
    error = squared_error(w, values(split, row))
    assert error - least <= EXCESS * energy
    scale = np.abs(w).mean(dtype=np.longdouble)
    xnor = squared_error(w, np.where(w >= 0, scale, -scale))
    assert error <= xnor + 1e-15 * np.sum(w.astype(np.longdouble) ** 2)


@each_kind
@settings(max_examples=180)
@given(data=st.data())
def test_no_split_has_a_smaller_error_and_xnor_never_does(kind: str, data: st.DataObject) -> None:
    w = data.draw(drawn_filters(kind))
    assert_optimal(w, optimal_split(w[None]))


@settings(max_examples=400)
@given(w=arbitrary_filters())
def test_arbitrary_floats_are_split_optimally(w: NDArray[np.float32]) -> None:
    assert_optimal(w, optimal_split(w[None]))


@each_kind
@settings(max_examples=25)
@given(data=st.data())
def test_alpha_beta_mask_and_k_agree(kind: str, data: st.DataObject) -> None:
    w = data.draw(drawn_filters(kind))
    s = optimal_split(w[None])
    alphas, betas = w[s.mask[0]], w[~s.mask[0]]
    rounding = 1e-12 * float(np.abs(w).max())
    assert s.k[0] == len(alphas) == s.mask.sum() > 0
    assert s.alpha[0] == pytest.approx(float(alphas.mean(dtype=np.float64)), abs=rounding)
    if len(betas):
        assert s.beta[0] == pytest.approx(float(betas.mean(dtype=np.float64)), abs=rounding)
        assert alphas.min() > betas.max() or alphas.max() < betas.min()
    else:
        assert s.alpha[0] == s.beta[0]
        assert len(set(w.tolist())) == 1
    assert abs(s.alpha[0]) >= abs(s.beta[0])


@pytest.mark.parametrize(
    ("w", "alpha", "beta", "mask"),
    [
        ([2.0], 2, 2, [1]),
        ([0.0], 0, 0, [1]),
        ([-1.0, 1.0], 1, -1, [0, 1]),  # equal magnitudes: alpha is the positive one
        ([1.0, 3.0], 3, 1, [0, 1]),
        ([-1.0, -3.0], -3, -1, [0, 1]),
        ([-1.0, 0.0, 1.0], -1, 0.5, [1, 0, 0]),  # equal gains: the smaller low group
        ([5.0, 5.0, 5.0], 5, 5, [1, 1, 1]),
        ([0.0, 0.0, 4.0], 4, 0, [0, 0, 1]),
        ([-0.0, 0.0, -4.0], -4, 0, [0, 0, 1]),
    ],
)
def test_small_filters_by_hand(w: list[float], alpha: float, beta: float, mask: list[int]) -> None:
    s = optimal_split(np.array([w], dtype=np.float32))
    assert (s.alpha[0], s.beta[0]) == (pytest.approx(alpha, abs=1e-15), pytest.approx(beta, abs=1e-15))
    assert s.mask[0].tolist() == [bool(bit) for bit in mask]


def test_ties_go_to_the_smaller_low_group_in_long_filters_too() -> None:
    w = np.repeat(np.array([-1, 0, 1], dtype=np.float32), 300)
    s = optimal_split(w[None])
    assert (s.alpha[0], s.beta[0], s.k[0]) == (pytest.approx(-1), pytest.approx(0.5), 300)


@each_kind
@settings(max_examples=15)
@given(data=st.data())
def test_torch_sweep_has_the_same_error(kind: str, data: st.DataObject) -> None:
    w = data.draw(drawn_filters(kind))
    swept = sweep_split(torch.from_numpy(w)[None])
    assert_optimal(w, Split(*(tensor.numpy() for tensor in swept)))


@each_kind
@settings(max_examples=25)
@given(data=st.data())
def test_low_counts_limit_the_search(kind: str, data: st.DataObject) -> None:
    w = data.draw(drawn_filters(kind))
    n = len(w)
    least = data.draw(st.integers(0, n))
    most = data.draw(st.integers(least, n))
    limits = np.array([least]), np.array([most])
    native = optimal_split(w[None], low_counts=limits)
    swept = sweep_split(torch.from_numpy(w)[None], low_counts=(torch.tensor([least]), torch.tensor([most])))
    low_first = native.alpha[0] < native.beta[0]
    low_count = int(native.k[0] if low_first else n - native.k[0])

    gains, energy = every_gain(w)
    ordered = np.sort(w)
    allowed = [i for i in range(1, n) if least <= i <= most and ordered[i - 1] < ordered[i]]
    if allowed:
        assert least <= low_count <= most
        assert energy - max(gains[i - 1] for i in allowed) >= squared_error(w, values(native)) - EXCESS * energy
    else:
        assert_optimal(w, native)
    difference = squared_error(w, values(Split(*(t.numpy() for t in swept)))) - squared_error(w, values(native))
    assert abs(difference) <= EXCESS * energy


@given(seed=st.integers(0, 2**32), step=st.sampled_from([-3, -1, 2, 5]), transpose=st.booleans())
@settings(max_examples=30)
def test_views_are_split_as_their_copies_are(seed: int, step: int, transpose: bool) -> None:
    base = np.random.default_rng(seed).standard_normal((30, 400)).astype(np.float32)
    view = (base.T if transpose else base)[::step, ::step]
    for mine, copys in zip(optimal_split(view), optimal_split(np.ascontiguousarray(view)), strict=True):
        np.testing.assert_array_equal(mine, copys)


def test_unaligned_and_broadcast_and_read_only_arrays() -> None:
    packed = np.zeros(40, dtype=[("tag", "u1"), ("w", "<f4")])
    packed["w"] = np.arange(40)
    np.testing.assert_array_equal(optimal_split(packed["w"].reshape(2, 20)).alpha, [14.5, 34.5])
    broadcast = np.broadcast_to(np.arange(20, dtype=np.float32), (3, 20))
    np.testing.assert_array_equal(optimal_split(broadcast).alpha, [14.5] * 3)


def test_tensors_are_answered_with_tensors_and_may_require_gradients() -> None:
    w = torch.randn(4, 100, requires_grad=True)
    s = optimal_split(w)
    assert (s.mask.dtype, s.k.dtype, s.alpha.dtype) == (torch.bool, torch.int64, torch.float64)
    expected = optimal_split(w.detach().numpy())
    for tensor, array in zip(s, expected, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), array)
    transposed = optimal_split(torch.randn(100, 4).T)
    assert transposed.mask.shape == (4, 100)


def test_any_number_of_threads_gives_the_same_answer() -> None:
    w = np.random.default_rng(0).standard_normal((500, 700)).astype(np.float32)
    alone = optimal_split(w, threads=1)
    for threads in (2, 3, 64):
        for mine, theirs in zip(alone, optimal_split(w, threads=threads), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_threads_work_without_torch_too() -> None:
    code = """
import sys
import numpy as np
from dabnet.binarizers.split import optimal_split
w = np.random.default_rng(0).standard_normal((500, 700)).astype(np.float32)
alone, shared = optimal_split(w, threads=1), optimal_split(w, threads=2)
assert all((mine == theirs).all() for mine, theirs in zip(alone, shared))
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("step", [1, 3])
def test_binary_weights_are_written_in_the_same_pass(step: int) -> None:
    w = np.random.default_rng(0).standard_normal((80, 1500)).astype(np.float32)[:, ::step]
    binary = np.empty(w.shape, dtype=np.float32)
    s = optimal_split(w, threads=2, binary=binary)
    np.testing.assert_array_equal(binary, np.where(s.mask, s.alpha[:, None], s.beta[:, None]).astype(np.float32))
    with pytest.raises(InputError, match="binary must be a float32 array of shape"):
        optimal_split(w, binary=np.empty((1, 2), dtype=np.float32))


def test_strided_weights_are_not_copied() -> None:
    w = np.random.default_rng(0).standard_normal((64, 40_000)).astype(np.float32)[:, ::2]
    tracemalloc.start()
    optimal_split(w)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.5 * w.size * w.itemsize  # the mask alone takes a quarter


def test_other_python_threads_run_meanwhile() -> None:
    w = np.random.default_rng(0).standard_normal((64, 400_000)).astype(np.float32)
    worker = threading.Thread(target=optimal_split, args=(w,))
    counted = 0
    worker.start()
    while worker.is_alive():
        counted += 1
    assert counted > 1000


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", [1, 3, 70, 1000])
def test_a_weight_that_is_not_finite_names_its_filter(bad: float, n: int) -> None:
    w = np.zeros((5, n), dtype=np.float32)
    w[3, n // 2] = w[4, 0] = bad
    for threads in (1, 2):
        with pytest.raises(NonFiniteError, match=r"^filter 3 holds a NaN or an infinite weight"):
            optimal_split(w, threads=threads)
    with pytest.raises(NonFiniteError, match=r"^filter 3 of layer 'stem' "):
        sweep_split(torch.from_numpy(w), layer="stem")


@pytest.mark.parametrize(
    ("w", "sentence"),
    [
        (np.zeros((2, 3)), r"takes float32 weights, not float64: convert"),
        (np.zeros((2, 3), dtype=">f4"), r"takes float32 weights, not >f4"),
        (torch.zeros(2, 3, dtype=torch.bfloat16), r"takes float32 weights, not bfloat16"),
        (np.zeros(3, dtype=np.float32), r"shape \(filters, n\), not \(3,\): reshape"),
        (torch.zeros(2, 3, 4), r"shape \(filters, n\), not \(2, 3, 4\): reshape"),
        (np.zeros((0, 3), dtype=np.float32), r"at least one filter and one weight, not shape \(0, 3\)"),
        (np.zeros((3, 0), dtype=np.float32), r"at least one filter and one weight, not shape \(3, 0\)"),
        ([[1.0, 2.0]], r"takes a numpy array or a torch tensor, not list"),
    ],
)
def test_bad_input_gets_its_sentence(w: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        optimal_split(w)
    assert str(caught.value).endswith(".")


def test_bad_settings_get_their_sentence() -> None:
    w = np.zeros((2, 3), dtype=np.float32)
    with pytest.raises(InputError, match="at least one thread, not 0"):
        optimal_split(w, threads=0)
    with pytest.raises(InputError, match=r"two arrays of shape \(2,\)"):
        optimal_split(w, low_counts=(np.array([1]), np.array([1])))
