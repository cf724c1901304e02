"""One-bit activations: `sign`, which is never 0, and what stands for its gradient.

    forward:   sign(x) = +1 where x >= 0, -1 elsewhere
               RSign:  sign(x - t), with one t per channel that is learned    (ReActNet)
    backward:  "clipped"   dC/dx = dC/dy where |x| < 1, else 0         (straight-through, as XNOR-Net)
               "approx"    dC/dx = dC/dy * (2 - 2|x|) where |x| < 1    (Bi-Real Net's piecewise polynomial)
               RSign:  the same of x - t; and dC/dt = -sum of dC/dx over the channel

`sign` is a custom operator, so `torch.compile` keeps it in the graph.
"""

from __future__ import annotations

from typing import Any, get_args

import torch
from torch import Tensor, nn

from dabnet.binarizers.choices import Activations, SignGradient, Threshold
from dabnet.errors import check_choice


def sign(x: Tensor, gradient: SignGradient = "clipped") -> Tensor:
    """Binarize activations of any shape to +1 and -1.

    >>> x = torch.tensor([-1.0, -0.5, 0.0, 0.25], requires_grad=True)
    >>> sign(x, "approx")
    tensor([-1., -1.,  1.,  1.], grad_fn=...)
    >>> sign(x, "approx").sum().backward(); x.grad
    tensor([0.0000, 1.0000, 2.0000, 1.5000])
    """
    check_choice("gradient of sign", gradient, get_args(SignGradient))
    binary: Tensor = _sign(x, gradient)
    return binary


class Sign(nn.Module):
    """Takes the sign of a layer's inputs."""

    def __init__(self, gradient: SignGradient = "clipped") -> None:
        super().__init__()
        check_choice("gradient of sign", gradient, get_args(SignGradient))
        self.gradient: SignGradient = gradient

    def forward(self, x: Tensor) -> Tensor:
        """Any shape -> the same shape, +1 and -1."""
        return sign(x, self.gradient)

    def extra_repr(self) -> str:
        """Tell the gradient."""
        return f"gradient={self.gradient}"


class RSign(Sign):
    """Takes the sign of a layer's inputs above or below a threshold that each channel learns, from 0.

    `dims` are those of a channel, behind its axis: 2 in images (..., C, H, W), 0 in rows (..., C).

    >>> quantize = RSign(2, dims=0); _ = quantize.threshold.data.copy_(torch.tensor([0.5, -0.5]))
    >>> quantize(torch.zeros(1, 2)).tolist()
    [[-1.0, 1.0]]
    """

    def __init__(
        self, channels: int, gradient: SignGradient = "clipped", *, dims: int = 2, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(gradient)
        self.threshold = nn.Parameter(torch.zeros(channels, device=device, dtype=dtype))
        self._shape = (channels, *[1] * dims)

    def forward(self, x: Tensor) -> Tensor:
        """(..., channels, dims) -> the same shape, +1 and -1."""
        return sign(x - self.threshold.view(self._shape), self.gradient)

    def extra_repr(self) -> str:
        """Tell the channels and the gradient."""
        return f"{len(self.threshold)}, {super().extra_repr()}"


def input_quantizer(
    activations: Activations,
    gradient: SignGradient,
    threshold: Threshold,
    channels: int,
    *,
    dims: int,
    device: Any = None,
    dtype: Any = None,
) -> nn.Module | None:
    """Return what makes a layer's inputs binary; None where they stay real."""
    if activations != "sign":
        return None
    if threshold == "learned":
        return RSign(channels, gradient, dims=dims, device=device, dtype=dtype)
    return Sign(gradient)


@torch.library.custom_op("dabnet::sign", mutates_args=())
def _sign(x: Tensor, gradient: str) -> Tensor:
    # One new tensor, and no temporary ones: on large activations the memory costs more than the arithmetic.
    return torch.ge(x, 0, out=torch.empty_like(x)).mul_(2).sub_(1)


@_sign.register_fake
def _(x: Tensor, gradient: str) -> Tensor:
    return torch.empty_like(x)


def _remember(ctx: Any, inputs: tuple[Tensor, str], output: Tensor) -> None:
    x, ctx.gradient = inputs
    ctx.save_for_backward(x)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    (x,) = ctx.saved_tensors
    clipped = torch.ops.aten.hardtanh_backward(grad, x, -1.0, 1.0)  # nothing from -1 down and from 1 up
    return (clipped if ctx.gradient == "clipped" else clipped * (2 - 2 * x.abs())), None


_sign.register_autograd(_backward, setup_context=_remember)
