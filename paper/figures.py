"""What the paper's figures have in common: colours, size and grid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GREY = "#64748b"
FAINT = "#e2e8f0"
LINE_COLOURS = ("#0f172a", "#15803d", "#9333ea", "#0891b2", "#be185d", "#a16207")
"""For lines that are neither DAB's nor XNOR-Net's."""


def new_figure(width: float, height: float) -> Figure:
    """Make a figure, in inches; not pyplot's, which would pick a backend for everyone."""
    return Figure(figsize=(width, height), layout="constrained")


def tidy(axes: Axes) -> None:
    """Take away what tells nothing, and add a faint grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
