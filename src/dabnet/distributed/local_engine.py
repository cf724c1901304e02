"""Partitions on the cores of this machine, each worker a process of its own; one that is killed is replaced."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING

from dabnet.errors import InputError
from dabnet.sketches.alone import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dabnet.distributed.partitions import Outcome, Partition
    from dabnet.distributed.work import RecognizePartition

AHEAD = 2
"""Partitions per worker that are handed out at a time."""
ATTEMPTS = 3
"""How often a partition may be at work when a worker dies."""

_work: RecognizePartition
"""What this worker process does."""


def recognize_locally(
    work: RecognizePartition, partitions: Sequence[Partition], workers: int | None = None
) -> Iterator[Outcome]:
    """Yield what became of partitions as workers finish them; one worker per core, unless told otherwise."""
    workers = min(workers or count_cores(), max(len(partitions), 1))
    waiting = list(reversed(partitions))
    attempts: Counter[Partition] = Counter()
    while waiting:
        running: dict[Future[Outcome], Partition] = {}
        pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _begin, (work,))
        try:
            while waiting or running:
                while waiting and len(running) < AHEAD * workers:
                    partition = waiting[-1]
                    running[pool.submit(_recognize, partition)] = partition
                    waiting.pop()
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    outcome = future.result()
                    del running[future]
                    yield outcome
        except BrokenProcessPool:
            lost = list(running.values())
            attempts.update(lost)
            for partition in lost:
                if attempts[partition] > ATTEMPTS:
                    raise InputError(_too_often(partition)) from None
            waiting += reversed(lost)
        except BaseException:
            for worker in multiprocessing.active_children():  # whoever interrupts does not want to wait for them
                worker.kill()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def count_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _begin(work: RecognizePartition) -> None:
    global _work
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # which the terminal sends to all; the parent says when to end
    _work = work


def _recognize(partition: Partition) -> Outcome:
    return _work(partition)


def _too_often(partition: Partition) -> str:
    where = f"'{partition.source}' from {partition.first:,} to {partition.end:,}"
    return f"{ATTEMPTS + 1} workers died while they recognized {where}: give them more memory, or leave it out."
