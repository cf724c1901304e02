"""Models of a few hundred bytes that take very long."""

from __future__ import annotations

import numpy as np

from dabnet.packed import Model
from dabnet.packed.nodes import AvgPool, Conv, Flatten, MaxPool, Node

SIDE = 1024
"""Pixels per side of what a heavy model sees."""


def heavy_model(pools: int = 8, labels: bool = True) -> Model:
    """Pools with windows of 512x512, one after another: some 70 billion steps each, and a few bytes."""
    padding = (SIDE // 4, SIDE // 4, SIDE // 4 - 1, SIDE // 4 - 1)
    window = {"kernel": (SIDE // 2, SIDE // 2), "padding": padding}
    nodes: list[Node] = [(MaxPool, AvgPool)[i % 2](inputs=(i,), **window) for i in range(pools)]  # type: ignore[arg-type]
    weight = np.ones((2, SIDE, SIDE, 1), dtype=np.float32)
    last = len(nodes)
    nodes += [
        MaxPool(inputs=(last,), kernel=(SIDE // 2, SIDE // 2), stride=(SIDE // 2, SIDE // 2)),
        Conv(inputs=(last + 1,), filters=2, kernel=(2, 2), weight=weight[:, :2, :2]),
        Flatten(inputs=(last + 2,)),
    ]
    raster = {"size": SIDE, "margin": 0.05, "pen": 0.025}
    return Model((1, SIDE, SIDE), tuple(nodes), ("left", "right") if labels else (), raster)
