"""The packed model that ships with the package, by its name: `default`."""

from __future__ import annotations

import json
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError, safe_open

if TYPE_CHECKING:
    from os import PathLike

DEFAULT = "default"


def find_model(source: str | PathLike[str]) -> Path:
    """Give the path that a model is at: `default` is the one that ships, unless there is a file or folder of that name.

    >>> find_model("default").name, find_model("my/model.safetensors").name
    ('default.safetensors', 'model.safetensors')
    """
    path = Path(source)
    if str(path) == DEFAULT and not path.exists():
        return Path(str(resources.files("dabnet.models") / f"{DEFAULT}.safetensors"))
    return path


def is_packed(path: Path) -> bool:
    """Say whether a file holds a packed model, and not, say, the weights of a training.

    >>> is_packed(find_model("default")), is_packed(Path("nowhere"))
    (True, False)
    """
    with suppress(OSError, SafetensorError, KeyError, ValueError, RecursionError), safe_open(path, "numpy") as opened:
        return "nodes" in json.loads((opened.metadata() or {})["dabnet"])
    return False
