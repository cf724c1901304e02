"""The names of what can be chosen, and the error for a name that is not among them."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Literal

from dabnet.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

Precision = Literal["fprec", "wbin", "fbin"]
"""Nothing binary; weights binary; weights and activations binary."""

Method = Literal["dab", "xnor", "bnn"]
"""How a filter's two values are found: distribution-aware, XNOR-Net's, or +1 and -1."""

WeightGradient = Literal["paper", "exact", "ste"]
"""What stands for the gradient of binary weights; see `dabnet.binarizers.weights`."""

SignGradient = Literal["clipped", "approx"]
"""What stands for the gradient of a sign; see `dabnet.binarizers.activations`."""


def check_choice(what: str, value: str, choices: Sequence[str]) -> None:
    """Raise an `InputError` that names the choices, and the nearest, unless `value` is one of them."""
    if value not in choices:
        raise InputError(f"'{value}' is not a {what}: choose one of {', '.join(choices)}.{suggest(value, choices)}")


def suggest(value: str, choices: Sequence[str]) -> str:
    """Give a sentence, to follow another, that names the choice nearest to a misspelt one; empty if none is near."""
    near = difflib.get_close_matches(str(value), choices, n=1)
    return f" Did you mean '{near[0]}'?" if near else ""
