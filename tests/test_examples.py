from __future__ import annotations

from pathlib import Path

import pytest

import dabnet
from dabnet.sketches.raster import Raster, rasterize
from dabnet.sketches.read import read_sketch
from dabnet.sketches.vocabulary import load_vocabulary

FORMS = {".json", ".svg", ".png"}
EXAMPLES = sorted(path for path in (Path(__file__).parents[1] / "examples").iterdir() if path.suffix in FORMS)
EVERYDAY = load_vocabulary("everyday")
# Drawings of what TU-Berlin has no class for.
NEW_TO_TUBERLIN = {
    "circle", "clock", "lightning", "lollipop", "pencil", "smiley face", "snowflake", "square", "stairs", "star",
    "triangle",
}  # fmt: skip


def meaning(name: str) -> str:
    """Return the label of `everyday` that a name means: a mug is a cup."""
    return EVERYDAY.label_by_name.get(name, name)


def test_there_are_many_drawings_of_everyday_things_in_every_form() -> None:
    assert len(EXAMPLES) >= 60
    assert {path.suffix for path in EXAMPLES} == FORMS
    assert {meaning(path.stem) for path in EXAMPLES} <= set(EVERYDAY.labels)
    known = {meaning(label) for label in dabnet.Recognizer.load("tuberlin").labels}
    assert {path.stem for path in EXAMPLES if meaning(path.stem) not in known} == NEW_TO_TUBERLIN


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_a_drawing_with_a_fair_amount_of_ink(path: Path) -> None:
    image = rasterize(read_sketch(path), Raster(64, 0.05, 0.03))
    assert 0.02 < (image > 127).mean() < 0.5


def test_nine_of_ten_examples_are_recognized_by_the_default_model() -> None:
    answers = dabnet.Recognizer.load().recognize(EXAMPLES, top=1)
    right = [meaning(path.stem) == meaning(answer[0][0]) for path, answer in zip(EXAMPLES, answers, strict=True)]
    assert sum(right) >= 0.9 * len(right)


def test_the_examples_that_tuberlin_knows_are_recognized_by_it() -> None:
    known = [path for path in EXAMPLES if path.stem not in NEW_TO_TUBERLIN]
    answers = dabnet.Recognizer.load("tuberlin").recognize(known, top=1)
    right = [meaning(path.stem) == meaning(answer[0][0]) for path, answer in zip(known, answers, strict=True)]
    assert sum(right) >= 0.8 * len(right)
