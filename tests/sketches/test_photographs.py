"""Photographs of drawings: a picture for each stage, a few drawings in all conditions, and strange pictures."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageOps

from benchmarks.photographs import CONDITIONS, PENS, Scene
from dabnet import _native
from dabnet.errors import InputError
from dabnet.runtime.recognizer import Recognizer
from dabnet.sketches.images import read_thumbnail, sketch_from_array, sketch_from_bytes, sketch_from_picture
from dabnet.sketches.raster import Raster, rasterize
from dabnet.sketches.read import read_sketch
from dabnet.sketches.sketch import Sketch
from tests.sketches.drawings import HOUSE, agreement, encode, paint

EXAMPLES = Path(__file__).parents[2] / "examples"
RASTER = Raster(size=128)
PLAIN = rasterize(Sketch.from_strokes(HOUSE), RASTER)
RNG = np.random.default_rng(0)
Pixels = np.ndarray[Any, Any]


def house(size: int = 600, width: int = 5) -> Pixels:
    """Draw the house as shares of light, (size, size)."""
    return np.asarray(paint(HOUSE, size=size, width=width, scale=4, at=100)) / 255 * 0.8 + 0.12


def shoot(light: Pixels, noise: float = 3) -> Pixels:
    """Turn shares of light into a camera's bytes."""
    return np.clip(light * 255 + RNG.normal(0, noise, light.shape), 0, 255).astype(np.uint8)


def seen(pixels: Pixels) -> float:
    return agreement(rasterize(sketch_from_array(pixels), RASTER), PLAIN)


def kind_of(pixels: Pixels) -> str | None:
    bitmap = np.empty((256, 128), dtype=np.uint8)
    return _native.find_ink(np.ascontiguousarray(pixels.reshape(*pixels.shape[:2], -1)), bitmap, False)


def test_light_that_falls_off_is_divided_out() -> None:
    picture = shoot(house() * np.linspace(0.3, 1, 600))
    assert kind_of(picture) == "photograph"
    assert seen(picture) > 0.95


def test_light_without_noise_is_no_clean_picture() -> None:
    assert seen(shoot(house() * np.linspace(0.4, 1, 600), noise=0)) > 0.95


@pytest.mark.parametrize("soft", [1, 60])
def test_the_edge_of_a_shadow_is_no_line(soft: int) -> None:
    lit = np.clip((np.arange(600) - 280) / soft + 0.5, 0, 1) * 0.45 + 0.55
    assert seen(shoot(house() * lit)) > 0.95


def test_a_tilted_sheet_is_found_and_straightened() -> None:
    sheet = Image.fromarray(np.rint(house() * 255).astype(np.uint8)).convert("RGBA")
    # From each of the picture's points to the sheet's: turned by about ten degrees, and seen at a slant.
    laid = sheet.transform((1000, 900), Image.Transform.PERSPECTIVE, (0.95, 0.17, -230, -0.17, 0.95, -30, 5e-5, 8e-5))
    there = np.asarray(laid)[..., 3:] / 255
    desk = np.array([0.3, 0.2, 0.12])
    picture = shoot(np.asarray(laid)[..., :3] / 255 * there + desk * (1 - there))
    assert seen(picture) > 0.9


def test_a_sheet_on_a_desk_without_noise_is_found() -> None:
    picture = np.full((900, 900, 3), 40, dtype=np.uint8)
    picture[150:750, 120:720] = np.rint(house() * 255)[..., None]
    assert seen(picture) > 0.95


@pytest.mark.parametrize("lines", ["ruled", "squared"])
def test_printed_lines_are_wiped(lines: str) -> None:
    light = house()
    light[9::24] *= 0.75
    if lines == "squared":
        light[:, 5::24] *= 0.75
    assert seen(shoot(light)) > 0.95


def test_a_frame_is_cut_off() -> None:
    light = house()
    for line in (light[10:14, 10:590], light[586:590, 10:590], light[10:590, 10:14], light[10:590, 586:590]):
        line[:] = 0.2
    assert seen(shoot(light)) > 0.95


def test_chalk_on_a_board_is_ink() -> None:
    assert seen(shoot((1.05 - house()) * np.linspace(0.6, 1, 600))) > 0.95


@pytest.mark.parametrize("ink", [(220, 40, 40), (40, 120, 220), (240, 200, 60)])
def test_coloured_ink_stands_out_from_paper_in_yellow_light(ink: tuple[int, int, int]) -> None:
    drawn = ImageOps.colorize(paint(HOUSE, size=600, width=5, scale=4, at=100), ink, "white")
    assert seen(shoot(np.asarray(drawn) / 255 * [0.9, 0.85, 0.65])) > 0.95


def test_pencil_is_found_among_noise_and_specks() -> None:
    light = 0.85 - 0.35 * (1 - (house() - 0.12) / 0.8)
    for x, y in RNG.integers(20, 580, (15, 2)):
        light[y : y + 2, x : x + 2] = 0.4
    assert seen(shoot(light, noise=5)) > 0.9


def test_every_condition_leaves_most_drawings_right() -> None:
    """The small version of `python -m benchmarks.photos`."""
    recognizer, right = Recognizer.load(), {}
    names = ["apple.json", "cactus.json", "hourglass.json", "key.svg", "snowman.png", "umbrella.json"]
    for number, (condition, take) in enumerate(CONDITIONS.items()):
        guesses = []
        for column, name in enumerate(names):
            rng = np.random.default_rng([number, column])
            pen = list(PENS.values())[(number + column) % len(PENS)]
            scene = Scene(read_sketch(EXAMPLES / name), pen, (900, 680), rng)
            guesses.append(recognizer.recognize(take(scene), top=1)[0][0] == name.partition(".")[0])
        right[condition] = sum(guesses)
    assert min(right.values()) >= 4, right
    assert sum(right.values()) >= 0.9 * len(right) * len(names), right


STRANGE: dict[str, Pixels] = {
    "one pixel": np.zeros((1, 1, 3), np.uint8),
    "one row": RNG.integers(0, 256, (1, 5000, 3), dtype=np.uint8),
    "one column": RNG.integers(0, 256, (5000, 1, 4), dtype=np.uint8),
    "two pixels": np.array([[[0, 0, 0], [255, 255, 255]]], np.uint8),
    "one colour": np.full((800, 900, 3), (200, 30, 90), np.uint8),
    "nothing": np.zeros((300, 300, 4), np.uint8),
    "half transparent noise": RNG.integers(0, 256, (300, 300, 4), dtype=np.uint8),
    "noise": RNG.integers(0, 256, (700, 500, 3), dtype=np.uint8),
    "faint noise": RNG.integers(120, 136, (700, 500), dtype=np.uint8),
    "a checkerboard": np.kron(np.indices((60, 60)).sum(0) % 2, np.ones((9, 9))).astype(np.uint8) * 255,
    "stripes": np.tile(np.arange(600, dtype=np.uint8) % 2 * 255, (600, 1)),
    "a smooth slope": np.linspace(0, 255, 700 * 700).reshape(700, 700).astype(np.uint8),
    "a long strip": RNG.integers(0, 256, (66, 20_000), dtype=np.uint8),
    "huge": np.broadcast_to(RNG.integers(0, 256, 7000, dtype=np.uint8), (7000, 7000)),
}


@pytest.mark.parametrize("name", STRANGE)
def test_strange_pictures_give_a_sketch_or_a_sentence_in_time(name: str) -> None:
    begun = time.process_time()
    if kind_of(STRANGE[name]) is None:
        with pytest.raises(InputError, match="the image has no ink: there is nothing on the paper"):
            sketch_from_array(STRANGE[name])
    else:
        assert rasterize(sketch_from_array(STRANGE[name]), RASTER).any()
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("name", ["one pixel", "one colour", "nothing", "faint noise", "a smooth slope"])
def test_blank_pictures_have_no_ink(name: str) -> None:
    with pytest.raises(InputError, match="the image has no ink"):
        sketch_from_array(STRANGE[name])


def test_a_large_jpeg_is_read_at_reduced_scale_and_others_are_refused() -> None:
    picture = paint(HOUSE, size=1200, width=10, scale=10, at=100)
    sketch = sketch_from_bytes(encode(picture, "JPEG"), max_pixels=500_000)
    assert agreement(rasterize(sketch, RASTER), PLAIN) > 0.95
    for data in (encode(picture), encode(picture, "JPEG", progressive=True)):
        with pytest.raises(InputError, match="more than 500,000 pixels"):
            sketch_from_bytes(data, max_pixels=500_000)
    with pytest.raises(InputError, match="more than 30,000 pixels"):
        sketch_from_bytes(encode(picture, "JPEG"), max_pixels=10_000)


def test_of_an_animation_the_first_frame_counts() -> None:
    first, second = paint(HOUSE), Image.new("L", (400, 400), 255)
    ImageDraw.Draw(second).ellipse((50, 50, 350, 350), outline=0, width=9)
    data = encode(first, "GIF", save_all=True, append_images=[second])
    assert agreement(rasterize(sketch_from_bytes(data), RASTER), PLAIN) > 0.98


def test_a_thumbnail_is_upright_and_within_its_limits(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    (tmp_path / "turned.jpg").write_bytes(encode(Image.new("RGB", (400, 200)), "JPEG", exif=exif))
    (tmp_path / "strokes.json").write_text("[]")
    thumbnail = read_thumbnail(tmp_path / "turned.jpg", 64)
    assert thumbnail is not None
    assert thumbnail.size == (32, 64)
    assert read_thumbnail(tmp_path / "strokes.json", 64) is None


def test_a_picture_that_is_said_to_be_clean_is_taken_as_such() -> None:
    picture = Image.fromarray(shoot(house() * np.linspace(0.3, 1, 600)))
    clean = rasterize(sketch_from_picture(picture, is_clean=True), RASTER)
    assert agreement(clean, PLAIN) < 0.7
