"""Figure 1 with a trained filter: its weights, DAB's alpha and beta, and XNOR-Net's two values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dabnet.errors import InputError
from dabnet.training.filter_picture import weights_figure
from paper.finding import Finding
from paper.split_error import relative_errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from paper.filters import TrainedFilters

RUN = "tuberlin-resnet18-fbin-dab"
SEED = 0
"""The seed of the runs that filters are kept of."""


def find_weights(trained: Sequence[TrainedFilters], run: str | None = None) -> Finding:
    """Show the filter, of those kept of a run's deepest layer, on which DAB gains a middling amount over XNOR-Net."""
    run = run or RUN
    layers = [each for each in trained if each.run == run]
    if not layers:
        kept = dict.fromkeys(each.run for each in trained)
        raise InputError(f"no filters of '{run}' are kept: choose one of {', '.join(kept)}.")
    deepest = layers[-1]
    dab, xnor = (relative_errors(deepest.rows, method) for method in ("dab", "xnor"))
    chosen = int(np.argsort(xnor - dab)[len(dab) // 2])
    number = deepest.indices[chosen]
    figures = {
        "run": run,
        "layer": deepest.layer,
        "filter": number,
        "error": {"dab": float(dab[chosen]), "xnor": float(xnor[chosen])},
    }
    title = f"Filter {number} of {deepest.layer}\n{run}, best epoch"
    picture = weights_figure(deepest.rows[chosen], title)
    return Finding("figure-weights", "Figure 1: a trained filter", figures, picture=picture, seed=SEED)
