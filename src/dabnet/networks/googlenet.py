"""GoogLeNet (Szegedy et al., Going Deeper with Convolutions, 2015), with batch norm and without auxiliary heads.

Channels are those of that paper's Table 1, and shapes those of a sketch of 224x224 at width 1.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dabnet.networks.blocks import Network, head, named, real_unit, unit
from dabnet.networks.settings import NetworkSettings


class GoogLeNet(Network):
    """Three convolutions, nine inception modules, and a linear layer.

    Max pools pad their maps by 1, as those of ResNet-18 do, and so halve any size, rounding up.
    """

    PAPER_SIZE = 224
    LEAST_SIZE = 16
    PAPER_REAL_LAST = False

    def __init__(self, settings: NetworkSettings) -> None:
        super().__init__(settings)
        c1, c2 = settings.channels(64), settings.channels(192)
        self.stem = real_unit(settings, 1, c1, 7, stride=2, padding=3)
        self.pool1 = nn.MaxPool2d(3, stride=2, padding=1)
        self.conv2_reduce = unit(settings, c1, c1, 1)
        self.conv2 = unit(settings, c1, c2, 3, padding=1)
        self.pool2 = nn.MaxPool2d(3, stride=2, padding=1)
        # filters of: 1x1, (1x1 before 3x3, 3x3), (1x1 before 5x5, 5x5), 1x1 after pooling
        self.inception3a = Inception(settings, c2, 64, (96, 128), (16, 32), 32)
        self.inception3b = Inception(settings, self.inception3a.filters, 128, (128, 192), (32, 96), 64)
        self.pool3 = nn.MaxPool2d(3, stride=2, padding=1)
        self.inception4a = Inception(settings, self.inception3b.filters, 192, (96, 208), (16, 48), 64)
        self.inception4b = Inception(settings, self.inception4a.filters, 160, (112, 224), (24, 64), 64)
        self.inception4c = Inception(settings, self.inception4b.filters, 128, (128, 256), (24, 64), 64)
        self.inception4d = Inception(settings, self.inception4c.filters, 112, (144, 288), (32, 64), 64)
        self.inception4e = Inception(settings, self.inception4d.filters, 256, (160, 320), (32, 128), 128)
        self.pool4 = nn.MaxPool2d(3, stride=2, padding=1)
        self.inception5a = Inception(settings, self.inception4e.filters, 256, (160, 320), (32, 128), 128)
        self.inception5b = Inception(settings, self.inception5a.filters, 384, (192, 384), (48, 128), 128)
        self.average = nn.AdaptiveAvgPool2d(1)
        self.head = head(settings, self.inception5b.filters, dropout=0.4)
        self.finish()

    def forward(self, x: Tensor) -> Tensor:
        """(N, 1, H, W) -> (N, classes)."""
        x = self.stem(x)  # 64 x 112 x 112
        x = self.pool1(x)  # 64 x 56 x 56
        x = self.conv2(self.conv2_reduce(x))  # 192 x 56 x 56
        x = self.pool2(x)  # 192 x 28 x 28
        x = self.inception3a(x)  # 256 x 28 x 28
        x = self.inception3b(x)  # 480 x 28 x 28
        x = self.pool3(x)  # 480 x 14 x 14
        x = self.inception4a(x)  # 512 x 14 x 14
        x = self.inception4b(x)  # 512 x 14 x 14
        x = self.inception4c(x)  # 512 x 14 x 14
        x = self.inception4d(x)  # 528 x 14 x 14
        x = self.inception4e(x)  # 832 x 14 x 14
        x = self.pool4(x)  # 832 x 7 x 7
        x = self.inception5a(x)  # 832 x 7 x 7
        x = self.inception5b(x)  # 1024 x 7 x 7
        x = torch.flatten(self.average(x), 1)  # 1024
        logits: Tensor = self.head(x)
        return logits


class Inception(nn.Module):
    """Four branches side by side: 1x1, 3x3, 5x5, and pooling, each with a 1x1 that keeps it narrow."""

    def __init__(
        self, settings: NetworkSettings, inputs: int, one: int, three: tuple[int, int], five: tuple[int, int], pool: int
    ) -> None:
        super().__init__()
        c1, reduce3, c3, reduce5, c5, cp = (settings.channels(count) for count in (one, *three, *five, pool))
        self.filters = c1 + c3 + c5 + cp
        self.one = unit(settings, inputs, c1, 1)
        self.three = named(
            reduce=unit(settings, inputs, reduce3, 1),
            expand=unit(settings, reduce3, c3, 3, padding=1),
        )
        self.five = named(
            reduce=unit(settings, inputs, reduce5, 1),
            expand=unit(settings, reduce5, c5, 5, padding=2),
        )
        self.pool = named(
            pool=nn.MaxPool2d(3, stride=1, padding=1),
            project=unit(settings, inputs, cp, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        """(N, inputs, H, W) -> (N, filters, H, W)."""
        return torch.cat([self.one(x), self.three(x), self.five(x), self.pool(x)], dim=1)
