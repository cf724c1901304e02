"""What every quantizer of weights is: a formula of two values per filter, and what stands for its gradient."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

from torch import Tensor

from dabnet.binarizers.annealing import Annealed
from dabnet.binarizers.choices import Method, WeightGradient
from dabnet.errors import InputError


class TwoValues(NamedTuple):
    """What is left of a layer's weights: two values per filter, and which weight takes which."""

    mask: Tensor
    """(filters, n) bool: the weights that take `alpha`."""
    alpha: Tensor
    """(filters, 1)"""
    beta: Tensor
    """(filters, 1)"""


class WeightQuantizer(Annealed):
    """Makes a layer's weights binary.

    A subclass has the formula and its gradients; a line in `dabnet.binarizers.weights.QUANTIZERS` gives it its name. It
    may own parameters, and buffers that belong to the state of a training.
    """

    METHOD: ClassVar[Method]
    GRADIENTS: ClassVar[Mapping[str, Callable[..., Tensor]]]
    """The formula of each gradient by its name; the first is the default."""

    def __init__(self, gradient: WeightGradient | None = None, filters: int = 0) -> None:
        super().__init__()
        self.gradient: WeightGradient = type(self).choose_gradient(gradient)

    @classmethod
    def choose_gradient(cls, gradient: WeightGradient | None) -> WeightGradient:
        """Return the gradient, or the default where none is chosen; refuse one that the method does not have."""
        if gradient is not None and gradient not in cls.GRADIENTS:
            known = ", ".join(cls.GRADIENTS)
            raise InputError(f"method '{cls.METHOD}' has no '{gradient}' gradient: choose one of {known}.")
        names: list[Any] = list(cls.GRADIENTS)
        return names[0] if gradient is None else gradient

    def with_values(self, weight: Tensor, low_count: Tensor | None = None, layer: str = "") -> tuple[Tensor, TwoValues]:
        """Do as `forward`, and return the mask and the two values as well; those have no gradient."""
        raise NotImplementedError

    def forward(self, weight: Tensor, low_count: Tensor | None = None, layer: str = "") -> Tensor:
        """(filters, ...) -> the same shape, with two values per filter."""
        return self.with_values(weight, low_count, layer)[0]

    def begin_(self, weight: Tensor, layer: str = "") -> None:
        """Take over what the quantizer keeps of the first weights, if it keeps something."""

    def follow_(self, weight: Tensor, layer: str = "") -> None:
        """Do what follows the start of a training, and every step of the optimizer."""

    def extra_repr(self) -> str:
        """Tell the gradient."""
        return f"gradient={self.gradient}"
