"""Partitions on the cores of this machine, each worker a process of its own; one that is killed is replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dabnet._workers import WorkersDiedError, work_in_processes
from dabnet.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dabnet.distributed.partitions import Outcome, Partition
    from dabnet.distributed.work import RecognizePartition


def recognize_locally(
    work: RecognizePartition, partitions: Sequence[Partition], workers: int | None = None
) -> Iterator[Outcome]:
    """Yield what became of partitions as workers finish them; one worker per core, unless told otherwise."""
    try:
        yield from work_in_processes(work, partitions, workers)
    except WorkersDiedError as problem:
        if problem.item is None:
            raise InputError("no worker could start: what they wrote above says why.") from None
        where = f"'{problem.item.source}' from {problem.item.first:,} to {problem.item.end:,}"
        advice = "give them more memory, or leave it out"
        raise InputError(f"one worker after another died while it recognized {where}: {advice}.") from None
