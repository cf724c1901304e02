"""DAB used differently: two values per filter that are kept from step to step instead of being found in each.

Each weight takes the nearer of its filter's two values, which for those of the optimal split is that split's own mask:

    forward     w~ = alpha where |w - alpha| < |w - beta|, beta elsewhere

    "dab-learned"            alpha and beta are parameters, which start as the optimal split's
    "dab", split_every=n     alpha and beta are those of the optimal split n steps ago or less

The gradient that reaches w is `dabnet.binarizers.weights`' "paper" or "ste"; learned values get the sum of their
group's. Both start, and are found again, where `dabnet.constrain_` is called: before the training, and after each step.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from dabnet.binarizers.annealing import with_gradient_of
from dabnet.binarizers.choices import WeightGradient
from dabnet.binarizers.quantizer import TwoValues, WeightQuantizer
from dabnet.binarizers.rows import to_rows
from dabnet.binarizers.sweep import split_weights


def _ste(w: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Return what has the gradient [|w| <= 1]."""
    return w.clamp(-1, 1)


def _paper(w: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Return what has the gradient 1/K + |alpha| [|w| <= 1] in alpha's group, and likewise in beta's."""
    count = mask.sum(dim=tuple(range(1, mask.ndim)), keepdim=True)
    group = torch.where(mask, count, mask[0].numel() - count)
    return w / group.to(w.dtype) + values.detach().abs() * w.clamp(-1, 1)


class KeptValues(WeightQuantizer):
    """Takes two values per filter from the split when `split` is called, and keeps them."""

    alpha: Tensor
    """(filters,)"""
    beta: Tensor
    """(filters,)"""

    def with_values(self, weight: Tensor, low_count: Tensor | None = None, layer: str = "") -> tuple[Tensor, TwoValues]:
        """Binarize weights of shape (filters, ...) by the values that are kept."""
        alpha, beta = (value.to(weight.dtype).view(-1, *[1] * (weight.ndim - 1)) for value in (self.alpha, self.beta))
        with torch.no_grad():
            mask = (weight - alpha).abs() < (weight - beta).abs()
        values = torch.where(mask, alpha, beta)
        binary = with_gradient_of(values, self.GRADIENTS[self.gradient](weight, values, mask))
        return binary, TwoValues(mask.flatten(1), alpha.detach().flatten(1), beta.detach().flatten(1))

    @torch.no_grad()
    def begin_(self, weight: Tensor, layer: str = "") -> None:
        """Take the values of the optimal split; a layer that only rehearses has none."""
        if not weight.is_meta:
            split = split_weights(to_rows(weight, weight).detach(), layer=layer)
            self.alpha.copy_(split.alpha)
            self.beta.copy_(split.beta)


class LearnedDab(KeptValues):
    """DAB whose two values are learned, starting from the optimum."""

    METHOD = "dab-learned"
    GRADIENTS: ClassVar = {"ste": _ste, "paper": _paper}
    started: Tensor

    def __init__(self, gradient: WeightGradient | None = None, filters: int = 0, **like: Any) -> None:
        super().__init__(gradient, filters)
        self.alpha = nn.Parameter(torch.ones(filters, **like))
        self.beta = nn.Parameter(-torch.ones(filters, **like))
        self.register_buffer("started", torch.zeros((), dtype=torch.bool, device=like.get("device")))

    def follow_(self, weight: Tensor, layer: str = "") -> None:
        """Start from the optimum, once: from weights that may have come from another network."""
        if not self.started:
            self.begin_(weight, layer)
            self.started.fill_(True)


class RareDab(KeptValues):
    """DAB whose split is computed every n steps only."""

    METHOD = "dab"
    GRADIENTS: ClassVar = {"paper": _paper, "ste": _ste}
    steps: Tensor
    """(): steps so far."""

    def __init__(self, gradient: WeightGradient | None, filters: int, every: int, **like: Any) -> None:
        super().__init__(gradient, filters)
        self.every = every
        self.register_buffer("alpha", torch.ones(filters, **like))
        self.register_buffer("beta", -torch.ones(filters, **like))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64, device=like.get("device")))

    def follow_(self, weight: Tensor, layer: str = "") -> None:
        """Compute the split if it is time to."""
        if int(self.steps) % self.every == 0:
            self.begin_(weight, layer)
        self.steps += 1

    def extra_repr(self) -> str:
        """Tell the gradient, and how often the split is computed."""
        return f"{super().extra_repr()}, every={self.every}"
