"""What `dabnet recognize -o FOLDER` does: lists of drawings in, files of answers out, on many cores or machines."""

from __future__ import annotations

import sys
import time
from collections import Counter
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from dabnet._files import check_folder, write_beside
from dabnet._lazy import load
from dabnet._text import counted, printable, to_json
from dabnet.cli.engines import LOCAL, check_engine
from dabnet.cli.interrupts import INTERRUPTED, heed_interrupts
from dabnet.cli.streams import say
from dabnet.sketches.alone import only_writer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dabnet.distributed.partitions import Outcome, Partition
    from dabnet.distributed.work import RecognizePartition

DRAWINGS_PER_PARTITION = 16_384
"""Some seconds' work, which is what is lost with a worker that is killed."""
SUMMARY = "_summary.json"
"""The name of what was counted; readers of Parquet leave out what begins so."""
SHOWN_CLASSES = 20
REPORT_SECONDS = 30.0
"""How often it says how far it is, where nobody watches."""


class ManySettings(NamedTuple):
    """What the command was told; `recognize.py` says what each means."""

    files: list[str]
    output: Path
    model: str
    top: int
    engine: str
    address: str | None
    workers: int | None
    partition: int
    max_work: float
    as_json: bool


def recognize_many(settings: ManySettings) -> None:
    """Recognize what is not recognized yet, and tell what all of it shows."""
    check_engine(settings.engine, settings.address)
    heed_interrupts()
    distributed = load("dabnet.distributed.recognize_batch")
    # A model that is refused is refused here, before anything starts.
    recognize = distributed.RecognizeBatch(settings.model, settings.top, max_work=settings.max_work * 1e9)
    work = load("dabnet.distributed.work").RecognizePartition(recognize)
    folder = settings.output.absolute()
    check_folder(folder)
    planned = load("dabnet.distributed.partitions").plan_partitions(settings.files, folder, settings.partition)
    folder.mkdir(parents=True, exist_ok=True)
    with only_writer(folder / SUMMARY):
        for left in folder.glob(".dabnet-*.writing"):  # by a worker that was killed
            with suppress(OSError):
                left.unlink()
        try:
            summary = _recognize(work, planned, settings)
        except KeyboardInterrupt:
            say("Stopped. What is written stays: run the same command again to go on.", error=True)
            raise SystemExit(INTERRUPTED) from None
        write_beside(folder / SUMMARY, (to_json(summary, indent=2) + "\n").encode())
    if settings.as_json:
        say(to_json(summary, indent=2))
    else:
        _print(summary, settings.output)


def _recognize(work: RecognizePartition, planned: list[Partition], settings: ManySettings) -> dict[str, Any]:
    begun = time.monotonic()
    done = {partition: work.done(partition) for partition in planned}
    found = [outcome for outcome in done.values() if outcome is not None]
    missing = [partition for partition, outcome in done.items() if outcome is None]
    if found and not settings.as_json:
        say(f"{len(found):,} of {counted(len(planned), 'partition')} are done already.", error=True)
    progress = _Progress(sum(partition.drawings for partition in missing), len(missing))
    new = 0
    for outcome in _run(work, missing, settings) if missing else ():
        found.append(outcome)
        new += outcome.drawings
        progress.report(outcome)
    progress.end()
    seconds = time.monotonic() - begun
    labels: Counter[str] = Counter()
    for outcome in found:
        labels.update(outcome.labels)
    return {
        "partitions": len(planned),
        "drawings": sum(outcome.drawings for outcome in found),
        "errors": sum(outcome.errors for outcome in found),
        "new": new,
        "seconds": round(seconds, 3),
        "per_second": round(new / seconds, 1),
        "classes": dict(labels.most_common()),
    }


def _run(work: RecognizePartition, missing: list[Partition], settings: ManySettings) -> Iterator[Outcome]:
    with ExitStack() as stack:
        if settings.engine == LOCAL:
            yield from load("dabnet.distributed.local_engine").recognize_locally(work, missing, settings.workers)
        else:
            engine = load("dabnet.distributed.ray_engine")
            stack.enter_context(engine.connected(settings.address, settings.workers))
            yield from engine.recognize_on_ray(work, missing, settings.workers)


class _Progress:
    """Says on standard error how far it is: on a terminal in one line, elsewhere now and then."""

    def __init__(self, drawings: int, partitions: int) -> None:
        self._all, self._partitions = drawings, partitions
        self._count = self._done = 0
        self._begun = self._told = time.monotonic()
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty()

    def report(self, outcome: Outcome) -> None:
        self._count += outcome.drawings
        self._done += 1
        now = time.monotonic()
        rate = self._count / max(now - self._begun, 1e-9)
        left = max(self._all - self._count, 0) / rate if rate else 0
        line = (
            f"{self._done:,} of {self._partitions:,} partitions, {self._count:,} drawings, {rate:,.0f} per second, "
            f"{_clock(left)} left"
        )
        if self._is_terminal:
            sys.stderr.write(f"\r{line}\x1b[K")
            sys.stderr.flush()
        elif now - self._told >= REPORT_SECONDS:
            say(line, error=True)
            self._told = now

    def end(self) -> None:
        if self._is_terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def _print(summary: dict[str, Any], output: Path) -> None:
    classes: dict[str, int] = summary["classes"]
    width = max((len(printable(label)) for label in list(classes)[:SHOWN_CLASSES]), default=0)
    for label, count in list(classes.items())[:SHOWN_CLASSES]:
        say(f"{printable(label):{width}}  {count:>12,}  {count / summary['drawings']:6.1%}")
    if len(classes) > SHOWN_CLASSES:
        say(f"and {counted(len(classes) - SHOWN_CLASSES, 'more class', 'more classes')}.")
    broken = f", {summary['errors']:,} of them with an error" if summary["errors"] else ""
    files = counted(summary["partitions"], "file")
    say(f"{counted(summary['drawings'], 'drawing')} in {files}{broken}: {printable(output)}")
    if summary["new"]:
        say(f"{summary['new']:,} of them in {summary['seconds']:.1f} s: {summary['per_second']:,.0f} per second.")
