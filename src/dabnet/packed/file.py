"""Reads packed models from files. What makes sense is checked in one place, the core (native/model)."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from dabnet.packed.core import check_bytes
from dabnet.packed.data import DEFAULT_MAX_MEMORY, read_bytes
from dabnet.packed.model import Model
from dabnet.packed.nodes import OPS
from dabnet.packed.write import to_bytes

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray

__all__ = ["from_bytes", "read_model", "to_bytes"]


def read_model(source: str | PathLike[str] | bytes, max_memory: int = DEFAULT_MAX_MEMORY) -> Model:
    """Read a packed model from a file, or a file's bytes, or by the name `default`, which is the one that ships.

    A `ModelFormatError` says what is wrong with a bad one.
    """
    data, path = read_bytes(source, max_memory)
    return from_bytes(data, path)


def from_bytes(data: bytes, path: str = "") -> Model:
    """Read a model from the bytes of its file, which was at `path`."""
    check_bytes(data, path)
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    about = json.loads(header.pop("__metadata__")["dabnet"])
    nodes = [_read_node(described) for described in about["nodes"]]
    for name, entry in header.items():
        at, _, tensor = name.partition(".")
        values = nodes[int(at)]
        values[OPS[values["op"]].tensor_fields()[tensor]] = _read_array(entry, data, start)
    return Model(
        tuple(about["input"]),
        tuple(OPS[values.pop("op")](**values) for values in nodes),
        tuple(about.get("labels", ())),
        about.get("raster"),
        float(about.get("temperature", 1)),
        float(about.get("views_temperature", 1)),
    )


def _read_node(described: dict[str, Any]) -> dict[str, Any]:
    """Return what a node is made of, lists as tuples and real numbers as floats."""
    reals = [item.name for item in fields(OPS[described["op"]]) if item.metadata.get("real")]
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in described.items()
    }
    return values | {name: float(values[name]) for name in reals}


def _read_array(entry: dict[str, Any], data: bytes, start: int) -> NDArray[Any]:
    begin, end = entry["data_offsets"]
    dtype: np.dtype[Any] = np.dtype({"F32": "<f4", "I8": "i1", "U8": "u1"}[entry["dtype"]])
    count = (end - begin) // dtype.itemsize
    return np.frombuffer(data, dtype, count, start + begin).reshape(entry["shape"]).copy()
