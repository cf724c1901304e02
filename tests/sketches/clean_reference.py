"""How a clean picture becomes ink, in Pillow: the specification that native code keeps to, bit for bit."""

from __future__ import annotations

from functools import cache

import numpy as np
from PIL import Image, ImageOps

from dabnet.sketches.sketch import GRID, Sketch

LEAST_CONTRAST = 24
NOISE = 0.12


def reference_sketch(picture: Image.Image) -> Sketch | None:
    """Read an 8-bit picture as if it were clean; None if it has no ink."""
    ink = _find_ink(_to_grey(picture, paper=255))
    if ink is None and picture.has_transparency_data:
        ink = _find_ink(_to_grey(picture, paper=0))
    return None if ink is None else Sketch.from_ink(np.asarray(ink))


def _to_grey(picture: Image.Image, paper: int) -> Image.Image:
    if picture.has_transparency_data:
        layer = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", layer.size, (paper, paper, paper, 255)), layer)
    return picture.convert("L")


def _find_ink(grey: Image.Image) -> Image.Image | None:
    shades = np.flatnonzero(grey.histogram())
    paper = _paper_shade(grey)
    darkest, lightest = int(shades[0]), int(shades[-1])
    dark_ink = paper - darkest >= lightest - paper
    contrast = paper - darkest if dark_ink else lightest - paper
    if contrast < LEAST_CONTRAST:
        return None
    ink = _stretch(grey, paper, darkest if dark_ink else lightest)
    if max(ink.size) > GRID:
        ink = ink.crop(ink.point(lambda value: value >= 64 and 255).getbbox())
        if max(ink.size) > GRID:
            ink = ImageOps.contain(ink, (GRID, GRID), Image.Resampling.BOX)
            ink = _stretch(ink, 0, int(np.asarray(ink).max()))
    return ink


def _paper_shade(grey: Image.Image) -> int:
    pixels = np.asarray(grey)
    thick = max(1, min(pixels.shape) // 50)
    border = (pixels[:thick], pixels[-thick:], pixels[:, :thick], pixels[:, -thick:])
    return int(np.median(np.concatenate([side.ravel() for side in border])))


def _stretch(grey: Image.Image, paper: int, ink: int) -> Image.Image:
    return grey.point(_shares(paper, ink))


@cache
def _shares(paper: int, ink: int) -> list[int]:
    shares = ((value - paper) / (ink - paper) for value in range(256))
    return [0 if share < NOISE else min(255, round(share * 255)) for share in shares]
