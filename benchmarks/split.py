"""How fast is `optimal_split`? Against the paper's Algorithm 1 in torch, for easy and awkward weights, and as n grows.

    python -m benchmarks.split

Algorithm 1 is written as the paper describes it: two float32 sorts, ascending and descending, prefix sums, all filters
of a layer at once. One thread each; times are for all binarized layers of ResNet-18, 11.2 million weights.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.record import best_of, write_results
from dabnet.binarizers import optimal_split

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from torch import Tensor

    Draw = Callable[[np.random.Generator, tuple[int, int]], NDArray[np.float64]]

# (filters, weights each) of ResNet-18's convolutions after the first.
RESNET18 = (
    *[(64, 576)] * 4,
    (128, 576), (128, 1152), (128, 64), *[(128, 1152)] * 2,
    (256, 1152), (256, 2304), (256, 128), *[(256, 2304)] * 2,
    (512, 2304), (512, 4608), (512, 256), *[(512, 4608)] * 2,
)  # fmt: skip

KINDS: dict[str, Draw] = {
    "gaussian": lambda rng, shape: rng.normal(0, 0.05, shape),
    "laplace": lambda rng, shape: rng.laplace(0, 0.05, shape),
    "cauchy": lambda rng, shape: rng.standard_cauchy(shape),
    "two clusters": lambda rng, shape: rng.choice([-1000.0, 1000.0], shape) + rng.normal(0, 1e-3, shape),
    "constant": lambda _, shape: np.full(shape, 0.5),
}

REPEATS = 7
GROWTH_FILTERS = 64
GROWTH_SIZES = [2**power for power in range(9, 18)]


def two_sweep(w: Tensor) -> Tensor:
    """Algorithm 1: the K of each row of `w`, by an ascending and a descending sweep."""
    n = w.shape[1]
    total = w.sum(dim=1, keepdim=True)
    i = torch.arange(1, n, dtype=w.dtype)
    best = []
    for descending in (False, True):
        prefix = w.sort(dim=1, descending=descending).values.cumsum(dim=1)[:, :-1]
        gain = prefix.square() / i + (total - prefix).square() / (n - i)
        best.append(gain.max(dim=1))
    return torch.where(best[1].values > best[0].values, best[1].indices, best[0].indices) + 1


def split_layers(layers: list[NDArray[np.float32]]) -> None:
    for layer in layers:
        optimal_split(layer, threads=1)


def sweep_layers(layers: list[Tensor]) -> None:
    for layer in layers:
        two_sweep(layer)


def compare() -> dict[str, dict[str, float]]:
    """Time both on every kind of weights: milliseconds, their ratio, and how much slower than on Gaussian ones."""
    rng = np.random.default_rng(0)
    rows: dict[str, dict[str, float]] = {}
    for kind, draw in track(KINDS.items(), description="against the two-sweep algorithm", transient=True):
        layers = [draw(rng, shape).astype(np.float32) for shape in RESNET18]
        tensors = [torch.from_numpy(layer) for layer in layers]

        best = best_of(REPEATS, native=partial(split_layers, layers), sweeps=partial(sweep_layers, tensors))
        rows[kind] = {"native_ms": best["native"] * 1e3, "two_sweep_ms": best["sweeps"] * 1e3}
        rows[kind]["ratio"] = best["sweeps"] / best["native"]
        rows[kind]["of_gaussian"] = rows[kind]["native_ms"] / rows["gaussian"]["native_ms"]
    return rows


def growth() -> dict[str, list[dict[str, float]]]:
    """Time a layer as its filters grow: milliseconds, and how many times those of half the size."""
    rng = np.random.default_rng(1)
    rows: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    for kind, draw in track(KINDS.items(), description="growth with n", transient=True):
        layers = {str(n): draw(rng, (GROWTH_FILTERS, n)).astype(np.float32) for n in GROWTH_SIZES}
        runs = {n: partial(split_layers, [layer]) for n, layer in layers.items()}
        best = best_of(25, **runs)
        times = [best[str(n)] for n in GROWTH_SIZES]
        for n, seconds, half in zip(GROWTH_SIZES, times, [float("nan"), *times[:-1]], strict=True):
            rows[kind].append({"n": n, "ms": seconds * 1e3, "of_half": seconds / half})
    return rows


def main() -> None:
    torch.set_num_threads(1)
    console = Console()
    rows, grown = compare(), growth()

    table = Table("weights", title="11.2 million weights in ResNet-18's filters, one thread")
    for heading in ("optimal_split", "two sweeps in torch", "ratio", "of gaussian"):
        table.add_column(heading, justify="right")
    for kind, row in rows.items():
        times = f"{row['native_ms']:.1f} ms", f"{row['two_sweep_ms']:.0f} ms"
        table.add_row(kind, *times, f"{row['ratio']:.1f}x", f"{row['of_gaussian']:.2f}x")
    console.print(table)

    table = Table("n", title=f"optimal_split of {GROWTH_FILTERS} filters: ms, and times that of half the weights")
    for kind in KINDS:
        table.add_column(kind, justify="right")
    for i, n in enumerate(GROWTH_SIZES):
        cells = [f"{grown[kind][i]['ms']:.2f} ({grown[kind][i]['of_half']:.2f}x)" for kind in KINDS]
        table.add_row(f"{n:,}", *[cell.replace(" (nanx)", "") for cell in cells])
    console.print(table)

    worst = max(row["of_half"] for kind in KINDS for row in grown[kind][1:])
    slowest = max(row["of_gaussian"] for row in rows.values())
    console.print(f"gaussian: {rows['gaussian']['ratio']:.1f}x as fast as two sweeps (at least 20)")
    console.print(f"slowest kind: {slowest:.2f}x gaussian's time (at most 2)")
    console.print(f"doubling n: at most {worst:.2f}x the time (at most 2.2)")
    for kind in KINDS:
        grown[kind][0].pop("of_half")  # there is no half of the first
    path = write_results("split", {"resnet18": rows, "growth": grown})
    console.print(f"Written to {path.relative_to(path.parents[2])}")


if __name__ == "__main__":
    main()
