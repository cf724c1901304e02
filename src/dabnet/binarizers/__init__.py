"""From real numbers to two values: the optimal split, binary weights and binary activations, with their gradients.

`optimal_split` works on numpy arrays and needs no torch; everything else does, and imports it when first used.
"""

from typing import TYPE_CHECKING

from dabnet import _lazy
from dabnet.binarizers.split import Split, optimal_split

if TYPE_CHECKING:
    from dabnet.binarizers.activations import LevelSign, RSign, Sign, WholeNumbers, sign
    from dabnet.binarizers.settings import BinarySettings
    from dabnet.binarizers.weights import TwoValues, binarize, two_values

__all__ = [
    "BinarySettings",
    "LevelSign",
    "RSign",
    "Sign",
    "Split",
    "TwoValues",
    "WholeNumbers",
    "binarize",
    "optimal_split",
    "sign",
    "two_values",
]

__getattr__ = _lazy.attributes(
    __name__,
    {
        "BinarySettings": "dabnet.binarizers.settings",
        "WholeNumbers": "dabnet.binarizers.activations",
        "LevelSign": "dabnet.binarizers.activations",
        "RSign": "dabnet.binarizers.activations",
        "Sign": "dabnet.binarizers.activations",
        "TwoValues": "dabnet.binarizers.weights",
        "binarize": "dabnet.binarizers.weights",
        "sign": "dabnet.binarizers.activations",
        "two_values": "dabnet.binarizers.weights",
    },
)


def __dir__() -> list[str]:
    return __all__
