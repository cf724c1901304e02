"""Smooth local deformation: a cubic B-spline of 3x3 cells over a drawing's square.

At the shares (u, v) of the square's sides a point moves by

    d(u, v) = sum_kl B(3v - k) B(3u - l) d_kl,    k, l = -1..4,    B(x) = (max(0, 2 - |x|)^3 - 4 max(0, 1 - |x|)^3) / 6,

where d_kl are random. The weights B are not negative and sum to 1, so no point moves further than some d_kl; and they
keep straight lines, so a rotated and bent crop is one such spline too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Generator, Tensor

CELLS = 3
NODES = CELLS + 3
"""Control points per side."""
STRENGTHS = (0.0, 0.15)
"""What a strength may be; more could move all points of a drawing to one point."""

# The integral of B^2 is 151/315. If d_kl is uniform in a square of half side a, then the root mean square of |d(u, v)|
# is a 151/315 sqrt(2/3), and this is a for a root mean square of 1.
_REACH = 315 / 151 * math.sqrt(3 / 2)


def spline_weights(shares: Tensor) -> Tensor:
    """Return the weights of the 6 control points, (..., 6), at shares of a side from 0 to 1."""
    nodes = torch.arange(NODES, dtype=shares.dtype, device=shares.device) - 1
    distance = (CELLS * shares.unsqueeze(-1) - nodes).abs_()
    return ((2 - distance).clamp_(min=0).pow_(3) - 4 * (1 - distance).clamp_(min=0).pow_(3)).div_(6)


def draw_bends(strength: float, count: int, generator: Generator) -> Tensor:
    """Draw control points (count, 6, 6, 2) that move ink by `strength`, a root mean square."""
    shares = torch.rand((count, NODES, NODES, 2), generator=generator, device=generator.device)
    return (2 * shares - 1) * (_REACH * strength)
