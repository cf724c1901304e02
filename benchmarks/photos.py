"""How many drawings that are right as strokes stay right when they are photographed?

    python -m benchmarks.photos [--data SET.parquet ...] [--drawings 100] [--conditions light shadow ...]

The drawings are the examples and, with --data, held-out ones of prepared sets (fold 0), in turn from each set; without
--data, synthetic ones. Only those that the model that ships names correctly as strokes count. Each is photographed
under every condition with every pen (`benchmarks/photographs.py`). "before" takes all pictures for clean ones. The last
lines tell how long it takes to find the ink of 12 megapixels once they are decoded.
"""

from __future__ import annotations

import argparse
import io
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain, product, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.photographs import CONDITIONS, PENS, Scene, take_photograph
from benchmarks.record import best_of, write_results
from dabnet import _native
from dabnet.errors import InputError
from dabnet.packed import find_model
from dabnet.runtime.recognizer import Recognizer
from dabnet.sketches.files import SUFFIXES
from dabnet.sketches.images import sketch_from_bytes, sketch_from_picture
from dabnet.sketches.raster import Raster, rasterize
from dabnet.sketches.read import read_sketch
from dabnet.sketches.sketch import Sketch
from dabnet.sketches.store import SketchSet
from dabnet.sketches.synthetic import synthetic_strokes
from dabnet.sketches.vocabulary import load_vocabulary, match_classes

if TYPE_CHECKING:
    from collections.abc import Sequence

EXAMPLES = Path(__file__).parents[1] / "examples"
SHEET = Path(__file__).parents[1] / "docs" / "images" / "photographs.png"
LEAST, TARGET = 0.8, 0.9
"""Shares that should stay right in every condition."""
CELL = 104
"""Pixels per side of a picture on the contact sheet."""


class Named(NamedTuple):
    """A drawing and what it shows."""

    label: str
    sketch: Sketch


def read_held_out(path: Path, labels: Sequence[str], most: int, rng: np.random.Generator) -> list[Named]:
    """Read up to so many drawings of a prepared set's fold 0, of classes that are among the labels."""
    sketches = SketchSet(path)
    known = np.array(match_classes(sketches.classes, labels, load_vocabulary("everyday")))[sketches.labels]
    rows = rng.permutation(np.flatnonzero((sketches.folds == 0) & (known >= 0)))[:most]
    return [Named(labels[known[row]], sketches[int(row)]) for row in rows]


def draw_synthetic(labels: Sequence[str], count: int, rng: np.random.Generator) -> list[Named]:
    sketches, numbers, names = synthetic_strokes(count, seed=int(rng.integers(1000)))
    drawn = [Named(names[number], sketch) for sketch, number in zip(sketches, numbers, strict=True)]
    return [drawing for drawing in drawn if drawing.label in labels]


def choose_drawings(recognizer: Recognizer, data: list[Path], count: int, rng: np.random.Generator) -> list[Named]:
    """Return so many drawings that are right as strokes, in turn from the examples and each set."""
    labels = recognizer.labels
    examples = [Named(path.stem, read_sketch(path)) for path in sorted(EXAMPLES.iterdir()) if path.suffix in SUFFIXES]
    pools = [[examples[i] for i in rng.permutation(len(examples))]]
    pools += [read_held_out(path, labels, 4 * count, rng) for path in data] or [draw_synthetic(labels, 4 * count, rng)]
    chosen = []
    for pool in pools:
        answers = recognizer.recognize([drawing.sketch for drawing in pool], top=1)
        chosen.append([one for one, answer in zip(pool, answers, strict=True) if answer[0][0] == one.label])
    in_turn = [drawing for drawing in chain.from_iterable(zip_longest(*chosen)) if drawing is not None]
    return in_turn[:count]


def guess(recognizer: Recognizer, sketch: Sketch | None) -> str | None:
    return None if sketch is None else recognizer.recognize(sketch, top=1)[0][0]


def read(file: bytes, is_clean: bool = False) -> Sketch | None:
    try:
        if is_clean:
            return sketch_from_picture(Image.open(io.BytesIO(file)), is_clean=True)
        return sketch_from_bytes(file)
    except InputError:
        return None


def photograph(sketch: Sketch, condition: str, pen: str, seed: Sequence[int]) -> bytes:
    """Take a photograph that depends on nothing but these arguments."""
    numbers = [*seed, list(CONDITIONS).index(condition), list(PENS).index(pen)]
    return take_photograph(sketch, condition, pen, np.random.default_rng(numbers))


def count_right(recognizer: Recognizer, drawings: Sequence[Named], seed: int, cell: tuple[str, str]) -> dict[str, int]:
    """Photograph all drawings under one condition with one pen; return how many stay right, before and now."""
    right = {"before": 0, "now": 0}
    for number, (label, sketch) in enumerate(drawings):
        file = photograph(sketch, *cell, (seed, number))
        right["before"] += guess(recognizer, read(file, is_clean=True)) == label
        right["now"] += guess(recognizer, read(file)) == label
    return right


class Shown(NamedTuple):
    """What the contact sheet shows of a condition: the picture, and each time what the network sees, and its guess."""

    title: str
    file: bytes
    before: tuple[Sketch | None, str | None]
    after: tuple[Sketch | None, str | None]


def show_conditions(recognizer: Recognizer, conditions: list[str]) -> list[Shown]:
    """Photograph an example under each condition: others' drawings are not ours to show."""
    names, shown = ["umbrella.json", "snowman.png", "cactus.json", "key.svg", "apple.json", "hourglass.json"], []
    for turn, condition in enumerate(conditions):
        name, pen = names[turn % len(names)], list(PENS)[turn % len(PENS)]
        file = take_photograph(read_sketch(EXAMPLES / name), condition, pen, np.random.default_rng(turn))
        before, now = read(file, is_clean=True), read(file)
        views = (before, guess(recognizer, before)), (now, guess(recognizer, now))
        shown.append(Shown(f"{condition}, {pen}", file, *views))
    return shown


def draw_contact_sheet(shown: list[Shown], columns: int = 3) -> Image.Image:
    """Draw every condition's picture with what was seen of it before and is seen of it now."""
    gap, text, font = 10, 16, ImageFont.load_default(13)
    wide, tall = 3 * (CELL + 4) + 2 * gap, CELL + 2 * text + gap
    sheet = Image.new("RGB", (columns * wide, -(-len(shown) // columns) * tall), "white")
    pen = ImageDraw.Draw(sheet)
    for number, (title, file, *views) in enumerate(shown):
        left, top = number % columns * wide + gap, number // columns * tall + text
        pen.text((left, top - text), title, fill="black", font=font)
        picture = Image.open(io.BytesIO(file)).convert("RGB")
        picture.thumbnail((CELL, CELL), Image.Resampling.BOX)
        sheet.paste(picture, (left, top))
        for column, (name, (sketch, answer)) in enumerate(zip(("before", "now"), views, strict=True), start=1):
            at = (left + column * (CELL + 4), top)
            if sketch is not None:
                sheet.paste(Image.fromarray(255 - rasterize(sketch, Raster(CELL, pen=0.03))), at)
            pen.rectangle((*at, at[0] + CELL - 1, at[1] + CELL - 1), outline="#cccccc")
            pen.text((at[0], top + CELL), f"{name}: {answer or 'no ink'}"[:17], fill="#666666", font=font)
    return sheet


def measure_time(rng: np.random.Generator) -> dict[str, float]:
    """Return the milliseconds to find the ink of 12 megapixels, and with Pillow's handing over of the pixels."""
    sketch, bitmap, times = read_sketch(EXAMPLES / "umbrella.json"), np.empty((256, 128), dtype=np.uint8), {}
    for condition in ("tilted", "squared"):
        file = CONDITIONS[condition](Scene(sketch, PENS["pen"], (4000, 3000), rng))
        picture = Image.open(io.BytesIO(file))
        picture.load()
        rgba = np.asarray(picture.convert("RGBA"))
        found = best_of(
            30,
            core=lambda rgba=rgba: _native.find_ink(rgba, bitmap, False),  # type: ignore[misc]
            whole=lambda picture=picture: sketch_from_picture(picture),  # type: ignore[misc]
        )
        times[f"{condition}, from RGBA pixels"] = found["core"] * 1e3
        times[f"{condition}, from a decoded Pillow image"] = found["whole"] * 1e3
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drawings", type=int, default=100, help="under each condition with each pen")
    parser.add_argument("--data", type=Path, nargs="*", default=[], help="prepared sets of real drawings")
    parser.add_argument("--conditions", nargs="*", choices=list(CONDITIONS), default=list(CONDITIONS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--sheet", type=Path, default=SHEET, help="where to draw the contact sheet")
    arguments = parser.parse_args()
    console, recognizer, rng = Console(), Recognizer.load(threads=1), np.random.default_rng(arguments.seed)
    drawings = choose_drawings(recognizer, arguments.data, arguments.drawings, rng)
    cells = list(product(arguments.conditions, PENS))
    with Progress(console=console, transient=True) as progress, ProcessPoolExecutor(arguments.processes) as pool:
        counts = pool.map(partial(count_right, recognizer, drawings, arguments.seed), cells)
        right = dict(zip(cells, progress.track(counts, total=len(cells), description="photographs"), strict=True))
    times = measure_time(rng)

    table = Table("condition", *(f"{pen}, {when}" for pen in PENS for when in ("before", "now")), title="Stay right")
    for condition in arguments.conditions:
        counted = (right[condition, pen][when] for pen in PENS for when in ("before", "now"))
        table.add_row(condition, *(f"{count / len(drawings):.0%}" for count in counted))
    console.print(table)
    worst = min(found["now"] for found in right.values()) / len(drawings)
    console.print(f"{len(drawings)} drawings each; the worst stays right in {worst:.0%} (at least {LEAST:.0%}, "
                  f"target {TARGET:.0%})", highlight=False)  # fmt: skip
    for name, milliseconds in times.items():
        console.print(f"12 megapixels, {name}: {milliseconds:.1f} ms (40 ms)", highlight=False)
    sheet = draw_contact_sheet(show_conditions(recognizer, arguments.conditions))
    arguments.sheet.parent.mkdir(parents=True, exist_ok=True)
    sheet.quantize(64).save(arguments.sheet, optimize=True)
    model = f"{find_model('default').stem} at {recognizer.session.input_size[1]} pixels"
    settings = {"drawings": len(drawings), "seed": arguments.seed, "data": [path.name for path in arguments.data]}
    stay = {condition: {pen: right[condition, pen] for pen in PENS} for condition in arguments.conditions}
    path = write_results(
        "photos", {"model": model, **settings, "stay right": stay, "milliseconds for 12 megapixels": times}
    )
    console.print(f"Written to {path.relative_to(path.parents[2])} and {arguments.sheet}")


if __name__ == "__main__":
    main()
