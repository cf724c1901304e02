"""What does binarizing cost in training? A step of ResNet-18, real and binary, and where its time goes.

    python -m benchmarks.training [--threads 2] [--width 1] [--repeats 30]

Batches of 64 at 64x64, as channels-last tensors, with the optimizer that training uses. A step is forward, loss,
backward, Adam and `constrain_`; the networks take turns, and the best of many steps counts. The parts of a step come
from torch's profiler, each the least of several steps, so their sum is a little less than the whole.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from functools import partial, wraps
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile, record_function

from benchmarks.record import best_of, write_results
from dabnet.binarizers import optimal_split
from dabnet.networks.catalog import build
from dabnet.networks.convert import constrain_
from dabnet.training.module import Training
from dabnet.training.recipe import Recipe

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.autograd.profiler_util import FunctionEvent

CLASSES, BATCH, SIZE = 250, 64, 64

NETWORKS: dict[str, dict[str, Any]] = {
    "fprec": {"precision": "fprec"},
    "wbin xnor": {"precision": "wbin", "method": "xnor"},
    "wbin dab": {"precision": "wbin", "method": "dab"},
    "fbin xnor": {"precision": "fbin", "method": "xnor"},
    "fbin dab": {"precision": "fbin", "method": "dab"},
}
DISSECTED = ("fprec", "fbin xnor", "fbin dab")
WANTED = {"fprec": 1.25, "fbin xnor": 1.10}
"""How many times the step of these that of "fbin dab" may take, at most."""

WHOLE, REST = "whole step", "everything else"
# What the profiler sees, by the part it counts for; what happens inside of one part and is one itself counts once.
PARTS = {
    WHOLE: WHOLE,
    "aten::conv2d": "layers, forward",
    "aten::linear": "layers, forward",
    "ConvolutionBackward0": "layers, backward",
    "AddmmBackward0": "layers, backward",
    "optimal_split": "binarize, the split",
    "dabnet::binarize": "binarize, forward rest",
    "GeneratedBackwardFor_dabnet_binarize_defaultBackward": "binarize, backward",
    "dabnet::sign": "sign, forward",
    "GeneratedBackwardFor_dabnet_sign_defaultBackward": "sign, backward",
    "aten::batch_norm": "batch norm, forward",
    "NativeBatchNormBackward0": "batch norm, backward",
    "aten::relu": "ReLU, both ways",
    "ReluBackward0": "ReLU, both ways",
    "torch::autograd::AccumulateGrad": "keeping gradients",
    "Optimizer.step#Adam.step": "Adam",
    "constrain_": "constrain_",
}


def training_step(net: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor) -> None:
    F.cross_entropy(net(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
    with record_function("constrain_"):
        constrain_(net)


def prepare_step(width: float, settings: dict[str, Any]) -> Callable[[], None]:
    torch.manual_seed(0)
    net: nn.Module = build("resnet18", CLASSES, width=width, input_size=SIZE, **settings)
    net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    constrain_(net)
    optimizer = Training(net, Recipe(), steps_per_epoch=1).configure_optimizers()["optimizer"]
    return partial(training_step, net, optimizer, torch.rand(BATCH, 1, SIZE, SIZE), torch.randint(CLASSES, (BATCH,)))


def dissect_step(step: Callable[[], None]) -> Counter[str]:
    """Return the milliseconds of each part of one step."""

    @wraps(optimal_split)
    def watched_split(*arguments: Any, **options: Any) -> Any:
        with record_function("optimal_split"):
            return optimal_split(*arguments, **options)

    watching = patch("dabnet.binarizers.weights.optimal_split", watched_split)
    with watching, profile(activities=[ProfilerActivity.CPU]) as profiler, record_function(WHOLE):
        step()

    times: Counter[str] = Counter()
    for event in profiler.events() or []:
        if event.name in PARTS:
            times[PARTS[event.name]] += event.cpu_time_total / 1e3
            if outer := find_part(event.cpu_parent):
                times[outer] -= event.cpu_time_total / 1e3
    times[REST] = times.pop(WHOLE)
    times[WHOLE] = times.total()
    return times


def find_part(event: FunctionEvent | None) -> str | None:
    """Name the part that this event happens in."""
    while event is not None and event.name not in PARTS:
        event = event.cpu_parent
    return None if event is None else PARTS[event.name]


def dissect_steps(repeats: int, steps: dict[str, Callable[[], None]]) -> dict[str, dict[str, float]]:
    """Return the milliseconds of each part of each step, the least of all repeats."""
    runs: dict[str, list[Counter[str]]] = {name: [] for name in steps}
    for _ in range(repeats):
        for name, step in steps.items():
            runs[name].append(dissect_step(step))
    parts = [*dict.fromkeys(part for part in PARTS.values() if part != WHOLE), REST, WHOLE]
    return {name: {part: min(run[part] for run in found) for part in parts} for name, found in runs.items()}


def print_steps(console: Console, title: str, best: dict[str, float]) -> None:
    table = Table("network", title=title)
    for heading in ("ms", "of fprec", "wanted", "of fbin xnor", "wanted"):
        table.add_column(heading, justify="right")
    for name, seconds in best.items():
        cells = [f"{seconds * 1e3:.0f}"]
        for other, limit in WANTED.items():
            cells += [f"{seconds / best[other]:.2f}x", f"{limit:.2f}x" if name == "fbin dab" else ""]
        table.add_row(name, *cells)
    console.print(table)


def print_parts(console: Console, found: dict[str, dict[str, float]]) -> None:
    table = Table("part of a step", title="Where the time goes, in ms, as the profiler sees it")
    for name in found:
        table.add_column(name, justify="right")
    for other in WANTED:
        table.add_column(f"fbin dab\n- {other}", justify="right")
    ours = found["fbin dab"]
    for part in ours:
        if part == WHOLE:
            table.add_section()
        times = [f"{parts[part]:.1f}" for parts in found.values()]
        table.add_row(part, *times, *(f"{ours[part] - found[other][part]:+.1f}" for other in WANTED))
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2, help="threads for torch")
    parser.add_argument("--width", type=float, default=1.0, help="factor on all channels")
    parser.add_argument("--repeats", type=int, default=30, help="steps of each network; a quarter is dissected")
    arguments = parser.parse_args()
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler would say that it starts and stops
    torch.set_num_threads(arguments.threads)
    console = Console()
    with console.status("building the networks") as status:
        steps = {name: prepare_step(arguments.width, settings) for name, settings in NETWORKS.items()}
        status.update(f"{arguments.repeats} steps of each network")
        best = best_of(arguments.repeats, **steps)
        status.update("where the time goes")
        found = dissect_steps(max(1, arguments.repeats // 4), {name: steps[name] for name in DISSECTED})

    title = f"A training step of ResNet-18, width {arguments.width:g}, threads: {arguments.threads}"
    print_steps(console, title, best)
    print_parts(console, found)
    settings = {"threads": arguments.threads, "width": arguments.width, "repeats": arguments.repeats}
    milliseconds = {name: seconds * 1e3 for name, seconds in best.items()}
    path = write_results("training", {**settings, "milliseconds": milliseconds, "parts, milliseconds": found})
    console.print(f"Written to {path.relative_to(path.parents[2])}")


if __name__ == "__main__":
    main()
