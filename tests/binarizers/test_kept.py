"""DAB whose values are kept: learned, or found every n steps."""

from __future__ import annotations

import pytest
import torch

from dabnet.binarizers.choices import WeightGradient
from dabnet.binarizers.kept import KeptValues, LearnedDab, RareDab
from dabnet.binarizers.weights import binarize, two_values
from tests.binarizers.test_weights import random_weights


@pytest.mark.parametrize("quantizer", [LearnedDab("paper", 4), RareDab("paper", 4, every=3)])
def test_values_of_the_optimum_give_dabs_weights_and_gradient(quantizer: KeptValues) -> None:
    w, g = random_weights(0, 4, 3, 5, 5).requires_grad_(), random_weights(1, 4, 3, 5, 5)
    quantizer.begin_(w)
    binary, values = quantizer.with_values(w)
    dab = binarize(w, "dab", "paper")
    assert torch.equal(values.mask, two_values(w, "dab").mask)
    torch.testing.assert_close(binary, dab, rtol=0, atol=0)
    (mine,), (theirs,) = (torch.autograd.grad((each * g).sum(), [w]) for each in (binary, dab))
    torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("gradient", ["ste", "paper"])
def test_learned_values_get_the_sum_of_their_groups_gradient(gradient: WeightGradient) -> None:
    w = torch.tensor([[-0.6, -0.4, 0.5, 2.0]], requires_grad=True)
    quantizer = LearnedDab(gradient, 1)
    quantizer.alpha.data.fill_(0.8)
    quantizer.beta.data.fill_(-0.5)
    binary = quantizer(w)
    assert binary.tolist() == [pytest.approx([-0.5, -0.5, 0.8, 0.8])]
    binary.backward(torch.tensor([[1.0, 2.0, 4.0, 8.0]]))
    assert quantizer.alpha.grad is not None
    assert quantizer.alpha.grad.tolist() == [12.0]
    assert quantizer.beta.grad is not None
    assert quantizer.beta.grad.tolist() == [3.0]
    assert w.grad is not None
    slopes = [1, 1, 1, 0] if gradient == "ste" else [0.5 + 0.5, 0.5 + 0.5, 0.5 + 0.8, 0.5]
    assert w.grad.tolist() == [pytest.approx([g * slope for g, slope in zip((1, 2, 4, 8), slopes, strict=True)])]


def test_learned_values_start_once_from_the_optimum() -> None:
    quantizer = LearnedDab(None, 2)
    first, later = random_weights(0, 2, 50), random_weights(1, 2, 50)
    quantizer.follow_(first)
    optimum = two_values(first, "dab")
    torch.testing.assert_close(quantizer.alpha.data, optimum.alpha.flatten())
    quantizer.follow_(later)
    torch.testing.assert_close(quantizer.alpha.data, optimum.alpha.flatten())
    again = LearnedDab(None, 2)
    again.load_state_dict(quantizer.state_dict())
    again.follow_(later)  # it has started, and its state says so
    torch.testing.assert_close(again.beta.data, optimum.beta.flatten())


def test_a_rare_split_is_computed_every_n_steps_and_kept_between() -> None:
    quantizer = RareDab(None, 2, every=3)
    found = []
    for step in range(7):
        w = random_weights(step, 2, 50)
        quantizer.follow_(w)
        found.append(torch.equal(quantizer.alpha, two_values(w, "dab").alpha.flatten()))
    assert found == [True, False, False, True, False, False, True]


def test_each_weight_takes_the_nearer_value() -> None:
    quantizer = RareDab(None, 1, every=2)
    quantizer.alpha.fill_(1.0)
    quantizer.beta.fill_(-0.5)
    assert quantizer(torch.tensor([[0.2, 0.3, -2.0, 5.0]])).tolist() == [[-0.5, 1.0, -0.5, 1.0]]
