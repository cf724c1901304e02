"""A picture of one filter: a histogram of its weights, and the values of DAB and of XNOR-Net that stand for them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Literal

import numpy as np
from matplotlib.figure import Figure

from dabnet._files import write_beside
from dabnet.binarizers import optimal_split

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

DAB_COLOUR = "#c2410c"
XNOR_COLOUR = "#1d4ed8"
WEIGHTS_COLOUR = "#cbd5e1"


def draw_weights(weights: NDArray[np.float32], path: Path, title: str) -> None:
    """Draw the histogram of one filter, (n,), with DAB's alpha and beta and XNOR-Net's two values, into a PNG file."""
    picture = io.BytesIO()
    weights_figure(weights, title).savefig(picture, dpi=150, format="png")
    write_beside(path, picture.getvalue())


def weights_figure(weights: NDArray[np.float32], title: str) -> Figure:
    """Draw the histogram of one filter, (n,), with DAB's alpha and beta and XNOR-Net's two values."""
    split = optimal_split(weights[None])
    alpha, beta, k, n = float(split.alpha[0]), float(split.beta[0]), int(split.k[0]), weights.size
    scale = float(np.abs(weights).mean())
    energy = float(np.square(weights, dtype=np.float64).sum())
    dab = np.where(split.mask[0], alpha, beta)
    dab_error = float(np.square(weights - dab).sum()) / energy
    xnor_error = float(np.square(weights - np.where(weights >= 0, scale, -scale)).sum()) / energy

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.hist(weights, bins=min(48, max(10, n // 8)), color=WEIGHTS_COLOUR, edgecolor="white")
    top = axes.get_ylim()[1]
    axes.set_ylim(0, top * 1.45)
    for value, name, other in ((alpha, "α", beta), (beta, "β", alpha)):
        _mark(axes, value, f"{name} = {value:.3f}", DAB_COLOUR, "-", 1.2 * top, leftwards=value < other)
    for value in (-scale, scale):
        _mark(axes, value, f"{value:+.3f}", XNOR_COLOUR, "--", 1.05 * top, leftwards=value < 0)
    axes.plot([], [], "-", color=DAB_COLOUR, linewidth=2, label=f"DAB: error {dab_error:.3f}, K/n = {k / n:.2f}")
    axes.plot([], [], "--", color=XNOR_COLOUR, linewidth=2, label=f"XNOR-Net: error {xnor_error:.3f}")
    axes.set(xlabel="weight", ylabel="weights in the filter", title=title)
    axes.legend(loc="upper right", frameon=False, ncols=2)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _mark(
    axes: Axes, value: float, text: str, colour: str, style: Literal["-", "--"], height: float, leftwards: bool
) -> None:
    """Draw a line up to `height` at a value, and its label beside it, over whatever else runs there."""
    axes.plot([value, value], [0, height], style, color=colour, linewidth=2)
    axes.annotate(
        text,
        (value, height),
        xytext=(-5 if leftwards else 5, 0),
        textcoords="offset points",
        ha="right" if leftwards else "left",
        va="center",
        color=colour,
        fontweight="bold",
        bbox={"facecolor": "white", "linewidth": 0, "pad": 1},
    )
