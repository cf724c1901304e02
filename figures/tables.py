"""The tables, each a function that returns Markdown; `TABLES` has their names.

Results of benchmarks are the newest of their name; where the machine matters, the file is named here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from statistics import mean, stdev
from typing import Any

from dabnet.packed.cards import Card, read_card
from dabnet.packed.shipped import ALIASES, model_names
from dabnet.recipes import describe, recipe_names
from paper.published import ACCURACY, CHANGED, NETWORKS, OURS, VARIANTS

from .blocks import ROOT

RESULTS = ROOT / "benchmarks" / "results"
ENGINES = {
    "one thread of an AMD EPYC with AVX-512": ("2026-11-18-resnet18", "all"),
    "the same, held to what there is with AVX2, all but ONNX Runtime": ("2026-11-18-resnet18", "AVX2"),
}
"""Runs of benchmarks.resnet18 to show: the file, and which instructions. Whoever measures anew changes this."""
COLUMNS = {
    "dabnet": "dabnet",
    "onnxruntime": "ONNX Runtime fp32",
    "onnxruntime-int8": "ONNX Runtime int8",
    "openvino": "OpenVINO fp32",
    "openvino-int8": "OpenVINO int8",
    "openvino-binary": "OpenVINO binary",
    "torch": "torch fp32",
}
NAMES = {"resnet18": "ResNet-18", "googlenet": "GoogLeNet", "sketch_a_net": "Sketch-A-Net"}
PRECISIONS = {"fbin": "FBin", "wbin": "WBin"}


def read_results(name: str) -> dict[str, Any]:
    """Return the newest results of a benchmark, or those of one day."""
    path = sorted(RESULTS.glob(f"*{name}.json"))[-1]
    return json.loads(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join("|" + "".join(f" {cell} |" if cell else " |" for cell in line) for line in lines).replace(
        " --- ", "---"
    )


def models() -> str:
    """Return the models that ship, by their cards."""
    cards = [read_card(name) for name in model_names()]
    timed = any(card.milliseconds for card in cards)
    heading = [
        "model",
        "knows",
        "right at first guess",
        "among five",
        "file",
        *(["one sketch, one thread"] if timed else []),
    ]
    return table(heading, [_model(card, timed) for card in cards])


def _model(card: Card, timed: bool) -> list[str]:
    first = card.accuracy[0]
    name = f"`{card.name}`" + (", the default" if ALIASES["default"] == card.name else "")
    right = f"{first.top1:.1%} of {first.drawings:,} drawings of {first.set}".replace("%", " %")
    cells = [
        name,
        f"{card.classes} things",
        right,
        f"{first.top5:.1%}".replace("%", " %"),
        f"{card.bytes / 1000:.0f} kB",
    ]
    return [*cells, f"{card.milliseconds:.2f} ms" if card.milliseconds else ""] if timed else cells


def engines() -> str:
    """Return how long one sketch takes in each engine, on each machine."""
    return "\n\n".join(
        f"Milliseconds for one sketch (224x224 pixels, Sketch-A-Net 225x225), the least of {run['runs']} runs, "
        f"on {machine}; "
        f"`python -m benchmarks.resnet18`, {run['date']}:\n\n{_races(run, instructions)}"
        for machine, (name, instructions) in ENGINES.items()
        for run in [read_results(name)]
    )


def peers() -> str:
    """Return the README's figures beside other engines: the first row of each machine's table, and the browser's."""
    rows = [
        [machine.rpartition(" with ")[2], *_times(read_results(name)["races"][0], instructions)]
        for machine, (name, instructions) in ENGINES.items()
    ]
    run = read_results("browser")
    times = run["hosts"]["Chromium"]
    ours, theirs = (
        f"{times['sketch_ms'][name]['least']:.2f} ms per sketch, {times['start_ms'][name]['least'] / 1000:.2f} s to "
        f"the first answer and {run['bytes'][name]['gzip'] / 1e6:.2f} MB to download"
        for name in ("dabnet", "onnxruntime-web")
    )
    return (
        "Milliseconds for one sketch of 224x224 pixels, ResNet-18 with one bit per weight and activation beside its "
        "real-valued twin, on one thread of an AMD EPYC ([more networks](docs/engines.md), [how the kernels "
        f"get there](docs/kernels.md)):\n\n{table(['', *COLUMNS.values()], rows)}\n\n"
        f"In Chromium, `{run['model']}` with its page takes {ours}; onnxruntime-web {run['onnxruntime-web']} with the "
        f"fp32 twin takes {theirs} ([in the browser](docs/browser.md))."
    )


def times_of(race: dict[str, Any], instructions: str) -> dict[str, float]:
    """Return the milliseconds of each engine that was timed with these instructions."""
    return {each["engine"]: each["ms"] for each in race["engines"] if each["instructions"] == instructions}


def _times(race: dict[str, Any], instructions: str) -> list[str]:
    found = times_of(race, instructions)
    return [f"{found[engine]:.3g}" if engine in found else "" for engine in COLUMNS]


def _races(run: dict[str, Any], instructions: str) -> str:
    rows = []
    for race in run["races"]:
        name = f"{NAMES[race['network']]}, {PRECISIONS.get(race['precision'], race['precision'])}"
        if race["threads"] == 1:
            rows.append([name, *_times(race, instructions)])
    return table(["", *COLUMNS.values()], rows)


def dial() -> str:
    """Return what each kind of activations costs one network: accuracy, time and bytes."""
    run = read_results("dial")
    rows = [
        [
            row["name"],
            f"{100 * row['top1']:.1f} ± {100 * row['error']:.1f} %",
            f"{row['ms']:.2f} ms",
            f"{row['bytes'] / 1000:,.0f} kB",
        ]
        for row in run["rows"]
    ]
    gains = [
        f"* {each['of']} against {each['against']}: {each['points']:+.1f} ± {each['interval']:.1f} points"
        for each in run["differences"]
    ]
    heading = ["activations", "held-back sketches guessed", "one sketch", "file"]
    return "\n".join([table(heading, rows), "", *gains])


def browser() -> str:
    """Return what a browser takes for a sketch, beside onnxruntime-web."""
    run = read_results("browser")
    ours, theirs = "dabnet", "onnxruntime-web"
    times = run["hosts"]["Chromium"]
    rows = [
        ["one sketch", *(f"{times['sketch_ms'][name]['least']:.2f} ms" for name in (ours, theirs))],
        [
            "from the start to the first answer",
            *(f"{times['start_ms'][name]['least'] / 1000:.2f} s" for name in (ours, theirs)),
        ],
        ["to download, compressed", *(f"{run['bytes'][name]['gzip'] / 1e6:.2f} MB" for name in (ours, theirs))],
    ]
    heading = [
        f"in Chromium, `{run['model']}`",
        "dabnet, with the page",
        f"onnxruntime-web {run['onnxruntime-web']}, fp32 twin",
    ]
    return f"{table(heading, rows)}\n\n`python -m benchmarks.browser`, {run['date']}."


def dial_short() -> str:
    """Return the picture of what each kind of activation costs, with the differences as a sentence."""
    run = read_results("dial")
    told = ", ".join(
        f"{each['of']} against {each['against']} {each['points']:+.1f} ± {each['interval']:.1f}"
        for each in run["differences"]
    )
    return (
        "![Accuracy against time and bytes, from real weights to one bit per weight and activation]"
        "(docs/images/dial.png)\n\n"
        "One bit per weight leaves a choice of activations ([accuracy or speed](docs/activations.md)). A small "
        f"ResNet-18, judged by {run['sketches']:,} held-back sketches of TU-Berlin, in points: {told}."
    )


def short() -> str:
    """Return what the README tells: of activations, and of other engines."""
    return "\n\n".join([dial_short(), peers(), claim()])


def table2() -> str:
    """Return the paper's Table 2, here and there."""
    runs = json.loads((ROOT / "docs" / "results" / "paper" / "table2.json").read_text())["runs"]
    variants = ("fprec", "wbin-bwn", "wbin-dab", "fbin-xnor", "fbin-dab")
    rows = []
    for name, title in NETWORKS.items():
        rows.append([title, "here", *(_share(runs.get(f"tuberlin-{name}-{variant}")) for variant in variants)])
        rows.append(["", "paper", *(f"{ACCURACY['tuberlin'][name][variant]:.1f}" for variant in variants)])
    ours = [_share(runs.get(f"tuberlin-resnet18-shortcuts-{variant}")) for variant in variants]
    rows.append(["ResNet-18, a shortcut around every convolution (ours)", "here", *ours])
    return table(["top-1 in percent", "", *(VARIANTS[variant] for variant in variants)], rows)


def runs() -> str:
    """Return what every network trained on TU-Berlin gets right."""
    runs = json.loads((ROOT / "docs" / "results" / "paper" / "table2.json").read_text())["runs"]
    titles = {**NETWORKS, **{name: f"{title} (ours)" for name, title in (OURS | CHANGED).items()}}
    rows = []
    for name, title in titles.items():
        for variant, called in VARIANTS.items():
            if run := runs.get(f"tuberlin-{name}-{variant}"):
                fives = [each["top5"] for each in run["runs"]]
                five = {"top1": mean(fives), "spread": stdev(fives) if len(fives) > 1 else None}
                rows.append([f"{title}, {called}", _share(run), _share(five)])
    return table(["network", "top-1", "top-5"], rows)


def _share(run: dict[str, Any] | None) -> str:
    if run is None:
        return ""
    spread = f" ± {100 * run['spread']:.1f}" if run["spread"] is not None else ""
    return f"{100 * run['top1']:.1f}{spread}"


def photographs() -> str:
    """Return how many drawings stay right when they are photographed, before and now."""
    run = read_results("photos")
    pens = ("pen", "pencil", "marker")
    rows = [
        [condition, *(f"{found[pen]['before']} → **{found[pen]['now']}**" for pen in pens)]
        for condition, found in run["stay right"].items()
    ]
    return table([f"of {run['drawings']} that {run['model']} names as strokes", *pens], rows)


def recipes() -> str:
    """Return the recipes that ship, with what each says of itself."""
    return table(["recipe", "what it trains"], [[f"`{name}`", describe(name)] for name in recipe_names()])


STUDIES = {
    "dab-or-xnor": {
        "top1": "top-1",
        "top5": "top-5",
        "trace:k_share": "K/n",
        "trace:error": "error",
        "trace:flip": "flips",
        "trace:skew": "skew",
    },
    "gradients": {"top1": "top-1", "trace:k_share": "K/n", "trace:error": "error", "trace:flip": "flips"},
    "skew": {"top1": "top-1", "trace:k_share": "K/n", "trace:error": "error", "trace:skew": "skew"},
    "later-methods": {"top1": "top-1", "top5": "top-5", "validation_accuracy": "held-back", "trace:flip": "flips"},
    "ingredients": {
        "validation_accuracy": "all",
        "validation_accuracy:tuberlin_gray256": "TU-Berlin",
        "validation_accuracy:quickdraw345x160_strokes": "Quick, Draw!",
    },
}
"""Studies whose summaries are kept, with the measures to show and what they are called; all are percent."""


def read_study(name: str) -> dict[str, Any]:
    """Return the summary of a study that is kept."""
    path = ROOT / "docs" / "results" / name / "summary.json"
    return json.loads(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def study(name: str) -> str:
    """Return a study's finished cells, and by how many points of the first measure each is ahead of its partner."""
    summary, measures = read_study(name), STUDIES[name]
    first = next(iter(measures))
    factors = [key for key, value in summary["cells"][0].items() if isinstance(value, str)]
    gains = {tuple(row[key] for key in factors): row for row in summary["differences"] if row["measure"] == first}
    rows = []
    for cell in summary["cells"]:
        if (found := cell[first]) is None:
            continue
        levels = tuple(cell[key] for key in factors)
        shares = [_share({"top1": cell[key]["mean"], "spread": cell[key]["error"]}) for key in measures]
        rows.append([*levels, *shares, points(gains[levels]) if levels in gains else "", str(found["seeds"])])
    return table([*factors, *measures.values(), "points ahead", "seeds"], rows)


def points(gain: dict[str, Any]) -> str:
    """Return a difference in points with its 95 % interval."""
    return f"{100 * gain['mean']:+.1f} ± {100 * gain['pooled']:.1f}"


def claim() -> str:
    """Return what became of the paper's main claim."""
    gains = {
        tuple(row[key] for key in row if isinstance(row[key], str)): points(row)
        for name in ("dab-or-xnor", "gradients")
        for row in read_study(name)["differences"]
        if row["measure"] == "top1"
    }

    def gain(*levels: str) -> str:
        return next(value for keys, value in gains.items() if set(levels) <= set(keys))

    around, every = "around blocks", "around convolutions"
    return (
        "Each claim of the paper is a command that checks it with runs of our own: [the paper "
        "reproduced](docs/paper.md). "
        "Its main one does not hold at the scale of two cores. DAB-Net against XNOR-Net, three seeds, TU-Berlin, a "
        f"quarter of ResNet-18's width, in points: in the paper's blocks {gain('centred', around)} (not centred "
        f"{gain('not centred', around)}), with a shortcut around every convolution {gain('centred', every)} (not "
        f"centred {gain('not centred', every)}). Trained filters are too symmetric to gain from two free values, and "
        "the paper's gradient costs: with a straight-through one DAB-Net is level, "
        f"{gain('DAB-Net, straight-through')} ([all results, and why](docs/results.md))."
    )


TABLES: dict[str, Callable[[], str]] = {
    "browser": browser,
    "dial": dial,
    "engines": engines,
    "models": models,
    "short": short,
    "photographs": photographs,
    "recipes": recipes,
    "runs": runs,
    "table2": table2,
    **{name: partial(study, name) for name in STUDIES},
}
