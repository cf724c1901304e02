"""Times engines beside each other: each in a process of its own, in turns, so that a slow moment hits all of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dabnet.comparing.engines import ENGINES, MAX_MEMORY, OURS, check_engines
from dabnet.comparing.sketches import draw_sketches
from dabnet.errors import InputError
from dabnet.runtime import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dabnet.packed.model import Model

    Progress = Callable[[str, int, int], None]
    """Gets what is being done, the steps done so far, and all of them."""

RUNS_PER_TURN = 5
"""Timed runs of an engine before the next has its turn."""
THROUGHPUT_TURNS = 3


class Memory(NamedTuple):
    """Bytes that an engine's process had resident."""

    peak: int
    """The most that it had, Python and the engine's library included."""
    growth: int
    """How much of that came after the library was imported: the model, and room to run it."""


class Worker:
    """An engine at work in a process of its own (`worker.py`)."""

    def __init__(
        self, engine: str, model: Path, sketches: Path, threads: int = 1, environment: Mapping[str, str] | None = None
    ) -> None:
        self.engine = engine
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  # open as long as the process
        command = [sys.executable, "-m", "dabnet.comparing.worker", engine, str(model), str(sketches), str(threads)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, **(environment or {}), "OMP_NUM_THREADS": str(threads)},
        )
        self._read()

    def time(self, batch: int, runs: int) -> list[float]:
        """Return the seconds of so many runs, after one that does not count."""
        seconds: list[float] = self._ask(batch=batch, runs=runs)["seconds"]
        return seconds

    def logits(self, batch: int) -> list[list[float]]:
        """Return its answers to the first sketches."""
        logits: list[list[float]] = self._ask(logits=batch)["logits"]
        return logits

    def memory(self) -> Memory:
        """Return the memory that it has had until now."""
        return Memory(**self._ask(memory=True))

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()
        self._errors.close()

    def _ask(self, **request: Any) -> Any:
        assert self._process.stdin is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return self._read()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            said = self._errors.read().strip().splitlines() or ["it was killed"]
            self.close()
            raise InputError(f"{self.engine} cannot run this model ({said[-1][:200]}): leave it out.")
        return json.loads(line)


class Contestant(NamedTuple):
    """An engine that is ready, and the bytes of the files that it loaded."""

    worker: Worker
    bytes: int


@contextmanager
def start_engines(
    model: Model,
    names: Sequence[str],
    *,
    threads: int = 1,
    sketches: int = 1,
    environments: Mapping[str, Mapping[str, str]] | None = None,
    progress: Progress | None = None,
) -> Iterator[dict[str, Contestant]]:
    """Start engines on the same model, ready to run as many drawn sketches at once.

    `environments` starts each of them several times: as NAME + key, with these variables in its environment.
    """
    check_engines(list(names))
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        folder = Path(temporary)
        drawn = folder / "sketches.npy"
        np.save(drawn, draw_sketches(sketches, model.input_size, model.raster))
        ready = {}
        for i, name in enumerate(names):
            if progress:
                progress(f"starting {name}", i, len(names))
            path = ENGINES[name].write(model, folder)
            beside = path.with_suffix(".bin")  # of OpenVINO's own format
            size = sum(file.stat().st_size for file in (path, beside) if file.exists())
            for key, environment in (environments or {"": {}}).items():
                worker = Worker(name, path, drawn, threads, environment)
                stack.callback(worker.close)
                ready[name + key] = Contestant(worker, size)
        yield ready


def take_turns(
    contestants: Mapping[str, Contestant],
    batch: int,
    turns: int,
    runs: int = RUNS_PER_TURN,
    progress: Progress | None = None,
) -> dict[str, list[float]]:
    """Return the seconds of `turns` x `runs` runs of each.

    A turn begins with a run that does not count, which brings its weights back to the caches and wakes its threads.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(turns):
        for name, contestant in contestants.items():
            seconds[name] += contestant.worker.time(batch, runs)
        if progress:
            progress(f"batches of {batch}", turn + 1, turns)
    return seconds


@dataclass
class Row:
    """What was measured of one engine."""

    name: str
    about: str
    version: str
    bytes: int
    latency_ms: dict[str, float] = field(default_factory=dict)
    """Milliseconds of one sketch: min, median, p99."""
    ratio: float = 1.0
    """Its least time as a multiple of dabnet's."""
    sketches_per_second: dict[str, float] = field(default_factory=dict)
    """Throughput, by the size of the batch."""
    memory: dict[str, int] = field(default_factory=dict)
    """Bytes of memory with one sketch at a time: peak and growth, see `Memory`."""


@dataclass
class Comparison:
    """Engines beside each other on the same model and sketches."""

    input_size: tuple[int, int, int]
    threads: int
    kernels: str
    runs: int
    ink: float
    """The share of the sketch's pixels that are not blank."""
    engines: list[Row]
    layers: list[dict[str, Any]]
    """Dabnet's steps with the least milliseconds of each."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and strings, for JSON."""
        return asdict(self)


def compare(
    model: Model,
    against: Sequence[str],
    *,
    threads: int = 1,
    batches: Sequence[int] = (1, 8, 64),
    runs: int = 100,
    progress: Progress | None = None,
) -> Comparison:
    """Measure dabnet and other engines: time, throughput by batch, file, memory, and where dabnet's time goes."""
    names = [OURS, *(name for name in dict.fromkeys(against) if name != OURS)]
    check_engines(names)
    x = draw_sketches(1, model.input_size, model.raster)
    session = Session(model, threads, max_memory=MAX_MEMORY)
    with start_engines(model, names, threads=threads, sketches=max(batches, default=1), progress=progress) as ready:
        rows = [Row(name, ENGINES[name].about, version(ENGINES[name].library), ready[name].bytes) for name in names]
        seconds = take_turns(ready, 1, -(-runs // RUNS_PER_TURN), progress=progress)
        best = min(seconds[OURS])
        for row in rows:
            least, median, high = np.quantile(seconds[row.name], (0, 0.5, 0.99)) * 1e3
            row.latency_ms = {"min": float(least), "median": float(median), "p99": float(high)}
            row.ratio = min(seconds[row.name]) / best
            row.memory = ready[row.name].worker.memory()._asdict()
        for batch in batches:
            if batch > 1:
                seconds = take_turns(ready, batch, THROUGHPUT_TURNS, max(1, 16 // batch), progress)
            for row in rows:
                row.sketches_per_second[str(batch)] = batch / min(seconds[row.name])
    steps = [{"step": step, "ms": time * 1e3} for step, time in session.layer_times(x, runs)]
    ink = float((x > 0).mean())
    return Comparison(model.input_size, threads, session.kernels, runs, ink, rows, steps)
