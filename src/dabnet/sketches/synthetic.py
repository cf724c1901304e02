"""Sketches drawn by a program: a few simple things in an unsteady hand, for demonstrations and tests without data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Stroke = NDArray[np.float64]  # (points, 2): x, y in -1 .. 1, y downwards


def synthetic_sketches(
    count: int, size: int = 32, seed: int = 0
) -> tuple[NDArray[np.uint8], NDArray[np.int64], list[str]]:
    """Draw `count` sketches: images (count, size, size) with ink 255 on 0, labels (count,), class names.

    >>> images, labels, names = synthetic_sketches(16, size=24)
    >>> images.shape, sorted(set(labels.tolist())) == list(range(len(names)))
    ((16, 24, 24), True)
    """
    rng = np.random.default_rng(seed)
    names = list(_SHAPES)
    labels = rng.permutation(np.arange(count) % len(names))
    images = np.stack([_draw(_unsteady(_SHAPES[names[label]](), rng), size) for label in labels])
    return images, labels.astype(np.int64), names


def _polygon(corners: int, start: float = -90.0) -> Stroke:
    angles = np.deg2rad(start + np.arange(corners + 1) * 360 / corners)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _star() -> list[Stroke]:
    return [_polygon(5)[[0, 2, 4, 1, 3, 0]]]


def _spiral() -> list[Stroke]:
    t = np.linspace(0, 1, 48)
    return [np.stack([t * np.cos(t * 5 * np.pi), t * np.sin(t * 5 * np.pi)], axis=1)]


def _house() -> list[Stroke]:
    walls = np.array([[-0.7, -0.1], [-0.7, 1.0], [0.7, 1.0], [0.7, -0.1]])
    roof = np.array([[-1.0, -0.1], [0.0, -1.0], [1.0, -0.1], [-1.0, -0.1]])
    return [walls, roof]


def _sun() -> list[Stroke]:
    rays = [np.array([0.6, 1.0])[:, None] * direction for direction in _polygon(8)[:-1]]
    return [_polygon(24) * 0.45, *rays]


def _cross() -> list[Stroke]:
    return [np.array([[-1.0, -1.0], [1.0, 1.0]]), np.array([[1.0, -1.0], [-1.0, 1.0]])]


def _zigzag() -> list[Stroke]:
    return [np.array([[-1.0, 0.5], [-0.6, -0.5], [-0.2, 0.5], [0.2, -0.5], [0.6, 0.5], [1.0, -0.5]])]


_SHAPES: dict[str, Callable[[], list[Stroke]]] = {
    "circle": lambda: [_polygon(24)],
    "cross": _cross,
    "house": _house,
    "spiral": _spiral,
    "square": lambda: [_polygon(4, start=-135)],
    "star": _star,
    "sun": _sun,
    "triangle": lambda: [_polygon(3)],
    "zigzag": _zigzag,
}


def _unsteady(strokes: list[Stroke], rng: np.random.Generator) -> list[Stroke]:
    """Turn, stretch and shift a drawing a little, and shake its points."""
    angle = rng.normal(0, 0.25)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    stretch = rng.uniform(0.5, 0.85, 2)
    shift = rng.uniform(-0.12, 0.12, 2)
    return [(s + rng.normal(0, 0.06, s.shape)) * stretch @ turn + shift for s in strokes]


def _draw(strokes: list[Stroke], size: int) -> NDArray[np.uint8]:
    """Draw at four times the size, then shrink: grey where a line covers a pixel in part."""
    big = size * 4
    image = Image.new("L", (big, big))
    pen = ImageDraw.Draw(image)
    for stroke in strokes:
        points = [tuple(point) for point in (stroke + 1) / 2 * big]
        pen.line(points, fill=255, width=max(1, big // 20), joint="curve")
    return np.asarray(image.resize((size, size), Image.Resampling.BOX))
