"""How well does the shipped model learn your own classes, and how fast? Five of Quick, Draw! that are new to it.

    python -m benchmarks.finetune --data FOLDER [--model default] [--threads 1]

FOLDER holds Quick, Draw!'s files as published (`<class>.ndjson`), or is an .npz of it: whatever `dabnet data prepare`
takes. Of each class the first 20 drawings that can be read are learnt from, and the next 40 are the test. The time is
that of the whole command, `dabnet train --from default`, from its start to its last word.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.record import write_results
from dabnet.packed import read_model
from dabnet.sketches import Sketch, open_source

CLASSES = ("broccoli", "lighthouse", "snowflake", "toaster", "whale")
"""TU-Berlin has none of these."""
LEARNT, TESTED = 20, 40


def collect(data: Path) -> dict[str, list[Sketch]]:
    """Read the first drawings of each class."""
    source = open_source(data, limit=2 * (LEARNT + TESTED))
    found: dict[str, list[Sketch]] = {name: [] for name in CLASSES}
    for piece in range(len(source)):
        for drawing in source.read(piece):
            name = source.classes[drawing.label]
            if name in found and isinstance(drawing.sketch, Sketch) and len(found[name]) < LEARNT + TESTED:
                found[name].append(drawing.sketch)
    for name, sketches in found.items():
        if len(sketches) < LEARNT + TESTED:
            sys.exit(f"'{data}' has {len(sketches)} drawings of '{name}', and {LEARNT + TESTED} are needed.")
    return found


def write_drawings(found: dict[str, list[Sketch]], folder: Path) -> None:
    """Write each drawing as JSON, divided as `dabnet data prepare` understands it."""
    for name, sketches in found.items():
        for number, sketch in enumerate(sketches):
            path = folder / ("train" if number < LEARNT else "test") / name / f"{number}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps([stroke.tolist() for stroke in sketch.strokes]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="Quick, Draw! as published")
    parser.add_argument("--model", default="default", help="the packed model to start from")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    known = set(CLASSES) & set(read_model(arguments.model).labels)
    if known:
        sys.exit(f"'{arguments.model}' knows {', '.join(sorted(known))} already: the classes have to be new to it.")
    console = Console()
    with tempfile.TemporaryDirectory() as folder, console.status("reading the drawings") as status:
        write_drawings(collect(arguments.data), Path(folder, "drawings"))
        status.update("learning the classes")
        command: list[Any] = [sys.executable, "-m", "dabnet", "train", "--from", arguments.model]
        command += ["--data", Path(folder, "drawings"), "-o", Path(folder, "tuned"), "--fold", 0, "--json"]
        command += ["--threads", arguments.threads]
        start = time.perf_counter()
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        seconds = time.perf_counter() - start
    if done.returncode:
        sys.exit(done.stderr)
    figures = json.loads(done.stdout)

    table = Table("class", title=f"{len(CLASSES)} new classes, {LEARNT} drawings of each to learn from")
    table.add_column(f"right, of {TESTED}", justify="right")
    for name, share in figures["per_class"].items():
        table.add_row(name, f"{share:.1%}")
    table.add_section()
    table.add_row("all", f"{figures['top1']:.1%}")
    console.print(table)
    console.print(f"{seconds / 60:.2f} minutes, calibration error {figures['ece']:.1%}, {arguments.threads} thread(s).")
    kept = ("top1", "ece", "per_class", "held_back_top1", "learnt_from", "drawings", "views", "weight_decay")
    results = {"model": arguments.model, "threads": arguments.threads, "minutes": seconds / 60}
    path = write_results("finetune", results | {name: figures[name] for name in (*kept, "temperature")})
    console.print(f"Written to {path.relative_to(path.parents[2])}")


if __name__ == "__main__":
    main()
