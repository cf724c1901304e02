from __future__ import annotations

from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dabnet.binarizers import sign
from dabnet.binarizers.activations import _sign
from dabnet.binarizers.choices import SignGradient
from dabnet.errors import InputError


@given(st.lists(st.floats(-3, 3, width=32), min_size=1, max_size=30))
def test_sign_is_one_or_minus_one_and_its_gradient_is_the_formula(numbers: list[float]) -> None:
    for gradient in get_args(SignGradient):
        x = torch.tensor(numbers, requires_grad=True)
        g = torch.arange(1.0, len(numbers) + 1)
        y = sign(x, gradient)
        assert y.tolist() == [1.0 if value >= 0 else -1.0 for value in numbers]
        y.backward(g)
        slope = [(1.0 if gradient == "clipped" else 2 - 2 * abs(v)) if abs(v) < 1 else 0.0 for v in numbers]
        torch.testing.assert_close(x.grad, g * torch.tensor(slope))


@pytest.mark.parametrize("gradient", get_args(SignGradient))
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_operator_passes_torchs_own_checks(gradient: SignGradient, dtype: torch.dtype) -> None:
    x = torch.randn(2, 3, 4, dtype=dtype).transpose(0, 1).requires_grad_()
    assert set(torch.library.opcheck(_sign, (x, gradient)).values()) == {"SUCCESS"}


def test_unknown_gradient_gets_its_sentence() -> None:
    with pytest.raises(InputError, match=r"'clip' is not a gradient of sign: choose one of clipped, approx\."):
        sign(torch.zeros(1), "clip")  # type: ignore[arg-type]
