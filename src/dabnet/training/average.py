"""A moving average of a network's weights, which is often better than the last step's (Polyak and Juditsky, 1992).

    average <- decay average + (1 - decay) weights           after every optimizer step

The norms' statistics belong to the weights they were measured with. So they are measured anew for the averaged weights,
on training batches, whenever the averaged network is used.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class MovingAverage(nn.Module):
    """The averages of a network's parameters, as buffers, so that they are in every checkpoint."""

    steps: Tensor

    def __init__(self, net: nn.Module, decay: float) -> None:
        super().__init__()
        self._decay = decay
        for name, parameter in net.named_parameters():
            self.register_buffer(_key(name), parameter.detach().clone())
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def update(self, net: nn.Module) -> None:
        """Take a step: early on the average follows faster, so that the first weights are soon forgotten."""
        self.steps += 1
        decay = min(self._decay, (1 + int(self.steps)) / (10 + int(self.steps)))
        for name, parameter in net.named_parameters():
            average: Tensor = self.get_buffer(_key(name))
            average.lerp_(parameter.detach(), 1 - decay)

    @torch.no_grad()
    def network(self, net: nn.Module, batches: Iterable[Tensor]) -> nn.Module:
        """Return a copy of a network with the averaged weights, its norms measured on images (N, 1, H, W)."""
        averaged = self.copy_with_averages(net)
        measure_norms(averaged, batches)
        return averaged

    @torch.no_grad()
    def copy_with_averages(self, net: nn.Module) -> nn.Module:
        """Return a copy of a network with the averaged weights, and norms that do not belong to them."""
        averaged = copy.deepcopy(net)
        for name, parameter in averaged.named_parameters():
            parameter.copy_(self.get_buffer(_key(name)))
        return averaged


@torch.no_grad()
def measure_norms(net: nn.Module, batches: Iterable[Tensor]) -> None:
    """Measure the running statistics of all batch norms anew: the plain mean over the batches."""
    norms = list(_norms(net))
    momenta = [norm.momentum for norm in norms]
    was_training = net.training
    net.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # torch's word for a cumulative mean
    for images in batches:
        net(images)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    net.train(was_training)


def _norms(net: nn.Module) -> Iterator[nn.modules.batchnorm._BatchNorm]:
    return (module for module in net.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm))


def _key(name: str) -> str:
    return name.replace(".", "/")  # a buffer's name has no dots
