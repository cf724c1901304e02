from __future__ import annotations

from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dabnet.binarizers import sign
from dabnet.binarizers.activations import RSign, WholeNumbers, _round, _sign
from dabnet.binarizers.choices import SignGradient
from dabnet.errors import InputError


@given(st.lists(st.floats(-3, 3, width=32), min_size=1, max_size=30))
def test_sign_is_one_or_minus_one_and_its_gradient_is_the_formula(numbers: list[float]) -> None:
    for gradient in ("clipped", "approx"):
        x = torch.tensor(numbers, requires_grad=True)
        g = torch.arange(1.0, len(numbers) + 1)
        y = sign(x, gradient)
        assert y.tolist() == [1.0 if value >= 0 else -1.0 for value in numbers]
        y.backward(g)
        slope = [(1.0 if gradient == "clipped" else 2 - 2 * abs(v)) if abs(v) < 1 else 0.0 for v in numbers]
        torch.testing.assert_close(x.grad, g * torch.tensor(slope))


@given(
    numbers=st.lists(st.floats(-3, 3, width=32), min_size=12, max_size=12),
    thresholds=st.lists(st.floats(-2, 2, width=32), min_size=3, max_size=3),
    gradient=st.sampled_from(["clipped", "approx"]),
)
def test_rsign_is_the_sign_above_its_channels_threshold_and_its_gradient_is_the_formula(
    numbers: list[float], thresholds: list[float], gradient: SignGradient
) -> None:
    for dims, shape, channel in ((2, (2, 3, 2, 1), (1, 3, 1, 1)), (0, (4, 3), (1, 3))):
        quantize = RSign(3, gradient, dims=dims)
        quantize.threshold.data.copy_(torch.tensor(thresholds))
        x = torch.tensor(numbers).reshape(shape).requires_grad_()
        t = torch.tensor(thresholds).reshape(channel)
        g = torch.arange(1.0, 13).reshape(shape)
        y = quantize(x)
        assert torch.equal(y, torch.where(x >= t, 1.0, -1.0))
        y.backward(g)
        distance = (x.detach() - t).abs()
        slope = torch.where(distance < 1, 1.0 if gradient == "clipped" else 2 - 2 * distance, 0.0)
        torch.testing.assert_close(x.grad, g * slope)
        per_channel = (g * slope).sum(dim=[axis for axis in range(len(shape)) if axis != 1])
        torch.testing.assert_close(quantize.threshold.grad, -per_channel)


def test_rsign_learns_where_to_divide_a_channel() -> None:
    """Half of each channel's numbers are marked; the threshold finds the half."""
    torch.manual_seed(0)
    middles = torch.tensor([0.5, -0.7, 0.2])
    quantize = RSign(3, dims=0)
    optimizer = torch.optim.Adam(quantize.parameters(), lr=0.02)
    for _ in range(200):
        x = middles + torch.randn(256, 3)
        loss = (quantize(x) - torch.where(x >= middles, 1.0, -1.0)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.testing.assert_close(quantize.threshold.detach(), middles, atol=0.1, rtol=0)


@given(
    numbers=st.lists(st.floats(-9, 9, width=32), min_size=1, max_size=30),
    bits=st.sampled_from([4, 8]),
    signed=st.booleans(),
    step=st.floats(0.01, 2),
)
def test_whole_numbers_and_their_gradients_are_the_formulas(
    numbers: list[float], bits: int, signed: bool, step: float
) -> None:
    quantize = WholeNumbers(bits, signed=signed)
    quantize.set_step(step)
    s, low, high = float(quantize.step.detach()), quantize.low, quantize.high
    assert (low, high) == ((-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1))
    x, g = torch.tensor(numbers, requires_grad=True), torch.arange(1.0, len(numbers) + 1)
    y = quantize(x)
    scaled = x.detach() * (1 / quantize.step.detach())
    whole = scaled.clamp(low, high).round()
    assert torch.equal(quantize.round(x), whole)
    assert torch.equal(y, whole * quantize.step.detach())
    y.backward(g)
    is_inside = (scaled >= low) & (scaled <= high)
    torch.testing.assert_close(x.grad, torch.where(is_inside, g, 0.0))
    slope = torch.where(is_inside, whole - scaled, whole)
    expected = (g * slope).sum() / (len(numbers) * high) ** 0.5
    assert quantize.log_step.grad is not None
    rounding = 1e-6 * s * float((g * (whole.abs() + 1)).sum())
    torch.testing.assert_close(quantize.log_step.grad, expected * s, atol=rounding, rtol=1e-4)


def test_a_step_is_learned_that_rounds_with_less_error() -> None:
    torch.manual_seed(0)
    x = torch.randn(4096).relu()
    quantize = WholeNumbers(4)
    quantize.set_step(1.0)
    optimizer = torch.optim.Adam(quantize.parameters(), lr=0.02)

    @torch.no_grad()
    def error() -> float:
        return float((quantize(x) - x).square().mean())

    first = error()
    for _ in range(200):
        optimizer.zero_grad()
        (quantize(x) - x).square().mean().backward()
        optimizer.step()
    assert 0.1 < float(quantize.step.detach()) < 0.3
    assert error() < first / 10


def test_rounding_passes_torchs_own_checks() -> None:
    x = torch.randn(2, 3).requires_grad_()
    assert set(torch.library.opcheck(_round, (x,)).values()) == {"SUCCESS"}


@pytest.mark.parametrize("gradient", get_args(SignGradient))
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_operator_passes_torchs_own_checks(gradient: SignGradient, dtype: torch.dtype) -> None:
    x = torch.randn(2, 3, 4, dtype=dtype).transpose(0, 1).requires_grad_()
    assert set(torch.library.opcheck(_sign, (x, gradient)).values()) == {"SUCCESS"}


def test_unknown_gradient_gets_its_sentence() -> None:
    with pytest.raises(
        InputError, match=r"'clip' is not a gradient of sign: choose one of clipped, approx, annealed\."
    ):
        sign(torch.zeros(1), "clip")  # type: ignore[arg-type]
