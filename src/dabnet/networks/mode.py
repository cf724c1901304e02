"""Asking a network without changing it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import nn


@contextmanager
def evaluating(net: nn.Module) -> Iterator[None]:
    """Put a network in eval mode, without gradients, and each of its modules back in its own mode after."""
    training = {module: module.training for module in net.modules()}
    net.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for module, mode in training.items():
            module.training = mode
