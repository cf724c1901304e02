"""How fast are depthwise and grouped convolutions? A small network of them, beside ONNX Runtime with 32 bits.

    python -m benchmarks.depthwise [--runs 200]

The network is MobileNet's plan at 128x128: seven times a 3x3 convolution in groups and a 1x1 one, with one-bit weights.
With as many groups as channels it is depthwise; groups of 4 and 16 channels show what becomes of it in between.
Engines take turns in processes of their own, and the least time counts.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

from benchmarks.record import write_results
from dabnet import binarize_
from dabnet.comparing.engines import OURS
from dabnet.comparing.measure import RUNS_PER_TURN, start_engines, take_turns
from dabnet.exporting.lower import lower
from dabnet.runtime import Session

if TYPE_CHECKING:
    from dabnet.binarizers.choices import Activations
    from dabnet.packed.model import Model

SIZE, CLASSES = 128, 250
BLOCKS = ((32, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1))
"""Channels that come in and go out of each pair of convolutions, and the stride of its first."""
RACES: tuple[tuple[int, Activations, float | None], ...] = (
    (1, "sign", 1.0), (4, "sign", 1.0), (16, "sign", 1.0), (1, "real", 1.0), (4, "real", 1.0),
    (16, "real", 1.0),
)  # fmt: skip
"""Channels of a group, activations, and how many times dabnet's time ONNX Runtime should take, at least."""
PEER = "onnxruntime"


def build_model(group: int, activations: Activations) -> Model:
    torch.manual_seed(0)
    layers: list[nn.Module] = [nn.Conv2d(1, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU()]
    for channels, filters, stride in BLOCKS:
        layers += [nn.Conv2d(channels, channels, 3, stride, 1, groups=channels // group, bias=False)]
        layers += [nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, filters, 1, bias=False)]
        layers += [nn.BatchNorm2d(filters), nn.ReLU()]
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES))
    binarize_(net, weights="dab", activations=activations, skip=[str(len(net) - 1)])
    return lower(net.eval(), (1, SIZE, SIZE), [f"thing {i}" for i in range(CLASSES)]).model


def run_race(group: int, activations: Activations, wanted: float | None, runs: int) -> dict[str, Any]:
    model = build_model(group, activations)
    general = sum("slow general path" in step for step in Session(model).steps)
    with start_engines(model, [OURS, PEER]) as ready:
        turns = take_turns(ready, 1, -(-runs // RUNS_PER_TURN))
    ours, theirs = (1e3 * min(turns[name]) for name in (OURS, PEER))
    race = {"group": group, "activations": activations, "general": general, "ms": ours, f"{PEER}_ms": theirs}
    return {**race, "ratio": theirs / ours, "wanted": wanted}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="timed runs of each engine")
    runs = parser.parse_args().runs
    console = Console()
    table = Table("channels of a group", "activations", "steps on the general path", title="Milliseconds, one thread")
    for heading in ("dabnet", "ONNX Runtime", "ratio", "wanted"):
        table.add_column(heading, justify="right")
    races = []
    with console.status("") as status:
        for group, activations, wanted in RACES:
            status.update(f"groups of {group}, {activations}")
            race = run_race(group, activations, wanted, runs)
            races.append(race)
            holds = "" if wanted is None else f"{wanted:g}x: {'yes' if race['ratio'] >= wanted else 'NO'}"
            times = [f"{race[name]:.2f}" for name in ("ms", f"{PEER}_ms")]
            table.add_row(str(group), activations, str(race["general"]), *times, f"{race['ratio']:.2f}x", holds)
    console.print(table)
    path = write_results("depthwise", {"runs": runs, "races": races})
    console.print(f"Written to {path.relative_to(path.parents[2])}")


if __name__ == "__main__":
    main()
