"""What every source of drawings is: classes, and pieces that can be read in any order and by any process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from dabnet.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dabnet.sketches.sketch import Sketch

TU_BERLIN_LICENCE = "CC BY 4.0; Eitz, Hays, Alexa: How Do Humans Sketch Objects?, ACM TOG 31(4), 2012"
SKETCHY_LICENCE = "Sangkloy, Burnell, Ham, Hays: The Sketchy Database, ACM TOG 35(4), 2016; see its home page"
QUICKDRAW_LICENCE = "CC BY 4.0; The Quick, Draw! Dataset, made available by Google, Inc."


class Drawing(NamedTuple):
    """A drawing of a source, or what is wrong with it."""

    id: str
    label: int
    sketch: Sketch | InputError
    fold: int | None = None
    """The part of the set it belongs to, if the source says so."""
    group: str | None = None
    """Drawings of one group must not be divided between training and test."""
    own_label: int | None = None
    """Its label in its own source, where several sources are united."""
    member: int = 0
    """Which of the united sources it comes from."""


@dataclass
class Source(ABC):
    """Drawings in pieces. A piece is what one process reads at a time; a source can be sent to another process."""

    path: Path
    title: str
    licence: str
    classes: list[str]
    folds: int
    """How many folds the set gets if the source does not bring its own."""

    @abstractmethod
    def __len__(self) -> int:
        """Count the pieces."""

    @abstractmethod
    def read(self, piece: int) -> Iterator[Drawing]:
        """Read the drawings of a piece."""

    @property
    def skipped(self) -> list[str]:
        """The names of files in it that are no drawings of a class; hidden ones do not count."""
        return []

    def __post_init__(self) -> None:
        if not self.classes:
            raise InputError(f"'{self.path}' holds no drawings: give a data set as it was published.")

    def fingerprint(self) -> dict[str, Any]:
        """Tell whether work that was begun can go on: what it was begun with."""
        stat = self.path.stat()
        return {
            "path": str(self.path.resolve()),
            "changed": stat.st_mtime_ns,
            "title": self.title,
            "classes": self.classes,
            "pieces": len(self),
        }
