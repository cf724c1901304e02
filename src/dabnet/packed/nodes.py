"""The kinds of nodes that a packed model is made of, and the values between them.

A value has `channels` maps of height x width, of real numbers, of signs or of whole numbers: what `Sign` makes is one
bit, +1 or -1, and what `Quantize` makes has 4 or 8 bits. Only a `Conv` with one-bit weights takes these. Linear layers
are 1x1 convolutions of 1x1 maps.

Filters are stored (filters, kernel height, kernel width, input channels of a group), as values are read: NHWC.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

MAX_SIDE = 65_535
"""Channels, heights, widths, kernels and strides are at most this."""

Pair = tuple[int, int]
Sides = tuple[int, int, int, int]


Element = Literal["f32", "u8", "u4", "bit"]
"""What a number of a value is: a real number, a whole number of 8 or of 4 bits, or a sign."""


class Shape(NamedTuple):
    """What a value is: maps of numbers."""

    channels: int
    height: int
    width: int
    element: Element = "f32"

    @property
    def is_real(self) -> bool:
        """Whether the numbers are real."""
        return self.element == "f32"

    @property
    def is_signs(self) -> bool:
        """Whether the numbers are signs."""
        return self.element == "bit"

    def __str__(self) -> str:
        kind = {"f32": "", "bit": " signs"}.get(self.element, " whole numbers")
        return f"{self.channels}x{self.height}x{self.width}{kind}"


def array(tensor: str | None = None) -> Any:
    """Declare a field that holds an array, None where it is left out; `tensor` is its name in a file, if another."""
    return field(default=None, metadata={"array": True, "tensor": tensor}, repr=False)


def real() -> Any:
    """Declare a setting that is a real number; a file may write a whole one without a fraction."""
    return field(metadata={"real": True})


@dataclass(frozen=True, kw_only=True, eq=False)
class Node:
    """What makes one value from others. Fields that `array()` declares are its tensors, the others its settings."""

    OP: ClassVar[str]
    inputs: tuple[int, ...]
    name: str = ""
    """The layer of the trained network that it came from."""

    @classmethod
    def tensor_fields(cls) -> dict[str, str]:
        """Return the fields that hold arrays, by the names of their tensors in a file."""
        arrays = [item for item in fields(cls) if item.metadata.get("array")]
        return {item.metadata["tensor"] or item.name: item.name for item in arrays}

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Walk over the arrays that it has, each with its tensor's name."""
        for tensor, name in self.tensor_fields().items():
            value = getattr(self, name)
            if value is not None:
                yield tensor, value

    def settings(self) -> dict[str, Any]:
        """Return what is no array and not as by default."""
        return {
            item.name: getattr(self, item.name)
            for item in fields(self)
            if not item.metadata.get("array") and getattr(self, item.name) != item.default
        }

    @classmethod
    def setting_names(cls) -> dict[str, bool]:
        """Return the names of the fields that are no arrays, and whether each must be given."""
        return {item.name: item.default is MISSING for item in fields(cls) if not item.metadata.get("array")}


@dataclass(frozen=True, kw_only=True, eq=False)
class Windowed(Node):
    """A node that slides a window over maps. `padding` is top, left, bottom, right."""

    kernel: Pair = (1, 1)
    stride: Pair = (1, 1)
    padding: Sides = (0, 0, 0, 0)
    dilation: Pair = (1, 1)

    def positions(self, shape: Shape) -> Pair:
        """Count the positions of the window along height and width."""
        return _positions(self, 0, shape.height), _positions(self, 1, shape.width)


@dataclass(frozen=True, kw_only=True, eq=False)
class Conv(Windowed):
    """A convolution. Its weights are `weight`, `int8` times `scale`, or one bit each: +1 where `bits` has 1, else -1.

    With one-bit weights s, of signs x and of real numbers x alike:

        value = scale (s . x) + offset sum(x) + bias

    A padded tap of signs holds `pad_value`: with 0 it counts for neither sum, with 1 it is +1.
    """

    OP = "conv"
    filters: int
    groups: int = 1
    pad_value: int = 0
    weight: NDArray[np.float32] | None = array()
    int8: NDArray[np.int8] | None = array()
    """In the shape of `weight`: real weights as whole numbers, one `scale` per filter; each product is rounded once."""
    bits: NDArray[np.uint8] | None = array()
    """(filters, bytes): a filter's bits in order, the first in a byte's lowest bit; the last byte is filled with 0."""
    scale: NDArray[np.float32] | None = array()
    offset: NDArray[np.float32] | None = array(tensor="middle")
    """The mean of a filter's two values, which are `offset + scale` and `offset - scale`; in a file, `middle`."""
    bias: NDArray[np.float32] | None = array()

    def real_weight(self) -> NDArray[np.float32]:
        """Return the weights of 32 bits, or those that weights of 8 bits stand for."""
        if self.int8 is None:
            assert self.weight is not None
            return self.weight
        assert self.scale is not None
        return self.int8.astype(np.float32) * self.scale[:, None, None, None]

    def taps(self, shape: Shape) -> int:
        """Count a filter's weights."""
        return self.kernel[0] * self.kernel[1] * (shape.channels // self.groups)


@dataclass(frozen=True, kw_only=True, eq=False)
class Sign(Node):
    """One bit for each number: x >= threshold, and the other way round in the channels that `flip` marks.

    Without `threshold` it is 0. `flip` has one bit per channel, packed as a filter's bits are.
    """

    OP = "sign"
    threshold: NDArray[np.float32] | None = array()
    flip: NDArray[np.uint8] | None = array()


@dataclass(frozen=True, kw_only=True, eq=False)
class Quantize(Node):
    """The whole number nearest to scale x, of two the even one, but at least `low` and at most `high`.

    `low` is at most 0, `high` at least 0. Up to 16 numbers take 4 bits, up to 256 take 8.
    """

    OP = "quantize"
    scale: float = real()
    low: int
    high: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Affine(Node):
    """scale x + shift, with one of each per channel: a norm that nothing could take in."""

    OP = "affine"
    scale: NDArray[np.float32] = array()
    shift: NDArray[np.float32] = array()


@dataclass(frozen=True, kw_only=True, eq=False)
class Relu(Node):
    """x where it is above 0, and 0 elsewhere."""

    OP = "relu"


@dataclass(frozen=True, kw_only=True, eq=False)
class Clamp(Node):
    """x, but at least `low` and at most `high`."""

    OP = "clamp"
    low: float = real()
    high: float = real()


@dataclass(frozen=True, kw_only=True, eq=False)
class PRelu(Node):
    """x where it is above 0, and `slope` x elsewhere, with one slope per channel."""

    OP = "prelu"
    slope: NDArray[np.float32] = array()


@dataclass(frozen=True, kw_only=True, eq=False)
class MaxPool(Windowed):
    """The largest under the window; padded taps are left out."""

    OP = "max_pool"


@dataclass(frozen=True, kw_only=True, eq=False)
class AvgPool(Windowed):
    """The mean under the window, of what is no padding; with `count_padding` the sum divided by the window's size."""

    OP = "avg_pool"
    count_padding: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaptivePool(Node):
    """A node that makes one number of each of `size` parts of a map of H x W.

    Along the height, part i of h goes from row floor(i H / h) to before row ceil((i + 1) H / h); along the width alike.
    """

    size: Pair


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaptiveAvgPool(AdaptivePool):
    """The mean of each part of the map."""

    OP = "adaptive_avg_pool"


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaptiveMaxPool(AdaptivePool):
    """The largest of each part of the map."""

    OP = "adaptive_max_pool"


@dataclass(frozen=True, kw_only=True, eq=False)
class Add(Node):
    """The sum of two values of one shape."""

    OP = "add"


@dataclass(frozen=True, kw_only=True, eq=False)
class Concat(Node):
    """The channels of several values, one after the other."""

    OP = "concat"


@dataclass(frozen=True, kw_only=True, eq=False)
class Flatten(Node):
    """All numbers as channels of a 1x1 map: all positions of the first channel, then all of the second, and so on."""

    OP = "flatten"


OPS: dict[str, type[Node]] = {
    kind.OP: kind
    for kind in (
        Conv,
        Sign,
        Quantize,
        Affine,
        Relu,
        Clamp,
        PRelu,
        MaxPool,
        AvgPool,
        AdaptiveMaxPool,
        AdaptiveAvgPool,
        Add,
        Concat,
        Flatten,
    )
}


def _positions(node: Windowed, axis: int, size: int) -> int:
    span = node.dilation[axis] * (node.kernel[axis] - 1) + 1
    return (size + node.padding[axis] + node.padding[axis + 2] - span) // node.stride[axis] + 1
