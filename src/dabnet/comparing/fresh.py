"""A packed network that was never trained, with norms as if it had been: speed does not need more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from dabnet.binarizers.activations import RSign
from dabnet.comparing.sketches import draw_sketches
from dabnet.exporting.lower import lower
from dabnet.networks.activations import RPReLU
from dabnet.networks.catalog import build

if TYPE_CHECKING:
    from dabnet.packed.model import Model

SKETCHES = 8


def fresh_model(name: str, classes: int, **settings: Any) -> Model:
    """Build a network (`dabnet.build`) and pack it.

    Its norms have seen sketches; these, thresholds and shifts differ from channel to channel: else every sign of a
    channel, or of two layers, might be the same, and a runtime could spare itself the work.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = build(name, classes, **settings)
        for module in net.modules():
            if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
                module.momentum = None  # so that the mean of what it sees counts
                nn.init.uniform_(module.weight, 0.5, 1.5)
                nn.init.normal_(module.bias, std=0.1)
            elif isinstance(module, RSign):
                nn.init.normal_(module.threshold, std=0.1)
            elif isinstance(module, RPReLU):
                nn.init.normal_(module.shift_before, std=0.1)
                nn.init.normal_(module.shift_after, std=0.1)
        size = (1, net.input_size, net.input_size)
        with torch.no_grad():
            net.train()(torch.from_numpy(draw_sketches(SKETCHES, size, seed=1)))
    return lower(net, size).model
