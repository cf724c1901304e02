"""From the bytes of a picture's file to pixels that stand upright, or an `InputError`: nothing else comes out of it."""

from __future__ import annotations

import io
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

from PIL import ExifTags, Image

from dabnet.errors import InputError
from dabnet.sketches.containers import check_pixels, damaged, open_container

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dabnet.sketches.containers import Container

MAX_PIXELS = 50_000_000
"""Pixels a picture may have; a small file can claim to hold more than memory does."""

_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def decode_picture(data: bytes, max_pixels: int = MAX_PIXELS) -> Image.Image:
    """Decode a picture's file, unless it has more pixels than that; only its first frame is looked at.

    A JPEG that is too large is decoded at a half, a quarter or an eighth of its size.
    """
    found = open_container(data, max_pixels)
    with _blaming_the_picture():
        picture = _open(found)
        check_pixels(picture.width, picture.height, max_pixels)
        _load(picture)
        turn = _TURNS.get(found.orientation)
        return picture if turn is None else picture.transpose(turn)


def _open(found: Container) -> Image.Image:
    if found.scale == 1:
        return Image.open(io.BytesIO(found.data), formats=[found.format])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # it is not decoded whole
        picture = Image.open(io.BytesIO(found.data), formats=[found.format])
    picture.draft(None, (max(1, found.width // found.scale), max(1, found.height // found.scale)))
    return picture


def load_picture(picture: Image.Image, max_pixels: int = MAX_PIXELS) -> Image.Image:
    """Load a Pillow image of any kind, and follow EXIF's orientation."""
    check_pixels(picture.width, picture.height, max_pixels)
    with _blaming_the_picture():
        _load(picture)
        turn = _TURNS.get(picture.getexif().get(ExifTags.Base.Orientation, 1))
        return picture if turn is None else picture.transpose(turn)


def _load(picture: Image.Image) -> None:
    picture.load()
    if picture.mode in ("P", "PA") and picture.palette is None:  # which Pillow finds out only when it is asked for
        raise damaged("its palette is missing")


@contextmanager
def _blaming_the_picture() -> Iterator[None]:
    """Take whatever a decoder raises for the picture's fault: Pillow alone raises a dozen kinds of errors."""
    try:
        yield
    except InputError:
        raise
    except MemoryError:
        raise InputError("the picture needs more memory than there is: make it smaller first.") from None
    except Exception as problem:
        raise damaged(problem or type(problem).__name__) from None
