"""How a command is stopped."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended."""


def heed_interrupts() -> None:
    """Answer SIGTERM, and a terminal that is closed, as Ctrl-C, and the first two even where the shell ignores them."""

    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as nohup has it
        signal.signal(signal.SIGHUP, interrupt)


@contextmanager
def ended_by_interrupts() -> Iterator[None]:
    """Let Ctrl-C end the process at once: while libraries are imported, some would take it for a problem of theirs."""
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not is_usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def ending_at_once() -> Iterator[None]:
    """On Ctrl-C end the process without taking it apart: there is nothing to tidy up, and somebody waits."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(INTERRUPTED)
