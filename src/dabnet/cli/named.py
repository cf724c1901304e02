"""A network that a command is given by name: the options that say which, and the arguments of `dabnet.build`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from dabnet._settings import read_changes
from dabnet.binarizers.choices import Weights as _Weights
from dabnet.binarizers.choices import choose_axes
from dabnet.errors import InputError, suggest
from dabnet.networks.names import NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

Weights = Annotated[
    str | None, typer.Option(help=f"Of a network given by name: {', '.join(get_args(_Weights))}; dab if left out.")
]
Activations = Annotated[
    str | None, typer.Option(help="Of a network given by name: real, int8, int4 or sign; sign if left out.")
]
Precision = Annotated[
    str | None,
    typer.Option(help="The paper's word for weights and activations, instead of these: fprec, wbin or fbin."),
]
Method = Annotated[str | None, typer.Option(help="The paper's word for how weights are binary, such as dab or xnor.")]
Classes = Annotated[int, typer.Option(help="Of a network given by name.")]
Width = Annotated[float, typer.Option(help="Of a network given by name: factor on all channels.")]
Size = Annotated[int | None, typer.Option(help="Of a network given by name: pixels per side.")]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", help="Another setting of a network given by name: KEY=VALUE; may be given again."),
]


def build_settings(
    weights: str | None,
    activations: str | None,
    precision: str | None,
    method: str | None,
    changes: Sequence[str] | None,
    **settings: Any,
) -> dict[str, Any]:
    """Return the arguments of `dabnet.build` that options stand for; it checks them."""
    names: Any = (precision, method, weights, activations)
    axes = choose_axes(*names, default=("dab", "sign"))
    return {"weights": axes[0], "activations": axes[1], **settings, **read_changes(changes or ())}


def check_network(name: str) -> None:
    """Raise an `InputError` unless a network has that name."""
    if name not in NAMES:
        raise InputError(f"'{name}' is neither a file nor a network's name.{suggest(name, NAMES)}")
