"""Recognition of more drawings than one process should: a callable for Arrow batches, and two engines that run it."""

from typing import TYPE_CHECKING

from dabnet import _lazy

if TYPE_CHECKING:
    from dabnet.distributed.recognize_batch import RecognizeBatch

__all__ = ["RecognizeBatch"]

__getattr__ = _lazy.attributes(__name__, {"RecognizeBatch": "dabnet.distributed.recognize_batch"})


def __dir__() -> list[str]:
    return __all__
