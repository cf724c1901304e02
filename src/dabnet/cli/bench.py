"""`dabnet bench`: how fast and how small a model is, beside other engines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from dabnet._files import check_output
from dabnet._lazy import load
from dabnet.cli import named
from dabnet.cli.console import PlainConsole
from dabnet.comparing.engines import ENGINES, OURS, check_engines, is_installed
from dabnet.comparing.measure import Comparison, compare
from dabnet.errors import InputError
from dabnet.packed import Model, find_model
from dabnet.training.opening import open_model

OTHERS = [name for name in ENGINES if name != OURS]
USUAL = ("torch", "onnxruntime", "openvino")
"""What is compared with where nothing is said, as far as it is installed."""


def bench(
    model: Annotated[
        str,
        typer.Argument(help="A packed model, by file or name; a run's folder, a weights file or a network's name."),
    ],
    against: Annotated[
        str | None,
        typer.Option(
            help=f"Engines to compare with, separated by commas: {', '.join(OTHERS)}. "
            f"Left out, those of {', '.join(USUAL)} that are installed."
        ),
    ] = None,
    threads: Annotated[int, typer.Option(help="Threads of each engine.", min=1)] = 1,
    batches: Annotated[str, typer.Option(help="Sketches at once, for the throughput.")] = "1,8,64",
    runs: Annotated[int, typer.Option(help="Timed runs of each engine.", min=5)] = 100,
    chart: Annotated[Path | None, typer.Option(help="Draw time, file and memory as bars: a PNG file.")] = None,
    weights: named.Weights = None,
    activations: named.Activations = None,
    precision: named.Precision = None,
    method: named.Method = None,
    classes: named.Classes = 250,
    width: named.Width = 1.0,
    size: named.Size = None,
    changes: named.Changes = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON, and nothing else.")] = False,
) -> None:
    """Time a model in dabnet's runtime and its real-valued twin in other engines, on the same sketches.

    A twin has the same layers, with weights of 32 or 8 bits and ReLUs instead of signs and whole numbers: the
    network one would run otherwise. openvino-binary is the model itself as a graph of BinaryConvolution, without DAB's
    second sum. Each engine has a process of its own; they take turns, and each turn begins with a run that does not
    count.

    Example: dabnet bench resnet18 --against onnxruntime,openvino-int8 --threads 2 --chart bars.png
    """
    if against is None:
        names = [name for name in USUAL if is_installed(name)]
    else:
        names = [name.strip() for name in against.split(",") if name.strip()]
    counts = _read_batches(batches)
    check_engines(names)
    if chart is not None:
        check_output(chart, (".png",))
        draw = load("dabnet.comparing.chart").draw_comparison
    settings = named.build_settings(weights, activations, precision, method, changes, width=width, input_size=size)
    console = PlainConsole(quiet=as_json)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading the model", total=None)
        found = compare(
            _open_model(model, classes, settings),
            names,
            threads=threads,
            batches=counts,
            runs=runs,
            progress=lambda what, done, total: bar.update(task, description=what, completed=done, total=total),
        )
    if chart is not None:
        draw(found, chart)
    if as_json:
        typer.echo(json.dumps({"model": model, **found.to_dict(), "chart": chart and str(chart)}, indent=2))
        return
    _print(console, model, found)
    if chart is not None:
        console.print(f"As bars: {chart}")


def _read_batches(text: str) -> list[int]:
    try:
        counts = [int(word) for word in text.split(",")]
    except ValueError:
        counts = []
    if not counts or not all(1 <= count <= 4096 for count in counts):
        raise InputError(f"--batches takes numbers from 1 to 4096, separated by commas, not '{text}'.")
    return counts


def _open_model(model: str, classes: int, settings: dict[str, Any]) -> Model:
    if not find_model(model).exists():
        named.check_network(model)
        fresh: Model = load("dabnet.comparing.fresh").fresh_model(model, classes, **settings)
        return fresh
    opened = open_model(model)
    if isinstance(opened, Model):
        return opened
    size = (1, opened.raster.size, opened.raster.size)
    lowered = load("dabnet.exporting.lower").lower(opened.net, size, opened.classes, opened.raster.to_dict())
    packed: Model = lowered.model
    return packed


def _print(console: Console, model: str, found: Comparison) -> None:
    size = "x".join(map(str, found.input_size[1:]))
    title = f"{model}: milliseconds of one sketch of {size}, {found.threads} thread{'s' if found.threads > 1 else ''}"
    table = _table(title, "engine", "runs", "min", "median", "p99", "ratio", "file MB")
    for row in found.engines:
        times = [f"{row.latency_ms[name]:.2f}" for name in ("min", "median", "p99")]
        table.add_row(row.name, row.about, *times, f"{row.ratio:.2f}x", f"{row.bytes / 1e6:.2f}")
    console.print(table)
    counts = list(found.engines[0].sketches_per_second)
    batches = [f"batch {count}" for count in counts]
    table = _table("Sketches per second, and memory in MB", "engine", "version", *batches, "model", "process")
    for row in found.engines:
        rates = [f"{row.sketches_per_second[count]:,.1f}" for count in counts]
        memory = [f"{row.memory[part] / 1e6:,.0f}" for part in ("growth", "peak")]
        table.add_row(row.name, row.version.split("+")[0], *rates, *memory)
    console.print(table)
    table = _table("Where dabnet's time goes on one thread, each step at its best", "step", "ms", "share", words=1)
    total = sum(step["ms"] for step in found.layers)
    for step in found.layers:
        table.add_row(step["step"], f"{step['ms']:.3f}", f"{step['ms'] / total:.1%}")
    console.print(table)
    console.print(
        f"Sketches drawn by a program, {found.ink:.1%} of the pixels inked; {found.runs} runs of each engine, in "
        f"turns; dabnet's kernels: {found.kernels}. The ratio is of the least times, to dabnet's. Memory is the most "
        "that the engine's own process had resident, one sketch at a time; of the model, that less what was there once "
        "the library was imported."
    )


def _table(title: str, *headings: str, words: int = 2) -> Table:
    """Make a table whose first columns are words, and the rest numbers."""
    table = Table(title=title, title_justify="left")
    for at, heading in enumerate(headings):
        table.add_column(heading, justify="left" if at < words else "right", no_wrap=True)
    return table
