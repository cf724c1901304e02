"""The page of the API has every public name, and every public name says what it is."""

from __future__ import annotations

import importlib
import inspect
import re

import pytest

from .guides import ROOT

MODULES = ("dabnet", "dabnet.binarizers", "dabnet.runtime", "dabnet.sketches")
NAMES = [f"{module}.{name}" for module in MODULES for name in importlib.import_module(module).__all__]


def lookup(name: str) -> object:
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


def is_explained(found: object) -> bool:
    """Return whether it is no class or function, or has a docstring, and, for a class, its public methods have."""
    if not inspect.isroutine(found) and not inspect.isclass(found):
        return True
    own = [each for name, each in vars(found).items() if name[0] != "_" and inspect.isfunction(each)]
    return bool(inspect.getdoc(found)) and (not inspect.isclass(found) or all(map(inspect.getdoc, own)))


def test_every_public_name_is_on_the_page() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    shown = {id(lookup(name)) for name in re.findall(r"^::: (dabnet(?:\.\w+)*\.\w+)$", page, re.MULTILINE)}
    wanted = [name for name in NAMES if not inspect.ismodule(lookup(name)) and name != "dabnet.__version__"]
    assert len(wanted) > 25
    assert [name for name in wanted if id(lookup(name)) not in shown] == [], "add a line '::: NAME' to docs/api.md"


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_says_what_it_is(name: str) -> None:
    assert is_explained(lookup(name))
