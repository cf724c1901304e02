"""How well does a model learn classes beside its own? Five of Quick, Draw! that it never saw, 20 drawings of each.

    python -m benchmarks.add_classes --data union.parquet --write-recipe base.toml
    dabnet train base.toml --data union.parquet --no-test -o runs/base
    dabnet export runs/base --calibrate -o base.safetensors
    dabnet features base.safetensors --data union.parquet
    python -m benchmarks.add_classes --data union.parquet --base base.safetensors

The set is a prepared one with the drawings of Quick, Draw! in 20 folds, such as a union of it and TU-Berlin. The recipe
leaves out two groups of five classes, which the base then never saw. Each group is added in turn, several times: from
20 drawings of each class, chosen at random from the later half of the folds, and tested on all of the earlier half. The
old classes are tested on fold 0, before and after. Standard errors are over drawings; `spread` is over the repetitions.
The time is that of the whole command, `dabnet train --add`, from its start to its last word.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.record import write_results
from dabnet.packed import read_model
from dabnet.runtime import Session
from dabnet.runtime.recognizer import raster_of
from dabnet.sketches import SketchSet
from dabnet.sketches.folds import TRAIN_ONLY
from dabnet.sketches.raster import show_batch
from dabnet.sketches.vocabulary import match_classes

if TYPE_CHECKING:
    from numpy.typing import NDArray

GROUPS = {
    "chosen": ("clock", "lightning", "pencil", "smiley face", "star"),
    "drawn by lot": ("beard", "lipstick", "rake", "sink", "triangle"),
}
"""TU-Berlin has none of these."""
LEARNT = 20
BATCH = 64


class Answers(NamedTuple):
    """What a model says of some drawings: logits (drawings, classes), and the number of the right class."""

    logits: NDArray[np.float32]
    labels: NDArray[np.int64]

    @property
    def right(self) -> NDArray[np.bool_]:
        """Which drawings are guessed, of all classes."""
        return np.asarray(self.logits.argmax(axis=1) == self.labels)

    def right_among(self, classes: list[int]) -> NDArray[np.bool_]:
        """Return which drawings are guessed, of these classes."""
        return np.asarray(np.array(classes)[self.logits[:, classes].argmax(axis=1)] == self.labels)


def ask(path: Path | str, sketches: SketchSet, rows: NDArray[np.int64]) -> Answers:
    """Show drawings to a model as they are."""
    model = read_model(path)
    session, raster = Session(model), raster_of(model)
    labels = np.array(match_classes(sketches.classes, model.labels), dtype=np.int64)[sketches.labels[rows]]
    parts = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]
    return Answers(np.concatenate([session.run(show_batch(sketches.read(part), raster)) for part in parts]), labels)


def summarize(right: NDArray[np.bool_]) -> dict[str, float]:
    """Return the share that is right, (repetitions, drawings), its error over drawings and spread over repetitions."""
    each, drawings = right.mean(axis=1), right.mean(axis=0)
    spread = float(each.std(ddof=1)) if len(each) > 1 else 0.0
    error = float(drawings.std() / np.sqrt(len(drawings)))
    return {"share": float(each.mean()), "error": error, "spread": spread, "drawings": len(drawings)}


def write_drawings(sketches: SketchSet, rows: NDArray[np.int64], folder: Path) -> None:
    """Write drawings as JSON, all of them to learn from, and a copy for the fold that every set has to have."""
    for part in ("train", "test"):
        for row, sketch in zip(rows, sketches.read(rows), strict=True):
            path = folder / part / sketches.classes[sketches.labels[row]] / f"{row}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps([stroke.tolist() for stroke in sketch.strokes]))


def add_once(base: Path, drawings: Path, output: Path, threads: int) -> tuple[dict[str, Any], float]:
    """Run `dabnet train --add`, and return what it printed and its seconds."""
    command: list[Any] = [sys.executable, "-m", "dabnet", "train", "--from", base, "--add", drawings, "-o", output]
    command += ["--no-test", "--json", "--threads", threads]
    start = time.perf_counter()
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout), time.perf_counter() - start


def measure(
    base: Path, sketches: SketchSet, group: tuple[str, ...], repeats: int, threads: int, old: SketchSet,
    old_rows: NDArray[np.int64], before: Answers,
) -> dict[str, Any]:  # fmt: skip
    """Add a group of classes several times, each from other drawings."""
    numbers = [sketches.classes.index(name) for name in group]
    is_drawn = sketches.folds != TRAIN_ONLY
    middle = (int(sketches.folds.max()) + 1) // 2
    tested = np.flatnonzero(np.isin(sketches.labels, numbers) & is_drawn & (sketches.folds < middle))
    found: dict[str, list[Any]] = {name: [] for name in ("among", "whole", "after", "told", "seconds")}
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        pools = [np.flatnonzero((sketches.labels == number) & (sketches.folds >= middle)) for number in numbers]
        learnt = np.concatenate([rng.choice(pool, LEARNT, replace=False) for pool in pools])
        with tempfile.TemporaryDirectory() as folder:
            write_drawings(sketches, learnt, Path(folder, "drawings"))
            told, seconds = add_once(base, Path(folder, "drawings"), Path(folder, "added"), threads)
            path = Path(folder, "added", "model.safetensors")
            labels = list(read_model(path).labels)
            answers = ask(path, sketches, tested)
            after = ask(path, old, old_rows).right
        found["among"].append(answers.right_among([labels.index(name) for name in group]))
        found["whole"].append(answers.right)
        found["after"].append(after)
        found["told"].append({name: told[name] for name in ("held_back_top1", "estimated_cost", "views")})
        found["seconds"].append(seconds)
    among, whole, after = (np.stack(found[name]) for name in ("among", "whole", "after"))
    changes = after.mean(axis=0) - before.right
    return {
        "classes": group,
        "among_themselves": summarize(among),
        "in_whole_vocabulary": summarize(whole),
        "old_before": summarize(before.right[None]),
        "old_after": summarize(after),
        "old_lost": {"share": float(-changes.mean()), "error": float(changes.std() / np.sqrt(len(changes)))},
        "seconds": found["seconds"],
        "told": found["told"],
    }


def write_recipe(sketches: SketchSet, path: Path) -> None:
    """Write the recipe of a base that never sees the classes of either group."""
    left_out = {name for group in GROUPS.values() for name in group}
    kept = [name for name in sketches.classes if name not in left_out]
    settings = 'base = "bases/ingredients"\nepochs = 10\n'
    path.write_text(f"# A quarter of the width, without ten classes.\n{settings}classes = {json.dumps(kept)}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a prepared set with Quick, Draw! in it")
    parser.add_argument("--base", type=Path, help="a packed model that never saw the classes, its features beside it")
    parser.add_argument("--write-recipe", type=Path, help="write the recipe of such a model, and stop")
    parser.add_argument("--old-data", type=Path, help="a set to test the old classes on; --data if left out")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    sketches = SketchSet(arguments.data)
    if arguments.write_recipe:
        write_recipe(sketches, arguments.write_recipe)
        return
    if arguments.base is None:
        sys.exit("Give a base to add classes to with --base; --write-recipe says how to train one.")
    known = {name for group in GROUPS.values() for name in group} & set(read_model(arguments.base).labels)
    if known:
        sys.exit(f"'{arguments.base}' knows {', '.join(sorted(known))} already: the classes have to be new to it.")

    console = Console()
    old = SketchSet(arguments.old_data) if arguments.old_data else sketches
    has_label = np.array(match_classes(old.classes, read_model(arguments.base).labels))[old.labels] >= 0
    old_rows = np.flatnonzero(has_label & (old.folds == 0))
    with console.status("testing the old classes"):
        tested = (old, old_rows, ask(arguments.base, old, old_rows))
    results: dict[str, Any] = {}
    table = Table("five new classes", "among themselves", "in the whole vocabulary", "old: before", "lost", "minutes")
    for name, group in GROUPS.items():
        with console.status(f"adding {', '.join(group)}"):
            found = measure(arguments.base, sketches, group, arguments.repeats, arguments.threads, *tested)
        results[name] = found
        keys = ("among_themselves", "in_whole_vocabulary", "old_before", "old_lost")
        shares = [f"{found[key]['share']:.1%} ± {found[key]['error']:.1%}" for key in keys]
        table.add_row(name, *shares, f"{max(found['seconds']) / 60:.2f}")
    console.print(table)
    figures = {"base": arguments.base.name, "known": len(read_model(arguments.base).labels), "learnt": LEARNT}
    path = write_results("add-classes", {**figures, "threads": arguments.threads, "groups": results})
    console.print(f"Written to {path.relative_to(path.parents[2])}")


if __name__ == "__main__":
    main()
