"""The packed models that ship with the package, by name.

A model is two files in `dabnet/models`: `NAME.safetensors`, and `NAME.toml`, its card (`cards.py`).
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dabnet.errors import InputError, suggest

if TYPE_CHECKING:
    from os import PathLike

FOLDER = Path(__file__).parents[1] / "models"
DEFAULT = "default"
"""The name of whichever model runs where none is named."""
ALIASES = {DEFAULT: "everyday"}
"""Names that stand for a model's own; to ship another model as the default, change it here."""


def model_names() -> list[str]:
    """Return the names of the models that ship, the default one first.

    >>> model_names()[0] == ALIASES["default"]
    True
    """
    found = (file.name for file in FOLDER.iterdir())
    names = {name.removesuffix(".toml") for name in found if name.endswith(".toml")}
    return sorted(names, key=lambda name: (name != ALIASES[DEFAULT], name))


def find_model(source: str | PathLike[str]) -> Path:
    """Return the path that a model is at, which is given as a path or as the name of one that ships.

    A file or a training's folder of that name comes first. A misspelt name is an `InputError` that tells the nearest.

    >>> find_model("tuberlin").name, find_model("my/model.safetensors").name
    ('tuberlin.safetensors', 'model.safetensors')
    """
    path = Path(source)
    name = str(path)
    if path.is_file() or (path.is_dir() and any(path.glob("*.safetensors"))):
        return path
    names = [*model_names(), *ALIASES]
    if name in names:
        return FOLDER / f"{ALIASES.get(name, name)}.safetensors"
    hint = suggest(name, names)
    if hint and path.name == name and not path.suffix and not path.exists():
        raise InputError(f"there is no model '{name}': give a file, or a name that 'dabnet models' lists.{hint}")
    return path


def is_packed(path: Path) -> bool:
    """Return whether a file holds a packed model, and not, say, the weights of a training.

    >>> is_packed(find_model("default")), is_packed(Path("nowhere"))
    (True, False)
    """
    from safetensors import SafetensorError, safe_open

    with suppress(OSError, SafetensorError, KeyError, ValueError, RecursionError), safe_open(path, "numpy") as opened:
        return "nodes" in json.loads((opened.metadata() or {})["dabnet"])
    return False
