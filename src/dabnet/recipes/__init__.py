"""The recipes that ship, by name, and how a recipe is read: its base first, then what differs.

    base = "small/tuberlin-resnet18-fbin-dab"
    epochs = 60

A base is the name of a recipe that ships, or a file; its path is relative to the file that names it. What stands in
`bases/` is only there to be named so. The paper's `precision` and `method` become `weights` and `activations`.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from dabnet.binarizers.choices import translate_names
from dabnet.errors import InputError, suggest

FOLDER = Path(__file__).parent
BASES = "bases/"


def recipe_names() -> list[str]:
    """Return the names of the recipes that ship, those of the paper at full scale first."""
    return sorted((name for name in _all_names() if not name.startswith(BASES)), key=lambda name: ("/" in name, name))


def describe(recipe: str | Path) -> str:
    """Return what a recipe is, in one line: the comment that its file begins with.

    >>> describe("tuberlin-resnet18-fbin-dab")
    'ResNet-18 on TU-Berlin, binary weights and activations by DAB-Net (FBin), as the paper trains it.'
    """
    first = _read(find_recipe(recipe)).partition("\n")[0]
    return first.removeprefix("#").strip() if first.startswith("#") else ""


def find_recipe(recipe: str | Path) -> Path:
    """Return the file of a recipe, which is given as a path or as the name of one that ships."""
    path, name = Path(recipe), Path(recipe).as_posix().removesuffix(".toml")
    if path.is_file():
        return path
    if path.suffix != ".toml" and name in _all_names():
        return FOLDER / f"{name}.toml"
    if path.suffix == ".toml":
        raise InputError(f"cannot read the recipe '{recipe}' (no such file): check the path.")
    hint = suggest(name, _all_names())
    raise InputError(f"there is no recipe '{recipe}': give a file, or a name that 'dabnet recipes' lists.{hint}")


def read_settings(path: Path, above: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Read the settings of a recipe's file over those of its base; `above` are the files that led to this one."""
    try:
        settings = tomllib.loads(_read(path))
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"the recipe '{path}' is not valid TOML ({problem}).") from None
    base = settings.pop("base", None)
    if base is None:
        return translate_names(settings)
    if not isinstance(base, str):
        raise InputError(f"{path}: base must be a recipe's name or file, not {base!r}.")
    above = (*above, path.resolve())
    beside = path.parent / base
    try:
        found = find_recipe(beside if beside.is_file() else base)
    except InputError as error:
        raise InputError(f"{path}: its base cannot be found: {error}") from None
    if found.resolve() in above:
        raise InputError(f"{path}: its base '{base}' is built on '{path.name}' itself: change one of them.")
    return translate_names({**read_settings(found, above), **settings})


def _all_names() -> list[str]:
    return [path.relative_to(FOLDER).with_suffix("").as_posix() for path in sorted(FOLDER.rglob("*.toml"))]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as problem:
        raise InputError(f"cannot read the recipe '{path}' ({problem.strerror}): check the path.") from None
    except UnicodeDecodeError as problem:
        raise InputError(f"the recipe '{path}' is not valid TOML ({problem}).") from None
