"""From real numbers to two values: the optimal split, binary weights and binary activations, with their gradients.

`optimal_split` works on numpy arrays and needs no torch; everything else does, and imports it when first used.
"""

from typing import TYPE_CHECKING

from dabnet import _lazy
from dabnet.binarizers.split import Split, optimal_split

if TYPE_CHECKING:
    from dabnet.binarizers.activations import sign
    from dabnet.binarizers.weights import TwoValues, binarize, two_values

__all__ = ["Split", "TwoValues", "binarize", "optimal_split", "sign", "two_values"]

__getattr__ = _lazy.attributes(
    __name__,
    {
        "TwoValues": "dabnet.binarizers.weights",
        "binarize": "dabnet.binarizers.weights",
        "sign": "dabnet.binarizers.activations",
        "two_values": "dabnet.binarizers.weights",
    },
)
