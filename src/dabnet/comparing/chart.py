"""A picture of a comparison."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from dabnet._files import write_beside
from dabnet.comparing.engines import OURS

if TYPE_CHECKING:
    from pathlib import Path

    from dabnet.comparing.measure import Comparison

_OURS, _THEIRS = "#1d4ed8", "#94a3b8"


def draw_comparison(found: Comparison, path: Path) -> None:
    """Draw bars, the first engine on top: time, file and memory."""
    rows = found.engines[::-1]
    panels = {
        "ms per sketch, least": [row.latency_ms["min"] for row in rows],
        "MB of file": [row.bytes / 1e6 for row in rows],
        "MB of memory, beside the library": [row.memory["growth"] / 1e6 for row in rows],
    }
    # Not pyplot's, which would pick a backend for everyone.
    figure = Figure(figsize=(11, 1.4 + 0.4 * len(rows)), layout="constrained")
    size = "x".join(map(str, found.input_size[1:]))
    figure.suptitle(f"One sketch of {size}, {found.threads} thread{'s' if found.threads > 1 else ''}")
    for axes, (title, values) in zip(figure.subplots(1, len(panels), sharey=True), panels.items(), strict=True):
        colours = [_OURS if row.name == OURS else _THEIRS for row in rows]
        bars = axes.barh([row.name for row in rows], values, color=colours)
        axes.bar_label(bars, labels=[f"{value:.3g}" for value in values], padding=3)
        axes.set_title(title, fontsize="medium")
        axes.margins(x=0.2)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(left=False)
    picture = io.BytesIO()
    figure.savefig(picture, dpi=150, format="png")
    write_beside(path, picture.getvalue())
