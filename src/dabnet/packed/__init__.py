"""The packed model: what export writes and the runtime reads; without torch."""

from dabnet.packed.file import read_model, to_bytes
from dabnet.packed.model import Model, Node, Shape

__all__ = ["Model", "Node", "Shape", "read_model", "to_bytes"]
