"""Recognizing with packed models; without torch."""

from dabnet.runtime.session import Session

__all__ = ["Session"]
