"""Photographs made by a program: a drawing in pen, pencil or marker, as a camera or a screen might show it.

`take_photograph` draws on a sheet, puts the sheet where the condition says, lights it and takes the picture; every
strength is drawn at random, and a generator's seed decides all of it.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from dabnet.sketches.raster import Raster, rasterize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dabnet.sketches.sketch import Sketch

    Floats = NDArray[Any]  # (height, width, 3), or (height, width), from 0 to 1
    Rng = np.random.Generator


@dataclass(frozen=True)
class Pen:
    """What draws: how wide as a share of the drawing, how dark, and whether it leaves grain."""

    widths: tuple[float, float]
    darkness: tuple[float, float]
    grain: float = 0.0


PENS = {
    "pen": Pen((0.005, 0.012), (0.75, 0.92)),
    "pencil": Pen((0.005, 0.011), (0.4, 0.65), grain=0.35),
    "marker": Pen((0.018, 0.035), (0.75, 0.95)),
}
INKS = ((0.1, 0.15, 0.6), (0.75, 0.1, 0.1), (0.1, 0.5, 0.2), (0.45, 0.15, 0.55), (0.9, 0.45, 0.05))
"""Coloured inks, as shares of red, green and blue."""


def take_photograph(sketch: Sketch, condition: str, pen: str, rng: Rng) -> bytes:
    """Return a JPEG or PNG file of a drawing under one of the `CONDITIONS`, drawn with one of the `PENS`."""
    longer = int(min(4000, 600 * math.exp(rng.exponential(0.6))))
    shorter = int(longer * rng.choice([0.5625, 0.667, 0.75, 1.0]))
    size = (longer, shorter) if rng.random() < 0.5 else (shorter, longer)
    return CONDITIONS[condition](Scene(sketch, PENS[pen], size, rng))


class Scene:
    """A drawing, the pen it is drawn with, and the size of the picture to take of it."""

    def __init__(self, sketch: Sketch, pen: Pen, size: tuple[int, int], rng: Rng) -> None:
        self.sketch, self.pen, self.size, self.rng = sketch, pen, size, rng

    def sheet(
        self,
        size: tuple[int, int] | None = None,
        colour: tuple[float, float, float] | None = None,
        ink: tuple[float, float, float] | None = None,
        extent: tuple[float, float] = (0.5, 0.85),
        lines: str | None = None,
    ) -> Floats:
        """Return a sheet with the drawing on it; `extent` is the drawing's share of the shorter side."""
        rng, (width, height) = self.rng, size or self.size
        base = rng.uniform(0.8, 0.97)
        paper = np.empty((height, width, 3), dtype=np.float32)
        paper[:] = colour or (base, base * rng.uniform(0.97, 1), base * rng.uniform(0.9, 1))
        if lines is not None:
            self._rule(paper, lines)
        side = int(rng.uniform(*extent) * min(width, height))
        left, top = int(rng.uniform(0.04, 0.96) * (width - side)), int(rng.uniform(0.04, 0.96) * (height - side))
        coverage = self._draw(side)
        part = paper[top : top + side, left : left + side]
        dark = ink or 3 * (1 - rng.uniform(*self.pen.darkness),)
        part *= 1 - coverage[..., None] * (1 - np.array(dark, dtype=np.float32) / paper.max())
        return paper

    def _draw(self, side: int) -> Floats:
        """Return how much of each pixel the pen covers, (side, side)."""
        pen = max(self.rng.uniform(*self.pen.widths), 1.2 / side)
        turned = _turn(self.sketch, self.rng.uniform(-4, 4))
        coverage = rasterize(turned, Raster(side, 0, min(pen, 0.15))).astype(np.float32) / 255
        if self.pen.grain:
            grain = smooth_noise(coverage.shape, max(2, side // 300), self.rng)
            coverage *= np.clip(1 + self.pen.grain * (grain - 0.5), 0.2, 1)
        return coverage

    def _rule(self, paper: Floats, lines: str) -> None:
        """Print ruled or squared lines on a sheet."""
        rng, (height, width) = self.rng, paper.shape[:2]
        step = max(10.0, rng.uniform(0.022, 0.05) * min(width, height))
        thick = max(1, round(step * rng.uniform(0.03, 0.07)))
        tint = np.array(INKS[0] if rng.random() < 0.6 else (0.3, 0.3, 0.3), dtype=np.float32)
        share = rng.uniform(0.25, 0.55)
        for y in np.arange(rng.uniform(0.2, 1) * step, height - thick, step).astype(int):
            paper[y : y + thick] = paper[y : y + thick] * (1 - share) + tint * share
        if lines == "squared":
            for x in np.arange(rng.uniform(0.2, 1) * step, width - thick, step).astype(int):
                paper[:, x : x + thick] = paper[:, x : x + thick] * (1 - share) + tint * share
        elif rng.random() < 0.5:
            x = int(rng.uniform(0.05, 0.12) * width)
            paper[:, x : x + thick] = paper[:, x : x + thick] * (1 - share) + np.array(INKS[1], np.float32) * share

    def desk(self, kind: str) -> Floats:
        """Return a desk: dark, or of wood with its grain."""
        rng, (width, height) = self.rng, self.size
        desk = np.empty((height, width, 3), dtype=np.float32)
        if kind == "dark":
            shade = rng.uniform(0.05, 0.35)
            desk[:] = shade * rng.uniform(0.85, 1.1, 3)
            return desk * (0.95 + 0.1 * smooth_noise((height, width), 8, rng)[..., None])
        desk[:] = np.array([0.55, 0.36, 0.2]) * rng.uniform(0.6, 1.25)
        grain = smooth_noise((max(2, height // 60), max(2, width // 3)), 1, rng)
        grained = np.asarray(Image.fromarray(grain).resize((width, height), Image.Resampling.BILINEAR))
        return desk * (0.8 + 0.4 * (grained if rng.random() < 0.5 else grained[::-1, ::-1])[..., None])

    def lay(self, desk: Floats, degrees: float, perspective: float, share: tuple[float, float]) -> Floats:
        """Lay a sheet on a desk, turned and seen at a slant; `share` is how much of the picture's sides it takes."""
        rng, (width, height) = self.rng, self.size
        aspect = rng.choice([1.0, 0.707, 1.414, 0.75])
        angle, part = math.radians(rng.uniform(-degrees, degrees)), rng.uniform(*share)
        turned = abs(math.cos(angle)) + abs(math.sin(angle)) * max(aspect, 1 / aspect)
        tall = min(height, width / aspect) * part / turned
        wide = tall * aspect
        sheet = self.sheet((max(64, int(wide)), max(64, int(tall))))
        corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * [wide / 2, tall / 2]
        corners *= 1 + rng.uniform(-perspective, perspective, (4, 2))
        turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
        corners = corners @ turn + np.array([width, height]) * (0.5 + rng.uniform(-0.03, 0.03, 2))
        source = np.array([[0, 0], [1, 0], [1, 1], [0, 1]]) * [sheet.shape[1], sheet.shape[0]]
        coefficients = _homography(corners, source)
        rgba = np.dstack([sheet, np.ones(sheet.shape[:2], np.float32)])
        layer = Image.fromarray(np.rint(rgba * 255).astype(np.uint8))
        laid = np.asarray(
            layer.transform(self.size, Image.Transform.PERSPECTIVE, coefficients, Image.Resampling.BICUBIC)
        )
        there = laid[..., 3:].astype(np.float32) / 255
        return desk * (1 - there) + laid[..., :3].astype(np.float32) / 255 * there

    def shoot(
        self, scene: Floats, *, noise: tuple[float, float] = (1, 6), quality: tuple[int, int] = (60, 95)
    ) -> bytes:
        """Take a picture: a little out of focus, with a sensor's noise, as a JPEG file."""
        rng = self.rng
        picture = Image.fromarray(np.rint(np.clip(scene, 0, 1) * 255).astype(np.uint8))
        picture = picture.filter(ImageFilter.GaussianBlur(rng.uniform(0, max(picture.size) / 1500)))
        values = np.asarray(picture).astype(np.float32)
        values += rng.standard_normal(values.shape, dtype=np.float32) * rng.uniform(*noise)
        return encode(values, "JPEG", quality=int(rng.integers(*quality)), subsampling=int(rng.integers(0, 3)))

    def fall_off(self, least: tuple[float, float]) -> Floats:
        """Return light that falls off to one side, down to a share of `least`."""
        rng = self.rng
        angle = rng.uniform(0, 2 * math.pi)
        along = self._along(angle)
        low = rng.uniform(*least)
        light: Floats = low + (1 - low) * along ** rng.uniform(0.7, 1.6)
        return light

    def _along(self, angle: float) -> Floats:
        width, height = self.size
        x, y = np.linspace(-1, 1, width, dtype=np.float32), np.linspace(-1, 1, height, dtype=np.float32)[:, None]
        along = x * np.float32(math.cos(angle)) + y * np.float32(math.sin(angle))
        light: Floats = (along - along.min()) / (along.max() - along.min())
        return light

    def vignette(self) -> Floats:
        """Return light that is dimmer towards the corners."""
        rng, (width, height) = self.rng, self.size
        x = np.linspace(-1, 1, width, dtype=np.float32) - np.float32(rng.uniform(-0.2, 0.2))
        y = np.linspace(-1, 1, height, dtype=np.float32)[:, None] - np.float32(rng.uniform(-0.2, 0.2))
        light: Floats = 1 - np.float32(rng.uniform(0.25, 0.42)) * np.minimum(x * x + y * y, 2.0)
        return light

    def shadow(self) -> Floats:
        """Return light with the edge of a shadow somewhere in it, sharp or soft."""
        rng = self.rng
        along = self._along(rng.uniform(0, 2 * math.pi))
        softness = rng.uniform(0.002, 0.06)
        lit = np.clip((along - rng.uniform(0.25, 0.75)) / softness + 0.5, 0, 1)
        deep = np.float32(rng.uniform(0.4, 0.75))
        light: Floats = deep + (1 - deep) * lit
        return light


def smooth_noise(shape: tuple[int, ...], step: int, rng: Rng) -> Floats:
    """Return noise from 0 to 1 that changes over so many pixels."""
    height, width = shape[0], shape[1]
    coarse = rng.random((max(2, height // step), max(2, width // step)), dtype=np.float32)
    return np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BILINEAR))


def encode(values: Floats, kind: str, **options: int) -> bytes:
    """Return a picture (height, width, 3) from 0 to 255 as a file."""
    file = io.BytesIO()
    Image.fromarray(np.rint(np.clip(values, 0, 255)).astype(np.uint8)).save(file, kind, **options)
    return file.getvalue()


def _turn(sketch: Sketch, degrees: float) -> Sketch:
    """Turn strokes a little, as a camera that is not held straight would; bitmaps stay as they are."""
    if sketch.points is None or sketch.ends is None:
        return sketch
    angle = math.radians(degrees)
    turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    return type(sketch).from_points(sketch.points @ turn, sketch.ends)


def _homography(corners: NDArray[np.float64], source: NDArray[np.float64]) -> list[float]:
    """Return the eight numbers that take a picture's corners to those of its source."""
    rows, right = [], []
    for (x, y), (u, v) in zip(corners, source, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        right += [u, v]
    return list(np.linalg.solve(np.array(rows), np.array(right)))


def _desk(kind: str, degrees: float, perspective: float, share: tuple[float, float]) -> Callable[[Scene], bytes]:
    return lambda scene: scene.shoot(scene.lay(scene.desk(kind), degrees, perspective, share))


def _tilted(scene: Scene) -> bytes:
    desk = scene.desk("dark" if scene.rng.random() < 0.5 else "wood")
    return scene.shoot(scene.lay(desk, 14, 0.09, (0.6, 0.9)) * scene.fall_off((0.6, 1.0))[..., None])


def _framed(scene: Scene) -> bytes:
    """A thin line around the sheet: printed on it, drawn by a program, or the edge of a scan."""
    rng, sheet = scene.rng, scene.sheet(extent=(0.45, 0.75))
    picture = Image.fromarray(np.rint(sheet * 255).astype(np.uint8))
    least = min(picture.size)
    inset, thick = int(rng.uniform(0, 0.04) * least), max(1, int(rng.uniform(0.002, 0.012) * least))
    box = (inset, inset, picture.width - 1 - inset, picture.height - 1 - inset)
    ImageDraw.Draw(picture).rectangle(box, outline=3 * (int(rng.uniform(0, 110)),), width=thick)
    framed = np.asarray(picture).astype(np.float32)
    return encode(framed, "PNG") if rng.random() < 0.4 else scene.shoot(framed / 255)


def _coloured(scene: Scene) -> bytes:
    rng = scene.rng
    ink = INKS[rng.integers(len(INKS))]
    sheet = scene.sheet(ink=(ink[0], ink[1], ink[2]))
    return scene.shoot(sheet * np.array([1, rng.uniform(0.85, 1), rng.uniform(0.6, 1)], dtype=np.float32))


def _whiteboard(scene: Scene) -> bytes:
    rng, (width, height) = scene.rng, scene.size
    shade = rng.uniform(0.55, 0.8)
    ink = (0.08, 0.08, 0.1) if rng.random() < 0.5 else INKS[rng.integers(3)]
    sheet = scene.sheet(colour=(shade, shade, shade * 1.02), ink=(ink[0], ink[1], ink[2]))
    x = (np.arange(width, dtype=np.float32) / width - np.float32(rng.uniform(0, 1))) / np.float32(rng.uniform(0.1, 0.3))
    y = (np.arange(height, dtype=np.float32) / height - np.float32(rng.uniform(0, 1)))[:, None] / np.float32(0.2)
    glare = np.exp(-x * x - y * y) * np.float32(rng.uniform(0.1, 0.35))
    return scene.shoot((sheet + glare[..., None]) * scene.fall_off((0.6, 0.9))[..., None])


def _blackboard(scene: Scene) -> bytes:
    rng = scene.rng
    board = (0.12, 0.25, 0.18) if rng.random() < 0.5 else (0.13, 0.13, 0.14)
    chalk = rng.uniform(0.65, 0.95)
    width, height = scene.size
    smudges = smooth_noise((height, width), max(8, min(width, height) // 6), rng) * np.float32(rng.uniform(0.02, 0.12))
    sheet = np.full((height, width, 3), board, dtype=np.float32) + smudges[..., None]
    cover = 1 - scene.sheet(colour=(1, 1, 1), ink=(0, 0, 0))
    return scene.shoot((sheet * (1 - cover) + chalk * cover) * scene.fall_off((0.6, 0.9))[..., None])


def _screenshot(scene: Scene) -> bytes:
    """A window with bars along one or two of its edges, or a dark theme, without any noise."""
    rng, (width, height) = scene.rng, scene.size
    is_dark = rng.random() < 0.3
    canvas, ink, bar = (0.12, 0.93, 0.2) if is_dark else (1.0, rng.uniform(0, 0.3), rng.uniform(0.75, 0.93))
    tall = int(rng.uniform(0.03, 0.1) * height)
    size = (width, height - tall)
    values = scene.sheet(size, colour=(1, 1, 1), ink=(0, 0, 0), extent=(0.4, 0.85))
    page = canvas + (ink - canvas) * (1 - values)
    strip = np.full((tall, width, 3), bar, dtype=np.float32)
    for number in range(int(rng.integers(3, 9))):
        left, side = int((number + 0.5) * width / 10), max(4, tall // 2)
        strip[tall // 4 : tall // 4 + side, left : left + side] = rng.uniform(0.2, 0.9, 3)
    shown = np.concatenate([strip, page] if rng.random() < 0.7 else [page, strip])
    return encode(shown * 255, "PNG") if rng.random() < 0.7 else encode(shown * 255, "JPEG", quality=85)


def _mixed(scene: Scene) -> bytes:
    """Several things at a time, as it mostly is."""
    rng = scene.rng
    lines = rng.choice(["", "", "ruled", "squared"])
    light = [scene.fall_off((0.5, 0.9)), scene.vignette(), scene.shadow()][rng.integers(3)][..., None]
    warm = np.array([1, rng.uniform(0.88, 1), rng.uniform(0.65, 1)], dtype=np.float32)
    if rng.random() < 0.5:
        shown = scene.lay(scene.desk("dark" if rng.random() < 0.5 else "wood"), 12, 0.06, (0.65, 0.92))
    else:
        shown = scene.sheet(lines=lines or None)
    return scene.shoot(shown * light * warm, quality=(40, 90))


CONDITIONS: dict[str, Callable[[Scene], bytes]] = {
    "noise": lambda scene: scene.shoot(scene.sheet(), noise=(3, 10)),
    "light": lambda scene: scene.shoot(scene.sheet() * scene.fall_off((0.25, 0.6))[..., None]),
    "vignette": lambda scene: scene.shoot(scene.sheet() * scene.vignette()[..., None]),
    "shadow": lambda scene: scene.shoot(scene.sheet() * scene.shadow()[..., None]),
    "dark desk": _desk("dark", 3, 0.01, (0.65, 0.95)),
    "wooden desk": _desk("wood", 3, 0.01, (0.65, 0.95)),
    "frame": _framed,
    "tilted": _tilted,
    "ruled": lambda scene: scene.shoot(scene.sheet(lines="ruled") * scene.fall_off((0.6, 1.0))[..., None]),
    "squared": lambda scene: scene.shoot(scene.sheet(lines="squared") * scene.fall_off((0.6, 1.0))[..., None]),
    "JPEG": lambda scene: scene.shoot(scene.sheet(), quality=(15, 40)),
    "colour": _coloured,
    "small": lambda scene: scene.shoot(scene.sheet(extent=(0.2, 0.35)) * scene.fall_off((0.5, 1.0))[..., None]),
    "whiteboard": _whiteboard,
    "blackboard": _blackboard,
    "screenshot": _screenshot,
    "mixed": _mixed,
}
"""How each kind of picture comes about, by its name."""
