"""What does each activation cost? One network, one recipe: real, and one-bit weights with real, int8, int4 and sign.

    python -m benchmarks.dial --data tuberlin.parquet -o runs/dial

ResNet-18 of a quarter of the width with a shortcut around every convolution, trained on TU-Berlin's training folds at
64 pixels; no test fold is looked at. `int8` is the network with real activations, exported with whole numbers and not
trained again; `int4` is the same network, trained for a few more epochs; the others are trained from scratch. All are
packed and run by `Session`. Each seed holds other sketches back, and differences are paired: taken on the same
sketches, with a 95 % interval over all of them. It can be stopped, and goes on where it was.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from benchmarks.record import best_of, write_results
from dabnet._files import write_beside
from dabnet.packed import read_model
from dabnet.runtime import Session
from dabnet.sketches import SketchSet
from dabnet.sketches.raster import show_batch
from dabnet.training.calibrate import ask
from dabnet.training.data import divide
from dabnet.training.recipe import load_recipe

if TYPE_CHECKING:
    from numpy.typing import NDArray

RECIPE = "small/tuberlin-resnet18-shortcuts-fbin-dab"
COMMON = ["nonlinearity=prelu", "compile=true"]


class Variant(NamedTuple):
    """How a network of the table is made."""

    settings: tuple[str, ...]
    start: str | None = None
    """The variant whose weights it starts from."""
    export: tuple[str, ...] = ()
    """What `dabnet export` is told; with `start` and no settings, that variant's run is exported."""


VARIANTS = {
    "real": Variant(("weights=real", "activations=real")),
    "one-bit weights": Variant(("activations=real",)),
    "int8": Variant((), "one-bit weights", ("--activations", "int8")),
    "int4": Variant(("activations=int4", "epochs=6", "learning_rate=0.0005"), "one-bit weights"),
    "sign": Variant(("activations=sign",)),
}
PAIRS = [("one-bit weights", "real"), ("int8", "one-bit weights"), ("int4", "one-bit weights"), ("sign", "int4")]


def run_command(*words: Any) -> None:
    """Run a command of dabnet's, and end with its words if it fails."""
    done = subprocess.run([sys.executable, "-m", "dabnet", *map(str, words)], stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(done.returncode)


def make(name: str, seed: int, data: Path, folder: Path, changes: list[str]) -> Path:
    """Train and export a variant, unless that is done, and return its file."""
    variant = VARIANTS[name]
    run, file = folder / f"{_slug(name)}-{seed}", folder / f"{_slug(name)}-{seed}.safetensors"
    if file.exists():
        return file
    start = None if variant.start is None else folder / f"{_slug(variant.start)}-{seed}"
    trained = run if variant.settings else start
    if variant.settings and not (run / "curves.png").exists():
        if (run / "run.json").exists():
            run_command("train", "--resume", run, "--threads", 1)
        else:
            settings = [*COMMON, *changes, *variant.settings, f"seed={seed}"]
            words = ["train", RECIPE, "--data", data, "--no-test", "--threads", 1, "-o", run]
            words += ["--from", start] if start else []
            run_command(*words, *(word for setting in settings for word in ("--set", setting)))
    more = ("--data", data) if variant.export else ()
    run_command("export", trained, "-o", file, *variant.export, *more)
    return file


def _slug(name: str) -> str:
    return name.replace(" ", "-")


def judge(path: Path, sketches: SketchSet, seed: int, changes: list[str]) -> NDArray[np.bool_]:
    """Return which of the sketches that a seed holds back a packed model guesses."""
    recipe = load_recipe(RECIPE, [*COMMON, *changes, f"seed={seed}"])
    parts = divide(sketches, recipe, 0)
    logits = ask(Session(read_model(path)), sketches, parts.validation, recipe.raster)
    return np.asarray(logits.argmax(axis=1) == parts.labels[parts.validation])


def paired(mine: NDArray[np.bool_], theirs: NDArray[np.bool_]) -> dict[str, float]:
    """Return the difference in points, and half of its 95 % interval."""
    gains = mine.astype(float) - theirs
    return {"points": 100 * gains.mean(), "interval": 196 * gains.std(ddof=1) / np.sqrt(len(gains))}


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw accuracy against time; the area of a dot is the file's size."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for row in rows:
        axes.errorbar(row["ms"], 100 * row["top1"], yerr=100 * row["error"], color="#94a3b8", zorder=1)
        axes.scatter(row["ms"], 100 * row["top1"], s=row["bytes"] / 4000, color="#1d4ed8", alpha=0.75, zorder=2)
        top = (row["ms"], 100 * (row["top1"] + row["error"]))
        label = f"{row['name'].replace(' ', chr(10))}\n{row['bytes'] / 1000:,.0f} kB\n{row['ms']:.2f} ms"
        axes.annotate(label, top, xytext=(0, 3), textcoords="offset points", ha="center", fontsize="small")
    axes.set_xlabel("ms per sketch, one thread")
    axes.set_ylabel("% of held-back sketches guessed")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.margins(0.15, 0.35)
    axes.spines[["top", "right"]].set_visible(False)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110)
    write_beside(path, picture.getvalue())


def main() -> None:
    """Train what is missing, then judge, time and compare."""
    about = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        description=about[0], epilog=about[2], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="TU-Berlin as a prepared set")
    parser.add_argument("-o", "--output", type=Path, default=Path("runs/dial"), help="folder for runs and files")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--set", dest="changes", action="append", default=[], help="change a setting of every run")
    parser.add_argument("--chart", type=Path, help="draw accuracy against time and bytes")
    options = parser.parse_args()
    console = Console()
    files: dict[str, list[Path]] = {name: [] for name in VARIANTS}
    options.output.mkdir(parents=True, exist_ok=True)
    for seed in range(options.seeds):
        for name in VARIANTS:
            console.print(f"{name}, seed {seed}")
            files[name].append(make(name, seed, options.data, options.output, options.changes))
    sketches = SketchSet(options.data)
    right = {
        name: np.concatenate([judge(path, sketches, seed, options.changes) for seed, path in enumerate(paths)])
        for name, paths in files.items()
    }
    models = {name: read_model(paths[0]) for name, paths in files.items()}
    shown = show_batch(sketches.read(np.array([0])), load_recipe(RECIPE).raster)
    sessions = {name: Session(model) for name, model in models.items()}
    seconds = best_of(300, **{name: lambda session=session: session.run(shown) for name, session in sessions.items()})
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "top1": float(found.mean()),
            "error": float(found.std() / np.sqrt(len(found))),
            "ms": 1e3 * seconds[name],
            "bytes": files[name][0].stat().st_size,
        }
        for name, found in right.items()
    ]
    table = Table("activations", "held-back sketches guessed, %", "ms", "bytes", title=f"{options.seeds} seeds")
    for row in rows:
        table.add_row(
            row["name"],
            f"{100 * row['top1']:.1f} ± {100 * row['error']:.1f}",
            f"{row['ms']:.3f}",
            f"{row['bytes']:,}",
        )
    console.print(table)
    differences = [{"of": mine, "against": other, **paired(right[mine], right[other])} for mine, other in PAIRS]
    for each in differences:
        console.print(f"{each['of']} against {each['against']}: {each['points']:+.1f} ± {each['interval']:.1f} points")
    figures = {"recipe": RECIPE, "settings": [*COMMON, *options.changes], "seeds": options.seeds, "rows": rows}
    path = write_results("dial", {**figures, "differences": differences, "sketches": len(right["real"])})
    console.print(f"Written to {path}.")
    if options.chart:
        draw(rows, options.chart)


if __name__ == "__main__":
    main()
