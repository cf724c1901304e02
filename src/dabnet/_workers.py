"""Work in processes, each with a pipe of its own: one that is killed, at any moment, holds nothing that others need.

`concurrent.futures.ProcessPoolExecutor` waits for ever when a worker is killed while it is sent more than a pipe takes
(a model is), because the other end of that pipe stays open in the process that sends.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections import Counter, deque
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, TypeVar

from dabnet.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection

Item = TypeVar("Item")
Result = TypeVar("Result")

ATTEMPTS = 3
"""How many workers may die at an item, or while they start; the next one that does ends the work."""
MOST = 61 if sys.platform == "win32" else 1_000_000
"""Workers; Windows waits for so many things at a time."""


class WorkersDiedError(Exception):
    """Worker after worker was ended while it did this item; None if while it started."""

    def __init__(self, item: Any) -> None:
        did = "started" if item is None else f"did {item}"
        super().__init__(f"{ATTEMPTS + 1} workers died while they {did}")
        self.item = item


class _Worker:
    """A process, from its start on, and the item that it is at.

    It is sent something only while it waits for that, so neither side ever waits for the other to read.
    """

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")  # forking a process with threads can hang
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.is_up = False
        self.items: list[Any] = []
        with _deaf_to_interrupts():  # which the worker inherits: this process answers Ctrl-C
            self.process.start()
        theirs.close()  # so that the connection ends when the worker does

    def give(self, item: Any) -> None:
        self.items = [item]
        with suppress(OSError):  # if it just died, its connection says so next time
            self.connection.send_bytes(pickle.dumps(item))

    def end(self) -> None:
        """Let it end, at once if it is at something."""
        self.connection.close()
        if self.items or not self.is_up:
            self.process.kill()
        self.process.join()


def work_in_processes(
    work: Callable[[Item], Result], items: Sequence[Item], workers: int | None = None
) -> Iterator[Result]:
    """Yield what becomes of items as they are done; one worker per core, unless told otherwise.

    Whoever is killed is replaced, and what it had is done again. An error that `work` raises is raised here.
    """
    if workers is not None and workers < 1:
        raise InputError(f"there must be at least one worker, not {workers}.")
    waiting = deque(items)
    attempts: Counter[Item | None] = Counter()
    crew: list[_Worker] = []
    limit = min(workers or count_cores(), len(waiting), MOST)
    packed = pickle.dumps(work)
    try:
        while waiting or any(worker.items for worker in crew):
            while waiting and len(crew) < limit:
                crew.append(_Worker())
            ready = wait([worker.connection for worker in crew])
            for worker in [each for each in crew if each.connection in ready]:
                try:
                    answer = worker.connection.recv_bytes()
                except (EOFError, OSError):
                    crew.remove(worker)
                    lost = worker.items[0] if worker.items else None
                    waiting.extendleft(worker.items)
                    worker.end()
                    attempts[lost] += 1
                    if attempts[lost] > ATTEMPTS:
                        raise WorkersDiedError(lost) from None
                    continue
                if not worker.is_up:
                    worker.is_up = True
                    with suppress(OSError):
                        worker.connection.send_bytes(packed)
                worker.items = []
                if waiting:
                    worker.give(waiting.popleft())
                if answer:
                    result, problem = pickle.loads(answer)
                    if problem is not None:
                        raise problem
                    yield result
    finally:
        for worker in crew:
            worker.end()


def count_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _serve(connection: Connection) -> None:
    """Do what comes by the connection until it ends."""
    _die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # which the terminal sends to all
    with suppress(EOFError, ConnectionError):
        connection.send_bytes(b"")  # it is up
        packed, work = connection.recv_bytes(), None
        while True:
            item = connection.recv_bytes()
            try:
                work = work or pickle.loads(packed)
                answer = pickle.dumps((work(pickle.loads(item)), None))
            except Exception as error:
                answer = pickle.dumps((None, _portable(error)))
            connection.send_bytes(answer)


def _portable(error: Exception) -> Exception:
    """Return an error that another process can read, with where it was raised."""
    error.add_note("In a worker:\n" + "".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _die_with_parent() -> None:
    """Let this worker end when the process that started it does, however that ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:

        def watch() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=watch, name="watch the parent", daemon=True).start()


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Let Ctrl-C wait until this ends."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
