from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from dabnet.networks.activations import RPReLU


def randomized(channels: int, dtype: torch.dtype = torch.float32) -> RPReLU:
    layer = RPReLU(channels, dtype=dtype)
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    return layer


@given(seed=st.integers(0, 2**31), channels=st.integers(1, 5), dims=st.integers(0, 2))
def test_it_is_reactnets_formula_and_its_gradient_is_torchs(seed: int, channels: int, dims: int) -> None:
    torch.manual_seed(seed)
    layer = randomized(channels, torch.float64)
    x = torch.randn(3, channels, *[2] * dims, dtype=torch.float64, requires_grad=True)
    slope, before, after = (
        p.detach().reshape(-1, *[1] * dims) for p in (layer.weight, layer.shift_before, layer.shift_after)
    )
    shifted = x + before
    expected = torch.where(shifted > 0, shifted, slope * shifted) + after
    torch.testing.assert_close(layer(x), expected)
    assert torch.autograd.gradcheck(lambda x, *_: layer(x), (x, *layer.parameters()), atol=1e-4)


def test_each_shift_learns_from_its_own_side() -> None:
    """dy/dbefore is 1 above the kink and the slope below; dy/dafter is 1 everywhere."""
    layer = RPReLU(1, slope=0.1)
    x = torch.tensor([[2.0], [-3.0], [-1.0]])
    layer(x).backward(torch.tensor([[1.0], [10.0], [100.0]]))
    torch.testing.assert_close(layer.shift_before.grad, torch.tensor([1 + 0.1 * 110]))
    torch.testing.assert_close(layer.shift_after.grad, torch.tensor([111.0]))
    torch.testing.assert_close(layer.weight.grad, torch.tensor([-3.0 * 10 - 1.0 * 100]))


def test_it_starts_as_the_prelu_whose_slopes_it_can_take_over() -> None:
    torch.manual_seed(0)
    prelu, layer = nn.PReLU(4), RPReLU(4)
    x = torch.randn(2, 4, 3, 3)
    assert torch.equal(layer(x), prelu(x))
    nn.init.uniform_(prelu.weight)
    missing, unexpected = layer.load_state_dict(prelu.state_dict(), strict=False)
    assert (sorted(missing), unexpected) == (["shift_after", "shift_before"], [])
    assert torch.equal(layer(x), prelu(x))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_it_compiles_without_a_graph_break(backend: str) -> None:
    layer, x = randomized(4), torch.randn(2, 4, 3, 3)
    compiled = torch.compile(layer, fullgraph=True, backend=backend)  # raises where the graph would break
    torch.testing.assert_close(compiled(x), layer(x))
