"""Activations of few bits: their signs, never 0, or whole numbers of 4 or 8 bits; and what stands for the gradient.

    forward:   sign(x) = +1 where x >= 0, -1 elsewhere
               RSign:  sign(x - t), with one t per channel that is learned    (ReActNet)
    backward:  "clipped"   dC/dx = dC/dy where |x| < 1, else 0         (straight-through, as XNOR-Net)
               "approx"    dC/dx = dC/dy * (2 - 2|x|) where |x| < 1    (Bi-Real Net's piecewise polynomial)
               "annealed"  dC/dx = dC/dy * k t (1 - tanh²(t x))        (IR-Net; see `dabnet.binarizers.annealing`)
               RSign:  the same of x - t; and dC/dt = -sum of dC/dx over the channel

    signs that stand for c + d and c - d, with a centre c and a distance d that the layer learns    (AdaBin, Tu et al.)

    forward:   y = c + d sign((x - c) / d)
    backward:  that of these steps, with a stand-in for the sign's as above

    whole numbers, from low to high, in steps of a size s that is learned    (LSQ, Esser et al., 2020)

    forward:   n = round(min(max(x / s, low), high)),  y = s n
    backward:  dC/dx = dC/dy where low <= x / s <= high, else 0
               dC/ds = g sum(dC/dy d), with d = n - x / s there, and low or high elsewhere;
               g = 1 / sqrt(count(x) high) makes its steps as large as those of weights

Both are custom operators, so `torch.compile` keeps them in the graph.
"""

from __future__ import annotations

import math
from typing import Any, get_args

import torch
from torch import Tensor, nn

from dabnet.binarizers.annealing import Annealed, soft_sign, with_gradient_of
from dabnet.binarizers.choices import Activations, SignGradient, SignLevels, Threshold
from dabnet.errors import check_choice


def sign(x: Tensor, gradient: SignGradient = "clipped", progress: Tensor | None = None) -> Tensor:
    """Binarize activations of any shape to +1 and -1.

    The annealed gradient depends on the training's progress, (), which is 0 where it is left out.

    >>> x = torch.tensor([-1.0, -0.5, 0.0, 0.25], requires_grad=True)
    >>> sign(x, "approx")
    tensor([-1., -1.,  1.,  1.], grad_fn=...)
    >>> sign(x, "approx").sum().backward(); x.grad
    tensor([0.0000, 1.0000, 2.0000, 1.5000])
    """
    check_choice("gradient of sign", gradient, get_args(SignGradient))
    if gradient == "annealed":
        return with_gradient_of(
            _sign(x.detach(), gradient), soft_sign(x, x.new_zeros(()) if progress is None else progress)
        )
    binary: Tensor = _sign(x, gradient)
    return binary


class Sign(Annealed):
    """Takes the sign of a layer's inputs."""

    def __init__(self, gradient: SignGradient = "clipped") -> None:
        super().__init__()
        check_choice("gradient of sign", gradient, get_args(SignGradient))
        self.gradient: SignGradient = gradient
        if gradient == "annealed":
            self.keep_progress()

    def forward(self, x: Tensor) -> Tensor:
        """Any shape -> the same shape, +1 and -1."""
        return sign(x, self.gradient, self._buffers.get("progress"))

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
        self.to(device)  # its progress, too
        self.threshold = nn.Parameter(torch.zeros(channels, device=device, dtype=dtype))
        self._shape = (channels, *[1] * dims)

    def forward(self, x: Tensor) -> Tensor:
        """(..., channels, dims) -> the same shape, +1 and -1."""
        return super().forward(x - self.threshold.view(self._shape))

    def extra_repr(self) -> str:
        """Tell the channels and the gradient."""
        return f"{len(self.threshold)}, {super().extra_repr()}"


class LevelSign(Sign):
    """Takes signs of a layer's inputs about a centre, for a distance to either side; the layer learns both.

    What it returns are the signs times the distance: a layer adds the centre's share, which is a constant per filter.

    >>> quantize = LevelSign(); _ = quantize.centre.data.fill_(1.0); quantize.set_distance(0.5)
    >>> quantize(torch.tensor([0.0, 2.0])).tolist()
    [-0.5, 0.5]
    """

    def __init__(self, gradient: SignGradient = "clipped", *, device: Any = None, dtype: Any = None) -> None:
        super().__init__(gradient)
        self.to(device)  # its progress, too
        self.centre = nn.Parameter(torch.zeros((), device=device, dtype=dtype))
        # Its logarithm is what is learned, so that a distance stays above 0.
        self.log_distance = nn.Parameter(torch.zeros((), device=device, dtype=dtype))

    @property
    def distance(self) -> Tensor:
        """d, above 0, with gradients for what is learned."""
        return self.log_distance.exp()

    @torch.no_grad()
    def set_distance(self, distance: float) -> None:
        """Go on from another distance."""
        self.log_distance.fill_(math.log(distance))

    def signs(self, x: Tensor) -> Tensor:
        """Any shape -> the same shape, +1 and -1."""
        return super().forward((x - self.centre) / self.distance)

    def forward(self, x: Tensor) -> Tensor:
        """Any shape -> the same shape, d and -d."""
        return self.distance * self.signs(x)


class WholeNumbers(nn.Module):
    """Rounds a layer's inputs to whole numbers, in steps of a size that is learned.

    Of 4 bits they go from 0 to 15, of 8 bits from 0 to 255: what comes out of a ReLU is never negative. With `signed`
    half of them are below 0. The first step is for numbers up to 4, as norms make them.

    >>> quantize = WholeNumbers(4); quantize.low, quantize.high
    (0, 15)
    >>> quantize.round(torch.tensor([-1.0, 0.1, 0.2, 2.0, 9.0])).tolist()
    [0.0, 0.0, 1.0, 8.0, 15.0]
    """

    FIRST_RANGE = 4.0

    def __init__(self, bits: int, *, signed: bool = False, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.low = -(2 ** (bits - 1)) if signed else 0
        self.high = 2**bits - 1 + self.low
        # Its logarithm is what is learned, so that a step stays above 0.
        first = math.log(self.FIRST_RANGE / self.high)
        self.log_step = nn.Parameter(torch.tensor(first, device=device, dtype=dtype))

    @property
    def step(self) -> Tensor:
        """s, above 0, with gradients for what is learned."""
        return self.log_step.exp()

    @torch.no_grad()
    def set_step(self, step: float) -> None:
        """Go on from another step, such as one that suits the numbers that come in."""
        self.log_step.fill_(math.log(step))

    def round(self, x: Tensor) -> Tensor:
        """Any shape -> the whole numbers n, of the same shape and type."""
        return self._round(x, self.step)

    def _round(self, x: Tensor, step: Tensor) -> Tensor:
        # A product, as in the runtime, and not a quotient, which is rounded otherwise.
        whole: Tensor = _round((x * step.reciprocal()).clamp(self.low, self.high))
        return whole

    def forward(self, x: Tensor) -> Tensor:
        """Any shape -> the same shape, s n."""
        step = self.step
        share = 1 / math.sqrt(max(x.numel(), 1) * self.high)
        step = step.detach() + (step - step.detach()) * share  # the same number, with a smaller gradient
        return self._round(x, step) * step

    def extra_repr(self) -> str:
        """Tell the range."""
        return f"{self.low} to {self.high}"


def input_quantizer(
    activations: Activations,
    gradient: SignGradient,
    threshold: Threshold,
    levels: SignLevels,
    channels: int,
    *,
    dims: int,
    signed: bool = False,
    device: Any = None,
    dtype: Any = None,
) -> nn.Module | None:
    """Return what makes signs or whole numbers of a layer's inputs; None where they stay real.

    With `signed`, inputs may be below 0.
    """
    if activations == "real":
        return None
    if activations != "sign":
        return WholeNumbers(8 if activations == "int8" else 4, signed=signed, device=device, dtype=dtype)
    if levels == "learned":
        return LevelSign(gradient, device=device, dtype=dtype)
    if threshold == "learned":
        return RSign(channels, gradient, dims=dims, device=device, dtype=dtype)
    return Sign(gradient).to(device)


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


@torch.library.custom_op("dabnet::round", mutates_args=())
def _round(x: Tensor) -> Tensor:
    return torch.round(x)


@_round.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def _hand_on(ctx: Any, grad: Tensor) -> Tensor:
    return grad


_round.register_autograd(_hand_on)
