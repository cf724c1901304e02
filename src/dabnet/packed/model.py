"""A packed model: the steps from a sketch to its logits, with one-bit weights as bits.

A model is a list of nodes. Value 0 is the input, and node i makes value i + 1 from values before it; the last value is
the answer. `Model` says what is wrong with a model that makes no sense, before anything is computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dabnet.errors import ModelFormatError
from dabnet.packed.bits import is_filled_with_zeros
from dabnet.packed.nodes import MAX_SIDE, Add, ArraySpec, Concat, Node, Shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

MAX_NODES = 10_000
MAX_TEXT = 1000
"""Characters of a label or a name."""
RASTER_SETTINGS = ("size", "margin", "pen")


@dataclass(frozen=True, eq=False)
class Model:
    """A network as a list of nodes, and all that a recognizer needs beside it; checked when it is made."""

    input_size: tuple[int, int, int]
    """Channels, height and width."""
    nodes: tuple[Node, ...]
    labels: tuple[str, ...] = ()
    """The classes' names in the order of the logits; none if nobody named them."""
    raster: dict[str, float] | None = None
    """How to draw a sketch for it: size, margin and pen (`dabnet.sketches.Raster`)."""
    temperature: float = 1.0
    """What logits are divided by before they become probabilities: softmax(logits / temperature)."""
    shapes: tuple[Shape, ...] = field(init=False, repr=False)
    """Of the input and of what each node makes."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "shapes", tuple(_check_graph(self.input_size, self.nodes)))
        if not all(label and is_text(label) for label in self.labels):
            raise ModelFormatError(f"a model's labels are texts of 1 to {MAX_TEXT:,} characters.")
        answers = self.answers
        if self.labels and len(self.labels) != answers:
            raise ModelFormatError(f"a model with {answers} outputs has {len(self.labels)} labels.")
        if len(set(self.labels)) != len(self.labels):
            raise ModelFormatError("two classes of a model have the same label.")
        if self.raster is not None and set(self.raster) != set(RASTER_SETTINGS):
            raise ModelFormatError("a model's way to rasterize is a size, a margin and a pen.")
        if not (math.isfinite(self.temperature) and self.temperature > 0):
            raise ModelFormatError(f"a model's temperature is a finite number above 0, not {self.temperature!r:.40}.")

    @property
    def answers(self) -> int:
        """How many numbers come out for a sketch."""
        last = self.shapes[-1]
        return last.channels * last.height * last.width

    @cached_property
    def multiply_adds(self) -> int:
        """How many multiply-adds, or what stands for them, one sketch takes."""
        return sum(
            node.multiply_adds([self.shapes[i] for i in node.inputs], self.shapes[at + 1])
            for at, node in enumerate(self.nodes)
        )

    def part(self, through: int) -> Model:
        """Give the model that ends with value `through`, without labels."""
        return Model(self.input_size, self.nodes[:through])


def _check_graph(input_size: tuple[int, int, int], nodes: Sequence[Node]) -> list[Shape]:
    """Give the shape of every value, or raise `ModelFormatError`."""
    if not nodes:
        raise ModelFormatError("a model needs at least one node.")
    if len(nodes) > MAX_NODES:
        raise ModelFormatError(f"a model has at most {MAX_NODES:,} nodes, not {len(nodes):,}.")
    if not all(1 <= side <= MAX_SIDE for side in input_size):
        raise ModelFormatError(f"a model's input cannot be {'x'.join(map(str, input_size))}.")
    shapes = [Shape(*input_size)]
    for at, node in enumerate(nodes):
        try:
            if not node.inputs or min(node.inputs) < 0 or max(node.inputs) > at:
                raise ValueError(f"it takes values {list(node.inputs)!s:.80}, and there are 0 to {at}")
            if len(node.inputs) != 1 and not isinstance(node, Add | Concat):
                raise ValueError(f"it takes one value, not {len(node.inputs)}")
            inputs = [shapes[value] for value in node.inputs]
            shape = node.output(inputs)
            if not all(1 <= side <= MAX_SIDE for side in shape[:3]):
                raise ValueError(f"it would make {shape}, and a side has 1 to {MAX_SIDE:,}")
            specs = node.array_specs(inputs)
            for name, found in node.arrays():
                _check_array(name, found, specs[name])
            shapes.append(shape)
        except ValueError as problem:
            place = f" ({node.name!r})" if node.name else ""
            raise ModelFormatError(f"node {at}, {node.OP}{place}: {problem}.") from None
    return shapes


def _check_array(name: str, found: NDArray[Any], spec: ArraySpec) -> None:
    if found.dtype != spec.dtype or found.shape != spec.shape:
        wanted = np.dtype(spec.dtype).name
        raise ValueError(f"'{name}' is {found.dtype} {found.shape}, and has to be {wanted} {spec.shape}")
    if spec.bits and not is_filled_with_zeros(found, spec.bits):
        raise ValueError(f"'{name}' has bits beyond the last one")
    if found.dtype == np.float32:
        fine = ~np.isnan(found) if spec.may_be_infinite else np.isfinite(found)
        if not fine.all():
            raise ValueError(f"'{name}' holds a number that is not finite")


def is_text(value: object) -> bool:
    """Say whether something is a text that a file can hold: not too long, and without halves of characters."""
    return isinstance(value, str) and len(value) <= MAX_TEXT and not any("\ud800" <= c <= "\udfff" for c in value)
