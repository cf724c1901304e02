from __future__ import annotations

from pathlib import Path

import dabnet

EXAMPLES = sorted(path for path in (Path(__file__).parents[1] / "examples").iterdir() if path.suffix != ".md")


def test_the_examples_are_recognized_by_the_model_that_ships() -> None:
    recognizer = dabnet.Recognizer.load()
    answers = recognizer.recognize(EXAMPLES, top=1)
    right = [path.stem == answer[0][0] for path, answer in zip(EXAMPLES, answers, strict=True)]
    assert len(right) >= 15
    assert {path.stem for path in EXAMPLES} <= set(recognizer.labels)
    assert {path.suffix for path in EXAMPLES} == {".json", ".svg", ".png"}
    assert sum(right) >= 0.8 * len(right)
