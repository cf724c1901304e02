"""The networks by name."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from dabnet.binarizers.choices import Method, Precision, SignGradient, WeightGradient
from dabnet.binarizers.weights import default_gradient
from dabnet.errors import InputError, check_choice, check_number
from dabnet.networks.blocks import Network, NetworkSettings, Shortcuts
from dabnet.networks.googlenet import GoogLeNet
from dabnet.networks.layers import BinaryConv2d
from dabnet.networks.resnet import ResNet18
from dabnet.networks.sketch_a_net import SketchANet

NETWORKS: dict[str, type[Network]] = {
    "sketch_a_net": SketchANet,
    "resnet18": ResNet18,
    "googlenet": GoogLeNet,
}


def build(
    name: str,
    classes: int,
    precision: Precision = "fprec",
    method: Method = "dab",
    *,
    width: float = 1.0,
    input_size: int | None = None,
    shortcuts: Shortcuts = "block",
    real_last: bool | None = None,
    gradient: WeightGradient | None = None,
    input_gradient: SignGradient = "clipped",
    max_k_step: float | None = None,
) -> Network:
    """Build a network with fresh weights: float32 (N, 1, H, W), ink 1 on 0, goes in, and logits (N, classes) come out.

    Its `settings` are these arguments, defaults filled in: `build(**net.settings)` has the same layers.

    Args:
        name: "sketch_a_net", "resnet18" or "googlenet".
        classes: how many kinds of thing to tell apart, at least 2.
        precision: "fprec" for real numbers, "wbin" for binary weights, "fbin" for binary inputs of layers, too.
        method: how a filter's two values are found, "dab", "xnor" or "bnn".
        width: multiplies all channels; they stay multiples of 8.
        input_size: H and W; the paper's if left out, 225 for Sketch-A-Net and 224 for the others.
        shortcuts: in ResNet-18, around each "block" of two convolutions or around each "conv".
        real_last: whether the last layer stays real; if left out as in the paper, in Sketch-A-Net only.
        gradient: of the weights, "paper", "exact" or "ste"; the paper's if left out.
        input_gradient: of the inputs' sign, "clipped" or "approx".
        max_k_step: limits how far K may move a step; see `BinaryConv2d`.

    >>> net = build("resnet18", classes=10, precision="fbin", width=0.25, input_size=64)
    >>> net.settings["real_last"], net.stage2[0].branch.conv1.conv.name
    (False, 'stage2.0.branch.conv1.conv')
    """
    check_choice("network", name, tuple(NETWORKS))
    network = NETWORKS[name]
    check_choice("precision", precision, get_args(Precision))
    check_choice("method", method, get_args(Method))
    check_choice("kind of shortcuts", shortcuts, get_args(Shortcuts))
    if shortcuts != "block" and network is not ResNet18:
        raise InputError(f"'{name}' has no shortcuts, so shortcuts='{shortcuts}' is for 'resnet18' only: leave it out.")
    _check_whole("classes", classes, (2, 1_000_000))
    check_number("width", width, (0.01, 4))
    if real_last is not None and not isinstance(real_last, bool):
        raise InputError(f"real_last must be true or false, or left out for what the paper does, not {real_last!r}.")
    if input_size is None:
        input_size = network.PAPER_SIZE
    _check_whole(f"input_size of '{name}'", input_size, (network.LEAST_SIZE, 4096))
    settings = NetworkSettings(
        name=name,
        classes=classes,
        precision=precision,
        method=method,
        width=float(width),
        input_size=input_size,
        shortcuts=shortcuts,
        real_last=network.PAPER_REAL_LAST if real_last is None else real_last,
        gradient=default_gradient(method) if gradient is None else gradient,
        input_gradient=input_gradient,
        max_k_step=max_k_step,
    )
    # A rehearsal, without numbers: a bad setting fails even where no layer is binary.
    BinaryConv2d(1, 1, 1, device="meta", **replace(settings, precision="wbin").binary)
    return network(settings)


def _check_whole(what: str, value: object, limits: tuple[int, int]) -> None:
    check_number(what, value, limits)
    if not isinstance(value, int):
        raise InputError(f"{what} must be a whole number, not {value!r}.")
