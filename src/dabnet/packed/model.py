"""A packed model: the nodes from a sketch to its logits, with one-bit weights as bits.

A model is a list of nodes. Value 0 is the input, and node i makes value i + 1 from values before it; the last value is
the answer. Whoever makes a `Model` has it checked by the core: every reference, size and array.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dabnet.packed.core import check_bytes
from dabnet.packed.write import write

if TYPE_CHECKING:
    from dabnet.packed.nodes import Node, Shape


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
    views_temperature: float = 1.0
    """What sharpens the mean p of several views' probabilities: softmax(log p / views_temperature)."""
    shapes: tuple[Shape, ...] = field(init=False, repr=False)
    """The shapes of the input and of what each node makes."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "shapes", check_bytes(write(self, ensure_ascii=True)))

    @property
    def answers(self) -> int:
        """How many numbers come out for a sketch."""
        last = self.shapes[-1]
        return last.channels * last.height * last.width

    def part(self, through: int) -> Model:
        """Return the model that ends with value `through`, without labels."""
        return Model(self.input_size, self.nodes[:through])
