"""One writer at a time."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from dabnet._files import cannot_write
from dabnet.errors import InputError

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def only_writer(output: Path) -> Iterator[None]:
    """Hold a lock beside a file that is being made, and delete it at the end; the system ends it with the process."""
    if fcntl is None:
        yield
        return
    path = output.with_name(output.name + ".lock")
    number = _lock(path, output)
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(number)


def _lock(path: Path, output: Path) -> int:
    while True:
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as problem:
            raise cannot_write(output, problem) from None
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(number).st_ino == path.stat().st_ino:
                return number
        except BlockingIOError:
            os.close(number)
            sentence = f"another process is writing '{output}': wait until it is done, or choose another name with -o."
            raise InputError(sentence) from None
        except FileNotFoundError:
            pass
        except OSError:  # a file system without locks
            return number
        os.close(number)  # whoever held it was done meanwhile, and deleted it
