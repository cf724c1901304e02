"""How a command is stopped."""

from __future__ import annotations

import signal
from typing import NoReturn


def heed_interrupts() -> None:
    """Answer SIGTERM as Ctrl-C, and both even where the shell would have them ignored."""

    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
