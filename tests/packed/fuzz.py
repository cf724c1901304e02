"""Feeds broken model files to the loader and the runtime: each has to be refused in one sentence, or to run.

    python -m tests.packed.fuzz --count 1000

Files are drawn from a seed and an index, so that every one can be made again. The one at hand is always in
build/fuzz/current.safetensors: if the process dies, that is the culprit.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import struct
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from dabnet.errors import ModelFormatError, NonFiniteError
from dabnet.packed import Model, Node, Shape, to_bytes
from dabnet.packed.bits import pack
from dabnet.packed.nodes import (
    OPS,
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
    PRelu,
    Quantize,
    Relu,
    Sign,
)
from dabnet.runtime import Session
from dabnet.runtime.session import KERNELS_VARIABLE, kernel_names

FOLDER = Path("build/fuzz")
MAX_MEMORY = 64 << 20
MAX_SECONDS = 1.0
"""Seconds of processor time that a file may take, with all kernels, and with sanitizers too."""
MAX_WORK = 10_000_000
"""Multiply-adds: a model that takes more is refused."""
MAX_GROWTH = 400 << 20
"""Bytes by which the process may grow. A model may take `MAX_MEMORY`, and beside it there may be as much again of each:
its file, its tensors, a sketch and its answers. AddressSanitizer adds an eighth, and what it holds back.
"""
MAX_SENTENCE = 1300
"""Characters of what is said of a bad file: it may quote the name of a layer."""

Case = tuple[str, bytes]


# Models to start from. Between them they have every kind of node, and each of a node's settings.


def base_models() -> list[Model]:
    rng = np.random.default_rng(0)

    def floats(*shape: int) -> NDArray[np.float32]:
        return rng.standard_normal(shape).astype(np.float32)

    def bits(*shape: int) -> NDArray[np.uint8]:
        return pack(rng.random(shape) < 0.5)

    thresholds = floats(70)
    thresholds[:2] = np.inf, -np.inf
    names = tuple(f"class {i}" for i in range(4))
    return [
        Model(
            (6, 9, 8),
            (
                Conv(
                    inputs=(0,),
                    name="first",
                    filters=9,
                    groups=3,
                    kernel=(3, 2),
                    stride=(1, 2),
                    padding=(1, 0, 2, 3),
                    dilation=(2, 1),
                    weight=floats(9, 3, 2, 2),
                    bias=floats(9),
                ),
                PRelu(inputs=(1,), slope=floats(9)),
                MaxPool(inputs=(2,), kernel=(2, 2), padding=(1, 0, 0, 1), dilation=(1, 2)),
                AvgPool(inputs=(3,), kernel=(2, 2), stride=(1, 1), padding=(1, 1, 1, 1), count_padding=1),
                Affine(inputs=(4,), scale=floats(9), shift=floats(9)),
                Clamp(inputs=(5,), low=-0.5, high=1.5),
                AvgPool(inputs=(6,), kernel=(2, 2), padding=(1, 0, 0, 1)),
                Relu(inputs=(7,)),
                AdaptiveMaxPool(inputs=(8,), size=(5, 2)),
                AdaptiveAvgPool(inputs=(9,), size=(2, 3)),
                Flatten(inputs=(10,)),
                Conv(inputs=(11,), name="last", filters=4, weight=floats(4, 1, 1, 54), bias=floats(4)),
            ),
            names,
            {"size": 9, "margin": 0.05, "pen": 0.1},
            1.5,
        ),
        Model(
            (1, 7, 7),
            (
                Conv(inputs=(0,), filters=70, kernel=(3, 3), weight=floats(70, 3, 3, 1)),
                Sign(inputs=(1,), threshold=thresholds, flip=bits(70)),
                Conv(
                    inputs=(2,),
                    filters=6,
                    kernel=(3, 3),
                    padding=(1, 1, 1, 1),
                    pad_value=1,
                    bits=bits(6, 9 * 70),
                    scale=floats(6),
                    offset=floats(6),
                    bias=floats(6),
                ),
                Sign(inputs=(3,)),
                Conv(
                    inputs=(4,),
                    filters=4,
                    groups=2,
                    kernel=(2, 3),
                    padding=(0, 1, 1, 2),
                    dilation=(1, 2),
                    bits=bits(4, 18),
                    scale=floats(4),
                ),
                AdaptiveAvgPool(inputs=(5,), size=(1, 1)),
            ),
            names,
        ),
        Model(
            (4, 6, 5),
            (
                Conv(
                    inputs=(0,),
                    filters=4,
                    groups=2,
                    kernel=(3, 3),
                    padding=(1, 1, 1, 1),
                    bits=bits(4, 18),
                    scale=floats(4),
                    offset=floats(4),
                    bias=floats(4),
                ),
                Add(inputs=(1, 0)),
                Concat(inputs=(2, 0, 1)),
                Conv(inputs=(3,), filters=65, kernel=(2, 1), stride=(2, 1), bits=bits(65, 24), scale=floats(65)),
                Sign(inputs=(4,), flip=bits(65)),
            ),
        ),
        # Single layers: most of their settings can be changed, and the model still makes sense.
        Model((8, 7, 6), (Conv(inputs=(0,), filters=4, kernel=(3, 3), weight=floats(4, 3, 3, 8)),)),
        Model((8, 7, 6), (Conv(inputs=(0,), filters=4, kernel=(3, 3), bits=bits(4, 72), scale=floats(4)),)),
        Model(
            (8, 7, 6),
            (
                Conv(
                    inputs=(0,),
                    filters=4,
                    kernel=(3, 2),
                    padding=(1, 0, 1, 1),
                    int8=rng.integers(-127, 128, (4, 3, 2, 8)).astype(np.int8),
                    scale=floats(4),
                    bias=floats(4),
                ),
                MaxPool(inputs=(1,), kernel=(2, 2)),
            ),
        ),
        Model(
            (8, 7, 6),
            (
                Sign(inputs=(0,), threshold=floats(8)),
                Conv(inputs=(1,), filters=4, kernel=(3, 3), bits=bits(4, 72), scale=floats(4), offset=floats(4)),
            ),
        ),
        Model(
            (8, 7, 6),
            (
                MaxPool(inputs=(0,), kernel=(2, 2)),
                Quantize(inputs=(1,), scale=3.5, low=-2, high=13),
                Conv(inputs=(2,), filters=70, kernel=(3, 3), bits=bits(70, 72), scale=floats(70), offset=floats(70)),
                Concat(inputs=(3, 3)),
                Quantize(inputs=(4,), scale=9.0, low=0, high=255),
                Conv(inputs=(5,), filters=4, groups=2, bits=bits(4, 70), scale=floats(4)),
            ),
        ),
        Model((3, 7, 6), (MaxPool(inputs=(0,), kernel=(3, 3)), AvgPool(inputs=(0,), kernel=(3, 3)))),
        Model((3, 7, 6), (AdaptiveMaxPool(inputs=(0,), size=(3, 2)), AdaptiveAvgPool(inputs=(0,), size=(4, 9)))),
        Model((1, 1, 1), (Relu(inputs=(0,)),), ("only",)),
    ]


# A file in parts, to change it and put it together again.


@dataclass
class Tensor:
    dtype: str
    shape: list[int]
    data: bytes


@dataclass
class Parts:
    about: Any
    tensors: dict[str, Tensor]
    metadata: dict[str, str]
    """Entries beside the model's description."""
    replaced: dict[str, str]
    """Texts to put in place of others once the description is JSON: what no JSON writer would write."""

    def text(self) -> str:
        text = json.dumps(self.about, separators=(",", ":"))
        for old, new in self.replaced.items():
            text = text.replace(f'"{old}"', new)
        return text


def split(data: bytes) -> Parts:
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        tensors[name] = Tensor(entry["dtype"], entry["shape"], data[8 + length + start : 8 + length + end])
    return Parts(json.loads(metadata.pop("dabnet")), tensors, metadata, {})


def put_together(parts: Parts) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"dabnet": parts.text(), **parts.metadata}}
    start = 0
    for name, tensor in parts.tensors.items():
        end = start + len(tensor.data)
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [start, end]}
        start = end
    return with_header(json.dumps(header).encode(), b"".join(tensor.data for tensor in parts.tensors.values()))


def with_header(header: bytes, data: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header + data


# Numbers, and other things where numbers should be.

TINY = [1, 2, 3, 4]
SMALL = [0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 63, 64, 65, 100, 255, 256]
LARGE = [1000, 4096, 20_000, 65_534, 65_535]
TOO_LARGE = [65_536, 2**24 + 1, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64, 10**400]
ODD: list[Any] = [
    *(-1, -2, -65_535, -(2**31), -(2**63), -(2**64)),
    *(0.5, 1.0, 1e300, -0.0, float("inf"), float("-inf"), float("nan"), 5e-324),
    *(True, False, None, "", "1", "conv", [], [1], [[1]], {}, {"op": "relu"}),
]


def number(rng: random.Random) -> Any:
    return rng.choice(rng.choice([SMALL, SMALL, LARGE, TOO_LARGE, ODD]))


def fitting(rng: random.Random) -> int:
    """Draw a number that a setting could have."""
    return rng.choice(rng.choice([TINY, TINY, SMALL, LARGE]))


def slots(value: Any) -> Iterator[tuple[Any, Any]]:
    """Walk over everything in JSON, as containers and keys."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from slots(value[key])


TYPES = {"uint8": "U8", "int8": "I8", "float32": "F32"}
MOST_FITTED = 60
"""Nodes: each is checked with those before it."""


def refit(rng: random.Random, parts: Parts) -> None:
    """Add the tensors that all nodes' settings ask for, as far as these make sense and are not huge."""
    if len(parts.about["nodes"]) > MOST_FITTED:
        raise ValueError("it would take long")
    size, nodes = tuple(parts.about["input"]), []  # type: tuple[int, int, int], list[Node]
    shapes = [Shape(*size)]
    fitted: dict[str, Tensor] = {}
    for at, described in enumerate(parts.about["nodes"]):
        kind = OPS[described["op"]]
        settings: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in described.items()
        }
        del settings["op"]
        inputs = [shapes[value] for value in settings["inputs"]]
        names = [name for name in kind.tensor_fields() if f"{at}.{name}" in parts.tensors or kind in (Affine, PRelu)]
        if kind is Conv and (not inputs[0].is_real or not {"weight", "int8"} & set(names)):
            names = ["bits", "scale", *(name for name in names if name in ("middle", "bias"))]
        arrays = {name: draw_array(rng, kind(**settings), name, inputs[0]) for name in names}
        fitted |= {
            f"{at}.{name}": Tensor(TYPES[array.dtype.name], list(array.shape), array.tobytes())
            for name, array in arrays.items()
        }
        nodes.append(kind(**(settings | arrays)))
        shapes = list(Model(size, tuple(nodes)).shapes)
    answers = prod(shapes[-1][:3])
    if parts.about.pop("labels", None) and answers <= 1000:
        parts.about["labels"] = [f"class {i}" for i in range(answers)]
    parts.tensors = fitted


def draw_array(rng: random.Random, node: Node, name: str, given: Shape) -> NDArray[Any]:
    """Draw what an array of a node has to be, whatever its numbers are."""
    shape: tuple[int, ...] = (given.channels,)
    bits = 0
    if isinstance(node, Conv):
        shape = (node.filters,)
        if name in ("weight", "int8"):
            shape = (node.filters, *node.kernel, given.channels // node.groups)
        if name == "bits":
            bits = node.taps(given)
    if name == "flip":
        shape, bits = (), given.channels
    if prod(shape) * max(bits, 1) > 1 << 20:
        raise ValueError("it would take long")
    if bits:
        ones = np.frombuffer(rng.randbytes(prod(shape) * bits), dtype=np.uint8) < 128
        return pack(ones.reshape(*shape, bits))
    numbers = np.frombuffer(rng.randbytes(prod(shape)), dtype=np.uint8).reshape(shape)
    return numbers.view(np.int8) if name == "int8" else numbers.astype(np.float32) / 64 - 2


# Changes of what a file says, which keep it a safetensors file.


def change_any_value(rng: random.Random, parts: Parts) -> None:
    container, key = rng.choice(list(slots(parts.about)))
    container[key] = number(rng)


SETTINGS = {"kernel": 2, "stride": 2, "padding": 4, "dilation": 2, "size": 2}
SETTINGS |= dict.fromkeys(["filters", "groups", "pad_value", "count_padding", "low", "high"], 1)
"""How many numbers a setting has."""


def change_setting(rng: random.Random, parts: Parts) -> None:
    """Change one of a node's settings to what it could be."""
    set_numbers(rng, parts, fitting)


def nudge_settings(rng: random.Random, parts: Parts) -> None:
    """Change a few settings so little that the model may still make sense."""
    for _ in range(rng.choice([1, 2, 3, 5, 8])):
        set_numbers(rng, parts, lambda rng: rng.choice([0, 1, 1, 1, 2, 2, *TINY]))


def set_numbers(rng: random.Random, parts: Parts, draw: Callable[[random.Random], int]) -> None:
    described, name = rng.choice(
        [
            (described, name)
            for described in parts.about["nodes"]
            for name in OPS[described["op"]].setting_names()
            if name in SETTINGS
        ]
    )
    if name in ("pad_value", "count_padding") and rng.random() < 0.8:
        described[name] = rng.randrange(2)
    elif SETTINGS[name] == 1:
        described[name] = draw(rng)
    else:
        values = described.get(name, [int(name != "padding")] * SETTINGS[name])
        described[name] = [draw(rng) if rng.random() < 0.5 else value for value in values]


def change_size(rng: random.Random, parts: Parts) -> None:
    parts.about["input"][rng.randrange(3)] = fitting(rng)


def change_reference(rng: random.Random, parts: Parts) -> None:
    nodes = parts.about["nodes"]
    at = rng.randrange(len(nodes))
    choices = [at - 1, at, at + 1, at + 2, len(nodes), -1, 0, 2**16, 2**63, 2**64, rng.randrange(len(nodes) + 1)]
    nodes[at]["inputs"] = rng.choices(choices, k=rng.choice([0, 1, 1, 2, 3]))


def change_inputs(rng: random.Random, parts: Parts) -> None:
    """Connect a node to many inputs, a few of them wrong."""
    at = rng.randrange(len(parts.about["nodes"]))
    inputs = rng.choices(range(at + 1), k=rng.choice([2, 10, 1000, 65_535, 65_536, 200_000]))
    parts.about["nodes"][at].update(op="concat", inputs=inputs)


def add_node(rng: random.Random, parts: Parts) -> None:
    """Add a step at the end, one that needs no tensors."""
    nodes = parts.about["nodes"]
    last = len(nodes)
    pair = [rng.choice(TINY), rng.choice(TINY)]
    added: list[dict[str, Any]] = [
        {"op": "relu", "inputs": [last]},
        {"op": "sign", "inputs": [last]},
        {"op": "flatten", "inputs": [last]},
        {"op": "clamp", "inputs": [last], "low": rng.choice([-1, 0, 1e300]), "high": rng.choice([1, -1, 3e38])},
        {"op": "add", "inputs": [last, rng.randrange(last + 1)]},
        {"op": "concat", "inputs": [last, rng.randrange(last + 1)]},
        {"op": "max_pool", "inputs": [last], "kernel": pair, "stride": pair},
        {"op": "avg_pool", "inputs": [last], "kernel": pair, "padding": [1, 1, 1, 1]},
        {"op": "adaptive_avg_pool", "inputs": [last], "size": [fitting(rng), fitting(rng)]},
        {"op": "adaptive_max_pool", "inputs": [last], "size": pair},
    ]
    nodes.append(rng.choice(added))


def double_node(rng: random.Random, parts: Parts) -> None:
    """Put a copy of a node at the end, with its tensors or without."""
    nodes = parts.about["nodes"]
    at = rng.randrange(len(nodes))
    nodes.append(nodes[at])
    if rng.random() < 0.8:
        copied = {name: tensor for name, tensor in parts.tensors.items() if name.startswith(f"{at}.")}
        for name, tensor in copied.items():
            parts.tensors[name.replace(f"{at}.", f"{len(nodes) - 1}.", 1)] = tensor


def drop_node(rng: random.Random, parts: Parts) -> None:
    parts.about["nodes"].pop(rng.randrange(len(parts.about["nodes"])))


def swap_nodes(rng: random.Random, parts: Parts) -> None:
    rng.shuffle(parts.about["nodes"])


def add_many_nodes(rng: random.Random, parts: Parts) -> None:
    """Add a row of nodes that need little memory, or many values that are all concatenated at the end."""
    nodes = parts.about["nodes"]
    first = len(nodes)
    count = rng.choice([100, 1000, 3000, 9_999 - first, 10_000 - first, 10_001 - first, 30_000])
    if rng.random() < 0.5:
        nodes.extend({"op": "relu", "inputs": [first + i]} for i in range(count))
    else:
        nodes.append({"op": "adaptive_avg_pool", "inputs": [first], "size": [1, 1]})
        nodes.extend({"op": "relu", "inputs": [first + 1]} for _ in range(count - 2))
        nodes.append({"op": "concat", "inputs": list(range(first + 1, first + count))})


def change_op(rng: random.Random, parts: Parts) -> None:
    described = rng.choice(parts.about["nodes"])
    described["op"] = rng.choice([*OPS, *OPS, "", "Conv", "conv2d", "conv\0", "\ud800", "x" * 5000, None, 1, [], {}])


def add_entry(rng: random.Random, parts: Parts) -> None:
    container = rng.choice([parts.about, *parts.about["nodes"]])
    names = ["", "x" * 5000, "\ud800", "\n\x1b[2J", "op", "name", "bits", "weight", "OP", "self", "settings", "inputs"]
    names += ["__class__", "version", "labels", "raster", "temperature", "kernel", "stride", "low"]
    container[rng.choice(names)] = number(rng)


def drop_entry(rng: random.Random, parts: Parts) -> None:
    container = rng.choice([parts.about, *parts.about["nodes"]])
    container.pop(rng.choice(list(container)))


def change_name(rng: random.Random, parts: Parts) -> None:
    names = ["", "é" * 1000, "x" * 1001, "\ud800", "a\nb", "\x1b[2J", "\0", "'", 5, None, ["x"]]
    rng.choice(parts.about["nodes"])["name"] = rng.choice(names)


def change_labels(rng: random.Random, parts: Parts) -> None:
    labels: list[Any] = list(parts.about.get("labels", ["a", "b"]))
    changes: list[Any] = [
        [],
        labels[:-1],
        [*labels, "one more"],
        [*labels[:-1], labels[0]],
        [*labels[:-1], rng.choice(["", "\ud800", "é" * 1001, None, 3, True, [], ["a"], {}, "\0", "\n"])],
        [str(i) for i in range(100_000)],
        dict.fromkeys(labels, 1),
        "".join(map(str, labels)),
        number(rng),
    ]
    parts.about["labels"] = rng.choice(changes)


def change_raster(rng: random.Random, parts: Parts) -> None:
    raster: dict[str, Any] = {"size": 9, "margin": 0.05, "pen": 0.1}
    raster[rng.choice([*raster, "colour"])] = number(rng)
    if rng.random() < 0.3:
        raster.pop(rng.choice(list(raster)))
    parts.about["raster"] = rng.choice([raster, raster, list(raster), "size", number(rng)])


def change_temperature(rng: random.Random, parts: Parts) -> None:
    parts.about[rng.choice(["temperature", "views_temperature"])] = rng.choice(
        [0, -1, 1, 1e-300, 1e300, 5e-324, number(rng), None, [1], "1"]
    )


def change_whole(rng: random.Random, parts: Parts) -> None:
    about, nodes = parts.about, parts.about["nodes"]
    changed: dict[str, list[Any]] = {
        "version": [0, 2, True, 1.0, "1", None, [1], 10**400],
        "input": [[], [1], [1, 1, 1, 1], "111", None, {}, 5],
        "nodes": [[], None, "relu", 5, [nodes], [None], [[]], [5], ["relu"], dict(enumerate(nodes))],
    }
    name = rng.choice(list(changed))
    whole: list[Any] = [about | {name: rng.choice(changed[name])}] * 8
    parts.about = rng.choice([*whole, [about], nodes, dict(enumerate(nodes)), None, 1, "about", {}, []])


def nest_deeply(rng: random.Random, parts: Parts) -> None:
    depth = rng.choice([50, 127, 128, 300, *range(900, 1010, 5), 5000, 100_000])
    parts.replaced["nested"] = rng.choice(["[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth, "[" * depth])
    if rng.random() < 0.1:
        parts.about = "nested"
    else:
        container, key = rng.choice(list(slots(parts.about)))
        container[key] = "nested"


def write_odd_json(rng: random.Random, parts: Parts) -> None:
    texts = [
        "",
        " ",
        "NaN",
        "-Infinity",
        "1e999",
        "0x10",
        "01",
        "'x'",
        "[1,]",
        "9" * 5000,
        "-",
        '"\\x"',
        '"\t"',
        "\0",
        "\ufeff",
    ]
    parts.replaced["odd"] = rng.choice(texts)
    container, key = rng.choice(list(slots(parts.about)))
    container[key] = "odd"


def write_long_header(rng: random.Random, parts: Parts) -> None:
    """Say a lot in few bytes, or little in many."""
    parts.replaced["long"] = rng.choice(
        [
            "[" + "[]," * 900_000 + "[]]",
            "[" + "{}," * 3_000_000 + "{}]",
            "[" + "0," * 2_000_000 + "0]",
            '[{"op":"concat","inputs":[' + "0," * 2_000_000 + "0]}]",
            "[" + ",".join(['{"op":"concat","inputs":[' + "0," * 65_534 + "0]}"] * 30) + "]",
            '[{"op":"relu","inputs":[0]}' + ',{"op":"relu","inputs":[0]}' * 80_000 + "]",
            '"' + "x" * 4_000_000 + '"',
            " " * 5_000_000 + "1",
            "{" + ",".join(f'"{i}":0' for i in range(200_000)) + "}",
        ]
    )
    key = rng.choice(["nodes", "nodes", "labels", "input", "raster", "temperature", "version", "more"])
    parts.about[key] = "long"


def drop_tensor(rng: random.Random, parts: Parts) -> None:
    if parts.tensors:
        parts.tensors.pop(rng.choice(list(parts.tensors)))


def add_tensor(rng: random.Random, parts: Parts) -> None:
    node = rng.randrange(len(parts.about["nodes"]) + 2)
    field = rng.choice(["weight", "bits", "scale", "middle", "bias", "threshold", "flip", "slope", "shift", "name", ""])
    name = rng.choice([f"{node}.{field}", f"0{node}.{field}", field, "x" * 5000, "", "\n\x1b[2J", "é"])
    count = rng.choice([0, 1, 4, 9, 70])
    is_bytes = field in ("bits", "flip")
    parts.tensors[name] = Tensor("U8" if is_bytes else "F32", [count], rng.randbytes(count if is_bytes else 4 * count))


def add_many_tensors(rng: random.Random, parts: Parts) -> None:
    for i in range(rng.choice([100, 5000, 50_000])):
        parts.tensors[f"{i}.more"] = Tensor("U8", [0], b"")


def rename_tensor(rng: random.Random, parts: Parts) -> None:
    if parts.tensors:
        old, new = rng.choice(list(parts.tensors)), rng.choice(list(parts.tensors))
        at, field = rng.choice([old, new]).split(".")[0], rng.choice([old, new]).split(".")[-1]
        parts.tensors[f"{at}.{field}"] = parts.tensors.pop(old)


def swap_tensors(rng: random.Random, parts: Parts) -> None:
    if parts.tensors:
        a, b = rng.choice(list(parts.tensors)), rng.choice(list(parts.tensors))
        parts.tensors[a], parts.tensors[b] = parts.tensors[b], parts.tensors[a]


BITS = {"F64": 64, "I64": 64, "U64": 64, "C64": 64, "F32": 32, "I32": 32, "U32": 32, "F16": 16, "BF16": 16, "I16": 16}
BITS |= {"U16": 16, "I8": 8, "U8": 8, "BOOL": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F4": 4, "F6_E2M3": 6}


def retype_tensor(rng: random.Random, parts: Parts) -> None:
    """Change a tensor's type, to one of the same bytes or of the same shape."""
    if not parts.tensors:
        return
    tensor = rng.choice(list(parts.tensors.values()))
    old, tensor.dtype = tensor.dtype, rng.choice([*BITS, "f32", "F128", ""])
    bits = BITS.get(tensor.dtype, 8)
    if rng.random() < 0.5:
        tensor.data = rng.randbytes(prod(tensor.shape) * bits // 8)
    elif tensor.shape and BITS.get(old, 8) != bits:
        tensor.shape = [len(tensor.data) * 8 // bits]


def reshape_tensor(rng: random.Random, parts: Parts) -> None:
    if not parts.tensors:
        return
    tensor = rng.choice(list(parts.tensors.values()))
    shape, size = tensor.shape, prod(tensor.shape)
    changes = [[size], [1, *shape], [*shape, 1], shape[::-1], [size, 1], [0, 2**63], [2**64, 0], [2**32, 2**32], [-1]]
    changes += [[], [1] * 100, [0], [2**63 - 1], [*shape[:-1], shape[-1] + 1] if shape else [2]]
    tensor.shape = rng.choice(changes)


def resize_tensor(rng: random.Random, parts: Parts) -> None:
    if not parts.tensors:
        return
    tensor = rng.choice(list(parts.tensors.values()))
    if tensor.shape:
        axis = rng.randrange(len(tensor.shape))
        tensor.shape = [*tensor.shape]
        tensor.shape[axis] = rng.choice([0, max(tensor.shape[axis] - 1, 0), tensor.shape[axis] + 1])
        size = prod(tensor.shape) * BITS.get(tensor.dtype, 8) // 8
        tensor.data = (tensor.data * 3 + bytes(100))[:size].ljust(size, b"\0") if size < 1 << 20 else tensor.data


def change_numbers(rng: random.Random, parts: Parts) -> None:
    """Put numbers into a tensor that are not finite, tiny or huge."""
    tensors = [tensor for tensor in parts.tensors.values() if tensor.dtype == "F32" and len(tensor.data) >= 4]
    if tensors:
        tensor = rng.choice(tensors)
        values = np.frombuffer(tensor.data[: len(tensor.data) // 4 * 4], dtype="<f4").copy()
        bad = np.float32(rng.choice([np.nan, np.inf, -np.inf, 3.4e38, -3.4e38, 1e-45, -0.0, 0.0]))
        values[:: rng.choice([1, 2, len(values)])] = bad
        tensor.data = values.tobytes()


def change_bits(rng: random.Random, parts: Parts) -> None:
    """Set bits after a row's last one, or any."""
    tensors = [tensor for tensor in parts.tensors.values() if tensor.dtype == "U8" and tensor.data and tensor.shape]
    if tensors:
        tensor = rng.choice(tensors)
        data = bytearray(tensor.data)
        row = max(tensor.shape[-1], 1)
        at = rng.choice([len(data) - 1, min(row, len(data)) - 1, rng.randrange(len(data))])
        data[at] |= rng.choice([0x80, 0xFF, 0x40])
        tensor.data = bytes(data)


def change_metadata(rng: random.Random, parts: Parts) -> None:
    parts.metadata[rng.choice(["format", "", "dabnet", "x" * 5000])] = rng.choice(["", "pt", "{}", "[", "\0", "null"])


CHANGES: list[tuple[Callable[[random.Random, Parts], None], int]] = [
    (change_any_value, 6),
    (change_setting, 12),
    (nudge_settings, 60),
    (change_size, 6),
    (change_reference, 4),
    (change_inputs, 1),
    (add_node, 10),
    (double_node, 3),
    (drop_node, 3),
    (swap_nodes, 1),
    (change_op, 4),
    (add_entry, 3),
    (drop_entry, 3),
    (change_name, 2),
    (change_raster, 2),
    (change_temperature, 2),
    (change_whole, 2),
    (nest_deeply, 3),
    (write_odd_json, 2),
]
"""What may be done, and how often."""
LATE_CHANGES = [
    drop_tensor,
    add_tensor,
    rename_tensor,
    swap_tensors,
    retype_tensor,
    reshape_tensor,
    resize_tensor,
    change_numbers,
    change_bits,
    change_labels,
    change_metadata,
]
"""They come when all tensors fit."""
RARE_CHANGES = [add_many_nodes, write_long_header, add_many_tensors]
"""They take long: one of a hundred files has one."""


# Changes of a file's bytes.


def cut(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.choice([0, 1, 7, 8, 9, len(data) - 1, rng.randrange(len(data) + 1)])]


def flip_bits(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 10, 100])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def change_bytes(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    start = rng.randrange(len(changed))
    for at in range(start, min(start + rng.choice([1, 1, 4, 16]), len(changed))):
        changed[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, *b'"\\[]{},:0-9e.', rng.randrange(256)])
    return bytes(changed)


def change_header_bytes(rng: random.Random, data: bytes) -> bytes:
    """Change a few of the header's characters, digits more than others."""
    length = min(int.from_bytes(data[:8], "little"), len(data) - 8)
    digits = [at for at in range(8, 8 + length) if chr(data[at]).isdigit()]
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.choice(digits) if digits and rng.random() < 0.7 else 8 + rng.randrange(max(length, 1))
        changed[min(at, len(changed) - 1)] = rng.choice(b'0123456789-.e[]{},:"\\ \xff')
    return bytes(changed)


def change_length(rng: random.Random, data: bytes) -> bytes:
    length = int.from_bytes(data[:8], "little")
    lengths = [0, 1, 2, length - 1, length + 1, length + 8, len(data), len(data) - 8, len(data) - 7]
    lengths += [100_000_000, 100_000_001, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 8, 2**64 - 1, rng.randrange(2**64)]
    return struct.pack("<Q", rng.choice(lengths)) + data[8:]


def move_bytes(rng: random.Random, data: bytes) -> bytes:
    """Drop, double or insert a run of bytes."""
    start, count = rng.randrange(len(data)), rng.choice([1, 4, 8, 100])
    chosen = data[start : start + count]
    return data[:start] + rng.choice([b"", chosen * 2, rng.randbytes(count) + chosen]) + data[start + count :]


def add_bytes(rng: random.Random, data: bytes) -> bytes:
    return data + rng.choice([b"\0", b"\0" * 64, rng.randbytes(100), data])


def change_header(rng: random.Random, data: bytes) -> bytes:
    """Write another header: no metadata, metadata of another kind, tensors that overlap or lie outside, no JSON."""
    length = int.from_bytes(data[:8], "little")
    header, rest = json.loads(data[8 : 8 + length]), data[8 + length :]
    dabnet = header["__metadata__"]
    described = dabnet["dabnet"]
    texts: list[Any] = [None, {}, [], "x", {"dabnet": None}, {"dabnet": {}}, {"dabnet": [1]}, {"DABNET": described}]
    texts += [
        {"dabnet": text} for text in ("", "{", "null", "\ufeff" + described, "\ud800", described + "x", "9" * 5000)
    ]
    header["__metadata__"] = rng.choice([*texts, dabnet, dabnet])
    if rng.random() < 0.2:
        del header["__metadata__"]
    entries = [entry for name, entry in header.items() if name != "__metadata__"]
    if entries and rng.random() < 0.5:
        entry = rng.choice(entries)
        numbers = [0, 1, len(rest), len(rest) + 1, 2**63, 2**64 - 1, 2**64, -1, 0.5, None]
        entry[rng.choice(["data_offsets", "shape"])] = rng.choices(numbers, k=rng.choice([0, 1, 2, 2, 3]))
    text = json.dumps(header)
    if rng.random() < 0.2:
        text = rng.choice([text[1:-1], f"[{text}]", f" {text}", text + " " * 9, text + "\0", text + text, text[:-1]])
    encoded = text.encode(rng.choice(["utf-8"] * 8 + ["utf-16", "utf-32"]))
    if rng.random() < 0.1:
        encoded = encoded.replace(b"relu", b"re\xff\xfe").replace(b"conv", b"co\xc3(")
    return with_header(encoded, rest)


BYTE_CHANGES: list[Callable[[random.Random, bytes], bytes]] = [
    cut,
    flip_bits,
    change_bytes,
    change_header_bytes,
    change_length,
    move_bytes,
    add_bytes,
    change_header,
]


def make_case(bases: list[bytes], seed: int, index: int) -> Case:
    """Return the file of an index, and what was done to make it."""
    rng = random.Random(f"{seed} {index}")
    data = rng.choice(bases)
    if rng.random() < 0.2:
        change_data = rng.choice(BYTE_CHANGES)
        return change_data.__name__, change_data(rng, data)
    parts = split(data)
    changes, weights = zip(*CHANGES, strict=True)
    chosen = rng.choices(changes, weights, k=rng.choice([0, 1, 1, 1, 2, 3]))
    if rng.random() < 0.01:
        chosen.append(rng.choice(RARE_CHANGES))
    if rng.random() < 0.7:
        chosen.append(refit)
    if len(chosen) < 2 or rng.random() < 0.2:
        chosen += rng.choices(LATE_CHANGES, k=rng.choice([1, 1, 2]))
    done = []
    for change in chosen:
        try:
            change(rng, parts)
            done.append(change.__name__)
        except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError):
            pass  # the changes before have left nothing that it could change
    return ", ".join(done), put_together(parts)


# Trying them.


def try_file(data: bytes) -> str:
    """Open and run a file; say how far it came. Any other exception is a fault of the core or of what is around it."""
    try:
        return [open_and_run(data, kernels) for kernels in kernel_names()][-1]
    except NonFiniteError:
        return "run"
    except ModelFormatError as refusal:
        sentence = str(refusal)
        assert sentence.isprintable(), f"what it says cannot be printed: {sentence!r}"
        assert 10 < len(sentence) <= MAX_SENTENCE, f"what it says is {len(sentence)} characters long"
        return "too long" if "multiply-adds" in sentence else "refused"


def open_and_run(data: bytes, kernels: str) -> str:
    with mock.patch.dict(os.environ, {KERNELS_VARIABLE: kernels}):
        session = Session(data, max_memory=MAX_MEMORY, max_work=MAX_WORK)
    assert session.kernels == kernels
    assert session.memory <= MAX_MEMORY
    assert session.work <= MAX_WORK
    sketch = np.random.default_rng(0).standard_normal((1, *session.input_size), dtype=np.float32)
    answers = session.run(sketch)
    assert answers.shape == (1, session.answers), f"it answers {answers.shape}"
    assert not session.labels or len(session.labels) == session.answers
    return "run"


@dataclass
class Report:
    """What a run has found."""

    outcomes: Counter[str]
    slowest: tuple[float, int, str]
    """Seconds, index and what was done."""
    growth: int
    """Bytes that the process took at most, above what it took at the start."""
    failures: list[str]
    seconds: float

    def __str__(self) -> str:
        total = self.outcomes.total()
        slowest, index, done = self.slowest
        return (
            f"{total:,} files in {self.seconds:.0f} s ({total / self.seconds:.0f} per second): "
            f"{self.outcomes['run']:,} opened and run, {self.outcomes['too long']:,} refused for their work, "
            f"{self.outcomes['refused']:,} refused otherwise, {len(self.failures)} failed. "
            f"Slowest: {slowest:.2f} s (file {index}: {done}). Memory grew by {self.growth / (1 << 20):.0f} MB."
        )


def fuzz(count: int, seed: int = 0, seconds: float = float("inf"), folder: Path = FOLDER) -> Report:
    """Try files 0 to `count` of a seed, as many as there is time for."""
    bases = [to_bytes(model) for model in base_models()]
    for data in bases:
        assert try_file(data) == "run"
    folder.mkdir(parents=True, exist_ok=True)
    current = folder / "current.safetensors"
    report = Report(Counter(), (0.0, 0, ""), 0, [], 0.0)
    memory = peak_memory()
    start = shown = time.perf_counter()
    for index in range(count):
        done, data = make_case(bases, seed, index)
        current.write_bytes(data)
        cpu = time.thread_time()
        try:
            outcome = try_file(data)
        except Exception as problem:
            outcome = "failed"
            what = traceback.format_exception_only(problem)[-1].strip()
            report.failures.append(f"seed {seed}, file {index} ({done}): {what[:300]}")
        cpu = time.thread_time() - cpu
        if cpu > MAX_SECONDS:
            outcome = "failed"
            report.failures.append(f"seed {seed}, file {index} ({done}): it took {cpu:.1f} s")
        report.outcomes[outcome] += 1
        report.slowest = max(report.slowest, (cpu, index, done))
        if outcome == "failed":
            current.replace(folder / f"seed-{seed}-file-{index}.safetensors")
        report.growth = peak_memory() - memory
        now = time.perf_counter()
        report.seconds = now - start
        if now - shown > 10:
            shown = now
            print(report, flush=True)
        if report.seconds > seconds:
            break
    if report.growth > MAX_GROWTH:
        report.failures.append(f"memory grew by {report.growth:,} bytes, and may by {MAX_GROWTH:,}")
    current.unlink(missing_ok=True)
    return report


def peak_memory() -> int:
    """Return the bytes that this process took at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20_000, help="how many files to try")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no file after this many")
    parser.add_argument("--write", type=Path, help="only write the models to start from into this folder")
    arguments = parser.parse_args()
    if arguments.write:
        arguments.write.mkdir(parents=True, exist_ok=True)
        for number, model in enumerate(base_models()):
            (arguments.write / f"{number}.safetensors").write_bytes(to_bytes(model))
        return
    report = fuzz(arguments.count, arguments.seed, arguments.seconds)
    print(report)
    for failure in report.failures:
        print(failure)
    if report.failures:
        sys.exit(f"Files that failed are in {FOLDER}.")


if __name__ == "__main__":
    main()
