"""Clean pictures come out as they always did, bit for bit: the training sets were read so."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageOps

from dabnet import _native
from dabnet.sketches.images import sketch_from_bytes, sketch_from_picture
from dabnet.sketches.raster import Raster, rasterize
from dabnet.sketches.read import read_sketch
from dabnet.sketches.sketch import Sketch
from dabnet.sketches.synthetic import synthetic_strokes
from tests.sketches.clean_reference import reference_sketch
from tests.sketches.drawings import HOUSE, encode, paint

RECORD = Path(__file__).parent / "clean_pictures.json"
EXAMPLES = Path(__file__).parents[2] / "examples"


def with_alpha(picture: Image.Image, ink: int) -> Image.Image:
    layer = Image.new("LA", picture.size, (ink, 0))
    layer.putalpha(ImageOps.invert(picture))
    return layer.convert("RGBA")


KINDS: dict[str, Callable[[Image.Image], Image.Image]] = {
    "L": lambda grey: grey,
    "RGB": lambda grey: ImageOps.colorize(grey, "#203a80", "#fffdf5"),
    "inv": ImageOps.invert,
    "grey": lambda grey: grey.point(lambda value: 120 + value // 4),
    "RGBA": lambda grey: with_alpha(grey, 0),
    "white": lambda grey: with_alpha(grey, 255),
    "1": lambda grey: grey.convert("1"),
    "I16": lambda grey: Image.fromarray(np.asarray(grey).astype(np.uint16) * 257),
    "wide": lambda grey: ImageOps.expand(grey, (grey.width // 2, 10, grey.width // 3, 0), 255),
}


def fingerprint(sketch: Sketch) -> str:
    assert sketch.bitmap is not None
    return hashlib.sha256(sketch.bitmap.tobytes() + np.float64(sketch.line_width).tobytes()).hexdigest()[:16]


@pytest.mark.parametrize("size", [28, 64, 256, 500, 1111])
def test_clean_pictures_come_out_as_recorded(size: int) -> None:
    """The record was made before photographs were read; `synthetic number-size-margin-kind` names a picture."""
    record = json.loads(RECORD.read_text())
    names = [name for name in record if f"-{size}-" in name]
    sketches = synthetic_strokes(100, seed=3)[0]
    pens = {28: 0.06, 64: 0.03, 256: 0.01, 500: 0.006, 1111: 0.005}
    assert names
    for name in names:
        number, _, margin, kind = name.removeprefix("syn").split("-")
        drawn = Image.fromarray(255 - rasterize(sketches[int(number)], Raster(size, float(margin), pens[size])))
        assert fingerprint(sketch_from_bytes(encode(KINDS[kind](drawn)))) == record[name], name


@pytest.mark.parametrize("name", ["mug.png", "snowman.png", "t-shirt.png", "tree.png"])
def test_the_examples_come_out_as_recorded(name: str) -> None:
    assert fingerprint(read_sketch(EXAMPLES / name)) == json.loads(RECORD.read_text())[f"examples/{name}"]


@st.composite
def pictures(draw: st.DrawFn) -> Image.Image:
    """Make pictures of any mode, with a few rectangles of ink."""
    mode = draw(st.sampled_from(["L", "RGB", "RGBA"]))
    size = draw(st.integers(1, 700)), draw(st.integers(1, 700))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    channels = len(mode)
    pixels = np.empty((size[1], size[0], channels), dtype=np.uint8)
    pixels[:] = rng.integers(0, 256, channels)
    for _ in range(draw(st.integers(1, 5))):
        x, y = sorted(rng.integers(0, size[0] + 1, 2)), sorted(rng.integers(0, size[1] + 1, 2))
        part = pixels[y[0] : y[1], x[0] : x[1]]
        part[:] = rng.integers(0, 256, part.shape if draw(st.booleans()) else channels)
    return Image.fromarray(pixels.squeeze(2) if mode == "L" else pixels)


@given(pictures())
def test_native_code_reads_clean_pictures_as_pillow_does(picture: Image.Image) -> None:
    assume(max(picture.size) < 250 * min(picture.size))  # there the specification leaves nothing
    bitmap = np.zeros((256, 128), dtype=np.uint8)
    pixels = np.asarray(picture).reshape(picture.height, picture.width, -1)
    _native.find_ink(pixels, bitmap, False)  # whatever it is taken for
    bitmap[:] = 0
    kind = _native.find_ink(pixels, bitmap, True)
    expected = reference_sketch(picture)
    assert (kind is None) == (expected is None)
    if expected is not None:
        assert expected.bitmap is not None
        np.testing.assert_array_equal(bitmap, expected.bitmap)


@pytest.mark.parametrize("inset", [0, 7, 20])
@pytest.mark.parametrize("thick", [1, 4])
def test_a_frame_around_a_clean_picture_changes_nothing(inset: int, thick: int) -> None:
    plain = paint(HOUSE, size=500, scale=3.2, at=70).convert("RGB")
    framed = plain.copy()
    ImageDraw.Draw(framed).rectangle((inset, inset, 499 - inset, 499 - inset), outline="#333", width=thick)
    assert fingerprint(sketch_from_picture(framed)) == fingerprint(sketch_from_picture(plain))


@pytest.mark.parametrize("side", ["top", "bottom", "left"])
def test_the_bars_of_a_program_around_a_clean_picture_change_nothing(side: str) -> None:
    plain = paint(HOUSE, size=500, scale=3.2, at=70).convert("RGB")
    borders = {"top": (0, 40, 0, 0), "bottom": (0, 0, 0, 40), "left": (40, 0, 0, 0)}[side]
    shot = ImageOps.expand(plain, borders, "#dddddd")
    at = {"top": (60, 10), "bottom": (60, 510), "left": (10, 60)}[side]
    ImageDraw.Draw(shot).rectangle((*at, at[0] + 20, at[1] + 20), fill="#2050c0")
    assert fingerprint(sketch_from_picture(shot)) == fingerprint(sketch_from_picture(plain))


def test_a_drawn_box_near_the_border_is_no_frame() -> None:
    """An unsteady hand's rectangle is a drawing, even all around the sheet."""
    box = [[(2, 3), (50, 1), (98, 2), (99, 50), (97, 98), (50, 99), (1, 97), (3, 50), (2, 3)], [(40, 50), (60, 52)]]
    picture = paint(box, size=400, scale=4, at=0)
    expected = reference_sketch(picture)
    assert expected is not None
    assert fingerprint(sketch_from_picture(picture)) == fingerprint(expected)
