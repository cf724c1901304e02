"""Tables in Markdown: where they stand, and how they are filled in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(
    r"(?P<start><!-- figures: (?P<name>[\w-]+) -->\n)(?P<body>.*?)(?P<end><!-- end of figures -->)", re.S
)


def documents() -> list[Path]:
    """Return the README and all pages of docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def fill(text: str, tables: Mapping[str, Callable[[], str]]) -> str:
    r"""Return a document with every table as the results have it.

    >>> fill("<!-- figures: two -->\nold\n<!-- end of figures -->", {"two": lambda: "new"})
    '<!-- figures: two -->\n\nnew\n\n<!-- end of figures -->'
    """
    return BLOCK.sub(lambda found: f"{found['start']}\n{tables[found['name']]().strip()}\n\n{found['end']}", text)


def stale(text: str, tables: Mapping[str, Callable[[], str]]) -> list[str]:
    """Return the names of the tables in a document that the results no longer have."""
    return [found["name"] for found in BLOCK.finditer(text) if fill(found[0], tables) != found[0]]
