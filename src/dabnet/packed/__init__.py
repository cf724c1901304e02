"""The packed model: what export writes and the runtime reads; without torch."""

from dabnet.packed.file import read_model, to_bytes
from dabnet.packed.model import Model
from dabnet.packed.nodes import Node, Shape
from dabnet.packed.shipped import find_model, is_packed, model_names

__all__ = ["Model", "Node", "Shape", "find_model", "is_packed", "model_names", "read_model", "to_bytes"]
