"""Draws a filter's weights with the two values that stand for them: DAB's, and XNOR-Net's.

    python plot_a_split.py [PICTURE]

The filter is made up, and skewed, as filters may be; put a row of your own network's weights in its place.
"""

import sys

import numpy as np
from matplotlib.figure import Figure

from dabnet.binarizers import optimal_split

path = sys.argv[1] if len(sys.argv) > 1 else "split.png"
rng = np.random.default_rng(0)
weights = np.concatenate([rng.normal(-0.25, 0.15, 400), rng.normal(0.6, 0.2, 176)]).astype(np.float32)

split = optimal_split(weights[None], threads=1)
alpha, beta, k = split.alpha[0], split.beta[0], split.k[0]
scale = np.abs(weights).mean()
errors = {
    "DAB": np.square(weights - np.where(split.mask[0], alpha, beta)).sum(),
    "XNOR-Net": np.square(weights - np.where(weights >= 0, scale, -scale)).sum(),
}
total = np.square(weights).sum()

figure = Figure(figsize=(7, 3), layout="constrained")
axes = figure.subplots()
axes.hist(weights, bins=60, color="#cbd5e1")
for name, values, colour in (("DAB", (alpha, beta), "#1d4ed8"), ("XNOR-Net", (scale, -scale), "#dc2626")):
    label = f"{name}: {errors[name] / total:.0%} of the squares are lost"
    for i, value in enumerate(values):
        axes.axvline(value, color=colour, label=label if i == 0 else None)
axes.set_xlabel(f"weights of a filter; {k} of {len(weights)} take alpha = {alpha:.2f}, the others beta = {beta:.2f}")
axes.legend()
figure.savefig(path)
share = errors["DAB"] / errors["XNOR-Net"]
print(f"{path}: alpha {alpha:.3f}, beta {beta:.3f}, K {k}; DAB's squared error is {share:.0%} of XNOR-Net's")
