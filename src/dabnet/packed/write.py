"""Writes packed models as files: safetensors, so that they are readable from any language and never execute anything.

The header's metadata has one entry, `dabnet`: JSON with the format's version, the input's size, the nodes, the labels,
how to rasterize and the temperatures. Arrays are tensors named "<node>.<array>". docs/file-format.md explains every
byte.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import save

from dabnet.packed.nodes import Conv, Quantize

if TYPE_CHECKING:
    from dabnet.packed.model import Model

NEWEST_VERSION = 3
"""The newest version of the format that a model may need."""


def to_bytes(model: Model) -> bytes:
    """Return a model as the bytes of its file; the same model always gives the same bytes."""
    return write(model, ensure_ascii=False)


def needed_version(model: Model) -> int:
    """Return the oldest version of the format that has all that a model needs.

    Version 3 added whole numbers, version 2 weights of 8 bits and a temperature for views.
    """
    if any(isinstance(node, Quantize) for node in model.nodes):
        return NEWEST_VERSION
    has_int8 = any(isinstance(node, Conv) and node.int8 is not None for node in model.nodes)
    return 2 if has_int8 or model.views_temperature != 1 else 1


def write(model: Model, *, ensure_ascii: bool) -> bytes:
    """Return a model as the bytes of a file, if need be with escapes for what UTF-8 cannot hold."""
    about: dict[str, Any] = {"version": needed_version(model), "input": list(model.input_size)}
    about["nodes"] = [{"op": node.OP, **node.settings()} for node in model.nodes]
    if model.labels:
        about["labels"] = list(model.labels)
    if model.raster is not None:
        about["raster"] = {
            name: value if name == "size" else float(value)
            for name, value in sorted(model.raster.items(), key=lambda item: _RASTER_ORDER.get(item[0], 9))
        }
    if model.temperature != 1:
        about["temperature"] = float(model.temperature)
    if model.views_temperature != 1:
        about["views_temperature"] = float(model.views_temperature)
    tensors = {
        f"{at}.{name}": np.ascontiguousarray(found)
        for at, node in enumerate(model.nodes)
        for name, found in node.arrays()
    }
    text = json.dumps(about, ensure_ascii=ensure_ascii, separators=(",", ":"))
    return save(tensors, {"dabnet": text})


_RASTER_ORDER = {"size": 0, "margin": 1, "pen": 2}
