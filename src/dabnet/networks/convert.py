"""Makes any network binary in place, and constrains its weights while it trains."""

from __future__ import annotations

import dataclasses
import warnings
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, cast

from torch import nn

from dabnet._settings import check_names
from dabnet.binarizers.annealing import set_progress_
from dabnet.binarizers.choices import Activations, Method, Precision, Weights, choose_axes
from dabnet.binarizers.settings import BinarySettings
from dabnet.errors import InputError, suggest
from dabnet.networks.layers import BinaryConv2d, BinaryLayer, BinaryLinear

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Converted(list[str]):
    """The names of the layers that became binary; `left_alone` has the others that own weights, each with the reason.

    Norms, biases and slopes are not among them: they are few, and always stay real.
    """

    def __init__(self, names: Iterable[str] = (), left_alone: dict[str, str] | None = None) -> None:
        super().__init__(names)
        self.left_alone = dict(left_alone or {})


def binarize_(
    module: nn.Module,
    precision: Precision | None = None,
    method: Method | None = None,
    skip: Sequence[str] = (),
    *,
    weights: Weights | None = None,
    activations: Activations | None = None,
    keep_first: bool = True,
    pad_value: int = 0,
    norm: bool | None = None,
    signed: bool = False,
    **settings: Any,
) -> Converted:
    """Make the convolutions and linear layers of a network binary, in place; return the names of those that became so.

    What it returns is a list that also tells, in `left_alone`, which layers with weights stayed real, and why. Layers
    stay the same objects with the same parameters, so optimizers, hooks and tied weights go on working. Only plain
    `nn.Conv2d` and `nn.Linear` are converted, not their subclasses, nor modules that hold weights in other ways, such
    as `nn.LSTM` and `nn.MultiheadAttention`.

    Args:
        module: the network.
        precision: the paper's word for weights and activations, instead of these: "wbin", "fbin", or "fprec" to leave
            all as it is.
        method: the paper's word for how weights are binary: "dab", "xnor" or "bnn".
        skip: names to leave alone, with * and ? as in file names; a name covers everything inside it.
        weights: "real", or how a filter's two values are found, "dab", "xnor" or "bnn"; dab if left out.
        activations: what layers take, "real", "int8", "int4" or "sign"; sign if left out.
        keep_first: leave the first layer real, as the paper does.
        pad_value: what a padded tap of a convolution holds, 0 or 1.
        norm: put a batch norm in front of each sign, as XNOR-Net does; if left out, of each whose threshold is not
            learned. Most networks have a ReLU before a convolution, and the sign of what comes out of a ReLU is +1
            everywhere.
        signed: whether the inputs of layers may be below 0, where whole numbers are made of them ("int8", "int4"): what
            comes out of a ReLU is not.
        settings: everything else that `dabnet.binarizers.settings.BinarySettings` has and explains. A learned threshold
            starts at 0: it is for inputs of both signs, not for what comes out of a ReLU.

    >>> net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.Flatten(), nn.Linear(8, 4))
    >>> converted = binarize_(net, weights="dab", activations="sign", skip=["4"]); converted
    ['2']
    >>> converted.left_alone["4"]
    "skip names it by '4'"
    """
    if not isinstance(module, nn.Module):
        raise InputError(f"binarize_ takes a torch.nn.Module, not {type(module).__name__}.")
    check_names("binarize_", settings, BinarySettings)
    axes = choose_axes(precision, method, weights, activations, default=("dab", "sign"))
    chosen = BinarySettings(weights=axes[0], activations=axes[1], **settings)
    left_alone = _find_others(module, keep_first=keep_first)
    plain = {name: layer for name, layer in module.named_modules() if type(layer) in (nn.Conv2d, nn.Linear)}
    candidates = [name for name in plain if name not in left_alone]
    _check_patterns(skip, [name for name, _ in module.named_modules() if name], candidates, left_alone)
    if axes == ("real", "real"):
        return Converted([], left_alone | dict.fromkeys(candidates, "weights and activations are to stay real"))
    with_norm = chosen.has_signs and chosen.threshold == "zero" if norm is None else norm and chosen.has_signs
    # A rehearsal, without numbers: a bad setting fails before any layer changes.
    BinaryConv2d(1, 1, 1, device="meta", pad_value=pad_value, norm=with_norm, signed=signed, settings=chosen)

    converted = []
    for name in candidates:
        pattern = next((pattern for pattern in skip if _covers(pattern, name)), None)
        if pattern is not None:
            left_alone[name] = f"skip names it by '{pattern}'"
            continue
        _convert(plain[name], name, chosen, pad_value=pad_value, norm=with_norm, signed=signed)
        converted.append(name)
    if not converted and not skip:
        reasons = "; ".join(f"'{name}': {reason}" for name, reason in left_alone.items())
        warnings.warn(f"binarize_ made nothing binary ({reasons or 'there are no layers with weights'}).", stacklevel=2)
    order = {name: position for position, (name, _) in enumerate(module.named_modules())}
    return Converted(converted, {name: left_alone[name] for name in sorted(left_alone, key=order.__getitem__)})


def _convert(
    layer: nn.Module, name: str, settings: BinarySettings, *, pad_value: int, norm: bool, signed: bool
) -> None:
    """Change the class of the old object: what else refers to it, or hangs on it, stays."""
    if isinstance(layer, nn.Conv2d):
        layer.__class__ = BinaryConv2d
        taps = pad_value if layer.padding_mode == "zeros" else 0  # other modes say themselves what a tap holds
        cast("BinaryConv2d", layer).become_binary(settings, pad_value=taps, norm=norm, name=name, signed=signed)
    else:
        layer.__class__ = BinaryLinear
        cast("BinaryLinear", layer).become_binary(settings, norm=norm, name=name, signed=signed)


def _find_others(module: nn.Module, *, keep_first: bool) -> dict[str, str]:
    """Name the layers with weights that are not to become binary, whatever `skip` says, each with the reason."""
    found: dict[str, str] = {}
    modules = dict(module.named_modules())
    plain = [name for name, layer in modules.items() if type(layer) in (nn.Conv2d, nn.Linear)]
    for name, layer in modules.items():
        kind = type(layer).__name__
        if isinstance(layer, BinaryLayer):
            found[name] = "it is binary already"
        elif isinstance(modules.get(name.rpartition(".")[0]), nn.MultiheadAttention | nn.TransformerEncoderLayer) and (
            isinstance(layer, nn.Linear)
        ):
            found[name] = f"the {type(modules[name.rpartition('.')[0]]).__name__} around it uses its weights directly"
        elif name in plain:
            if keep_first and name == plain[0]:
                last = ", and here also the last," if len(plain) == 1 else ""
                found[name] = f"the first layer{last} stays real as in the paper; keep_first=False makes it binary"
        elif any(parameter.ndim > 1 for parameter in layer.parameters(recurse=False)):
            base = next((base for base in (nn.Conv2d, nn.Linear) if isinstance(layer, base)), None)
            why = "" if base is None else f", a subclass of {base.__name__} that may compute otherwise"
            found[name] = f"it is a {kind}{why}; only plain nn.Conv2d and nn.Linear become binary"
    return found


def constrain_(module: nn.Module, *, centre: bool = True, progress: float | None = None) -> None:
    """Centre and clamp the weights of every binary layer, in place: the constraint of Algorithm 2.

    Call it once before training and once after every optimizer step. `centre=False` only clamps: centring removes the
    skew that two free values can express. `progress`, the share of the training that is done, is for annealed gradients
    and for recu, which change over a training; left out, they stay where they are, which is at the start.

    >>> layer = BinaryLinear(4, 1)
    >>> _ = nn.init.constant_(layer.weight, 3.0)
    >>> constrain_(layer, centre=False); layer.weight.data
    tensor([[1., 1., 1., 1.]])
    """
    for layer in binary_layers(module):
        layer.constrain_(centre)
    if progress is not None:
        set_progress_(module, progress)


def change_weights_(module: nn.Module, weights: Weights) -> None:
    """Find the two values of every binary layer's filters in another way, in place, from the same real weights.

    The norms of the network belong to the values it had: measure them anew (`dabnet.training.average.measure_norms`).

    >>> layer = BinaryLinear(4, 1, weights="xnor")
    >>> change_weights_(layer, "dab"); layer
    BinaryLinear(
      in_features=4, out_features=1, bias=False, weights=dab, activations=sign
      (quantize_weight): DabWeights(gradient=paper)
      (quantize_input): Sign(gradient=clipped)
    )
    """
    changes: dict[str, Any] = {"weights": weights, "gradient": None, "max_k_step": None, "split_every": 1}
    for layer in binary_layers(module):
        layer.change_quantizer(dataclasses.replace(layer.settings, **changes))
    if isinstance(settings := getattr(module, "settings", None), dict):  # what a network of ours is built from
        settings |= changes


def binary_layers(module: nn.Module) -> Iterable[BinaryLayer]:
    """Walk over the layers of a network whose weights are binary."""
    return (layer for layer in module.modules() if isinstance(layer, BinaryLayer) and layer.has_binary_weights)


def _covers(pattern: str, name: str) -> bool:
    """Whether a pattern matches a layer, or a module that it is inside of."""
    parts = name.split(".")
    return any(fnmatchcase(".".join(parts[: i + 1]), pattern) for i in range(len(parts)))


def _check_patterns(
    patterns: Sequence[str], names: Sequence[str], candidates: Sequence[str], left_alone: dict[str, str]
) -> None:
    """Refuse a pattern that changes nothing: it names nothing, or only what would have stayed real anyway."""
    if isinstance(patterns, str):
        raise InputError(f"skip takes a list of names: write skip=['{patterns}'].")
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            hint = suggest(pattern, names)
            raise InputError(f"skip names '{pattern}', but nothing in the network is called so.{hint}")
        if any(_covers(pattern, name) for name in candidates):
            continue
        stay = next((name for name in left_alone if _covers(pattern, name)), None)
        why = "no layer there has weights" if stay is None else f"'{stay}': {left_alone[stay]}"
        raise InputError(
            f"skip names '{pattern}', but nothing of it would become binary ({why}): leave it out of skip."
        )
