"""The bytes of a packed model's file; without numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dabnet import _native
from dabnet.errors import ModelFormatError
from dabnet.packed.shipped import find_model

if TYPE_CHECKING:
    from os import PathLike

DEFAULT_MAX_MEMORY = _native.MAX_MEMORY
"""Bytes that a model may take, in the file and in memory, unless told otherwise."""


def read_bytes(source: str | PathLike[str] | bytes, max_memory: int = DEFAULT_MAX_MEMORY) -> tuple[bytes, str]:
    """Return the bytes of a packed model's file, and what to call it: its path, or nothing if it had none."""
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), ""  # memory that was taken already
    path = find_model(source)
    try:
        if (path / "recipe.toml").exists():
            raise ModelFormatError(f"'{path}' is the folder of a training, not a packed model: dabnet export packs it.")
        if not path.is_file():  # but a folder, or a pipe, which has no end
            raise ModelFormatError(f"'{path}' is not a file that is there: check the path.")
        size = path.stat().st_size
        if size > max_memory:
            raise ModelFormatError(
                f"'{path}' has {size:,} bytes, and a model may take {max_memory:,}: raise max_memory if you trust it."
            )
        return path.read_bytes(), str(path)
    except OSError as problem:
        raise ModelFormatError(f"cannot read '{path}' ({problem.strerror}): check the path.") from None
