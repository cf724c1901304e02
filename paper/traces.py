"""Figures 3, 4 and 5 from the traces of trainings: alpha and beta over time, K/n over time, K/n across layers.

The paper shows single filters; a trace has the mean over a layer's filters, of |alpha| and |beta| for the values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator

from dabnet.errors import check_choice
from dabnet.training.filter_picture import DAB_COLOUR, XNOR_COLOUR
from paper.figures import GREY, new_figure, tidy
from paper.finding import Finding
from paper.published import SETTLED_K_SHARE
from paper.runs import Traces, mean_over_layers, read_traces

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes


class Pair(NamedTuple):
    """Two runs that differ in how they find their two values."""

    title: str
    xnor: str
    dab: str


PAIRS = {
    "fbin": Pair("ResNet-18, FBin", "tuberlin-resnet18-fbin-xnor", "tuberlin-resnet18-fbin-dab"),
    "wbin": Pair("ResNet-18, WBin", "tuberlin-resnet18-wbin-bwn", "tuberlin-resnet18-wbin-dab"),
    "ours": Pair(
        "ours: shortcuts, not centred, FBin",
        "tuberlin-resnet18-shortcuts-fbin-xnor",
        "tuberlin-resnet18-shortcuts-fbin-dab",
    ),
}
SEED = 0
"""The seed of these runs; runs with another seed have it in their names."""
SHOWN = 4
"""Layers in the figure of alpha and beta."""


def find_alpha_beta(results: Path, which: str = "fbin") -> Finding:
    """Draw |alpha| and |beta| of four layers, from the first to the last, over the epochs, and XNOR-Net's one value."""
    check_choice("pair of trainings", which, tuple(PAIRS))
    pair = PAIRS[which]
    dab, xnor = (read_traces(results / name) for name in (pair.dab, pair.xnor))
    layers = list(dab)
    shown = [layers[index] for index in np.linspace(0, len(layers) - 1, SHOWN).round().astype(int)]
    figure = new_figure(10, 6)
    panels = figure.subplots(2, 2, sharex=True).ravel()
    for axes, layer in zip(panels, shown, strict=True):
        trace, other = dab[layer], xnor[layer]
        axes.plot(trace["epoch"], trace["alpha"], "-", color=DAB_COLOUR, linewidth=2, label="DAB-Net: |α|")
        axes.plot(trace["epoch"], trace["beta"], "-.", color=DAB_COLOUR, linewidth=2, label="DAB-Net: |β|")
        axes.plot(
            other["epoch"], other["alpha"], "--", color=XNOR_COLOUR, linewidth=2, label=f"{_called(pair.xnor)}: α = -β"
        )
        axes.set_title(layer, fontsize=10)
        axes.set_ylim(bottom=0)
        _count_epochs(axes)
    for axes in panels[2:]:
        axes.set_xlabel("epoch")
    figure.suptitle(f"The two values over the training, mean over a layer's filters ({pair.title})", fontweight="bold")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    ratios = {layer: [dab[layer]["alpha"][at] / dab[layer]["beta"][at] for at in (0, -1)] for layer in shown}
    return Finding(
        "figure-alpha-beta" if which == "fbin" else f"figure-alpha-beta-{which}",
        "Figure 3: alpha and beta over the training",
        {"runs": pair._asdict(), "alpha_by_beta_in_the_first_and_last_epoch": ratios},
        picture=figure,
        seed=SEED,
    )


def find_k_time(results: Path) -> Finding:
    """Draw K/n over the epochs, DAB-Net's and XNOR-Net's: the mean over layers, and each layer faintly."""
    figure = new_figure(12, 4.5)
    last: dict[str, dict[str, float]] = {}
    for axes, pair in zip(figure.subplots(1, len(PAIRS), sharey=True), PAIRS.values(), strict=True):
        last[pair.title] = {}
        for run, colour in ((pair.xnor, XNOR_COLOUR), (pair.dab, DAB_COLOUR)):
            traces = read_traces(results / run)
            epochs = next(iter(traces.values()))["epoch"]
            for layer in traces.values():
                axes.plot(epochs, layer["k_share"], "-", color=colour, alpha=0.22, linewidth=1)
            mean = mean_over_layers(traces, "k_share")
            label = f"{_called(run)}, mean over layers: {mean[-1]:.2f} at the end"
            axes.plot(epochs, mean, "-", color=colour, linewidth=2.5, label=label)
            last[pair.title][run] = mean[-1]
        axes.axhline(SETTLED_K_SHARE, color=GREY, linestyle=":", label=f"where the paper's settles: {SETTLED_K_SHARE}")
        axes.set(xlabel="epoch", title=pair.title)
        axes.legend(frameon=False, fontsize=8.5, loc="upper right")
        _count_epochs(axes)
    figure.axes[0].set_ylabel("K/n")
    figure.axes[0].set_ylim(0.2, 0.78)
    figure.suptitle("Share of weights that take α, over the training (faint: each layer)", fontweight="bold")
    return Finding("figure-k-time", "Figure 4: K/n over the training", {"last_epoch": last}, picture=figure, seed=SEED)


def find_k_layers(results: Path) -> Finding:
    """Draw K/n of each layer in the last epoch, DAB-Net's and XNOR-Net's."""
    figure = new_figure(12, 5)
    last: dict[str, dict[str, float]] = {}
    for axes, pair in zip(figure.subplots(1, len(PAIRS), sharey=True), PAIRS.values(), strict=True):
        for run, colour, mark in ((pair.xnor, XNOR_COLOUR, "s--"), (pair.dab, DAB_COLOUR, "o-")):
            traces = read_traces(results / run)
            last[run] = {layer: each["k_share"][-1] for layer, each in traces.items()}
            shares = list(last[run].values())
            axes.plot(range(len(shares)), shares, mark, color=colour, markersize=5, label=_called(run))
            axes.set_xticks(range(len(shares)), _short_names(traces), rotation=90, fontsize=8)
        axes.set_title(pair.title)
        axes.legend(frameon=False, fontsize=9, loc="upper right")
        tidy(axes)
    figure.axes[0].set_ylabel("K/n")
    figure.axes[0].set_ylim(0.2, 0.7)
    figure.suptitle("Share of weights that take α, by layer, in the last epoch", fontweight="bold")
    return Finding("figure-k-layers", "Figure 5: K/n across layers", {"last_epoch": last}, picture=figure, seed=SEED)


def _called(run: str) -> str:
    return {"bwn": "BWN", "xnor": "XNOR-Net", "dab": "DAB-Net"}[run.rpartition("-")[2]]


def _short_names(traces: Traces) -> list[str]:
    """Leave out what all layers are called."""
    return [layer.replace(".branch", "").removesuffix(".conv") for layer in traces]


def _count_epochs(axes: Axes) -> None:
    tidy(axes)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
