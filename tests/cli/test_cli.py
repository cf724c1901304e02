from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import dabnet
import dabnet._native
from dabnet.cli import COMMANDS
from dabnet.cli.demo import conclude
from dabnet.sketches.prepare import prepare
from dabnet.sketches.sources.synthetic import open_synthetic
from dabnet.sketches.store import SketchSet
from tests import warm

PLAIN = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}


def run(*arguments: str, code: str | None = None) -> subprocess.CompletedProcess[str]:
    program = ["-c", code] if code else ["-m", "dabnet"]
    environment = os.environ | PLAIN
    return subprocess.run(
        [sys.executable, *program, *arguments], capture_output=True, text=True, timeout=300, env=environment
    )


@pytest.mark.parametrize(("option", "words"), [("--version", f"dabnet {dabnet.__version__}"), ("--help", "demo")])
def test_version_and_help_do_not_load_torch(option: str, words: str) -> None:
    code = "import sys; from dabnet.cli import main\ntry: main()\nfinally: print('torch' in sys.modules)"
    done = run(option, code=code)
    assert done.returncode == 0
    assert words in done.stdout
    assert done.stdout.endswith("False\n")


def test_help_lists_every_command_and_teaches() -> None:
    listed = " ".join(run("--help").stdout.split())
    for name, line in COMMANDS.items():
        assert f"{name} {line}" in listed
    text = warm.run("demo", "--help", **PLAIN).stdout
    for words in ("--output", "--json", "Folder for pictures and networks"):
        assert words in text


DEMO = ("demo", "--epochs", "2", "--sketches", "10", "--threads", "1", "--output")
"""A demo that learns next to nothing, in seconds; its folder follows."""


def figures(folder: Path) -> dict[str, Any]:
    """Run the demo in a folder and give its figures, but for the paths."""
    done = warm.run(*DEMO, folder, "--json", **PLAIN)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert {Path(path).parent for path in found.pop("pictures").values()} == {folder}
    return found


@pytest.fixture(scope="module")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a demo that was run to its end."""
    folder = tmp_path_factory.mktemp("new") / "deep" / "demo"
    done = run(*DEMO, str(folder))
    assert done.returncode == 0, done.stderr
    for words in ("200 sketches of 20 things", "FPrec", "XNOR-Net", "DAB-Net", "epoch   2  loss", "times smaller"):
        assert words in done.stdout
    assert "…" not in done.stdout
    assert "earlier demo" not in done.stdout
    return folder


def test_demo_draws_its_pictures(demo_folder: Path) -> None:
    for name in ("sketches.png", "curves.png", "split.png"):
        assert (demo_folder / name).stat().st_size > 10_000
    assert not list(demo_folder.rglob("*.writing"))


def test_demo_that_is_interrupted_goes_on_to_the_same_figures(demo_folder: Path, tmp_path: Path) -> None:
    process = warm.start(*DEMO, tmp_path)
    until = time.monotonic() + 120
    while not (tmp_path / "demo-xnor" / "last.ckpt").exists() and time.monotonic() < until:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert errors == "Stopped. Every finished epoch is kept: run the same command again to go on.\n"
    assert not (tmp_path / "demo-dab" / "result.json").exists()

    weights = demo_folder / "demo-dab" / "best.safetensors"
    before = weights.stat().st_mtime_ns
    found = figures(demo_folder)
    assert weights.stat().st_mtime_ns == before
    assert figures(tmp_path) == found
    real, xnor, dab = found["networks"]
    assert [network["name"] for network in found["networks"]] == ["FPrec", "XNOR-Net", "DAB-Net"]
    assert all(0 <= network["accuracy"] <= 1 for network in found["networks"])
    assert real["float_bytes"] > real["bytes"] > 15 * dab["bytes"]
    assert xnor["bytes"] < dab["bytes"] < 1.1 * xnor["bytes"]  # two numbers per filter instead of one

    changed = warm.run(*DEMO, tmp_path, "--sketches", "11", **PLAIN)
    assert changed.returncode == 0, changed.stderr
    assert "220 sketches" in changed.stdout
    assert changed.stdout.count("epoch   1  loss") == 3  # what was learned from other sketches does not count
    assert "earlier demo" not in changed.stdout


@pytest.mark.parametrize(
    ("accuracies", "words"),
    [
        (
            (0.99, 0.90, 0.97),
            ["20 times smaller", "2.0 sketches in a hundred fewer", "7.0 in a hundred more right"],
        ),
        ((0.99, 0.97, 0.90), ["9.0 sketches in a hundred fewer", "7.0 in a hundred fewer right than XNOR-Net"]),
        (
            (0.96, 0.96, 0.97),
            ["gets no fewer", "XNOR-Net does about as well", "1.0 in a hundred can be chance"],
        ),
        ((1.0, 1.0, 1.0), ["gets no fewer", "XNOR-Net does about as well"]),
    ],
)
def test_demo_claims_no_more_than_its_figures(accuracies: tuple[float, ...], words: list[str]) -> None:
    rows = [{"accuracy": accuracy, "bytes": 100, "float_bytes": 2000} for accuracy in accuracies]
    said = conclude(rows, tested=1000)
    for part in words:
        assert part in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["demonstrate"], "demonstrate"),
        (["demo", "--epochs", "0"], "--epochs"),
        (["demo", "--colour", "red"], "--colour"),
    ],
)
def test_bad_words_on_the_command_line_exit_with_2(arguments: list[str], words: str) -> None:
    done = warm.run(*arguments, **PLAIN)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_an_output_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = warm.run(*DEMO, tmp_path / "file", **PLAIN)
    assert done.returncode == 2
    assert done.stderr.startswith("dabnet: cannot write to ")
    assert "--output" in done.stderr
    assert done.stderr.count("\n") == 1


def test_demo_leaves_a_set_alone_that_it_did_not_draw(tmp_path: Path) -> None:
    prepare(dataclasses.replace(open_synthetic(2), title="Mine"), tmp_path / "sketches.parquet", workers=1)
    done = warm.run(*DEMO, tmp_path, **PLAIN)
    assert done.returncode == 2
    assert "holds other sketches: choose another folder with --output" in done.stderr
    assert done.stderr.count("\n") == 1
    assert SketchSet(tmp_path / "sketches.parquet").info.title == "Mine"


def test_the_version_tells_the_kernels_and_the_build() -> None:
    done = run("--version")
    assert done.returncode == 0
    version, kernels, built, here = done.stdout.splitlines()
    assert version == f"dabnet {dabnet.__version__}"
    assert kernels.startswith(f"kernels: {', '.join(dabnet._native.kernel_names())};")
    assert built.startswith(f"built: by {dabnet._native.COMPILER.strip()}, for ")
    assert here.startswith("here: Python 3.")
