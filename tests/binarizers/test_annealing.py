from __future__ import annotations

import pytest
import torch
from torch import nn

import dabnet
from dabnet.binarizers import RSign, Sign, sign
from dabnet.binarizers.annealing import set_progress_, soft_sign, with_gradient_of


@pytest.mark.parametrize(
    ("progress", "at_zero", "at_one"), [(0.0, 1.0, 0.990066), (0.5, 1.0, 0.419974), (1.0, 10.0, 0.0)]
)
def test_the_gradient_goes_from_straight_to_the_signs_own(progress: float, at_zero: float, at_one: float) -> None:
    x = torch.tensor([0.0, 1.0, -1.0], requires_grad=True)
    y = sign(x, "annealed", torch.tensor(progress))
    assert y.tolist() == [1, 1, -1]
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == pytest.approx([at_zero, at_one, at_one], abs=1e-5)


def test_a_sign_that_is_never_told_stays_at_the_start() -> None:
    x = torch.randn(20, requires_grad=True)
    (mine,) = torch.autograd.grad(Sign("annealed")(x).sum(), [x])
    (plain,) = torch.autograd.grad(soft_sign(x, torch.tensor(0.0)).sum(), [x])
    assert torch.equal(mine, plain)


def test_progress_reaches_every_quantizer_and_belongs_to_the_state() -> None:
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.PReLU(), nn.Conv2d(4, 4, 3), nn.Conv2d(4, 4, 3))
    dabnet.binarize_(net, weights="recu", input_gradient="annealed", norm=False)
    dabnet.constrain_(net)
    names = [name for name in net.state_dict() if name.endswith("progress")]
    assert len(names) == 4
    assert all(float(net.state_dict()[name]) == 0 for name in names)
    dabnet.constrain_(net, progress=0.25)
    assert all(float(net.state_dict()[name]) == 0.25 for name in names)


def test_other_signs_keep_no_progress() -> None:
    assert not list(Sign("approx").buffers())
    assert len(list(RSign(3, "annealed").buffers())) == 1
    set_progress_(Sign("clipped"), 0.5)  # which changes nothing


def test_a_value_stays_the_same_bit_for_bit_with_the_gradient_of_another() -> None:
    value, x = torch.randn(100), torch.randn(100, requires_grad=True)
    assert torch.equal(with_gradient_of(value, 1e6 * x), value)
