"""What a binary layer is told, in one object that networks, recipes and conversions pass on."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeVar

from dabnet._settings import Within, check_names, check_settings
from dabnet.binarizers.choices import (
    Activations,
    Precision,
    SignGradient,
    SignLevels,
    Threshold,
    WeightGradient,
    Weights,
    paper_precision,
    translate_names,
)
from dabnet.binarizers.weights import check_gradient
from dabnet.errors import InputError

ClassT = TypeVar("ClassT", bound=type)


def takes_paper_names(cls: ClassT) -> ClassT:
    """Let a dataclass of settings be made, and replaced, with the paper's `precision` and `method`, too."""
    init: Any = vars(cls)["__init__"]

    @functools.wraps(init)
    def translate(self: Any, *arguments: Any, **settings: Any) -> None:
        init(self, *arguments, **translate_names(settings))

    setattr(cls, "__init__", translate)  # noqa: B010  # as a plain assignment mypy takes it for an instance's
    return cls


@takes_paper_names
@dataclass(frozen=True)
class BinarySettings:
    """What is binary of a layer, how, and how it learns.

    >>> BinarySettings(weights="xnor", activations="real").precision
    'wbin'
    """

    OWNER: ClassVar[str] = "the layer's"

    weights: Weights = "dab"
    """real, or how a filter's two values are found: dab, xnor, bnn, dab-learned, irnet, recu or adabin."""
    activations: Activations = "sign"
    """What the layer takes: real numbers, whole numbers of 8 or 4 bits in steps of a learned size (int8, int4), or
    signs."""
    gradient: WeightGradient | None = None
    """The gradient of binary weights: paper, exact, ste or annealed; left out, the paper's, or that of the method's
    authors."""
    input_gradient: SignGradient = "clipped"
    """The gradient of the activations' sign: clipped, approx or annealed."""
    threshold: Threshold = "zero"
    """Where an activation's sign changes: at zero, or learned for each channel (RSign). With a norm before the sign,
    which shifts each channel itself, there is nothing more to learn: then it is zero."""
    sign_levels: SignLevels = "one"
    """What an activation's signs stand for: +1 and -1 (one), or a centre plus and minus a distance, which the layer
    learns from 0 and 1 on (AdaBin). The centre is then the threshold, and what a padded tap holds."""
    max_k_step: Annotated[float, Within(1e-9, 1)] | None = None
    """How far K may move in a step, as a share of a filter's weights, for training that must be stabilized; left out,
    as far as it likes. Only dab has a K that moves, and `dabnet.constrain_` takes the step."""
    split_every: Annotated[int, Within(1, 1_000_000)] = 1
    """Steps from one optimal split to the next, for dab; between them a filter's two values stay, and each weight takes
    the nearer one. `dabnet.constrain_` counts the steps."""
    binary_start: Annotated[float, Within(1e-4, 1)] | None = None
    """Standard deviation of binary layers' first weights; left out, Kaiming's as in the paper. Smaller weights change
    sides sooner, which helps short trainings."""

    def __post_init__(self) -> None:
        check_settings(self.OWNER, self)
        if self.has_whole_numbers and self.weights == "real":
            raise InputError(
                f"activations='{self.activations}' is for one-bit weights: choose other weights than real, or real "
                "activations."
            )
        if self.weights != "real" and self.gradient is not None:
            check_gradient(self.weights, self.gradient)
        if self.max_k_step is not None and self.weights not in ("real", "dab"):
            raise InputError(
                f"max_k_step={self.max_k_step} with method '{self.weights}' makes no sense: only 'dab' has a K that "
                "moves."
            )
        if self.sign_levels == "learned" and self.threshold == "learned":
            raise InputError("sign_levels='learned' has its threshold at the centre: leave out threshold='learned'.")
        if self.split_every > 1 and (self.weights not in ("real", "dab") or self.max_k_step is not None):
            raise InputError(
                f"split_every={self.split_every} is for 'dab' without max_k_step, which both say when the split moves: "
                "leave it out, or choose weights='dab'."
            )
        if self.split_every > 1 and self.gradient == "exact":
            raise InputError(
                "gradient='exact' is of values found in every step: choose paper or ste, or split_every=1."
            )

    @property
    def has_signs(self) -> bool:
        """Whether the layer's inputs are signs."""
        return self.activations == "sign"

    @property
    def has_whole_numbers(self) -> bool:
        """Whether the layer's inputs are whole numbers."""
        return self.activations in ("int8", "int4")

    @property
    def precision(self) -> Precision | None:
        """The paper's word for what is binary; None where it has none."""
        return paper_precision(self.weights, self.activations)

    @property
    def method(self) -> Weights:
        """The paper's word for how weights are binary."""
        return self.weights

    @property
    def binary(self) -> BinarySettings:
        """These settings and no others, where more were added."""
        return BinarySettings(**{field.name: getattr(self, field.name) for field in dataclasses.fields(BinarySettings)})


def change_settings(settings: BinarySettings | None, changes: dict[str, Any], owner: str) -> BinarySettings:
    """Return settings with changes by name, the defaults first where there are none; the paper's names will do."""
    check_names(owner, changes, BinarySettings, "precision", "method")
    return dataclasses.replace(settings or BinarySettings(), **changes)
