"""Drawings made by a program, as a source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dabnet.sketches.sources.source import Drawing, Source
from dabnet.sketches.synthetic import CLASSES, synthetic_strokes

if TYPE_CHECKING:
    from collections.abc import Iterator

DRAWINGS_PER_PIECE = 500
DRAWINGS_PER_CLASS = 200


@dataclass
class SyntheticSource(Source):
    """So many drawings, as many of each class."""

    count: int

    def __len__(self) -> int:
        return -(-self.count // DRAWINGS_PER_PIECE)

    def read(self, piece: int) -> Iterator[Drawing]:
        """Draw a piece."""
        start = piece * DRAWINGS_PER_PIECE
        sketches, labels, _ = synthetic_strokes(min(DRAWINGS_PER_PIECE, self.count - start), start=start)
        for i, (sketch, label) in enumerate(zip(sketches, labels, strict=True)):
            yield Drawing(str(start + i), int(label), sketch)

    def fingerprint(self) -> dict[str, Any]:
        """Tell whether work that was begun can go on: there is no file to look at."""
        return {"title": self.title, "count": self.count}


def open_synthetic(limit: int | None) -> SyntheticSource:
    """Draw `limit` drawings per class."""
    count = len(CLASSES) * (limit or DRAWINGS_PER_CLASS)
    return SyntheticSource(Path("synthetic"), "Synthetic sketches", "MIT, as dabnet itself", list(CLASSES), 3, count)
