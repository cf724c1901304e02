"""The names of what can be chosen.

Two axes say what of a layer is binary: its weights and its inputs, the activations. The paper has one word for both,
its precision, and calls the weights' choice the method:

    precision  weights     activations
    fprec      real        real
    wbin       a method    real
    fbin       a method    sign
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from dabnet.errors import InputError, check_choice

Weights = Literal["real", "dab", "xnor", "bnn", "dab-learned", "irnet", "recu", "adabin"]
"""Real numbers, or how a filter's two values are found; see `dabnet.binarizers.weights`."""

Activations = Literal["real", "int8", "int4", "sign"]
"""What a layer's inputs are: real numbers, whole numbers of 8 or 4 bits, or signs."""

Threshold = Literal["zero", "learned"]
"""Where the sign of an activation changes: at 0, or where each channel learns it."""

SignLevels = Literal["one", "learned"]
"""What signs of activations stand for: +1 and -1, or two numbers that each layer learns."""

Precision = Literal["fprec", "wbin", "fbin"]
"""The paper's: nothing binary; weights binary; weights and activations binary."""

Method = Literal["dab", "xnor", "bnn", "dab-learned", "irnet", "recu", "adabin"]
"""The paper's: how a filter's two values are found. All of `Weights` but real."""

WeightGradient = Literal["paper", "exact", "ste", "annealed"]
"""What stands for the gradient of binary weights; see `dabnet.binarizers.weights`."""

SignGradient = Literal["clipped", "approx", "annealed"]
"""What stands for the gradient of a sign; see `dabnet.binarizers.activations`."""

Axes = tuple[Weights, Activations]


def choose_axes(
    precision: Precision | None, method: Method | None, weights: Weights | None, activations: Activations | None, *,
    default: Axes,
) -> Axes:  # fmt: skip
    """Return the two axes, given by their own names or by the paper's, but not by both.

    >>> choose_axes("wbin", "xnor", None, None, default=("dab", "sign"))
    ('xnor', 'real')
    """
    if precision is None and method is None:
        return weights or default[0], activations or default[1]
    if weights is not None or activations is not None:
        raise InputError(
            "what is binary is given twice: give weights and activations or, as the paper, precision and method."
        )
    found = translate_names({"precision": precision, "method": method}, default)
    return found["weights"], found["activations"]


def translate_names(settings: Mapping[str, Any], default: Axes = ("dab", "sign")) -> dict[str, Any]:
    """Return settings by name with `weights` and `activations` for the paper's `precision` and `method`.

    The paper's names change what the two axes are otherwise, in `settings` or by `default`.

    >>> translate_names({"precision": "fbin", "method": "xnor", "width": 0.5})
    {'width': 0.5, 'weights': 'xnor', 'activations': 'sign'}
    >>> translate_names({"weights": "bnn", "activations": "sign", "precision": "wbin"})
    {'weights': 'bnn', 'activations': 'real'}
    """
    found = dict(settings)
    precision, method = found.pop("precision", None), found.pop("method", None)
    if precision is None and method is None:
        return found
    weights, activations = found.get("weights", default[0]), found.get("activations", default[1])
    if method is not None:
        check_choice("method", method, get_args(Method))
        weights = weights if weights == "real" and precision is None else method
    if precision is not None:
        check_choice("precision", precision, get_args(Precision))
        binary = "dab" if weights == "real" else weights
        weights, activations = {"fprec": ("real", "real"), "wbin": (binary, "real"), "fbin": (binary, "sign")}[
            precision
        ]
    return found | {"weights": weights, "activations": activations}


def paper_precision(weights: Weights, activations: Activations) -> Precision | None:
    """Return the paper's word for both axes; None where it has none."""
    if activations == "real":
        return "fprec" if weights == "real" else "wbin"
    return "fbin" if activations == "sign" and weights != "real" else None
