"""Settings as frozen dataclasses: each field says by its type what it may be, and `check_settings` holds it to that.

    width: Annotated[float, Within(0.05, 4)] = 1.0
    schedule: Literal["steps", "cosine"] = "steps"

A new setting is one such line: what it may be, its default, and its meaning below it.
"""

from __future__ import annotations

import dataclasses
import functools
import tomllib
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from dabnet.errors import InputError, check_number, check_range, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed import DataclassInstance


class Within(NamedTuple):
    """The least and the greatest number that a setting may be."""

    least: float
    most: float


class SettingType(NamedTuple):
    """What the annotation of a field says."""

    kind: Any
    """bool, int, float, str, list[str], tuple[float, float] or a `Literal`."""
    limits: Within | None
    optional: bool


def setting_types(settings: type[DataclassInstance]) -> dict[str, SettingType]:
    """Return what each field of a dataclass may be, in the order of the fields."""
    return _types_of(settings)


@functools.cache
def _types_of(settings: Any) -> dict[str, SettingType]:
    hints = get_type_hints(settings, include_extras=True)
    return {field.name: _read_type(hints[field.name]) for field in dataclasses.fields(settings)}


def check_settings(owner: str, settings: DataclassInstance) -> None:
    """Raise an `InputError` about the first setting that its field does not allow; pairs from a file become tuples."""
    for name, (kind, limits, optional) in setting_types(type(settings)).items():
        value = getattr(settings, name)
        if value is None and optional:
            continue
        what = f"{owner} {name}"
        if get_origin(kind) is Literal:
            _check_literal(what, value, get_args(kind))
        elif kind == tuple[float, float]:
            limits = limits or Within(-float("inf"), float("inf"))
            object.__setattr__(settings, name, check_range(what, value, limits))
        elif kind in (int, float):
            check_number(what, value, limits or Within(-float("inf"), float("inf")))
            if kind is int and not isinstance(value, int):
                raise InputError(f"{what} must be a whole number, not {value!r}.")
        elif not _WORDS[kind][1](value):
            raise InputError(f"{what} must be {_WORDS[kind][0]}, not {value!r}.")


def read_changes(changes: Iterable[str]) -> dict[str, Any]:
    """Read changes of settings, each as `key=value`; a value is read as TOML, or taken as text.

    >>> read_changes(["epochs=3", "schedule=steps", "span = [0.8, 1]"])
    {'epochs': 3, 'schedule': 'steps', 'span': [0.8, 1]}
    """
    found: dict[str, Any] = {}
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals:
            raise InputError(f"'{change}' changes nothing: write --set KEY=VALUE, such as --set epochs=3.")
        try:
            found[key.strip()] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            found[key.strip()] = text.strip()
    return found


def check_names(owner: str, names: Iterable[str], settings: type[DataclassInstance], *also: str) -> None:
    """Raise an `InputError` about the first name that is not a setting, nor one of `also`; suggest the nearest."""
    known = [*setting_types(settings), *also]
    for name in names:
        if name not in known:
            raise InputError(f"{owner} has no setting '{name}'.{suggest(name, sorted(known))}")


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


_WORDS: dict[Any, Any] = {
    bool: ("true or false", lambda value: isinstance(value, bool)),
    str: ("text", lambda value: isinstance(value, str)),
    list[str]: ("a list of names", _is_names),
}


def _check_literal(what: str, value: Any, choices: tuple[Any, ...]) -> None:
    if value not in choices or isinstance(value, bool):
        words = [str(choice) for choice in choices]
        *others, last = words
        listed = f"{others[0]} or {last}" if len(words) == 2 else f"one of {', '.join(words)}"
        raise InputError(f"{what} must be {listed}, not {value!r}.{suggest(str(value), words)}")


def _read_type(hint: Any) -> SettingType:
    limits, optional = None, False
    while get_origin(hint) in (Annotated, Union, UnionType):
        first, *rest = get_args(hint)
        if get_origin(hint) is Annotated:
            limits = next((each for each in rest if isinstance(each, Within)), limits)
        elif rest != [NoneType]:
            raise TypeError(f"a setting is of one type, or of one type or None, not {hint}")
        else:
            optional = True
        hint = first
    if get_origin(hint) is not Literal and hint not in (int, float, tuple[float, float], *_WORDS):
        raise TypeError(f"no setting can be of type {hint}")
    return SettingType(hint, limits, optional)
