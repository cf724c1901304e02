"""The networks by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dabnet._settings import check_names
from dabnet.binarizers.choices import Activations, Method, Precision, Weights, choose_axes
from dabnet.binarizers.settings import BinarySettings
from dabnet.binarizers.weights import default_gradient
from dabnet.errors import InputError, check_choice, check_number
from dabnet.networks.blocks import Network
from dabnet.networks.googlenet import GoogLeNet
from dabnet.networks.names import NAMES
from dabnet.networks.resnet import ResNet18
from dabnet.networks.settings import NetworkOptions, NetworkSettings
from dabnet.networks.sketch_a_net import SketchANet

NETWORKS: dict[str, type[Network]] = dict(zip(NAMES, (SketchANet, ResNet18, GoogLeNet), strict=True))


def build(
    name: str,
    classes: int,
    precision: Precision | None = None,
    method: Method | None = None,
    *,
    weights: Weights | None = None,
    activations: Activations | None = None,
    input_size: int | None = None,
    **options: Any,
) -> Network:
    """Build a network with fresh weights: float32 (N, 1, H, W), ink 1 on 0, goes in, and logits (N, classes) come out.

    Its `settings` are these arguments, defaults filled in: `build(**net.settings)` has the same layers.

    Args:
        name: "sketch_a_net", "resnet18" or "googlenet".
        classes: how many kinds of thing to tell apart, at least 2.
        precision: the paper's word for weights and activations, instead of these: "fprec", "wbin" or "fbin".
        method: the paper's word for how weights are binary: "dab", "xnor" or "bnn".
        weights: "real", or how a filter's two values are found, "dab", "xnor" or "bnn"; real if left out.
        activations: what layers take, "real", "int8", "int4" or "sign"; real if left out.
        input_size: H and W; the paper's if left out, 225 for Sketch-A-Net and 224 for the others.
        options: everything else that `dabnet.networks.settings.NetworkOptions` has and explains: `width`, `shortcuts`,
            `real_last`, `nonlinearity`, `gradient`, `input_gradient`, `threshold`, `max_k_step`, `binary_start`.

    >>> net = build("resnet18", classes=10, weights="dab", activations="sign", width=0.25, input_size=64)
    >>> net.settings["real_last"], net.stage2[0].branch.conv1.conv.name
    (False, 'stage2.0.branch.conv1.conv')
    """
    check_choice("network", name, tuple(NETWORKS))
    network = NETWORKS[name]
    check_names(f"'{name}'", options, NetworkOptions)
    check_number(f"input_size of '{name}'", input_size or network.PAPER_SIZE, (network.LEAST_SIZE, 4096))
    axes = choose_axes(precision, method, weights, activations, default=("real", "real"))
    if method is not None:
        # A bad setting fails even where no layer is binary.
        BinarySettings(weights=method, **{key: options[key] for key in ("gradient", "max_k_step") if key in options})
    settings = NetworkSettings(
        name=name,
        classes=classes,
        weights=axes[0],
        activations=axes[1],
        input_size=network.PAPER_SIZE if input_size is None else input_size,
        **options,
    )
    if settings.shortcuts != "block" and network is not ResNet18:
        raise InputError(
            f"'{name}' has no shortcuts, so shortcuts='{settings.shortcuts}' is for 'resnet18' only: leave it out."
        )
    return network(_fill_in(settings, network))


def _fill_in(settings: NetworkSettings, network: type[Network]) -> NetworkSettings:
    """Return settings with nothing left open that the paper decides."""
    gradient, real_last = settings.gradient, settings.real_last
    if gradient is None and settings.weights != "real":
        gradient = default_gradient(settings.weights)
    real_last = network.PAPER_REAL_LAST if real_last is None else real_last
    return replace(settings, width=float(settings.width), gradient=gradient, real_last=real_last)
