"""The pictures, each a function that draws one file; `PICTURES` has them by the path below docs/."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from .blocks import ROOT
from .tables import COLUMNS, ENGINES, has_results, read_results, times_of

IMAGES = ROOT / "docs" / "images"
OURS, THEIRS = "#1d4ed8", "#94a3b8"


def bench(path: Path) -> None:
    """Draw how long one sketch takes in each engine."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.2), layout="constrained")
    panels = figure.subplots(1, len(ENGINES), sharey=True)
    for axes, (machine, (name, instructions)) in zip(panels, ENGINES.items(), strict=True):
        times = times_of(read_results(name)["races"][0], instructions)
        engines = [engine for engine in COLUMNS if engine in times][::-1]
        bars = axes.barh([COLUMNS[each] for each in engines], [times[each] for each in engines],
                         color=[OURS if each == "dabnet" else THEIRS for each in engines])  # fmt: skip
        axes.bar_label(bars, labels=[f"{times[each]:.3g}" for each in engines], padding=3)
        axes.set_title(machine, fontsize="medium")
        axes.margins(x=0.15)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(left=False)
    figure.suptitle("ResNet-18 with one bit per weight and activation: ms for one sketch of 224x224")
    figure.savefig(path, dpi=100)


def unfinished(path: Path) -> None:
    """Draw how often the default model is right while a drawing is being made, from the table of its card's page."""
    from dabnet.packed.cards import read_card
    from dabnet.training.pictures import draw_unfinished

    page = (ROOT / read_card("default").page).read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) ?% \| ([\d.]+) % \| ([\d.]+) % \| ([\d.]+) \|$", page, re.MULTILINE)
    keys = ("share", "top1", "top5", "confidence")
    scales = (100, 100, 100, 1)
    figures = [{key: float(cell) / scale for key, cell, scale in zip(keys, row, scales, strict=True)} for row in rows]
    draw_unfinished(figures, path)


def photographs(path: Path) -> None:
    """Draw an example under each condition, with what is seen of it."""
    from benchmarks.photographs import CONDITIONS
    from benchmarks.photos import draw_contact_sheet, show_conditions
    from dabnet import Recognizer

    draw_contact_sheet(show_conditions(Recognizer.load(threads=1), list(CONDITIONS))).save(path)


def synthetic(path: Path) -> None:
    """Draw a contact sheet of the drawings that a program makes."""
    with tempfile.TemporaryDirectory() as folder:
        made = str(Path(folder, "things.parquet"))
        drawn = ["--each", "6", "--size", "64", "-o", str(path)]
        for words in (["prepare", "synthetic", "--limit", "10", "-o", made], ["show", made, *drawn]):
            command = [sys.executable, "-m", "dabnet", "data", *words]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def dial(path: Path) -> None:
    """Draw what each kind of activation gets right, and what it costs."""
    from benchmarks.dial import draw

    draw(read_results("dial")["rows"], path)


def shrink(path: Path) -> None:
    """Save a picture with few colours: it is in the repository to stay."""
    from PIL import Image

    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(64, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def screenshots() -> None:
    """Take pictures of the page, in Chromium."""
    subprocess.run([sys.executable, "-m", "tests.web.screenshots"], cwd=ROOT, check=True)


def paper() -> None:
    """Draw and print every claim of the paper that needs no training."""
    subprocess.run([sys.executable, "-m", "dabnet", "paper", "all"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


PICTURES: dict[str, Callable[[Path], None]] = {
    "bench.png": bench,
    "photographs.png": photographs,
    "synthetic.png": synthetic,
    "unfinished.png": unfinished,
}
if has_results("dial"):
    PICTURES["dial.png"] = dial
