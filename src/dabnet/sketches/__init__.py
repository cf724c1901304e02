"""Sketches: strokes, images and data sets, and the one rasterizer that shows them to a network; without torch."""

from typing import TYPE_CHECKING

from dabnet import _lazy

if TYPE_CHECKING:
    from dabnet.sketches.raster import Raster, rasterize, rasterize_batch
    from dabnet.sketches.read import read_sketch
    from dabnet.sketches.sketch import Sketch
    from dabnet.sketches.sources import open_source
    from dabnet.sketches.store import SketchSet
    from dabnet.sketches.synthetic import synthetic_sketches, synthetic_strokes

__all__ = [
    "Raster",
    "Sketch",
    "SketchSet",
    "open_source",
    "rasterize",
    "rasterize_batch",
    "read_sketch",
    "synthetic_sketches",
    "synthetic_strokes",
]

__getattr__ = _lazy.attributes(
    __name__,
    {
        "Raster": "dabnet.sketches.raster",
        "Sketch": "dabnet.sketches.sketch",
        "SketchSet": "dabnet.sketches.store",
        "open_source": "dabnet.sketches.sources",
        "rasterize": "dabnet.sketches.raster",
        "rasterize_batch": "dabnet.sketches.raster",
        "read_sketch": "dabnet.sketches.read",
        "synthetic_sketches": "dabnet.sketches.synthetic",
        "synthetic_strokes": "dabnet.sketches.synthetic",
    },
)


def __dir__() -> list[str]:
    return __all__
