"""Recognizing with packed models; without torch."""

from typing import TYPE_CHECKING

from dabnet import _lazy
from dabnet.runtime.session import Session

if TYPE_CHECKING:
    from dabnet.runtime.recognizer import Recognizer

__all__ = ["Recognizer", "Session"]

# A Session alone needs no pictures, and so not Pillow.
__getattr__ = _lazy.attributes(__name__, {"Recognizer": "dabnet.runtime.recognizer"})


def __dir__() -> list[str]:
    return __all__
