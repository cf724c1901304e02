"""The paper's figures. Figure 1: the weights of one filter, and the values that stand for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib
import numpy as np

from dabnet.binarizers import optimal_split

matplotlib.use("Agg")
from matplotlib import pyplot as plt

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

DAB_COLOUR = "#c2410c"
XNOR_COLOUR = "#1d4ed8"
WEIGHTS_COLOUR = "#cbd5e1"


def draw_weights(weights: NDArray[np.float32], path: Path, title: str) -> None:
    """Draw the histogram of one filter, (n,), with DAB's alpha and beta and XNOR-Net's two values."""
    split = optimal_split(weights[None])
    alpha, beta, k, n = float(split.alpha[0]), float(split.beta[0]), int(split.k[0]), weights.size
    scale = float(np.abs(weights).mean())
    energy = float(np.square(weights, dtype=np.float64).sum())
    dab = np.where(split.mask[0], alpha, beta)
    dab_error = float(np.square(weights - dab).sum()) / energy
    xnor_error = float(np.square(weights - np.where(weights >= 0, scale, -scale)).sum()) / energy

    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    axes.hist(weights, bins=min(48, max(10, n // 8)), color=WEIGHTS_COLOUR, edgecolor="white")
    top = axes.get_ylim()[1]
    axes.set_ylim(0, top * 1.45)
    for low, high, names, colour, style, height in (
        (
            min(alpha, beta),
            max(alpha, beta),
            ("α", "β") if alpha < beta else ("β", "α"),
            DAB_COLOUR,
            "-",
            1.2,
        ),
        (-scale, scale, ("", ""), XNOR_COLOUR, "--", 1.05),
    ):
        # Each pair's labels stand outside it, at a height of their own and above the other's lines.
        for value, name, side in ((low, names[0], "right"), (high, names[1], "left")):
            axes.plot([value, value], [0, top * height], style, color=colour, linewidth=2)
            text = f" {name} = {value:.3f} " if name else f" {value:+.3f} "
            behind = {"facecolor": "white", "linewidth": 0, "pad": 0}
            axes.text(value, top * height, text, ha=side, va="center", color=colour, fontweight="bold", bbox=behind)
    axes.plot([], [], "-", color=DAB_COLOUR, linewidth=2, label=f"DAB: error {dab_error:.3f}, K/n = {k / n:.2f}")
    axes.plot([], [], "--", color=XNOR_COLOUR, linewidth=2, label=f"XNOR-Net: error {xnor_error:.3f}")
    axes.set(xlabel="weight", ylabel="weights in the filter", title=title)
    axes.legend(loc="upper right", frameon=False, ncols=2)
    axes.spines[["top", "right"]].set_visible(False)
    partial = path.with_suffix(".partial.png")
    figure.savefig(partial, dpi=150)
    partial.replace(path)
    plt.close(figure)
