"""Work in processes: whoever is killed is replaced, and nothing is lost, done twice or waited for without end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from dabnet._workers import WorkersDiedError, work_in_processes
from dabnet.errors import InputError, MissingExtraError
from tests.distributed.lists import children, kill, named, wait_for

WORKER = "multiprocessing.spawn import spawn_main"


class Square:
    """Squares numbers; it takes a megabyte, more than a pipe does."""

    def __init__(self) -> None:
        self.ballast = bytes(1_000_000)

    def __call__(self, number: int) -> int:
        time.sleep(0.002)
        return number * number


def end_at_three(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def fail_at_three(number: int) -> int:
    if number == 3:
        raise ValueError("three")
    return number


def sleep_long(number: int) -> int:
    if number:
        time.sleep(1000)
    return number


def unpicklable(number: int) -> object:
    return lambda: number


def double(text: str) -> str:
    return text + text


class Unreadable:
    """Work that no worker can open."""

    def __call__(self, number: int) -> int:
        return number

    def __setstate__(self, state: object) -> None:
        raise FileNotFoundError("its model")

    def __getstate__(self) -> object:
        return 1


def miss(number: int) -> int:
    raise MissingExtraError("torch", "train")


def workers() -> list[int]:
    return [pid for pid in children(os.getpid()) if named(pid, WORKER)]


@pytest.fixture(autouse=True)
def _none_stays() -> Iterator[None]:
    yield
    assert workers() == []


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_all_items_are_done_once(count: int) -> None:
    assert sorted(work_in_processes(Square(), range(count), 2)) == [number * number for number in range(count)]


@pytest.mark.parametrize("after", [0.0, 0.05, 0.15, 0.25, 0.35, 0.5])
def test_a_worker_may_be_killed_at_any_moment(after: float) -> None:
    def kill_one() -> None:
        first = wait_for(workers)[0]
        time.sleep(after)  # it starts, is sent its work, works, or has ended
        with suppress(ProcessLookupError):
            kill(first)

    killer = threading.Thread(target=kill_one)
    killer.start()
    assert sorted(work_in_processes(Square(), range(100), 2)) == [number * number for number in range(100)]
    killer.join()


def test_what_kills_every_worker_is_given_up() -> None:
    with pytest.raises(WorkersDiedError) as stop:
        list(work_in_processes(end_at_three, range(6), 2))
    assert stop.value.item == 3


def test_an_error_is_raised_here() -> None:
    with pytest.raises(ValueError, match="three"):
        list(work_in_processes(fail_at_three, range(6), 2))


def test_what_cannot_be_carried_is_told_as_what_it_is() -> None:
    with pytest.raises(Exception, match="pickle"):
        list(work_in_processes(unpicklable, range(2), 1))
    with pytest.raises(FileNotFoundError, match="its model"):
        list(work_in_processes(Unreadable(), range(2), 1))
    with pytest.raises(MissingExtraError, match="torch") as stop:
        list(work_in_processes(miss, range(2), 1))
    assert "in miss" in stop.value.__notes__[0]
    with pytest.raises(InputError, match="at least one worker, not -1"):
        list(work_in_processes(double, ["a"], -1))


def test_items_and_results_may_be_larger_than_a_pipe() -> None:
    texts = [str(number) * 3_000_000 for number in range(4)]
    assert sorted(work_in_processes(double, texts, 2)) == [text + text for text in texts]


def test_an_error_does_not_wait_for_workers_that_still_start(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="three"):
        list(work_in_processes(fail_at_three, [3, 3, 3, 3], 4))
    assert capfd.readouterr().err == ""


def test_whoever_stops_listening_does_not_wait() -> None:
    results = work_in_processes(sleep_long, range(3), 2)
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]
