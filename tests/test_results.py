"""What the documents tell of trainings is what their runs wrote down."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from paper.published import ACCURACY, NETWORKS, VARIANTS

ROOT = Path(__file__).parents[1]
DEFAULT = ROOT / "docs" / "results" / "default"
ROW = re.compile(
    r"^\| \*{0,2}\[[^]]+\]\((?P<folder>[^)]+)\).*\| (?P<best>[\d.]+) \| (?P<last>[\d.]+) \|$", re.MULTILINE
)
ROWS = [row.groupdict() for row in ROW.finditer((DEFAULT / "README.md").read_text())]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["folder"])
def test_a_row_has_the_figures_of_its_run(row: dict[str, str]) -> None:
    with (DEFAULT / row["folder"] / "metrics.csv").open() as file:
        shares = [100 * float(epoch["validation_accuracy"]) for epoch in csv.DictReader(file)]
    assert f"{max(shares):.1f}" == row["best"]
    assert f"{shares[-1]:.1f}" == row["last"]


def test_every_run_has_its_row() -> None:
    told = {DEFAULT / row["folder"] for row in ROWS}
    assert told == {path.parent for path in DEFAULT.rglob("metrics.csv")}


def test_the_readme_shows_table_2() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    tables = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    start = next(position for position, row in enumerate(tables) if row[0] == "top-1 in percent")
    variants = [{name: variant for variant, name in VARIANTS.items()}[heading] for heading in tables[start][2:]]
    shown = tables[start + 2 : start + 9]
    runs = json.loads((ROOT / "docs" / "results" / "paper" / "table2.json").read_text())["runs"]
    for name, here, paper in zip((*NETWORKS, "resnet18-shortcuts"), shown[::2], [*shown[1::2], None], strict=True):
        for variant, cell in zip(variants, here[2:], strict=True):
            run = runs.get(f"tuberlin-{name}-{variant}")
            spread = f" ± {100 * run['spread']:.1f}" if run and run["spread"] is not None else ""
            assert cell == (f"{100 * run['top1']:.1f}{spread}" if run else ""), (name, variant)
        if paper is not None:
            assert [float(cell) for cell in paper[2:]] == [ACCURACY["tuberlin"][name][variant] for variant in variants]
