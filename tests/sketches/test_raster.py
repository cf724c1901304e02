from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dabnet.errors import InputError
from dabnet.sketches.images import sketch_from_picture
from dabnet.sketches.raster import Raster, rasterize, rasterize_batch
from dabnet.sketches.sketch import Sketch
from dabnet.sketches.svg import sketch_from_svg
from dabnet.sketches.synthetic import CLASSES, draw_thing
from tests.sketches.drawings import HOUSE, agreement, paint

COORDINATES = st.floats(-1000, 1000, width=32)
STROKES = st.lists(st.lists(st.tuples(COORDINATES, COORDINATES), min_size=1, max_size=6), min_size=1, max_size=4)
RASTERS = st.builds(Raster, size=st.integers(8, 40), margin=st.floats(0, 0.3), pen=st.floats(0.01, 0.15))


def draw_slowly(sketch: Sketch, raster: Raster) -> NDArray[np.float64]:
    """Draw by the definition: every pixel's distance to every segment."""
    points = np.concatenate(sketch.strokes).astype(np.float64)
    low, high = points.min(axis=0), points.max(axis=0)
    pen = raster.pen * raster.size
    scale = (raster.size * (1 - 2 * raster.margin) - pen) / (high - low).max()
    centres = np.stack(np.meshgrid(*2 * [np.arange(raster.size) + 0.5]), axis=-1)
    nearest = np.full((raster.size, raster.size), np.inf)
    for stroke in sketch.strokes:
        placed = (stroke - (low + high) / 2) * scale + raster.size / 2
        for a, b in zip(
            placed[:-1] if len(placed) > 1 else placed, placed[1:] if len(placed) > 1 else placed, strict=True
        ):
            along = b - a
            t = np.clip(((centres - a) @ along) / max(along @ along, 1e-30), 0, 1)
            nearest = np.minimum(nearest, np.linalg.norm(centres - a - t[..., None] * along, axis=-1))
    return np.clip(pen / 2 + 0.5 - nearest, 0, 1) * 255


@given(strokes=STROKES, raster=RASTERS)
def test_strokes_are_drawn_as_defined(strokes: list[list[tuple[float, float]]], raster: Raster) -> None:
    try:
        sketch = Sketch.from_strokes(strokes)
    except InputError:
        return  # a single point
    # Steps under a quarter of a pixel are taken together, so ink may move by that much.
    assert np.abs(rasterize(sketch, raster) - draw_slowly(sketch, raster)).max() <= 0.36 * 255


def test_long_steps_are_drawn_to_the_last_bit() -> None:
    sketch = Sketch.from_strokes(HOUSE)
    for size in (16, 57, 224):
        raster = Raster(size=size)
        assert np.abs(rasterize(sketch, raster) - draw_slowly(sketch, raster)).max() <= 0.51


@given(
    strokes=STROKES,
    scale=st.sampled_from([0.5, 1, 4]),
    shift=st.sampled_from([0, 64, -1024]),
    raster=RASTERS,
)
def test_where_and_how_large_it_was_drawn_does_not_matter(
    strokes: list[list[tuple[float, float]]], scale: float, shift: float, raster: Raster
) -> None:
    rounded = [np.round(np.asarray(stroke) * 8) / 8 for stroke in strokes]  # exact after moving
    try:
        first = rasterize(Sketch.from_strokes(rounded), raster).astype(int)
    except InputError:
        return
    moved = rasterize(Sketch.from_strokes([stroke * scale + shift for stroke in rounded]), raster)
    assert np.abs(first - moved).max() <= 1


@pytest.mark.parametrize("kind", ["strokes", "image"])
@pytest.mark.parametrize("margin", [0.0, 0.1, 0.25])
def test_the_ink_is_centred_and_fills_all_but_the_margin(kind: str, margin: float) -> None:
    wide = [[(0, 0), (100, 0), (100, 40), (0, 40), (0, 0)]]
    sketch = Sketch.from_strokes(wide) if kind == "strokes" else sketch_from_picture(paint(wide))
    image = rasterize(sketch, Raster(size=200, margin=margin))
    rows, columns = np.flatnonzero(image.max(axis=1) > 127), np.flatnonzero(image.max(axis=0) > 127)
    assert columns[0] == pytest.approx(200 * margin, abs=1)
    assert columns[-1] == pytest.approx(199 - 200 * margin, abs=1)
    assert rows[0] + rows[-1] == pytest.approx(199, abs=1)
    assert columns[-1] - columns[0] - (rows[-1] - rows[0]) == pytest.approx(0.6 * (200 * (1 - 2 * margin) - 5), abs=2)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize(("size", "pen"), [(224, 0.025), (64, 0.03), (128, 0.06)])
def test_a_path_its_picture_and_its_strokes_look_the_same(name: str, size: int, pen: float) -> None:
    strokes = [stroke * 320 + 520 for stroke in draw_thing(name, np.random.default_rng(7)).strokes]
    raster = Raster(size=size, pen=pen)
    from_strokes = rasterize(Sketch.from_strokes(strokes), raster)
    paths = "".join(
        "<path d='M" + " L".join(f"{x / 2:.3f} {y / 2:.3f}" for x, y in stroke) + "'/>" for stroke in strokes
    )
    document = f"<svg xmlns='http://www.w3.org/2000/svg'><g transform='scale(2)'>{paths}</g></svg>"
    from_svg = rasterize(sketch_from_svg(document.encode()), raster)
    from_picture = rasterize(sketch_from_picture(paint(strokes, size=1111, width=5, scale=1.0)), raster)
    assert agreement(from_strokes, from_svg) >= 0.999
    assert agreement(from_strokes, from_picture) >= 0.98
    assert agreement(from_svg, from_picture) >= 0.98


def test_an_images_lines_grow_to_the_pens_width_and_are_never_thinned() -> None:
    thin, thick = (sketch_from_picture(paint(HOUSE, width=width)) for width in (2, 16))
    ink = [[int(rasterize(sketch, Raster(pen=pen)).sum()) for pen in (0.01, 0.04)] for sketch in (thin, thick)]
    assert ink[0][1] > 2.5 * ink[0][0]
    assert ink[1][1] < 1.1 * ink[1][0]


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_the_width_of_an_images_lines_is_measured(width: int) -> None:
    for seed, name in enumerate(CLASSES):
        sketch = draw_thing(name, np.random.default_rng(seed))
        image = rasterize(sketch, Raster(size=256, pen=width / 256))
        assert Sketch.from_ink(image).line_width == pytest.approx(width, rel=0.35)


def test_a_filled_shape_stays_one() -> None:
    y, x = np.mgrid[:200, :200]
    disc = (((x - 99.5) ** 2 + (y - 99.5) ** 2 < 60**2) * 255).astype(np.uint8)
    image = rasterize(Sketch.from_ink(disc), Raster(size=100, margin=0.1))
    assert (image > 127).sum() == pytest.approx(math.pi * 40**2, rel=0.06)


def test_a_dot_among_strokes_is_drawn() -> None:
    image = rasterize(Sketch.from_strokes([[(0, 0), (10, 0)], [(5, 5)]]), Raster(size=64))
    assert image[:, 20:44].max(axis=1)[40:].max() > 127


@given(noise=st.binary(min_size=64, max_size=64), where=st.integers(0, 200), width=st.floats(0.01, 256))
def test_any_bitmap_rasterizes_or_says_that_it_is_blank(noise: bytes, where: int, width: float) -> None:
    bitmap = np.zeros((256, 128), dtype=np.uint8)
    bitmap[where : where + 8, 30:38] = np.frombuffer(noise, dtype=np.uint8).reshape(8, 8)
    sketch = Sketch.from_bitmap(bitmap, width)
    if not bitmap.any():
        with pytest.raises(InputError, match="no ink"):
            rasterize(sketch)
    else:
        assert rasterize(sketch, Raster(size=32)).max() > 0


def test_a_batch_is_its_sketches_one_by_one_each_with_its_pen() -> None:
    sketches = [Sketch.from_strokes(HOUSE), sketch_from_picture(paint(HOUSE))]
    raster = Raster(size=48)
    batch = rasterize_batch(sketches, raster, pens=[0.02, 0.08])
    for image, sketch, pen in zip(batch, sketches, (0.02, 0.08), strict=True):
        assert np.array_equal(image, rasterize(sketch, dataclasses.replace(raster, pen=pen)))
    assert rasterize_batch([], raster).shape == (0, 48, 48)


def test_settings_survive_being_stored() -> None:
    raster = Raster(size=65, margin=0.125, pen=0.03)
    assert Raster.from_dict(raster.to_dict()) == raster


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"size": 4}, "size must be from 8 to 4096, not 4"),
        ({"size": 64.0}, "size must be a whole number, not 64.0"),
        ({"size": True}, "size must be"),
        ({"margin": 0.5}, "margin must be from 0 to 0.4"),
        ({"pen": 0.0}, "pen must be from 0.001 to 0.15"),
        ({"pen": math.nan}, "pen must be"),
        ({"pen": "wide"}, "pen must be"),
        ({"pan": 0.1}, "no setting 'pan': it has size, margin, pen"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Raster.from_dict(settings)


def test_out_must_fit() -> None:
    with pytest.raises(InputError, match="out must have the shape"):
        rasterize(Sketch.from_strokes(HOUSE), Raster(size=32), np.empty((16, 32), dtype=np.uint8))
