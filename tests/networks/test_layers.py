from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any, cast, get_args

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from dabnet import binarize_, export
from dabnet.binarizers import Sign, WholeNumbers, sign
from dabnet.binarizers.activations import LevelSign
from dabnet.binarizers.choices import Method
from dabnet.errors import InputError, NonFiniteError
from dabnet.networks.activations import RPReLU
from dabnet.networks.layers import BinaryConv2d, BinaryLayer, BinaryLinear


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[BinaryConv2d, Tensor]:
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    sizes = st.integers(1, 4)
    torch.manual_seed(draw(st.integers(0, 2**31)))
    layer = BinaryConv2d(
        groups * draw(sizes),
        groups * draw(sizes),
        (draw(sizes), draw(sizes)),
        stride=draw(st.integers(1, 3)),
        padding=(draw(st.integers(0, 3)), draw(st.integers(0, 3))),
        dilation=draw(st.integers(1, 2)),
        groups=groups,
        bias=draw(st.booleans()),
        pad_value=draw(st.sampled_from([0, 1])),
        precision=draw(st.sampled_from(["wbin", "fbin"])),
        method=draw(st.sampled_from(get_args(Method))),
    )
    nn.init.normal_(layer.weight, 0.1)
    return layer, torch.randn(draw(st.integers(1, 3)), layer.in_channels, draw(st.integers(8, 12)), 9)


def expected_convolution(layer: BinaryConv2d, x: Tensor) -> Tensor:
    """What the layer must compute: sign, then pad by hand, then torch's convolution with the binary weights."""
    x = sign(x) if layer.precision == "fbin" else x
    rows, columns = cast("tuple[int, int]", layer.padding)
    x = F.pad(x, (columns, columns, rows, rows), value=layer.pad_value)
    weight = layer.binary_weight()
    return F.conv2d(x, weight, layer.bias, layer.stride, 0, layer.dilation, layer.groups)


@settings(max_examples=80)
@given(pair=convolutions())
def test_convolution_is_torchs_with_binary_weights_in_train_and_eval_mode(
    pair: tuple[BinaryConv2d, Tensor],
) -> None:
    layer, x = pair
    expected = expected_convolution(layer, x)
    torch.testing.assert_close(layer.train()(x), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(layer.eval()(x), expected, rtol=1e-4, atol=1e-4)


@settings(max_examples=40)
@given(pair=convolutions())
def test_gradients_are_the_same_in_train_and_eval_mode(pair: tuple[BinaryConv2d, Tensor]) -> None:
    layer, x = pair
    x.requires_grad_()
    grads = [torch.autograd.grad(layer.train(mode)(x).square().sum(), [layer.weight, x]) for mode in (True, False)]
    for trained, evaluated in zip(*grads, strict=True):
        torch.testing.assert_close(trained, evaluated, rtol=1e-3, atol=1e-3)


def test_eval_mode_computes_exact_integers() -> None:
    torch.manual_seed(0)
    layer = BinaryConv2d(64, 8, 3, padding=1).eval()
    x = torch.randn(2, 64, 9, 9)
    mask, alpha, beta = layer.two_values()
    s = torch.where(mask, 1.0, -1.0).double().reshape(layer.weight.shape)
    bits = sign(x).double()
    dots = F.conv2d(bits, s, padding=1)
    sums = F.conv2d(bits, torch.ones_like(s), padding=1)
    half_gap, offset = ((alpha - beta) / 2)[:, :, None], ((alpha + beta) / 2)[:, :, None]
    assert torch.equal(layer(x), half_gap * dots.float() + offset * sums.float())


@pytest.mark.parametrize("precision", ["wbin", "fbin"])
@pytest.mark.parametrize("shape", [(5, 12), (2, 3, 12)])
def test_linear_is_torchs_with_binary_weights(precision: Any, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    layer = BinaryLinear(12, 4, bias=True, precision=precision)
    x = torch.randn(shape)
    expected = F.linear(sign(x) if precision == "fbin" else x, layer.binary_weight(), layer.bias)
    torch.testing.assert_close(layer.train()(x), expected)
    torch.testing.assert_close(layer.eval()(x), expected)
    normed = BinaryLinear(12, 4, norm=True)
    assert normed(x).shape == (*shape[:-1], 4)


def test_padding_same_and_other_padding_modes() -> None:
    x = torch.randn(1, 3, 8, 8)
    for pad_value in (0, 1):
        layer = BinaryConv2d(3, 2, 4, padding="same", dilation=2, pad_value=pad_value)
        assert layer(x).shape == (1, 2, 8, 8)
        torch.testing.assert_close(layer.eval()(x), layer.train()(x))
    reflect = BinaryConv2d(3, 2, 3, padding=1, padding_mode="reflect")
    by_hand = F.conv2d(F.pad(sign(x), (1, 1, 1, 1), mode="reflect"), reflect.binary_weight())
    torch.testing.assert_close(reflect(x), by_hand)
    torch.testing.assert_close(reflect.eval()(x), by_hand)


def test_a_padded_tap_adds_nothing() -> None:
    layer = BinaryConv2d(4, 1, 3, padding=1)
    x = torch.ones(1, 4, 1, 1)
    centre = layer.binary_weight()[0, :, 1, 1].sum()
    torch.testing.assert_close(layer(x).flatten(), centre[None])
    torch.testing.assert_close(layer.eval()(x).flatten(), centre[None])


def test_forward_changes_nothing_and_may_run_twice_before_backward() -> None:
    layer = BinaryConv2d(3, 4, 3, max_k_step=0.1)
    before = copy.deepcopy(layer.state_dict())
    x = torch.randn(2, 3, 8, 8)
    (layer(x) + layer(-x)).sum().backward()
    for name, value in layer.state_dict().items():
        assert torch.equal(value, before[name])


def test_copies_and_state_dicts_give_the_same_layer() -> None:
    layer = BinaryConv2d(3, 8, 3, norm=True, max_k_step=0.02)
    layer.constrain_()
    x = torch.randn(2, 3, 8, 8)
    layer(x)
    layer.eval()
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    loaded = BinaryConv2d(3, 8, 3, norm=True, max_k_step=0.02).eval()
    loaded.load_state_dict(torch.load(file))
    assert torch.equal(loaded(x), layer(x))
    assert torch.equal(copy.deepcopy(layer)(x), layer(x))
    assert "low_count" not in BinaryConv2d(3, 8, 3).state_dict()


def test_mixed_precision_trains() -> None:
    layer = BinaryConv2d(8, 8, 3, norm=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = layer(torch.randn(4, 8, 8, 8))
        assert out.dtype == torch.bfloat16
        out.float().square().sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.dtype == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        layer.eval()(torch.randn(4, 8, 8, 8))
    half = BinaryConv2d(8, 8, 3, dtype=torch.bfloat16)
    half(torch.randn(1, 8, 8, 8, dtype=torch.bfloat16)).sum().backward()
    assert half.eval()(torch.randn(1, 8, 8, 8, dtype=torch.bfloat16)).dtype == torch.bfloat16


def several_gradients() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3),
        BinaryConv2d(8, 8, 3, norm=True, gradient="paper"),
        BinaryConv2d(8, 8, 3, method="xnor", gradient="exact", input_gradient="approx", pad_value=1, padding=1),
        BinaryConv2d(8, 8, 3, precision="wbin", gradient="exact", max_k_step=0.1),
        nn.Flatten(),
        BinaryLinear(8 * 6 * 6, 5, gradient="ste"),
    )


def learned_thresholds() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3),
        RPReLU(8),
        BinaryConv2d(8, 8, 3, threshold="learned"),
        RPReLU(8),
        BinaryConv2d(8, 8, 3, weights="real"),
        nn.Flatten(),
        BinaryLinear(8 * 6 * 6, 5, threshold="learned", input_gradient="approx"),
    )


def later_methods() -> nn.Sequential:
    """Biases keep sums of two values from being exactly at a threshold, where rounding would decide their sign."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3),
        nn.PReLU(),
        BinaryConv2d(8, 8, 3, bias=True, weights="irnet", input_gradient="annealed", threshold="learned"),
        BinaryConv2d(8, 8, 3, bias=True, weights="recu", input_gradient="annealed"),
        nn.Flatten(),
        BinaryLinear(8 * 6 * 6, 6, weights="adabin", sign_levels="learned"),
        BinaryLinear(6, 6, weights="dab-learned", activations="real"),
        BinaryLinear(6, 5, weights="dab", activations="real", split_every=10),
    ).double()


@pytest.mark.parametrize("build", [several_gradients, learned_thresholds, later_methods])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_network_trains_a_step_without_a_graph_break(backend: str, build: Callable[[], nn.Sequential]) -> None:
    torch._dynamo.reset()  # other tests of this process must not use up what one forward may be compiled for
    torch.manual_seed(0)
    net = build()
    twin = copy.deepcopy(net)
    x, y = torch.randn(4, 1, 12, 12, dtype=next(net.parameters()).dtype), torch.randint(0, 5, (4,))
    compiled = torch.compile(net, fullgraph=True, backend=backend)  # raises where the graph would break
    for candidate, parameters in ((compiled, net.parameters()), (twin, twin.parameters())):
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        F.cross_entropy(candidate(x), y).backward()
        optimizer.step()
    for mine, eager in zip(net.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine, eager, rtol=1e-3, atol=1e-4)
    with torch.no_grad():
        net.eval()
        torch.testing.assert_close(compiled(x), net(x), rtol=1e-4, atol=1e-4)


def test_constrain_centres_over_input_channels_and_clamps() -> None:
    torch.manual_seed(0)
    layer = BinaryConv2d(6, 4, 3)
    nn.init.normal_(layer.weight, mean=0.5, std=0.1)
    layer.constrain_()
    torch.testing.assert_close(layer.weight.mean(dim=1), torch.zeros(4, 3, 3), rtol=0, atol=1e-6)
    nn.init.normal_(layer.weight, std=5)
    layer.constrain_(centre=False)
    assert layer.weight.abs().max() == 1


@pytest.mark.parametrize(
    "layer",
    [BinaryConv2d(4, 4, 3, groups=4), BinaryConv2d(4, 4, 1, groups=4), BinaryLinear(1, 3)],
    ids=["depthwise", "depthwise 1x1", "one feature"],
)
def test_centring_does_not_zero_filters_of_one_channel(layer: BinaryLayer) -> None:
    nn.init.normal_(layer.weight, mean=0.3, std=0.1)
    layer.constrain_()
    assert (layer.weight != 0).any(dim=1).all()


def test_k_moves_no_farther_than_max_k_step_and_gets_there() -> None:
    torch.manual_seed(0)
    layer = BinaryLinear(400, 5, max_k_step=0.01)
    nn.init.normal_(layer.weight, std=0.1)
    layer.constrain_(centre=False)

    def low_group() -> Tensor:
        mask, alpha, beta = layer.two_values()
        return torch.where(alpha < beta, mask, ~mask).sum(dim=1)

    start = low_group()
    with torch.no_grad():  # a skew that moves the optimal split far away
        layer.weight.copy_(layer.weight.exp().sub(1).mul(2).square())
    target = BinaryLinear(400, 5)
    target.load_state_dict({"weight": layer.weight.clamp(-1, 1)})
    steps = [start]
    for _ in range(150):
        layer.constrain_(centre=False)
        steps.append(low_group())
    moves = torch.stack(steps).diff(dim=0).abs()
    assert moves.max() <= 4
    assert (steps[1] - steps[0]).abs().max() == 4
    torch.testing.assert_close(layer.binary_weight(), target.binary_weight())


@pytest.mark.parametrize("layer", [BinaryConv2d(4, 3, 3, threshold="learned"), BinaryLinear(4, 3, threshold="learned")])
def test_a_learned_threshold_divides_the_inputs_in_train_and_eval_mode(layer: BinaryLayer) -> None:
    torch.manual_seed(0)
    assert set(layer.state_dict()) == {"weight", "quantize_input.threshold"}
    threshold = layer.get_parameter("quantize_input.threshold")
    nn.init.normal_(threshold)
    x = torch.randn(2, 4, 5, 5) if isinstance(layer, BinaryConv2d) else torch.randn(2, 4)
    at = threshold.detach().reshape(-1, *[1] * (x.ndim - 2))
    twin = copy.deepcopy(layer)
    twin.quantize_input = Sign()
    for mode in (True, False):
        torch.testing.assert_close(layer.train(mode)(x), twin.train(mode)(x - at), rtol=1e-4, atol=1e-4)
        layer(x).sum().backward()
        assert threshold.grad is not None
        assert threshold.grad.abs().sum() > 0


def test_signs_can_meet_real_weights_which_nothing_constrains() -> None:
    torch.manual_seed(0)
    layer = BinaryConv2d(4, 3, 3, norm=True, weights="real")
    assert set(layer.state_dict()) == set(BinaryConv2d(4, 3, 3, norm=True).state_dict())
    with torch.no_grad():
        layer.weight.mul_(10)
    before = layer.weight.detach().clone()
    layer.constrain_()
    assert torch.equal(layer.weight, before)
    x = torch.randn(2, 4, 5, 5)
    for mode in (True, False):
        layer.train(mode)
        normal = layer._normalize(x)
        torch.testing.assert_close(layer(x), F.conv2d(sign(normal), layer.weight), rtol=1e-4, atol=1e-4)
    assert (layer.precision, layer.method) == (None, "real")
    with pytest.raises(InputError, match="are real: it has no two values"):
        layer.two_values()


def test_a_starting_deviation_is_that_of_the_first_weights() -> None:
    layer = BinaryLinear(100, 100, binary_start=0.01)
    assert 0.009 < layer.weight.std() < 0.011
    before = layer.weight.detach().clone()
    net = nn.Sequential(nn.Linear(100, 100), nn.Linear(100, 100))
    kept = net[1].get_parameter("weight").detach().clone()
    assert binarize_(net, binary_start=0.01) == ["1"]
    assert torch.equal(net[1].get_parameter("weight"), kept)  # what was trained is not thrown away
    assert torch.equal(layer.weight, before)


def test_a_quantizer_can_be_replaced_by_your_own() -> None:
    class Half(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(0.5))

        def forward(self, x: Tensor) -> Tensor:
            return sign(x) * self.scale

    layer = BinaryConv2d(4, 3, 3)
    x = torch.randn(2, 4, 5, 5)
    expected = layer(x) / 2
    layer.quantize_input = Half()
    torch.testing.assert_close(layer(x), expected)
    layer(x).sum().backward()
    assert "quantize_input.scale" in layer.state_dict()
    with pytest.raises(InputError, match="makes its inputs binary by Half"):
        export(layer, "nowhere.safetensors", input_size=(4, 5, 5))


def test_a_nan_in_a_layer_is_named() -> None:
    layer = BinaryConv2d(2, 3, 3, name="stage1.conv2")
    nn.init.constant_(layer.weight, float("nan"))
    with pytest.raises(NonFiniteError, match=r"^filter 0 of layer 'stage1.conv2'"):
        layer(torch.zeros(1, 2, 5, 5))


@pytest.mark.parametrize(
    ("settings_", "sentence"),
    [
        ({"precision": "fprec"}, "'fprec' is not a precision of a binary layer: choose one of wbin, fbin"),
        ({"weights": "real", "activations": "real"}, "or other weights or activations than real"),
        ({"activations": "int4", "pad_value": 1}, "pad_value=1 is for signs"),
        ({"threshold": "learned", "norm": True}, "whose shift already is a learned threshold"),
        ({"tresholds": "learned"}, "a binary layer has no setting 'tresholds'. Did you mean 'threshold'?"),
        ({"method": "bnn", "gradient": "exact"}, "method 'bnn' has no 'exact' gradient"),
        ({"input_gradient": "aprox"}, "Did you mean 'approx'"),
        ({"pad_value": 2}, "pad_value is what a padded tap holds, 0 or 1, not 2"),
        ({"pad_value": 1, "padding_mode": "reflect"}, "contradict each other"),
        ({"precision": "wbin", "norm": True}, "a 'wbin' layer has none"),
        ({"max_k_step": 1.5}, "max_k_step must be from 1e-09 to 1, not 1.5"),
        ({"max_k_step": 0.1, "method": "xnor"}, "only 'dab' has a K that moves"),
    ],
)
def test_bad_settings_get_their_sentence(settings_: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        BinaryConv2d(2, 2, 3, **settings_)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("activations", ["int8", "int4"])
def test_whole_numbers_give_the_same_in_eval_mode_as_while_training(activations: Any, signed: bool) -> None:
    """There the sums are integers; the gradients are the same, too."""
    torch.manual_seed(0)
    kind: dict[str, Any] = {"activations": activations, "signed": signed}
    layers = [BinaryConv2d(6, 4, 3, padding=1, groups=2, bias=True, **kind), BinaryLinear(6, 4, **kind)]
    for layer, shape in zip(layers, [(2, 6, 5, 5), (7, 6)], strict=True):
        found = []
        for training in (True, False):
            x = 3 * torch.randn(shape, generator=torch.Generator().manual_seed(1)).requires_grad_()
            x.retain_grad()
            layer.zero_grad()
            y = layer.train(training)(x)
            y.square().sum().backward()
            found.append((y.detach(), x.grad, layer.weight.grad))
        for mine, theirs in zip(*found, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)
        assert isinstance(layer.quantize_input, WholeNumbers)
        assert (layer.quantize_input.low < 0) == signed


@pytest.mark.parametrize("training", [True, False])
def test_learned_levels_stand_for_a_centre_and_a_distance(training: bool) -> None:
    torch.manual_seed(0)
    layer = BinaryConv2d(4, 3, 3, padding=1, bias=True, weights="adabin", sign_levels="learned").train(training)
    quantize = layer.quantize_input
    assert isinstance(quantize, LevelSign)
    quantize.centre.data.fill_(0.3)
    quantize.set_distance(0.7)
    x = torch.randn(2, 4, 6, 6, requires_grad=True)
    # Written out: y = c + d sign((x - c) / d), and a padded tap holds c.
    centre, distance = quantize.centre, quantize.distance
    levels = centre + distance * sign((x - centre) / distance)
    around = F.pad(levels - centre, (1, 1, 1, 1)) + centre
    expected = F.conv2d(around, layer.binary_weight(), layer.bias)
    torch.testing.assert_close(layer(x), expected, rtol=1e-4, atol=1e-4)
    learned = [quantize.centre, quantize.log_distance, layer.weight, x]
    g = torch.randn_like(expected)
    mine, theirs = (torch.autograd.grad((each * g).sum(), learned) for each in (layer(x), expected))
    for ours, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(ours, other, rtol=1e-3, atol=1e-3)


def test_learned_levels_refuse_what_contradicts_them() -> None:
    with pytest.raises(InputError, match="a padded tap holds the centre"):
        BinaryConv2d(2, 2, 3, pad_value=1, sign_levels="learned")
    with pytest.raises(InputError, match="has its threshold at the centre"):
        BinaryConv2d(2, 2, 3, threshold="learned", sign_levels="learned")
