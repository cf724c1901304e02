"""A last layer that gets rows for more classes, while the others stay as they are.

Every class weighs the same in a multinomial logistic regression, with T the model's temperature:

    loss = 1/new sum over all classes of mean cross_entropy(logits / T, class) + weight_decay / 2 |rows - start|^2

on features that were brought to mean 0 and deviation 1. A new row starts from 0. A class that the model knows already
starts from its own row, and its made-up drawings count beside the new ones. Scribbles count as drawings of old
classes, so that what shows nothing does not become something new. Then the new classes are made likelier, all by the
same factor: by at most MOST_LIKELY, and only as far as costs at most COST of what was right about old classes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional as F

from dabnet.sketches.folds import stratified_folds
from dabnet.training.finetune import PARTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

COST = 0.015
"""Share of the old classes' drawings that may be lost to the new ones."""
MOST_LIKELY = 4.0


class Lesson(NamedTuple):
    """What rows are learnt from: views of drawings, and made-up ones of the model's own classes."""

    views: Tensor
    """(views, drawings, features)."""
    targets: Tensor
    """(drawings,): the number of each one's row."""
    made_up: Tensor
    made_up_labels: Tensor
    """(made up, features) and (made up,): of all the model's classes."""
    scribbles: Tensor
    """(scribbles, features): drawings of nothing, which are none of the given classes."""


class Head:
    """A last layer that gets rows for more classes."""

    def __init__(self, weight: Tensor, bias: Tensor, old_rows: Sequence[int], temperature: float) -> None:
        """Take weight (classes, features) and bias; `old_rows` has the number of each class that it knows, or -1."""
        self.weight, self.bias, self.old_rows, self.temperature = weight, bias, old_rows, temperature
        new = iter(range(len(weight), len(weight) + len(old_rows)))
        self.columns = [old_row if old_row >= 0 else next(new) for old_row in old_rows]
        """The number of each class among all of them."""

    def learn(self, lesson: Lesson, decay: float) -> tuple[Tensor, Tensor]:
        """Return rows (classes given, features) and biases for the given classes."""
        classes = len(self.old_rows)
        mean, deviation = lesson.made_up.mean(dim=0), lesson.made_up.std(dim=0)
        deviation[deviation < 1e-6] = 1
        views = lesson.views.flatten(0, 1)
        rest = [number for number in range(len(self.weight)) if number not in self.old_rows]
        # What stays as it is counts only by its sum: one column stands for all of it, and the given classes follow.
        targets = torch.zeros(len(self.weight), dtype=torch.int64)
        for row, old_row in enumerate(self.old_rows):
            if old_row >= 0:
                targets[old_row] = row + 1
        scribbles = lesson.scribbles if rest else lesson.scribbles[:0]  # they are one of the rest, if there is any
        inputs = torch.cat([lesson.made_up, scribbles, views])
        nothing = torch.zeros(len(scribbles), dtype=torch.int64)
        given = lesson.targets.repeat(len(lesson.views))
        labels = torch.cat([targets[lesson.made_up_labels], nothing, given + 1])
        others = ((inputs @ self.weight[rest].T + self.bias[rest]) / self.temperature).logsumexp(dim=1, keepdim=True)
        counts = torch.bincount(lesson.targets, minlength=classes).clamp(min=1) * len(lesson.views)
        each = len(lesson.made_up) // len(self.weight)
        shares = torch.full((len(labels),), 1 / each, dtype=torch.float64)
        shares[-len(given) :] = 1 / counts[given]

        inputs = (inputs - mean) / deviation
        known = ((lesson.made_up @ self.weight.T + self.bias) / self.temperature).logsumexp(dim=1)
        start, start_bias = self._start(mean, deviation, float((others if rest else known).mean()))
        rows, biases = start.clone().requires_grad_(), start_bias.clone().requires_grad_()
        optimizer = torch.optim.LBFGS(
            [rows, biases], max_iter=200, tolerance_grad=1e-6, tolerance_change=1e-9, line_search_fn="strong_wolfe"
        )

        def loss() -> Tensor:
            optimizer.zero_grad()
            logits = torch.cat([others, inputs @ rows.T + biases], dim=1)
            value = F.cross_entropy(logits, labels, reduction="none") @ shares / classes
            value = value + decay / 2 * (rows - start).square().sum()
            value.backward()
            return value

        optimizer.step(loss)
        learnt = rows.detach() / deviation * self.temperature
        return learnt, biases.detach() * self.temperature - learnt @ mean

    def _start(self, mean: Tensor, deviation: Tensor, level: float) -> tuple[Tensor, Tensor]:
        """Return the rows and biases that learning starts from, for features of mean 0 and deviation 1."""
        rows = torch.zeros(len(self.old_rows), self.weight.shape[1], dtype=torch.float64)
        biases = torch.full((len(rows),), level - math.log(len(self.weight)), dtype=torch.float64)
        for row, old_row in enumerate(self.old_rows):
            if old_row >= 0:
                rows[row] = self.weight[old_row] * deviation / self.temperature
                biases[row] = (self.bias[old_row] + self.weight[old_row] @ mean) / self.temperature
        return rows, biases

    def balance(self, learnt: tuple[Tensor, Tensor], made_up: Tensor, labels: Tensor) -> tuple[float, float]:
        """Return what to add to the new classes' logits, and the share of old drawings that this costs in all."""
        logits = made_up @ self.weight.T + self.bias
        was_right = logits.argmax(dim=1) == labels
        new = [row for row, old_row in enumerate(self.old_rows) if old_row < 0]
        if not new:
            return 0.0, self._cost(learnt, 0.0, made_up, labels, was_right)
        rivals = (made_up @ learnt[0][new].T + learnt[1][new]).amax(dim=1)
        lead = (logits.amax(dim=1) - rivals)[was_right].sort().values
        most = self.temperature * math.log(MOST_LIKELY)
        allowed = int(COST * len(labels))
        shift = min(most, float(lead[allowed])) if allowed < len(lead) else most
        return shift, self._cost(learnt, shift, made_up, labels, was_right)

    def _cost(
        self, learnt: tuple[Tensor, Tensor], shift: float, made_up: Tensor, labels: Tensor, was_right: Tensor
    ) -> float:
        weight, bias = self.grow(learnt, shift)
        is_right = (made_up @ weight.T + bias).argmax(dim=1) == labels
        return float((was_right & ~is_right).double().mean())

    def grow(self, learnt: tuple[Tensor, Tensor], shift: float) -> tuple[Tensor, Tensor]:
        """Return weight and bias of the layer for all classes."""
        more = sum(old_row < 0 for old_row in self.old_rows)
        weight, bias = (torch.cat([old, old.new_zeros(more, *old.shape[1:])]) for old in (self.weight, self.bias))
        weight[self.columns] = learnt[0]
        bias[self.columns] = learnt[1]
        bias[len(self.bias) :] += shift
        return weight, bias

    def answer_held_back(self, lesson: Lesson, decay: float, shift: float, seed: int) -> Tensor:
        """Return the logits, (drawings, all classes), that each drawing gets from rows that did not see it."""
        parts = torch.from_numpy(stratified_folds(lesson.targets.numpy(), PARTS, seed))
        logits = torch.empty(
            len(parts), len(self.bias) + sum(old_row < 0 for old_row in self.old_rows), dtype=torch.float64
        )
        for part in parts.unique():
            kept, held = parts != part, parts == part
            if not kept.any():  # a single drawing
                kept = held
            some = lesson._replace(views=lesson.views[:, kept], targets=lesson.targets[kept])
            weight, bias = self.grow(self.learn(some, decay), shift)
            logits[held] = lesson.views[0, held] @ weight.T + bias
        return logits
