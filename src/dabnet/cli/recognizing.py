"""What `dabnet recognize` does, and its arguments in their plain form.

Typer, and pydantic with it, take longer to load than a drawing to recognize. So a command line without anything unusual
is read here; help, errors and all the rest are typer's (`recognize.py`).
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from dabnet._text import counted, name_some, printable, to_json
from dabnet.cli.interrupts import ending_at_once, heed_interrupts
from dabnet.cli.streams import say
from dabnet.errors import InputError
from dabnet.runtime.recognizer import MIN_CONFIDENCE, Recognizer, is_sure
from dabnet.runtime.session import DEFAULT_MAX_WORK
from dabnet.sketches.stream import stream_drawings

if TYPE_CHECKING:
    from io import BufferedReader, BytesIO

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


class Settings(NamedTuple):
    """What the command was told; `recognize.py` says what each means."""

    files: list[str]
    model: str = "default"
    top: int = 3
    min_confidence: float = MIN_CONFIDENCE
    sheet: Path | None = None
    threads: int = 1
    max_work: float = DEFAULT_MAX_WORK / 1e9
    as_json: bool = False


DEFAULTS = Settings([])


def read_plainly(arguments: list[str]) -> Settings | None:
    """Return the settings of a command line in plain form; None for any other, good or bad.

    >>> read_plainly(["cat.json", "--top", "2"]).top, read_plainly(["cat.json", "--top=2"]), read_plainly(["--help"])
    (2, None, None)
    """
    files: list[str] = []
    found: dict[str, Any] = {}
    rest = iter(arguments)
    for word in rest:
        if word == "-" or (word and not word.startswith("-")):
            files.append(word)
            continue
        name = word.removeprefix("--").replace("-", "_")
        value = True if word == "--json" else _read_value(name, next(rest, ""))
        if value is None or name in found or not word.startswith("--") or "_" in word:
            return None
        found[name] = value
    if not files or os.name == "nt":  # where typer looks for files that match a pattern
        return None
    found["as_json"] = found.pop("json", False)
    return Settings(files, **found)


def _read_value(name: str, value: str) -> Any:
    """Return an option's value; None if it is anything but plain."""
    if name in ("model", "sheet"):
        return None if not value or value.startswith("-") else Path(value) if name == "sheet" else value
    if not (value.isascii() and value.isdigit() if name in ("top", "threads") else _is_decimal(value)):
        return None
    if name in ("top", "threads"):
        return int(value) if len(value) < 10 and not value.startswith("0") else None
    if name == "min_confidence":
        return float(value) if float(value) <= 1 else None
    return float(value) if name == "max_work" else None


def _is_decimal(value: str) -> bool:
    whole, _, rest = value.partition(".")
    return value.isascii() and whole.isdigit() and (rest.isdigit() or "." not in value)


def recognize_files(settings: Settings) -> int:
    """Recognize all drawings, and print what they show; return the exit code."""
    files, model, top, min_confidence, sheet, threads, max_work, as_json = settings
    heed_interrupts()
    if sheet is not None:
        from dabnet._files import check_output

        check_output(sheet, (".png",))
    recognizer = Recognizer.load(model, threads, max_work=max_work * 1e9)
    shown: list[tuple[Recognized, Sketch | None]] = []
    skipped: list[str] = []
    count = failed = 0
    print_batch = _print_json if as_json else _Table(recognizer).print
    begun = time.monotonic()
    for batch in stream_drawings(files, _standard_input(), threads, skipped):
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
        say(f"{count:,} drawings in {seconds:.1f} s: {count / seconds:,.0f} per second.", error=True)
    if sheet is not None:
        _draw_sheet(recognizer, shown, sheet)
        left_out = f" (the first {SHEET_DRAWINGS})" if count - failed > SHEET_DRAWINGS else ""
        say(f"{counted(len(shown), 'drawing')} on {printable(sheet)}{left_out}.", error=True)
    if skipped:
        were = "file is no drawing" if len(skipped) == 1 else "files are no drawings"
        say(f"{len(skipped):,} {were} by name, and skipped: {name_some(skipped)}.", error=True)
    if failed and count > 1:
        say(f"{failed:,} of {counted(count, 'drawing')} could not be read.", error=True)
    return 1 if failed else 0


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
    say("\n".join(lines))


class _Table:
    """Prints lines under headings as drawings come; the first of them decide how wide names are.

    On a terminal every line fits into its width: long names and labels are cut.
    """

    def __init__(self, recognizer: Recognizer) -> None:
        self._screen = _screen_width()
        widest = max(len(NOT_SURE), *(len(_shown(label)) for label in recognizer.labels))
        self._label = min(widest, max(len(NOT_SURE), self._screen // 3))
        self._name = 0

    def print(self, batch: list[Recognized]) -> None:
        for one in batch:
            if one.error is not None:
                name = "" if one.name in one.error else f"{one.name}: "
                say(f"dabnet: {printable(name + one.error)}", error=True)
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
        say(printable(line, self._screen))


def _screen_width() -> int:
    if sys.stdout is None or not sys.stdout.isatty():
        return sys.maxsize
    import shutil

    return shutil.get_terminal_size().columns


def _shown(label: str) -> str:
    return printable(label, WIDEST_NAME)


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %" if share >= 0.01 else "<1 %"


def _standard_input() -> BufferedReader | BytesIO:
    """Return standard input; it is empty where there is none, as for what cron starts."""
    import io

    return cast("BufferedReader", sys.stdin.buffer) if sys.stdin is not None else io.BytesIO()


def _report_progress(count: int, seconds: float) -> None:
    """Say on standard error how far it is, where that is a terminal and the answers go elsewhere; nothing for 0."""
    if sys.stderr is not None and sys.stderr.isatty() and not (sys.stdout and sys.stdout.isatty()):
        words = f"{count:,} drawings, {count / max(seconds, 1e-9):,.0f} per second" if count else ""
        sys.stderr.write(f"\r{words}\x1b[K")
        sys.stderr.flush()


def _draw_sheet(recognizer: Recognizer, shown: list[tuple[Recognized, Sketch | None]], path: Path) -> None:
    import io
    from dataclasses import replace

    from dabnet._files import write_beside
    from dabnet.sketches.images import read_thumbnail
    from dabnet.sketches.raster import rasterize
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
