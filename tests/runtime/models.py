"""Packed models drawn at random, for tests that compare two ways to run them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from dabnet.packed import Model
from dabnet.packed.bits import pack
from dabnet.packed.int8 import round_filters
from dabnet.packed.nodes import (
    MAX_SIDE,
    AdaptiveAvgPool,
    AdaptiveMaxPool,
    Add,
    Affine,
    AvgPool,
    Clamp,
    Concat,
    Conv,
    Flatten,
    MaxPool,
    Node,
    PRelu,
    Quantize,
    Relu,
    Shape,
    Sign,
)

CHANNELS = st.one_of(st.integers(1, 20), st.sampled_from([63, 64, 65, 100, 130]))

FILTERS = st.sampled_from([24, 31, 32, 33, 48, 64, 65, 100, 130])


def floats(rng: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    return rng.standard_normal(shape).astype(np.float32)


def halves(rng: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    """Numbers whose sums and products are exact, so that all ways to add them up agree to the bit."""
    return (rng.integers(-3, 4, shape) / 2).astype(np.float32)


Numbers = Callable[..., NDArray[np.float32]]
"""`floats` or `halves`."""


MOST_WEIGHTS = 65_536


@st.composite
def windows(draw: st.DrawFn, shape: Shape, largest: int) -> dict[str, Any]:
    """Kernel, stride, padding and dilation that fit a map; padding may be wider than the kernel."""
    kernel, stride, dilation, padding = [], [], [], [0, 0, 0, 0]
    for axis, size in enumerate(shape[1:3]):
        kernel.append(draw(st.integers(1, largest)))
        stride.append(draw(st.integers(1, 3)))
        dilation.append(draw(st.integers(1, 2)) if kernel[-1] <= 5 else 1)
        span = dilation[-1] * (kernel[-1] - 1) + 1
        padding[axis] = draw(st.integers(0, span + 1))
        padding[axis + 2] = draw(st.integers(max(0, span - size - padding[axis]), span + 1))
    return {
        "kernel": tuple(kernel),
        "stride": tuple(stride),
        "dilation": tuple(dilation),
        "padding": tuple(padding),
    }


@st.composite
def convolutions(
    draw: st.DrawFn, value: int, shape: Shape, one_bit: bool, largest: int = 5, numbers: Numbers = floats
) -> Conv:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    divisors = [g for g in range(1, shape.channels + 1) if shape.channels % g == 0]
    groups = draw(st.sampled_from([1, 1, *divisors[:4], divisors[-1]]))
    few = st.integers(1, max(1, 12 // groups))
    filters = groups * draw(st.one_of(few, FILTERS) if one_bit and groups == 1 else few)
    if one_bit and not shape.is_real and not shape.is_signs:  # a filter of whole numbers has at most so many weights
        largest = min(largest, math.isqrt(MOST_WEIGHTS * groups // shape.channels))
    window = draw(windows(shape, largest))
    taps = window["kernel"][0] * window["kernel"][1] * (shape.channels // groups)
    bias = numbers(rng, filters) if draw(st.booleans()) else None
    if not one_bit:
        weight = numbers(rng, filters, *window["kernel"], shape.channels // groups)
        if draw(st.booleans()):
            int8, scale = round_filters(weight)
            settings: dict[str, Any] = {"groups": groups, "int8": int8, "scale": scale, "bias": bias, **window}
            return Conv(inputs=(value,), filters=filters, **settings)
        return Conv(inputs=(value,), filters=filters, groups=groups, weight=weight, bias=bias, **window)
    return Conv(
        inputs=(value,),
        filters=filters,
        groups=groups,
        pad_value=draw(st.integers(0, 1)) if shape.is_signs else 0,
        bits=pack(rng.random((filters, taps)) < 0.5),
        scale=numbers(rng, filters),
        offset=numbers(rng, filters) if draw(st.booleans()) else None,
        bias=bias,
        **window,
    )


@st.composite
def signs(draw: st.DrawFn, value: int, shape: Shape) -> Sign:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    threshold = floats(rng, shape.channels)
    threshold[rng.random(shape.channels) < 0.1] = np.inf
    threshold[rng.random(shape.channels) < 0.1] = -np.inf
    return Sign(
        inputs=(value,),
        threshold=threshold if draw(st.booleans()) else None,
        flip=pack(rng.random(shape.channels) < 0.5) if draw(st.booleans()) else None,
    )


@st.composite
def quantizes(draw: st.DrawFn, value: int) -> Quantize:
    """Of 4 or 8 bits, some of them below 0; scales of which a power of 2 meets halves, which are rounded to even."""
    levels = draw(st.one_of(st.sampled_from([15, 255]), st.integers(1, 255)))
    low = draw(st.one_of(st.just(0), st.integers(-levels, 0)))
    scale = draw(st.sampled_from([0.5, 1.0, 4.0, 1.7, 60.0]))
    return Quantize(inputs=(value,), scale=float(np.float32(scale)), low=low, high=levels + low)


@st.composite
def pools(draw: st.DrawFn, value: int, shape: Shape) -> Node:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from([MaxPool, AvgPool, AdaptiveMaxPool, AdaptiveAvgPool]))
    if kind in (AdaptiveMaxPool, AdaptiveAvgPool):
        size = (int(rng.integers(1, shape.height + 2)), int(rng.integers(1, shape.width + 2)))
        adaptive: Node = kind(inputs=(value,), size=size)
        return adaptive
    kernel = tuple(int(rng.integers(1, min(4, side) + 1)) for side in shape[1:3])
    # Taps that are no farther apart than the map is long: else a window could see no position of it.
    dilation = tuple(int(rng.integers(1, min(2, side) + 1)) if rng.random() < 0.2 else 1 for side in shape[1:3])
    spans = [step * (taps - 1) + 1 for step, taps in zip(dilation, kernel, strict=True)]
    padding = [int(rng.integers(0, spans[i % 2])) for i in range(4)]
    for axis, side in enumerate(shape[1:3]):
        padding[axis + 2] = max(padding[axis + 2], spans[axis] - side - padding[axis])
    settings: dict[str, Any] = {"kernel": kernel, "dilation": dilation, "padding": tuple(padding)}
    settings["stride"] = tuple(int(n) for n in rng.integers(1, 4, 2))
    if kind is AvgPool:
        settings["count_padding"] = int(rng.integers(0, 2))
    pool: Node = kind(inputs=(value,), **settings)
    return pool


@st.composite
def elementwise(draw: st.DrawFn, value: int, shape: Shape) -> Node:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    c = shape.channels
    nodes: list[Node] = [
        Relu(inputs=(value,)),
        Clamp(inputs=(value,), low=-0.5, high=1.0),
        Affine(inputs=(value,), scale=floats(rng, c), shift=floats(rng, c)),
        PRelu(inputs=(value,), slope=floats(rng, c)),
        Add(inputs=(value, value)),
    ]
    if 3 * c <= MAX_SIDE:
        nodes.append(Concat(inputs=(value, value, value)))
    if c * shape.height * shape.width <= MAX_SIDE:
        nodes.append(Flatten(inputs=(value,)))
    return draw(st.sampled_from(nodes))


@st.composite
def shortcuts(draw: st.DrawFn, value: int, shapes: list[Shape]) -> Node:
    """A value and an earlier one, added or concatenated, in either order."""
    like = [i for i, shape in enumerate(shapes) if shape == shapes[value]]
    inputs = draw(st.permutations([value, draw(st.sampled_from(like))]))
    fits = 2 * shapes[value].channels <= MAX_SIDE
    node: Node = draw(st.sampled_from([Add, Concat] if fits else [Add]))(inputs=tuple(inputs))
    return node


@st.composite
def models(draw: st.DrawFn, most_nodes: int = 8, *, binary: bool | None = None) -> Model:
    """Models of any nodes in a row, with shortcuts; with `binary`, whose answer is exact: integers, or sums of them."""
    input_size = (draw(CHANNELS), draw(st.integers(1, 9)), draw(st.integers(1, 9)))
    shapes, nodes = [Shape(*input_size)], []  # type: list[Shape], list[Node]

    def put(strategy: st.SearchStrategy[Any]) -> None:
        nodes.append(draw(strategy))
        shapes[:] = Model(input_size, tuple(nodes)).shapes

    if binary:
        put(signs(0, shapes[0]) if draw(st.booleans()) else quantizes(0))
        put(convolutions(1, shapes[1], one_bit=True, largest=draw(st.sampled_from([1, 3, 5, 15]))))
        return Model(input_size, tuple(nodes))
    for _ in range(draw(st.integers(1, most_nodes))):
        last, shape = len(nodes), shapes[-1]
        if not shape.is_real:
            put(convolutions(last, shape, one_bit=True))
            continue
        kind = draw(st.sampled_from(["sign", "quantize", "conv", "one-bit", "pool", "elementwise", "shortcut"]))
        if kind == "sign":
            put(signs(last, shape))
        elif kind == "quantize":
            put(quantizes(last))
        elif kind == "pool":
            put(pools(last, shape))
        elif kind == "elementwise":
            put(elementwise(last, shape))
        elif kind == "shortcut":
            put(shortcuts(last, shapes))
        else:
            put(convolutions(last, shape, one_bit=kind == "one-bit"))
    return Model(input_size, tuple(nodes))


@st.composite
def models_of_signs(draw: st.DrawFn) -> Model:
    """Models that take signs and whole numbers of pools, concats and clamps, several times of the same value.

    Every number is exact.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    input_size = (draw(st.integers(1, 5)), draw(st.integers(2, 9)), draw(st.integers(2, 9)))
    nodes: list[Node] = []

    def put(node: Node) -> int:
        nodes.append(node)
        return len(nodes)

    def shape(value: int) -> Shape:
        return Model(input_size, tuple(nodes)).shapes[value] if nodes else Shape(*input_size)

    def conv(value: int, filters: int) -> int:
        of = shape(value)
        window = draw(windows(of, 2))
        if of.is_real:
            weight = halves(rng, filters, *window["kernel"], of.channels)
            return put(Conv(inputs=(value,), filters=filters, weight=weight, bias=halves(rng, filters), **window))
        bits = pack(rng.random((filters, window["kernel"][0] * window["kernel"][1] * of.channels)) < 0.5)
        scale, offset = halves(rng, filters), halves(rng, filters)
        return put(Conv(inputs=(value,), filters=filters, bits=bits, scale=scale, offset=offset, **window))

    def sign(value: int) -> int:
        if draw(st.integers(0, 2)) == 0:
            return put(draw(quantizes(value)))
        threshold = np.where(rng.random(shape(value).channels) < 0.2, 0, 4 * halves(rng, shape(value).channels))
        flip = pack(rng.random(len(threshold)) < 0.5) if draw(st.booleans()) else None
        kept = threshold.astype(np.float32) if draw(st.booleans()) else None
        return put(Sign(inputs=(value,), threshold=kept, flip=flip))

    reals = [conv(0, draw(st.sampled_from([3, 20, 64, 70]))) for _ in range(draw(st.integers(1, 2)))]
    for _ in range(draw(st.integers(1, 5))):
        value = draw(st.sampled_from([0, *reals]))
        kind = draw(st.sampled_from(["pool", "concat", "relu", "clamp", "add", "again"]))
        if kind == "pool":
            reals.append(put(MaxPool(inputs=(value,), kernel=(2, 2), padding=(1, 0, 1, 1), stride=(1, 1))))
        elif kind == "concat":
            alike = [other for other in reals if shape(other)[1:3] == shape(value)[1:3]]
            reals.append(
                put(Concat(inputs=(value, *draw(st.lists(st.sampled_from(alike or [value]), min_size=1, max_size=3)))))
            )
        elif kind == "relu":
            reals.append(put(Relu(inputs=(value,))))
        elif kind == "clamp":
            reals.append(put(Clamp(inputs=(value,), low=-1.0, high=2.0)))
        elif kind == "add":
            reals.append(put(Add(inputs=(value, value))))
        else:
            reals.append(conv(sign(value), draw(st.sampled_from([3, 64]))))
    ends = draw(st.lists(st.sampled_from(reals), min_size=1, max_size=3))
    signs_of_ends = [sign(value) for value in ends]
    if draw(st.booleans()):
        answers = [put(Flatten(inputs=(conv(value, 2),))) for value in signs_of_ends]
        put(Concat(inputs=tuple(answers)) if len(answers) > 1 else Relu(inputs=(answers[0],)))
    return Model(input_size, tuple(nodes))


@st.composite
def models_of_chains(draw: st.DrawFn) -> Model:
    """Models of blocks as networks with RPReLU have them: a binary convolution, a sum, affines, activations and signs.

    Numbers before the first convolution are signs, so that counts are exact, and so is all that follows them.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    channels = draw(st.sampled_from([1, 3, 8, 31, 64, 65, 130]))
    input_size = (channels, draw(st.integers(1, 6)), draw(st.integers(1, 6)))
    nodes: list[Node] = []

    def put(node: Node) -> int:
        nodes.append(node)
        return len(nodes)

    def affine(value: int) -> int:
        scale = np.ones(channels, np.float32) if draw(st.booleans()) else floats(rng, channels)
        return put(Affine(inputs=(value,), scale=scale, shift=floats(rng, channels)))

    value = 0
    for _ in range(draw(st.integers(1, 3))):
        taken = put(draw(signs(value, Shape(*input_size))))
        conv = Conv(
            inputs=(taken,),
            filters=channels,
            kernel=(3, 3),
            padding=(1, 1, 1, 1),
            bits=pack(rng.random((channels, 9 * channels)) < 0.5),
            scale=floats(rng, channels),
            offset=floats(rng, channels) if draw(st.booleans()) else None,
        )
        last = put(conv)
        if draw(st.booleans()):
            last = put(Add(inputs=tuple(draw(st.permutations([last, value])))))
        total = last
        if draw(st.booleans()):
            last = affine(last)
        kind = draw(st.sampled_from(["none", "prelu", "prelu", "relu", "clamp"]))
        if kind == "prelu":
            last = put(PRelu(inputs=(last,), slope=floats(rng, channels)))
        elif kind == "relu":
            last = put(Relu(inputs=(last,)))
        elif kind == "clamp":
            last = put(Clamp(inputs=(last,), low=-0.5, high=1.0))
        if draw(st.booleans()):
            last = affine(last)
        value = last
        if draw(st.booleans()):  # signs of the sum, too, which go into an answer of their own
            early = put(Sign(inputs=(total,), threshold=floats(rng, channels)))
            other = put(
                Conv(
                    inputs=(early,),
                    filters=channels,
                    bits=pack(rng.random((channels, channels)) < 0.5),
                    scale=conv.scale,
                )
            )
            value = put(Add(inputs=(other, last)))
    end = draw(st.sampled_from(["numbers", "signs"]))
    if end == "signs":
        put(draw(signs(value, Shape(*input_size))))
    return Model(input_size, tuple(nodes))


def sketches(model: Model, count: int, seed: int = 0, *, exact: bool = False) -> NDArray[np.float32]:
    """Random numbers, of which many are 0, as on paper."""
    rng = np.random.default_rng(seed)
    x = (halves if exact else floats)(rng, count, *model.input_size)
    x[rng.random(x.shape) < 0.3] = 0
    return x
