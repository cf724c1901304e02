"""Anyone's network made binary in place, and the constraint its weights keep while it trains."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, cast, get_args

from torch import nn

from dabnet.binarizers.choices import Method, Precision, SignGradient, WeightGradient
from dabnet.errors import InputError, check_choice, suggest
from dabnet.networks.layers import BinaryConv2d, BinaryLayer, BinaryLinear, BinarySettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def binarize_(
    module: nn.Module,
    precision: Precision = "fbin",
    method: Method = "dab",
    skip: Sequence[str] = (),
    *,
    keep_first: bool = True,
    gradient: WeightGradient | None = None,
    input_gradient: SignGradient = "clipped",
    pad_value: int = 0,
    norm: bool = True,
    max_k_step: float | None = None,
) -> list[str]:
    """Make the convolutions and linear layers of a network binary, in place; return the names of those that became so.

    Layers stay the same objects with the same parameters, so optimizers, hooks and tied weights go on working. Only
    plain `nn.Conv2d` and `nn.Linear` are converted, not their subclasses.

    Args:
        module: the network.
        precision: "wbin" for binary weights, "fbin" for binary inputs too, "fprec" to leave all as it is.
        method: how a filter's two values are found, "dab", "xnor" or "bnn".
        skip: names to leave alone, with * and ? as in file names; a name covers everything inside it.
        keep_first: leave the first layer real, as the paper does.
        gradient: of the weights, "paper", "exact" or "ste"; the paper's if left out.
        input_gradient: of the inputs' sign, "clipped" or "approx".
        pad_value: what a padded tap of a convolution holds, 0 or 1.
        norm: with "fbin", put a batch norm in front of each sign, as XNOR-Net does. Most networks have a ReLU before a
            convolution, and the sign of what comes out of a ReLU is +1 everywhere.
        max_k_step: limits how far K may move a step; see `BinaryConv2d`.

    >>> net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.Flatten(), nn.Linear(8, 4))
    >>> binarize_(net, "fbin", "dab", skip=["4"])
    ['2']
    """
    check_choice("precision", precision, get_args(Precision))
    check_choice("method", method, get_args(Method))
    if not isinstance(module, nn.Module):
        raise InputError(f"binarize_ takes a torch.nn.Module, not {type(module).__name__}.")
    plain = [(name, layer) for name, layer in module.named_modules() if type(layer) in (nn.Conv2d, nn.Linear)]
    _check_patterns(skip, [name for name, _ in module.named_modules() if name])
    if precision == "fprec":
        return []
    settings: BinarySettings = {
        "precision": precision,
        "method": method,
        "gradient": gradient,
        "input_gradient": input_gradient,
        "max_k_step": max_k_step,
    }
    with_norm = norm and precision == "fbin"
    # A rehearsal, without numbers: a bad setting fails before any layer changes.
    BinaryConv2d(1, 1, 1, device="meta", pad_value=pad_value, norm=with_norm, **settings)

    converted = []
    for name, layer in plain[1:] if keep_first else plain:
        if any(_covers(pattern, name) for pattern in skip):
            continue
        settings["name"] = name
        # A new class for the old object: what else refers to it, or hangs on it, stays in place.
        if isinstance(layer, nn.Conv2d):
            layer.__class__ = BinaryConv2d
            taps = pad_value if layer.padding_mode == "zeros" else 0  # other modes say themselves what a tap holds
            cast("BinaryConv2d", layer).become_binary(pad_value=taps, norm=with_norm, **settings)
        else:
            layer.__class__ = BinaryLinear
            cast("BinaryLinear", layer).become_binary(norm=with_norm, **settings)
        converted.append(name)
    return converted


def constrain_(module: nn.Module, *, centre: bool = True) -> None:
    """Centre and clamp the weights of every binary layer, in place: the constraint of Algorithm 2.

    Call it once before training and once after every optimizer step. `centre=False` only clamps: centring removes the
    skew that two free values can express.

    >>> layer = BinaryLinear(4, 1)
    >>> _ = nn.init.constant_(layer.weight, 3.0)
    >>> constrain_(layer, centre=False); layer.weight.data
    tensor([[1., 1., 1., 1.]])
    """
    for layer in binary_layers(module):
        layer.constrain_(centre)


def binary_layers(module: nn.Module) -> Iterable[BinaryLayer]:
    """Walk over the binary layers of a network."""
    return (layer for layer in module.modules() if isinstance(layer, BinaryLayer))


def _covers(pattern: str, name: str) -> bool:
    """Whether a pattern matches a layer, or a module that it is inside of."""
    parts = name.split(".")
    return any(fnmatchcase(".".join(parts[: i + 1]), pattern) for i in range(len(parts)))


def _check_patterns(patterns: Sequence[str], names: Sequence[str]) -> None:
    if isinstance(patterns, str):
        raise InputError(f"skip takes a list of names: write skip=['{patterns}'].")
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            hint = suggest(pattern, names)
            raise InputError(f"skip names '{pattern}', but nothing in the network is called so.{hint}")
