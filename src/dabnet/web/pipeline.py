"""Threads that read drawings, and threads that run the network on all that are ready.

The network takes what is there when it is free: a lone drawing runs at once, and while batches run, the next one
gathers. Only if more drawings are being read already does it wait for them, for a few hundred microseconds.
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from dabnet.errors import DabnetError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Images = NDArray[np.float32]  # (N, channels, height, width)

T = TypeVar("T")
PATIENCE = 0.0003
"""Seconds to wait for drawings that are being read."""
READERS = (2, max(1, (os.cpu_count() or 1) // 2))
"""Threads that read strokes, and threads that read what may take long: pictures neither hold up the strokes of others
nor take all cores."""
RUNNERS = 2
"""Batches that run side by side: while one hands its answers over, the other keeps the cores busy."""


class Ran(NamedTuple):
    """The probabilities of a drawing's labels, (classes,), and the seconds of each step; a batch runs as one."""

    chances: NDArray[np.float64]
    reading: float
    waiting: float
    running: float


@dataclass(eq=False, slots=True)
class _Job:
    read: Callable[[], Any]
    is_run: bool
    """Whether the network runs on what was read."""
    future: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    x: Any = None
    reading: float = 0.0
    ready: float = 0.0
    submitted: float = field(default_factory=perf_counter)


class Pipeline:
    """Reads drawings and runs a network on them; hand them in from one running event loop.

    Args:
        run: gives the probabilities (N, classes) of images, within so many seconds.
        largest: images that run together at most, so that nobody waits long for the others.
        seconds: how long after it was handed in a drawing may still run.
    """

    def __init__(
        self, run: Callable[[Images, float], NDArray[np.float64]], largest: int = 8, seconds: float = 3600.0
    ) -> None:
        self.batches = 0
        self.drawings = 0
        self._run = run
        self._largest = largest
        self._seconds = seconds
        self._unread: tuple[SimpleQueue[_Job | None], ...] = (SimpleQueue(), SimpleQueue())  # what is quick, and slow
        self._ready: SimpleQueue[_Job | None] = SimpleQueue()
        self._reading = 0
        self._lock = threading.Lock()  # of all numbers
        self._begun: dict[int, float] = {}  # when each thread that works began
        self._readers = [
            threading.Thread(target=self._read_all, args=(queue,), name="reader", daemon=True)
            for queue, count in zip(self._unread, READERS, strict=True)
            for _ in range(count)
        ]
        self._runners = [threading.Thread(target=self._run_all, name="network", daemon=True) for _ in range(RUNNERS)]
        for thread in (*self._readers, *self._runners):
            thread.start()

    def recognize(self, read: Callable[[], Images], *, is_slow: bool = False) -> asyncio.Future[Ran]:
        """Call `read`, which gives one image, in a thread, and run the network on what it gives."""
        return self._submit(_Job(read, is_run=True), is_slow)

    def read(self, read: Callable[[], T], *, is_slow: bool = False) -> asyncio.Future[T]:
        """Only call `read`, in its turn."""
        return self._submit(_Job(read, is_run=False), is_slow)

    def longest(self) -> float:
        """Return the seconds for which any thread has worked on what it works on now; infinite if one has died."""
        if not all(thread.is_alive() for thread in (*self._readers, *self._runners)):
            return math.inf
        now = perf_counter()
        return max((now - begun for begun in list(self._begun.values())), default=0.0)

    def close(self, seconds: float | None = None) -> None:
        """Finish what was handed in, and end the threads; those that need longer are left to die with the process."""
        until = math.inf if seconds is None else perf_counter() + seconds
        for queue, count in zip(self._unread, READERS, strict=True):
            for _ in range(count):
                queue.put(None)
        for thread in self._readers:
            thread.join(None if seconds is None else max(0.0, until - perf_counter()))
        for _ in self._runners:
            self._ready.put(None)
        for thread in self._runners:
            thread.join(None if seconds is None else max(0.0, until - perf_counter()))

    def _submit(self, job: _Job, is_slow: bool) -> asyncio.Future[Any]:
        with self._lock:
            self._reading += 1
        self._unread[is_slow].put(job)
        return job.future

    def _read_all(self, queue: SimpleQueue[_Job | None]) -> None:
        while (job := queue.get()) is not None:
            if job.future.done():  # nobody waits for it any more
                job = None  # nor is its body kept
                with self._lock:
                    self._reading -= 1
                continue
            begun = self._begun[threading.get_ident()] = perf_counter()
            try:
                job.x = job.read()
            except Exception as problem:  # whoever asked gets it
                _settle([job], problem)
            else:
                job.ready = perf_counter()
                job.reading = job.ready - begun
                if job.is_run:
                    self._ready.put(job)
                else:
                    _settle([job], [job.x])
            del self._begun[threading.get_ident()]
            with self._lock:
                self._reading -= 1

    def _run_all(self) -> None:
        while (job := self._ready.get()) is not None:
            batch = [each for each in self._gather(job) if not each.future.done()]  # but for those that nobody wants
            if not batch:
                continue
            begun = self._begun[threading.get_ident()] = perf_counter()
            try:
                answers = self._run_batch(batch)
            except Exception as problem:  # whoever asked gets it
                _settle(batch, problem)
                continue
            finally:
                del self._begun[threading.get_ident()]
            running = perf_counter() - begun
            with self._lock:
                self.batches += 1
                self.drawings += len(batch)
            outcomes = [
                found if isinstance(found, Exception) else Ran(found, job.reading, begun - job.ready, running)
                for found, job in zip(answers, batch, strict=True)
            ]
            _settle(batch, outcomes)

    def _run_batch(self, batch: list[_Job]) -> list[NDArray[np.float64] | Exception]:
        """Run drawings together; if that does not work, one by one, so that one does not take the others with it."""
        until = max(job.submitted for job in batch) + self._seconds
        try:
            return list(self._run(np.concatenate([job.x for job in batch]), max(until - perf_counter(), 0.0)))
        except DabnetError as problem:
            if len(batch) == 1:
                return [problem]
            return [problem if job.future.done() else self._run_batch([job])[0] for job in batch]

    def _gather(self, first: _Job) -> list[_Job]:
        """Take what is ready, and wait a moment for what is being read."""
        batch = [first]
        until = perf_counter() + PATIENCE
        while len(batch) < self._largest:
            wait = until - perf_counter() if self._reading else 0.0
            try:
                job = self._ready.get(timeout=wait) if wait > 0 else self._ready.get_nowait()
            except Empty:
                break
            if job is None:
                self._ready.put(None)  # again, after this batch
                break
            batch.append(job)
        return batch


def _settle(batch: list[_Job], outcome: list[Any] | Exception) -> None:
    """Wake those who wait for a batch, all at once."""

    def wake() -> None:
        for position, job in enumerate(batch):
            if job.future.done():  # nobody waits any more
                continue
            found = outcome if isinstance(outcome, Exception) else outcome[position]
            if isinstance(found, Exception):
                job.future.set_exception(found)
            else:
                job.future.set_result(found)

    batch[0].future.get_loop().call_soon_threadsafe(wake)
