from __future__ import annotations

import csv
import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from dabnet.cli import main
from dabnet.sketches.prepare import prepare
from dabnet.sketches.sources import open_source
from dabnet.sketches.store import SketchSet
from dabnet.training.fit import fit
from dabnet.training.run import begin_run
from dabnet.training.study import load_study
from tests import warm

STUDY = """
title = "Two methods"
recipe = "tiny.toml"
seeds = [0, 1]
compare = "method"
measures = ["validation_accuracy"]
[factors.method]
xnor = { method = "xnor" }
dab = { method = "dab" }
"""
TINY = """
width = 0.05
shortcuts = "conv"
size = 16
pen = 0.06
epochs = 2
batch_size = 16
schedule = "one-cycle"
classes = ["cat", "house", "sun"]
"""


def run_study(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return warm.run("study", "study.toml", *arguments, cwd=folder, COLUMNS="200", NO_COLOR="1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "tiny.toml").write_text(TINY)
    prepare(open_source("synthetic", limit=18), tmp_path / "set.parquet", workers=1)
    return tmp_path


def train_here(folder: Path, seed: int) -> None:
    """Train the runs of a seed as the command would, but in this process."""
    for each in load_study(folder / "study.toml").runs:
        if each.seed == seed:
            target, data = folder / "out" / each.folder, folder / "set.parquet"
            begin_run(target, each.recipe, data, 0, test=False)
            fit(target, each.recipe, SketchSet(data), 0, device="cpu", test=False)


def test_a_study_is_stopped_goes_on_and_tells_what_it_found(folder: Path) -> None:
    train_here(folder, seed=1)
    there = (folder / "out" / "dab-seed1" / "best.safetensors").stat().st_mtime_ns
    process = warm.start("study", "study.toml", "--data", "set.parquet", "-o", "out", "--jobs", 1, cwd=folder)
    until = time.monotonic() + 120
    while not (folder / "out" / "xnor-seed0" / "run.json").exists() and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert errors == "Stopped. Every finished epoch is kept: run the same command again to go on.\n"

    done = run_study(folder, "--data", "set.parquet", "-o", "out")
    assert done.returncode == 0, done.stderr
    assert "points against xnor (validation_accuracy, 2 seeds)" in done.stdout
    with (folder / "out" / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["method"], row["seed"]) for row in rows] == [("xnor", "0"), ("dab", "0"), ("xnor", "1"), ("dab", "1")]
    summary = json.loads((folder / "out" / "summary.json").read_text())
    for row, method in zip(summary["cells"], ("xnor", "dab"), strict=True):
        values = [float(each["validation_accuracy"]) for each in rows if each["method"] == method]
        assert row["validation_accuracy"]["mean"] == pytest.approx(sum(values) / 2, abs=1e-5)
    assert (folder / "out" / "summary.png").stat().st_size > 3_000
    page = (folder / "out" / "summary.md").read_text()
    assert page.startswith("# Two methods\n\n4 of 4 runs are finished.")
    gain = summary["differences"][0]
    points = f"{100 * gain['mean']:+.1f} ± {100 * gain['interval']:.1f}"
    assert f"\n| dab | xnor | {points} |\n" in page

    assert (folder / "out" / "dab-seed1" / "best.safetensors").stat().st_mtime_ns == there
    weights = folder / "out" / "dab-seed0" / "best.safetensors"
    before = weights.stat().st_mtime_ns
    again = run_study(folder, "-o", "out", "--json")  # needs no data: everything is there
    assert json.loads(again.stdout) == summary
    assert weights.stat().st_mtime_ns == before


def test_a_run_that_fails_is_named_with_its_reason(folder: Path) -> None:
    (folder / "tiny.toml").write_text(TINY.replace("sun", "unicorn"))
    done = run_study(folder, "--data", "set.parquet", "-o", "out", "--jobs", 1)
    assert done.returncode == 2
    assert "the run 'xnor-seed0' failed: " in done.stderr
    assert "has no class 'unicorn'" in done.stderr


def test_a_study_without_runs_says_how_to_train_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["study", str(folder / "study.toml"), "-o", str(folder / "out")])
    assert stopped.value.code == 2
    assert "give a prepared set with --data to train them" in capsys.readouterr().err
