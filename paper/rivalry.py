"""XNOR-Net and DAB-Net trained alike: who gets more right, and what the traces of their binary layers tell of why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from paper.finding import Table
from paper.published import DATA_SETS, NAMES, VARIANTS
from paper.runs import Accuracy, Run, mean_over_layers, read_traces, summarize

if TYPE_CHECKING:
    from paper.runs import Scale

RIVALS = (("fbin-xnor", "fbin-dab"), ("wbin-bwn", "wbin-dab"))
"""XNOR-Net's variant and DAB-Net's, for each precision."""
LEVEL = 0.005
"""Two accuracies this close are level, whatever their spread."""
FLIPS_NOTE = "flips.md"
"""In the folders of runs whose traces count an exchange of alpha and beta as if all weights changed sides."""


@dataclass(frozen=True)
class Settled:
    """What became of a network's binary layers: means over layers and runs, in the last epoch."""

    variant: str
    accuracy: Accuracy
    k_share: float
    error: float
    flip: float | None

    @classmethod
    def read(cls, variant: str, runs: Sequence[Run]) -> Settled:
        """Read it from the runs' traces; there must be a run."""
        traces = [read_traces(run.folder) for run in runs]
        last = {
            column: [mean_over_layers(trace, column)[-1] for trace in traces] for column in ("k_share", "error", "flip")
        }
        counted = [flip for run, flip in zip(runs, last["flip"], strict=True) if not (run.folder / FLIPS_NOTE).exists()]
        accuracy = summarize(runs)
        assert accuracy is not None
        return cls(
            variant, accuracy, float(np.mean(last["k_share"])), float(np.mean(last["error"])),
            float(np.mean(counted)) if counted else None,
        )  # fmt: skip


@dataclass(frozen=True)
class Rivalry:
    """XNOR-Net and DAB-Net, trained alike."""

    data: str
    network: str
    xnor: Settled
    dab: Settled

    @property
    def gain(self) -> float:
        """How much more DAB-Net gets right."""
        return self.dab.accuracy.mean - self.xnor.accuracy.mean

    @property
    def is_level(self) -> bool:
        """Whether the spread is as large as the difference."""
        return abs(self.gain) < max(LEVEL, math.hypot(self.dab.accuracy.spread or 0, self.xnor.accuracy.spread or 0))

    def __str__(self) -> str:
        precision, rival = VARIANTS[self.xnor.variant].split()
        side = "level with" if self.is_level else "ahead of" if self.gain > 0 else "behind"
        where = f"{NAMES[self.network]}, {precision}, {DATA_SETS[self.data]}"
        return f"{where}: DAB-Net is {side} {rival} ({100 * self.gain:+.1f} points)."


def find_rivalries(scale: Scale) -> list[Rivalry]:
    """Find what was trained both ways."""
    rivalries = []
    for data in DATA_SETS:
        for network in NAMES:
            for pair in RIVALS:
                runs = [scale.find(data, network, variant) for variant in pair]
                if all(runs):
                    xnor, dab = (Settled.read(variant, each) for variant, each in zip(pair, runs, strict=True))
                    rivalries.append(Rivalry(data, network, xnor, dab))
    return rivalries


def settled_table(rivalries: list[Rivalry]) -> Table:
    """Set what became of DAB-Net's binary layers beside XNOR-Net's."""
    return Table(
        "Binary layers in the last epoch, mean over layers and runs",
        ("network", "K/n", "error of the weights", "changed sides", "data"),
        [
            (
                f"{NAMES[each.network]}, {VARIANTS[side.variant]}",
                f"{side.k_share:.2f}",
                f"{side.error:.3f}",
                "-" if side.flip is None else f"{side.flip:.1%}",
                DATA_SETS[each.data],
            )
            for each in rivalries
            for side in (each.xnor, each.dab)
        ],
    )


def conclude(rivalries: list[Rivalry]) -> list[str]:
    """Say who is ahead, and what the traces tell of why; nothing that they do not show."""
    remarks = [str(each) for each in rivalries]
    behind = [each for each in rivalries if each.gain < 0 and not each.is_level]
    if not behind:
        return remarks

    def compare(column: str, form: str) -> tuple[list[tuple[float, float]], str]:
        pairs = [(getattr(each.dab, column), getattr(each.xnor, column)) for each in behind]
        pairs = [(dab, xnor) for dab, xnor in pairs if None not in (dab, xnor)]
        return pairs, "; ".join(f"{dab:{form}} against {xnor:{form}}" for dab, xnor in pairs)

    shares, said = compare("k_share", ".2f")
    moved = ", so the split does follow the weights" if all(abs(dab - xnor) > 0.02 for dab, xnor in shares) else ""
    remarks.append(f"Where DAB-Net is behind, its K/n is {said}{moved}.")
    errors, said = compare("error", ".3f")
    remarks.append(f"There, its own weights end with an error of {said}.")
    if all(dab > 0.95 * xnor for dab, xnor in errors):
        remarks[-1] += " A better fit to given weights did not become a better fit of trained ones."
    flips, said = compare("flip", ".1%")
    if flips:
        remarks.append(f"In the last epoch {said} of its weights change sides.")
        if all(dab > xnor for dab, xnor in flips):
            remarks[-1] += " Its threshold moves with the weights, and the bits settle later."
    return [*remarks, "Whether any of this is the cause the traces cannot tell."]
