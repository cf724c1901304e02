"""Convolution and linear layers with one bit per weight, few bits per activation, or both.

They stand in for torch's own, and `weight` stays the real-valued, trainable tensor. With signs the block is XNOR-Net's:
(batch norm) -> sign -> convolution. Padding comes after the sign; a padded tap holds `pad_value`, and with 0 it adds
nothing.

While training, a layer multiplies by the binary weights alpha e + beta (1 - e). In eval mode one that takes signs or
whole numbers, too, computes the same number as the packed runtime does, from the signs s = 2e - 1:

    w~ . x = (alpha - beta)/2 (s . x) + (alpha + beta)/2 sum(x)

Both sums are integers, exact in float32 in whatever order they are added. Where they are of whole numbers, both factors
are times the step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dabnet.binarizers.activations import LevelSign, WholeNumbers, input_quantizer
from dabnet.binarizers.choices import Precision, Weights
from dabnet.binarizers.settings import BinarySettings, change_settings
from dabnet.binarizers.weights import TwoValues, WeightQuantizer, limited_low_count, weight_quantizer
from dabnet.errors import InputError

if TYPE_CHECKING:
    from torch.nn.common_types import _size_2_t


class BinaryLayer(nn.Module):
    """What binary convolutions and linear layers share.

    Two objects make tensors binary, each with its formula, its gradient and whatever it learns: `quantize_weight` and
    `quantize_input`; either is None where the tensor stays real.
    """

    weight: Tensor
    bias: Any
    norm: nn.Module | None
    low_count: Tensor | None
    quantize_weight: WeightQuantizer | None
    quantize_input: nn.Module | None

    def _set_binary(
        self,
        settings: BinarySettings,
        channels: int,
        dims: int,
        norm: type[nn.Module] | None,
        name: str,
        signed: bool,
    ) -> None:
        """Set up the quantizers for inputs (..., channels, dims), and a norm before the sign where one is given."""
        if settings.weights == "real" and not settings.has_signs:
            raise InputError(
                "'fprec' is not a precision of a binary layer: choose one of wbin, fbin, or other weights or "
                "activations than real."
            )
        if norm is not None and not settings.has_signs:
            raise InputError("norm=True puts a batch norm before the sign, and a 'wbin' layer has none: leave it out.")
        if norm is not None and settings.threshold == "learned":
            raise InputError(
                "norm=True puts a batch norm before the sign, whose shift already is a learned threshold: leave out "
                "norm or threshold='learned'."
            )
        like: dict[str, Any] = {"device": self.weight.device, "dtype": self.weight.dtype}
        self.has_signs, self.has_binary_weights = settings.has_signs, settings.weights != "real"
        self.keeps_weights_real = False  # for now: the first stage of a two-stage training
        self.name = name  # in the network, for errors
        self.norm = None if norm is None else norm(channels, **like)
        self.change_quantizer(settings)
        self.quantize_input = input_quantizer(
            settings.activations,
            settings.input_gradient,
            settings.threshold,
            settings.sign_levels,
            channels,
            dims=dims,
            signed=signed,
            **like,
        )

    def change_quantizer(self, settings: BinarySettings) -> None:
        """Make the weights binary as other settings say, from what they are now."""
        self.settings = settings
        self.quantize_weight = weight_quantizer(
            settings.weights,
            settings.gradient,
            len(self.weight),
            settings.split_every,
            device=self.weight.device,
            dtype=self.weight.dtype,
        )
        if self.quantize_weight is not None:
            self.quantize_weight.begin_(self.weight, self.name)
        # The size of each filter's group of smaller weights, where K's steps are limited; -1 is the optimum.
        anchor = None
        if settings.max_k_step is not None and self.has_binary_weights:
            anchor = torch.full((len(self.weight),), -1, dtype=torch.int64, device=self.weight.device)
        self.register_buffer("low_count", anchor)

    def _start(self) -> None:
        """Draw the first weights with the deviation that the settings ask for, if they do."""
        if self.settings.binary_start is not None and self.has_binary_weights:
            nn.init.normal_(self.weight, std=self.settings.binary_start)
            if self.quantize_weight is not None:
                self.quantize_weight.begin_(self.weight, self.name)

    @property
    def precision(self) -> Precision | None:
        """The paper's word for what is binary; None where it has none."""
        return self.settings.precision

    @property
    def method(self) -> Weights:
        """How a filter's two values are found."""
        return self.settings.weights

    @property
    def weights_per_filter(self) -> int:
        """n: how many weights a filter has."""
        return self.weight[0].numel()

    def binary_weight(self) -> Tensor:
        """The weights as the layer uses them, of the same shape, with gradients for `weight`."""
        if self.quantize_weight is None or self.keeps_weights_real:
            return self.weight
        binary: Tensor = self.quantize_weight(self.weight, self.low_count, self.name)
        return binary

    def two_values(self) -> TwoValues:
        """The mask and the two values of each filter, without gradients."""
        if self.quantize_weight is None:
            raise InputError(f"the weights of layer '{self.name}' are real: it has no two values.")
        return self.quantize_weight.with_values(self.weight.detach(), self.low_count, self.name)[1]

    @torch.no_grad()
    def constrain_(self, centre: bool = True) -> None:
        """Centre and clamp binary weights (Algorithm 2), and let the quantizer follow.

        Where K's steps are limited, it takes one.
        """
        if self.quantize_weight is None or self.keeps_weights_real:
            return
        if centre and self.weights_per_filter > 1:
            # Over the input channels, for each filter and tap; over the whole filter where it has one channel only.
            axes = (1,) if self.weight.shape[1] > 1 else tuple(range(1, self.weight.ndim))
            self.weight.sub_(self.weight.mean(dim=axes, keepdim=True))
        self.weight.clamp_(-1, 1)
        if self.settings.max_k_step is not None and self.low_count is not None:
            reach = max(1, int(self.settings.max_k_step * self.weights_per_filter))
            self.low_count.copy_(limited_low_count(self.weight, self.low_count, reach, self.name))
        self.quantize_weight.follow_(self.weight, self.name)

    def _binary_input(self, x: Tensor) -> Tensor:
        if self.quantize_input is None:
            return x
        signs: Tensor = self.quantize_input(self._normalize(x))
        return signs

    @property
    def counts_in_integers(self) -> bool:
        """Whether in eval mode the products are summed as integers."""
        return self.quantize_input is not None and self.has_binary_weights and not self.keeps_weights_real

    def integer_input(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the signs or whole numbers of the inputs, and the step that they stand for if it is not 1."""
        if isinstance(self.quantize_input, LevelSign):
            return self.quantize_input.signs(self._normalize(x)), self.quantize_input.distance
        if isinstance(self.quantize_input, WholeNumbers):
            return self.quantize_input.round(x), self.quantize_input.step
        return self._binary_input(x), None

    def total_bias(self, binary: Tensor) -> Tensor | None:
        """Return the bias with the share of the signs' centre, (filters,), for these binary weights."""
        bias: Tensor | None = self.bias
        if not isinstance(self.quantize_input, LevelSign):
            return bias
        share = self.quantize_input.centre * binary.flatten(1).sum(dim=1)
        return share if bias is None else bias + share

    def _normalize(self, x: Tensor) -> Tensor:
        return x if self.norm is None else self.norm(x)

    def _signs_and_scales(self, step: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
        """Return s of the weight's shape, (alpha - beta)/2 and (alpha + beta)/2 of shape (filters,), carrier and bias.

        Both factors are of inputs in such steps. The carrier is 0, of the weight's shape, with the gradient of the
        binary weights: a layer that adds its product with x hands that gradient on to `weight`, even where both values
        are the same. Without gradients it is None.
        """
        assert self.quantize_weight is not None
        binary, (mask, alpha, beta) = self.quantize_weight.with_values(self.weight, self.low_count, self.name)
        half_gap, offset = (alpha - beta) / 2, (alpha + beta) / 2
        signs = torch.where(mask, 1.0, -1.0).to(binary.dtype).reshape(binary.shape)
        carrier = binary - binary.detach() if binary.requires_grad else None
        if step is not None:
            half_gap, offset = half_gap * step, offset * step
            carrier = None if carrier is None else carrier * step
        return signs, half_gap.squeeze(1), offset.squeeze(1), carrier, self.total_bias(binary)

    def extra_repr(self) -> str:
        """Torch's own description of the layer, then how it is binary."""
        limit = "" if self.settings.max_k_step is None else f", max_k_step={self.settings.max_k_step}"
        return (
            f"{super().extra_repr()}, weights={self.settings.weights}, activations={self.settings.activations}{limit}"
        )


class BinaryConv2d(BinaryLayer, nn.Conv2d):
    """`nn.Conv2d` with binary weights; without a bias unless asked, as in the paper.

    Args, beside those of `nn.Conv2d`:
        pad_value: what a padded tap holds, 0 or 1.
        norm: put a batch norm in front of the sign.
        signed: whether inputs may be below 0, where whole numbers are made of them.
        name: of the layer in its network, for errors.
        settings: a `BinarySettings`, which explains them; left out, binary weights by DAB-Net and signs.
        changes: single settings by name, such as weights="xnor" or, as the paper, precision="wbin".

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
        signed: bool = False,
        name: str = "",
        settings: BinarySettings | None = None,
        **changes: Any,
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
        found = change_settings(settings, changes, "a binary layer")
        self.become_binary(found, pad_value=pad_value, norm=norm, name=name, signed=signed)
        self._start()

    def become_binary(
        self,
        settings: BinarySettings,
        *,
        pad_value: int = 0,
        norm: bool = False,
        name: str = "",
        signed: bool = False,
    ) -> None:
        """Set up everything that `nn.Conv2d` does not have."""
        if pad_value not in (0, 1):
            raise InputError(f"pad_value is what a padded tap holds, 0 or 1, not {pad_value}.")
        if pad_value and self.padding_mode != "zeros":
            raise InputError(f"pad_value=1 and padding_mode='{self.padding_mode}' contradict each other: choose one.")
        if pad_value and settings.sign_levels == "learned":
            raise InputError(
                "pad_value=1 is for signs of +1 and -1: with sign_levels='learned' a padded tap holds the centre."
            )
        if pad_value and settings.has_whole_numbers:
            raise InputError("pad_value=1 is for signs: a padded tap of whole numbers holds 0.")
        self.pad_value = pad_value
        self._set_binary(settings, self.in_channels, 2, nn.BatchNorm2d if norm else None, name, signed)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, filters, H', W')."""
        if self.training or not self.counts_in_integers:
            weight = self.binary_weight()
            return self._convolve(self._binary_input(x), weight, self.total_bias(weight))
        x, step = self.integer_input(x)
        signs, half_gap, offset, carrier, bias = self._signs_and_scales(step)
        box = torch.ones_like(signs[: self.groups])  # sums each group's inputs under the window
        sums = self._convolve(x, box, None)  # (N, groups, H', W')
        sums = sums.repeat_interleave(self.out_channels // self.groups, dim=-3)
        dots = self._convolve(x, signs, None)
        result = half_gap[:, None, None] * dots + offset[:, None, None] * sums
        if carrier is not None:
            result = result + self._convolve(x, carrier, None)
        return result if bias is None else result + bias[:, None, None]

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
        signed: bool = False,
        name: str = "",
        settings: BinarySettings | None = None,
        **changes: Any,
    ) -> None:
        nn.Linear.__init__(self, in_features, out_features, bias, device, dtype)
        self.become_binary(change_settings(settings, changes, "a binary layer"), norm=norm, name=name, signed=signed)
        self._start()

    def become_binary(
        self, settings: BinarySettings, *, norm: bool = False, name: str = "", signed: bool = False
    ) -> None:
        """Set up everything that `nn.Linear` does not have."""
        self._set_binary(settings, self.in_features, 0, nn.BatchNorm1d if norm else None, name, signed)

    def forward(self, x: Tensor) -> Tensor:
        """(..., features in) -> (..., features out)."""
        if self.training or not self.counts_in_integers:
            weight = self.binary_weight()
            return F.linear(self._binary_input(x), weight, self.total_bias(weight))
        x, step = self.integer_input(x)
        signs, half_gap, offset, carrier, bias = self._signs_and_scales(step)
        result = half_gap * F.linear(x, signs) + offset * x.sum(dim=-1, keepdim=True)
        if carrier is not None:
            result = result + F.linear(x, carrier)
        return result if bias is None else result + bias

    def _normalize(self, x: Tensor) -> Tensor:
        if self.norm is None:
            return x
        normal: Tensor = self.norm(x.reshape(-1, self.in_features))
        return normal.reshape(x.shape)
