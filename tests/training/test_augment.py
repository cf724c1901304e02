from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Generator, Tensor

from dabnet.errors import InputError
from dabnet.sketches.crops import crop_source_size
from dabnet.sketches.raster import PENS, Raster, rasterize, rasterize_batch
from dabnet.sketches.sketch import Sketch
from dabnet.training.augment import (
    ERASED,
    ImageAugmentation,
    erase_boxes,
    sample_views,
    to_network,
)
from dabnet.training.augment_strokes import StrokeAugmentation, pen_widths

NO_STROKES_CHANGE = StrokeAugmentation(remove=0, pen=(1, 1), deform=0)
PLAIN: dict[str, Any] = {"scale": (1, 1), "ratio": (1, 1), "degrees": 0, "flip": 0, "deform": 0}
ALL_AT_ONCE = ImageAugmentation(deform=0.03)


def seeded(seed: int = 0) -> Generator:
    return Generator().manual_seed(seed)


def scribble(seed: int, strokes: int = 5) -> Sketch:
    """A random walk per stroke."""
    rng = np.random.default_rng(seed)
    return Sketch.from_strokes(
        [rng.normal(size=(rng.integers(2, 12), 2)).cumsum(axis=0) + rng.normal(size=2) * 3 for _ in range(strokes)]
    )


def picture(seed: int) -> Sketch:
    """The same, as an image."""
    return Sketch.from_ink(rasterize(scribble(seed), Raster(size=200)))


def drawings(count: int, size: int = 64) -> Tensor:
    return torch.from_numpy(rasterize_batch([scribble(seed) for seed in range(count)], Raster(size=size)))


def views(images: Tensor, size: int, **changes: Any) -> Tensor:
    """Sample the whole of each image, but for the changes."""
    count = len(images)
    settings: dict[str, Any] = {
        "centres": torch.full((count, 2), 0.5),
        "extents": torch.ones(count, 2),
        "degrees": torch.zeros(count),
        "mirrored": torch.zeros(count, dtype=torch.bool),
    }
    return sample_views(images, size, **(settings | changes))


def same(sketch: Sketch, other: Sketch) -> bool:
    return all(
        np.array_equal(getattr(sketch, name), getattr(other, name))
        for name in ("points", "ends", "bitmap", "line_width")
    )


# A drawing's few strokes come from few coordinates, so that dots, and strokes that lie on one another, are frequent.
coordinates = st.sampled_from([0.0, 1.0, 2.0, 1e-38, -3e38, 3e38, 1e8, 1e8 + 8])
strokes = st.lists(st.lists(st.tuples(coordinates, coordinates), min_size=1, max_size=4), min_size=1, max_size=5)
valid_sketches = strokes.filter(lambda lists: len({point for points in lists for point in points}) > 1).map(
    Sketch.from_strokes
)


def test_settings_that_change_nothing_give_the_sketches_back() -> None:
    sketches = [scribble(0), picture(1)]
    result, factors = NO_STROKES_CHANGE.apply(sketches, seeded())
    assert result == sketches
    assert factors.tolist() == [1, 1]


@given(
    sketches=st.lists(valid_sketches, max_size=6),
    remove=st.floats(0, 0.5),
    deform=st.floats(0, 0.15),
    seed=st.integers(0, 99),
)
def test_what_comes_out_is_always_a_valid_sketch(
    sketches: list[Sketch], remove: float, deform: float, seed: int
) -> None:
    result, factors = StrokeAugmentation(remove, (0.5, 2), deform).apply(sketches, seeded(seed))
    assert len(result) == len(factors) == len(sketches)
    for before, after in zip(sketches, result, strict=True):
        assert after.points is not None
        assert after.ends is not None
        assert after.points.dtype == np.float32
        assert same(after, Sketch.from_points(after.points, after.ends))  # which checks all
        lengths = iter([len(stroke) for stroke in before.strokes])
        assert all(len(stroke) in lengths for stroke in after.strokes)  # in the order in which they were drawn
    rasterize_batch(result, Raster(size=16), pen_widths(Raster(), factors))


def test_the_only_stroke_stays_and_of_two_one_does() -> None:
    one, two = scribble(0, strokes=1), scribble(1, strokes=2)
    result, _ = StrokeAugmentation(remove=0.5, deform=0).apply([one, two] * 200, seeded())
    assert all(same(sketch, one) for sketch in result[::2])
    assert {len(sketch.strokes) for sketch in result[1::2]} == {1}


def test_strokes_that_stay_are_not_touched() -> None:
    sketches = [scribble(seed) for seed in range(50)]
    result, _ = StrokeAugmentation(remove=0.4, deform=0).apply(sketches, seeded())
    for before, after in zip(sketches, result, strict=True):
        known = {stroke.tobytes() for stroke in before.strokes}
        assert {stroke.tobytes() for stroke in after.strokes} <= known


@pytest.mark.parametrize("remove", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("strokes", [2, 3, 8])
def test_the_mean_share_of_strokes_left_out_is_as_asked(remove: float, strokes: int) -> None:
    result, _ = StrokeAugmentation(remove, deform=0).apply([scribble(0, strokes)] * 4000, seeded())
    left_out = [1 - len(sketch.strokes) / strokes for sketch in result]
    assert np.mean(left_out) == pytest.approx(remove, abs=0.015)
    assert min(left_out) < remove or remove * strokes == strokes - 1
    assert max(left_out) > remove or remove * strokes == strokes - 1


def test_later_and_shorter_strokes_are_left_out_more_often() -> None:
    def kept(lengths: list[float], strokes: list[int]) -> list[float]:
        """How often each of these strokes stays."""
        sketch = Sketch.from_strokes([[(0, i), (length, i)] for i, length in enumerate(lengths)])
        result, _ = StrokeAugmentation(remove=0.3, deform=0).apply([sketch] * 3000, seeded())
        rows = np.concatenate([[stroke[0, 1] for stroke in sketch.strokes] for sketch in result])
        return [(rows == i).mean() * len(rows) / 3000 for i in strokes]

    early, middle, late = kept([5, 5, 5, 5, 5], [0, 2, 4])
    assert early > middle + 0.05 > late + 0.1
    long, short = kept([5, 5, 0.5, 5, 5], [1, 2])
    assert long > short + 0.15
    # Neither depends on the drawing's scale.
    assert kept([500, 500, 50, 500, 500], [1, 2]) == [long, short]


def test_deforming_moves_points_as_far_as_asked_smoothly_and_never_further_than_a_bound() -> None:
    # A drawing that covers its square evenly, and is at home in the square that deforming puts it in.
    side = np.linspace(-0.5, 0.5, 41, dtype=np.float32)
    mesh = np.stack(np.meshgrid(side, side), axis=-1)  # (41, 41, 2)
    result, _ = StrokeAugmentation(remove=0, deform=0.04).apply([Sketch.from_strokes(mesh)] * 200, seeded())
    moves = np.stack([np.stack(sketch.strokes) for sketch in result]) - mesh
    assert np.sqrt((moves**2).sum(axis=-1).mean()) == pytest.approx(0.04, rel=0.03)
    # It is as strong in the middle as at the border.
    for part in (moves[:, 15:26, 15:26], moves[:, :5], moves[:, :, -5:]):
        assert np.sqrt((part**2).sum(axis=-1).mean()) == pytest.approx(0.04, rel=0.1)
    assert np.abs(moves).max() < 0.04 * 2.56
    # A neighbour, at 1/40 of a side, moves almost alike; a point at a half moves otherwise.
    assert np.abs(np.diff(moves, axis=1)).max() < 0.25 * 0.04
    assert np.abs(moves[:, 20:] - moves[:, :21]).max() > 2 * 0.04


def test_deforming_is_the_same_at_any_scale_and_position() -> None:
    sketch = scribble(3)
    assert sketch.points is not None
    assert sketch.ends is not None
    moved = Sketch.from_points(sketch.points * 64 + 1024, sketch.ends)
    here, there = (StrokeAugmentation(remove=0).apply([s], seeded())[0][0].points for s in (sketch, moved))
    assert here is not None
    assert there is not None
    np.testing.assert_allclose(here, there, atol=1e-4)


def test_pen_factors_spread_evenly_over_their_range_for_strokes_and_images() -> None:
    sketches = [scribble(0), picture(1)] * 1000
    result, factors = StrokeAugmentation(pen=(0.5, 2)).apply(sketches, seeded())
    assert factors.min() >= 0.5
    assert factors.max() <= 2
    counts, _ = np.histogram(np.log2(factors), bins=4, range=(-1, 1))
    assert (abs(counts - 500) < 80).all()
    assert len(set(factors)) == 2000
    assert all(after is before for before, after in zip(sketches[1::2], result[1::2], strict=True))


def test_pen_widths_are_what_the_rasterizer_takes() -> None:
    assert pen_widths(Raster(pen=0.02), np.array([0.5, 1.0, 3.0])) == pytest.approx([0.01, 0.02, 0.06])
    assert pen_widths(Raster(pen=0.15), np.array([0.5, 2.0])) == pytest.approx([0.075, PENS[1]])
    thin, thick = rasterize_batch([scribble(0)] * 2, Raster(), pen_widths(Raster(), np.array([0.5, 2.0])))
    assert thick.sum() > 2 * thin.sum()


def test_sketches_and_images_mix_in_a_batch() -> None:
    sketches = [picture(0), scribble(1), scribble(2), picture(3), scribble(4, strokes=1)]
    result, factors = StrokeAugmentation(remove=0.5).apply(sketches, seeded())
    assert [after is before for before, after in zip(sketches, result, strict=True)] == [
        True,
        False,
        False,
        True,
        False,
    ]
    images = torch.from_numpy(rasterize_batch(result, Raster(size=73), pen_widths(Raster(size=73), factors)))
    assert (ALL_AT_ONCE.apply(images, 64, seeded()).amax(dim=(1, 2, 3)) > 0.9).all()


def test_a_seed_decides_everything_and_no_other_randomness_is_used() -> None:
    sketches = [scribble(seed) for seed in range(8)]
    images = drawings(8)
    torch_state, numpy_state = torch.random.get_rng_state(), str(np.random.get_state(legacy=False))
    first, again, other = (StrokeAugmentation(remove=0.3).apply(sketches, seeded(seed)) for seed in (1, 1, 2))
    assert all(map(same, first[0], again[0]))
    assert np.array_equal(first[1], again[1])
    assert not any(map(same, first[0], other[0]))
    one, same_one, another = (ALL_AT_ONCE.apply(images, 64, seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, same_one)
    assert not torch.equal(one, another)
    assert torch.equal(torch.random.get_rng_state(), torch_state)
    assert str(np.random.get_state(legacy=False)) == numpy_state


def test_the_same_drawing_comes_out_differently_in_every_row() -> None:
    result, factors = StrokeAugmentation().apply([scribble(0)] * 8, seeded())
    images = ALL_AT_ONCE.apply(drawings(1).expand(8, -1, -1), 64, seeded())
    for i in range(8):
        for j in range(i):
            assert not same(result[i], result[j])
            assert factors[i] != factors[j]
            assert not torch.equal(images[i], images[j])


def test_an_empty_batch_stays_empty() -> None:
    sketches, factors = StrokeAugmentation().apply([], seeded())
    assert (sketches, factors.shape) == ([], (0,))
    empty = torch.empty(0, 73, 73, dtype=torch.uint8)
    assert ALL_AT_ONCE.apply(empty, 64, seeded()).shape == (0, 1, 64, 64)
    assert to_network(empty).shape == (0, 1, 73, 73)


@given(size=st.integers(8, 80), seed=st.integers(0, 99), channel=st.booleans())
def test_an_image_that_is_not_changed_comes_back(size: int, seed: int, channel: bool) -> None:
    noise = torch.randint(0, 256, (3, size, size), dtype=torch.uint8, generator=seeded(seed))
    result = ImageAugmentation(**PLAIN).apply(noise[:, None] if channel else noise, size, seeded(seed))
    assert result.dtype == torch.float32
    assert result.is_contiguous()
    torch.testing.assert_close(result, noise[:, None] / 255, atol=1e-4, rtol=0)


def test_a_flip_is_the_exact_mirror_of_the_same_view() -> None:
    images = drawings(16)
    settings: dict[str, Any] = {"degrees": 10, "deform": 0.03}
    never, always, often = (
        ImageAugmentation(flip=flip, **settings).apply(images, 64, seeded()) for flip in (0, 1, 0.5)
    )
    torch.testing.assert_close(always, never.flip(-1), atol=1e-4, rtol=0)
    flipped = torch.stack([(often - other).abs().amax(dim=(1, 2, 3)) < 1e-6 for other in (never, always)])
    assert (flipped.sum(dim=0) == 1).all()
    assert flipped.any(dim=1).all()


def test_half_of_many_images_are_flipped() -> None:
    left = torch.zeros(2000, 8, 8, dtype=torch.uint8)
    left[..., :4] = 255
    flipped = ImageAugmentation(**(PLAIN | {"flip": 0.5})).apply(left, 8, seeded())[:, 0, 0, 7] > 0.5
    assert 900 < flipped.sum() < 1100


@pytest.mark.parametrize("degrees", [10.0, -35.0, 90.0])
def test_a_rotated_image_is_the_image_of_the_rotated_drawing(degrees: float) -> None:
    def draw(turn: float) -> Tensor:
        # A circle around the drawing, so that the rasterizer fits it into the same box however it is turned.
        circle = np.exp(2j * np.pi * np.linspace(0, 1, 721))
        inside = np.array([-0.6 - 0.5j, 0.7 - 0.4j, 0.1 + 0.1j, 0.2 + 0.8j, -0.5 + 0.6j])
        turned = [points * np.exp(-1j * np.deg2rad(turn)) for points in (circle, inside)]  # y points down
        sketch = Sketch.from_strokes([np.stack([points.real, points.imag], axis=-1) for points in turned])
        return torch.from_numpy(rasterize(sketch, Raster(size=128)))[None]

    rotated = views(draw(0), 128, degrees=torch.tensor([degrees]))
    direct = to_network(draw(degrees))
    assert (rotated - direct).abs().mean() < 0.02
    for ink, other in ((rotated, direct), (direct, rotated)):
        near = F.max_pool2d(other, 3, stride=1, padding=1) > 0.5
        assert near[ink > 0.5].float().mean() > 0.999


def test_rotations_go_both_ways_and_not_further_than_asked() -> None:
    # A horizontal edge through the middle: its slope is the angle's tangent.
    below = torch.zeros(500, 64, 64, dtype=torch.uint8)
    below[:, 32:] = 255
    result = ImageAugmentation(**(PLAIN | {"degrees": 10})).apply(below, 64, seeded())[:, 0]
    height = result[:, 8:56, 8:56].sum(dim=1)  # (N, 48), of the ink in a column
    angles = torch.rad2deg(torch.atan((height[:, -1] - height[:, 0]) / 47))
    assert 9.5 < angles.max() < 10.1
    assert -10.1 < angles.min() < -9.5
    assert abs(angles.mean()) < 1


def test_an_aligned_crop_is_a_plain_slice() -> None:
    images = torch.randint(0, 256, (2, 60, 80), dtype=torch.uint8, generator=seeded())
    crops = views(
        images,
        40,
        centres=torch.tensor([[20 / 80, 20 / 60], [(33 + 20) / 80, (15 + 20) / 60]]),
        extents=torch.tensor([[40 / 80, 40 / 60]] * 2),
    )
    slices = torch.stack([images[0, :40, :40], images[1, 15:55, 33:73]])
    torch.testing.assert_close(crops, to_network(slices), atol=1e-4, rtol=0)


def test_beyond_the_image_there_is_blank_paper() -> None:
    full = torch.full((1, 32, 32), 255, dtype=torch.uint8)
    result = views(full, 32, centres=torch.tensor([[1.0, 0.5]]))[0, 0]
    assert (result[:, :16] > 0.999).all()
    assert (result[:, 16:] < 0.001).all()


@given(
    scale=st.tuples(st.floats(0.3, 1), st.floats(0.3, 1)).map(sorted),
    ratio=st.tuples(st.floats(0.5, 2), st.floats(0.5, 2)).map(sorted),
    shape=st.sampled_from([(64, 64), (48, 64), (64, 40)]),
    seed=st.integers(0, 99),
)
def test_a_crop_lies_in_the_image_and_has_an_area_and_a_ratio_as_asked(
    scale: list[float], ratio: list[float], shape: tuple[int, int], seed: int
) -> None:
    augmentation = ImageAugmentation(**(PLAIN | {"scale": scale, "ratio": ratio}))
    height, width = shape
    # Images whose shade is the column, or the row, show where their crops lie.
    ramps = torch.meshgrid(*(torch.arange(n, dtype=torch.uint8) for n in shape), indexing="ij")
    rows, columns = (augmentation.apply(ramp.expand(20, -1, -1), 32, seeded(seed))[:, 0] * 255 for ramp in ramps)
    spans = []
    for values, side in ((rows[:, :, 16], height), (columns[:, 16, :], width)):
        step = (values[:, 20] - values[:, 10]) / 10
        start = values[:, 10] - 10.5 * step + 0.5
        assert (start > -0.01).all()
        assert (start + 32 * step < side + 0.01).all()
        spans.append(32 * step)
    area = spans[0] * spans[1] / (height * width)
    assert (area > scale[0] - 1e-3).all()
    assert (area < scale[1] + 1e-3).all()
    # At its ratio, or as near to it as fits.
    stretch = spans[1] / spans[0]
    fills = (spans[0] > height - 0.01) | (spans[1] > width - 0.01)
    assert (fills | ((stretch > ratio[0] - 1e-2) & (stretch < ratio[1] + 1e-2))).all()


def test_a_line_of_one_pixel_is_not_skipped_at_the_size_that_is_advised() -> None:
    side = crop_source_size(64)
    images = torch.zeros(500, side, side, dtype=torch.uint8)
    images[:, side // 2] = 255
    result = ImageAugmentation(degrees=0).apply(images, 64, seeded())
    assert result.amax(dim=2).min() > 0.4


def test_an_image_bends_as_its_control_points_say() -> None:
    images = drawings(2, 96)
    # If all of them move by 6 of 96 pixels, so does the whole.
    bends = torch.zeros(2, 6, 6, 2)
    bends[..., 0] = 6 / 96
    shifted = views(images, 96, bends=bends)
    torch.testing.assert_close(shifted[..., :90], to_network(images)[..., 6:], atol=1e-4, rtol=0)
    # One in a corner leaves the opposite corner alone.
    bends = torch.zeros(2, 6, 6, 2)
    bends[:, 1, 1] = 0.1
    bent = views(images, 96, bends=bends)
    torch.testing.assert_close(bent[..., 64:], to_network(images)[..., 64:], atol=1e-4, rtol=0)
    assert (bent - to_network(images)).abs().max() > 0.5


def test_deforming_an_image_moves_its_ink_as_far_as_asked() -> None:
    ramps = torch.meshgrid(*[torch.arange(128, dtype=torch.uint8)] * 2, indexing="ij")
    augmentation = ImageAugmentation(**(PLAIN | {"deform": 0.03}))
    squares = torch.zeros(())
    for ramp in ramps:
        moves = augmentation.apply(ramp.expand(64, -1, -1), 128, seeded())[:, 0] * 255 - ramp
        inner = moves[:, 16:-16, 16:-16] / 128  # beyond the border there is no ramp
        squares = squares + inner.square().mean()
        assert inner.diff(dim=1).abs().max() < 0.01
    assert squares.sqrt() == pytest.approx(0.03, rel=0.05)


def test_ink_is_one_and_paper_nought() -> None:
    images = torch.tensor([[[0, 255], [51, 102]]], dtype=torch.uint8)
    assert torch.equal(to_network(images), torch.tensor([[[[0, 1], [0.2, 0.4]]]]))
    assert torch.equal(to_network(images[:, None]), to_network(images))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"remove": 0.6}, "the augmentation's remove must be from 0 to 0.5, not 0.6."),
        ({"remove": "much"}, "the augmentation's remove must be from 0 to 0.5, not 'much'."),
        ({"deform": -0.1}, "the augmentation's deform must be from 0 to 0.15, not -0.1."),
        ({"deform": float("nan")}, "the augmentation's deform must be from 0 to 0.15, not nan."),
        ({"pen": 1}, "the augmentation's pen must be two numbers from 0.25 to 4, the smaller first, not 1."),
        ({"pen": (2, 1)}, "the augmentation's pen must be two numbers from 0.25 to 4, the smaller first, not (2, 1)."),
        ({"pen": (0, 1)}, "the augmentation's pen must be two numbers from 0.25 to 4, the smaller first, not (0, 1)."),
    ],
)
def test_a_bad_stroke_setting_is_named(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        StrokeAugmentation(**settings)
    assert str(error.value) == sentence


@given(
    name=st.sampled_from(["scale", "ratio", "degrees", "flip", "deform"]),
    value=st.one_of(
        st.floats(max_value=-1e-9), st.floats(min_value=181), st.booleans(), st.none(), st.text(), st.just((1, 1, 1))
    ),
)
def test_a_bad_image_setting_is_named(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^the augmentation's {name} must be .*, not [^\n]*\\.$"):
        ImageAugmentation(**{name: value})


def test_settings_from_a_file_may_be_lists() -> None:
    assert ImageAugmentation(scale=[0.5, 1]) == ImageAugmentation(scale=(0.5, 1))  # type: ignore[arg-type]
    assert hash(StrokeAugmentation(pen=[1, 2])) == hash(StrokeAugmentation(pen=(1, 2)))  # type: ignore[arg-type]


def test_images_that_cannot_be_used_are_refused() -> None:
    with pytest.raises(InputError, match=r"images must be uint8 of \(N, H, W\) or .*, not float32 of \(2, 8, 8\)\."):
        to_network(torch.zeros(2, 8, 8))
    with pytest.raises(InputError, match=r"not uint8 of \(2, 3, 8, 8\)\."):
        to_network(torch.zeros(2, 3, 8, 8, dtype=torch.uint8))
    with pytest.raises(InputError, match=r"images of 256x256 are too large .* at 64x64: rasterize them at 73x73"):
        ImageAugmentation().apply(torch.zeros(1, 256, 256, dtype=torch.uint8), 64, seeded())


def lines(points: int) -> Sketch:
    """Strokes of different lengths, each point of which tells its number."""
    values = [(float(number), float(number % 7)) for number in range(points)]
    ends = sorted({points, *range(3, points, 4)})
    return Sketch.from_points(np.array(values, dtype=np.float32), np.array(ends))


@given(st.integers(2, 60), st.integers(0, 2**32))
def test_an_unfinished_drawing_is_the_beginning_of_the_drawing(points: int, seed: int) -> None:
    drawing = lines(points)
    augmentation = StrokeAugmentation(0.0, (1.0, 1.0), 0.0, prefix=1.0)
    (cut,), _ = augmentation.apply([drawing], Generator().manual_seed(seed))
    assert cut.points is not None
    assert drawing.points is not None
    assert cut.ends is not None
    assert drawing.ends is not None
    assert max(2, 0.2 * points) <= len(cut.points) <= points
    assert np.array_equal(cut.points, drawing.points[: len(cut.points)])
    assert cut.ends.tolist() == [*(end for end in drawing.ends.tolist() if end < len(cut.points)), len(cut.points)]


def test_the_asked_share_of_drawings_is_unfinished_evenly_from_a_fifth_to_all() -> None:
    augmentation = StrokeAugmentation(0.0, (1.0, 1.0), 0.0, prefix=0.3)
    sketches, _ = augmentation.apply([lines(200)] * 3000, Generator().manual_seed(0))
    kept = np.array([len(sketch.points) / 200 for sketch in sketches if sketch.points is not None])
    assert (kept < 1).mean() == pytest.approx(0.3, abs=0.03)
    assert kept[kept < 1].mean() == pytest.approx(0.6, abs=0.03)
    assert kept.min() >= 0.2


def test_a_drawing_that_begins_with_a_dot_keeps_what_makes_it_a_drawing() -> None:
    dots = Sketch.from_strokes([[(1, 1)], [(1, 1)], [(1, 1), (1, 1)], [(5, 5), (9, 9)]])
    for seed in range(20):
        (cut,), _ = StrokeAugmentation(0, (1, 1), 0, prefix=1.0).apply([dots], Generator().manual_seed(seed))
        rasterize(cut)
        assert cut.points is not None
        assert len(cut.points) >= 5


def test_erasing_blanks_one_box_of_the_asked_size_in_the_asked_share_of_images() -> None:
    images = torch.ones(2000, 1, 40, 40)
    erased = erase_boxes(images, 0.25, Generator().manual_seed(1))
    blank = erased == 0
    areas = blank.float().mean(dim=(1, 2, 3))
    assert float((areas > 0).float().mean()) == pytest.approx(0.25, abs=0.03)
    some = areas[areas > 0]
    assert float(some.min()) > ERASED[0] * 0.6
    assert float(some.max()) < ERASED[1] * 1.3
    rows, columns = blank.any(dim=3, keepdim=True), blank.any(dim=2, keepdim=True)
    assert torch.equal(blank, rows & columns)
    assert torch.equal(images, torch.ones(2000, 1, 40, 40))


def test_a_leaning_image_is_the_image_of_the_leaning_drawing() -> None:
    upright = torch.zeros(1, 64, 64, dtype=torch.uint8)
    upright[0, :, 31:33] = 255
    whole = {"centres": torch.full((1, 2), 0.5), "extents": torch.ones(1, 2), "degrees": torch.zeros(1)}
    view = sample_views(upright, 64, **whole, mirrored=torch.tensor([False]), leans=torch.tensor([0.5]))[0, 0]
    columns = (view * (torch.arange(64) + 0.5)).sum(dim=1) / view.sum(dim=1)
    rows = torch.arange(64) + 0.5 - 32
    torch.testing.assert_close(columns - 32, -0.5 * rows, atol=0.6, rtol=0)


def test_shear_leans_both_ways_and_not_further_than_asked() -> None:
    upright = torch.zeros(300, 64, 64, dtype=torch.uint8)
    upright[:, :, 31:33] = 255
    augmentation = ImageAugmentation((1, 1), (1, 1), 0, 0, shear=20)
    views = augmentation.apply(upright, 64, Generator().manual_seed(0))[:, 0]
    columns = (views * (torch.arange(64) + 0.5)).sum(dim=2) / views.sum(dim=2)
    angles = torch.rad2deg(torch.atan((columns[:, 8] - columns[:, 56]) / 48))
    assert float(angles.abs().max()) < 21
    assert float(angles.min()) < -17
    assert float(angles.max()) > 17
