"""Packed models as files: safetensors, so that they are readable from any language and never execute anything.

The header's metadata has one entry, `dabnet`: JSON with the format's version, the input's size, the nodes, the labels,
how to rasterize and the temperature. Arrays are tensors named "<node>.<field>". docs/file-format.md explains every
byte.
"""

from __future__ import annotations

import json
import math
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from dabnet.errors import ModelFormatError
from dabnet.packed.model import RASTER_SETTINGS, Model, is_text
from dabnet.packed.nodes import MAX_SIDE, OPS, Node
from dabnet.packed.shipped import find_model

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    from numpy.typing import NDArray

VERSION = 1
DEFAULT_MAX_MEMORY = 256 << 20
"""Bytes that a model may take, in the file and in memory, unless told otherwise."""
MAX_HEADER = 4 << 20
"""Bytes of a file's header: JSON takes up to thirty times as much memory as it has bytes."""


def to_bytes(model: Model) -> bytes:
    """Give a model as the bytes of its file; the same model always gives the same bytes."""
    about: dict[str, Any] = {"version": VERSION, "input": list(model.input_size)}
    about["nodes"] = [{"op": node.OP, **node.settings()} for node in model.nodes]
    if model.labels:
        about["labels"] = list(model.labels)
    if model.raster is not None:
        size, margin, pen = (model.raster[name] for name in RASTER_SETTINGS)
        about["raster"] = {"size": size, "margin": float(margin), "pen": float(pen)}
    if model.temperature != 1:
        about["temperature"] = float(model.temperature)
    tensors = {
        f"{at}.{name}": np.ascontiguousarray(found)
        for at, node in enumerate(model.nodes)
        for name, found in node.arrays()
    }
    text = json.dumps(about, ensure_ascii=False, separators=(",", ":"))
    return save(tensors, {"dabnet": text})


def read_model(source: str | PathLike[str] | bytes, max_memory: int = DEFAULT_MAX_MEMORY) -> Model:
    """Read a packed model from a file, or a file's bytes, or by the name `default`, which is the one that ships.

    A `ModelFormatError` says what is wrong with a bad one.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        return from_bytes(bytes(source))  # memory that was taken already
    path = find_model(source)
    try:
        if not path.is_file():  # but a folder, or a pipe, which has no end
            raise ModelFormatError(f"'{path}' is not a file that is there: check the path.")
        size = path.stat().st_size
        if size > max_memory:
            raise ModelFormatError(
                f"'{path}' has {size:,} bytes, and a model may take {max_memory:,}: raise max_memory if you trust it."
            )
        data = path.read_bytes()
    except OSError as problem:
        raise ModelFormatError(f"cannot read '{path}' ({problem.strerror}): check the path.") from None
    try:
        return from_bytes(data)
    except ModelFormatError as problem:
        raise ModelFormatError(f"'{path}' is not a packed model that can be used: {problem}") from None


def from_bytes(data: bytes) -> Model:
    """Read a model from the bytes of its file."""
    length = int.from_bytes(data[:8], "little")
    if MAX_HEADER < length <= len(data) - 8:
        raise ModelFormatError(f"its header has {length:,} bytes, and may have {MAX_HEADER:,}.")
    try:
        tensors = load(data)
        header = json.loads(data[8 : 8 + length])
    except KeyError as problem:
        raise ModelFormatError(f"it holds a tensor of type {problem}, and packed models have none.") from None
    except (SafetensorError, ValueError, RecursionError) as problem:
        raise ModelFormatError(f"it is not a safetensors file ({_short(problem)}).") from None
    try:
        about = json.loads(header["__metadata__"]["dabnet"])
    except (KeyError, TypeError, ValueError, RecursionError):
        raise ModelFormatError("it has no description of a model under 'dabnet' in its metadata.") from None
    try:
        return _parse_model(about, tensors)
    except ModelFormatError:
        raise
    except (TypeError, ValueError, KeyError, OverflowError, AttributeError, RecursionError) as problem:
        raise ModelFormatError(f"its description makes no sense ({_short(problem)}).") from None


def _parse_model(about: dict[str, Any], tensors: dict[str, NDArray[Any]]) -> Model:
    if not isinstance(about, dict):
        raise ModelFormatError("its description is not a JSON object.")
    if "settings" in about:
        raise ModelFormatError("it holds the weights of a network that is not packed yet: dabnet export packs it.")
    version = about.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version != VERSION:
        raise ModelFormatError(f"its format is version {version!r:.40}, and this dabnet reads {VERSION}.")
    if unknown := set(about) - {"version", "input", "nodes", "labels", "raster", "temperature"}:
        raise ModelFormatError(f"its description has an unknown entry, {min(unknown)!r:.40}.")
    if missing := {"input", "nodes"} - set(about):
        raise ModelFormatError(f"its description lacks {min(missing)!r}.")
    if not isinstance(about["nodes"], list):
        raise ModelFormatError("its nodes are not a list.")
    nodes = tuple(_parse_node(at, described, tensors) for at, described in enumerate(about["nodes"]))
    if tensors:
        raise ModelFormatError(f"no node uses its tensor {min(tensors)!r:.40}.")
    try:
        size = _integers(3)(about["input"])
    except ValueError:
        raise ModelFormatError("its input is not a list of channels, height and width.") from None
    labels = about.get("labels", [])
    if not isinstance(labels, list):
        raise ModelFormatError("its labels are not a list.")
    try:
        temperature = _number(about.get("temperature", 1.0))
    except (ValueError, OverflowError):
        raise ModelFormatError("its temperature is not a finite number.") from None
    raster = _parse_raster(about.get("raster"))
    return Model((size[0], size[1], size[2]), nodes, tuple(labels), raster, temperature)


def _parse_raster(found: Any) -> dict[str, float] | None:
    if found is None:
        return None
    try:
        if isinstance(found, dict) and set(found) == set(RASTER_SETTINGS):
            return {
                "size": _integer(found["size"]),
                "margin": _number(found["margin"]),
                "pen": _number(found["pen"]),
            }
    except (ValueError, OverflowError):
        pass
    raise ModelFormatError("its way to rasterize is not a size, a margin and a pen.")


def _parse_node(at: int, described: Any, tensors: dict[str, NDArray[Any]]) -> Node:
    if not isinstance(described, dict) or str(described.get("op")) not in OPS:
        op = described.get("op") if isinstance(described, dict) else described
        raise ModelFormatError(f"node {at} is {str(op)[:40]!r}, and that is no operation.")
    kind = OPS[described["op"]]
    known = {item.name: str(item.type) for item in fields(kind) if not item.metadata.get("array")}
    values: dict[str, Any] = {}
    for name, value in described.items():
        if name == "op":
            continue
        if name not in known:
            raise ModelFormatError(f"node {at}, {kind.OP}, has an unknown entry, {name[:40]!r}.")
        try:
            values[name] = _PARSERS[known[name]](value)
        except (TypeError, ValueError, OverflowError):
            raise ModelFormatError(f"node {at}, {kind.OP}: '{name}' cannot be {value!r:.40}.") from None
    for name in kind.array_names():
        if (found := tensors.pop(f"{at}.{name}", None)) is not None:
            values[name] = found
    for name, is_needed in kind.setting_names().items():
        if is_needed and name not in values:
            raise ModelFormatError(f"node {at}, {kind.OP}, lacks {name!r}.")
    return kind(**values)


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_SIDE:
        raise ValueError
    return value


def _integers(count: int | None) -> Callable[[Any], tuple[int, ...]]:
    def parse(value: Any) -> tuple[int, ...]:
        if not isinstance(value, list) or len(value) > MAX_SIDE or (count is not None and len(value) != count):
            raise ValueError
        return tuple(map(_integer, value))

    return parse


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError
    return float(value)


def _text(value: Any) -> str:
    if not is_text(value):
        raise ValueError
    return str(value)


_PARSERS: dict[str, Callable[[Any], Any]] = {
    "Pair": _integers(2),
    "Sides": _integers(4),
    "tuple[int, ...]": _integers(None),
    "int": _integer,
    "float": _number,
    "str": _text,
}
"""How a node's entry is read, by the type that its field declares."""


def _short(problem: BaseException) -> str:
    return (str(problem).splitlines() or [type(problem).__name__])[0][:120]
