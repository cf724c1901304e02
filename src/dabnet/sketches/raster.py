"""The one rasterizer: from a sketch to the square grey image that a network sees, for training, files and canvas alike.

The ink's box, pen included, fills the image but for a margin; aspect is kept, and the box is centred. Strokes are drawn
with a round pen; an image's lines are grown to that pen's width if they are thinner. Both are antialiased.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dabnet import _native
from dabnet.errors import InputError, check_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dabnet.sketches.sketch import Sketch

SIZES = (8, 4096)
MARGINS = (0.0, 0.4)
PENS = (0.001, 0.15)


@dataclass(frozen=True)
class Raster:
    """How to rasterize; these settings travel with a data set, a recipe and a model."""

    size: int = 224
    """Pixels per side."""
    margin: float = 0.05
    """Blank border on each side, as a share of the size."""
    pen: float = 0.025
    """Width of a line, as a share of the size."""

    def __post_init__(self) -> None:
        if not isinstance(self.size, int):
            raise InputError(f"the rasterizer's size must be a whole number, not {self.size!r}.")
        check_number("the rasterizer's size", self.size, SIZES)
        check_number("the rasterizer's margin", self.margin, MARGINS)
        check_number("the rasterizer's pen", self.pen, PENS)

    @classmethod
    def from_dict(cls, settings: dict[str, Any]) -> Raster:
        """Take settings as `to_dict` gives them."""
        known = [field.name for field in dataclasses.fields(cls)]
        for name in settings:
            if name not in known:
                raise InputError(f"the rasterizer has no setting '{name}': it has {', '.join(known)}.")
        return cls(**settings)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings by name, to store them."""
        return dataclasses.asdict(self)


def rasterize(sketch: Sketch, raster: Raster | None = None, out: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
    """Draw a sketch as a network sees it: (size, size), ink 255 on 0; into `out` if that is given.

    >>> from dabnet.sketches.sketch import Sketch
    >>> cross = Sketch.from_strokes([[(0, 0), (2, 2)], [(2, 0), (0, 2)]])
    >>> rasterize(cross, Raster(size=8, margin=0, pen=0.15))
    array([[244, 100,   0,   0,   0,   0, 100, 244],
           [100, 255, 100,   0,   0, 100, 255, 100],
           ...
    """
    raster = raster or Raster()
    if out is None:
        import numpy as np

        out = np.empty((raster.size, raster.size), dtype=np.uint8)
    elif out.shape != (raster.size, raster.size):
        raise InputError(f"out must have the shape {(raster.size, raster.size)}, not {out.shape}.")
    if sketch.points is not None and sketch.ends is not None:
        _native.rasterize_strokes(sketch.points, sketch.ends, raster.margin, raster.pen, out)
    elif sketch.bitmap is None or not _native.rasterize_bitmap(
        sketch.bitmap, sketch.line_width, raster.margin, raster.pen, out
    ):
        raise InputError("the image has no ink: there is nothing on the paper.")
    return out


def rasterize_batch(
    sketches: Sequence[Sketch], raster: Raster | None = None, pens: Sequence[float] | None = None
) -> NDArray[np.uint8]:
    """Draw sketches as a network sees them: (sketches, size, size); `pens` gives each a pen width of its own."""
    import numpy as np

    raster = raster or Raster()
    out = np.empty((len(sketches), raster.size, raster.size), dtype=np.uint8)
    for i, sketch in enumerate(sketches):
        rasterize(sketch, raster if pens is None else dataclasses.replace(raster, pen=float(pens[i])), out[i])
    return out


def show_batch(sketches: Sequence[Sketch], raster: Raster | None = None) -> NDArray[np.float32]:
    """Draw sketches as a network takes them: float32 (sketches, 1, size, size), ink 1.0 on 0.0."""
    import numpy as np

    raster = raster or Raster()
    shown = np.empty((len(sketches), 1, raster.size, raster.size), dtype=np.float32)
    pixels = np.empty((raster.size, raster.size), dtype=np.uint8)
    for sketch, image in zip(sketches, shown, strict=True):
        np.divide(rasterize(sketch, raster, pixels), np.float32(255), out=image[0])
    return shown
