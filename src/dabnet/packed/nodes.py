"""The kinds of nodes that a packed model is made of, and the values between them.

A value has `channels` maps of height x width, of real numbers or of signs: what `Sign` makes is one bit a place, +1 or
-1, and only a `Conv` with one-bit weights takes it. Linear layers are 1x1 convolutions of 1x1 maps.

Filters are stored (filters, kernel height, kernel width, input channels of a group), as values are read: all channels
of a place, place after place.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

MAX_SIDE = 65_535
"""Channels, heights, widths, kernels and strides are at most this."""
MAX_BINARY_TAPS = 1 << 24
"""Weights of a one-bit filter: float32 counts no farther."""

Pair = tuple[int, int]
Sides = tuple[int, int, int, int]


class Shape(NamedTuple):
    """What a value is: maps of real numbers, or of signs."""

    channels: int
    height: int
    width: int
    is_signs: bool = False

    def __str__(self) -> str:
        return f"{self.channels}x{self.height}x{self.width}{' signs' if self.is_signs else ''}"


class ArraySpec(NamedTuple):
    """What an array of a node has to be."""

    dtype: type
    shape: tuple[int, ...]
    may_be_infinite: bool = False
    bits: int = 0
    """How many bits of each row are used."""


def array() -> Any:
    """Declare a field that holds an array, None where it is left out."""
    return field(default=None, metadata={"array": True}, repr=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class Node:
    """One step. Fields that `array()` declares are its tensors, the others go into the file's header."""

    OP: ClassVar[str]
    inputs: tuple[int, ...]
    name: str = ""
    """Of the layer of the trained network that it came from."""

    def output(self, inputs: Sequence[Shape]) -> Shape:
        """Give the shape of the value that it makes, or raise `ValueError`."""
        raise NotImplementedError

    def array_specs(self, inputs: Sequence[Shape]) -> dict[str, ArraySpec]:
        """Say what its arrays have to be."""
        return {}

    def multiply_adds(self, inputs: Sequence[Shape], output: Shape) -> int:
        """Count its multiply-adds, or what stands for them, for one sketch."""
        return output.channels * output.height * output.width

    @classmethod
    def array_names(cls) -> list[str]:
        """Give the names of the fields that hold arrays."""
        return [item.name for item in fields(cls) if item.metadata.get("array")]

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Walk over the arrays that it has."""
        for name in self.array_names():
            value = getattr(self, name)
            if value is not None:
                yield name, value

    def settings(self) -> dict[str, Any]:
        """Give what is no array and not as by default."""
        return {
            item.name: getattr(self, item.name)
            for item in fields(self)
            if not item.metadata.get("array") and getattr(self, item.name) != item.default
        }

    @classmethod
    def setting_names(cls) -> dict[str, bool]:
        """Give the names of the fields that are no arrays, and whether each must be given."""
        return {item.name: item.default is MISSING for item in fields(cls) if not item.metadata.get("array")}


@dataclass(frozen=True, kw_only=True, eq=False)
class Windowed(Node):
    """A step that slides a window over maps. `padding` is top, left, bottom, right."""

    kernel: Pair = (1, 1)
    stride: Pair = (1, 1)
    padding: Sides = (0, 0, 0, 0)
    dilation: Pair = (1, 1)

    def places(self, shape: Shape) -> Pair:
        """Count the places of the window, down and across."""
        if min(*self.kernel, *self.stride, *self.dilation) < 1 or min(self.padding) < 0:
            raise ValueError("kernel, stride and dilation are at least 1, and padding at least 0")
        if max(*self.kernel, *self.stride, *self.dilation, *self.padding) > MAX_SIDE:
            raise ValueError(f"kernel, stride, dilation and padding are at most {MAX_SIDE:,}")
        return (
            _places("height", shape.height, self.padding[0::2], self.kernel[0], self.stride[0], self.dilation[0]),
            _places("width", shape.width, self.padding[1::2], self.kernel[1], self.stride[1], self.dilation[1]),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Conv(Windowed):
    """A convolution. Its weights are `weight`, or one bit each: +1 where `bits` has 1, -1 elsewhere.

    With one-bit weights s, of signs x and of real numbers x alike:

        value = scale (s . x) + middle sum(x) + bias

    A padded tap of signs holds `pad_value`: with 0 it counts for neither sum, with 1 it is +1.
    """

    OP = "conv"
    filters: int
    groups: int = 1
    pad_value: int = 0
    weight: NDArray[np.float32] | None = array()
    bits: NDArray[np.uint8] | None = array()
    """(filters, bytes): a filter's bits in order, the first in a byte's lowest bit; the last byte is filled with 0."""
    scale: NDArray[np.float32] | None = array()
    middle: NDArray[np.float32] | None = array()
    bias: NDArray[np.float32] | None = array()

    def output(self, inputs: Sequence[Shape]) -> Shape:
        """Give the shape of the value that it makes."""
        (shape,) = inputs
        if self.filters < 1 or self.groups < 1:
            raise ValueError("filters and groups are at least 1")
        if shape.channels % self.groups or self.filters % self.groups:
            raise ValueError(f"{self.groups} groups do not divide {shape.channels} channels and {self.filters} filters")
        if self.pad_value not in (0, 1) or (self.pad_value and not shape.is_signs):
            raise ValueError(f"a padded tap cannot hold {self.pad_value} here")
        if (self.weight is None) == (self.bits is None) or (self.bits is None) != (self.scale is None):
            raise ValueError("it needs either 'weight', or 'bits' and 'scale'")
        if self.weight is not None and (shape.is_signs or self.middle is not None):
            raise ValueError("weights of 32 bits take real numbers, and have no 'middle'")
        if self.bits is not None and self.taps(shape) > MAX_BINARY_TAPS:
            raise ValueError(f"a one-bit filter has more than {MAX_BINARY_TAPS:,} weights")
        return Shape(self.filters, *self.places(shape))

    def taps(self, shape: Shape) -> int:
        """Count a filter's weights."""
        return self.kernel[0] * self.kernel[1] * (shape.channels // self.groups)

    def array_specs(self, inputs: Sequence[Shape]) -> dict[str, ArraySpec]:
        """Say what its arrays have to be."""
        (shape,) = inputs
        each = ArraySpec(np.float32, (self.filters,))
        return {
            "weight": ArraySpec(np.float32, (self.filters, *self.kernel, shape.channels // self.groups)),
            "bits": ArraySpec(np.uint8, (self.filters, -(-self.taps(shape) // 8)), bits=self.taps(shape)),
            "scale": each,
            "middle": each,
            "bias": each,
        }

    def multiply_adds(self, inputs: Sequence[Shape], output: Shape) -> int:
        """Count its multiply-adds for one sketch."""
        return output.channels * output.height * output.width * self.taps(inputs[0])


@dataclass(frozen=True, kw_only=True, eq=False)
class Sign(Node):
    """One bit a place: x >= threshold, and the other way round in the channels that `flip` marks.

    Without `threshold` it is 0. `flip` has one bit a channel, packed as a filter's bits are.
    """

    OP = "sign"
    threshold: NDArray[np.float32] | None = array()
    flip: NDArray[np.uint8] | None = array()

    def output(self, inputs: Sequence[Shape]) -> Shape:
        """Give the shape of the value that it makes."""
        return _real(inputs)._replace(is_signs=True)

    def array_specs(self, inputs: Sequence[Shape]) -> dict[str, ArraySpec]:
        """Say what its arrays have to be."""
        channels = inputs[0].channels
        return {
            "threshold": ArraySpec(np.float32, (channels,), may_be_infinite=True),
            "flip": ArraySpec(np.uint8, (-(-channels // 8),), bits=channels),
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class Affine(Node):
    """scale x + shift, a number of each a channel: a norm that nothing could take in."""

    OP = "affine"
    scale: NDArray[np.float32] = array()
    shift: NDArray[np.float32] = array()

    def output(self, inputs: Sequence[Shape]) -> Shape:
        """Give the shape of the value that it makes."""
        if self.scale is None or self.shift is None:
            raise ValueError("it needs 'scale' and 'shift'")
        return _real(inputs)

    def array_specs(self, inputs: Sequence[Shape]) -> dict[str, ArraySpec]:
        """Say what its arrays have to be."""
        each = ArraySpec(np.float32, (inputs[0].channels,))
        return {"scale": each, "shift": each}


@dataclass(frozen=True, kw_only=True, eq=False)
class Relu(Node):
    """x where it is above 0, and 0 elsewhere."""

    OP = "relu"

    def output(self, inputs: Sequence[Shape]) -> Shape:
        """Give the shape of the value that it makes."""
        return _real(inputs)


@dataclass(frozen=True, kw_only=True, eq=False)
class Clamp(Node):
    """x, but at least `low` and at most `high`."""

    OP = "clamp"
    low: float
    high: float

    def output(self, inputs: Sequence[Shape]) -> Shape:
        """Give the shape of the value that it makes."""
        if not -3.4e38 <= self.low <= self.high <= 3.4e38:
            raise ValueError(f"it cannot clamp to [{self.low}, {self.high}]")
        return _real(inputs)


@dataclass(frozen=True, kw_only=True, eq=False)
class PRelu(Node):
    """x where it is above 0, and `slope` x elsewhere, with one slope a channel."""

    OP = "prelu"
    slope: NDArray[np.float32] = array()

    def output(self, inputs: Sequence[Shape]) -> Shape:
        """Give the shape of the value that it makes."""
        if self.slope is None:
            raise ValueError("it needs 'slope'")
        return _real(inputs)

    def array_specs(self, inputs: Sequence[Shape]) -> dict[str, ArraySpec]:
        """Say what its arrays have to be."""
        return {"slope": ArraySpec(np.float32, (inputs[0].channels,))}


@dataclass(frozen=True, kw_only=True, eq=False)
class MaxPool(Windowed):
    """The largest under the window; padded taps are left out."""

    OP = "max_pool"

    def output(self, inputs: Sequence[Shape]) -> Shape:
        """Give the shape of the value that it makes."""
        shape = _real(inputs)
        down, across = self.places(shape)
        _check_taps("height", shape.height, down, self.kernel[0], self.stride[0], self.padding[0], self.dilation[0])
        _check_taps("width", shape.width, across, self.kernel[1], self.stride[1], self.padding[1], self.dilation[1])
        return Shape(shape.channels, down, across)

    def multiply_adds(self, inputs: Sequence[Shape], output: Shape) -> int:
        """Count what it looks at, for one sketch."""
        return output.channels * output.height * output.width * self.kernel[0] * self.kernel[1]


@dataclass(frozen=True, kw_only=True, eq=False)
class AvgPool(MaxPool):
    """The mean under the window, of what is no padding; with `count_padding` the sum divided by the window's size."""

    OP = "avg_pool"
    count_padding: int = 0

    def output(self, inputs: Sequence[Shape]) -> Shape:
        """Give the shape of the value that it makes."""
        if self.count_padding not in (0, 1):
            raise ValueError(f"count_padding is 0 or 1, not {self.count_padding}")
        return super().output(inputs)


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaptiveAvgPool(Node):
    """Means over `size` parts of the map, down and across: from floor(i H / h) to ceil((i + 1) H / h)."""

    OP = "adaptive_avg_pool"
    size: Pair

    def output(self, inputs: Sequence[Shape]) -> Shape:
        """Give the shape of the value that it makes."""
        return Shape(_real(inputs).channels, *self.size)

    def multiply_adds(self, inputs: Sequence[Shape], output: Shape) -> int:
        """Count what it looks at, for one sketch, at most."""
        (shape,) = inputs
        down = shape.height // self.size[0] + 2
        across = shape.width // self.size[1] + 2
        return output.channels * output.height * output.width * down * across


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaptiveMaxPool(AdaptiveAvgPool):
    """The largest of each of `size` parts of the map, parted as in `AdaptiveAvgPool`."""

    OP = "adaptive_max_pool"


@dataclass(frozen=True, kw_only=True, eq=False)
class Add(Node):
    """The sum of two values of one shape."""

    OP = "add"

    def output(self, inputs: Sequence[Shape]) -> Shape:
        """Give the shape of the value that it makes."""
        if len(inputs) != 2 or inputs[0] != inputs[1]:
            raise ValueError(f"it adds two values of one shape, not {' and '.join(map(str, inputs)):.80}")
        return _real(inputs[:1])


@dataclass(frozen=True, kw_only=True, eq=False)
class Concat(Node):
    """The channels of several values, one after the other."""

    OP = "concat"

    def output(self, inputs: Sequence[Shape]) -> Shape:
        """Give the shape of the value that it makes."""
        if len({shape[1:] for shape in inputs}) != 1:
            raise ValueError(f"it joins maps of one size, not {' and '.join(map(str, inputs)):.80}")
        first = _real(inputs[:1])
        return first._replace(channels=sum(shape.channels for shape in inputs))


@dataclass(frozen=True, kw_only=True, eq=False)
class Flatten(Node):
    """All numbers as channels of a 1x1 map: all places of the first channel, then all of the second, and so on."""

    OP = "flatten"

    def output(self, inputs: Sequence[Shape]) -> Shape:
        """Give the shape of the value that it makes."""
        shape = _real(inputs)
        return Shape(shape.channels * shape.height * shape.width, 1, 1)


OPS: dict[str, type[Node]] = {
    kind.OP: kind
    for kind in (
        Conv,
        Sign,
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


def _real(inputs: Sequence[Shape]) -> Shape:
    shape = inputs[0]
    if shape.is_signs:
        raise ValueError("it takes real numbers, and gets signs")
    return shape


def _places(side: str, size: int, padding: Sequence[int], kernel: int, stride: int, dilation: int) -> int:
    span = dilation * (kernel - 1) + 1
    room = size + sum(padding) - span
    if room < 0:
        raise ValueError(f"a window of {span} does not fit into a {side} of {size} with padding {list(padding)}")
    return room // stride + 1


def _check_taps(side: str, size: int, places: int, kernel: int, stride: int, pad: int, dilation: int) -> None:
    """Refuse a pool with a window that sees nothing but padding."""
    if places > MAX_SIDE:
        raise ValueError(f"it would make a {side} of {places:,}, and a side has 1 to {MAX_SIDE:,}")
    start = np.arange(places) * stride - pad
    skipped = -(np.minimum(start, 0) // dilation)  # taps before the map
    if ((skipped >= kernel) | (start + skipped * dilation >= size)).any():
        raise ValueError(f"a window of it sees nothing but padding across its {side}")
