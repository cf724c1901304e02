"""dabnet: neural networks that recognize free-hand sketches with one bit per weight.

What stands here is imported when it is first used: nothing loads torch that does not need it.
"""

from typing import TYPE_CHECKING

from dabnet import _lazy

if TYPE_CHECKING:
    from dabnet import binarizers as binarizers
    from dabnet import errors as errors
    from dabnet import runtime as runtime
    from dabnet import sketches as sketches
    from dabnet.exporting.pack import export
    from dabnet.exporting.summary import summary
    from dabnet.exporting.verify import verify
    from dabnet.networks.catalog import build
    from dabnet.networks.convert import binarize_, constrain_
    from dabnet.runtime.recognizer import Recognizer
    from dabnet.training.opening import load

__version__ = "0.2.0"

__all__ = [
    "Recognizer",
    "__version__",
    "binarize_",
    "binarizers",
    "build",
    "constrain_",
    "errors",
    "export",
    "load",
    "runtime",
    "sketches",
    "summary",
    "verify",
]

__getattr__ = _lazy.attributes(
    __name__,
    {
        "Recognizer": "dabnet.runtime.recognizer",
        "binarize_": "dabnet.networks.convert",
        "binarizers": "dabnet.binarizers",
        "build": "dabnet.networks.catalog",
        "constrain_": "dabnet.networks.convert",
        "errors": "dabnet.errors",
        "export": "dabnet.exporting.pack",
        "load": "dabnet.training.opening",
        "runtime": "dabnet.runtime",
        "sketches": "dabnet.sketches",
        "summary": "dabnet.exporting.summary",
        "verify": "dabnet.exporting.verify",
    },
)


def __dir__() -> list[str]:
    return __all__
