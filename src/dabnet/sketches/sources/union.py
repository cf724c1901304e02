"""Several sources as one: their classes become labels of one vocabulary, and each source keeps its own folds."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dabnet.errors import InputError
from dabnet.sketches.sources.source import Drawing, Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dabnet.sketches.vocabulary import Vocabulary


@dataclass
class UnionSource(Source):
    """The pieces of several sources, one source after the other."""

    members: list[Source]
    labels: list[list[int]]
    """For each source, the union's label of each of its classes."""

    def __len__(self) -> int:
        return sum(len(member) for member in self.members)

    def read(self, piece: int) -> Iterator[Drawing]:
        """Read the drawings of a piece, with the union's labels."""
        starts = [0, *accumulate(len(member) for member in self.members)]
        number = bisect_right(starts, piece) - 1
        for drawing in self.members[number].read(piece - starts[number]):
            yield drawing._replace(label=self.labels[number][drawing.label], own_label=drawing.label, member=number)

    @property
    def skipped(self) -> list[str]:
        """The files that any of the sources skips."""
        return [name for member in self.members for name in member.skipped]

    def fingerprint(self) -> dict[str, Any]:
        """Tell whether work that was begun can go on."""
        members = [member.fingerprint() for member in self.members]
        return {"classes": self.classes, "labels": self.labels, "members": members}


def unite(sources: Sequence[Source], vocabulary: Vocabulary) -> UnionSource:
    """Make one source of several; labels that none of them has are left out."""
    named = [vocabulary.labels_of(source.classes) for source in sources]
    used = {label for labels in named for label in labels}
    classes = [label for label in vocabulary.labels if label in used]
    if len({source.title for source in sources}) < len(sources):
        raise InputError("two of the sources have the same name: rename one, so that they can be told apart.")
    index = {label: number for number, label in enumerate(classes)}
    return UnionSource(
        path=Path(sources[0].path),
        title=" and ".join(source.title for source in sources),
        licence="; ".join(dict.fromkeys(source.licence for source in sources)),
        classes=classes,
        folds=sources[0].folds,
        members=list(sources),
        labels=[[index[label] for label in labels] for labels in named],
    )
