from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dabnet.sketches.raster import Raster, rasterize
from dabnet.sketches.scribbles import MOST_STROKES, draw_scribble, to_bitmap
from dabnet.sketches.sketch import Sketch


@given(st.integers(0, 2**32))
def test_a_scribble_leaves_ink_and_depends_on_its_seed_alone(seed: int) -> None:
    scribble, again = (draw_scribble(np.random.default_rng(seed)) for _ in range(2))
    assert scribble.points is not None
    assert again.points is not None
    assert np.array_equal(scribble.points, again.points)
    assert 1 <= len(scribble.strokes) <= MOST_STROKES
    assert rasterize(scribble, Raster(32)).any()


def test_strokes_of_other_drawings_are_put_together_anew() -> None:
    others = [Sketch.from_strokes([np.array([[0, 0], [200, 100]]), np.array([[50, 7], [9, 3], [4, 4]])])]
    drawn = [draw_scribble(np.random.default_rng(seed), others) for seed in range(40)]
    alone = [draw_scribble(np.random.default_rng(seed)) for seed in range(40)]
    assert any(len(one.strokes) != len(other.strokes) for one, other in zip(drawn, alone, strict=True))
    assert all(1 <= len(sketch.strokes) <= MOST_STROKES for sketch in drawn)


@given(st.integers(0, 2**32))
def test_a_scribble_as_a_bitmap_looks_as_it_does_in_strokes(seed: int) -> None:
    scribble = draw_scribble(np.random.default_rng(seed))
    shown, again = (rasterize(one, Raster(64, pen=0.04)) for one in (scribble, to_bitmap(scribble, 4.0)))
    assert np.abs(shown.astype(float) - again).mean() < 25
