"""What `dabnet train --from` does with a packed model: other classes, or more of them, in its last layer."""

from __future__ import annotations

import json
import os
import shlex
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import typer

from dabnet._files import check_output, write_beside
from dabnet._text import counted, name_some
from dabnet.cli.interrupts import heed_interrupts
from dabnet.cli.progress import show_progress
from dabnet.errors import InputError
from dabnet.packed import find_model, read_model, to_bytes
from dabnet.runtime import Session
from dabnet.runtime.evaluation import ask_session, evaluate
from dabnet.sketches.prepare import prepare
from dabnet.sketches.sources import open_source
from dabnet.sketches.store import SketchSet
from dabnet.training.add_classes import add_classes, match_targets, read_head
from dabnet.training.class_features import features_path, read_features
from dabnet.training.data import divide
from dabnet.training.finetune import finetune, tuning_recipe
from dabnet.training.run import beginning, make_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console

    from dabnet.packed import Model
    from dabnet.runtime.evaluation import Evaluation
    from dabnet.training.recipe import Recipe

PACKED = "model.safetensors"
LOOKING = "Looking at views of the drawings"


class Tuning(NamedTuple):
    """What a packed model is to learn, and where to."""

    start: Path
    data: Path | None
    """Drawings of the classes that replace the model's own."""
    add: Path | None
    """Drawings of classes beside them."""
    fold: int
    output: Path | None
    changes: list[str]
    test: bool
    as_json: bool

    @property
    def command(self) -> str:
        """The command that does this."""
        drawings = ["--data", str(self.data)] if self.add is None else ["--add", str(self.add)]
        words = ["dabnet", "train", "--from", str(self.start), *drawings, "--fold", str(self.fold)]
        words += ["-o", str(self.output)] + [word for change in self.changes for word in ("--set", change)]
        return shlex.join(words + ([] if self.test else ["--no-test"]))


def tune(asked: Tuning, console: Console) -> None:
    """Change a packed model's last layer, and leave the model in a folder with what it took and how it does."""
    if asked.add is not None and asked.data is not None:
        raise InputError("--data replaces a model's classes and --add adds to them: give one of the two.")
    if asked.add is None and asked.data is None:
        raise InputError("a training needs sketches: give drawings, a subfolder per class, with --data or --add.")
    packed = read_model(asked.start)
    settings = tuning_recipe(packed, asked.changes)
    what = "tuned" if asked.add is None else "added"
    folder = asked.output or Path("runs") / f"{asked.start.stem}-{what}-fold{asked.fold}-seed{settings.seed}"
    if (folder / PACKED).exists():
        raise InputError(f"'{folder}' holds a tuned model already: choose another folder with -o.")
    learn = _replace_classes if asked.add is None else _add_classes
    with beginning(folder):
        learn(asked._replace(output=folder), packed, settings, folder, console)


def _replace_classes(asked: Tuning, packed: Model, settings: Recipe, folder: Path, console: Console) -> None:
    assert asked.data is not None
    began = time.perf_counter()
    make_folder(folder)
    check_output(folder / PACKED)
    with _stoppable():
        sketches = SketchSet(prepare_drawings(asked.data, folder, console))
        with show_progress(LOOKING, console) as progress:
            tuned = finetune(packed, sketches, settings, asked.fold, threads=torch.get_num_threads(), progress=progress)
        found = None
        if asked.test:
            parts = divide(sketches, settings, asked.fold)
            found = _test(tuned.model, sketches, parts.test, parts.labels, settings)
    figures = {
        "command": asked.command,
        "seconds": round(time.perf_counter() - began, 1),
        "learnt_from": tuned.drawings,
        "views": tuned.views,
        "weight_decay": tuned.weight_decay,
        "temperature": tuned.model.temperature,
        "held_back_top1": tuned.accuracy,
        **(found.to_dict() if found else {}),
    }
    classes, drawings = counted(len(tuned.model.labels), "class", "classes"), counted(tuned.drawings, "drawing")
    said = f"{classes} learnt from {drawings} in {figures['seconds']:.0f} seconds."
    _keep(asked, folder, tuned.model, figures)
    _tell(asked, folder, said, figures, found, console)


def _add_classes(asked: Tuning, packed: Model, settings: Recipe, folder: Path, console: Console) -> None:
    assert asked.add is not None
    began = time.perf_counter()
    read_head(packed)  # which says what is wrong with it, before anything is made
    features = read_features(features_path(find_model(asked.start)), packed)
    make_folder(folder)
    check_output(folder / PACKED)
    with _stoppable():
        sketches = SketchSet(prepare_drawings(asked.add, folder, console))
        with show_progress(LOOKING, console) as progress:
            added = add_classes(
                packed, features, sketches, settings, asked.fold, threads=torch.get_num_threads(), progress=progress
            )
        found = None
        if asked.test:
            labels = _labels_among_all(added.model, packed, sketches, settings)
            found = _test(added.model, sketches, (labels >= 0) & (sketches.folds == asked.fold), labels, settings)
    figures = {
        "command": asked.command,
        "seconds": round(time.perf_counter() - began, 1),
        "new_classes": list(added.new),
        "known_classes": list(added.known),
        "classes": len(added.model.labels),
        "learnt_from": added.drawings,
        "views": added.views,
        "weight_decay": added.weight_decay,
        "temperature": added.model.temperature,
        "held_back_top1": added.accuracy,
        "held_back_top1_among_yours": added.among,
        "estimated_cost": added.cost,
        **(found.to_dict() if found else {}),
    }
    new = counted(len(added.new), "class", "classes")
    said = f"{new} added to {len(packed.labels)}, from {counted(added.drawings, 'drawing')}, in "
    said += f"{figures['seconds']:.0f} seconds; the old ones lose about {max(0.0, added.cost):.1%}."
    if added.known:
        said += f" Known already, and given more drawings: {', '.join(added.known)}."
    write_beside(features_path(folder / PACKED), added.features.to_bytes())
    _keep(asked, folder, added.model, figures)
    _tell(asked, folder, said, figures, found, console)


def prepare_drawings(data: Path, folder: Path, console: Console) -> Path:
    """Return a prepared set; drawings that are not one yet become one in the run's folder, read anew each time."""
    is_set = data.suffix == ".parquet" or (data.is_dir() and any(data.glob("*.parquet")))
    if is_set:
        return data
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        raise InputError(
            f"several processes cannot prepare '{data}' at a time: run 'dabnet data prepare {data}' first."
        )
    target, source = folder / "data.parquet", open_source(data)
    target.unlink(missing_ok=True)  # of a try that came to nothing; drawings may have been added since
    with console.status(f"Preparing {data}"):
        made = prepare(source, target)
    said = f"{counted(made.drawings, 'drawing')} of {counted(made.classes, 'class', 'classes')}"
    if made.left_out:
        said += f"; could not be read: {name_some([name for name, _ in made.left_out])}"
    if source.skipped:
        said += f"; skipped, being no drawings of a class: {name_some(source.skipped)}"
    console.print(f"{said}.", soft_wrap=True)
    return target


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM stop what is done here, with a sentence."""
    heed_interrupts()
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("Stopped, before there was anything to keep: run the same command again.", err=True)
        raise typer.Exit(130) from None


def _labels_among_all(model: Model, packed: Model, sketches: SketchSet, settings: Recipe) -> NDArray[np.int64]:
    names, targets = match_targets(packed, sketches, settings.classes)
    numbers = [*(model.labels.index(name) for name in names), -1]  # the last one is for drawings of no class
    return torch.tensor(numbers)[torch.from_numpy(targets)].numpy()


def _test(
    model: Model, sketches: SketchSet, rows: NDArray[Any], labels: NDArray[np.int64], settings: Recipe
) -> Evaluation | None:
    rows = rows.nonzero()[0] if rows.dtype == bool else rows
    if not len(rows):
        return None
    ask = ask_session(Session(model, torch.get_num_threads()))
    return evaluate(
        ask, sketches, rows, settings.raster, crops=settings.crops, labels=labels, class_names=list(model.labels)
    )


def _keep(asked: Tuning, folder: Path, model: Model, figures: dict[str, Any]) -> None:
    write_beside(folder / "result.json", (json.dumps(figures, indent=2) + "\n").encode())
    write_beside(folder / PACKED, to_bytes(model))
    if asked.as_json:
        typer.echo(json.dumps({"run": str(folder), **figures}, indent=2))


def _tell(
    asked: Tuning, folder: Path, said: str, figures: dict[str, Any], found: Evaluation | None, console: Console
) -> None:
    if found:
        others = "1 other" if found.drawings == 1 else f"{found.drawings:,} others"
        said += f" On {others}, of fold {asked.fold}: top-1 {found.top1:.1%}."
    else:
        said += f" On drawings held back in turn: top-1 {figures['held_back_top1']:.1%}."
    console.print(f'{said} Use it: dabnet.Recognizer.load("{folder / PACKED}")', highlight=False)
