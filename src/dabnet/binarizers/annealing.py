"""Gradients that change over a training: from nearly straight, so that every weight can move, to nearly the sign's own.

IR-Net's (Qin et al., 2020) stand-in for sign(x), with p the share of the training that is done, 0 to 1:

    k tanh(t x),    t = 10^(2p - 1), from 0.1 to 10,    k = max(1/t, 1)

so that what reaches x is k t (1 - tanh²(t x)) of the gradient: 1 everywhere at first, a peak about 0 in the end.

Whatever has such a gradient keeps p as a buffer, `progress`, that belongs to its state: a training that goes on knows
how far it is. `set_progress_` sets it, and `dabnet.constrain_(net, progress=p)` calls that after each optimizer step. A
network that is never told stays at 0.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Annealed(nn.Module):
    """What has a gradient, or a formula, that changes over a training."""

    progress: Tensor
    """(): the share of the training that is done."""

    def keep_progress(self) -> None:
        """Start at the beginning of a training."""
        self.register_buffer("progress", torch.zeros(()))


def set_progress_(module: nn.Module, progress: float) -> None:
    """Tell everything in a network how much of its training is done, from 0 to 1."""
    for each in module.modules():
        if isinstance(each, Annealed) and "progress" in each._buffers:
            each.progress.fill_(progress)


def soft_sign(x: Tensor, progress: Tensor) -> Tensor:
    """Return k tanh(t x), whose gradient stands for the sign's."""
    t = 10 ** (2 * progress - 1)
    return torch.clamp(1 / t, min=1) * torch.tanh(t * x)


def with_gradient_of(value: Tensor, stand_in: Tensor) -> Tensor:
    """Return `value`, bit for bit, with the gradient of `stand_in` beside its own.

    >>> x = torch.tensor([-0.5, 2.0], requires_grad=True)
    >>> with_gradient_of(x.detach().sign(), x.clamp(-1, 1)).sum().backward(); x.grad
    tensor([1., 0.])
    """
    return value + (stand_in - stand_in.detach())
