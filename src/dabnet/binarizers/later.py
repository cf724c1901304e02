"""Weights as methods after XNOR-Net make them binary: of numbers that were centred and standardized first.

With m and s the mean and the standard deviation of a filter's n weights w, u = (w - m)/s and sign(0) = 1:

    "irnet"     w~ = 2^r sign(u),  r = round(log2(mean|u|))                      (IR-Net, Qin et al., 2020)
    "recu"      w~ = a sign(v),    v = clamp(2 sqrt(2) u, -q, q),  a = mean|v|   (ReCU, Xu et al., 2021)
                q = -b ln(2 - 2 tau), the quantile tau of a Laplace distribution, b = mean|2 sqrt(2) u| of the layer;
                tau = 0.85 + 0.14 (e^p - 1)/(e - 1), from 0.85 to 0.99 with the progress p of the training
    "adabin"    w~ = m + s sign(u)                                               (AdaBin, Tu et al., 2022)

s has n - 1 in its denominator for irnet and recu, n for adabin; recu adds 1e-5 to its square.

The gradient is the formula's own, with a stand-in for the sign, and with 2^r and a held:

    "annealed"  of k tanh(t u), see `dabnet.binarizers.annealing`    irnet, adabin (whose m and s are not held)
    "ste"       of clamp(u, -1, 1); for recu of v itself, so that it is 0 beyond the quantile

ReCU's authors learn a factor per filter in place of a; here it is the mean that their analysis of the error starts
from, so that nothing but the weights decides.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor

from dabnet.binarizers.annealing import soft_sign, with_gradient_of
from dabnet.binarizers.choices import WeightGradient
from dabnet.binarizers.quantizer import TwoValues, WeightQuantizer

RECU_TAU = (0.85, 0.99)


class StandardizedWeights(WeightQuantizer):
    """What the three have in common; a subclass has `compose`, on weights of any shape (filters, ...)."""

    def __init__(self, gradient: WeightGradient | None = None, filters: int = 0) -> None:
        super().__init__(gradient, filters)
        self.keep_progress()

    def compose(self, w: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return binary weights with their gradient, the mask of w's shape, and both values, (filters, 1, ...)."""
        raise NotImplementedError

    def with_values(self, weight: Tensor, low_count: Tensor | None = None, layer: str = "") -> tuple[Tensor, TwoValues]:
        """Binarize weights of shape (filters, ...)."""
        wide = weight.to(torch.promote_types(weight.dtype, torch.float32))  # so that few bits round once, in the end
        binary, mask, alpha, beta = self.compose(wide)
        column = (len(weight), 1)
        values = (value.detach().reshape(column).to(weight.dtype) for value in (alpha, beta))
        return binary.to(weight.dtype), TwoValues(mask.flatten(1), *values)


def _standardize(w: Tensor, *, correction: int, add: float = 0.0) -> tuple[Tensor, Tensor, Tensor]:
    """Return u, m and s."""
    dims = tuple(range(1, w.ndim))
    mean = w.mean(dim=dims, keepdim=True)
    count = max(1, w[0].numel() - correction)
    variance = (w - mean).square().sum(dim=dims, keepdim=True) / count + add
    # A constant filter has no deviation: 0 stays 0.
    deviation = variance.clamp(min=torch.finfo(w.dtype).tiny).sqrt()
    return (w - mean) / deviation, mean, deviation


def _mean_magnitude(x: Tensor) -> Tensor:
    return x.detach().abs().mean(dim=tuple(range(1, x.ndim)), keepdim=True)


def _clipped(u: Tensor, progress: Tensor) -> Tensor:
    return u.clamp(-1, 1)


def _signs(u: Tensor) -> Tensor:
    return torch.where(u >= 0, 1.0, -1.0).to(u.dtype)


class IrnetWeights(StandardizedWeights):
    """IR-Net's quantizer: signs of balanced weights, times a power of two."""

    METHOD = "irnet"
    GRADIENTS: ClassVar = {"annealed": soft_sign, "ste": _clipped}

    def compose(self, w: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return 2^r sign(u)."""
        u, _, _ = _standardize(w, correction=1)
        scale = torch.exp2(torch.log2(_mean_magnitude(u)).round())
        stand_in = scale * self.GRADIENTS[self.gradient](u, self.progress)
        return with_gradient_of(scale * _signs(u), stand_in), u >= 0, scale, -scale


class RecuWeights(StandardizedWeights):
    """ReCU's quantizer: weights far out are clamped, so that their sign can change again."""

    METHOD = "recu"
    GRADIENTS: ClassVar = {"ste": lambda v, _: v}

    def quantile(self, standardized: Tensor) -> Tensor:
        """Return q of a layer's standardized weights."""
        least, most = RECU_TAU
        tau = least + (most - least) * torch.expm1(self.progress) / math.expm1(1)
        return -standardized.detach().abs().mean() * torch.log(2 - 2 * tau)

    def compose(self, w: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return a sign(v)."""
        u, _, _ = _standardize(w, correction=1, add=1e-5)
        spread = 2 * math.sqrt(2) * u
        limit = self.quantile(spread)
        clamped = spread.clamp(-limit, limit)
        scale = _mean_magnitude(clamped)
        return with_gradient_of(scale * _signs(u), scale * clamped), u >= 0, scale, -scale


class AdabinWeights(StandardizedWeights):
    """AdaBin's quantizer: the mean, plus and minus the standard deviation."""

    METHOD = "adabin"
    GRADIENTS: ClassVar = {"annealed": soft_sign, "ste": _clipped}

    def compose(self, w: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return m + s sign(u)."""
        u, centre, distance = _standardize(w, correction=0)
        stand_in: Any = self.GRADIENTS[self.gradient]
        signs = with_gradient_of(_signs(u), stand_in(u, self.progress))
        return centre + distance * signs, u >= 0, centre + distance, centre - distance
