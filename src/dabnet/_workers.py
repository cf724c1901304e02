"""Work in processes, each with a pipe of its own: one that is killed, at any moment, holds nothing that others need.

`concurrent.futures.ProcessPoolExecutor` waits for ever when a worker is killed while it is sent more than a pipe takes
(a model is), because the other end of that pipe stays open in the process that sends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import Counter, deque
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 2
"""Items that a worker has at a time, so that it need not wait for the next one."""
ATTEMPTS = 3
"""How many workers may die at an item; the next one that does ends the work."""


class WorkersDiedError(Exception):
    """Worker after worker was ended while it did this item."""

    def __init__(self, item: Any) -> None:
        super().__init__(f"{ATTEMPTS + 1} workers died while they did {item}")
        self.item = item


class _Worker:
    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")  # forking a process with threads can hang
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.items: deque[Any] = deque()  # it is at the first of them
        with _deaf_to_interrupts():  # which the worker inherits: this process answers Ctrl-C
            self.process.start()
        theirs.close()  # so that the connection ends when the worker does

    def end(self) -> None:
        """Let it end, at once if it is at something."""
        self.connection.close()
        if self.items:
            self.process.kill()
        self.process.join()


def work_in_processes(
    work: Callable[[Item], Result], items: Sequence[Item], workers: int | None = None
) -> Iterator[Result]:
    """Yield what becomes of items as they are done; one worker per core, unless told otherwise.

    Whoever is killed is replaced, and what it had is done again. An error that `work` raises is raised here.
    """
    waiting = deque(items)
    attempts: Counter[Item] = Counter()
    crew: list[_Worker] = []
    limit = min(workers or count_cores(), len(waiting))
    try:
        while waiting or any(worker.items for worker in crew):
            while waiting and len(crew) < limit:
                crew.append(_Worker())
            ready = wait([worker.connection for worker in crew])
            for worker in [each for each in crew if each.connection in ready]:
                try:
                    answer = worker.connection.recv()
                except (EOFError, OSError):
                    crew.remove(worker)
                    waiting.extendleft(reversed(worker.items))
                    worker.end()
                    if waiting:
                        attempts[waiting[0]] += 1
                        if attempts[waiting[0]] > ATTEMPTS:
                            raise WorkersDiedError(waiting[0]) from None
                    continue
                if answer is not None:
                    worker.items.popleft()
                with suppress(OSError):  # if it just died, its connection says so next time
                    if answer is None:  # it is up
                        worker.connection.send(work)
                    while waiting and len(worker.items) < AHEAD:
                        worker.items.append(waiting.popleft())
                        worker.connection.send(worker.items[-1])
                if answer is not None:
                    result, problem = answer
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
    connection.send(None)
    with suppress(EOFError, OSError):
        work = connection.recv()
        while True:
            item = connection.recv()
            result, problem = None, None
            try:
                result = work(item)
            except Exception as error:
                problem = error
            connection.send((result, problem))


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
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may change this
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
