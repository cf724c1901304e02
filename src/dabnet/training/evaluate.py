"""What a network of torch's gets right: see `dabnet.runtime.evaluation`, which does the counting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from dabnet.networks.mode import evaluating
from dabnet.runtime import evaluation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import nn

    from dabnet.runtime.evaluation import Ask, Evaluation
    from dabnet.sketches.raster import Raster
    from dabnet.sketches.store import SketchSet


def evaluate(
    net: nn.Module,
    sketches: SketchSet,
    rows: NDArray[np.integer[Any]],
    raster: Raster,
    *,
    device: str | torch.device = "cpu",
    **settings: Any,
) -> Evaluation:
    """Show some rows of a set to a network, and compare its answers with their classes.

    The network is moved to `device`; while it is asked it is in eval mode, and then in the mode that it was in. The
    other arguments are those of `dabnet.runtime.evaluation.evaluate`.
    """
    net.to(device)
    return evaluation.evaluate(ask_network(net, device), sketches, rows, raster, **settings)


def ask_network(net: nn.Module, device: str | torch.device = "cpu") -> Ask:
    """Ask a network of torch's with arrays: images (N, 1, H, W) in, logits (N, classes) out."""

    def ask(images: NDArray[np.float32]) -> NDArray[np.float32]:
        with evaluating(net):
            logits: NDArray[np.float32] = net(torch.from_numpy(images).to(device)).float().cpu().numpy()
        return logits

    return ask
