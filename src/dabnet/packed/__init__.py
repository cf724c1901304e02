"""The packed model: what export writes and the runtime reads; without torch."""

from typing import TYPE_CHECKING

from dabnet import _lazy

if TYPE_CHECKING:
    from dabnet.packed.file import read_model, to_bytes
    from dabnet.packed.model import Model
    from dabnet.packed.nodes import Node, Shape
    from dabnet.packed.shipped import find_model, is_packed, model_names

__all__ = ["Model", "Node", "Shape", "find_model", "is_packed", "model_names", "read_model", "to_bytes"]

# To run a file, the core needs none of it, nor numpy.
__getattr__ = _lazy.attributes(
    __name__,
    {
        "Model": "dabnet.packed.model",
        "Node": "dabnet.packed.nodes",
        "Shape": "dabnet.packed.nodes",
        "find_model": "dabnet.packed.shipped",
        "is_packed": "dabnet.packed.shipped",
        "model_names": "dabnet.packed.shipped",
        "read_model": "dabnet.packed.file",
        "to_bytes": "dabnet.packed.file",
    },
)
