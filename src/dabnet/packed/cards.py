"""Cards: what a model that ships is for, what it was made of, and how often it was right, as figures.

    about = "one sentence"      made = 2026-11-16      classes = 250
    page = "docs/models/NAME.md"                       licence = "of the weights"
    milliseconds = 0.25         least time of one sketch on one thread, as `dabnet evaluate` tells it; may be left out
    [[data]]        set, used, licence, attribution: what it learnt from
    [[accuracy]]    set, fold, drawings, views, top1, top5, calibration_error, measured, command

The first accuracy stands for the model where there is room for one.
"""

from __future__ import annotations

import dataclasses
import datetime
import tomllib
from dataclasses import dataclass
from typing import Any

from dabnet.packed.shipped import find_model


@dataclass(frozen=True)
class TrainingSet:
    """A data set that a model learnt from."""

    set: str
    used: str
    """What was taken of it."""
    licence: str
    attribution: str
    """Whom the licence asks to be named."""


@dataclass(frozen=True)
class Accuracy:
    """How often a model was right on drawings that nothing was learnt from or chosen by."""

    set: str
    fold: str
    drawings: int
    views: int
    """Views of each drawing whose probabilities were averaged."""
    top1: float
    top5: float
    calibration_error: float
    """Mean distance between how sure it was and how often it was right (15 bins)."""
    measured: datetime.date
    command: str

    def __str__(self) -> str:
        views = f", {self.views} views" if self.views > 1 else ""
        return f"{self.top1:.1%} of {self.set}, fold {self.fold}{views}"


@dataclass(frozen=True)
class Card:
    """What is known of a model that ships."""

    name: str
    bytes: int
    """Size of its file."""
    about: str
    page: str
    """The page that tells more, in the repository."""
    made: datetime.date
    classes: int
    licence: str
    """The weights' licence; those of the data are in `data`."""
    data: tuple[TrainingSet, ...]
    accuracy: tuple[Accuracy, ...]
    milliseconds: float | None = None
    """Least time of one sketch on one thread of the machine that its page names."""

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON can hold it."""
        return _plain(dataclasses.asdict(self))  # type: ignore[no-any-return]


def read_card(name: str) -> Card:
    """Read the card of a model that ships.

    >>> read_card("tuberlin").classes
    250
    """
    path = find_model(name)
    about = tomllib.loads(path.with_suffix(".toml").read_text(encoding="utf-8"))
    data = tuple(TrainingSet(**each) for each in about.pop("data"))
    accuracy = tuple(Accuracy(**figures) for figures in about.pop("accuracy"))
    return Card(name=path.stem, bytes=path.stat().st_size, data=data, accuracy=accuracy, **about)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.isoformat() if isinstance(value, datetime.date) else value
