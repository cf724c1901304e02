"""Sketches made to differ a little each time a network sees them: their images. For strokes see `augment_strokes`.

A rotated, mirrored and bent crop is one spline (see `bend`), so that an image is sampled, and blurred, once. All
randomness comes from the generator that the caller gives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from dabnet.errors import InputError, check_number, check_range
from dabnet.sketches.crops import crop_source_size
from dabnet.training.bend import CELLS, NODES, STRENGTHS, draw_bends, spline_weights

if TYPE_CHECKING:
    from torch import Generator, Tensor

SCALES = (0.05, 1.0)
RATIOS = (0.25, 4.0)
DEGREES = (0.0, 180.0)
SHEARS = (0.0, 45.0)
ERASED = (0.02, 0.2)
"""Least and greatest area of what `erase` blanks."""

MOST_SHRINK = 2.0
"""Pixels of an image for one that a network sees: bilinear sampling would skip some if there were more."""

_PART = 100_000  # pixels


@dataclass(frozen=True)
class ImageAugmentation:
    """What changes in a rasterized image: a part of it is stretched, rotated, bent, and perhaps mirrored.

    Images should be rasterized at about the size a network sees, or a little larger (`crop_source_size`): a crop shows
    a part of them, so a pixel of the result spans about one of theirs. Images of more than twice the result's size are
    refused, because sampling would skip some of their ink.

    >>> images = torch.zeros(2, 73, 73, dtype=torch.uint8)
    >>> ImageAugmentation().apply(images, 64, torch.Generator()).shape
    torch.Size([2, 1, 64, 64])
    """

    scale: tuple[float, float] = (0.7, 1.0)
    """Least and greatest area of the crop, as a share of the image's."""
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    """Least and greatest width of the crop over its height; nearer to the image's own where it would not fit."""
    degrees: float = 10.0
    """Greatest angle of a rotation, to either side."""
    flip: float = 0.5
    """Share of images that are mirrored, left to right."""
    deform: float = 0.0
    """How far the ink moves on average (root mean square), as a share of the result's side."""
    shear: float = 0.0
    """Greatest angle, in degrees, by which upright lines lean to either side."""
    erase: float = 0.0
    """Share of images in which a box is blanked, from a fiftieth to a fifth of the image."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", check_range("the augmentation's scale", self.scale, SCALES))
        object.__setattr__(self, "ratio", check_range("the augmentation's ratio", self.ratio, RATIOS))
        check_number("the augmentation's degrees", self.degrees, DEGREES)
        check_number("the augmentation's flip", self.flip, (0.0, 1.0))
        check_number("the augmentation's deform", self.deform, STRENGTHS)
        check_number("the augmentation's shear", self.shear, SHEARS)
        check_number("the augmentation's erase", self.erase, (0.0, 1.0))

    def apply(self, images: Tensor, size: int, generator: Generator) -> Tensor:
        """Make float images (N, 1, size, size), ink 1 on 0, of uint8 ones, (N, H, W) or (N, 1, H, W), ink 255 on 0."""
        images = _check_images(images)
        count, _, height, width = images.shape
        shares = torch.rand((6, count), generator=generator, device=generator.device).to(images.device)
        area = self.scale[0] + (self.scale[1] - self.scale[0]) * shares[0]
        # As shares of the image's sides, the crop's are sqrt(area * stretch) and sqrt(area / stretch): both are at most
        # 1 if log(stretch) is between log(area) and -log(area).
        limit = -area.log()
        low, high = (
            torch.full_like(area, math.log(ratio * height / width)).clamp(-limit, limit) for ratio in self.ratio
        )
        stretch = (low + (high - low) * shares[1]).exp()
        extents = torch.stack([(area * stretch).sqrt(), (area / stretch).sqrt()], dim=1).clamp(max=1)  # (N, 2)
        bends = draw_bends(self.deform, count, generator).to(images.device) if self.deform else None
        leans = None
        if self.shear:
            leans = 2 * torch.rand(count, generator=generator, device=generator.device).to(images.device) - 1
            leans = torch.tan(torch.deg2rad(leans * self.shear))
        views = sample_views(
            images,
            size,
            centres=extents / 2 + (1 - extents) * shares[2:4].T,
            extents=extents,
            degrees=(2 * shares[4] - 1) * self.degrees,
            mirrored=shares[5] < self.flip,
            bends=bends,
            leans=leans,
        )
        return erase_boxes(views, self.erase, generator) if self.erase else views


def sample_views(
    images: Tensor,
    size: int,
    *,
    centres: Tensor,
    extents: Tensor,
    degrees: Tensor,
    mirrored: Tensor,
    bends: Tensor | None = None,
    leans: Tensor | None = None,
) -> Tensor:
    """Look at a part of each image, and make it (N, 1, size, size), ink 1 on 0; beyond an image there is blank paper.

    Args:
        images: uint8, (N, H, W) or (N, 1, H, W), ink 255 on 0.
        size: pixels per side of the result.
        centres: (N, 2), x and y of each part's centre, as shares of the image's width and height.
        extents: (N, 2), each part's width and height, as shares of the image's.
        degrees: (N,), how far the ink turns, counterclockwise, about the part's centre.
        mirrored: (N,), bool, which results are mirrored in the end, left to right.
        bends: (N, 6, 6, 2), how far each control point k, l moves in x and y, as a share of the part's sides.
        leans: (N,), how far upright lines lean: x grows by so much of y.
    """
    images = _check_images(images)
    count, _, height, width = images.shape
    if max(height, width) > MOST_SHRINK * size:
        raise InputError(
            f"images of {width}x{height} are too large to be sampled at {size}x{size}: "
            f"rasterize them at {crop_source_size(size)}x{crop_source_size(size)}."
        )
    # The control points of the plain view: (k, l, x and y), from its centre, as shares of its sides.
    nodes = (torch.arange(NODES, device=images.device) - 1) / CELLS - 0.5
    controls = torch.stack(torch.meshgrid(nodes, nodes, indexing="xy"), dim=-1)  # (6, 6, 2)
    controls = controls.expand(count, -1, -1, -1) if bends is None else controls + bends  # (N, 6, 6, 2)
    if leans is not None:
        controls = torch.stack([controls[..., 0] + leans[:, None, None] * controls[..., 1], controls[..., 1]], dim=-1)
    # Rotate in pixels, then place in the image, whose sides grid_sample takes to reach from -1 to 1.
    sides = torch.tensor([width, height], device=images.device)
    cosines, sines = (f(torch.deg2rad(degrees)) for f in (torch.cos, torch.sin))
    turn = torch.stack([cosines, sines, -sines, cosines], dim=1).view(count, 1, 2, 2)  # row vectors times this
    controls = controls * (extents * sides)[:, None, None] @ turn / sides + centres[:, None, None]
    controls = 2 * controls - 1
    controls = torch.where(mirrored[:, None, None, None], controls.flip(2), controls)
    # Both sums of the spline as one product each; the second makes x and y at once, as grid_sample wants them.
    weights = spline_weights((torch.arange(size, device=images.device) + 0.5) / size)  # (size, 6)
    rows = weights @ controls.reshape(count, NODES, NODES * 2)  # (N, size, 12)
    both = torch.kron(weights.T.contiguous(), torch.eye(2, device=images.device))  # (12, size * 2)
    views = images.new_empty((count, 1, size, size), dtype=torch.float32)
    # A few images at a time: their grid stays in the cache, and in memory that need not be fetched anew.
    few = max(1, _PART // size**2)
    for some in (slice(start, start + few) for start in range(0, count, few)):
        grid = (rows[some] @ both).view(-1, size, size, 2)
        views[some] = F.grid_sample(to_network(images[some]), grid, padding_mode="zeros", align_corners=False)
    return views


def erase_boxes(images: Tensor, share: float, generator: Generator) -> Tensor:
    """Blank a box in a share of the images (N, 1, H, W): what is missing there must be told by the rest."""
    count, _, height, width = images.shape
    draws = torch.rand((5, count), generator=generator, device=generator.device).to(images.device)
    area = ERASED[0] + (ERASED[1] - ERASED[0]) * draws[1]
    stretch = (math.log(2) * (2 * draws[2] - 1)).exp()  # a box is at most twice as long as wide
    sides = torch.stack([(area * stretch).sqrt() * height, (area / stretch).sqrt() * width])  # (2, N)
    starts = draws[3:5] * (images.new_tensor([[height], [width]]) - sides)
    rows, columns = (
        (pixels >= start[:, None]) & (pixels < (start + side)[:, None])
        for pixels, start, side in zip(
            (torch.arange(height, device=images.device), torch.arange(width, device=images.device)),
            starts,
            sides,
            strict=True,
        )
    )
    blank = rows[:, None, :, None] & columns[:, None, None, :] & (draws[0] < share)[:, None, None, None]
    return images.masked_fill(blank, 0)


def to_network(images: Tensor) -> Tensor:
    """Make float images (N, 1, H, W), ink 1 on 0, of uint8 ones, (N, H, W) or (N, 1, H, W), ink 255 on 0.

    >>> to_network(torch.tensor([[[0, 51, 255]]], dtype=torch.uint8))
    tensor([[[[0.0000, 0.2000, 1.0000]]]])
    """
    return _check_images(images).float().div_(255)


def _check_images(images: Tensor) -> Tensor:
    """Return images as (N, 1, H, W)."""
    if images.dtype != torch.uint8 or not (images.ndim == 3 or (images.ndim == 4 and images.shape[1] == 1)):
        kind = str(images.dtype).removeprefix("torch.")
        raise InputError(f"images must be uint8 of (N, H, W) or (N, 1, H, W), not {kind} of {tuple(images.shape)}.")
    return images.unsqueeze(1) if images.ndim == 3 else images
