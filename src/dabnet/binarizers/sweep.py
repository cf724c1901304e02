"""The optimal split in plain torch: one sort and one sweep, for any device and any floating type.

Both of Algorithm 1's sweeps visit the same partitions (the `i` smallest against the `n - i` largest), so one is enough.
The native search is far faster on the CPU; this one keeps weights on the device they are on.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dabnet.binarizers.split import TIE, Split, nonfinite, optimal_split


def split_weights(
    w: Tensor, low_counts: tuple[Tensor, Tensor] | None = None, layer: str = "", binary: Tensor | None = None
) -> Split[Tensor]:
    """Return the best split whose low count is between two limits, (filters,) each; fill `binary` if it is given."""
    if w.dtype == torch.float64:
        return sweep_split(w, low_counts=low_counts, layer=layer)
    return optimal_split(w.float(), torch.get_num_threads(), low_counts=low_counts, layer=layer, binary=binary)


def sweep_split(w: Tensor, *, low_counts: tuple[Tensor, Tensor] | None = None, layer: str = "") -> Split[Tensor]:
    """Split each row of `w`, (filters, n), as `optimal_split` does."""
    finite = w.isfinite().all(dim=1)
    if not finite.all():
        raise nonfinite(int(finite.logical_not().int().argmax()), layer)
    w = w.detach()
    n = w.shape[1]
    mean = w.double().mean(dim=1, keepdim=True)
    ranked = w.sort(dim=1).values  # (filters, n), ascending
    low_sum = (ranked.double() - mean).cumsum(dim=1)
    total = low_sum[:, -1:]
    low_sum = low_sum[:, :-1]  # of the i smallest, i = 1 .. n-1
    i = torch.arange(1, n, device=w.device)
    gain = low_sum.square() / i + (total - low_sum).square() / (n - i)
    # Equal weights share a group.
    gain = gain.masked_fill(ranked[:, :-1] == ranked[:, 1:], -torch.inf)
    if low_counts is not None:
        least, most = (limit[:, None].to(w.device) for limit in low_counts)
        limited = gain.masked_fill((i < least) | (i > most), -torch.inf)
        gain = torch.where(limited.isfinite().any(dim=1, keepdim=True), limited, gain)

    # A constant filter has no gain at all: its low group is empty.
    padded = torch.cat([gain, torch.full_like(mean, -torch.inf)], dim=1)
    best = padded.amax(dim=1, keepdim=True)
    low_count = (padded >= best * (1 - TIE)).int().argmax(dim=1, keepdim=True) + 1
    low_count = low_count.masked_fill(best == -torch.inf, 0)

    threshold = ranked.gather(1, low_count)  # the smallest weight of the high group
    high = w >= threshold
    low_total = torch.where(high, 0.0, w.double() - mean).sum(dim=1, keepdim=True)
    low_mean = mean + low_total / low_count.clamp(min=1)
    high_mean = mean + (total - low_total) / (n - low_count)
    low_mean = torch.where(low_count == 0, high_mean, low_mean)

    alpha_is_high = high_mean.abs() >= low_mean.abs()
    mask = high == alpha_is_high
    return Split(
        alpha=torch.where(alpha_is_high, high_mean, low_mean).squeeze(1),
        beta=torch.where(alpha_is_high, low_mean, high_mean).squeeze(1),
        mask=mask,
        k=torch.where(alpha_is_high, n - low_count, low_count).squeeze(1),
    )
