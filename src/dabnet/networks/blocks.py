"""What the three networks are built of: one unit of convolution, norm and ReLU for all weights and activations.

For real activations and whole numbers the order is convolution -> batch norm -> ReLU. For signs it is XNOR-Net's,
batch norm -> sign -> convolution -> ReLU: what comes out of a ReLU is never negative, and its sign says nothing until a
norm centred it. Where the sign's threshold is learned, it does that instead, and the order is ReActNet's: sign ->
convolution -> batch norm -> PReLU, without a ReLU anywhere.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import asdict
from typing import Any, ClassVar

from torch import Tensor, nn

from dabnet.networks.activations import RPReLU
from dabnet.networks.layers import BinaryConv2d, BinaryLayer, BinaryLinear
from dabnet.networks.settings import NetworkSettings, Nonlinearity


class Network(nn.Module):
    """What the networks have in common: the settings they were built from."""

    PAPER_SIZE: ClassVar[int]
    LEAST_SIZE: ClassVar[int]
    PAPER_REAL_LAST: ClassVar[bool]

    def __init__(self, settings: NetworkSettings) -> None:
        super().__init__()
        self.settings: dict[str, Any] = asdict(settings)
        self.input_size: int = settings.input_size

    def finish(self) -> None:
        """Name the binary layers by their path in the network, and start all weights.

        Convolutions start as Kaiming normal by fan out, as the paper's code does, norms as 1 and 0. The linear layer
        starts by fan in, so that the first logits are of size 1 for any number of classes. Layers with binary weights
        start with the deviation `binary_start`, where one is given.
        """
        for name, module in self.named_modules():
            if isinstance(module, BinaryLayer):
                module.name = name
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, nn.Linear):
                nn.init.kaiming_normal_(module.weight, mode="fan_in", nonlinearity="linear")
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        start = self.settings["binary_start"]
        for module in self.modules():
            if isinstance(module, BinaryLayer) and module.quantize_weight is not None:
                if start is not None:
                    nn.init.normal_(module.weight, std=start)
                module.quantize_weight.begin_(module.weight, module.name)


def real_unit(
    settings: NetworkSettings, inputs: int, filters: int, kernel: int, stride: int = 1, padding: int = 0
) -> nn.Sequential:
    """Convolution -> batch norm -> ReLU in real numbers: the first layer of every network.

    Where thresholds are learned, the next sign is told more without the ReLU, and there is none.
    """
    parts: dict[str, nn.Module] = {
        "conv": nn.Conv2d(inputs, filters, kernel, stride, padding, bias=False),
        "norm": nn.BatchNorm2d(filters),
    }
    if not settings.learns_thresholds:
        parts["relu"] = nn.ReLU()
    return named(**parts)


def unit(
    settings: NetworkSettings,
    inputs: int,
    filters: int,
    kernel: int,
    stride: int = 1,
    padding: int = 0,
    *,
    relu: bool = True,
    dropout: float = 0.0,
) -> nn.Sequential:
    """A convolution with its norm and, unless told otherwise, its nonlinearity, in the order that the inputs ask for.

    `dropout` is of the inputs, where they are real numbers. There is none before a sign: a value that is dropped falls
    below the mean, others rise above it, and their signs would tell which were dropped rather than what they were.
    """
    parts: dict[str, nn.Module] = {}
    norm_first = settings.has_signs and not settings.learns_thresholds
    if dropout and not settings.has_signs:
        parts["dropout"] = nn.Dropout(dropout)
    if settings.has_signs or settings.weights != "real":
        parts["conv"] = BinaryConv2d(
            inputs,
            filters,
            kernel,
            stride,
            padding,
            norm=norm_first,
            signed=settings.signed,
            settings=settings.layer,
        )
    else:
        parts["conv"] = nn.Conv2d(inputs, filters, kernel, stride, padding, bias=False)
    if not norm_first:
        parts["norm"] = nn.BatchNorm2d(filters)
    if relu:
        parts["relu"] = nonlinearity(settings, filters)
    return named(**parts)


def nonlinearity(settings: NetworkSettings, channels: int, default: Nonlinearity = "relu") -> nn.Module:
    """Return what follows a layer of so many channels; `default` where the settings leave it open."""
    kind = settings.nonlinearity or ("prelu" if settings.learns_thresholds else default)
    if kind == "relu":
        return nn.ReLU()
    return nn.PReLU(channels) if kind == "prelu" else RPReLU(channels)


def head(settings: NetworkSettings, features: int, *, dropout: float = 0.0) -> nn.Sequential:
    """The last layer, (N, features) -> (N, classes), with a bias: the offsets of the classes are few, and stay real.

    Where layers take signs, a norm stands before it, whether it is binary or not, as before every other layer. Weights
    of +1 and -1 have no size to learn, so after a "bnn" layer a norm gives the logits theirs, as in BNN. `dropout` is
    as in `unit`.
    """
    signs = settings.has_signs
    real = bool(settings.real_last) or (settings.weights == "real" and not signs)
    parts: dict[str, nn.Module] = {}
    if real and signs:
        parts["norm"] = nn.BatchNorm1d(features)
    if dropout and (real or not signs):
        parts["dropout"] = nn.Dropout(dropout)
    if real:
        parts["linear"] = nn.Linear(features, settings.classes)
        return named(**parts)
    scaled = settings.weights == "bnn"
    parts["linear"] = BinaryLinear(
        features,
        settings.classes,
        bias=not scaled,
        norm=signs and not settings.learns_thresholds,
        signed=settings.signed,
        settings=settings.layer,
    )
    if scaled:
        parts["norm"] = nn.BatchNorm1d(settings.classes)
    return named(**parts)


class Residual(nn.Module):
    """activation(shortcut(x) + branch(x))."""

    def __init__(self, branch: nn.Module, shortcut: nn.Module, activation: nn.Module) -> None:
        super().__init__()
        self.branch = branch
        self.shortcut = shortcut
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, C', H', W')."""
        result: Tensor = self.activation(self.shortcut(x) + self.branch(x))
        return result


def named(**parts: nn.Module) -> nn.Sequential:
    """Put modules one after the other, each under its name."""
    return nn.Sequential(OrderedDict(parts))
