"""`dabnet recognize`: what drawings show."""

from __future__ import annotations

import io
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import typer

from dabnet._files import check_output, write_beside
from dabnet._text import counted, name_some, printable, to_json
from dabnet.cli.interrupts import ending_at_once, heed_interrupts
from dabnet.errors import InputError
from dabnet.runtime.recognizer import MIN_CONFIDENCE, Recognizer, is_sure
from dabnet.runtime.session import DEFAULT_MAX_WORK
from dabnet.sketches.raster import rasterize
from dabnet.sketches.stream import stream_drawings

if TYPE_CHECKING:
    from io import BufferedReader

    from dabnet.runtime.recognizer import Answer
    from dabnet.sketches.batch import Batch
    from dabnet.sketches.sketch import Sketch

SHEET_DRAWINGS = 400
"""On a contact sheet, at most."""
SHEET_SIZE = 128
"""Pixels per side of a drawing there."""
MANY = 1000
"""Drawings from which on it is worth saying how fast it was."""
NOT_SURE = "not sure"
WIDEST_NAME = 48


class Recognized(NamedTuple):
    """A drawing's guesses, or why it has none."""

    name: str
    answer: Answer
    sure: bool
    error: str | None = None


def recognize(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="PNG, JPEG, WebP, GIF, BMP, TIFF, SVG or JSON files; .ndjson files, a drawing per line; folders; "
            "- for standard input.",
        ),
    ],
    model: Annotated[str, typer.Option(help="A packed model, or a name that 'dabnet models' lists.")] = "default",
    top: Annotated[int, typer.Option(help="Guesses for each drawing.", min=1)] = 3,
    min_confidence: Annotated[
        float, typer.Option(help=f"Answer '{NOT_SURE}' if no guess is as likely as this.", min=0, max=1)
    ] = MIN_CONFIDENCE,
    sheet: Annotated[
        Path | None,
        typer.Option(help=f"Draw the first {SHEET_DRAWINGS} as the network sees them, pictures beside: a PNG file."),
    ] = None,
    threads: Annotated[int, typer.Option(help="Threads that read drawings and run the model.", min=1)] = 1,
    max_work: Annotated[
        float, typer.Option(help="Billions of multiply-adds that the model may take for a drawing.", min=0)
    ] = DEFAULT_MAX_WORK / 1e9,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object per drawing, and nothing else.")] = False,
) -> None:
    """Tell what drawings show: dark lines on light or light on dark, photographed or drawn as strokes.

    A file that cannot be read is reported, and the others are recognized; the exit code is 1 then.

    dabnet recognize cup.png photo.jpg strokes.json

    dabnet recognize folder/ --sheet guesses.png

    dabnet recognize cats.ndjson --json > cats.guesses.ndjson

    curl -s https://example.org/drawing.svg | dabnet recognize -
    """
    heed_interrupts()
    if sheet is not None:
        check_output(sheet, (".png",))
    recognizer = Recognizer.load(model, threads, max_work=max_work * 1e9)
    shown: list[tuple[Recognized, Sketch | None]] = []
    skipped: list[str] = []
    count = failed = 0
    print_batch = _print_json if as_json else _Table(recognizer).print
    begun = time.monotonic()
    for batch in stream_drawings(files, cast("BufferedReader", sys.stdin.buffer), threads, skipped):
        with ending_at_once():
            found = _recognize(recognizer, batch, top, min_confidence)
        print_batch(found)
        count += len(found)
        failed += len(batch.errors)
        if sheet is not None:
            read = [number for number in range(len(batch)) if number not in batch.errors]
            shown += [(found[number], batch.sketch(number)) for number in read[: SHEET_DRAWINGS - len(shown)]]
        _report_progress(count, time.monotonic() - begun)
    _report_progress(0, 0)
    if count >= MANY:
        seconds = time.monotonic() - begun
        typer.echo(f"{count:,} drawings in {seconds:.1f} s: {count / seconds:,.0f} per second.", err=True)
    if sheet is not None:
        _draw_sheet(recognizer, shown, sheet)
        left_out = f" (the first {SHEET_DRAWINGS})" if count - failed > SHEET_DRAWINGS else ""
        typer.echo(f"{counted(len(shown), 'drawing')} on {printable(sheet)}{left_out}.", err=True)
    if skipped:
        were = "file is no drawing" if len(skipped) == 1 else "files are no drawings"
        typer.echo(f"{len(skipped):,} {were} by name, and skipped: {name_some(skipped)}.", err=True)
    if failed:
        if count > 1:
            typer.echo(f"{failed:,} of {counted(count, 'drawing')} could not be read.", err=True)
        raise typer.Exit(1)


def _recognize(recognizer: Recognizer, batch: Batch, top: int, min_confidence: float) -> list[Recognized]:
    answers = recognizer.answer(batch, top)
    return [
        Recognized(name, answers[number], is_sure(answers[number], min_confidence))
        if number in answers
        else Recognized(name, [], False, str(batch.errors[number]))
        for number, name in enumerate(batch.names)
    ]


def _print_json(found: list[Recognized]) -> None:
    lines = []
    for one in found:
        if one.error is not None:
            said: dict[str, Any] = {"drawing": one.name, "error": one.error}
        else:
            guesses = [{"label": label, "probability": round(share, 6)} for label, share in one.answer]
            said = {"drawing": one.name, "guesses": guesses, "sure": one.sure}
        lines.append(to_json(said))
    typer.echo("\n".join(lines))


class _Table:
    """Prints lines under headings as drawings come; the first of them decide how wide names are.

    On a terminal every line fits into its width: long names and labels are cut.
    """

    def __init__(self, recognizer: Recognizer) -> None:
        self._screen = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
        widest = max(len(NOT_SURE), *(len(_shown(label)) for label in recognizer.labels))
        self._label = min(widest, max(len(NOT_SURE), self._screen // 3))
        self._name = 0

    def print(self, batch: list[Recognized]) -> None:
        for one in batch:
            if one.error is not None:
                name = "" if one.name in one.error else f"{one.name}: "
                typer.echo(f"dabnet: {printable(name + one.error)}", err=True)
                continue
            if not self._name:
                self._print_headings([one.name for one in batch if one.error is None])
            guess, rest = (one.answer[0], one.answer[1:]) if one.sure else ((NOT_SURE, None), one.answer)
            also = ", ".join(f"{_shown(label)} {_percent(share)}" for label, share in rest)
            self._print(one.name, guess[0], "" if guess[1] is None else _percent(guess[1]), also)

    def _print_headings(self, names: list[str]) -> None:
        widest = max(len("drawing"), *(min(len(printable(name)), WIDEST_NAME) for name in names))
        self._name = min(widest, max(len("drawing"), self._screen // 3))
        self._print("drawing", "guess", "", "also likely")

    def _print(self, name: str, guess: str, share: str, also: str) -> None:
        if self._screen < sys.maxsize:
            name, guess = printable(name, self._name), printable(guess, self._label)
        line = f"{printable(name):{self._name}}  {_shown(guess):{self._label}}  {share:>5}  {also}".rstrip()
        typer.echo(printable(line, self._screen))


def _shown(label: str) -> str:
    return printable(label, WIDEST_NAME)


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %" if share >= 0.01 else "<1 %"


def _report_progress(count: int, seconds: float) -> None:
    """Say on standard error how far it is, where that is a terminal and the answers go elsewhere; nothing for 0."""
    if sys.stderr.isatty() and not sys.stdout.isatty():
        words = f"{count:,} drawings, {count / max(seconds, 1e-9):,.0f} per second" if count else ""
        sys.stderr.write(f"\r{words}\x1b[K")
        sys.stderr.flush()


def _draw_sheet(recognizer: Recognizer, shown: list[tuple[Recognized, Sketch | None]], path: Path) -> None:
    from dabnet.sketches.images import read_thumbnail
    from dabnet.sketches.sheet import Captioned, draw_captioned  # fonts take a while

    if not shown:
        raise InputError("no drawing could be read: there is nothing to put on a sheet.")
    raster = replace(recognizer.raster, size=SHEET_SIZE)
    drawings = []
    for one, sketch in shown:
        assert sketch is not None
        label, share = _shown(one.answer[0][0]), one.answer[0][1]
        caption = (label, _percent(share)) if one.sure else (NOT_SURE, f"perhaps {label}, {_percent(share)}")
        picture = None if sketch.bitmap is None else read_thumbnail(one.name, SHEET_SIZE)
        drawings.append(Captioned(rasterize(sketch, raster), *caption, picture))
    file = io.BytesIO()
    draw_captioned(drawings).save(file, "PNG", optimize=True)
    write_beside(path, file.getvalue())
