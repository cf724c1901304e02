"""How many drawings that are right as strokes stay right when they are photographed?

    python -m benchmarks.photos [--drawings 40] [--data SET.parquet SET.npz ...] [--conditions light shadow ...]

The drawings are the examples, synthetic ones and, with --data, real ones of each set's fold 0, as many of each as there
are; only those that the model that ships names correctly count. Each is photographed under every condition with every
pen (`benchmarks/photographs.py`). "before" takes all pictures for clean ones. The last lines tell how long it takes to
find the ink of 12 megapixels once they are decoded.
"""

from __future__ import annotations

import argparse
import io
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.photographs import CONDITIONS, PENS, Scene, take_photograph
from benchmarks.record import best_of, write_results
from dabnet import _native
from dabnet.errors import InputError
from dabnet.runtime.recognizer import Recognizer
from dabnet.sketches.files import SUFFIXES
from dabnet.sketches.images import sketch_from_bytes, sketch_from_picture
from dabnet.sketches.raster import Raster, rasterize
from dabnet.sketches.read import read_sketch
from dabnet.sketches.sketch import Sketch
from dabnet.sketches.sources import open_source
from dabnet.sketches.store import SketchSet
from dabnet.sketches.synthetic import synthetic_strokes

EXAMPLES = Path(__file__).parents[1] / "examples"
SHEET = Path(__file__).parents[1] / "docs" / "images" / "photographs.png"
LEAST, TARGET = 0.8, 0.9
"""Shares that should stay right in every condition."""
PIECES = 12
"""Parts of an .npz file that are looked at."""
CELL = 104
"""Pixels per side of a picture on the contact sheet."""


class Named(NamedTuple):
    """A drawing and what it shows."""

    label: str
    sketch: Sketch


def read_held_out(path: Path, rng: np.random.Generator, most: int) -> list[Named]:
    """Read up to so many drawings of a set's fold 0, or of all of it if it has no folds."""
    if path.suffix == ".npz":
        source = open_source(path)
        pieces = sorted(rng.permutation(len(source))[:PIECES])  # going forward through a file is fast
        drawings = [drawing for piece in pieces for drawing in source.read(int(piece))]
        held_out = [(source.classes[each.label], each.sketch) for each in drawings if not each.fold]
        readable = [Named(label, sketch) for label, sketch in held_out if isinstance(sketch, Sketch)]
        return [readable[i] for i in rng.permutation(len(readable))[:most]]
    sketches = SketchSet(path)
    rows = rng.permutation(np.flatnonzero(sketches.folds == 0))[:most]
    labels = sketches.labels
    return [Named(sketches.classes[labels[row]], sketches[int(row)]) for row in rows]


def choose_drawings(recognizer: Recognizer, data: list[Path], count: int, rng: np.random.Generator) -> list[Named]:
    """Return drawings that are right as strokes, in turn from each kind of them."""
    sketches, labels, names = synthetic_strokes(count * 4, seed=int(rng.integers(1000)))
    pools = [
        [Named(path.stem, read_sketch(path)) for path in sorted(EXAMPLES.iterdir()) if path.suffix in SUFFIXES],
        [Named(names[label], sketch) for sketch, label in zip(sketches, labels, strict=True)],
        *(read_held_out(path, rng, count * 8) for path in data),
    ]
    chosen = []
    for pool in pools:
        known = [pool[i] for i in rng.permutation(len(pool)) if pool[i].label in recognizer.labels]
        answers = recognizer.recognize([drawing.sketch for drawing in known], top=1) if known else []
        chosen.append([one for one, answer in zip(known, answers, strict=True) if answer[0][0] == one.label])
    in_turn = [drawing for drawing in chain.from_iterable(zip_longest(*chosen)) if drawing is not None]
    return in_turn[:count]


def guess(recognizer: Recognizer, sketch: Sketch | None) -> str | None:
    return None if sketch is None else recognizer.recognize(sketch, top=1)[0][0]


def read(photograph: bytes, is_clean: bool = False) -> Sketch | None:
    try:
        if is_clean:
            return sketch_from_picture(Image.open(io.BytesIO(photograph)), is_clean=True)
        return sketch_from_bytes(photograph)
    except InputError:
        return None


class Shown(NamedTuple):
    """What the contact sheet shows of a condition: the picture, and each time what the network sees, and its guess."""

    title: str
    photograph: bytes
    before: tuple[Sketch | None, str | None]
    after: tuple[Sketch | None, str | None]


def show_conditions(recognizer: Recognizer, conditions: list[str]) -> list[Shown]:
    """Photograph an example under each condition: others' drawings are not ours to show."""
    names, shown = ["umbrella.json", "snowman.png", "cactus.json", "key.svg", "apple.json", "hourglass.json"], []
    for turn, condition in enumerate(conditions):
        name, pen = names[turn % len(names)], list(PENS)[turn % len(PENS)]
        photograph = take_photograph(read_sketch(EXAMPLES / name), condition, pen, np.random.default_rng(turn))
        before, now = read(photograph, is_clean=True), read(photograph)
        views = (before, guess(recognizer, before)), (now, guess(recognizer, now))
        shown.append(Shown(f"{condition}, {pen}", photograph, *views))
    return shown


def draw_contact_sheet(shown: list[Shown], columns: int = 3) -> Image.Image:
    """Draw every condition's picture with what was seen of it before and is seen of it now."""
    gap, text, font = 10, 16, ImageFont.load_default(13)
    wide, tall = 3 * (CELL + 4) + 2 * gap, CELL + 2 * text + gap
    sheet = Image.new("RGB", (columns * wide, -(-len(shown) // columns) * tall), "white")
    pen = ImageDraw.Draw(sheet)
    for number, (title, photograph, *views) in enumerate(shown):
        left, top = number % columns * wide + gap, number // columns * tall + text
        pen.text((left, top - text), title, fill="black", font=font)
        picture = Image.open(io.BytesIO(photograph)).convert("RGB")
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
        photograph = CONDITIONS[condition](Scene(sketch, PENS["pen"], (4000, 3000), rng))
        picture = Image.open(io.BytesIO(photograph))
        picture.load()
        rgba = np.asarray(picture.convert("RGBA"))
        found = best_of(
            7,
            core=lambda rgba=rgba: _native.find_ink(rgba, bitmap, False),  # type: ignore[misc]
            whole=lambda picture=picture: sketch_from_picture(picture),  # type: ignore[misc]
        )
        times[f"{condition}, from RGBA pixels"] = found["core"] * 1e3
        times[f"{condition}, from a decoded Pillow image"] = found["whole"] * 1e3
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drawings", type=int, default=40, help="under each condition with each pen")
    parser.add_argument("--data", type=Path, nargs="*", default=[], help="prepared sets or .npz files of real drawings")
    parser.add_argument("--conditions", nargs="*", choices=list(CONDITIONS), default=list(CONDITIONS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sheet", type=Path, default=SHEET, help="where to draw the contact sheet")
    arguments = parser.parse_args()
    console, recognizer, rng = Console(), Recognizer.load(), np.random.default_rng(arguments.seed)
    drawings = choose_drawings(recognizer, arguments.data, arguments.drawings, rng)
    right: dict[str, dict[str, Any]] = {}
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("photographs", total=len(arguments.conditions) * len(PENS) * len(drawings))
        for condition in arguments.conditions:
            right[condition] = {pen: {"before": 0, "now": 0} for pen in PENS}
            for pen in PENS:
                for label, sketch in drawings:
                    photograph = take_photograph(sketch, condition, pen, rng)
                    before, now = read(photograph, is_clean=True), read(photograph)
                    guesses = guess(recognizer, before), guess(recognizer, now)
                    right[condition][pen]["before"] += guesses[0] == label
                    right[condition][pen]["now"] += guesses[1] == label
                    progress.advance(task)
        progress.update(task, description="timing")
        times = measure_time(rng)

    table = Table("condition", *(f"{pen}, {when}" for pen in PENS for when in ("before", "now")), title="Stay right")
    for condition, found in right.items():
        cells = [f"{found[pen][when] / len(drawings):.0%}" for pen in PENS for when in ("before", "now")]
        table.add_row(condition, *cells)
    console.print(table)
    worst = min(found[pen]["now"] / len(drawings) for found in right.values() for pen in PENS)
    console.print(f"{len(drawings)} drawings each; the worst stays right in {worst:.0%} (at least {LEAST:.0%}, "
                  f"target {TARGET:.0%})", highlight=False)  # fmt: skip
    for name, milliseconds in times.items():
        console.print(f"12 megapixels, {name}: {milliseconds:.1f} ms (40 ms)", highlight=False)
    sheet = draw_contact_sheet(show_conditions(recognizer, arguments.conditions))
    arguments.sheet.parent.mkdir(parents=True, exist_ok=True)
    sheet.quantize(64).save(arguments.sheet, optimize=True)
    settings = {"drawings": len(drawings), "seed": arguments.seed, "data": [path.name for path in arguments.data]}
    path = write_results("photos", {**settings, "stay right": right, "milliseconds for 12 megapixels": times})
    console.print(f"Written to {path.relative_to(path.parents[2])} and {arguments.sheet}")


if __name__ == "__main__":
    main()
