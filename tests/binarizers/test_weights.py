from __future__ import annotations

import math
from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from dabnet.binarizers import TwoValues, binarize, two_values
from dabnet.binarizers.choices import Method, WeightGradient
from dabnet.binarizers.weights import QUANTIZERS, _binarize, limited_low_count
from dabnet.errors import InputError, NonFiniteError

CASES: list[tuple[Method, WeightGradient]] = [
    (method, gradient)  # type: ignore[misc]
    for method in ("dab", "xnor", "bnn")
    for gradient in QUANTIZERS[method].GRADIENTS
]
each_case = pytest.mark.parametrize(("method", "gradient"), CASES)


def random_weights(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Skewed weights, a third of them beyond the clip at 1."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=dtype).exp().sub(1.2)


def gradient_of(w: Tensor, method: Method, gradient: WeightGradient, g: Tensor) -> Tensor:
    w = w.clone().requires_grad_()
    binarize(w, method, gradient).backward(g)
    assert w.grad is not None
    return w.grad


def formula(
    w: list[float], e: list[bool], alpha: float, beta: float, g: list[float], method: str, gradient: str
) -> list[float]:
    """The gradient of one filter as METHOD writes it, one weight at a time."""
    n, k = len(w), sum(e)
    inside = [1.0 if abs(value) <= 1 else 0.0 for value in w]
    if gradient == "ste":
        return [g[i] * inside[i] for i in range(n)]
    if method == "dab" and gradient == "paper":
        share = [1 / k if e[i] else 1 / (n - k) for i in range(n)]
        return [g[i] * (share[i] + abs(alpha if e[i] else beta) * inside[i]) for i in range(n)]
    if method == "dab":
        means = {
            group: sum(g[i] for i in range(n) if e[i] is group) / max(1, e.count(group)) for group in (True, False)
        }
        return [means[e[i]] + g[i] * abs(alpha - beta) / 2 * inside[i] for i in range(n)]
    if gradient == "paper":
        return [g[i] * (1 / n + alpha * inside[i]) for i in range(n)]
    signs = [1 if value >= 0 else -1 for value in w]
    mean = sum(g[i] * signs[i] for i in range(n)) / n
    return [signs[i] * mean + alpha * g[i] * inside[i] for i in range(n)]


@each_case
@settings(max_examples=25)
@given(seed=st.integers(0, 2**31), filters=st.integers(1, 4), n=st.integers(2, 150))
def test_gradient_is_its_formula(method: Method, gradient: WeightGradient, seed: int, filters: int, n: int) -> None:
    w = random_weights(seed, filters, n, dtype=torch.float64)
    g = random_weights(seed + 1, filters, n, dtype=torch.float64)
    values = two_values(w, method)
    expected = [
        formula(
            w[f].tolist(), values.mask[f].tolist(), float(values.alpha[f]), float(values.beta[f]), g[f].tolist(),
            method, gradient,
        )
        for f in range(filters)
    ]  # fmt: skip
    torch.testing.assert_close(gradient_of(w, method, gradient, g), torch.tensor(expected, dtype=torch.float64))


def with_mask_held(w: Tensor, method: str, values: TwoValues) -> Tensor:
    """Binary weights as a smooth function of w: the mask is a constant, the two values are not."""
    mask = values.mask.double()
    if method == "xnor":
        signs = 2 * mask - 1
        return signs * (w * signs).mean(dim=1, keepdim=True)
    k = mask.sum(dim=1, keepdim=True)
    alpha = (w * mask).sum(dim=1, keepdim=True) / k
    beta = (w * (1 - mask)).sum(dim=1, keepdim=True) / (w.shape[1] - k)
    return alpha * mask + beta * (1 - mask)


def test_native_and_torch_gradients_of_the_paper_agree_on_large_layers() -> None:
    w, g = random_weights(0, 70, 3001), torch.randn(70, 3001)
    native = gradient_of(w, "dab", "paper", g)
    assert torch.allclose(native, gradient_of(w.double(), "dab", "paper", g.double()).float(), rtol=1e-6)


@pytest.mark.parametrize("method", ["dab", "xnor"])
@settings(max_examples=25)
@given(seed=st.integers(0, 2**31), n=st.integers(2, 40))
def test_exact_gradient_is_the_finite_difference_with_the_mask_held(method: Method, seed: int, n: int) -> None:
    w = random_weights(seed, 3, n, dtype=torch.float64)
    g = random_weights(seed + 1, 3, n, dtype=torch.float64)
    values = two_values(w, method)
    step = 1e-5
    differences = torch.zeros_like(w)
    for index in torch.cartesian_prod(torch.arange(3), torch.arange(n)).tolist():
        nudge = torch.zeros_like(w)
        nudge[tuple(index)] = step
        up, down = (with_mask_held(w + side * nudge, method, values) for side in (1, -1))
        differences[tuple(index)] = ((up - down) * g).sum() / (2 * step)
    height = (values.alpha - values.beta).abs() / 2
    mask_term = g * height * (w.abs() <= 1)
    torch.testing.assert_close(gradient_of(w, method, "exact", g), differences + mask_term, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("method", get_args(Method))
def test_binary_weights_are_the_two_values_where_the_mask_says(method: Method) -> None:
    w = random_weights(0, 6, 4, 3, 3)
    mask, alpha, beta = two_values(w, method)
    assert mask.shape == (6, 36)
    assert alpha.shape == beta.shape == (6, 1)
    torch.testing.assert_close(binarize(w, method), torch.where(mask, alpha, beta).reshape(w.shape), rtol=0, atol=0)


def test_xnor_and_bnn_count_zero_as_positive() -> None:
    w = torch.tensor([[0.0, -0.0, -1.0, 3.0]])
    assert binarize(w, "xnor").tolist() == [[1, 1, -1, 1]]
    assert binarize(w, "bnn").tolist() == [[1, 1, -1, 1]]


@each_case
def test_constant_filters_have_finite_gradients(method: Method, gradient: WeightGradient) -> None:
    w = torch.full((2, 9), 0.25)
    g = torch.arange(18.0).reshape(2, 9)
    assert gradient_of(w, method, gradient, g).isfinite().all()
    if (method, gradient) == ("dab", "paper"):
        torch.testing.assert_close(gradient_of(w, method, gradient, g), g * (1 / 9 + 0.25))


@pytest.mark.parametrize("method", get_args(Method))
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_other_floating_types_keep_their_type(method: Method, dtype: torch.dtype) -> None:
    w = random_weights(0, 4, 50).to(dtype).requires_grad_()
    binary = binarize(w, method)
    assert binary.dtype == dtype
    torch.testing.assert_close(binary.float(), binarize(w.detach().float(), method), rtol=1e-2, atol=1e-2)
    binary.sum().backward()
    assert w.grad is not None
    assert w.grad.dtype == dtype


@each_case
def test_operator_passes_torchs_own_checks(method: Method, gradient: WeightGradient) -> None:
    low_count = torch.tensor([-1, 5, 10]) if method == "dab" else None
    for w in (
        random_weights(0, 3, 2, 3, 3),
        random_weights(1, 3, 4, 2, 2).to(memory_format=torch.channels_last),
    ):
        result: dict[str, Any] = torch.library.opcheck(
            _binarize, (w.requires_grad_(), method, gradient, low_count, "layer")
        )
        assert set(result.values()) == {"SUCCESS"}


def test_low_count_prescribes_the_smaller_group() -> None:
    w = random_weights(0, 3, 100)
    mask, alpha, beta = two_values(w, "dab", low_count=torch.tensor([-1, 10, 70]))
    low = torch.where(alpha < beta, mask, ~mask).sum(dim=1).tolist()
    best = two_values(w)
    assert low == [int(torch.where(best.alpha < best.beta, best.mask, ~best.mask).sum(dim=1)[0]), 10, 70]
    torch.testing.assert_close(mask[0], best.mask[0])


def test_limited_low_count_moves_no_farther_than_its_reach() -> None:
    w = random_weights(0, 4, 200)
    free = limited_low_count(w, torch.full((4,), -1), reach=1)
    far = torch.where(free < 100, free + 50, free - 50)
    moved = limited_low_count(w, far, reach=7)
    assert ((moved - far).abs() <= 7).all()
    assert (moved != far).any()
    torch.testing.assert_close(limited_low_count(w, far, reach=60), free)


def test_a_nan_names_filter_and_layer() -> None:
    w = torch.zeros(3, 8)
    w[2, 1] = math.nan
    with pytest.raises(NonFiniteError, match=r"^filter 2 of layer 'block.1' holds a NaN"):
        binarize(w, layer="block.1")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("dba",), "'dba' is not a method: choose one of dab, xnor, bnn, dab-learned, irnet, recu, adabin. Did you"),
        (
            ("dab", "papre"),
            "'papre' is not a gradient of weights: choose one of paper, exact, ste, annealed. Did you mean",
        ),
        (("bnn", "paper"), "method 'bnn' has no 'paper' gradient: choose one of ste."),
    ],
)
def test_unknown_names_get_their_sentence(arguments: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        binarize(torch.zeros(1, 2), *arguments)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("method", get_args(Method))
@pytest.mark.parametrize("scale", [0.3, 2.0])  # within [-1, 1], and beyond
def test_weights_stored_channels_last_give_the_same_and_stay_so(method: Method, scale: float) -> None:
    generator = torch.Generator().manual_seed(0)
    plain = (torch.randn(6, 5, 3, 2, generator=generator) * scale).requires_grad_()
    last = plain.detach().clone(memory_format=torch.channels_last).requires_grad_()
    grad = torch.randn(plain.shape, generator=generator)
    for gradient in QUANTIZERS[method].GRADIENTS:
        results: list[Any] = []
        for weight in (plain, last):
            weight.grad = None
            quantizer = QUANTIZERS[method](gradient, len(weight))  # type: ignore[arg-type]
            quantizer.begin_(weight)
            binary, values = quantizer.with_values(weight)
            (binary * grad).sum().backward()
            assert weight.grad is not None
            results.append((binary.detach(), values, weight.grad))
        (binary, values, gradients), (other, others, other_gradients) = results
        assert torch.allclose(binary, other, rtol=1e-6, atol=0)
        assert torch.equal(values.mask, others.mask)
        assert torch.allclose(gradients, other_gradients, rtol=1e-5, atol=1e-7 * float(gradients.abs().max()))
        assert other.is_contiguous(memory_format=torch.channels_last)
