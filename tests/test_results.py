"""What the documents tell of trainings is what their runs wrote down."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ABLATION = ROOT / "docs" / "results" / "ablation"
ROW = re.compile(
    r"^\| \*{0,2}\[[^]]+\]\((?P<folder>[^)]+)\).*\| (?P<best>[\d.]+) \| (?P<last>[\d.]+) \|$", re.MULTILINE
)
ROWS = [row.groupdict() for row in ROW.finditer((ABLATION / "README.md").read_text())]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["folder"])
def test_a_row_has_the_figures_of_its_run(row: dict[str, str]) -> None:
    with (ABLATION / row["folder"] / "metrics.csv").open() as file:
        shares = [100 * float(epoch["validation_accuracy"]) for epoch in csv.DictReader(file)]
    assert f"{max(shares):.1f}" == row["best"]
    assert f"{shares[-1]:.1f}" == row["last"]


def test_every_run_has_its_row() -> None:
    told = {ABLATION / row["folder"] for row in ROWS}
    assert told == {path.parent for path in ABLATION.rglob("metrics.csv")}
