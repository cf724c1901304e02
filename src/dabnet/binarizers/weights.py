"""One-bit weights: a filter's n weights w become two values, `alpha` where the mask e is set and `beta` elsewhere.

    forward     w~ = alpha e + beta (1 - e), per filter

    "dab"       alpha, beta, e from the optimal split            (DAB-Net)
    "xnor"      alpha = mean|w|, beta = -alpha, e = [w >= 0]     (BWN with real inputs, XNOR-Net with binary ones)
    "bnn"       alpha = 1, beta = -1, e = [w >= 0]               (BNN)

    "irnet", "recu", "adabin"    see `dabnet.binarizers.later`
    "dab-learned"                see `dabnet.binarizers.kept`

Of the two groups of weights the low one has the smaller value. Its size is the low count: n - K or K, where K = sum(e),
as alpha is the larger value or the smaller one. Training may prescribe or limit it.

The gradient that reaches w_i, from g_i = dC/dw~_i, with [.] for 1 where true and 0 where not:

    "paper"     dab     g_i (1/K + |alpha| [|w_i| <= 1])  in alpha's group (Theorem 4)
                        g_i (1/(n-K) + |beta| [|w_i| <= 1])  in beta's
                xnor    g_i (1/n + alpha [|w_i| <= 1])
    "exact"     dab     mean of g over w_i's group + g_i |alpha - beta|/2 [|w_i| <= 1]
                xnor    sign(w_i) mean_j(g_j sign(w_j)) + alpha g_i [|w_i| <= 1]
                        The first term is the true derivative of the values with the mask held, the second one stands
                        for the mask's.
    "ste"       all     g_i [|w_i| <= 1], the clipped straight-through estimator; for bnn there is no other.

Binarizing by these three is a custom operator, so `torch.compile` keeps it in the graph.
"""

from __future__ import annotations

from typing import Any, ClassVar, get_args

import torch
from torch import Tensor

from dabnet import _native
from dabnet.binarizers.choices import Method, WeightGradient, Weights
from dabnet.binarizers.kept import LearnedDab, RareDab
from dabnet.binarizers.later import AdabinWeights, IrnetWeights, RecuWeights
from dabnet.binarizers.quantizer import TwoValues, WeightQuantizer
from dabnet.binarizers.rows import from_rows, is_channels_last, select, to_rows
from dabnet.binarizers.sweep import split_weights
from dabnet.errors import check_choice

__all__ = ["QUANTIZERS", "TwoValues", "WeightQuantizer", "binarize", "two_values", "weight_quantizer"]


def binarize(
    weight: Tensor,
    method: Method = "dab",
    gradient: WeightGradient | None = None,
    *,
    low_count: Tensor | None = None,
    layer: str = "",
) -> Tensor:
    """Binarize weights of shape (filters, ...), differentiably; each filter keeps two values.

    The default gradient is the paper's; where a method has none, its authors'. `low_count`, int64 (filters,),
    prescribes the low count of each filter for "dab", -1 meaning the optimum. `layer` is a name for errors.

    >>> w = torch.tensor([[-0.5, 0.25, 0.25, 0.5]], requires_grad=True)
    >>> binarize(w, "dab", "ste")
    tensor([[-0.5000,  0.3333,  0.3333,  0.3333]], grad_fn=...)
    >>> (binarize(w, "dab", "paper") * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward(); w.grad
    tensor([[1.5000, 1.3333, 2.0000, 2.6667]])
    """
    binary: Tensor = _fresh(weight, method, gradient, layer)(weight, low_count, layer)
    return binary


def two_values(
    weight: Tensor, method: Method = "dab", *, low_count: Tensor | None = None, layer: str = ""
) -> TwoValues:
    """Return the mask and the two values that `binarize` builds its answer from."""
    return _fresh(weight, method, None, layer).with_values(weight.detach(), low_count, layer)[1]


def _fresh(weight: Tensor, method: Method, gradient: WeightGradient | None, layer: str) -> WeightQuantizer:
    """Return a quantizer that knows nothing but these weights."""
    check_choice("method", method, get_args(Method))
    if gradient is not None:
        check_choice("gradient of weights", gradient, get_args(WeightGradient))
    quantizer = QUANTIZERS[method](gradient, len(weight)).to(weight.device)
    quantizer.begin_(weight, layer)
    return quantizer


def weight_quantizer(
    weights: Weights, gradient: WeightGradient | None = None, filters: int = 0, split_every: int = 1, **like: Any
) -> WeightQuantizer | None:
    """Return what makes the weights of so many filters binary; None where they stay real.

    `like` is the device and the type of what it learns.

    >>> weight_quantizer("dab")
    DabWeights(gradient=paper)
    """
    if weights == "real":
        return None
    if weights == "dab" and split_every > 1:
        return RareDab(gradient, filters, split_every, **like)
    if weights == "dab-learned":
        return LearnedDab(gradient, filters, **like)
    return QUANTIZERS[weights](gradient, filters).to(like.get("device"))


def default_gradient(method: Method) -> WeightGradient:
    """Return the gradient that is used where none is chosen: the paper's, if the method has it."""
    check_choice("method", method, get_args(Method))
    return QUANTIZERS[method].choose_gradient(None)


def check_gradient(method: Method, gradient: WeightGradient) -> None:
    """Raise an `InputError` unless `method` knows `gradient`."""
    check_choice("method", method, get_args(Method))
    check_choice("gradient of weights", gradient, get_args(WeightGradient))
    QUANTIZERS[method].choose_gradient(gradient)


def limited_low_count(weight: Tensor, low_count: Tensor, reach: int, layer: str = "") -> Tensor:
    """Return the low count, (filters,), of the best split whose low count is within `reach` of `low_count`.

    Where `low_count` is -1, the best of all splits counts.
    """
    w = weight.detach().reshape(len(weight), -1)
    split = split_weights(w, (low_count - reach, _highest_low_count(low_count, reach, w)), layer)
    return torch.where(split.alpha < split.beta, split.k, w.shape[1] - split.k)


def _highest_low_count(low_count: Tensor, reach: int, w: Tensor) -> Tensor:
    """Return the highest low count that is allowed: `reach` above `low_count`, or any where that is -1."""
    return (low_count + reach).masked_fill(low_count < 0, w.shape[1])


def _signs_times(w: Tensor, alpha: Tensor) -> tuple[Tensor, TwoValues]:
    """Return the signs of (filters, n) weights, times alpha (filters, 1)."""
    values = TwoValues(w >= 0, alpha, -alpha)
    return select(*values), values


# The gradients work in place where they can: on large layers new memory costs more than the arithmetic.


def _ste(g: Tensor, w: Tensor, values: TwoValues) -> Tensor:
    """Return g [|w| <= 1]; the operator's own bounds are exclusive, so they are the next numbers after 1 and -1."""
    bound = 1 + torch.finfo(w.dtype).eps
    clipped: Tensor = torch.ops.aten.hardtanh_backward(g, w, -bound, bound)
    return clipped


def _group_sizes(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Count each filter's two groups, (filters, 1); an empty group counts 1, for it is only divided by."""
    k = mask.sum(dim=1, keepdim=True)
    return k.clamp(min=1), (mask.shape[1] - k).clamp(min=1)


def _is_clamped(w: Tensor) -> bool:
    """Say whether all weights are within [-1, 1], as Algorithm 2 keeps them: then nothing is clipped."""
    low, high = torch.aminmax(w)
    return bool(low >= -1) and bool(high <= 1)


class OperatorWeights(WeightQuantizer):
    """What the first three have in common: formula and gradients on weights as rows, (filters, n), in one operator."""

    @staticmethod
    def find(w: Tensor, low_count: Tensor | None, layer: str) -> tuple[Tensor, TwoValues]:
        """Return the binary weights of (filters, n) real ones, and what they are made of.

        The gradients take g = dC/dw~, (filters, n), the weights and what they became.
        """
        raise NotImplementedError

    def forward(self, weight: Tensor, low_count: Tensor | None = None, layer: str = "") -> Tensor:
        """(filters, ...) -> the same shape, with two values per filter."""
        binary: Tensor = _binarize(weight, self.METHOD, self.gradient, low_count, layer)[0]
        return binary

    def with_values(self, weight: Tensor, low_count: Tensor | None = None, layer: str = "") -> tuple[Tensor, TwoValues]:
        """Do as `forward`, and return the mask and the two values as well; those have no gradient."""
        binary, mask, alpha, beta = _binarize(weight, self.METHOD, self.gradient, low_count, layer)
        return binary, TwoValues(from_rows(mask, weight).flatten(1), alpha.detach(), beta.detach())


class DabWeights(OperatorWeights):
    """DAB-Net's quantizer: the optimal split."""

    METHOD = "dab"

    @staticmethod
    def find(w: Tensor, low_count: Tensor | None, layer: str) -> tuple[Tensor, TwoValues]:
        """Return what the optimal split, or the prescribed one, leaves of (filters, n) weights."""
        low_counts = None if low_count is None else (low_count, _highest_low_count(low_count, 0, w))
        binary = torch.empty_like(w, memory_format=torch.contiguous_format) if w.dtype == torch.float32 else None
        split = split_weights(w, low_counts, layer, binary)
        values = TwoValues(split.mask, split.alpha[:, None].to(w.dtype), split.beta[:, None].to(w.dtype))
        return select(*values) if binary is None else binary, values

    @staticmethod
    def paper(g: Tensor, w: Tensor, values: TwoValues) -> Tensor:
        """Return Theorem 4's gradient."""
        mask, alpha, beta = values
        if w.dtype == g.dtype == torch.float32 and w.device.type == "cpu":
            out = torch.empty_like(w, memory_format=torch.contiguous_format)
            _native.paper_gradient(
                g.contiguous().numpy(),
                w.detach().contiguous().numpy(),
                mask.view(torch.uint8).numpy(),
                alpha.flatten().numpy(),
                beta.flatten().numpy(),
                torch.get_num_threads(),
                out.numpy(),
            )
            return out
        one_over_k, one_over_rest = ((1 / count).to(w.dtype) for count in _group_sizes(mask))
        clipped = _ste(g, w, values).mul_(select(mask, alpha.abs(), beta.abs()))
        return clipped.addcmul_(g, select(mask, one_over_k, one_over_rest))

    @staticmethod
    def exact(g: Tensor, w: Tensor, values: TwoValues) -> Tensor:
        """Return the values' true derivative, and a stand-in for the mask's."""
        mask, alpha, beta = values
        k, rest = _group_sizes(mask)
        alpha_sum = (g * mask).sum(dim=1, keepdim=True)
        beta_sum = g.sum(dim=1, keepdim=True) - alpha_sum
        group_mean = select(mask, alpha_sum / k, beta_sum / rest)
        return _ste(g, w, values).mul_((alpha - beta).abs() / 2).add_(group_mean)

    GRADIENTS: ClassVar = {"paper": paper, "exact": exact, "ste": _ste}


class XnorWeights(OperatorWeights):
    """XNOR-Net's quantizer: the signs, times the mean magnitude."""

    METHOD = "xnor"

    @staticmethod
    def find(w: Tensor, low_count: Tensor | None, layer: str) -> tuple[Tensor, TwoValues]:
        """Return signs and mean magnitudes of (filters, n) weights."""
        return _signs_times(w, w.abs().mean(dim=1, keepdim=True))

    @staticmethod
    def paper(g: Tensor, w: Tensor, values: TwoValues) -> Tensor:
        """Return XNOR-Net's gradient."""
        if _is_clamped(w):
            return g * (values.alpha + 1 / w.shape[1])
        return _ste(g, w, values).mul_(values.alpha).add_(g / w.shape[1])

    @staticmethod
    def exact(g: Tensor, w: Tensor, values: TwoValues) -> Tensor:
        """Return the values' true derivative, and a stand-in for the mask's."""
        one = torch.ones_like(values.alpha)
        signs = select(values.mask, one, -one)
        mean = (g * signs).mean(dim=1, keepdim=True)
        return _ste(g, w, values).mul_(values.alpha).addcmul_(signs, mean)

    GRADIENTS: ClassVar = {"paper": paper, "exact": exact, "ste": _ste}


class BnnWeights(OperatorWeights):
    """BNN's quantizer: the signs."""

    METHOD = "bnn"

    @staticmethod
    def find(w: Tensor, low_count: Tensor | None, layer: str) -> tuple[Tensor, TwoValues]:
        """Return signs of (filters, n) weights."""
        return _signs_times(w, w.new_ones(len(w), 1))

    GRADIENTS: ClassVar = {"ste": _ste}


QUANTIZERS: dict[str, type[WeightQuantizer]] = {
    quantizer.METHOD: quantizer
    for quantizer in (DabWeights, XnorWeights, BnnWeights, LearnedDab, IrnetWeights, RecuWeights, AdabinWeights)
}
_OPERATORS: dict[str, type[OperatorWeights]] = {each.METHOD: each for each in (DabWeights, XnorWeights, BnnWeights)}


@torch.library.custom_op("dabnet::binarize", mutates_args=())
def _binarize(
    weight: Tensor, method: str, gradient: str, low_count: Tensor | None, layer: str
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    binary, values = _OPERATORS[method].find(to_rows(weight, weight), low_count, layer)
    return from_rows(binary, weight), *values


@_binarize.register_fake
def _(
    weight: Tensor, method: str, gradient: str, low_count: Tensor | None, layer: str
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    filters = weight.shape[0]
    layout = torch.channels_last if is_channels_last(weight) else torch.contiguous_format
    binary = torch.empty_like(weight, memory_format=layout)
    mask = weight.new_empty((filters, weight[0].numel()), dtype=torch.bool)
    return binary, mask, weight.new_empty((filters, 1)), weight.new_empty((filters, 1))


def _save_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    weight, ctx.method, ctx.gradient, _, _ = inputs
    _, mask, alpha, beta = output
    ctx.save_for_backward(weight, mask, alpha, beta)


def _backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    return _gradient(grad, *ctx.saved_tensors, ctx.method, ctx.gradient), None, None, None, None


@torch.library.custom_op("dabnet::binarize_gradient", mutates_args=())
def _gradient(
    grad: Tensor, weight: Tensor, mask: Tensor, alpha: Tensor, beta: Tensor, method: str, gradient: str
) -> Tensor:
    formula = _OPERATORS[method].GRADIENTS[gradient]
    return from_rows(formula(to_rows(grad, weight), to_rows(weight, weight), TwoValues(mask, alpha, beta)), weight)


@_gradient.register_fake
def _(grad: Tensor, weight: Tensor, mask: Tensor, alpha: Tensor, beta: Tensor, method: str, gradient: str) -> Tensor:
    layout = torch.channels_last if is_channels_last(weight) else torch.contiguous_format
    return torch.empty_like(weight, memory_format=layout)


_binarize.register_autograd(_backward, setup_context=_save_for_backward)
