"""Opens any model: a packed file, one that ships by name, a run's folder, or a weights file.

A packed model needs no torch; it is imported only for a network that was trained and not packed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dabnet import _lazy
from dabnet.packed import Model, find_model, is_packed, read_model

if TYPE_CHECKING:
    from os import PathLike

    from torch import nn

    from dabnet.training.run import TrainedNetwork


def open_model(source: str | PathLike[str]) -> Model | TrainedNetwork:
    """Open the packed model, or the trained network, that a path or a name stands for.

    >>> len(open_model("tuberlin").labels)
    250
    """
    path = find_model(source)
    if is_packed(path):
        return read_model(path)
    trained: TrainedNetwork = _lazy.load("dabnet.training.run").load_trained(path)
    return trained


def load(source: str | PathLike[str]) -> nn.Module:
    """Load a trained network, in eval mode: of a run's folder, a weights file, a packed model, or `default`.

    `default` is the packed model that ships. A packed model answers as in `dabnet.runtime.Session`, and cannot be
    trained: its weights are bits.

    >>> import torch
    >>> net = load("default")
    >>> net(torch.zeros(2, *net.model.input_size)).shape == (2, len(net.model.labels))
    True
    """
    opened = open_model(source)
    if isinstance(opened, Model):
        net: nn.Module = _lazy.load("dabnet.networks.packed").PackedNetwork(opened)
        return net.eval()
    return opened.net.eval()
