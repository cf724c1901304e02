"""`dabnet evaluate`: what a trained network gets right."""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from dabnet._lazy import load
from dabnet._text import counted, name_some, printable
from dabnet.cli.console import PlainConsole
from dabnet.cli.progress import show_progress
from dabnet.errors import InputError, suggest
from dabnet.packed import Model, find_model
from dabnet.runtime import Session
from dabnet.runtime.evaluation import Evaluation, ask_session, compare
from dabnet.runtime.evaluation import evaluate as run_test
from dabnet.runtime.recognizer import raster_of
from dabnet.sketches.raster import Raster, show_batch
from dabnet.sketches.vocabulary import load_vocabulary, match_classes
from dabnet.training.opening import open_model

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dabnet.runtime.evaluation import Ask
    from dabnet.sketches.store import SketchSet

RUNS = 300
"""Timed runs of a packed model; a tenth as many come first, to warm up."""
SHARES = (0.25, 0.5, 0.75, 1.0)
"""How much of each drawing is there, where unfinished ones are tested."""
NAMED = 12
"""How many of the classes that are left out are named."""


def evaluate(
    model: Annotated[Path, typer.Argument(help="A run's folder, a weights file, or a packed model, by file or name.")],
    data: Annotated[
        Path | None,
        typer.Option(help="A prepared set, or anything that 'dabnet data prepare' takes; a run remembers its own."),
    ] = None,
    fold: Annotated[int | None, typer.Option(help="The fold to test on; a run remembers its own.", min=0)] = None,
    crops: Annotated[int, typer.Option(help="Views of each sketch, 1 or 10.")] = 1,
    against: Annotated[Path | None, typer.Option(help="Another one, to see the gap on the same sketches.")] = None,
    only_set_classes: Annotated[
        bool, typer.Option("--only-set-classes", help="Let it answer only with classes that the set has.")
    ] = False,
    vocabulary: Annotated[
        str, typer.Option(help="Which names mean the same: a TOML file, one that ships, or 'none'.")
    ] = "everyday",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Draw here what is taken for what, as PNG, SVG or PDF.")
    ] = None,
    unfinished: Annotated[
        Path | None,
        typer.Option(help="Also test drawings of which only 25, 50 and 75 % of the strokes are there; draw it here."),
    ] = None,
    threads: Annotated[int, typer.Option(help="Threads; 0 leaves the choice to torch, or takes one.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON, and nothing else.")] = False,
) -> None:
    """Test a trained network: top-1, top-5, per class, and a picture of what it takes for what.

    Classes of the set are matched with the network's by name, regardless of case, hyphens and underscores, and by a
    vocabulary: to a network that knows 'car', an 'suv' is one. What it does not know is left out, counted and named.

    A packed model is tested in dabnet's runtime, with the probabilities that its temperature gives, and timed: one
    sketch at a time, on one thread, without the drawing of it.
    """
    for picture in (output, unfinished):
        if picture is not None:
            load("dabnet.training.pictures").check_picture(picture)
    if (model / "run.json").exists():
        begun = load("dabnet.training.run").open_run(model)
        data, fold = data or begun.data, begun.fold if fold is None else fold
    tested = _open(model, threads)
    other = None if against is None else _open(against, threads)
    if data is None:
        raise InputError("a test needs sketches: give a prepared set, or a folder of drawings, with --data.")
    console = PlainConsole(quiet=as_json)
    words = None if vocabulary == "none" else load_vocabulary(vocabulary)
    with tempfile.TemporaryDirectory() as folder:
        sketches = _open_set(data, Path(folder), console)
        labels = [np.array(match_classes(sketches.classes, each.classes, words)) for each in (tested, other) if each]
        is_known = np.all([found >= 0 for found in labels], axis=0)
        in_fold = np.ones(len(sketches), np.bool_) if fold is None else sketches.folds == fold
        rows = np.flatnonzero(is_known[sketches.labels] & in_fold)
        left_out = _left_out(sketches, is_known, in_fold, tested.classes)
        if not len(rows):
            where = "" if fold is None else f" in fold {fold}"
            raise InputError(f"'{data}' has no sketch of the network's classes{where}.{left_out.hint}")
        found, *rest = (
            each.test(sketches, rows, crops, own[sketches.labels], console, only_set_classes)
            for each, own in zip((tested, other), labels, strict=False)
            if each
        )
        figures: dict[str, Any] = {"left_out": left_out.figures}
        if tested.packed is not None:
            figures |= {"bytes": tested.path.stat().st_size, "temperature": tested.packed.temperature}
            figures["latency_ms"] = _time(tested.packed, sketches, rows)
        if rest:
            gap = dict(zip(("gap", "gap_error"), compare(found, rest[0]), strict=True))
            figures["against"] = {**rest[0].to_dict(), **gap}
        if unfinished is not None:
            own = labels[0][sketches.labels]
            figures["unfinished"] = _test_unfinished(tested, sketches, rows, own, console, only_set_classes)
            load("dabnet.training.pictures").draw_unfinished(figures["unfinished"], unfinished)
    if output is not None:
        load("dabnet.training.pictures").draw_confusion(found, output)
        figures["picture"] = str(output)
    if as_json:
        typer.echo(json.dumps({**found.to_dict(), **figures}, indent=2))
        return
    _report(found, figures, crops, against, console)
    if left_out.sentence:
        console.print(left_out.sentence)
    if output is None:
        console.print("See what is taken for what: add -o confusion.png")
    else:
        console.print(f"What is taken for what: {output}", soft_wrap=True)


def _report(found: Evaluation, figures: dict[str, Any], crops: int, against: Path | None, console: Console) -> None:
    console.print(
        f"{counted(found.drawings, 'sketch', 'sketches')}, {counted(crops, 'view')} each: top-1 {found.top1:.2%} "
        f"(standard error {found.top1_error:.2%}), top-5 {found.top5:.2%}, calibration error {found.ece():.1%}.",
    )
    if times := figures.get("latency_ms"):
        console.print(
            f"{figures['bytes']:,} bytes; one sketch on one thread takes {times['min']:.2f} ms at least, "
            f"{times['median']:.2f} ms as a rule.",
        )
    if rival := figures.get("against"):
        console.print(
            f"{against}: top-1 {rival['top1']:.2%}, top-5 {rival['top5']:.2%}. Gap {100 * rival['gap']:+.2f} points "
            f"(standard error {100 * rival['gap_error']:.2f}, from the sketches on which they differ).",
        )
    if shares := figures.get("unfinished"):
        table = Table("strokes drawn", "top-1", "top-5", "mean probability", box=None)
        for row in shares:
            table.add_row(f"{row['share']:.0%}", f"{row['top1']:.1%}", f"{row['top5']:.1%}", f"{row['confidence']:.2f}")
        console.print(table)
    table = Table("hardest classes", "right", box=None)
    for name, share in sorted(found.per_class().items(), key=lambda pair: pair[1])[:8]:
        table.add_row(printable(name), f"{share:.0%}")
    console.print(table)


@dataclass(frozen=True)
class _LeftOut:
    """What of a set was not tested, because the network does not know it."""

    figures: dict[str, Any]
    sentence: str
    hint: str


def _left_out(
    sketches: SketchSet, is_known: NDArray[np.bool_], in_fold: NDArray[np.bool_], labels: list[str]
) -> _LeftOut:
    """Count and name the classes of a set that are unknown, with the nearest label of each that has one."""
    counts = np.bincount(sketches.labels[in_fold], minlength=len(sketches.classes))
    unknown = [sketches.classes[i] for i in np.flatnonzero(~is_known & (counts > 0))]
    drawings, total = int(counts[~is_known].sum()), int(counts.sum())
    figures = {"drawings": drawings, "of": total, "classes": unknown}
    if not unknown:
        return _LeftOut(figures, "", "")
    near = {name: suggest(name, labels) for name in unknown[:NAMED]}
    named = ", ".join(f"{name}{near[name].replace(' Did you mean', ' (near').replace('?', ')')}" for name in near)
    more = f" and {len(unknown) - NAMED} more" if len(unknown) > NAMED else ""
    classes = "1 class is" if len(unknown) == 1 else f"{len(unknown)} classes are"
    tested = f"{total - drawings:,} of {counted(total, 'drawing')}"
    sentence = f"Tested {tested}; {classes} unknown to the model: {named}{more}."
    return _LeftOut(figures, sentence, near[unknown[0]])


@dataclass(frozen=True)
class _Opened:
    """A network that can be asked, whatever it came from."""

    path: Path
    packed: Model | None
    ask: Ask
    classes: list[str]
    raster: Raster

    def test(
        self,
        sketches: SketchSet,
        rows: NDArray[np.int64],
        crops: int,
        labels: NDArray[np.int64],
        console: Console,
        only_set_classes: bool,
        share: float = 1.0,
    ) -> Evaluation:
        """Test the network on some rows, with `share` of each drawing's strokes."""
        allowed = None
        if only_set_classes:
            allowed = np.isin(np.arange(len(self.classes)), labels)
        part = "" if share == 1 else f" with {share:.0%} of the strokes"
        with show_progress(f"Testing {self.path.name}{part}", console) as progress:
            return run_test(
                self.ask, sketches, rows, self.raster,
                crops=crops, labels=labels, class_names=self.classes, progress=progress, allowed=allowed,
                change=None if share == 1 else lambda sketch: sketch.beginning(share),
                views_temperature=1.0 if self.packed is None else self.packed.views_temperature,
            )  # fmt: skip


def _open(model: Path, threads: int) -> _Opened:
    path, opened = find_model(model), open_model(model)
    if isinstance(opened, Model):
        ask = ask_session(Session(opened, threads or 1))
        return _Opened(path, opened, ask, list(opened.labels), raster_of(opened))
    if threads:
        load("torch").set_num_threads(threads)
    ask = load("dabnet.training.evaluate").ask_network(opened.net)
    return _Opened(path, None, ask, opened.classes, opened.raster)


def _open_set(data: Path, folder: Path, console: Console) -> SketchSet:
    """Open a prepared set; drawings that are not one yet become one in a folder that is only there for this."""
    if data.suffix == ".parquet" or (data.is_dir() and any(data.glob("*.parquet"))):
        stored: SketchSet = load("dabnet.sketches.store").SketchSet(data)
        return stored
    with console.status(f"Preparing {data}"):
        source = load("dabnet.sketches.sources").open_source(data)
        made = load("dabnet.sketches.prepare").prepare(source, folder / "set.parquet")
    if made.left_out:
        name, reason = made.left_out[0]
        console.print(f"{counted(len(made.left_out), 'file')} could not be read, such as {name}: {reason}")
    if source.skipped:
        console.print(f"Skipped, being no drawings of a class: {name_some(source.skipped)}.")
    prepared: SketchSet = load("dabnet.sketches.store").SketchSet(made.path)
    return prepared


def _test_unfinished(
    tested: _Opened,
    sketches: SketchSet,
    rows: NDArray[np.int64],
    labels: NDArray[np.int64],
    console: Console,
    only_set_classes: bool,
) -> list[dict[str, float]]:
    """Test drawings with some of their strokes; pictures have none, and are left out."""
    rows = np.array([row for row in rows if sketches[int(row)].points is not None], dtype=np.int64)
    if not len(rows):
        raise InputError("none of these drawings has strokes, so none can be unfinished: leave out --unfinished.")
    figures = []
    for share in SHARES:
        found = tested.test(sketches, rows, 1, labels, console, only_set_classes, share)
        figures.append(
            {
                "share": share,
                "drawings": found.drawings,
                "top1": found.top1,
                "top5": found.top5,
                "confidence": float(found.confidences.mean()),
                "ece": found.ece(),
            }
        )
    return figures


def _time(model: Model, sketches: SketchSet, rows: NDArray[np.int64]) -> dict[str, float]:
    """Return the least and the median of the milliseconds that one sketch takes on one thread."""
    chosen = np.random.default_rng(0).choice(rows, min(len(rows), RUNS), replace=False)
    images = show_batch(sketches.read(chosen), raster_of(model))
    session, seconds = Session(model, threads=1), []
    for run in range(-RUNS // 10, RUNS):
        image = images[run % len(images)][None]
        start = time.perf_counter()
        session.run(image)
        if run >= 0:
            seconds.append(time.perf_counter() - start)
    return {"min": 1e3 * min(seconds), "median": 1e3 * float(np.median(seconds))}
