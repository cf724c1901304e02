"""`dabnet study`: a table of trainings, and what they tell."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from dabnet._files import write_beside
from dabnet.cli.console import PlainConsole
from dabnet.cli.interrupts import heed_interrupts
from dabnet.errors import InputError
from dabnet.training.means import average
from dabnet.training.pictures import draw_study
from dabnet.training.study import Study, StudyRun, compare_cells, is_finished, load_study, read_measures

if TYPE_CHECKING:
    Results = dict[tuple[tuple[str, ...], int], dict[str, float]]


def study(
    file: Annotated[Path, typer.Argument(help="The study, a TOML file such as those in studies/.")],
    data: Annotated[
        Path | None, typer.Option(help="A prepared set; without it only finished runs are told of.")
    ] = None,
    fold: Annotated[int, typer.Option(help="The fold that no run learns from.", min=0)] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the runs and the results; studies' name in runs/.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Runs at a time, each on one thread.", min=1, max=256)] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON, and nothing else.")] = False,
) -> None:
    """Train every run of a study, several at a time, and tell what they found.

    It can be stopped at any time, and goes on where it was when it is run again; runs that are done are not run again.
    Each time it ends it writes results.csv (one row per run), summary.json and summary.md (mean, standard error and
    paired differences with their 95 % intervals) and summary.png to the output folder.
    """
    found = load_study(file)
    folder = output or Path("runs") / found.name
    console = PlainConsole(quiet=as_json)
    missing = [run for run in found.runs if not is_finished(folder / run.folder, found)]
    if missing and data is not None:
        heed_interrupts()
        try:
            _train(found, missing, folder, data, fold, jobs, console)
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
    found: Study, missing: list[StudyRun], folder: Path, data: Path, fold: int, jobs: int, console: Console
) -> None:
    """Run what is missing, `jobs` at a time; if one fails, the others end first."""
    folder.mkdir(parents=True, exist_ok=True)
    waiting, running, failed = list(missing), dict[str, subprocess.Popen[bytes]](), list[str]()
    began = time.monotonic()
    try:
        while waiting or running:
            while waiting and len(running) < jobs and not failed:
                run = waiting.pop(0)
                running[run.folder] = _start(found, run, folder, data, fold)
                console.print(f"{_clock(began)}  began {run.folder}")
            time.sleep(0.2)
            for name, process in list(running.items()):
                if process.poll() is None:
                    continue
                del running[name]
                if process.returncode:
                    failed.append(name)
                else:
                    console.print(f"{_clock(began)}  finished {name}; {len(waiting)} wait")
            if failed and not running:
                log = (folder / f"{failed[0]}.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
                raise InputError(f"the run '{failed[0]}' failed: {log[-1] if log else 'see its log'}")
    finally:
        for process in running.values():
            process.send_signal(signal.SIGTERM)
        for process in running.values():
            process.wait()


def _start(found: Study, run: StudyRun, folder: Path, data: Path, fold: int) -> subprocess.Popen[bytes]:
    """Start a run, or go on with it, in a process of its own."""
    target = folder / run.folder
    command = [sys.executable, "-m", "dabnet", "train", "--threads", "1"]
    if (target / "run.json").exists():
        command += ["--resume", str(target)]
    else:
        recipe = folder / f"{run.folder}.toml"
        write_beside(recipe, run.recipe.to_toml().encode())
        command += [str(recipe), "--data", str(data), "--fold", str(fold), "-o", str(target)]
        command += [] if found.about.test else ["--no-test"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with (folder / f"{run.folder}.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)


def summarize(found: Study, results: Results) -> dict[str, Any]:
    """Return mean and error of each cell and each paired difference, for every measure."""
    cells: list[dict[str, Any]] = []
    for cell in found.cells:
        row: dict[str, Any] = dict(zip(found.factors, cell.levels, strict=True))
        for measure in found.about.measures:
            values = [results[cell.levels, seed][measure] for seed in found.seeds if (cell.levels, seed) in results]
            row[measure] = average(values)._asdict() if values else None
        cells.append(row)
    differences = [
        {
            "measure": measure,
            **dict(zip(found.factors, cell.levels, strict=True)),
            "against": dict(zip(found.factors, partner.levels, strict=True))[found.about.compare or ""],
            **gain._asdict(),
        }
        for measure in found.about.measures
        for cell, partner, gain in compare_cells(found, results, measure)
    ]
    return {"title": found.about.title, "compare": found.about.compare, "cells": cells, "differences": differences}


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
    """Write the table and the differences as a page, which says what is not finished."""
    columns = [*found.factors, *found.about.measures, "seeds"]
    rows = []
    for row in summary["cells"]:
        means = [row[measure] for measure in found.about.measures]
        seeds = "0" if means[0] is None else str(means[0]["seeds"])
        rows.append([*(row[factor] for factor in found.factors), *map(_words, means), seeds])
    lines = [f"# {found.about.title or found.name}", ""]
    lines.append(f"{finished} of {len(found.runs)} runs are finished. Percent; mean ± standard error over seeds.")
    lines += ["", *(f"| {' | '.join(cells)} |" for cells in (columns, ["---"] * len(columns), *rows)), ""]
    return "\n".join([*lines, *(f"* {sentence}" for sentence in _tell_differences(found, summary)), ""])


def _report(found: Study, summary: dict[str, Any], console: Console) -> None:
    table = Table(*found.factors, *found.about.measures, title=found.about.title, title_justify="left")
    for row in summary["cells"]:
        table.add_row(*(row[factor] for factor in found.factors), *(_words(row[m]) for m in found.about.measures))
    console.print(table)
    for sentence in _tell_differences(found, summary):
        console.print(sentence)


def _tell_differences(found: Study, summary: dict[str, Any]) -> list[str]:
    """Say each paired difference with its interval, in a sentence."""
    sentences = []
    for row in summary["differences"]:
        others = ", ".join(row[factor] for factor in found.factors if factor != found.about.compare)
        interval = f" ± {100 * row['interval']:.1f}" if row["seeds"] > 1 else ""
        sentences.append(
            f"{others + ': ' if others else ''}{row[found.about.compare]} {100 * row['mean']:+.1f}{interval} points "
            f"against {row['against']} ({row['measure']}, {row['seeds']} seed{'s' * (row['seeds'] > 1)})"
        )
    return sentences


def _words(mean: dict[str, float] | None) -> str:
    """Write a mean in percent with its standard error."""
    if mean is None:
        return ""
    error = f" ± {100 * mean['error']:.1f}" if mean["seeds"] > 1 else ""
    return f"{100 * mean['mean']:.1f}{error}"


def _clock(began: float) -> str:
    minutes = int(time.monotonic() - began) // 60
    return f"{minutes // 60}:{minutes % 60:02}"
