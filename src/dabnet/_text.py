"""Strangers' words, made fit to be written down: names of files, classes and labels may hold anything."""

from __future__ import annotations

import json
import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode's categories of control, format (among them those that turn the direction) and surrogate characters, and of
line and paragraph separators."""
_JOINERS = "\u200c\u200d"
"""Format characters that words and emoji are written with."""


def printable(text: object, longest: int | None = None) -> str:
    r"""Escape what a terminal would obey and not show, so that nothing can pretend to be another line.

    >>> printable("cat\x1b[2J\n\u202edog", longest=None)
    'cat\\x1b[2J\\n\\u202edog'
    >>> printable("a very long label", longest=10)
    'a very ...'
    """
    text = str(text)
    if longest is not None and len(text) > longest:
        text = text[: longest - 3] + "..."
    if text.isprintable():  # which is false for spaces other than the usual one, too
        return text
    return "".join(_escape(each) if _is_unseen(each) else each for each in text)


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun, which has an s unless there is one of it.

    >>> counted(1, "drawing"), counted(1200, "drawing"), counted(2, "class", "classes")
    ('1 drawing', '1,200 drawings', '2 classes')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def name_some(names: Sequence[str], most: int = 5) -> str:
    """Return the first few names, fit to be printed, and how many more there are.

    >>> name_some(["a", "b", "c"]), name_some(["a", "b", "c"], most=1)
    ('a, b, c', 'a and 2 more')
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(printable, names[:most])) + more


def encodable(text: str) -> str:
    r"""Escape surrogates, which stand for bytes that are not UTF-8 and cannot be written as such.

    >>> encodable("caf\udce9")
    'caf\\udce9'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def to_json(content: Any, indent: int | None = None) -> str:
    r"""Write JSON for people, with their letters as they are, but nothing that a terminal would obey.

    >>> print(to_json({"é": "\x9b2J"}))
    {"é": "\u009b2J"}
    """
    text = json.dumps(content, ensure_ascii=False, indent=indent)
    if text.isprintable():
        return text
    # What is unseen and stands outside of strings is a line break of ours.
    return "".join(json.dumps(each)[1:-1] if _is_unseen(each) and each != "\n" else each for each in text)


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character) in _UNSEEN and character not in _JOINERS


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
