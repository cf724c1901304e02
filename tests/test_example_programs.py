"""The programs in examples/ do what they say; C's is tested with libdabnet, in tests/native."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from tests.web.conftest import start

EXAMPLES = Path(__file__).parents[1] / "examples"
TESTED = {
    "python/ask_the_server.py", "python/binarize_your_network.py", "python/plot_a_split.py",
    "python/train_on_your_drawings.py", "js/ask_the_server.mjs", "c/recognize.c",
}  # fmt: skip


def run(*words: object, folder: Path) -> str:
    done = subprocess.run([*map(str, words)], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def test_every_program_is_tested() -> None:
    found = {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.glob("*/*.*")}
    assert found == TESTED


def test_a_network_of_your_own_becomes_binary_small_and_learns(tmp_path: Path) -> None:
    said = run(sys.executable, EXAMPLES / "python" / "binarize_your_network.py", folder=tmp_path)
    assert "binary: 2, 5\n" in said
    last = said.split("epoch 2: ")[1]
    assert int(last.partition("%")[0]) >= 80
    assert "100% of the answers are torch's" in last or "99% of the answers are torch's" in last
    assert (tmp_path / "things.safetensors").stat().st_size < 200_000


def test_drawings_of_your_own_are_learnt_beside_the_rest(tmp_path: Path) -> None:
    said = run(sys.executable, EXAMPLES / "python" / "train_on_your_drawings.py", folder=tmp_path)
    assert "things now." in said
    assert said.split("things now.\n")[1].startswith("spring")


def test_a_split_is_drawn(tmp_path: Path) -> None:
    said = run(sys.executable, EXAMPLES / "python" / "plot_a_split.py", "mine.png", folder=tmp_path)
    assert said.startswith("mine.png: alpha 0.6")
    with Image.open(tmp_path / "mine.png") as picture:
        assert picture.width > 500


def test_the_server_answers_python_and_javascript_alike(tmp_path: Path) -> None:
    drawings = [EXAMPLES / name for name in ("umbrella.json", "house.svg", "tree.png")]
    with start() as server:
        asked = (server.address, *drawings)
        python = run(sys.executable, EXAMPLES / "python" / "ask_the_server.py", *asked, folder=tmp_path)
        assert [line.partition(": ")[2].split(" ")[0] for line in python.splitlines()] == ["umbrella", "house", "tree"]
        if shutil.which("node") is None:
            pytest.skip("there is no node")
        script = run("node", EXAMPLES / "js" / "ask_the_server.mjs", *asked, folder=tmp_path)
    assert script == python
