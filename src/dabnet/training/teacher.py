"""What a network can learn from another's answers (Hinton et al., Distilling the Knowledge in a Neural Network, 2015).

A teacher that takes a dog for a cat rather than for a car says what dogs look like; the label does not. So a student
that has to give the teacher's probabilities, softened by a temperature T, is told more by each sketch:

    loss = (1 - share) cross_entropy(student, label) + share T^2 KL(softmax(teacher / T) || softmax(student / T))

T^2 keeps the size of the gradients the same whatever T is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from dabnet.errors import InputError
from dabnet.training.run import load_trained

if TYPE_CHECKING:
    from torch import Tensor, nn

    from dabnet.training.recipe import Recipe


class Teacher:
    """A trained network that is only asked. It is no module, so that no part of it gets into a student's checkpoint."""

    def __init__(self, net: nn.Module, share: float, temperature: float, *, compiled: bool = False) -> None:
        self._net = net.eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if compiled:
            self._net = torch.compile(self._net, dynamic=False)
        self._share, self._temperature = share, temperature

    @torch.no_grad()
    def answer(self, images: Tensor) -> Tensor:
        """Return the logits (N, classes) for images (N, 1, size, size)."""
        logits: Tensor = self._net.to(images.device)(images)
        return logits

    def mix(self, loss: Tensor, logits: Tensor, answers: Tensor) -> Tensor:
        """Mix the loss that the labels give with the distance of the student's logits to the teacher's answers."""
        return (1 - self._share) * loss + self._share * distance(logits, answers, self._temperature)


def distance(logits: Tensor, answers: Tensor, temperature: float) -> Tensor:
    """Return T^2 KL(softmax(answers / T) || softmax(logits / T)), the mean over a batch.

    >>> logits = torch.tensor([[0.0, 1.0, 2.0]])
    >>> distance(logits, logits + 5, temperature=2.0)
    tensor(0.)
    """
    student, teacher = (F.log_softmax(values / temperature, dim=1) for values in (logits, answers))
    return temperature**2 * F.kl_div(student, teacher, reduction="batchmean", log_target=True)


def load_teacher(recipe: Recipe, classes: list[str]) -> Teacher | None:
    """Load the teacher that a recipe asks for, if any; it must know the same classes and see sketches the same way."""
    if recipe.teacher is None:
        if recipe.teacher_share is not None or recipe.teacher_temperature is not None:
            raise InputError("this recipe is for a student: name a trained run with --teacher.")
        return None
    model = load_trained(recipe.teacher)
    if model.classes != classes:
        raise InputError(
            f"the teacher '{recipe.teacher}' knows other classes ({len(model.classes)}, and {len(classes)} are to be "
            "learnt): give one that was trained on the same set."
        )
    if model.raster != recipe.raster:
        raise InputError(
            f"the teacher '{recipe.teacher}' sees sketches otherwise ({_words(model.raster.to_dict())}): "
            f"give the recipe the same, not {_words(recipe.raster.to_dict())}."
        )
    share = 0.5 if recipe.teacher_share is None else recipe.teacher_share
    return Teacher(model.net, share, recipe.teacher_temperature or 1.0, compiled=recipe.compile)


def _words(settings: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in settings.items())
