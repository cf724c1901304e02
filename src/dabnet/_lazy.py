"""Names that are imported when they are first used, so that `import dabnet` does not import torch."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def attributes(package: str, homes: dict[str, str]) -> Callable[[str], Any]:
    """Make a package's `__getattr__`: `homes` maps each name to the module that holds it, or to itself if it is one."""

    def getattribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(homes[name])
        return module if homes[name] == f"{package}.{name}" else getattr(module, name)

    return getattribute
