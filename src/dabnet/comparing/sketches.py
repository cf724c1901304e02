"""What the engines are given: sketches, which are mostly blank paper, and networks that never saw one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dabnet.sketches.raster import Raster, show_batch
from dabnet.sketches.synthetic import synthetic_strokes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def draw_sketches(
    count: int, input_size: Sequence[int], raster: dict[str, float] | None = None, *, seed: int = 0
) -> NDArray[np.float32]:
    """Draw everyday things as a network sees them, ink 1 on 0: float32 (count, channels, height, width).

    `raster` is the model's own way to draw, if it has one.

    >>> x = draw_sketches(3, (1, 64, 64))
    >>> x.shape, bool(0.02 < (x > 0).mean() < 0.2)
    ((3, 1, 64, 64), True)
    """
    channels, height, width = input_size
    side = min(height, width)
    x = np.zeros((count, channels, height, width), dtype=np.float32)
    settings = replace(Raster.from_dict(raster) if raster else Raster(), size=side)
    x[:, :, :side, :side] = show_batch(synthetic_strokes(count, seed)[0], settings)
    return x
