"""Sketch-A-Net (Yu et al., Sketch-a-Net that Beats Humans, 2015), with batch norm.

Shapes are those of a sketch of 225x225 at width 1.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dabnet.networks.blocks import Network, head, real_unit, unit
from dabnet.networks.settings import NetworkSettings


class SketchANet(Network):
    """Large first filters for what has no texture, four convolutions, and three fully connected layers.

    The first of those is a convolution as large as the map it sees, so another input size changes its kernel.
    """

    PAPER_SIZE = 225
    LEAST_SIZE = 81  # leaves a last map of one pixel
    PAPER_REAL_LAST = True

    def __init__(self, settings: NetworkSettings) -> None:
        super().__init__(settings)
        c1, c2, c3, full = (settings.channels(count) for count in (64, 128, 256, 512))
        self.conv1 = real_unit(settings, 1, c1, 15, stride=3)
        self.pool1 = nn.MaxPool2d(3, stride=2)
        self.conv2 = unit(settings, c1, c2, 5)
        self.pool2 = nn.MaxPool2d(3, stride=2)
        self.conv3 = unit(settings, c2, c3, 3, padding=1)
        self.conv4 = unit(settings, c3, c3, 3, padding=1)
        self.conv5 = unit(settings, c3, c3, 3, padding=1)
        self.pool5 = nn.MaxPool2d(3, stride=2)
        self.full6 = unit(settings, c3, full, last_map(settings.input_size))
        self.full7 = unit(settings, full, full, 1, dropout=0.5)
        self.head = head(settings, full, dropout=0.5)
        self.finish()

    def forward(self, x: Tensor) -> Tensor:
        """(N, 1, H, W) -> (N, classes)."""
        x = self.conv1(x)  # 64 x 71 x 71
        x = self.pool1(x)  # 64 x 35 x 35
        x = self.conv2(x)  # 128 x 31 x 31
        x = self.pool2(x)  # 128 x 15 x 15
        x = self.conv3(x)  # 256 x 15 x 15
        x = self.conv4(x)  # 256 x 15 x 15
        x = self.conv5(x)  # 256 x 15 x 15
        x = self.pool5(x)  # 256 x 7 x 7
        x = self.full6(x)  # 512 x 1 x 1
        x = self.full7(x)  # 512 x 1 x 1
        logits: Tensor = self.head(torch.flatten(x, 1))
        return logits


def last_map(input_size: int) -> int:
    """The size of the map that the first fully connected layer sees.

    >>> last_map(225), last_map(81)
    (7, 1)
    """
    size = (input_size - 15) // 3 + 1  # conv1
    size = (size - 3) // 2 + 1  # pool1
    size = size - 4  # conv2
    size = (size - 3) // 2 + 1  # pool2
    return (size - 3) // 2 + 1  # pool5
