"""From any picture of a drawing to ink on blank paper: Pillow decodes it, and native code finds the ink.

A clean picture's paper has the shade of its border; ink is what differs from it, on the side (darker or lighter) that
differs most. So dark lines on light paper and chalk on a blackboard both come out as ink 255 on 0. In a photograph the
sheet is found and straightened first, and uneven light, frames and ruled lines are removed (native/picture/).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from dabnet import _native
from dabnet.errors import InputError
from dabnet.sketches.containers import check_pixels
from dabnet.sketches.decode import MAX_PIXELS, decode_picture, load_picture
from dabnet.sketches.sketch import GRID, Sketch

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray

STRIP = 1 << 20
"""Bytes of a picture that are taken over at a time: few enough to stay in the processor's cache."""


def sketch_from_bytes(data: bytes, max_pixels: int = MAX_PIXELS) -> Sketch:
    """Read a picture's bytes, unless it has more pixels than that; but a larger JPEG is read at reduced scale."""
    return _sketch_from_pixels(decode_picture(data, max_pixels))


def sketch_from_picture(picture: Image.Image, max_pixels: int = MAX_PIXELS, is_clean: bool = False) -> Sketch:
    """Take a Pillow image of any mode; transparent parts are white paper, EXIF's orientation is followed.

    Where `is_clean`, nothing is taken for a photograph.
    """
    return _sketch_from_pixels(load_picture(picture, max_pixels), is_clean)


def _sketch_from_pixels(picture: Image.Image, is_clean: bool = False) -> Sketch:
    bitmap = np.empty((GRID, GRID // 2), dtype=np.uint8)
    if _native.find_ink(_to_pixels(picture), bitmap, is_clean) is None:
        raise InputError("the image has no ink: there is nothing on the paper.")
    return Sketch.from_bitmap(bitmap)


def sketch_from_array(array: NDArray[Any], is_clean: bool = False) -> Sketch:
    """Take an array (height, width), or with 1, 3 or 4 channels last: bool, integers, or floats from 0 to 1.

    Where `is_clean`, as the images of a data set are, nothing is taken for a photograph.
    """
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    if 0 in array.shape or not (array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (3, 4))):
        raise InputError(f"an image must be (height, width) or (height, width, 3 or 4), not {array.shape}.")
    check_pixels(array.shape[1], array.shape[0], MAX_PIXELS)
    if array.dtype == np.bool_:
        array = array * np.uint8(255)
    elif np.issubdtype(array.dtype, np.floating):
        if not ((array >= 0) & (array <= 1)).all():  # false for NaN too
            raise InputError("an image of floats must hold numbers from 0 to 1: divide those from 0 to 255 by 255.")
        array = np.rint(array * 255).astype(np.uint8)
    elif array.dtype == np.uint16:
        array = (array >> 8).astype(np.uint8)
    elif array.dtype != np.uint8:
        hint = "convert it with .astype(np.uint8)"
        raise InputError(f"an image must be bool, uint8, uint16 or floats, not {array.dtype}: {hint}.")
    return sketch_from_picture(Image.fromarray(np.ascontiguousarray(array)), is_clean=is_clean)


def read_thumbnail(path: str | PathLike[str], side: int) -> Image.Image | None:
    """Return a picture's file in colour within so many pixels per side; None if it is no picture."""
    try:
        picture = decode_picture(Path(path).read_bytes())
    except (InputError, OSError):
        return None
    picture.thumbnail((side, side), Image.Resampling.BOX)
    small = picture.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", small.size, "white"), small).convert("RGB")


def _to_pixels(picture: Image.Image) -> NDArray[np.uint8]:
    """Return (height, width, channels): grey, colour, or colour with alpha."""
    if picture.mode.startswith("I;16"):
        deep = np.asarray(picture)
        shift = 8 if int(deep.max()) > 255 else 0  # some programs write 8 bits into 16
        return np.ascontiguousarray((deep >> shift).astype(np.uint8)[..., None])
    if picture.mode in ("I", "F"):  # of no fixed range: take what is there
        values = np.asarray(picture, dtype=np.float64)
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        return np.nan_to_num((values - low) / max(high - low, 1e-9) * 255).astype(np.uint8)[..., None]
    if picture.has_transparency_data:
        return _copy_pixels(picture if picture.mode == "RGBA" else picture.convert("RGBA"))
    if picture.mode in ("L", "RGB"):
        return _copy_pixels(picture)
    return _copy_pixels(picture.convert("RGB" if picture.mode in ("RGBX", "CMYK") else "L"))


def _copy_pixels(picture: Image.Image) -> NDArray[np.uint8]:
    """Return the bytes of a picture in strips: `np.asarray` takes three times as long, most of it for fresh memory."""
    width, height = picture.size
    pixels = np.empty((height, width, len(picture.getbands())), dtype=np.uint8)
    rows = max(1, STRIP // (width * pixels.shape[2]))
    for top in range(0, height, rows):
        strip = pixels[top : top + rows]
        copied = picture.crop((0, top, width, top + len(strip))).tobytes()
        strip[:] = np.frombuffer(copied, dtype=np.uint8).reshape(strip.shape)
    return pixels
