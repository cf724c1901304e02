"""What the three networks are built of: one unit of convolution, norm and ReLU for every precision and method.

For "fprec" and "wbin" the order is convolution -> batch norm -> ReLU. For "fbin" it is XNOR-Net's, batch norm -> sign
-> convolution -> ReLU: what comes out of a ReLU is never negative, and its sign says nothing until a norm centred it.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from torch import Tensor, nn

from dabnet.binarizers.choices import Method, Precision, SignGradient, WeightGradient
from dabnet.networks.layers import BinaryConv2d, BinaryLayer, BinaryLinear, BinarySettings

Shortcuts = Literal["block", "conv"]
"""What a shortcut of a residual network leads around: a block of two convolutions, or every convolution."""


@dataclass(frozen=True)
class NetworkSettings:
    """Everything that tells one network from another; `dabnet.networks.catalog.build` explains it."""

    name: str
    classes: int
    precision: Precision
    method: Method
    width: float
    input_size: int
    shortcuts: Shortcuts
    real_last: bool
    gradient: WeightGradient
    input_gradient: SignGradient
    max_k_step: float | None

    def channels(self, count: int) -> int:
        """How many channels stand for `count` at this width: a multiple of 8, at least 8."""
        return max(8, round(count * self.width / 8) * 8)

    @property
    def binary(self) -> BinarySettings:
        """What a binary layer is told."""
        return {
            "precision": self.precision,
            "method": self.method,
            "gradient": self.gradient,
            "input_gradient": self.input_gradient,
            "max_k_step": self.max_k_step,
        }


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
        """Name the binary layers by their place in the network, and start all weights.

        Convolutions start as Kaiming normal by fan out, as the paper's code does, norms as 1 and 0. The linear layer
        starts by fan in, so that the first logits are of size 1 for any number of classes.
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


def real_unit(inputs: int, filters: int, kernel: int, stride: int = 1, padding: int = 0) -> nn.Sequential:
    """Convolution -> batch norm -> ReLU in real numbers: the first layer of every network."""
    return named(
        conv=nn.Conv2d(inputs, filters, kernel, stride, padding, bias=False),
        norm=nn.BatchNorm2d(filters),
        relu=nn.ReLU(),
    )


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
    """A convolution with its norm and, unless told otherwise, its ReLU, in the order that the precision asks for.

    `dropout` is of the inputs, where they are real numbers. There is none before a sign: a value that is dropped falls
    below the mean, others rise above it, and their signs would tell which were dropped rather than what they were.
    """
    parts: dict[str, nn.Module] = {}
    if settings.precision == "fbin":
        parts["conv"] = BinaryConv2d(inputs, filters, kernel, stride, padding, norm=True, **settings.binary)
    else:
        if dropout:
            parts["dropout"] = nn.Dropout(dropout)
        if settings.precision == "wbin":
            parts["conv"] = BinaryConv2d(inputs, filters, kernel, stride, padding, **settings.binary)
        else:
            parts["conv"] = nn.Conv2d(inputs, filters, kernel, stride, padding, bias=False)
        parts["norm"] = nn.BatchNorm2d(filters)
    if relu:
        parts["relu"] = nn.ReLU()
    return named(**parts)


def head(settings: NetworkSettings, features: int, *, dropout: float = 0.0) -> nn.Sequential:
    """The last layer, (N, features) -> (N, classes), with a bias: the offsets of the classes are few, and stay real.

    With "fbin" a norm stands before it, whether it is binary or not, as before every other layer. Weights of +1 and -1
    have no size to learn, so after a "bnn" layer a norm gives the logits theirs, as in BNN. `dropout` is as in `unit`.
    """
    signs = settings.precision == "fbin"
    real = settings.precision == "fprec" or settings.real_last
    parts: dict[str, nn.Module] = {}
    if real and signs:
        parts["norm"] = nn.BatchNorm1d(features)
    if dropout and (real or not signs):
        parts["dropout"] = nn.Dropout(dropout)
    if real:
        parts["linear"] = nn.Linear(features, settings.classes)
    elif settings.method == "bnn":
        parts["linear"] = BinaryLinear(features, settings.classes, norm=signs, **settings.binary)
        parts["norm"] = nn.BatchNorm1d(settings.classes)
    else:
        parts["linear"] = BinaryLinear(features, settings.classes, bias=True, norm=signs, **settings.binary)
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
