"""Partitions on a cluster of Ray's, by Ray Data, which hands them out and repeats what was lost with a node.

Only what a partition is, and what became of it, goes through Ray: drawings go from a file to a worker, and answers from
the worker to a file. So all machines must see the same folders.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any

from dabnet._lazy import load
from dabnet.distributed.partitions import Outcome, Partition
from dabnet.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dabnet.distributed.work import RecognizePartition

LOOPBACK = ("127.0.0.1", "localhost")
RETRIES = 10
"""How often a partition is tried again when its worker, or the machine that this was on, dies."""


@contextmanager
def connected(address: str | None = None, workers: int | None = None) -> Iterator[Any]:
    """Join a cluster, or have one on this machine only if there is no address; yields Ray's module.

    Ray serves whoever reaches its ports, so what is started here listens on 127.0.0.1, and tells nobody of its use.
    What it prints goes to standard error.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_TASK_MAX_RETRIES", str(RETRIES))
    if address is None or address.partition(":")[0] in LOOPBACK:
        # Ray would take the network's address for 127.0.0.1; by this, which is read when it is imported, it does not.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    if address is not None:
        _check_address(address)
    ray = load("ray")
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": True}
    if address is None:
        options |= {"_node_ip_address": LOOPBACK[0], "include_dashboard": False, "num_cpus": workers}
    try:
        ray.init(address=address or "local", **options)
    except (ConnectionError, ValueError, RuntimeError) as problem:
        reason = str(problem).partition("\n")[0]
        what = f"the Ray cluster at '{address}'" if address else "Ray on this machine"
        raise InputError(f"cannot reach {what} ({reason}): see whether 'ray status' does.") from None
    try:
        with redirect_stdout(sys.stderr):
            yield ray
    finally:
        ray.shutdown()


def _check_address(address: str) -> None:
    """Refuse an address where nothing listens, which Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    if "/" in address or not (host and port.isdigit()):
        raise InputError(f"'{address}' is not a cluster's address: write it as HOST:PORT, such as 127.0.0.1:6379.")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError, UnicodeError) as problem:
        raise InputError(f"cannot reach a Ray cluster at '{address}' ({problem}): is it up?") from None


def recognize_on_ray(
    work: RecognizePartition, partitions: Sequence[Partition], workers: int | None = None
) -> Iterator[Outcome]:
    """Yield what became of partitions as workers finish them; one worker per core, unless told otherwise."""
    import ray

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)

    def recognize(row: dict[str, Any]) -> dict[str, Any]:
        outcome = work(Partition(**row))
        return {**outcome._asdict(), "labels": json.dumps(outcome.labels)}

    rows = ray.data.from_items([partition._asdict() for partition in partitions], override_num_blocks=len(partitions))
    try:
        for row in rows.map(recognize, num_cpus=1, concurrency=workers).iter_rows():
            yield Outcome(**{**row, "labels": json.loads(row["labels"])})
    except ray.exceptions.RayTaskError as problem:
        cause = problem.cause
        while cause is not None and not isinstance(cause, InputError):
            cause = cause.__cause__
        if cause is None:
            raise
        raise cause from None


class Task:
    """A function at work on a core of the cluster, in a process of its own, asked for its exit code as a process is.

    It is called again if its process or its machine dies.
    """

    returncode: int | None = None

    def __init__(self, function: Callable[..., int], *arguments: Any) -> None:
        import ray

        self._ray = ray
        self._reference = ray.remote(num_cpus=1, max_calls=1)(function).remote(*arguments)

    def poll(self) -> int | None:
        """Return its exit code if it has ended."""
        if self.returncode is None and self._ray.wait([self._reference], timeout=0)[0]:
            self.wait()
        return self.returncode

    def wait(self) -> int:
        """Return its exit code once it has ended; 1 if it was ended, or its machines died too often."""
        try:
            self.returncode = int(self._ray.get(self._reference))
        except self._ray.exceptions.RayError:
            self.returncode = 1
        return self.returncode

    def send_signal(self, _: int) -> None:
        """End it, as a lost machine would."""
        self._ray.cancel(self._reference, force=True)
