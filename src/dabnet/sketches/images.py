"""From any picture of a drawing to ink on blank paper.

The paper's shade is the median of the picture's border; ink is what differs from it, on the side (darker or lighter)
that differs most. So dark lines on light paper and chalk on a blackboard both come out as ink 255 on 0.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageOps

from dabnet.errors import InputError
from dabnet.sketches.containers import check_pixels
from dabnet.sketches.decode import MAX_PIXELS, decode_picture, load_picture
from dabnet.sketches.sketch import GRID, Sketch

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST_CONTRAST = 24
"""Differences from the paper's shade, of 255, that are taken for stains and noise if nothing is darker."""
NOISE = 0.12
"""Ink fainter than this share of the darkest is taken for the paper's texture."""


def sketch_from_bytes(data: bytes, max_pixels: int = MAX_PIXELS) -> Sketch:
    """Read a PNG, JPEG or WebP file's bytes, unless it has more pixels than that."""
    return _sketch_from_pixels(decode_picture(data, max_pixels))


def sketch_from_picture(picture: Image.Image, max_pixels: int = MAX_PIXELS) -> Sketch:
    """Take a Pillow image of any mode; transparent parts are white paper, EXIF's orientation is followed."""
    return _sketch_from_pixels(load_picture(picture, max_pixels))


def _sketch_from_pixels(picture: Image.Image) -> Sketch:
    ink = _find_ink(_to_grey(picture, paper=255))
    if ink is None and picture.has_transparency_data:
        ink = _find_ink(_to_grey(picture, paper=0))  # white lines on nothing
    if ink is None:
        raise InputError("the image has no ink: there is nothing on the paper.")
    return Sketch.from_ink(np.asarray(ink))


def sketch_from_array(array: NDArray[Any]) -> Sketch:
    """Take an array (height, width), or with 1, 3 or 4 channels last: bool, integers, or floats from 0 to 1."""
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    if 0 in array.shape or not (array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (3, 4))):
        raise InputError(f"an image must be (height, width) or (height, width, 3 or 4), not {array.shape}.")
    check_pixels(array.shape[1], array.shape[0], MAX_PIXELS)
    if array.dtype == np.bool_:
        array = array * np.uint8(255)
    elif np.issubdtype(array.dtype, np.floating):
        if not ((array >= 0) & (array <= 1)).all():  # false for NaN too
            raise InputError("an image of floats must hold numbers from 0 to 1.")
        array = np.rint(array * 255).astype(np.uint8)
    elif array.dtype == np.uint16:
        array = (array >> 8).astype(np.uint8)
    elif array.dtype != np.uint8:
        raise InputError(f"an image must be bool, uint8, uint16 or floats, not {array.dtype}.")
    return sketch_from_picture(Image.fromarray(np.ascontiguousarray(array)))


def _to_grey(picture: Image.Image, paper: int) -> Image.Image:
    """Make it 8-bit grey, laid over paper of that shade where it is transparent."""
    if picture.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(picture) >> 8).astype(np.uint8))
    if picture.mode in ("I", "F"):  # of no fixed range: take what is there
        values = np.asarray(picture, dtype=np.float64)
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        spread = np.nan_to_num((values - low) / max(high - low, 1e-9) * 255)
        return Image.fromarray(spread.astype(np.uint8))
    if picture.has_transparency_data:
        layer = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", layer.size, (paper, paper, paper, 255)), layer)
    return picture.convert("L")


def _find_ink(grey: Image.Image) -> Image.Image | None:
    """Give the ink, 255 on 0, at most 256 pixels a side; None if there is none."""
    shades = np.flatnonzero(grey.histogram())
    paper = _paper_shade(grey)
    darkest, lightest = int(shades[0]), int(shades[-1])
    dark_ink = paper - darkest >= lightest - paper
    contrast = paper - darkest if dark_ink else lightest - paper
    if contrast < LEAST_CONTRAST:
        return None
    ink = _stretch(grey, paper, darkest if dark_ink else lightest)
    if max(ink.size) > GRID:
        # A small drawing on a large sheet keeps its detail: only the inked part is shrunk.
        ink = ink.crop(ink.point(lambda value: value >= 64 and 255).getbbox())
        if max(ink.size) > GRID:
            ink = ImageOps.contain(ink, (GRID, GRID), Image.Resampling.BOX)
            ink = _stretch(ink, 0, int(np.asarray(ink).max()))  # fine lines went grey
    return ink


def _paper_shade(grey: Image.Image) -> int:
    """Give the median shade of a border of a fiftieth of the picture."""
    pixels = np.asarray(grey)
    thick = max(1, min(pixels.shape) // 50)
    border = (pixels[:thick], pixels[-thick:], pixels[:, :thick], pixels[:, -thick:])
    return int(np.median(np.concatenate([side.ravel() for side in border])))


def _stretch(grey: Image.Image, paper: int, ink: int) -> Image.Image:
    """Map the paper's shade to 0 and the ink's to 255, and what is almost paper to 0."""
    return grey.point(_shares(paper, ink))


@cache
def _shares(paper: int, ink: int) -> list[int]:
    shares = ((value - paper) / (ink - paper) for value in range(256))
    return [0 if share < NOISE else min(255, round(share * 255)) for share in shares]
