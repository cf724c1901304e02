"""Writes every table, and draws every picture, of the README and the docs."""

from __future__ import annotations

import argparse

from .blocks import ROOT, documents, fill, stale
from .pictures import IMAGES, PICTURES, paper, screenshots, shrink
from .tables import TABLES


def main() -> None:
    """Write tables; then, unless only these are wanted, draw pictures."""
    parser = argparse.ArgumentParser(prog="python -m figures", description=__doc__)
    parser.add_argument("--tables", action="store_true", help="tables only: seconds instead of minutes")
    parser.add_argument("--no-screenshots", action="store_true", help="leave out what Chromium draws")
    arguments = parser.parse_args()
    if not arguments.tables:
        paper()
        for name, draw in PICTURES.items():
            draw(IMAGES / name)
            shrink(IMAGES / name)
            print(f"docs/images/{name}")
        if not arguments.no_screenshots:
            screenshots()
    for path in documents():
        text = path.read_text(encoding="utf-8")
        if names := stale(text, TABLES):
            path.write_text(fill(text, TABLES), encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: {', '.join(names)}")


if __name__ == "__main__":
    main()
