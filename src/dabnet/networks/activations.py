"""RPReLU (Liu et al., ReActNet, 2020): a PReLU whose kink moves to where a channel's numbers are.

forward    y = PReLU(x + before) + after, slope, before and after per channel
backward   torch's own of these three steps
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class RPReLU(nn.Module):
    """`nn.PReLU` with a learned shift per channel before and after it; `weight` is its slope, as there.

    Both shifts start as 0: it starts as the PReLU, and can take over the slopes of one.

    >>> act = RPReLU(2); _ = act.shift_before.data.fill_(-1); _ = act.shift_after.data.fill_(10)
    >>> act(torch.tensor([[3.0, 0.0]]))
    tensor([[12.0000,  9.7500]], grad_fn=...)
    """

    def __init__(self, channels: int, slope: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        like = {"device": device, "dtype": dtype}
        self.weight = nn.Parameter(torch.full((channels,), slope, **like))
        self.shift_before = nn.Parameter(torch.zeros(channels, **like))
        self.shift_after = nn.Parameter(torch.zeros(channels, **like))

    def forward(self, x: Tensor) -> Tensor:
        """(N, channels, ...) -> the same shape."""
        return self.bend(self.shift(x)) + _column(self.shift_after, x)

    def shift(self, x: Tensor) -> Tensor:
        """Return x + before."""
        return x + _column(self.shift_before, x)

    def bend(self, x: Tensor) -> Tensor:
        """Return PReLU(x), without the shifts."""
        return F.prelu(x, self.weight)

    def extra_repr(self) -> str:
        """Tell the channels."""
        return f"{len(self.weight)}"


def _column(per_channel: Tensor, x: Tensor) -> Tensor:
    """Return numbers (channels,) in a shape that goes with x, (N, channels, ...)."""
    return per_channel.view(-1, *[1] * (x.ndim - 2))
