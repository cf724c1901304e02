"""`dabnet study`: a table of trainings, and what they tell."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol

import typer
from rich.console import Console
from rich.table import Table

from dabnet._files import write_beside
from dabnet._lazy import load
from dabnet.cli.console import PlainConsole
from dabnet.cli.engines import LOCAL, check_engine
from dabnet.cli.interrupts import heed_interrupts
from dabnet.errors import InputError
from dabnet.training.means import average
from dabnet.training.pictures import draw_study
from dabnet.training.study import Study, StudyRun, check_runs, compare_cells, is_finished, load_study, read_measures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dabnet.training.study import Results


class Process(Protocol):
    """What is asked of a run that was started, as `subprocess` has it."""

    returncode: int | Any

    def poll(self) -> int | None:
        """Return its exit code if it has ended."""

    def send_signal(self, sig: int) -> None:
        """Ask it to end."""

    def wait(self) -> int:
        """Return its exit code once it has ended."""


def study(
    file: Annotated[Path, typer.Argument(help="The study, a TOML file such as those in studies/.")],
    data: Annotated[
        Path | None, typer.Option(help="A prepared set; without it only finished runs are told of.")
    ] = None,
    fold: Annotated[int, typer.Option(help="The fold that no run learns from.", min=0)] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the runs and the results; studies' name in runs/.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(help="Runs at a time, each on one thread; 2, or all that a cluster has room for.", min=1),
    ] = None,
    engine: Annotated[str, typer.Option(help="What runs them: 'local', this machine, or 'ray'.")] = LOCAL,
    address: Annotated[
        str | None, typer.Option(help="The Ray cluster, HOST:PORT; left out, Ray is started on this machine.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON, and nothing else.")] = False,
) -> None:
    """Train every run of a study, several at a time, and tell what they found.

    It can be stopped at any time, and goes on where it was when it is run again; runs that are done are not run again.
    Each time it ends it writes results.csv (one row per run), summary.json and summary.md (mean, standard error and
    paired differences with their 95 % intervals, each alone and pooled) and summary.png to the output folder.

    On a cluster of Ray's each run takes a core, and all machines must see the same folders.
    """
    check_engine(engine, address)
    found = load_study(file)
    folder = output or Path("runs") / found.name
    console = PlainConsole(quiet=as_json)
    check_runs(found, folder)
    missing = [run for run in found.runs if not is_finished(folder / run.folder, found)]
    if missing and data is not None:
        heed_interrupts()
        try:
            with _starter(engine, address) as start:
                _train(found, missing, folder, data, fold, jobs or (2 if engine == LOCAL else 256), console, start)
        except KeyboardInterrupt:
            typer.echo("Stopped. Every finished epoch is kept: run the same command again to go on.", err=True)
            raise typer.Exit(130) from None
    results: Results = {
        (run.cell.levels, run.seed): read_measures(folder / run.folder, found.about.measures)
        for run in found.runs
        if is_finished(folder / run.folder, found)
    }
    if not results:
        raise InputError(
            f"no run of '{file}' is finished in '{folder}': give a prepared set with --data to train them."
        )
    summary = summarize(found, results)
    write_results(found, results, summary, folder)
    if as_json:
        typer.echo(json.dumps(summary, indent=2))
        return
    _report(found, summary, console)
    left = len(found.runs) - len(results)
    if left:
        console.print(f"{left} of {len(found.runs)} runs are not finished: run it again with --data.")
    console.print(f"Table, figures and picture: {folder}", soft_wrap=True)


def _train(
    found: Study,
    missing: list[StudyRun],
    folder: Path,
    data: Path,
    fold: int,
    jobs: int,
    console: Console,
    start: Callable[[_Command], Process],
) -> None:
    """Run what is missing, `jobs` at a time; if one fails, the others end first."""
    folder.mkdir(parents=True, exist_ok=True)
    waiting, running, failed = list(missing), dict[str, Process](), list[str]()
    began = time.monotonic()
    try:
        while waiting or running:
            while waiting and len(running) < jobs and not failed:
                run = waiting.pop(0)
                running[run.folder] = start(_command(found, run, folder, data, fold))
                console.print(f"{_clock(began)}  began {run.folder}")
            time.sleep(0.2)
            for name, process in list(running.items()):
                if process.poll() is None:
                    continue
                del running[name]
                if process.returncode:
                    failed.append(name)
                    ended = f"with exit code {process.returncode}" if process.returncode > 0 else "by the system"
                    console.print(f"{_clock(began)}  {name} failed, ended {ended}; {len(running)} others end first")
                else:
                    console.print(f"{_clock(began)}  finished {name}; {len(waiting)} wait")
            if failed and not running:
                path = folder / f"{failed[0]}.log"
                text = path.read_text(encoding="utf-8", errors="replace").strip() if path.exists() else ""
                raise InputError(f"the run '{failed[0]}' failed: {text.splitlines()[-1] if text else 'it left no log'}")
    finally:
        for process in running.values():
            process.send_signal(signal.SIGTERM)
        for process in running.values():
            process.wait()


class _Command(NamedTuple):
    """How a run is started, in whatever process."""

    target: Path
    begin: list[str]
    log: Path

    @property
    def arguments(self) -> list[str]:
        """What to give dabnet, to begin the run or to go on with it."""
        is_begun = (self.target / "run.json").exists()
        return ["train", "--threads", "1", *(["--resume", str(self.target)] if is_begun else self.begin)]


def _command(found: Study, run: StudyRun, folder: Path, data: Path, fold: int) -> _Command:
    target, recipe = (folder / run.folder).absolute(), (folder / f"{run.folder}.toml").absolute()
    if not (target / "run.json").exists():
        write_beside(recipe, run.recipe.to_toml().encode())
    begin = [str(recipe), "--data", str(data.absolute()), "--fold", str(fold), "-o", str(target)]
    return _Command(
        target, [*begin, *([] if found.about.test else ["--no-test"])], target.with_name(f"{run.folder}.log")
    )


@contextmanager
def _starter(engine: str, address: str | None) -> Iterator[Callable[[_Command], Process]]:
    """Yield what starts a run: in a process of its own, or on a core of a cluster's."""
    if engine == LOCAL:
        yield _start
        return
    ray_engine = load("dabnet.distributed.ray_engine")
    with ray_engine.connected(address):
        yield lambda command: ray_engine.Task(_run_here, command)


def _start(command: _Command) -> Process:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    whole = [sys.executable, "-m", "dabnet", *command.arguments]
    with command.log.open("ab") as log:
        return subprocess.Popen(whole, stdout=log, stderr=log, env=environment, start_new_session=True)


def _run_here(command: _Command) -> int:
    """Train in this process, which does nothing else before or after; return the exit code."""
    from dabnet.cli import main

    with command.log.open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    try:
        main(command.arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def summarize(found: Study, results: Results) -> dict[str, Any]:
    """Return mean and error of each cell and each paired difference, for every measure."""
    cells: list[dict[str, Any]] = []
    for cell in found.cells:
        row: dict[str, Any] = dict(zip(found.factors, cell.levels, strict=True))
        for measure in found.about.measures:
            values = [results[cell.levels, seed][measure] for seed in found.seeds if (cell.levels, seed) in results]
            row[measure] = _known(average(values)._asdict()) if values else None
        cells.append(row)
    differences = []
    for measure in found.about.measures:
        for cell, partner, gain, pooled in compare_cells(found, results, measure):
            levels, others = (dict(zip(found.factors, each.levels, strict=True)) for each in (cell, partner))
            figures = _known({**gain._asdict(), "pooled": pooled})
            differences.append({"measure": measure, **levels, "against": others[found.about.compare or ""], **figures})
    return {"title": found.about.title, "compare": found.about.compare, "cells": cells, "differences": differences}


def _known(figures: dict[str, Any]) -> dict[str, Any]:
    """Put None, which JSON has, for what is not a number."""
    return {name: None if value != value else value for name, value in figures.items()}


def write_results(found: Study, results: Results, summary: dict[str, Any], folder: Path) -> None:
    """Write one row per run as CSV, the summary as JSON and Markdown, and a picture of it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*found.factors, "seed", *found.about.measures, "run"])
    for run in found.runs:
        if (figures := results.get((run.cell.levels, run.seed))) is not None:
            values = [f"{figures[measure]:.6g}" for measure in found.about.measures]
            writer.writerow([*run.cell.levels, run.seed, *values, run.folder])
    write_beside(folder / "results.csv", text.getvalue().encode())
    write_beside(folder / "summary.json", (json.dumps(summary, indent=2) + "\n").encode())
    write_beside(folder / "summary.md", _to_markdown(found, summary, len(results)).encode())
    draw_study(summary, list(found.factors), found.about.measures, folder / "summary.png")


def _to_markdown(found: Study, summary: dict[str, Any], finished: int) -> str:
    """Write the tables of cells and differences as a page, which says what is not finished."""
    columns = [*found.factors, *found.about.measures, "seeds"]
    rows = []
    for row in summary["cells"]:
        means = [row[measure] for measure in found.about.measures]
        seeds = "0" if means[0] is None else str(means[0]["seeds"])
        rows.append([*(row[factor] for factor in found.factors), *map(_words, means), seeds])
    lines = [f"# {found.about.title or found.name}", ""]
    lines.append(f"{finished} of {len(found.runs)} runs are finished. Percent; mean ± standard error over seeds.")
    lines += ["", *_table(columns, rows), ""]
    if not summary["differences"]:
        return "\n".join(lines)
    gains: dict[tuple[str, ...], list[str]] = {}
    for row in summary["differences"]:
        levels = tuple(str(row[factor]) for factor in found.factors)
        gains.setdefault((*levels, row["against"]), []).append(_gain(row))
    lines += [
        "Differences between runs of the same seed, in points, ± half of the 95 % interval (Student's) with the spread",
        "of all cells that are compared, and in brackets with that of the pair alone, which few seeds hardly know.",
    ]
    columns = [*found.factors, "against", *found.about.measures]
    return "\n".join([*lines, "", *_table(columns, [[*levels, *values] for levels, values in gains.items()]), ""])


def _table(columns: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (columns, ["---"] * len(columns), *rows)]


def _report(found: Study, summary: dict[str, Any], console: Console) -> None:
    table = Table(*found.factors, *found.about.measures, title=found.about.title, title_justify="left")
    for row in summary["cells"]:
        table.add_row(*(row[factor] for factor in found.factors), *(_words(row[m]) for m in found.about.measures))
    console.print(table)
    for sentence in _tell_differences(found, summary):
        console.print(sentence)


def _tell_differences(found: Study, summary: dict[str, Any]) -> list[str]:
    """Say each paired difference of the first measure with its interval, in a sentence; the page has all of them."""
    sentences = []
    for row in summary["differences"]:
        if row["measure"] != found.about.measures[0]:
            continue
        others = ", ".join(row[factor] for factor in found.factors if factor != found.about.compare)
        sentences.append(
            f"{others + ': ' if others else ''}{row[found.about.compare]} {_gain(row)} points "
            f"against {row['against']} ({row['measure']}, {row['seeds']} seed{'s' * (row['seeds'] > 1)})"
        )
    return sentences


def _gain(row: dict[str, Any]) -> str:
    """Write a difference in points with its intervals: with the spread of all, and the pair's own if that differs."""
    pooled, alone = row["pooled"], row["interval"]
    text = f"{100 * row['mean']:+.1f}" + (f" ± {100 * pooled:.1f}" if pooled is not None else "")
    return text + (f" ({100 * alone:.1f})" if alone is not None and not math.isclose(alone, pooled) else "")


def _words(mean: dict[str, float] | None) -> str:
    """Write a mean in percent with its standard error."""
    if mean is None:
        return ""
    error = f" ± {100 * mean['error']:.1f}" if mean["seeds"] > 1 else ""
    return f"{100 * mean['mean']:.1f}{error}"


def _clock(began: float) -> str:
    minutes = int(time.monotonic() - began) // 60
    return f"{minutes // 60}:{minutes % 60:02}"
