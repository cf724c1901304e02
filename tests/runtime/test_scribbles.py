from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dabnet.runtime import Recognizer
from dabnet.runtime.recognizer import probabilities
from dabnet.sketches import Sketch

Points = NDArray[np.float64]


def walk(rng: np.random.Generator) -> list[Points]:
    """A pen that goes anywhere, a small step at a time."""
    return [rng.normal(size=(int(rng.integers(20, 200)), 2)).cumsum(axis=0)]


def drift(rng: np.random.Generator) -> list[Points]:
    """A few walks that keep their direction for a while, side by side."""
    return [
        rng.normal(scale=20, size=2) + np.cumsum(np.cumsum(rng.normal(scale=0.2, size=(60, 2)), axis=0), axis=0) / 10
        for _ in range(int(rng.integers(1, 6)))
    ]


def scrawl(rng: np.random.Generator) -> list[Points]:
    """Loops over loops, of waves without a common measure."""
    times = np.linspace(0, 1, 400)[:, None]
    speeds, starts = rng.uniform(3, 60, (4, 2)), rng.uniform(0, 2 * np.pi, (4, 2))
    waves = [np.sin(times * speed + start) for speed, start in zip(speeds, starts, strict=True)]
    return [np.sum(waves, axis=0)]


def lines(rng: np.random.Generator) -> list[Points]:
    """Straight lines from anywhere to anywhere."""
    return list(rng.uniform(size=(int(rng.integers(3, 25)), 2, 2)))


def dots(rng: np.random.Generator) -> list[Points]:
    """Specks all over the paper."""
    return list(rng.uniform(size=(int(rng.integers(5, 60)), 1, 2)))


SCRIBBLES: tuple[Callable[[np.random.Generator], list[Points]], ...] = (walk, drift, scrawl, lines, dots)


def test_the_shipped_model_is_not_sure_of_scribbles_and_blank_paper() -> None:
    recognizer = Recognizer.load()
    sketches = [Sketch.from_strokes(SCRIBBLES[i % 5](np.random.default_rng([7, i]))) for i in range(199)]
    tops = [answer[0][1] for answer in recognizer.recognize(sketches, top=1)]
    blank = recognizer.session.run(np.zeros((1, *recognizer.input_size), dtype=np.float32))
    tops.append(float(probabilities(blank, recognizer.session.model.temperature).max()))
    kinds = {kind.__name__: round(float(np.mean(tops[i:199:5])), 2) for i, kind in enumerate(SCRIBBLES)}
    assert np.mean(tops) < 0.3, f"mean {np.mean(tops):.3f}; {kinds}, blank paper {tops[-1]:.2f}"
