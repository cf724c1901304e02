"""`dabnet data`: get data sets of sketches, prepare them for training, and look at them."""

from __future__ import annotations

import dataclasses
import json
import shlex
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import numpy as np
import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table

from dabnet._files import check_output, open_beside
from dabnet._lazy import load
from dabnet._text import counted, name_some, printable
from dabnet.cli.console import PlainConsole
from dabnet.cli.interrupts import heed_interrupts
from dabnet.errors import InputError, suggest
from dabnet.sketches.folds import TRAIN_ONLY
from dabnet.sketches.raster import Raster, rasterize_batch
from dabnet.sketches.sheet import SheetRow, draw_sheet
from dabnet.sketches.vocabulary import load_vocabulary

if TYPE_CHECKING:
    from PIL import Image

    from dabnet.sketches.prepare import Prepared
    from dabnet.sketches.sources import Source
    from dabnet.sketches.store import SketchSet

AsJson = Annotated[bool, typer.Option("--json", help="Print the figures as JSON, and nothing else.")]

data = typer.Typer(no_args_is_help=True)


@data.command("list")
def list_sets(as_json: AsJson = False) -> None:
    """List the data sets that dabnet can get, or can say how to get."""
    catalog = load("dabnet.sketches.catalog").CATALOG
    if as_json:
        typer.echo(json.dumps({name: dataclasses.asdict(entry) for name, entry in catalog.items()}, indent=2))
        return
    table = Table("name", "what", "drawings", "classes", "licence", title="Data sets of sketches", title_justify="left")
    for name, entry in catalog.items():
        what = f"{entry.title}: {entry.published}"
        table.add_row(name, what, f"{entry.drawings:,}", str(entry.classes), entry.licence)
    console = PlainConsole()
    console.print(table)
    console.print("Get one: dabnet data download NAME. Without any download: dabnet data prepare synthetic")


@data.command()
def download(
    name: Annotated[str, typer.Argument(help="A data set of 'dabnet data list'.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to put it in.")] = Path("data"),
    classes: Annotated[
        str | None,
        typer.Option(help="For quickdraw: the classes to get, with commas between, such as 'cat,hot dog'; or 'all'."),
    ] = None,
    mirror: Annotated[str | None, typer.Option(help="Get the same files from this address instead.")] = None,
    sha256: Annotated[str | None, typer.Option(help="The checksum that the file must have, if you know it.")] = None,
    as_json: AsJson = False,
) -> None:
    """Get a data set. If it is stopped, or the network fails, run the same command again: it goes on where it was."""
    catalog, fetching = load("dabnet.sketches.catalog"), load("dabnet.sketches.download")
    entry = catalog.find_data_set(name)
    if entry.instructions:
        raise InputError(entry.instructions)
    chosen = catalog.quickdraw_classes() if classes == "all" else [word.strip() for word in (classes or "").split(",")]
    files = entry.files_for([word for word in chosen if word])
    if sha256 and len(files) > 1:
        raise InputError(f"--sha256 is for one file, and these are {len(files)}: leave it out.")
    folder = output / name
    console = PlainConsole(quiet=as_json)
    console.print(f"{entry.title}. Licence: {entry.licence}; {entry.citation}")
    heed_interrupts()
    fetched = []
    with Progress(
        TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(),
        console=console, transient=True,
    ) as bar:  # fmt: skip
        for number, file in enumerate(files, start=1):
            count = f" ({number} of {len(files)})" if len(files) > 1 else ""
            task = bar.add_task(file.name + count, total=None)

            def advance(have: int, total: int | None, task: TaskID = task) -> None:
                bar.update(task, completed=have, total=total)

            url = f"{mirror.rstrip('/')}/{quote(file.name)}" if mirror else file.url
            try:
                done = fetching.download(
                    url, folder / file.name, sha256=sha256 or file.sha256, md5=None if sha256 else file.md5,
                    progress=advance,
                )  # fmt: skip
            except KeyboardInterrupt:
                bar.stop()
                typer.echo("Stopped. What was fetched is kept: run the same command again to go on.", err=True)
                raise typer.Exit(130) from None
            bar.remove_task(task)
            fetched.append({"path": str(done.path), "bytes": done.bytes, "sha256": done.sha256, "url": url})
            note = " was there already" if done.already_there else ""
            console.print(f"{done.path}{note}: {done.bytes:,} bytes, SHA-256 {done.sha256}", soft_wrap=True)
    if as_json:
        typer.echo(json.dumps(fetched, indent=2))
        return
    source = fetched[0]["path"] if len(fetched) == 1 else folder
    console.print(f"Prepare it: dabnet data prepare {shlex.quote(str(source))} -o {name}.parquet")


@data.command()
def prepare(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="TU-Berlin or Sketchy (folder or zip as published), Quick, Draw! (.ndjson, .bin or .npy files, or "
            "their folder), a folder with a subfolder per class, an .npz file, or the word 'synthetic'. Several "
            "sources become one set, by a --vocabulary.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The prepared set to write.")] = Path("set.parquet"),
    vocabulary: Annotated[
        str | None,
        typer.Option(
            help="Which names of different sources mean the same: a TOML file, one line per label, or 'everyday', the "
            "one that ships for TU-Berlin and Quick, Draw!.",
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Take at most so many drawings of each class.", min=1)] = None,
    folds: Annotated[
        str | None,
        typer.Option(
            help="Parts to deal the drawings into, from 2 to 100, where a source has none of its own. For several "
            "sources one number each, with commas between, or 'train' for one that no test may use: 3,20,train."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed deals the same folds.", min=0)] = 0,
    size: Annotated[int, typer.Option(help="Remembered as this set's size for networks, in pixels.")] = Raster.size,
    margin: Annotated[float, typer.Option(help="Remembered margin, as a share of the size.")] = Raster.margin,
    pen: Annotated[float, typer.Option(help="Remembered width of lines, as a share of the size.")] = Raster.pen,
    workers: Annotated[int, typer.Option(help="Processes that read; 0 is one per core.", min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """Read a data set into one Parquet file that training can draw from at random.

    Drawings that cannot be read are left out and listed at the end. If it is stopped, run the same command again: it
    goes on where it was. A set of more than 200,000 drawings becomes a folder of files.

    Several sources become one set: a vocabulary says which of their classes are the same, and each source keeps the
    folds that it has when it is prepared alone:

        dabnet data prepare A.npz B.npz C.npz --vocabulary everyday --folds 3,20,train -o union.parquet
    """
    making = load("dabnet.sketches.prepare")
    if output.suffix != ".parquet":
        raise InputError(
            f"a prepared set is a Parquet file, and '{output}' is not called one: end its name in .parquet."
        )
    raster = Raster(size, margin, pen)
    console = PlainConsole(quiet=as_json)
    start = time.perf_counter()
    counts = _parse_folds(folds, len(sources))
    with console.status(f"Listing {', '.join(sources)}"):
        opened = _open_sources(sources, vocabulary, limit)
    classes = counted(len(opened.classes), "class", "classes")
    console.print(printable(f"{opened.title}: {classes}. Licence: {opened.licence}"))
    heed_interrupts()
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        TextColumn("pieces, {task.fields[drawings]:,} drawings"), TimeRemainingColumn(),
        console=console, transient=True,
    ) as bar:  # fmt: skip
        task = bar.add_task("", total=None, drawings=0)

        def advance(done: int, total: int, drawings: int) -> None:
            stage = "Reading" if done < total else "Writing"
            bar.update(task, completed=done, total=total, drawings=drawings, description=stage)

        try:
            made = making.prepare(
                opened, output, raster=raster, folds=counts, seed=seed, workers=workers or None, progress=advance
            )
        except KeyboardInterrupt:
            bar.stop()
            typer.echo("Stopped. What was read is kept: run the same command again to go on.", err=True)
            raise typer.Exit(130) from None
    seconds = time.perf_counter() - start
    if as_json:
        figures = {"path": str(made.path), "drawings": made.drawings, "classes": made.classes, "bytes": made.bytes}
        lists = {"left_out": made.left_out, "skipped": opened.skipped}
        typer.echo(json.dumps({**figures, "seconds": seconds, **lists}, indent=2))
        return
    _report(made, seconds, console)
    if opened.skipped:
        were = "file is no drawing of a class" if len(opened.skipped) == 1 else "files are no drawings of a class"
        console.print(f"{len(opened.skipped):,} {were}, and skipped: {name_some(opened.skipped)}.", soft_wrap=True)
    console.print(f"Look at it: dabnet data show {made.path} -o sheet.png", soft_wrap=True)


def _open_sources(sources: list[str], vocabulary: str | None, limit: int | None) -> Source:
    """Open one source as it is, or several, or one with a vocabulary, as a union."""
    opening = load("dabnet.sketches.sources")
    if vocabulary is None:
        if len(sources) > 1:
            raise InputError(
                "several sources need --vocabulary, which says which of their names mean the same: a TOML file, or "
                "'everyday' for TU-Berlin and Quick, Draw!."
            )
        opened: Source = opening.open_source(sources[0], limit)
        return opened
    table = load_vocabulary(vocabulary)
    united: Source = opening.unite([opening.open_source(source, limit) for source in sources], table)
    return united


def _parse_folds(text: str | None, sources: int) -> list[int] | None:
    """Read '20', or '3,20,train' for several sources; 'train' is 0."""
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    words = words * sources if len(words) == 1 else words
    counts = [0 if word == "train" else int(word) if word.isdecimal() and len(word) < 4 else -1 for word in words]
    if any(count and not 2 <= count <= 100 for count in counts):
        raise InputError(f"--folds {text} makes no sense: give a number from 2 to 100, or 'train', for each source.")
    return counts


def _report(made: Prepared, seconds: float, console: Console, listed: int = 20) -> None:
    again = f" ({made.resumed} pieces were there from before)" if made.resumed else ""
    what = f"{counted(made.drawings, 'drawing')} of {counted(made.classes, 'class', 'classes')}"
    console.print(
        f"{what} in {seconds:.1f} s{again}: {made.path}, {made.bytes / 1e6:.1f} MB.",
        soft_wrap=True,
    )
    if made.left_out:
        console.print(f"{len(made.left_out):,} could not be read and were left out:")
        for name, reason in made.left_out[:listed]:
            console.print(printable(f"  {name}: {reason}"))
        if len(made.left_out) > listed:
            console.print(f"  and {len(made.left_out) - listed:,} more; 'dabnet data show --json' lists them.")


@data.command()
def show(
    path: Annotated[Path, typer.Argument(metavar="SET", help="A prepared set.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The picture to write.")] = Path("sheet.png"),
    rows: Annotated[int, typer.Option(help="Classes to show, spread over all of them.", min=1, max=400)] = 20,
    each: Annotated[int, typer.Option(help="Drawings of each.", min=1, max=40)] = 10,
    only: Annotated[list[str] | None, typer.Option("--class", help="Show this class; may be given again.")] = None,
    size: Annotated[int, typer.Option(help="Pixels per drawing.", min=16, max=512)] = 96,
    seed: Annotated[int, typer.Option(help="Another seed shows other drawings.", min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """Draw a contact sheet of a prepared set, as a network would see it, and count its classes and folds."""
    with suppress(OSError):  # which the check tells
        output.parent.mkdir(parents=True, exist_ok=True)
    check_output(output, (".png",))
    sketches = load("dabnet.sketches.store").SketchSet(path)
    chosen = _choose(sketches.classes, only or [], rows)
    counts = np.bincount(sketches.labels, minlength=len(sketches.classes))
    console = PlainConsole(quiet=as_json)
    with console.status("Drawing"):
        picture = _sheet(sketches, chosen, each, size, seed)
    with open_beside(output) as file:
        picture.save(file, "PNG", optimize=True)
    info = sketches.info
    folds = {int(fold): int(count) for fold, count in zip(*np.unique(sketches.folds, return_counts=True), strict=True)}
    spare = folds.pop(TRAIN_ONLY, 0)
    if as_json:
        figures = {"title": info.title, "licence": info.licence, "drawings": len(sketches), "folds": folds}
        figures |= {"sources": dict(info.sources)} if info.sources else {}
        by_class = {name: int(count) for name, count in zip(sketches.classes, counts, strict=True)}
        raster = {"raster": info.raster.to_dict(), "left_out": info.left_out, "sheet": str(output)}
        typer.echo(json.dumps({**figures, "classes": by_class, **raster}, indent=2))
        return
    console.print(
        printable(
            f"{info.title}: {counted(len(sketches), 'drawing')} of {counted(len(counts), 'class', 'classes')}. "
            f"Licence: {info.licence}"
        )
    )
    spread = Table("", "least", "median", "most", box=None)
    for name, sizes in (("drawings per class", counts.tolist()), ("drawings per fold", list(folds.values()))):
        spread.add_row(name, *(f"{int(value):,}" for value in np.quantile(sizes, [0, 0.5, 1])))
    console.print(spread)
    for title, drawings in info.sources:
        console.print(f"  {drawings:,} from {title}", highlight=False)
    unread = counted(len(info.left_out), "drawing")
    console.print(f"{counted(len(folds), 'fold')}; {unread} could not be read when it was prepared.")
    if spare:
        console.print(f"For training only, and in no fold: {counted(spare, 'drawing')}.")
    console.print(f"Sheet of {counted(len(chosen), 'class', 'classes')}: {output}", soft_wrap=True)


def _choose(classes: list[str], only: list[str], rows: int) -> list[int]:
    """Pick classes by name, or so many, evenly spread."""
    for name in only:
        if name not in classes:
            raise InputError(f"the set has no class '{name}'.{suggest(name, classes)}")
    if only:
        return [classes.index(name) for name in only]
    spread = np.linspace(0, len(classes) - 1, min(rows, len(classes)))
    return [int(label) for label in np.unique(spread.round())]


def _sheet(sketches: SketchSet, chosen: list[int], each: int, size: int, seed: int) -> Image.Image:
    rng = np.random.default_rng(seed)
    raster = Raster(size, sketches.info.raster.margin, sketches.info.raster.pen)
    lines = []
    for label in chosen:
        found = np.flatnonzero(sketches.labels == label)
        shown = rng.choice(found, min(each, len(found)), replace=False)
        images = rasterize_batch(sketches.read(np.sort(shown)), raster)
        lines.append(SheetRow(sketches.classes[label], counted(len(found), "drawing"), list(images)))
    return draw_sheet(lines)
