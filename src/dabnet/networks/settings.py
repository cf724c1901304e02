"""Everything that tells one network from another."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from dabnet._settings import Within
from dabnet.binarizers.settings import BinarySettings, takes_paper_names
from dabnet.errors import InputError

Shortcuts = Literal["block", "conv"]
"""What a shortcut of a residual network leads around: a block of two convolutions, or every convolution."""

Nonlinearity = Literal["relu", "prelu", "rprelu"]
"""What follows a layer: a ReLU, one with a learned slope per channel, or one that learns two shifts as well."""


@takes_paper_names
@dataclass(frozen=True)
class NetworkOptions(BinarySettings):
    """What can be chosen of a network, whatever its name and its classes; recipes have these settings, too."""

    OWNER: ClassVar[str] = "the network's"

    width: Annotated[float, Within(0.01, 4)] = 1.0
    """Factor on every layer's channels, which stay multiples of 8."""
    shortcuts: Shortcuts = "block"
    """For resnet18: around every block of two convolutions, as the paper, or around every convolution (conv)."""
    real_last: bool | None = None
    """Whether the last layer stays real; left out, as in the paper: in Sketch-A-Net only."""
    nonlinearity: Nonlinearity | None = None
    """What follows a layer but the first: relu, prelu or rprelu. Left out, relu as in the paper; and prelu where signs
    have a shortcut around every convolution, or learn their thresholds: after a ReLU all signs would be +1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.learns_thresholds and self.nonlinearity == "relu":
            raise InputError(
                "threshold='learned' with nonlinearity='relu' makes signs that are all +1: choose prelu or rprelu."
            )

    @property
    def signed(self) -> bool:
        """Whether what comes out of a layer's nonlinearity may be below 0."""
        return self.nonlinearity in ("prelu", "rprelu")

    @property
    def learns_thresholds(self) -> bool:
        """Whether layers learn where the signs of their inputs change, and no norm stands before them."""
        return self.has_signs and self.threshold == "learned"


@takes_paper_names
@dataclass(frozen=True, kw_only=True)
class NetworkSettings(NetworkOptions):
    """Everything that `dabnet.build` needs to know, with nothing left open."""

    name: str
    classes: Annotated[int, Within(2, 1_000_000)]
    input_size: Annotated[int, Within(1, 4096)]

    def channels(self, count: int) -> int:
        """How many channels stand for `count` at this width: a multiple of 8, at least 8."""
        return max(8, round(count * self.width / 8) * 8)

    @property
    def layer(self) -> BinarySettings:
        """What a binary layer is told: all but its first weights, which the network draws."""
        return dataclasses.replace(self.binary, binary_start=None)
