"""Pictures of a training: what a network takes for what, how it learned, and what became of its binary layers."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter

from dabnet._files import check_output, open_beside
from dabnet.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from dabnet.runtime.evaluation import Evaluation

MOST_NAMED = 30
"""So many classes have a cell that can be read, with a name to each row and column; more become a heat map."""
WORST = 15

_RIGHT, _WRONG, _FAINT, _INK, _GREY = "#1d4ed8", "#c2410c", "#e2e8f0", "#0f172a", "#64748b"
_DPI = 150
_LONGEST = 24  # characters of a name
_MOST_MARKS = 50  # names beside a heat map
_MOST_SHARP = 800  # classes whose cells in a heat map are larger than a pixel


def draw_confusion(evaluation: Evaluation, path: str | Path) -> None:
    """Draw the confusion matrix: a row for each class drawn, a column for each class guessed.

    Up to 30 classes have their names, and counts in the cells; for more it is a heat map, and beside it are the 15
    mistakes made most often.
    """
    draw = _draw_cells if len(evaluation.class_names) <= MOST_NAMED else _draw_heat_map
    _save(draw(evaluation), path)


def draw_curves(metrics: str | Path | Sequence[Mapping[str, Any]], path: str | Path) -> None:
    """Draw loss, accuracy and learning rate over the epochs, and mark the best epoch of the validation.

    `metrics` is a CSV file or a list of rows. A row has its `epoch`, and any of `train_loss`, `validation_loss`,
    `train_accuracy`, `validation_accuracy` (shares), `learning_rate` and `images_per_second`; empty cells are skipped,
    and if an epoch comes twice, as in a training that was resumed, the last value counts.
    """
    table = _read_table(metrics)
    losses, accuracies = (
        {part: _series(table, f"{part}_{kind}") for part in ("train", "validation")} for kind in ("loss", "accuracy")
    )
    rates, speeds = _series(table, "learning_rate"), _series(table, "images_per_second")
    panels: list[tuple[Callable[[Axes], None], float]] = []  # (what draws it, height)
    if any(losses.values()):
        panels.append((lambda axes: _draw_parts(axes, "loss", losses, min, "{:.3g}"), 3))
    if any(accuracies.values()):
        panels.append((lambda axes: _draw_parts(axes, "accuracy", accuracies, max, "{:.1%}"), 3))
    if rates:
        panels.append((lambda axes: _draw_rates(axes, rates), 1))
    if not panels:
        raise InputError(f"{_named(metrics)} has no loss, accuracy or learning rate of any epoch to draw.")

    heights = [height for _, height in panels]
    figure = _figure(8, 1 + sum(heights))
    columns = figure.subplots(len(panels), sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (draw, _) in zip(columns, panels, strict=True):
        draw(axes)
        _tidy(axes)
    columns[-1].set_xlabel("epoch")
    figure.align_ylabels()
    epochs = {epoch for series in (*losses.values(), *accuracies.values(), rates) for epoch in series}
    title = f"Training, {len(epochs)} epoch{'s' if len(epochs) > 1 else ''}"
    if speeds:
        title += f", {np.median(list(speeds.values())):,.0f} images per second"
    figure.suptitle(title, fontsize=13, fontweight="bold")
    _save(figure, path)


def draw_traces(rows: str | Path | Sequence[Mapping[str, Any]], path: str | Path) -> None:
    """Draw how each binary layer changes over the epochs, a line per layer, coloured by depth.

    A row, of a CSV file or a list, has an `epoch` and a `layer`, layers in their order in the network, and of that
    layer: `alpha` and `beta`, the means of its filters' two values, or of their magnitudes; `k_share`, the share of
    weights that have the upper one (K/n); `flip`, the share that changed sides since the epoch before; `error`, the
    relative error of the binary weights. Empty cells are skipped.
    """
    table = _read_table(rows)
    layers = list(dict.fromkeys(str(row["layer"]) for row in table if row.get("layer") not in (None, "")))
    traces = [[row for row in table if str(row.get("layer")) == layer] for layer in layers]
    if not any(_series(trace, name) for trace in traces for name in ("alpha", "beta", "k_share", "flip", "error")):
        raise InputError(f"{_named(rows)} has no binary layer's values of any epoch to draw.")
    colours = mpl.colormaps["viridis"](np.linspace(0, 0.9, len(layers)))  # the rest is too light on white

    figure = _figure(10, 7)
    (values, shares), (flips, errors) = figure.subplots(2, 2, sharex=True)
    for trace, colour in zip(traces, colours, strict=True):
        _draw_series(values, _series(trace, "alpha"), colour)
        _draw_series(values, _series(trace, "beta"), colour, "--")
        _draw_series(shares, _series(trace, "k_share"), colour)
        _draw_series(flips, _series(trace, "flip"), colour)
        _draw_series(errors, _series(trace, "error"), colour)
    signed = any(value < 0 for name in ("alpha", "beta") for trace in traces for value in _series(trace, name).values())
    names = ("α", "β") if signed else ("|α|", "|β|")
    values.set_title(f"{names[0]} (solid) and {names[1]} (dashed), mean over filters")
    shares.set_title("K/n: share of weights that are α")
    flips.set_title("weights that changed sides since the last epoch")
    errors.set_title("squared error, as a share of the weights' squares")
    for axes in (values, shares, flips, errors):
        _tidy(axes)
        if not axes.has_data():
            axes.text(0.5, 0.5, "no values", transform=axes.transAxes, ha="center", color=_GREY)
    for axes in (flips, errors):
        axes.set_xlabel("epoch")
    # From 10% to 0.1% in one panel, and 0 too: linear up to 1%, then logarithmic.
    flips.set_yscale("symlog", linthresh=0.01)
    flips.set_ylim(-0.0002, max(0.012, flips.get_ylim()[1]))  # with room for lines at 0, and for the mark of 1%
    flips.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    figure.suptitle("Binary layers over the training", fontsize=13, fontweight="bold")
    _name_layers(figure, layers, colours)
    _save(figure, path)


def _draw_cells(evaluation: Evaluation) -> Figure:
    """Draw a confusion matrix that can be read cell by cell."""
    confusion = evaluation.confusion()
    classes = len(confusion)
    shares = confusion / np.maximum(confusion.sum(axis=1, keepdims=True), 1)
    wrong = ~np.eye(classes, dtype=bool)
    cell = 0.62 if classes <= 12 else 0.4  # inches
    figure = _figure(max(5.5, 2.6 + cell * classes), 2.2 + cell * classes)  # the title needs some width
    axes = figure.subplots()
    # Mistakes are rare if all is well, so they have a hue, and a scale, of their own.
    scale = max(float(shares[wrong].max(initial=0)), 0.05)
    for mask, colour, top in ((~wrong, _RIGHT, 1.0), (wrong, _WRONG, 1.5 * scale)):
        axes.imshow(np.ma.masked_array(shares, ~mask), cmap=_tint(colour), vmin=0, vmax=top)
    for i, j in np.argwhere(confusion):
        dark = shares[i, j] > (0.5 if i == j else 0.75 * scale)
        count = f"{confusion[i, j]:,}" if confusion[i, j] < 10_000 else f"{confusion[i, j] / 1000:,.0f}k"
        text = count if classes > 12 else f"{count}\n{shares[i, j]:.0%}"
        axes.text(j, i, text, ha="center", va="center", fontsize=8, color="white" if dark else _INK)
    names = [_shorten(name) for name in evaluation.class_names]
    axes.set_xticks(range(classes), names, rotation=45, ha="right", rotation_mode="anchor", parse_math=False)
    axes.set_yticks(range(classes), names, parse_math=False)
    axes.set_xticks(np.arange(classes + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(classes + 1) - 0.5, minor=True)
    axes.grid(which="minor", color=_FAINT, linewidth=0.8)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
    axes.set(xlabel="guessed", ylabel="drawn")
    _title(figure, evaluation)
    return figure


def _draw_heat_map(evaluation: Evaluation) -> Figure:
    """Draw a confusion matrix of many classes, and its largest cells by name."""
    confusion = evaluation.confusion()
    classes = len(confusion)
    shares = confusion / np.maximum(confusion.sum(axis=1, keepdims=True), 1)
    figure = _figure(15, 8.6)
    left, right = figure.subplots(1, 2, width_ratios=[8, 4])
    # One mistake is seen too: its colour is well off the white of none. Blurring would hide it.
    image = left.imshow(
        np.ma.masked_equal(shares, 0),
        cmap=_tint(_INK, "#cbd5e1"),
        norm=PowerNorm(0.5, 0, 1),
        interpolation="nearest" if classes <= _MOST_SHARP else None,
    )
    ticks = [0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1]
    bar = figure.colorbar(image, ax=left, shrink=0.6, ticks=ticks, format=PercentFormatter(1, decimals=0))
    bar.set_label("share of the class's drawings")
    marks = range(0, classes, -(-classes // _MOST_MARKS))
    names = [_shorten(evaluation.class_names[mark]) for mark in marks]
    left.set_xticks(marks, names, rotation=90, fontsize=7, parse_math=False)
    left.set_yticks(marks, names, fontsize=7, parse_math=False)
    left.set(xlabel="guessed", ylabel="drawn")

    worst = evaluation.worst_confusions(WORST)
    positions = np.arange(len(worst))
    bars = right.barh(positions, [count for _, _, count in worst], color=_WRONG, height=0.7)
    right.bar_label(bars, padding=3, fontsize=9)
    pairs = [f"{_shorten(drawn)} → {_shorten(guessed)}" for drawn, guessed, _ in worst]
    right.set_yticks(positions, pairs, fontsize=9, parse_math=False)
    right.set_ylim(WORST - 0.4, -0.6)
    right.margins(x=0.1)
    right.set_title("Mistakes made most often: drawn → guessed" if worst else "No mistakes", fontsize=10)
    right.spines[:].set_visible(False)
    right.tick_params(length=0, labelbottom=False)
    _title(figure, evaluation)
    return figure


def _figure(width: float, height: float) -> Figure:
    """Make a figure, in inches; not pyplot's, which would pick a backend for everyone."""
    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))


def _title(figure: Figure, evaluation: Evaluation) -> None:
    classes = len(evaluation.class_names)
    five = f", top-5 {evaluation.top5:.1%}" if classes > 5 else ""  # of five classes it is always 100%
    drawings = "1 drawing" if evaluation.drawings == 1 else f"{evaluation.drawings:,} drawings"
    text = f"top-1 {evaluation.top1:.1%}{five} of {drawings}, {classes} class{'es' if classes > 1 else ''}"
    figure.suptitle(text, fontsize=13, fontweight="bold")


def _draw_parts(
    axes: Axes, kind: str, parts: dict[str, dict[float, float]], best: Callable[..., float], form: str
) -> None:
    """Draw the training's and the validation's line, and mark the best of the validation's."""
    _draw_series(axes, parts["train"], _GREY, label="training")
    validation = parts["validation"]
    _draw_series(axes, validation, _RIGHT, label="validation")
    if validation:
        epoch = best(validation, key=lambda at: validation[at])
        label = f"best: {form.format(validation[epoch])}, epoch {epoch:g}"
        axes.plot(epoch, validation[epoch], "o", color=_WRONG, markersize=9, fillstyle="none", label=label)
    axes.set_ylabel(kind)
    if kind == "accuracy":
        axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.legend(frameon=False, loc="best")


def _draw_rates(axes: Axes, rates: dict[float, float]) -> None:
    _draw_series(axes, rates, _GREY)
    if min(rates.values()) > 1e-6 * max(rates.values()):  # one that ends at 0, or next to it, would be all there is
        axes.set_yscale("log")
    axes.set_ylabel("learning\nrate")


def _draw_series(axes: Axes, series: dict[float, float], colour: Any, style: str = "-", label: str = "") -> None:
    if series:
        marker = "o" if len(series) <= 3 else ""  # a line of one point would not be seen
        axes.plot(
            list(series), list(series.values()), style, color=colour, marker=marker, markersize=4, linewidth=1.5,
            label=label or "_unnamed",
        )  # fmt: skip


def _name_layers(figure: Figure, layers: list[str], colours: NDArray[Any]) -> None:
    """Name the first, the middle and the last layer in a legend below the panels."""
    positions = {0: "first", len(layers) - 1: "last"}
    if len(layers) > 2:
        positions[len(layers) // 2] = "middle"
    handles = [
        Line2D([], [], color=colours[at], linewidth=3, label=f"{position} layer: {_shorten(layers[at])}")
        for at, position in sorted(positions.items())
    ]
    legend = figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=_FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))


def _tint(colour: str, least: str = "white") -> LinearSegmentedColormap:
    return LinearSegmentedColormap.from_list("tint", [least, colour])


def _shorten(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def _read_table(table: str | Path | Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    if not isinstance(table, str | Path):
        return list(table)
    try:
        with Path(table).open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    except OSError as problem:
        raise InputError(f"cannot read '{table}' ({problem.strerror}): check the path.") from None
    except (ValueError, csv.Error):
        raise InputError(f"'{table}' is not a CSV file: give the metrics.csv of a training.") from None


def _series(table: Sequence[Mapping[str, Any]], column: str) -> dict[float, float]:
    """Return a column's values by epoch, in order, without those that are missing or not finite."""
    found: dict[float, float] = {}
    for row in table:
        epoch, value = (_number(row.get(name), name) for name in ("epoch", column))
        if epoch is not None and value is not None:
            found[epoch] = value
    return dict(sorted(found.items()))


def _number(cell: Any, column: str) -> float | None:
    if cell is None or cell == "":
        return None
    try:
        value = float(cell)
    except (TypeError, ValueError):
        raise InputError(f"'{cell}' is not a number, and column '{column}' must hold numbers.") from None
    return value if math.isfinite(value) else None


def _named(table: str | Path | Sequence[Mapping[str, Any]]) -> str:
    return f"'{table}'" if isinstance(table, str | Path) else "the table"


def draw_unfinished(figures: Sequence[Mapping[str, float]], path: str | Path) -> None:
    """Draw how often a network is right, and how sure it is, while a drawing is being made.

    Each row has its `share` of the strokes, and `top1`, `top5` and `confidence` (shares).
    """
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    shares = [row["share"] for row in figures]
    for key, name, style in (
        ("top5", "right among five", {"color": _GREY}),
        ("top1", "right", {"color": _RIGHT}),
        ("confidence", "mean probability of the guess", {"color": _WRONG, "linestyle": "--"}),
    ):
        values = [row[key] for row in figures]
        axes.plot(shares, values, marker="o", label=name, **style)  # type: ignore[arg-type]
        for x, y in zip(shares, values, strict=True):
            if key != "confidence":
                axes.annotate(f"{y:.0%}", (x, y), (0, 6), textcoords="offset points", ha="center", fontsize=8)
    axes.set(xlabel="strokes drawn", ylim=(0, 1.05), xticks=shares)
    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left", fontsize=8)
    _save(figure, path)


def draw_study(summary: Mapping[str, Any], factors: Sequence[str], measures: Sequence[str], path: str | Path) -> None:
    """Draw each cell's mean with its standard error, a panel per measure; `summary` is that of `dabnet study`.

    Below them stand the paired differences of the first measure, where there are any, with their 95 % intervals.
    """
    cells = summary["cells"]
    names = [", ".join(str(row[factor]) for factor in factors) or "all" for row in cells]
    pairs = [row for row in summary["differences"] if row["measure"] == measures[0]]
    columns = min(len(measures), 4)
    rows = math.ceil(len(measures) / columns)
    heights = [1 + len(cells)] * rows + ([3 + len(pairs)] if pairs else [])
    figure = Figure(figsize=(2.5 + 2.6 * columns, 0.9 + 0.28 * sum(heights)), layout="constrained")
    grid = figure.add_gridspec(len(heights), columns, height_ratios=heights)
    panels = [figure.add_subplot(grid[divmod(number, columns)]) for number in range(len(measures))]
    for number, axes in enumerate(panels):
        axes.set(yticks=range(len(cells)), yticklabels=names, ylim=(len(cells) - 0.5, -0.5))
        axes.tick_params(labelleft=number % columns == 0)
    if pairs:
        _draw_differences(figure.add_subplot(grid[-1, :]), pairs, factors, summary["compare"])
    for axes, measure in zip(panels, measures, strict=True):
        for y, row in enumerate(cells):
            if (found := row[measure]) is not None:
                error = found["error"] if found["seeds"] > 1 else 0
                axes.errorbar(found["mean"], y, xerr=error, fmt="o", color=_RIGHT, capsize=3, markersize=4)
                axes.annotate(f"{100 * found['mean']:.1f}", (found["mean"], y), (0, 5), textcoords="offset points",
                              ha="center", fontsize=7, color=_INK)  # fmt: skip
        axes.set(title=measure)
        axes.title.set_fontsize(8)
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.grid(axis="x", color=_FAINT)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(labelsize=8, length=0)
    _save(figure, path)


def _draw_differences(axes: Axes, pairs: Sequence[Mapping[str, Any]], factors: Sequence[str], compared: str) -> None:
    """Draw by how many points each cell is ahead of the one that it is paired with."""
    names = []
    for y, row in enumerate(pairs):
        others = [str(row[factor]) for factor in factors if factor != compared]
        names.append(", ".join([f"{row[compared]} against {row['against']}", *others]))
        mean = 100 * row["mean"]
        if row["interval"] is not None:
            axes.errorbar(mean, y, xerr=100 * row["interval"], color=_FAINT, capsize=3)
        if row["pooled"] is not None:
            axes.errorbar(mean, y, xerr=100 * row["pooled"], color=_RIGHT, linewidth=2)
        axes.plot(mean, y, "o", color=_RIGHT, markersize=4)
    axes.axvline(0, color=_INK, linewidth=0.8)
    axes.set(yticks=range(len(pairs)), yticklabels=names, ylim=(len(pairs) - 0.5, -0.5))
    intervals = "95 % intervals with the spread of all (bold) and of each pair alone"
    axes.set_title(f"points of {pairs[0]['measure']}, same seed; {intervals}", fontsize=8)
    axes.grid(axis="x", color=_FAINT)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(labelsize=8, length=0)


def check_picture(path: str | Path) -> None:
    """Refuse a path that no picture can be written to, before the work that it is to show."""
    path = Path(path)
    _kind(path)
    check_output(path)


def _save(figure: Figure, path: str | Path) -> None:
    """Write a picture beside its place, then move it there."""
    path = Path(path)
    kind = _kind(path)
    with open_beside(path) as file:
        figure.savefig(file, dpi=_DPI, format=kind)


def _kind(path: Path) -> str:
    """Return what kind of picture a path asks for."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in Figure().canvas.get_supported_filetypes():
        raise InputError(f"'{path}' does not say what kind of picture it is to be: end its name in .png, .svg or .pdf.")
    return kind
