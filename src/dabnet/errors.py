"""What can go wrong, each with one sentence that says what was wrong with which input and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


class DabnetError(Exception):
    """Any error that dabnet raises on purpose; the command line prints it without a traceback."""


class DownloadError(DabnetError):
    """A file that could not be fetched, or that came out wrong."""


class InputError(DabnetError, ValueError):
    """An argument, a file or a setting that cannot be used as it is."""


class MissingExtraError(DabnetError, ImportError):
    """A library that only some of dabnet needs, and that is not installed."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f"this needs {library}, which is not installed: pip install 'dabnet[{extra}]'.")
        self._made_of = library, extra

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._made_of, self.__dict__  # so that it can be sent to another process


class ModelFormatError(InputError):
    """A packed model that cannot be what it says, or that would take more memory or work than allowed."""


class UnsupportedError(InputError):
    """A network with a part that packed models do not have."""


class NonFiniteError(InputError):
    """A weight or an answer that is NaN or infinite, where there must be a number."""


class RunCancelledError(DabnetError):
    """A run of a model that was stopped before it had an answer."""


class TimeLimitError(RunCancelledError):
    """A run of a model that took longer than it was given."""


def check_choice(what: str, value: str, choices: Sequence[str]) -> None:
    """Raise an `InputError` that names the choices, and the nearest, unless `value` is one of them."""
    if value not in choices:
        raise InputError(f"'{value}' is not a {what}: choose one of {', '.join(choices)}.{suggest(value, choices)}")


def suggest(value: str, choices: Sequence[str]) -> str:
    """Return a sentence, to follow another, that names the choice nearest to a misspelt one; empty if none is near."""
    import difflib

    near = difflib.get_close_matches(str(value), choices, n=1)
    return f" Did you mean '{near[0]}'?" if near else ""


def check_number(what: str, value: object, limits: tuple[float, float]) -> None:
    """Raise an `InputError` unless `value` is a number within the limits."""
    if not _is_within(value, limits):
        raise InputError(f"{what} must be from {limits[0]:g} to {limits[1]:g}, not {value!r}.")


def check_range(what: str, values: object, limits: tuple[float, float]) -> tuple[float, float]:
    """Return two numbers within the limits, the smaller first, as a tuple (files hold lists), or raise `InputError`."""
    if isinstance(values, tuple | list) and len(values) == 2 and all(_is_within(value, limits) for value in values):
        low, high = values
        if low <= high:
            return low, high
    raise InputError(
        f"{what} must be two numbers from {limits[0]:g} to {limits[1]:g}, the smaller first, not {values!r}."
    )


def _is_within(value: object, limits: tuple[float, float]) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and limits[0] <= value <= limits[1]
