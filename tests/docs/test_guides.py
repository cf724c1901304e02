"""Every command and every block of code in the README and the guides does what it says."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from dabnet.packed import find_model
from dabnet.sketches import synthetic_strokes
from tests import warm

from .guides import PAGES, ROOT, Sandbox, blocks, commands, parse, takes_hours

RUN_BY = {
    "sh": "test_the_commands_of_a_page_run",
    "pycon": "doctest, see pyproject.toml",
    "python": "doctest, see pyproject.toml",
    "js": "tests/js/test_guides.py",
    "c": "tests/native/test_library.py",
    "cmake": "tests/native/test_library.py",
    "toml": "test_a_recipe_in_a_guide_can_be_trained",
    "yaml": "nothing here: other programs' settings",
}
"""What runs the blocks of each language."""
WITH_COMMANDS = [page for page in PAGES if commands(page) and page.name != "c.md"]  # C's: tests/native/test_library.py
TINY = [word for change in ("epochs=1", "width=0.125", "size=32", "batch_size=8") for word in ("--set", change)]
SMALL = "small/tuberlin-resnet18-fbin-dab"


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the guides speak of: drawings in folders, a photograph, lines of Quick, Draw!."""
    folder = tmp_path_factory.mktemp("guides")
    for number, sketch in enumerate(synthetic_strokes(60, seed=4)[0]):
        path = folder / "my_drawings" / ("pond", "robot hand", "teapot")[number % 3] / f"{number}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([stroke.tolist() for stroke in sketch.strokes]))
    cat = json.loads((ROOT / "examples" / "cat.json").read_text())
    strokes = cat if isinstance(cat, list) else cat["strokes"]
    line = {"word": "cat", "drawing": [[[x for x, *_ in stroke], [y for _, y, *_ in stroke]] for stroke in strokes]}
    (folder / "cats.ndjson").write_text(f"{json.dumps(line)}\n" * 3)
    Image.open(ROOT / "examples" / "tree.png").convert("RGB").save(folder / "photo.jpg", quality=90)
    shutil.copy(find_model("default"), folder / "m.safetensors")
    for name in ("docs", "examples", "paper", "pyproject.toml", "src", "studies"):
        (folder / name).symlink_to(ROOT / name)
    return folder


@pytest.fixture
def sandbox(things: Path, tmp_path: Path) -> Iterator[Sandbox]:
    shutil.copytree(things, tmp_path / "here", symlinks=True)
    sandbox = Sandbox(tmp_path / "here")
    yield sandbox
    sandbox.close()


def prepare(page: Path, sandbox: Sandbox) -> None:
    """Make what a page takes from the page before it."""
    if page.name == "your-network.md":
        words = ("train", SMALL, "--data", "my_drawings", *TINY, "-o", "runs/shapes")
        assert warm.run(*words, cwd=sandbox.folder).returncode == 0


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run(page: Path, sandbox: Sandbox) -> None:
    prepare(page, sandbox)
    elsewhere = commands(ROOT / "README.md") if page.stem == "index" else []
    for line in commands(page):
        if line in elsewhere:
            continue
        said = sandbox.run(line)
        if line.startswith("dabnet recognize examples/ "):
            assert "windmill" in said or "--sheet" in line
        if line.startswith("dabnet") and " -o " in line and not takes_hours(line):
            written = re.search(r" -o (\S+)", line)
            assert written is not None
            assert (sandbox.folder / written[1]).exists(), line


def test_every_block_of_code_is_run_by_something() -> None:
    unknown = [(block.page.name, block.language) for block in blocks() if block.language not in RUN_BY]
    assert unknown == []
    assert all(">>> " in block.code for block in blocks("pycon"))
    for block in blocks("python"):  # parts of a program, which at least must be Python
        assert ">>> " in block.code or compile(block.code, block.page.name, "exec")
    guides = [page for page in PAGES if commands(page)]
    assert len(guides) > 8
    for page in guides:
        loose = re.findall(r"\n\n    ((?:dabnet|make|pip|curl|python) .*)", page.read_text())
        assert loose == [], f"{page.name}: put commands between ```sh and ```, so that they are run"


def test_commands_of_all_other_pages_exist(tmp_path: Path) -> None:
    """Those of results, models and claims take hours and data; their options must exist all the same."""
    lines = {
        line
        for path in (ROOT / "docs").rglob("*.md")
        for line in re.findall(r"^    (dabnet [a-z].*)$", path.read_text().replace("\\\n", " "), re.MULTILINE)
    }
    assert len(lines) > 20
    for line in sorted(lines):
        parse(line, tmp_path)


def test_a_command_that_is_not_there_is_found(tmp_path: Path) -> None:
    for line in ("dabnet trian x", "dabnet train --dada x    # hours"):
        with pytest.raises(AssertionError, match="No such"):
            parse(line, tmp_path)


@pytest.mark.parametrize("block", blocks("toml"), ids=lambda block: block.page.stem)
def test_a_recipe_in_a_guide_can_be_trained(block: object, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(block.code)  # type: ignore[attr-defined]
    done = warm.run("recipes", "mine.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert 'nonlinearity = "rprelu"' in done.stdout
