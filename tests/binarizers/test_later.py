"""IR-Net's, ReCU's and AdaBin's weights, against formulas written out one weight at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dabnet.binarizers.annealing import set_progress_
from dabnet.binarizers.choices import WeightGradient
from dabnet.binarizers.later import RecuWeights
from dabnet.binarizers.weights import QUANTIZERS, two_values
from tests.binarizers.test_weights import random_weights

CASES = [(method, gradient) for method in ("irnet", "recu", "adabin") for gradient in QUANTIZERS[method].GRADIENTS]


class Filter:
    """A filter's numbers: mean, deviation, and its weights less the one and divided by the other."""

    def __init__(self, w: list[float], correction: int, add: float = 0.0) -> None:
        self.mean = sum(w) / len(w)
        self.count = len(w) - correction
        self.deviation = math.sqrt(sum((value - self.mean) ** 2 for value in w) / self.count + add)
        self.u = [(value - self.mean) / self.deviation for value in w]

    def through(self, d: list[float]) -> list[float]:
        """dC/dw of d = dC/du: each weight moves the mean and the deviation, too."""
        along = sum(a * b for a, b in zip(d, self.u, strict=True)) / self.count
        mean = sum(d) / len(d)
        return [(each - mean - u * along) / self.deviation for each, u in zip(d, self.u, strict=True)]


def slope(gradient: str, progress: float) -> Callable[[float], float]:
    """What stands for the sign's derivative."""
    t = 0.1 * 100**progress
    if gradient == "annealed":
        return lambda u: max(1 / t, 1) * t * (1 - math.tanh(t * u) ** 2)
    return lambda u: 1.0 if abs(u) <= 1 else 0.0


def expected(
    layer: list[list[float]], grads: list[list[float]], method: str, gradient: str, progress: float
) -> tuple[list[list[float]], list[list[float]]]:
    """Binary weights and gradients of a layer."""
    binary, gradients = [], []
    derivative = slope(gradient, progress)
    spread = 2 * math.sqrt(2)
    parts = [Filter(w, 0 if method == "adabin" else 1, 1e-5 if method == "recu" else 0.0) for w in layer]
    every = [abs(spread * u) for part in parts for u in part.u]
    tau = 0.85 + 0.14 * (math.exp(progress) - 1) / (math.e - 1)
    limit = -sum(every) / len(every) * math.log(2 - 2 * tau)
    for part, g in zip(parts, grads, strict=True):
        n = len(g)
        signs = [1 if u >= 0 else -1 for u in part.u]
        if method == "adabin":
            binary.append([part.mean + part.deviation * s for s in signs])
            d = [g[i] * part.deviation * derivative(part.u[i]) for i in range(n)]
            of_deviation = sum(g[i] * signs[i] for i in range(n))
            direct = part.through(d)
            gradients.append([sum(g) / n + of_deviation * part.u[i] / n + direct[i] for i in range(n)])
        elif method == "irnet":
            scale = 2.0 ** round(math.log2(sum(map(abs, part.u)) / n))
            binary.append([scale * s for s in signs])
            gradients.append(part.through([scale * g[i] * derivative(part.u[i]) for i in range(n)]))
        else:
            scale = sum(min(abs(spread * u), limit) for u in part.u) / n
            binary.append([scale * s for s in signs])
            inside = [abs(spread * u) <= limit for u in part.u]
            gradients.append(part.through([spread * scale * g[i] * inside[i] for i in range(n)]))
    return binary, gradients


@pytest.mark.parametrize(("method", "gradient"), CASES)
@settings(max_examples=10)
@given(seed=st.integers(0, 2**31), n=st.integers(3, 60), progress=st.floats(0, 1, width=32))
def test_weights_and_gradients_are_the_formulas(
    method: str, gradient: WeightGradient, seed: int, n: int, progress: float
) -> None:
    w = random_weights(seed, 3, n, dtype=torch.float64).requires_grad_()
    g = random_weights(seed + 1, 3, n, dtype=torch.float64)
    quantizer = QUANTIZERS[method](gradient).double()
    set_progress_(quantizer, progress)
    result = quantizer(w)
    result.backward(g)
    binary, gradients = expected(w.tolist(), g.tolist(), method, gradient, progress)
    torch.testing.assert_close(result.detach(), torch.tensor(binary, dtype=torch.float64))
    torch.testing.assert_close(w.grad, torch.tensor(gradients, dtype=torch.float64), rtol=1e-6, atol=1e-9)


def test_irnets_values_are_powers_of_two_and_its_filters_are_balanced() -> None:
    mask, alpha, beta = two_values(torch.randn(8, 400, generator=torch.Generator().manual_seed(0)) + 3, "irnet")
    assert torch.equal(alpha, -beta)
    assert torch.equal(torch.exp2(torch.log2(alpha).round()), alpha)
    assert ((mask.float().mean(dim=1) - 0.5).abs() < 0.1).all()


def test_adabins_values_are_the_mean_and_the_deviation_away_from_it() -> None:
    w = torch.tensor([[1.0, 1.0, 1.0, 5.0]])
    mask, alpha, beta = two_values(w, "adabin")
    assert mask.tolist() == [[False, False, False, True]]
    assert float(alpha) == pytest.approx(2 + math.sqrt(3))
    assert float(beta) == pytest.approx(2 - math.sqrt(3))


def test_recus_quantile_widens_over_the_training() -> None:
    quantizer = RecuWeights()
    limits = []
    for progress in (0.0, 0.5, 1.0):
        set_progress_(quantizer, progress)
        limits.append(float(quantizer.quantile(torch.ones(3))))
    assert limits[0] == pytest.approx(-math.log(2 - 2 * 0.85))
    assert limits[2] == pytest.approx(-math.log(2 - 2 * 0.99), rel=1e-5)
    assert limits[0] < limits[1] < limits[2]


@pytest.mark.parametrize(("method", "gradient"), CASES)
def test_constant_filters_have_finite_values_and_gradients(method: Any, gradient: WeightGradient) -> None:
    w = torch.full((2, 9), 0.25, requires_grad=True)
    binary = QUANTIZERS[method](gradient)(w)
    binary.backward(torch.arange(18.0).reshape(2, 9))
    assert binary.isfinite().all()
    assert w.grad is not None
    assert w.grad.isfinite().all()
