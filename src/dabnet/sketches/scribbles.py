"""Scribbles: what a hand leaves on paper that means nothing. A recognizer learns from them when to say that."""

from __future__ import annotations

import numpy as np

from dabnet.sketches.sketch import Sketch

MOST_STROKES = 24
MOST_POINTS = 300


def draw_scribble(rng: np.random.Generator) -> Sketch:
    """Draw a few strokes that begin anywhere: specks, lines, waves, tangles, as the pen keeps its direction or not.

    >>> draw_scribble(np.random.default_rng(0))
    Sketch(... strokes, ... points)
    """
    strokes = int(np.exp(rng.uniform(0, np.log(MOST_STROKES))))
    points = int(np.exp(rng.uniform(0, np.log(MOST_POINTS))))
    length = np.exp(rng.uniform(np.log(0.05), np.log(10)))  # of a stroke, where the paper's side is 1
    turn = np.exp(rng.uniform(np.log(0.02), np.log(1.5)))  # radians per point
    drawn = [_draw_stroke(rng, max(1, rng.poisson(points)), length, turn) for _ in range(strokes)]
    if sum(map(len, drawn)) == 1:  # a single speck has no size
        drawn.append(drawn[0] + 0.1)
    return Sketch.from_strokes(drawn)


def _draw_stroke(rng: np.random.Generator, points: int, length: float, turn: float) -> np.ndarray:
    start = rng.uniform(size=(1, 2))
    bend = rng.normal(scale=0.3 * turn)  # a stroke may curl
    directions = rng.uniform(0, 2 * np.pi) + np.cumsum(rng.normal(bend, turn, points - 1))
    steps = np.stack([np.cos(directions), np.sin(directions)], axis=1) * rng.gamma(2, length / 2 / points)
    return np.concatenate([start, start + np.cumsum(steps, axis=0)])
