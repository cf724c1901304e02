"""Drawings for tests, and how to compare what became of them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageDraw

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

HOUSE = [
    [(10, 50), (10, 95), (90, 95), (90, 50)],
    [(5, 50), (50, 5), (95, 50), (5, 50)],
    [(40, 95), (40, 70), (60, 70)],
]


def paint(strokes: Sequence[Any], size: int = 400, width: int = 4, scale: float = 3.6, at: float = 20) -> Image.Image:
    """Draw strokes black on white with Pillow, round at every joint."""
    picture = Image.new("L", (size * 4, size * 4), 255)
    pen = ImageDraw.Draw(picture)
    for stroke in strokes:
        points = [((x * scale + at) * 4, (y * scale + at) * 4) for x, y in stroke]
        pen.line(points, fill=0, width=width * 4)
        for x, y in points:
            pen.ellipse([x - 2 * width, y - 2 * width, x + 2 * width, y + 2 * width], fill=0)
    return picture.resize((size, size), Image.Resampling.BOX)


def encode(picture: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    """Return a picture's file."""
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def agreement(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> float:
    """Return the share of each image's ink that lies within a pixel of the other's; the lesser of the two."""
    return min(_covered(first, second), _covered(second, first))


def _covered(ink: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    padded = np.pad(other > 127, 1)
    near = np.zeros(other.shape, dtype=bool)
    for dy in range(3):
        for dx in range(3):
            near |= padded[dy : dy + other.shape[0], dx : dx + other.shape[1]]
    weights = ink.astype(np.float64)
    return float(weights[near].sum() / weights.sum())
