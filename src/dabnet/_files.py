"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from dabnet.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def write_beside(path: Path, data: bytes, then: str = "try again") -> None:
    """Write a file whole or not at all; `then` is what to do after room was made for it."""
    beside = path.with_name(path.name + ".writing")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as problem:
        beside.unlink(missing_ok=True)
        raise InputError(f"cannot write '{path}' ({problem.strerror}): make room, and {then}.") from None
