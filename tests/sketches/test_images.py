from __future__ import annotations

import contextlib
import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from dabnet.errors import InputError
from dabnet.sketches.images import sketch_from_array, sketch_from_bytes, sketch_from_picture
from dabnet.sketches.raster import Raster, rasterize
from dabnet.sketches.sketch import Sketch
from tests.sketches.drawings import HOUSE, agreement, encode, paint

RASTER = Raster(size=128)
PLAIN = rasterize(Sketch.from_strokes(HOUSE), RASTER)


def looks_like_the_house(sketch: Sketch) -> bool:
    return agreement(rasterize(sketch, RASTER), PLAIN) > 0.98


def with_alpha(picture: Image.Image, ink: int) -> Image.Image:
    """Make all but the ink transparent, and the ink of one shade."""
    layer = Image.new("LA", picture.size, (ink, 0))
    layer.putalpha(ImageOps.invert(picture))
    return layer


def palette_with_transparency(picture: Image.Image) -> bytes:
    """Make an image of two colours, one of them transparent."""
    image = picture.point(lambda value: value < 128).convert("P")
    image.putpalette([10, 200, 30, 0, 0, 0])
    return encode(image, transparency=0)


def wide_grey(picture: Image.Image) -> Image.Image:
    return Image.fromarray(np.asarray(picture).astype(np.uint16) * 257)


HOUSE_PICTURE = paint(HOUSE)
FILES = {
    "grey png": encode(HOUSE_PICTURE),
    "rgb png": encode(HOUSE_PICTURE.convert("RGB")),
    "one bit png": encode(HOUSE_PICTURE.convert("1")),
    "palette png": encode(HOUSE_PICTURE.convert("P")),
    "palette png with a transparent colour": palette_with_transparency(HOUSE_PICTURE),
    "16 bit png": encode(wide_grey(HOUSE_PICTURE)),
    "grey png with alpha": encode(with_alpha(HOUSE_PICTURE, 0)),
    "rgba png": encode(with_alpha(HOUSE_PICTURE, 0).convert("RGBA")),
    "white lines on nothing": encode(with_alpha(HOUSE_PICTURE, 255).convert("RGBA")),
    "jpeg": encode(HOUSE_PICTURE, "JPEG", quality=80),
    "cmyk jpeg": encode(HOUSE_PICTURE.convert("CMYK"), "JPEG"),
    "webp": encode(HOUSE_PICTURE.convert("RGB"), "WEBP"),
    "webp with alpha": encode(with_alpha(HOUSE_PICTURE, 0).convert("RGBA"), "WEBP"),
    "gif": encode(HOUSE_PICTURE, "GIF"),
    "bmp": encode(HOUSE_PICTURE.convert("RGB"), "BMP"),
    "tiff": encode(HOUSE_PICTURE, "TIFF"),
    "16 bit tiff": encode(wide_grey(HOUSE_PICTURE), "TIFF"),
    "light on dark": encode(ImageOps.invert(HOUSE_PICTURE)),
    "chalk on a green board": encode(ImageOps.colorize(HOUSE_PICTURE, "#e8e8d8", "#1f4a33")),
    "pencil on grey paper": encode(HOUSE_PICTURE.point(lambda value: 120 + value // 4)),
    "large": encode(paint(HOUSE, size=2000, width=12, scale=18)),
    "a small drawing on a large sheet": encode(paint(HOUSE, size=1500, width=3, scale=3, at=900)),
    "small": encode(paint(HOUSE, size=100, width=2, scale=0.8, at=8)),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_drawing_is_the_same_in_every_kind_of_file(kind: str) -> None:
    assert looks_like_the_house(sketch_from_bytes(FILES[kind]))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_followed(orientation: int) -> None:
    turned = {
        1: HOUSE_PICTURE,
        2: ImageOps.mirror(HOUSE_PICTURE),
        3: HOUSE_PICTURE.rotate(180),
        4: ImageOps.flip(HOUSE_PICTURE),
        5: HOUSE_PICTURE.transpose(Image.Transpose.TRANSPOSE),
        6: HOUSE_PICTURE.rotate(90),
        7: HOUSE_PICTURE.transpose(Image.Transpose.TRANSVERSE),
        8: HOUSE_PICTURE.rotate(270),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    assert looks_like_the_house(sketch_from_bytes(encode(turned, "JPEG", exif=exif)))


def test_arrays_of_every_kind_are_taken() -> None:
    grey = np.asarray(HOUSE_PICTURE)
    arrays: list[np.ndarray[Any, Any]] = [
        grey,
        grey[..., None],
        255 - grey,
        grey < 128,
        grey / 255,
        (grey / 255).astype(np.float32),
        grey.astype(np.uint16) * 257,
        np.stack(3 * [grey], axis=-1),
        np.stack([*3 * [np.zeros_like(grey)], 255 - grey], axis=-1),
        np.asfortranarray(grey),
        np.repeat(grey, 2, axis=1)[:, ::2],
    ]
    for array in arrays:
        assert looks_like_the_house(sketch_from_array(array))


def test_a_callers_picture_is_not_changed() -> None:
    picture = HOUSE_PICTURE.copy()
    exif = Image.Exif()
    exif[0x0112] = 6
    picture = Image.open(io.BytesIO(encode(picture, "JPEG", exif=exif)))
    before = (picture.size, picture.getexif()[0x0112])
    sketch_from_picture(picture)
    assert (picture.size, picture.getexif()[0x0112]) == before


def png_that_claims(width: int, height: int) -> bytes:
    """Make a PNG of a few hundred bytes whose header claims any size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = zlib.compress(bytes(1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not a picture that can be read: give a PNG, JPEG, WebP, GIF, BMP or TIFF file"),
        (b"hello", "not a picture that can be read"),
        (FILES["grey png"][:-400], "the picture is damaged"),
        (FILES["jpeg"][:900], "the picture is damaged"),
        (FILES["webp"][:900], "the picture is damaged|not a picture"),
        (FILES["grey png"][:30], "not a picture that can be read|damaged"),
        (png_that_claims(60_000, 60_000), "more than 50,000,000 pixels"),
        (png_that_claims(12_000, 9_000), "more than 50,000,000 pixels"),
        (png_that_claims(8_000, 6_000), "the picture is damaged"),
        (encode(Image.new("L", (50, 50), 255)), "the image has no ink"),
        (encode(Image.new("RGBA", (50, 50), (0, 0, 0, 0))), "the image has no ink"),
        (encode(Image.effect_noise((60, 60), 4)), "the image has no ink"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_bad_files_are_refused_in_a_sentence(data: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words):
        sketch_from_bytes(data)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((4, 4, 2), np.uint8), "an image must be"),
        (np.zeros((0, 4), np.uint8), "an image must be"),
        (np.zeros((4, 4), np.int64), "an image must be bool, uint8, uint16 or floats, not int64"),
        (np.full((4, 4), np.nan), "numbers from 0 to 1"),
        (np.full((4, 4), 200.0), "numbers from 0 to 1"),
        (np.broadcast_to(np.uint8(0), (10**5, 10**4)), "more than 50,000,000 pixels"),
    ],
)
def test_bad_arrays_are_refused_in_a_sentence(array: np.ndarray[Any, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        sketch_from_array(array)


@given(st.sampled_from(["grey png", "jpeg", "webp", "palette png"]), st.data())
def test_a_damaged_file_gives_a_sketch_or_a_sentence(kind: str, data: st.DataObject) -> None:
    damaged = bytearray(FILES[kind])
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(InputError):
        assert sketch_from_bytes(bytes(damaged)).bitmap is not None


def test_a_palette_that_is_missing_is_one_sentence() -> None:
    data = FILES["palette png"]
    at = data.index(b"PLTE")
    length = int.from_bytes(data[at - 4 : at])
    with pytest.raises(InputError, match=r"the picture is damaged \(its palette is missing\): save it again\."):
        sketch_from_bytes(data[: at - 4] + data[at + 8 + length :])


def test_eight_bits_written_into_sixteen_are_seen() -> None:
    picture = paint(HOUSE)
    deep = Image.fromarray(np.asarray(picture).astype(np.uint16))
    plain = rasterize(sketch_from_picture(picture), RASTER)
    assert agreement(rasterize(sketch_from_picture(deep), RASTER), plain) > 0.999
