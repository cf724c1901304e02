"""`dabnet demo`: a small network learns to tell synthetic sketches apart, then gives up 31 of its 32 bits a weight."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Annotated, Any, cast

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from torch import Tensor, nn

from dabnet.binarizers import binarize
from dabnet.binarizers.choices import Method
from dabnet.errors import InputError
from dabnet.export.summary import binarization_error, summary
from dabnet.networks.convert import binarize_, binary_layers, constrain_
from dabnet.paper.figures import draw_weights
from dabnet.sketches.synthetic import synthetic_sketches

SIZE = 32
METHODS: tuple[Method, ...] = ("dab", "xnor", "bnn")


def demo(
    output: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("demo"),
    epochs: Annotated[int, typer.Option(help="Passes over the sketches, for each of the two trainings.", min=1)] = 8,
    sketches: Annotated[int, typer.Option(help="How many sketches to draw.", min=128)] = 1800,
    seed: Annotated[int, typer.Option(help="The same seed on as many threads gives the same figures.")] = 0,
    threads: Annotated[int, typer.Option(help="Threads for torch; 0 leaves the choice to it.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON, and nothing else.")] = False,
) -> None:
    """Train a small sketch network, binarize it, and show what that did.

    Draws sketches of simple things, trains a real-valued network on them, and prints for each layer how much is lost
    when two values a filter, found by DAB, XNOR-Net or BNN, stand for its weights. Then trains the binary network and
    compares. Ends with a picture of one filter.
    """
    console = Console(quiet=as_json)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(
            f"cannot write to '{output}' ({problem.strerror}): choose another folder with --output."
        ) from None
    if threads:
        torch.set_num_threads(threads)
    torch.manual_seed(seed)
    images, labels, names = synthetic_sketches(sketches, SIZE, seed)
    x = torch.from_numpy(images)[:, None] / 255.0  # (sketches, 1, SIZE, SIZE), ink 1
    y = torch.from_numpy(labels)
    held_out = len(x) // 5
    train, test = (x[held_out:], y[held_out:]), (x[:held_out], y[:held_out])

    net = _network(len(names))
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}"), TimeRemainingColumn(),
        console=console, transient=True,
    ) as progress:  # fmt: skip
        _train(net, *train, epochs, progress, "real-valued network")
        accuracy = {"real": _accuracy(net, *test)}
        layers = _compare(net)
        binary = copy.deepcopy(net)
        binarize_(binary, precision="wbin", method="dab")
        constrain_(binary, centre=False)
        accuracy["binary, before training"] = _accuracy(binary, *test)
        _train(binary, *train, epochs, progress, "binary network     ")
        accuracy["binary"] = _accuracy(binary, *test)
    totals = summary(binary, (1, SIZE, SIZE), names)
    picture = _picture(net, layers, output)

    if as_json:
        figures = {"layers": layers, "accuracy": accuracy, "bytes": totals.bytes, "picture": str(picture)}
        typer.echo(json.dumps({**figures, "float_bytes": totals.float_bytes}, indent=2))
        return
    console.print(_table(layers))
    console.print(
        f"Right on {held_out} sketches it never saw: {accuracy['real']:.1%} with real weights; with one bit a weight "
        f"{accuracy['binary, before training']:.1%} at once and {accuracy['binary']:.1%} after training."
    )
    console.print(
        f"Size: about {totals.bytes:,} bytes packed, {totals.float_bytes:,} as float32, "
        f"{totals.float_bytes / totals.bytes:.1f} times smaller."
    )
    console.print(f"Picture of one filter: {picture}")


def _network(classes: int) -> nn.Sequential:
    """Build four convolutions and a linear layer in the usual order: convolution, batch norm, ReLU."""
    layers: list[nn.Module] = []
    for channels_in, channels, stride in ((1, 16, 1), (16, 32, 2), (32, 64, 2), (64, 64, 2)):
        layers.append(nn.Conv2d(channels_in, channels, 3, stride, padding=1, bias=False))
        layers += [nn.BatchNorm2d(channels), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


def _train(net: nn.Module, x: Tensor, y: Tensor, epochs: int, progress: Progress, description: str) -> None:
    batches = len(x) // 64
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=epochs * batches)
    task = progress.add_task(description, total=epochs * batches, note="")
    net.train()
    for _ in range(epochs):
        for batch in torch.randperm(len(x))[: batches * 64].view(batches, 64):
            loss = nn.functional.cross_entropy(net(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            constrain_(net, centre=False)
            progress.update(task, advance=1, note=f"loss {loss.item():.3f}")


@torch.no_grad()
def _accuracy(net: nn.Module, x: Tensor, y: Tensor) -> float:
    net.eval()
    return float((net(x).argmax(dim=1) == y).double().mean())


def _compare(net: nn.Module) -> list[dict[str, Any]]:
    """Give a row a layer that can be binary: its filters, K/n and each method's error, before any training of it."""
    binary = copy.deepcopy(net)
    binarize_(binary, precision="wbin", method="dab")
    rows: list[dict[str, Any]] = []
    for layer in binary_layers(binary):
        weight = layer.weight.detach()
        errors = {f"error_{method}": binarization_error(weight, binarize(weight, method)) for method in METHODS}
        k_share = float(layer.two_values().mask.double().mean())
        sizes = {"filters": len(weight), "n": layer.weights_a_filter}
        rows.append({"layer": layer.name, **sizes, "k_share": k_share, **errors})
    return rows


def _table(layers: list[dict[str, Any]]) -> Table:
    table = Table("layer", title="What is lost when two values stand for all weights of a filter", title_justify="left")
    for heading in ("weights", "bits", "packed", "K/n", "dab", "xnor", "bnn"):
        table.add_column(heading, justify="right")
    for row in layers:
        weights = row["filters"] * row["n"]
        packed = weights + 64 * row["filters"]  # and two floats a filter
        errors = [f"{row[f'error_{method}']:.4g}" for method in METHODS]
        shape = f"{row['filters']}x{row['n']}"
        table.add_row(row["layer"], shape, f"{32 * weights:,}", f"{packed:,}", f"{row['k_share']:.3f}", *errors)
    table.caption = "dab, xnor, bnn: squared error as a share of the weights' squares"
    return table


def _picture(net: nn.Module, layers: list[dict[str, Any]], output: Path) -> Path:
    """Draw the filter of the largest layer on which DAB gains most over XNOR-Net."""
    largest = max(layers, key=lambda row: row["filters"] * row["n"])["layer"]
    weights = cast("Tensor", net.get_submodule(largest).weight).detach().flatten(1)
    dab, xnor = ((weights - binarize(weights, method)).square().sum(dim=1) for method in ("dab", "xnor"))
    chosen = int(((xnor - dab) / weights.square().sum(dim=1)).argmax())
    path = output / "split.png"
    draw_weights(weights[chosen].numpy(), path, f"Filter {chosen} of layer {largest}, and the values that stand for it")
    return path
