"""How fast do drawings become what a network sees? Rasterizing, and whole batches for training, on one core.

    python -m benchmarks.raster [--data SET.parquet ...]

Without --data the drawings are synthetic: 2,000 as strokes, and the same as images. Beside our rasterizer stands
Pillow, which draws at four times the size and shrinks, as is usual. A batch is 64 drawings taken at random from the
prepared set, changed, rasterized at 73x73 and cut to 64x64; "cold" reads every drawing from the disk's cache anew.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw
from rich.console import Console
from rich.table import Table

from benchmarks.record import best_of, write_results
from dabnet.sketches.crops import crop_source_size
from dabnet.sketches.prepare import prepare
from dabnet.sketches.raster import Raster, rasterize, rasterize_batch
from dabnet.sketches.sketch import Sketch
from dabnet.sketches.sources import open_source
from dabnet.sketches.store import SketchSet
from dabnet.training.augment import ImageAugmentation
from dabnet.training.augment_strokes import StrokeAugmentation, pen_widths

DRAWINGS = 2000
BATCH, SIZE = 64, 64
REPEATS = 5


def draw_with_pillow(sketch: Sketch, raster: Raster) -> np.ndarray[Any, Any]:
    big = raster.size * 4
    assert sketch.points is not None
    low, high = sketch.points.min(axis=0), sketch.points.max(axis=0)
    scale = big * (1 - 2 * raster.margin - raster.pen) / (high - low).max()
    image = Image.new("L", (big, big))
    pen = ImageDraw.Draw(image)
    for stroke in sketch.strokes:
        placed = (stroke - (low + high) / 2) * scale + big / 2
        pen.line([tuple(point) for point in placed], fill=255, width=round(raster.pen * big), joint="curve")
    return np.asarray(image.resize((raster.size, raster.size), Image.Resampling.BOX))


def measure_rate(sketches: list[Sketch], size: int) -> dict[str, float]:
    """Return drawings per second."""
    raster, out = Raster(size), np.empty((size, size), dtype=np.uint8)
    contestants = {"dabnet": lambda: [rasterize(sketch, raster, out) for sketch in sketches]}
    if sketches[0].points is not None:
        contestants["Pillow"] = lambda: [draw_with_pillow(sketch, raster) for sketch in sketches]
    times = best_of(REPEATS, **contestants)
    return {f"{name} {size}x{size}": len(sketches) / seconds for name, seconds in times.items()}


def load_batch(sketches: SketchSet, rng: np.random.Generator, generator: torch.Generator) -> torch.Tensor:
    rows = rng.integers(0, len(sketches), BATCH)
    raster = Raster(crop_source_size(SIZE))
    changed, factors = StrokeAugmentation().apply(sketches.read(rows), generator)
    images = rasterize_batch(changed, raster, pen_widths(raster, factors))
    return ImageAugmentation(deform=0.02).apply(torch.from_numpy(images), SIZE, generator)


def measure_batches(path: Path) -> dict[str, float]:
    """Return the milliseconds of a batch, with nothing in our memory and with all of it."""
    rng, generator = np.random.default_rng(0), torch.Generator()
    cold, warm = SketchSet(path, cache_bytes=0), SketchSet(path, cache_bytes=2**33)
    warm.read(range(len(warm)))
    runs = {name: partial(load_batch, sketches, rng, generator) for name, sketches in (("cold", cold), ("warm", warm))}
    return {name: seconds * 1e3 for name, seconds in best_of(30, **runs).items()}


def synthetic_sets(folder: Path) -> list[Path]:
    strokes = prepare(open_source("synthetic", limit=DRAWINGS // 20), folder / "synthetic strokes.parquet").path
    drawn = SketchSet(strokes)
    images = rasterize_batch(drawn.read(range(len(drawn))), Raster(256, pen=0.006))
    np.savez(folder / "images.npz", images=images, labels=drawn.labels, class_names=np.array(drawn.classes))
    return [strokes, prepare(open_source(folder / "images.npz"), folder / "synthetic images.parquet").path]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="*", default=[], help="prepared sets to use instead")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    console = Console()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, console.status("preparing") as status:
        for path in arguments.data or synthetic_sets(Path(folder)):
            status.update(f"measuring {path.stem}")
            sketches = SketchSet(path)
            chosen = np.random.default_rng(1).choice(len(sketches), min(DRAWINGS, len(sketches)), replace=False)
            drawings = sketches.read(chosen)
            rates = {**measure_rate(drawings, 224), **measure_rate(drawings, 64)}
            results[path.stem] = {"drawings per second": rates, "batch of 64, milliseconds": measure_batches(path)}

    table = Table("set", "what", title="From a prepared set to what a network sees, one core")
    for heading in ("figure", "wanted"):
        table.add_column(heading, justify="right")
    for name, found in results.items():
        for what, rate in found["drawings per second"].items():
            wanted = "5,000/s" if what == "dabnet 224x224" else ""
            table.add_row(name, f"rasterize, {what}", f"{rate:,.0f}/s", wanted)
        for what, milliseconds in found["batch of 64, milliseconds"].items():
            table.add_row(name, f"batch of {BATCH} at {SIZE}x{SIZE}, {what}", f"{milliseconds:.1f} ms", "30 ms")
    console.print(table)
    path = write_results("raster", results)
    console.print(f"Written to {path.relative_to(path.parents[2])}")


if __name__ == "__main__":
    main()
