"""What does binarizing cost in training? A step of the same network, real and binary by each method.

    python -m benchmarks.step

The network has ResNet-18's convolutions at half width (no shortcuts), 64x64 sketches, batches of 64; a step is forward,
backward, Adam and `constrain_`. One thread, interleaved, best of many.
"""

from __future__ import annotations

from functools import partial
from typing import get_args

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import dabnet
from benchmarks.record import best_of, write_results
from dabnet.binarizers.choices import Method

CLASSES = 250
REPEATS = 12


def network() -> nn.Sequential:
    layers: list[nn.Module] = [nn.Conv2d(1, 32, 7, 2, 3, bias=False), nn.BatchNorm2d(32), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    channels_in = 32
    for channels in (32, 64, 128, 256):
        for i in range(4):
            stride = 2 if i == 0 and channels > 32 else 1
            layers.append(nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False))
            layers += [nn.BatchNorm2d(channels), nn.ReLU()]
            channels_in = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, CLASSES))


def step(net: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor) -> None:
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
    dabnet.constrain_(net)


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    console = Console()
    x, y = torch.randn(64, 1, 64, 64), torch.randint(0, CLASSES, (64,))
    nets = {"fprec": network(), **{f"fbin {method}": network() for method in get_args(Method)}}
    for method in get_args(Method):
        dabnet.binarize_(nets[f"fbin {method}"], "fbin", method, norm=False)
    runs = {name: partial(step, net, torch.optim.Adam(net.parameters()), x, y) for name, net in nets.items()}
    with console.status(f"{REPEATS} steps each"):
        best = best_of(REPEATS, **runs)

    table = Table("network", title="A training step, one thread")
    for heading in ("ms", "of fprec", "of fbin xnor"):
        table.add_column(heading, justify="right")
    for name, seconds in best.items():
        ratios = [f"{seconds / best[other]:.2f}x" for other in ("fprec", "fbin xnor")]
        table.add_row(name, f"{seconds * 1e3:.0f}", *ratios)
    console.print(table)
    console.print("fbin dab: at most 1.25x fprec and 1.10x fbin xnor are wanted")
    path = write_results("step", {"milliseconds": {name: seconds * 1e3 for name, seconds in best.items()}})
    console.print(f"Written to {path.relative_to(path.parents[2])}")


if __name__ == "__main__":
    main()
