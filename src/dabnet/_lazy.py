"""Modules that are imported when they are first needed, so that `import dabnet` does not import torch."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dabnet.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


# The libraries that are not always installed, and the extra that brings each.
EXTRAS = {
    "fastapi": "serve",
    "lightning": "train",
    "matplotlib": "train",
    "onnx": "export",
    "onnxruntime": "bench",
    "openvino": "bench",
    "pyarrow": "data",
    "ray": "distributed",
    "tensorboard": "train",
    "torch": "train",
    "uvicorn": "serve",
}


def load(module: str) -> ModuleType:
    """Import a module of dabnet's; where a library is missing that an extra brings, say which."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name in EXTRAS:
            raise MissingExtraError(error.name, EXTRAS[error.name]) from None
        raise


def attributes(package: str, homes: dict[str, str]) -> Callable[[str], Any]:
    """Make a package's `__getattr__`: `homes` maps each name to the module that holds it, or to itself if it is one."""

    def getattribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = load(homes[name])
        return module if homes[name] == f"{package}.{name}" else getattr(module, name)

    return getattribute
