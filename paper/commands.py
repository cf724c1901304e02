"""The commands of `dabnet paper`: each claim of the paper, from runs and measurements of our own."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dabnet._files import check_folder
from dabnet._lazy import load
from dabnet.errors import InputError
from dabnet.recipes import FOLDER as SHIPPED
from paper.finding import OUTPUT, RESULTS, Finding, keep
from paper.published import NAMES

if TYPE_CHECKING:
    from paper.filters import TrainedFilters
    from paper.runs import Scale


def _check(folder: Path) -> Path:
    check_folder(folder)
    return folder


AsJson = Annotated[bool, typer.Option("--json", help="Print the figures as JSON, and nothing else.")]
Output = Annotated[
    Path, typer.Option("--output", "-o", help="Folder for tables, pictures and figures.", callback=_check)
]
Results = Annotated[Path, typer.Option(help="Folder of finished runs, and of paper/filters.safetensors.")]
Recipes = Annotated[Path, typer.Option(help="Folder of recipes; those that ship if left out.", show_default=False)]
ScaleName = Annotated[str, typer.Option(help="small, for two cores, or full, as the paper.")]
Seed = Annotated[int, typer.Option(help="Of what is drawn at random.", min=0)]

paper = typer.Typer(no_args_is_help=True)
figure = typer.Typer(no_args_is_help=True)
paper.add_typer(figure, name="figure", help="Draw one of the paper's figures.")


@paper.command()
def table1(output: Output = OUTPUT, as_json: AsJson = False) -> None:
    """Pack the three networks at full size in every variant, beside the compression that the paper cites."""
    with Console(stderr=True).status("packing") as status:
        finding = load("paper.table1").find_table1(status.update)
    _report(finding, "table1", output, as_json)


@paper.command()
def table2(
    scale: ScaleName = "small",
    data: Annotated[Path | None, typer.Option(help="A prepared set: train what is missing.")] = None,
    data_set: Annotated[str, typer.Option(help="Which set that is: tuberlin or sketchy.")] = "tuberlin",
    runs: Annotated[Path, typer.Option(help="Folder for runs that are trained, and of earlier ones.")] = Path("runs"),
    networks: Annotated[
        list[str] | None,
        typer.Option("--network", help=f"Train these only: {', '.join(NAMES)}."),
    ] = None,
    folds: Annotated[str, typer.Option(help="The folds to test on, with commas between.")] = "0",
    seeds: Annotated[str, typer.Option(help="The seeds to train with, with commas between.")] = "0",
    no_train: Annotated[bool, typer.Option("--no-train", help="Show what there is, and train nothing.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    threads: Annotated[int, typer.Option(help="Threads for torch; 0 leaves the choice to it.", min=0)] = 0,
    results: Results = RESULTS,
    recipes: Recipes = SHIPPED,
    output: Output = OUTPUT,
    as_json: AsJson = False,
) -> None:
    """Show what the three networks get right, in five variants each, beside the paper's figures; train what is missing.

    Without --data it shows the finished runs, and says what is missing and how to get it. With --data it trains what no
    finished run is there of. It can be stopped at any time: run the same command again, and it goes on where it was.
    """
    if threads:
        load("torch").set_num_threads(threads)
    chosen = _open_scale(scale, recipes, results, runs)
    if data is not None and not no_train:
        load("dabnet.cli.devices").check_device(device)
        try:
            load("paper.table2").train_missing(
                chosen, data, data_set, runs,
                networks=networks or list(NAMES), folds=_numbers("folds", folds), seeds=_numbers("seeds", seeds),
                device=device, console=Console(quiet=as_json),
            )  # fmt: skip
        except (load("dabnet.training.fit").Stopped, KeyboardInterrupt):
            typer.echo("Stopped. Every finished epoch is kept: run the same command again to go on.", err=True)
            raise typer.Exit(130) from None
    _report(load("paper.table2").find_table2(chosen), f"table2 --scale {scale}", output, as_json)


@paper.command()
def table3(
    scale: ScaleName = "small",
    runs: Annotated[Path, typer.Option(help="Folder of runs that were trained here.")] = Path("runs"),
    results: Results = RESULTS,
    recipes: Recipes = SHIPPED,
    output: Output = OUTPUT,
    as_json: AsJson = False,
) -> None:
    """Show the DAB-Nets on TU-Berlin, the paper's and those trained here, beside the recognizers that it cites."""
    chosen = _open_scale(scale, recipes, results, runs)
    _report(load("paper.table3").find_table3(chosen), f"table3 --scale {scale}", output, as_json)


@paper.command()
def theorem1(
    n: Annotated[int, typer.Option("--n", help="Inputs to multiply.")] = 6,
    layers: Annotated[list[int] | None, typer.Option(help="Numbers of hidden layers, such as --layers 1 2 3.")] = None,
    more: Annotated[list[int] | None, typer.Argument(hidden=True)] = None,
    activation: Annotated[str, typer.Option(help="exp, or sigmoid for sigmoid(x + 0.5).")] = "exp",
    seed: Seed = 0,
    output: Output = OUTPUT,
    as_json: AsJson = False,
) -> None:
    """Build networks with binary weights that multiply n inputs, measure the order of their error, count neurons."""
    depths = [*(layers or [1, 2, 3]), *(more or [])]
    finding = load("paper.theorem1").find_theorem1(n, depths, activation, seed)
    words = f"theorem1 --n {n} --layers {' '.join(map(str, depths))}"
    _report(finding, words if activation == "exp" else f"{words} --activation {activation}", output, as_json)


@paper.command("split-error")
def split_error(seed: Seed = 0, results: Results = RESULTS, output: Output = OUTPUT, as_json: AsJson = False) -> None:
    """Compare the error of BNN, XNOR-Net, the released code and DAB on drawn and on trained filters."""
    finding = load("paper.split_error").find_split_error(_trained(results), seed)
    _report(finding, "split-error", output, as_json)


@figure.command("weights")
def draw_weights(
    run: Annotated[str | None, typer.Option(help="One of the runs that filters are kept of.")] = None,
    results: Results = RESULTS,
    output: Output = OUTPUT,
    as_json: AsJson = False,
) -> None:
    """Draw the weights of a trained filter, with alpha, beta and XNOR-Net's two values (Figure 1)."""
    finding = load("paper.weights").find_weights(_trained(results), run)
    _report(finding, f"figure weights --run {run}" if run else "figure weights", output, as_json)


@figure.command("responses")
def draw_responses(
    data: Annotated[Path | None, typer.Option(help="A prepared set, instead of drawings by a program.")] = None,
    sketch: Annotated[int, typer.Option(help="The sketch to show, by its number.", min=0)] = 0,
    seed: Seed = 0,
    results: Results = RESULTS,
    output: Output = OUTPUT,
    as_json: AsJson = False,
) -> None:
    """Draw a sketch through a filter: as learnt, as DAB and as XNOR-Net make it binary (Figure 2)."""
    sketches = None
    if data is not None:
        prepared = load("dabnet.sketches.store").SketchSet(data)
        sketches = prepared.read(range(min(len(prepared), max(40, sketch + 1))))
    finding = load("paper.responses").find_responses(_trained(results), sketches, sketch, seed)
    words = f"figure responses --sketch {sketch}" + (f" --data {data.name}" if data else "")
    _report(finding, words, output, as_json)


@figure.command("alpha-beta")
def draw_alpha_beta(
    pair: Annotated[str, typer.Option(help="The trainings to show: fbin, wbin or ours.")] = "fbin",
    results: Results = RESULTS,
    output: Output = OUTPUT,
    as_json: AsJson = False,
) -> None:
    """Draw alpha and beta over a training, beside XNOR-Net's one value (Figure 3)."""
    finding = load("paper.traces").find_alpha_beta(results, pair)
    _report(finding, f"figure alpha-beta --pair {pair}", output, as_json)


@figure.command("k-time")
def draw_k_time(results: Results = RESULTS, output: Output = OUTPUT, as_json: AsJson = False) -> None:
    """Draw K/n over a training, DAB-Net's and XNOR-Net's (Figure 4)."""
    _report(load("paper.traces").find_k_time(results), "figure k-time", output, as_json)


@figure.command("k-layers")
def draw_k_layers(results: Results = RESULTS, output: Output = OUTPUT, as_json: AsJson = False) -> None:
    """Draw K/n across layers, DAB-Net's and XNOR-Net's (Figure 5)."""
    _report(load("paper.traces").find_k_layers(results), "figure k-layers", output, as_json)


@paper.command()
def filters(
    runs: Annotated[Path, typer.Option(help="Folder of runs with their weights, best.safetensors.")] = Path("runs"),
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = OUTPUT / "filters.safetensors",
    as_json: AsJson = False,
) -> None:
    """Keep a few filters of trained networks in a small file, for the figures that need real-valued weights."""
    found = load("paper.filters").keep_filters(runs, output)
    if as_json:
        figures = [{"run": each.run, "layer": each.layer, "filters": each.indices} for each in found]
        typer.echo(json.dumps({"path": str(output), "bytes": output.stat().st_size, "kept": figures}, indent=2))
        return
    count = sum(len(each.indices) for each in found)
    typer.echo(f"{output}: {count} filters of {len(found)} layers, {output.stat().st_size:,} bytes.")


@paper.command("all")
def everything(
    results: Results = RESULTS, recipes: Recipes = SHIPPED, output: Output = OUTPUT, as_json: AsJson = False
) -> None:
    """Run every command that needs no training, in a few minutes, and say how to get the rest."""
    traces, trained = load("paper.traces"), _trained(results)
    scale = _open_scale("small", recipes, results, Path("runs"))
    steps: dict[str, Callable[[], Finding]] = {
        "table1": lambda: load("paper.table1").find_table1(),
        "table2 --scale small": lambda: load("paper.table2").find_table2(scale),
        "table3 --scale small": lambda: load("paper.table3").find_table3(scale),
        "split-error": lambda: load("paper.split_error").find_split_error(trained),
        "theorem1 --n 6 --layers 1 2 3": lambda: load("paper.theorem1").find_theorem1(6, [1, 2, 3]),
        "figure weights": lambda: load("paper.weights").find_weights(trained),
        "figure responses --sketch 0": lambda: load("paper.responses").find_responses(trained),
        "figure alpha-beta --pair fbin": lambda: traces.find_alpha_beta(results),
        "figure k-time": lambda: traces.find_k_time(results),
        "figure k-layers": lambda: traces.find_k_layers(results),
    }
    console, records = Console(quiet=as_json, highlight=False), []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=len(steps))
        for words, find in steps.items():
            bar.update(task, description=words)
            finding = find()
            records.append(keep(finding, f"dabnet paper {words}", output))
            console.print(f"[bold]{finding.title}[/]: {_files(finding, output)}", soft_wrap=True)
            for remark in finding.remarks:
                console.print(f"  {remark}")
            bar.advance(task)
    if as_json:
        typer.echo(json.dumps(records, indent=2, ensure_ascii=False))
    console.print(
        "The rest needs training: dabnet paper table2 with --data, as said above, and with --scale full on a GPU."
    )


def _report(finding: Finding, words: str, output: Path, as_json: bool) -> None:
    """Keep what was found, and print it."""
    record = keep(finding, f"dabnet paper {words}", output)
    if as_json:
        typer.echo(json.dumps(record, indent=2, ensure_ascii=False))
        return
    console = Console(highlight=False)
    for table in finding.tables:
        console.print(table.to_rich())
    for remark in finding.remarks:
        console.print(f"* {remark}", markup=False)
    console.print(f"{finding.title}: {_files(finding, output)}", soft_wrap=True)


def _files(finding: Finding, output: Path) -> str:
    kinds = [kind for kind, there in (("md", finding.tables), ("png", finding.picture), ("json", True)) if there]
    return ", ".join(shlex.quote(str(output / f"{finding.name}.{kind}")) for kind in kinds)


def _trained(results: Path) -> list[TrainedFilters]:
    found: list[TrainedFilters] = load("paper.filters").load_filters(results / "paper" / "filters.safetensors")
    return found


def _open_scale(name: str, recipes: Path, results: Path, runs: Path) -> Scale:
    found: Scale = load("paper.runs").open_scale(name, recipes, [results, runs])
    return found


def _numbers(what: str, text: str) -> list[int]:
    try:
        return sorted({int(word) for word in text.split(",")})
    except ValueError:
        raise InputError(f"'{text}' is no list of {what}: write numbers with commas between, such as 0,1,2.") from None
