"""Standard output and standard error, for what is said without a console."""

from __future__ import annotations

import sys


def say(text: str, *, error: bool = False) -> None:
    """Write a line at once; in UTF-8 where the stream's own encoding lacks a letter."""
    stream = sys.stderr if error else sys.stdout
    if stream is None:
        return
    try:
        stream.write(f"{text}\n")
    except UnicodeEncodeError:
        stream.flush()
        stream.buffer.write(f"{text}\n".encode("utf-8", "replace"))
    stream.flush()
