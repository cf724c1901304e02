"""Two sketches in one: mixup (Zhang et al., 2018) and cutmix (Yun et al., 2019).

    mixup    image = s a + (1 - s) b                    s from Beta(alpha, alpha)
    cutmix   a box of b's pixels replaces a's           s = 1 - the box's share of the image

The loss is mixed as the images are: s loss(label of a) + (1 - s) loss(label of b). `a` has the larger share,
so that a batch's labels are still what its images mostly show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Generator, Tensor


class Batch(NamedTuple):
    """What a training step learns from."""

    images: Tensor
    """float32 (N, 1, size, size), ink 1 on 0."""
    labels: Tensor
    """(N,)"""
    second_labels: Tensor
    """(N,): of the sketch that is mixed in; the same as `labels` where there is none."""
    shares: Tensor
    """float32 (N,): how much of the image is of the first label, from 0.5 to 1."""


def mix(images: Tensor, labels: Tensor, known: Tensor, mixup: float, cutmix: float, generator: Generator) -> Batch:
    """Mix each sketch of a known class with another of the batch; with neither mixup nor cutmix, change nothing.

    Args:
        images: float32 (N, 1, size, size).
        labels: (N,).
        known: (N,) bool: which sketches have a class; the others stay as they are.
        mixup: alpha of mixup; 0 is off.
        cutmix: alpha of cutmix; 0 is off. With both on, each batch has one of them, by chance.
        generator: where all randomness comes from.
    """
    shares = torch.ones(len(images))
    rows = known.nonzero().flatten()
    if not (mixup or cutmix) or len(rows) < 2:
        return Batch(images, labels, labels, shares)
    rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
    boxes = bool(cutmix) and (not mixup or rng.random() < 0.5)
    alpha = cutmix if boxes else mixup
    drawn = rng.beta(alpha, alpha, len(rows))
    larger = np.maximum(drawn, 1 - drawn)
    partners = rows[torch.from_numpy(rng.permutation(len(rows)))]
    if boxes:
        mask = _boxes(larger, images.shape[-1], rng)  # (N, 1, size, size): where the partner shows
        mixed = torch.where(mask, images[partners], images[rows])
        larger = 1 - mask.float().mean(dim=(1, 2, 3)).numpy()
    else:
        weight = torch.from_numpy(larger).float()[:, None, None, None]
        mixed = weight * images[rows] + (1 - weight) * images[partners]
    images, second = images.clone(), labels.clone()
    images[rows], second[rows], shares[rows] = mixed, labels[partners], torch.from_numpy(larger).float()
    return Batch(images, labels, second, shares)


def _boxes(shares: NDArray[np.float64], size: int, rng: np.random.Generator) -> Tensor:
    """Return a mask (N, 1, size, size) with a square box in each image that leaves about `shares` of it."""
    sides = np.floor(np.sqrt(1 - shares) * size)
    corners = rng.random((2, len(shares))) * (size - sides)
    pixels, starts = np.arange(size), np.floor(corners)[..., None]  # (size,), (2, N, 1)
    rows, columns = (pixels >= starts) & (pixels < starts + sides[:, None])
    return torch.from_numpy(rows[:, None, :, None] & columns[:, None, None, :])
