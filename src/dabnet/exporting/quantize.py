"""Whole numbers for a packed model that was trained without them: steps that suit the numbers it computes.

A layer with one-bit weights that takes real numbers x gets a `Quantize` before it, and its factors the step s. Of the
steps s = c / high, for c from a tenth of the largest |x| up to it, the one is taken whose whole numbers n have the
least squared error, sum (s n - x)^2, over the numbers that some sketches make there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from dabnet.errors import InputError
from dabnet.packed.nodes import Conv, Node, Quantize
from dabnet.runtime import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from dabnet.packed import Model

WholeActivations = Literal["int8", "int4"]
BITS: dict[WholeActivations, int] = {"int8": 8, "int4": 4}
MOST_NUMBERS = 200_000
"""Of a value that a step is fitted to: more would change nothing but the time."""
STEPS = 46


def quantize_activations(
    model: Model,
    activations: WholeActivations,
    x: NDArray[np.float32],
    *,
    threads: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Model:
    """Return a model whose layers of one-bit weights take whole numbers instead of real ones.

    `x` are sketches (N, C, H, W) such as it will see. `progress` gets the values done, and how many there are.
    """
    taken = sorted(
        {node.inputs[0] for node in model.nodes if _takes_real(node) and model.shapes[node.inputs[0]].is_real}
    )
    if not taken:
        raise InputError(
            f"no layer of one-bit weights takes real numbers in this model, so '{activations}' has nothing to round."
        )
    fitted: dict[int, Quantize] = {}
    for done, value in enumerate(taken):
        found = x if value == 0 else Session(model.part(value), threads).run(x)
        fitted[value] = fit_quantize(value, BITS[activations], found)
        if progress:
            progress(done + 1, len(taken))
    return replace(model, nodes=tuple(_insert(model, fitted)))


def fit_quantize(value: int, bits: int, numbers: NDArray[np.float32]) -> Quantize:
    """Return what rounds a value to whole numbers with the least squared error, below 0 only where some of them are.

    >>> found = fit_quantize(0, 4, np.linspace(0, 30, 1000, dtype=np.float32))
    >>> found.low, found.high, round(1 / found.scale, 1)
    (0, 15, 1.9)
    """
    flat = numbers.reshape(-1)
    some = flat[:: -(-flat.size // MOST_NUMBERS)].astype(np.float64)
    low = -(2 ** (bits - 1)) if float(flat.min(initial=0)) < 0 else 0
    high = 2**bits - 1 + low
    largest = float(np.abs(flat).max(initial=0)) or 1.0

    def error(step: float) -> float:
        return float(np.square(step * np.rint(np.clip(some / step, low, high)) - some).sum())

    step = min((share * largest / high for share in np.linspace(0.1, 1, STEPS)), key=error)
    return Quantize(inputs=(value,), scale=float(np.float32(1 / step)), low=low, high=high)


def _takes_real(node: Node) -> bool:
    return isinstance(node, Conv) and node.bits is not None


def _insert(model: Model, fitted: dict[int, Quantize]) -> list[Node]:
    """Return the nodes with a quantize before the first layer that takes a fitted value, and factors in its steps."""
    nodes: list[Node] = []
    moved = {0: 0}  # the new numbers of values
    rounded: dict[int, int] = {}  # and of what a quantize makes of them

    def put(node: Node) -> int:
        nodes.append(node)
        return len(nodes)

    for at, node in enumerate(model.nodes):
        value = node.inputs[0]
        if isinstance(node, Conv) and node.bits is not None and value in fitted:
            assert node.scale is not None
            if value not in rounded:
                rounded[value] = put(replace(fitted[value], inputs=(moved[value],), name=node.name))
            step = 1 / np.float64(np.float32(fitted[value].scale))
            offset = None if node.offset is None else (step * node.offset).astype(np.float32)
            scale = (step * node.scale).astype(np.float32)
            moved[at + 1] = put(replace(node, inputs=(rounded[value],), scale=scale, offset=offset))
        else:
            moved[at + 1] = put(replace(node, inputs=tuple(moved[i] for i in node.inputs)))
    return nodes
