"""Tables and figures of the README and the docs are those of committed results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dabnet.packed.cards import read_card
from dabnet.packed.shipped import model_names
from figures.blocks import BLOCK, ROOT, documents, fill, stale
from figures.pictures import IMAGES, PICTURES
from figures.tables import TABLES

README = ROOT / "README.md"
MEASURED = re.compile(r"\d[\d,.]*\s*(?:%|ms\b|µs\b|[kM]B\b|bytes\b|times\b|points\b|images/s)")
"""What looks like a figure that somebody measured."""


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_tables_are_those_of_the_results(path: Path) -> None:
    names = stale(path.read_text(encoding="utf-8"), TABLES)
    assert not names, f"{path.relative_to(ROOT)}: {', '.join(names)} stale; run: python -m figures --tables"


def test_the_readme_has_no_measured_figure_but_in_such_tables() -> None:
    text = README.read_text(encoding="utf-8")
    assert {found["name"] for found in BLOCK.finditer(text)} >= {"models", "short"}
    assert MEASURED.findall(BLOCK.sub("", text)) == []
    assert len(text.splitlines()) <= 130


@pytest.mark.parametrize("name", model_names())
def test_the_page_of_a_model_tells_its_size_and_speed(name: str) -> None:
    card = read_card(name)
    page = re.sub(r"\s+", " ", (ROOT / card.page).read_text(encoding="utf-8"))
    assert f"{card.bytes:,} bytes" in page, f"{card.page}: its file has {card.bytes:,} bytes now; change the page"
    if card.milliseconds is not None:
        told = f"{card.milliseconds:.2f} ms"
        assert told in page, f"{card.page} does not say {told}, as {name}.toml does: measure with dabnet evaluate"


def test_a_stale_table_is_found_and_mended() -> None:
    text = README.read_text(encoding="utf-8")
    first = next(BLOCK.finditer(text))
    changed = text.replace(first["body"], first["body"].replace("1", "2"), 1)
    assert stale(changed, TABLES) == [first["name"]]
    assert fill(changed, TABLES) == fill(text, TABLES) == text


def test_every_picture_of_the_docs_is_drawn_by_something() -> None:
    drawn = {IMAGES / name for name in PICTURES} | set(IMAGES.glob("pad*.png"))  # those: tests/web/screenshots.py
    assert set(IMAGES.iterdir()) == drawn


@pytest.mark.parametrize("name", ["bench.png", "unfinished.png"])
def test_a_picture_can_be_drawn_from_the_results(name: str, tmp_path: Path) -> None:
    PICTURES[name](tmp_path / name)
    assert (tmp_path / name).stat().st_size > 5_000
