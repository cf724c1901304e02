"""Vocabularies: which names of different data sets mean the same thing.

A vocabulary is a TOML table, one line per label: `car = ["car", "car (sedan)", "suv"]`. Every name stands in it exactly
once. Those in `dabnet/vocabularies/` ship with the package and go by their name, such as `everyday`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from dabnet.errors import InputError, suggest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Vocabulary:
    """Labels, and the names that mean each of them.

    >>> everyday = load_vocabulary("everyday")
    >>> everyday.labels_of(["suv", "hot-dog", "zebra"])
    ['car', 'hot dog', 'zebra']
    """

    name: str
    names: Mapping[str, tuple[str, ...]]
    """For each label, every name that data sets have for it."""

    @property
    def labels(self) -> list[str]:
        """All labels, in the order of the table."""
        return list(self.names)

    @cached_property
    def label_by_name(self) -> dict[str, str]:
        """The label that each name means."""
        return {name: label for label, names in self.names.items() for name in names}

    def labels_of(self, classes: Sequence[str]) -> list[str]:
        """Return the label of each class."""
        missing = [name for name in classes if name not in self.label_by_name]
        if missing:
            hint = suggest(missing[0], sorted(self.label_by_name))
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise InputError(
                f"the vocabulary '{self.name}' does not say what '{missing[0]}'{more} means: add a line to it.{hint}"
            )
        return [self.label_by_name[name] for name in classes]


def match_classes(classes: Sequence[str], labels: Sequence[str], vocabulary: Vocabulary | None = None) -> list[int]:
    """Return which of a model's labels each class of a set is, or -1.

    A name means the label that is spelt so, regardless of case, hyphens and underscores; or else what the vocabulary
    says that it means.

    >>> match_classes(["Hot-Dog", "suv", "unicorn"], ["hot dog", "car"], load_vocabulary("everyday"))
    [0, 1, -1]
    """
    numbers = {spelling(label): number for number, label in reversed(list(enumerate(labels)))}
    meant = {}
    if vocabulary is not None:
        meant = {spelling(name): spelling(label) for name, label in vocabulary.label_by_name.items()}
    keys = (spelling(name) for name in classes)
    return [numbers.get(key, numbers.get(meant.get(key, ""), -1)) for key in keys]


def spelling(name: str) -> str:
    """Return a name as it is compared with others.

    >>> spelling("Hot-Dog"), spelling("cell_phone")
    ('hot dog', 'cell phone')
    """
    return " ".join(name.replace("-", " ").replace("_", " ").split()).casefold()


def load_vocabulary(source: str | Path) -> Vocabulary:
    """Read a vocabulary from a file, or one that ships with the package by its name."""
    path = Path(source)
    if not path.is_file():
        shipped = Path(str(resources.files("dabnet") / "vocabularies"))
        names = sorted(file.stem for file in shipped.glob("*.toml"))
        if str(source) not in names:
            raise InputError(
                f"there is no vocabulary '{source}': give a TOML file, or one that ships: {', '.join(names)}."
            )
        path = shipped / f"{source}.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise InputError(f"the vocabulary '{path}' cannot be read ({problem}).") from None
    seen: dict[str, str] = {}
    for label, names in table.items():
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise InputError(f"the vocabulary '{path}' needs a list of names for '{label}', such as [\"{label}\"].")
        for name in names:
            if name in seen:
                raise InputError(
                    f"the vocabulary '{path}' has '{name}' twice, under '{seen[name]}' and '{label}': keep one."
                )
            seen[name] = label
    if not table:
        raise InputError(f"the vocabulary '{path}' is empty: it needs a line per label.")
    return Vocabulary(path.stem, {label: tuple(names) for label, names in table.items()})
