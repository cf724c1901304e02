"""Files with drawings: how they are called, how large they may be, and the JSON in them; without numpy."""

from __future__ import annotations

import json
from typing import Any

from dabnet.errors import InputError

MAX_FILE_BYTES = 100_000_000
MAX_TEXT_BYTES = 8_000_000
"""Sizes past which a drawing's file is not even read."""
MAX_LISTS = 100_000
"""Lists in JSON: a drawing has one for each stroke and one for each point."""
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".svg", ".json")
"""How the names of files with one drawing each end."""


def parse_json(data: bytes | str, line: int | None = 1) -> Any:
    """Parse JSON from a stranger; nothing else runs meanwhile, so lists, which take long, are counted first.

    What is wrong is told with its position; `line` is the number of the data's first line, if it is known.
    """
    left = "[" if isinstance(data, str) else b"["
    if data.count(left) > MAX_LISTS:  # type: ignore[arg-type]
        raise InputError(f"the JSON holds more than {MAX_LISTS:,} lists: simplify the drawing first.")
    try:
        return json.loads(data)
    except json.JSONDecodeError as problem:
        where = "" if line is None else f"line {line + problem.lineno - 1}, "
        where += f"column {problem.colno}: {problem.msg.removesuffix(' at')}"
        raise InputError(f"this is not valid JSON ({where}): mend it there.") from None
    except RecursionError:
        raise InputError(
            "this is not valid JSON (lists within lists, without end): a drawing has three levels."
        ) from None
    except UnicodeDecodeError:
        raise InputError("this is not valid JSON (it is no text): save it as UTF-8.") from None
    except ValueError:
        raise InputError("this is not valid JSON (a number has thousands of digits): write it anew.") from None
