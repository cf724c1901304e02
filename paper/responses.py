"""Figure 2: a sketch through a filter as it was learnt, as DAB makes it binary, and as XNOR-Net does.

The filters are of the first layer of a real-valued Sketch-A-Net, 15x15, which sees the ink itself. (In a trained binary
network the first layer stays real.) How alike two maps of responses are is their correlation over all positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from matplotlib.colors import LinearSegmentedColormap

from dabnet.binarizers.weights import binarize
from dabnet.errors import InputError
from dabnet.sketches.raster import Raster, rasterize_batch
from dabnet.sketches.synthetic import synthetic_strokes
from dabnet.training.filter_picture import DAB_COLOUR, XNOR_COLOUR
from paper.figures import new_figure
from paper.finding import Finding, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure
    from numpy.typing import NDArray
    from torch import Tensor

    from dabnet.sketches.sketch import Sketch
    from paper.filters import TrainedFilters

RUN = "tuberlin-sketch-a-net-fprec"
RASTER = Raster(size=97, margin=0.05, pen=0.03)
"""As the network was trained."""
SKETCHES = 40
"""Drawings that responses are compared on."""
HEAT = LinearSegmentedColormap.from_list("heat", ["white", "#fed7aa", "#ea580c", "#7c2d12"])


def find_responses(
    trained: Sequence[TrainedFilters], sketches: Sequence[Sketch] | None = None, shown: int = 0, seed: int = 0
) -> Finding:
    """Compare the responses of all kept first-layer filters, and draw two of them on one sketch.

    One is the filter on which DAB gains a middling amount over XNOR-Net, the other the one on which it gains most.
    """
    filters = next((each for each in trained if each.run == RUN), None)
    if filters is None:
        raise InputError(f"no filters of '{RUN}' are kept: take them with dabnet paper filters --runs FOLDER.")
    if sketches is None:
        sketches = synthetic_strokes(SKETCHES, seed)[0]
    if not 0 <= shown < len(sketches):
        raise InputError(f"there is no sketch {shown} among these {len(sketches)}: choose another with --sketch.")
    images = torch.from_numpy(rasterize_batch(sketches, RASTER)).float()[:, None] / 255
    real = torch.from_numpy(filters.weights)
    kinds = {"real": real, "dab": binarize(real, "dab"), "xnor": binarize(real, "xnor")}
    maps = {kind: torch.nn.functional.conv2d(images, weights, padding=7).numpy() for kind, weights in kinds.items()}
    likeness = {kind: _correlate(maps["real"], maps[kind]) for kind in ("dab", "xnor")}  # (filters,)
    gains = likeness["dab"] - likeness["xnor"]
    order = np.argsort(gains)
    chosen = [int(order[len(order) // 2]), int(order[-1])]
    rows: list[tuple[str, ...]] = [
        (
            "mean over filters",
            f"{likeness['dab'].mean():.3f}",
            f"{likeness['xnor'].mean():.3f}",
            f"{gains.mean():+.3f}",
        ),
        *(
            (f"filter {filters.indices[at]}", *(f"{likeness[kind][at]:.3f}" for kind in likeness), f"{gains[at]:+.3f}")
            for at in range(len(gains))
        ),
    ]
    better = int((gains > 0).sum())
    return Finding(
        "figure-responses",
        "Figure 2: a sketch through a filter",
        {
            "run": RUN,
            "layer": filters.layer,
            "sketches": len(sketches),
            "correlation_with_the_real_filter": {kind: each.tolist() for kind, each in likeness.items()},
            "dab_is_closer_in": better,
        },
        [
            Table(
                f"Correlation of responses with the real filter's, {len(sketches)} sketches",
                ("filter", "DAB", "XNOR-Net", "difference"),
                rows,
            )
        ],
        [
            f"DAB's responses are closer to the real filter's than XNOR-Net's for {better} of {len(gains)} filters, by "
            f"{gains.mean():.3f} of correlation on average."
        ],
        _draw(images[shown, 0].numpy(), kinds, maps, likeness, chosen, filters.indices, shown),
        seed,
    )


def _correlate(one: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the correlation over sketches and positions, (sketches, filters, h, w) -> (filters,)."""
    flat = [np.moveaxis(maps, 1, 0).reshape(maps.shape[1], -1).astype(np.float64) for maps in (one, other)]
    flat = [rows - rows.mean(axis=1, keepdims=True) for rows in flat]
    norms = [np.sqrt(np.square(rows).sum(axis=1)) for rows in flat]
    found: NDArray[np.float64] = (flat[0] * flat[1]).sum(axis=1) / (norms[0] * norms[1])
    return found


def _draw(
    ink: NDArray[np.float32],
    kinds: dict[str, Tensor],
    maps: dict[str, NDArray[np.float32]],
    likeness: dict[str, NDArray[np.float64]],
    chosen: list[int],
    indices: list[int],
    shown: int,
) -> Figure:
    """Draw, for each chosen filter, a row: the sketch, then each kind's filter and its responses."""
    figure = new_figure(13, 4.6)
    grid = figure.subplots(2, 7, width_ratios=[1, 0.55, 1, 0.55, 1, 0.55, 1])
    names = {"real": "as learnt", "dab": "DAB", "xnor": "XNOR-Net"}
    colours = {"real": "#0f172a", "dab": DAB_COLOUR, "xnor": XNOR_COLOUR}
    for row, (at, which) in enumerate(zip(chosen, ("typical", "where DAB gains most"), strict=True)):
        grid[row, 0].imshow(1 - ink, cmap="gray", vmin=0, vmax=1)
        grid[row, 0].set_ylabel(f"filter {indices[at]}:\n{which}")
        limit = float(kinds["real"][at].abs().max())
        top = float(maps["real"][shown, at].max())
        for column, kind in enumerate(names):
            weights, responses = grid[row, 1 + 2 * column], grid[row, 2 + 2 * column]
            weights.imshow(kinds[kind][at, 0].numpy(), cmap="PuOr_r", vmin=-limit, vmax=limit)
            responses.imshow(maps[kind][shown, at], cmap=HEAT, vmin=0, vmax=top)
            alike = "" if kind == "real" else f": {likeness[kind][at]:.3f}"
            responses.set_title(f"{names[kind]}{alike}", color=colours[kind], fontweight="bold", fontsize=10)
    for axes in grid.ravel():
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[:].set_color("#cbd5e1")
    figure.suptitle(
        "A sketch through a filter: the filter's weights, and its responses (the darker the higher), with their "
        "correlation with the real filter's",
        fontsize=11,
    )
    return figure
