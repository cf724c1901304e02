"""ResNet-18 (He et al., Deep Residual Learning for Image Recognition, 2016) for one channel of ink.

Shapes are those of a sketch of 224x224 at width 1.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dabnet.networks.blocks import Network, Residual, head, named, nonlinearity, real_unit, unit
from dabnet.networks.settings import NetworkSettings, Nonlinearity


class ResNet18(Network):
    """A real convolution, four stages of two blocks of two convolutions, and a linear layer.

    `shortcuts="block"` is He's network: a shortcut leads around each block, through a 1x1 convolution of stride 2 where
    the block makes the map smaller, binary if the rest is.

    `shortcuts="conv"` has the shape of Bi-Real Net (Liu et al., 2018): a shortcut leads around each convolution, so
    real numbers flow from the first layer to the last, whatever the signs lose. Where the map gets smaller, the
    shortcut is an average over 2x2, then a real 1x1 convolution and a norm. With signs one step is

        y = PReLU(shortcut(x) + conv(sign(BatchNorm(x))))

    with one slope per channel: a ReLU would cut off, at every step, half of what the shortcuts carry. With
    `threshold="learned"` and `nonlinearity="rprelu"` it is ReActNet's (Liu et al., 2020):

        y = RPReLU(shortcut(x) + BatchNorm(conv(RSign(x))))
    """

    PAPER_SIZE = 224
    LEAST_SIZE = 16
    PAPER_REAL_LAST = False

    def __init__(self, settings: NetworkSettings) -> None:
        super().__init__(settings)
        c1, c2, c3, c4 = (settings.channels(count) for count in (64, 128, 256, 512))
        self.stem = real_unit(settings, 1, c1, 7, stride=2, padding=3)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.stage1 = nn.Sequential(block(settings, c1, c1), block(settings, c1, c1))
        self.stage2 = nn.Sequential(block(settings, c1, c2, stride=2), block(settings, c2, c2))
        self.stage3 = nn.Sequential(block(settings, c2, c3, stride=2), block(settings, c3, c3))
        self.stage4 = nn.Sequential(block(settings, c3, c4, stride=2), block(settings, c4, c4))
        self.average = nn.AdaptiveAvgPool2d(1)
        self.head = head(settings, c4)
        self.finish()

    def forward(self, x: Tensor) -> Tensor:
        """(N, 1, H, W) -> (N, classes)."""
        x = self.stem(x)  # 64 x 112 x 112
        x = self.pool(x)  # 64 x 56 x 56
        x = self.stage1(x)  # 64 x 56 x 56
        x = self.stage2(x)  # 128 x 28 x 28
        x = self.stage3(x)  # 256 x 14 x 14
        x = self.stage4(x)  # 512 x 7 x 7
        x = torch.flatten(self.average(x), 1)  # 512
        logits: Tensor = self.head(x)
        return logits


def block(settings: NetworkSettings, inputs: int, filters: int, stride: int = 1) -> nn.Module:
    """Two 3x3 convolutions and their shortcuts, (N, inputs, H, W) -> (N, filters, H/stride, W/stride)."""
    if settings.shortcuts == "conv":
        return named(conv1=step(settings, inputs, filters, stride), conv2=step(settings, filters, filters))
    branch = named(
        conv1=unit(settings, inputs, filters, 3, stride, padding=1),
        conv2=unit(settings, filters, filters, 3, padding=1, relu=False),
    )
    shortcut: nn.Module = nn.Identity()
    if stride > 1:
        shortcut = unit(settings, inputs, filters, 1, stride, relu=False)
    return Residual(branch, shortcut, nonlinearity(settings, filters))


def step(settings: NetworkSettings, inputs: int, filters: int, stride: int = 1) -> nn.Module:
    """One 3x3 convolution and its shortcut, (N, inputs, H, W) -> (N, filters, H/stride, W/stride)."""
    branch = unit(settings, inputs, filters, 3, stride, padding=1, relu=False)
    shortcut: nn.Module = nn.Identity()
    if stride > 1:
        shortcut = named(
            # Rounds an odd size up, as the convolution beside it does.
            pool=nn.AvgPool2d(stride, ceil_mode=True),
            conv=nn.Conv2d(inputs, filters, 1, bias=False),
            norm=nn.BatchNorm2d(filters),
        )
    default: Nonlinearity = "prelu" if settings.has_signs else "relu"
    return Residual(branch, shortcut, nonlinearity(settings, filters, default))
