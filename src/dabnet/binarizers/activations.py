"""One-bit activations: `sign`, which is never 0, and what stands for its gradient.

    forward:   sign(x) = +1 where x >= 0, -1 elsewhere
    backward:  "clipped"   dC/dx = dC/dy where |x| < 1, else 0         (straight-through, as XNOR-Net)
               "approx"    dC/dx = dC/dy * (2 - 2|x|) where |x| < 1    (Bi-Real Net's piecewise polynomial)

`sign` is a custom operator, so `torch.compile` keeps it in the graph.
"""

from __future__ import annotations

from typing import Any, get_args

import torch
from torch import Tensor

from dabnet.binarizers.choices import SignGradient
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
