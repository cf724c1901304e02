"""Convolution and linear layers with one bit a weight and, if wanted, one bit an activation.

They stand in for torch's own, and `weight` stays the real-valued, trainable tensor. With precision "fbin" the block is
XNOR-Net's: (batch norm) -> sign -> convolution. Padding comes after the sign; a padded tap holds `pad_value`, and with
0 it adds nothing.

While training, a layer multiplies by the binary weights alpha e + beta (1 - e). In eval mode an "fbin" layer computes
the same number as the packed runtime does, from the signs s = 2e - 1:

    w~ . x = (alpha - beta)/2 (s . x) + (alpha + beta)/2 sum(x)

Both sums are integers, exact in float32 in whatever order they are added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dabnet.binarizers.activations import sign
from dabnet.binarizers.choices import Method, Precision, SignGradient, WeightGradient
from dabnet.binarizers.weights import (
    TwoValues,
    binarize,
    binarize_with_values,
    check_gradient,
    default_gradient,
    limited_low_count,
    two_values,
)
from dabnet.errors import InputError, check_choice

if TYPE_CHECKING:
    from torch.nn.common_types import _size_2_t


class BinarySettings(TypedDict, total=False):
    """What every binary layer can be told; `BinaryConv2d` explains it."""

    precision: Precision
    method: Method
    gradient: WeightGradient | None
    input_gradient: SignGradient
    max_k_step: float | None
    name: str


class BinaryLayer(nn.Module):
    """What binary convolutions and linear layers share."""

    weight: Tensor
    norm: nn.Module | None
    low_count: Tensor | None

    def _set_binary(
        self,
        norm: nn.Module | None,
        precision: Precision = "fbin",
        method: Method = "dab",
        gradient: WeightGradient | None = None,
        input_gradient: SignGradient = "clipped",
        max_k_step: float | None = None,
        name: str = "",
    ) -> None:
        check_choice("precision of a binary layer", precision, ("wbin", "fbin"))
        check_choice("gradient of sign", input_gradient, get_args(SignGradient))
        gradient = default_gradient(method) if gradient is None else gradient
        check_gradient(method, gradient)
        if norm is not None and precision == "wbin":
            raise InputError("norm=True puts a batch norm before the sign, and a 'wbin' layer has none: leave it out.")
        if max_k_step is not None and (method != "dab" or not 0 < max_k_step <= 1):
            raise InputError(
                f"max_k_step={max_k_step} with method '{method}' makes no sense: it is a share of a filter's weights, "
                "above 0 and at most 1, and only 'dab' has a K that moves."
            )
        self.precision = precision
        self.method = method
        self.gradient = gradient
        self.input_gradient = input_gradient
        self.max_k_step = max_k_step
        self.name = name  # in the network, for errors
        self.norm = norm
        # The size of each filter's group of smaller weights, where its way is limited; -1 is the optimum.
        anchor = None
        if max_k_step is not None:
            anchor = torch.full((len(self.weight),), -1, dtype=torch.int64, device=self.weight.device)
        self.register_buffer("low_count", anchor)

    @property
    def weights_a_filter(self) -> int:
        """n: how many weights a filter has."""
        return self.weight[0].numel()

    def binary_weight(self) -> Tensor:
        """The weights with two values a filter, of the same shape, with gradients for `weight`."""
        return binarize(self.weight, self.method, self.gradient, low_count=self.low_count, layer=self.name)

    def two_values(self) -> TwoValues:
        """The mask and the two values of each filter, without gradients."""
        return two_values(self.weight, self.method, low_count=self.low_count, layer=self.name)

    @torch.no_grad()
    def constrain_(self, centre: bool = True) -> None:
        """Centre and clamp the weights (Algorithm 2) and, where K's way is limited, let it move one step."""
        if centre and self.weights_a_filter > 1:
            # Over the input channels, for each filter and tap; over the whole filter where it has one channel only.
            axes = (1,) if self.weight.shape[1] > 1 else tuple(range(1, self.weight.ndim))
            self.weight.sub_(self.weight.mean(dim=axes, keepdim=True))
        self.weight.clamp_(-1, 1)
        if self.max_k_step is not None and self.low_count is not None:
            reach = max(1, int(self.max_k_step * self.weights_a_filter))
            self.low_count.copy_(limited_low_count(self.weight, self.low_count, reach, self.name))

    def _binary_input(self, x: Tensor) -> Tensor:
        if self.precision == "wbin":
            return x
        return sign(self._normalize(x), self.input_gradient)

    def _normalize(self, x: Tensor) -> Tensor:
        return x if self.norm is None else self.norm(x)

    def _signs_and_scales(self) -> tuple[Tensor, Tensor, Tensor]:
        """Give s of the weight's shape, and (alpha - beta)/2 and (alpha + beta)/2 of shape (filters,).

        The gradient of s is scaled so that `half_gap * (s . x)` hands the binary weights' gradient on to `weight`.
        """
        binary, (mask, alpha, beta) = binarize_with_values(
            self.weight, self.method, self.gradient, low_count=self.low_count, layer=self.name
        )
        half_gap, middle = (alpha - beta) / 2, (alpha + beta) / 2
        signs = torch.where(mask, 1.0, -1.0).to(binary.dtype).reshape(binary.shape)
        if binary.requires_grad:
            column = half_gap.reshape(-1, *[1] * (binary.ndim - 1))
            column = torch.where(column == 0, 1, column)
            signs = signs + (binary - binary.detach()) / column
        return signs, half_gap.squeeze(1), middle.squeeze(1)

    def extra_repr(self) -> str:
        """Torch's own description of the layer, then how it is binary."""
        limit = "" if self.max_k_step is None else f", max_k_step={self.max_k_step}"
        return (
            f"{super().extra_repr()}, precision={self.precision}, method={self.method}, gradient={self.gradient}{limit}"
        )


class BinaryConv2d(BinaryLayer, nn.Conv2d):
    """`nn.Conv2d` with binary weights; without a bias unless asked, as in the paper.

    Args, beside those of `nn.Conv2d`:
        precision: "wbin" for binary weights, "fbin" for binary inputs too.
        method: how a filter's two values are found, "dab", "xnor" or "bnn".
        gradient: of the weights, "paper", "exact" or "ste"; the paper's if left out.
        input_gradient: of the inputs' sign, "clipped" or "approx".
        pad_value: what a padded tap holds, 0 or 1.
        norm: put a batch norm in front of the sign.
        max_k_step: the share of a filter's weights by which K may move in a step, for training that must be stabilized;
            `dabnet.constrain_` is what takes the step.

    >>> layer = BinaryConv2d(16, 32, 3, padding=1)
    >>> layer(torch.randn(1, 16, 8, 8)).shape
    torch.Size([1, 32, 8, 8])
    >>> len(layer.binary_weight()[0].unique())
    2
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: _size_2_t,
        stride: _size_2_t = 1,
        padding: str | _size_2_t = 0,
        dilation: _size_2_t = 1,
        groups: int = 1,
        bias: bool = False,
        padding_mode: Literal["zeros", "reflect", "replicate", "circular"] = "zeros",
        device: Any = None,
        dtype: Any = None,
        *,
        pad_value: int = 0,
        norm: bool = False,
        **settings: Unpack[BinarySettings],
    ) -> None:
        nn.Conv2d.__init__(
            self,
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )
        self.become_binary(pad_value=pad_value, norm=norm, **settings)

    def become_binary(self, *, pad_value: int = 0, norm: bool = False, **settings: Unpack[BinarySettings]) -> None:
        """Set up everything that `nn.Conv2d` does not have."""
        if pad_value not in (0, 1):
            raise InputError(f"pad_value is what a padded tap holds, 0 or 1, not {pad_value}.")
        if pad_value and self.padding_mode != "zeros":
            raise InputError(f"pad_value=1 and padding_mode='{self.padding_mode}' contradict each other: choose one.")
        self.pad_value = pad_value
        like: dict[str, Any] = {"device": self.weight.device, "dtype": self.weight.dtype}
        self._set_binary(nn.BatchNorm2d(self.in_channels, **like) if norm else None, **settings)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, filters, H', W')."""
        x = self._binary_input(x)
        if self.training or self.precision == "wbin":
            return self._convolve(x, self.binary_weight(), self.bias)
        signs, half_gap, middle = self._signs_and_scales()
        box = torch.ones_like(signs[: self.groups])  # sums each group's inputs under the window
        sums = self._convolve(x, box, None)  # (N, groups, H', W')
        sums = sums.repeat_interleave(self.out_channels // self.groups, dim=-3)
        dots = self._convolve(x, signs, None)
        result = half_gap[:, None, None] * dots + middle[:, None, None] * sums
        return result if self.bias is None else result + self.bias[:, None, None]

    def _convolve(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.pad_value:
            # torch keeps the amounts for F.pad whether `padding` is numbers, "same" or "valid".
            x = F.pad(x, self._reversed_padding_repeated_twice, value=float(self.pad_value))
            return F.conv2d(x, weight, bias, self.stride, 0, self.dilation, self.groups)
        result: Tensor = self._conv_forward(x, weight, bias)
        return result


class BinaryLinear(BinaryLayer, nn.Linear):
    """`nn.Linear` with binary weights; the settings are those of `BinaryConv2d`, less the padding.

    >>> BinaryLinear(16, 4)(torch.randn(2, 16)).shape
    torch.Size([2, 4])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        norm: bool = False,
        **settings: Unpack[BinarySettings],
    ) -> None:
        nn.Linear.__init__(self, in_features, out_features, bias, device, dtype)
        self.become_binary(norm=norm, **settings)

    def become_binary(self, *, norm: bool = False, **settings: Unpack[BinarySettings]) -> None:
        """Set up everything that `nn.Linear` does not have."""
        like: dict[str, Any] = {"device": self.weight.device, "dtype": self.weight.dtype}
        self._set_binary(nn.BatchNorm1d(self.in_features, **like) if norm else None, **settings)

    def forward(self, x: Tensor) -> Tensor:
        """(..., features in) -> (..., features out)."""
        x = self._binary_input(x)
        if self.training or self.precision == "wbin":
            return F.linear(x, self.binary_weight(), self.bias)
        signs, half_gap, middle = self._signs_and_scales()
        result = half_gap * F.linear(x, signs) + middle * x.sum(dim=-1, keepdim=True)
        return result if self.bias is None else result + self.bias

    def _normalize(self, x: Tensor) -> Tensor:
        if self.norm is None:
            return x
        normal: Tensor = self.norm(x.reshape(-1, self.in_features))
        return normal.reshape(x.shape)
