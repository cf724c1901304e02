from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor, nn

import dabnet
from dabnet.binarizers.activations import LevelSign, RSign
from dabnet.errors import InputError, ModelFormatError, UnsupportedError
from dabnet.exporting.lower import lower
from dabnet.exporting.verify import Verification, verify
from dabnet.networks.activations import RPReLU
from dabnet.networks.layers import BinaryConv2d, BinaryLinear
from dabnet.runtime import Session
from dabnet.sketches import synthetic_sketches


def drawings(count: int, size: int) -> NDArray[np.float32]:
    """Synthetic sketches as a network takes them."""
    return synthetic_sketches(count, size)[0][:, None].astype(np.float32) / np.float32(255)


def unsettle(net: nn.Module, x: NDArray[np.float32], seed: int = 0) -> nn.Module:
    """Set norms as training does: scales, some negative and some zero, shifts, and statistics of sketches."""
    generator = torch.Generator().manual_seed(seed)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            module.momentum = 1.0
            module.weight.data.normal_(0.3, 1, generator=generator)
            module.weight.data[::7] = 0
            module.bias.data.normal_(0, 0.3, generator=generator)
        if isinstance(module, nn.PReLU | RPReLU):
            module.weight.data.uniform_(0, 0.5, generator=generator)
        if isinstance(module, RPReLU):
            module.shift_before.data.normal_(0, 0.5, generator=generator)
            module.shift_after.data.normal_(0, 0.5, generator=generator)
        if isinstance(module, LevelSign):
            module.centre.data.normal_(0, 0.5, generator=generator)
            module.set_distance(0.7)
        if isinstance(module, RSign):
            module.threshold.data.normal_(0, 0.5, generator=generator)
    with torch.no_grad():
        net.train()(torch.from_numpy(x))
    for name, statistics in net.named_buffers():
        if name.endswith("running_var"):
            statistics.clamp_(min=0.1)  # a norm that blows up what hardly varies blows up its rounding, too
    return net.eval()


def compare(net: nn.Module, x: NDArray[np.float32]) -> Verification:
    return verify(net, lower(net, x.shape[1:]).model, [x], layer_sketches=len(x))


def assert_same(net: nn.Module, x: NDArray[np.float32]) -> None:
    found = compare(net, x)
    assert [layer for layer in found.layers if not layer.is_fine] == []
    assert [item for item in found.disagreements if not item.is_explained] == []
    assert found.equal >= 0.98 * len(x)


@pytest.mark.parametrize(("name", "size"), [("sketch_a_net", 81), ("resnet18", 32), ("googlenet", 32)])
@pytest.mark.parametrize("precision", ["fprec", "wbin", "fbin"])
def test_each_network_answers_as_torch_does(name: str, size: int, precision: Any) -> None:
    torch.manual_seed(0)
    x = drawings(30, size)
    net = unsettle(dabnet.build(name, 20, precision, width=0.125, input_size=size), x)
    assert np.ptp(net(torch.from_numpy(x)).detach().numpy(), axis=0).min() > 0  # it does tell sketches apart
    assert_same(net, x)


@pytest.mark.parametrize(("name", "size"), [("sketch_a_net", 81), ("resnet18", 32), ("googlenet", 32)])
@pytest.mark.parametrize("activations", ["int8", "int4"])
def test_so_does_each_network_of_whole_numbers(name: str, size: int, activations: Any) -> None:
    torch.manual_seed(0)
    x = drawings(30, size)
    changes: dict[str, Any] = {"nonlinearity": "prelu"} if name == "googlenet" else {}
    kind: dict[str, Any] = {"weights": "dab", "activations": activations, "width": 0.125, "input_size": size}
    assert_same(unsettle(dabnet.build(name, 20, **kind, **changes), x), x)


LEARNED: dict[str, Any] = {"threshold": "learned", "nonlinearity": "rprelu"}


@pytest.mark.parametrize(
    "changed", [{"method": "xnor"}, {"method": "bnn"}, {"real_last": True}, {"shortcuts": "conv"}, LEARNED]
)
@pytest.mark.parametrize("precision", ["wbin", "fbin"])
def test_so_does_each_variant(precision: Any, changed: dict[str, Any]) -> None:
    torch.manual_seed(0)
    x = drawings(30, 32)
    assert_same(unsettle(dabnet.build("resnet18", 20, precision, width=0.125, input_size=32, **changed), x), x)


@pytest.mark.parametrize(("name", "size"), [("sketch_a_net", 81), ("resnet18", 32), ("googlenet", 32)])
@pytest.mark.parametrize("changed", [{"threshold": "learned"}, {"nonlinearity": "rprelu"}, LEARNED])
def test_learned_thresholds_and_shifts_have_the_same_signs_on_200_sketches(
    name: str, size: int, changed: dict[str, Any]
) -> None:
    torch.manual_seed(0)
    x = drawings(200, size)
    shortcuts: Any = {"shortcuts": "conv"} if name == "resnet18" else {}
    net = dabnet.build(
        name, 20, weights="dab", activations="sign", width=0.125, input_size=size, **shortcuts, **changed
    )
    found = compare(unsettle(net, x), x)
    assert found.is_fine
    assert sum(layer.signs for layer in found.layers) > 100_000
    assert sum(layer.flips for layer in found.layers) == 0
    assert (found.equal, found.logits_error < 1e-5) == (200, True)


def test_an_rprelu_is_a_shift_a_prelu_and_a_shift_and_a_learned_threshold_no_node_of_its_own() -> None:
    net = nn.Sequential(
        nn.MaxPool2d(2), RPReLU(2), nn.MaxPool2d(2), RPReLU(2), BinaryConv2d(2, 8, 1, threshold="learned")
    )
    nodes = lower(unsettle(net, np.zeros((1, 2, 8, 8), np.float32)), (2, 8, 8)).model.nodes
    assert [node.OP for node in nodes] == ["max_pool", "affine", "prelu", "affine", "max_pool", "sign", "conv"]


def test_only_dab_layers_carry_an_offset() -> None:
    for method, expected in (("dab", True), ("xnor", False), ("bnn", False)):
        net = dabnet.build("resnet18", 20, "fbin", method, width=0.125, input_size=32)  # type: ignore[arg-type]
        nodes = lower(net, (1, 32, 32)).model.nodes
        assert any(getattr(node, "offset", None) is not None for node in nodes) == expected


class Foreign(nn.Module):
    """A network in another hand: functions and methods, concats and sums, norms after convolutions, a wide head."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 12, 5, padding="same")
        self.second = nn.Conv2d(12, 20, 3, stride=2, padding=1, groups=2)
        self.norm2 = nn.BatchNorm2d(20)
        self.third = nn.Conv2d(20, 20, (3, 1), padding=(2, 0), dilation=(2, 1))
        self.act = nn.Hardtanh(-0.8, 1.2)
        self.side = nn.Sequential(nn.AvgPool2d(3, 1, 1), nn.Conv2d(20, 6, 1), nn.PReLU())
        self.drop = nn.Dropout(0.3)
        self.fourth = nn.Linear(26 * 3 * 3, 40)
        self.norm4 = nn.BatchNorm1d(40)
        self.last = nn.Linear(40, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.first(x)), 3, stride=2, ceil_mode=True)
        x = torch.relu(self.norm2(self.second(x)))
        x = x + self.act(self.third(x))
        x = torch.cat([x, self.side(x)], dim=1)
        x = F.adaptive_avg_pool2d(x, 3)
        x = self.drop(x).view(x.size(0), -1)
        x = F.dropout(self.norm4(self.fourth(x)), 0.5, self.training).relu()
        result: Tensor = self.last(x)
        return result


@pytest.mark.parametrize("precision", ["fprec", "wbin", "fbin"])
@pytest.mark.parametrize("pad_value", [0, 1])
def test_a_network_of_the_users_own_is_packed_too(precision: Any, pad_value: int) -> None:
    torch.manual_seed(1)
    net = Foreign()
    dabnet.binarize_(net, precision, pad_value=pad_value if precision == "fbin" else 0)
    x = drawings(60, 28)
    assert_same(unsettle(net, x), x)


def test_it_packs_and_runs_after_a_little_training() -> None:
    torch.manual_seed(0)
    net = Foreign()
    dabnet.binarize_(net, "fbin", skip=["last"])
    images, labels, _ = synthetic_sketches(200, 28)
    x, y = torch.from_numpy(images)[:, None].float() / 255, torch.from_numpy(labels) % 10
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    for step in range(12):
        batch = slice(16 * step, 16 * step + 16)
        F.cross_entropy(net(x[batch]), y[batch]).backward()
        optimizer.step()
        optimizer.zero_grad()
        dabnet.constrain_(net)
    net.eval()
    assert_same(net, x.numpy())


@st.composite
def binary_convolutions(draw: st.DrawFn) -> tuple[nn.Module, tuple[int, int, int]]:
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    channels, filters = groups * draw(st.integers(1, 24)), groups * draw(st.integers(1, 6))
    precision: Any = draw(st.sampled_from(["wbin", "fbin"]))
    layer = BinaryConv2d(
        channels,
        filters,
        (draw(st.integers(1, 4)), draw(st.integers(1, 4))),
        (draw(st.integers(1, 3)), draw(st.integers(1, 3))),
        (draw(st.integers(0, 3)), draw(st.integers(0, 3))),
        (draw(st.integers(1, 2)), draw(st.integers(1, 2))),
        groups,
        bias=draw(st.booleans()),
        precision=precision,
        method=draw(st.sampled_from(["dab", "xnor", "bnn"])),
        norm=precision == "fbin" and draw(st.booleans()),
        pad_value=draw(st.integers(0, 1)) if precision == "fbin" else 0,
    )
    if layer.norm is None and layer.has_signs and draw(st.booleans()):
        layer.quantize_input = RSign(channels)
    after: list[nn.Module] = [nn.BatchNorm2d(filters)] if draw(st.booleans()) else []
    after += draw(st.sampled_from([[], [nn.ReLU()], [nn.PReLU(filters)], [nn.Hardtanh()], [RPReLU(filters)]]))
    last = BinaryConv2d(filters, 3, 1, norm=draw(st.booleans()))
    return nn.Sequential(layer, *after, last), (channels, draw(st.integers(8, 10)), draw(st.integers(8, 10)))


@given(drawn=binary_convolutions(), seed=st.integers(0, 2**31))
@settings(max_examples=80, deadline=None)
def test_convolutions_of_every_kind_agree_with_torch(drawn: tuple[nn.Module, tuple[int, int, int]], seed: int) -> None:
    net, size = drawn
    x = np.random.default_rng(seed).standard_normal((4, *size)).astype(np.float32)
    found = compare(unsettle(net, x, seed), x)
    assert all(layer.is_fine for layer in found.layers), found.layers


@pytest.mark.parametrize(
    "pool",
    [
        nn.MaxPool2d(2),
        nn.MaxPool2d(3, 2, 1, ceil_mode=True),
        nn.MaxPool2d((2, 3), dilation=2),
        nn.AvgPool2d(3, 2, 1),
        nn.AvgPool2d(3, 2, 1, count_include_pad=False, ceil_mode=True),
        nn.AvgPool2d(2, ceil_mode=True),
        nn.AdaptiveAvgPool2d((3, None)),
        nn.AdaptiveMaxPool2d(4),
    ],
)
@pytest.mark.parametrize("size", [8, 9, 11])
def test_pools_agree_with_torch(pool: nn.Module, size: int) -> None:
    x = np.random.default_rng(0).standard_normal((3, 5, size, size)).astype(np.float32)
    found = Session(lower(pool, x.shape[1:]).model).run(x)
    np.testing.assert_allclose(found, pool(torch.from_numpy(x)).flatten(1).numpy(), rtol=1e-5, atol=1e-6)


class Calls(nn.Module):
    """A network that is one function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3)
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.function(self.conv(x))
        return result


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.avg_pool2d(x, 2),
        lambda x: F.avg_pool2d(x, 3, 2, 1, True, False),
        lambda x: F.max_pool2d(x, kernel_size=2, stride=1, padding=1),
        lambda x: F.adaptive_max_pool2d(x, 2),
        lambda x: F.hardtanh(x, -0.2, 0.3),
        F.relu6,
        lambda x: x.mean((2, 3)),
        lambda x: torch.mean(x, dim=[-1, -2], keepdim=True),
        lambda x: x.flatten(1),
        lambda x: x.reshape(x.shape[0], -1),
        lambda x: torch.flatten(x, start_dim=1),
        lambda x: x.add(x.relu()),
        lambda x: torch.add(x, x),
        lambda x: torch.cat((x, x), -3),
        lambda x: x.contiguous(),
    ],
)
def test_functions_agree_with_torch(function: Any) -> None:
    net = Calls(function).eval()
    x = np.random.default_rng(0).standard_normal((3, 2, 9, 7)).astype(np.float32)
    found = Session(lower(net, (2, 9, 7)).model).run(x)
    np.testing.assert_allclose(found, net(torch.from_numpy(x)).flatten(1).detach().numpy(), rtol=1e-5, atol=1e-6)


class Branching(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x if x.sum() > 0 else -x


class TwoInputs(nn.Module):
    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        return x if y is None else x + y


@pytest.mark.parametrize(
    ("net", "sentence"),
    [
        (nn.Sequential(nn.Conv2d(2, 4, 3), nn.Sequential(nn.GELU())), r"'1\.0' is a GELU, and packed models have none"),
        (nn.ConvTranspose2d(2, 4, 3), r"'0' is a ConvTranspose2d"),
        (nn.Sequential(nn.Conv2d(2, 4, 3, padding=1, padding_mode="reflect")), r"'0' pads with 'reflect'"),
        (nn.Sequential(nn.BatchNorm2d(2, track_running_stats=False)), r"'0' norms by the statistics of a batch"),
        (nn.Sequential(nn.AvgPool2d(2, divisor_override=3)), r"'0' divides by a number of its own"),
        (nn.Sequential(nn.AvgPool2d(3, 3, 1, ceil_mode=True)), r"'0' counts padding in means over windows"),
        (nn.Sequential(nn.Linear(9, 4)), r"'0' is a linear layer of something that was not flattened"),
        (nn.Sequential(BinaryConv2d(2, 4, 3, weights="real")), r"'0' multiplies signs by real weights"),
        (nn.Sequential(BinaryLinear(9, 4)), r"'0' is a linear layer of something that was not flattened"),
        (Calls(lambda x: F.softmax(x, 1)), r"'softmax' calls softmax, and packed models have no such step"),
        (Calls(lambda x: x.sigmoid()), r"'sigmoid' calls sigmoid"),
        (Calls(lambda x: x + 1), r"'add' takes something that is not made from the sketch"),
        (Calls(lambda x: torch.cat([x, x], 2)), r"'cat' concatenates along another axis than the channels"),
        (Calls(lambda x: x + x[:, :1]), r"'getitem' calls getitem"),
        (Calls(lambda x: F.dropout(x, 0.5)), r"'dropout' drops numbers even when it is not training"),
        (Calls(lambda x: x.mean(1)), r"'mean' takes a mean over other axes"),
        (Calls(lambda x: x.flatten(2)), r"'flatten' makes \(4, 49\) from \(4, 7, 7\)"),
        (Branching(), r"cannot follow the network's forward .* without branching on values"),
        (nn.Identity(), r"gives back what it gets"),
    ],
)
def test_what_has_no_packed_twin_is_named(net: nn.Module, sentence: str) -> None:
    with pytest.raises(UnsupportedError, match=sentence) as caught:
        lower(net, (2, 9, 9))
    assert str(caught.value).endswith(".")


def test_a_wrong_size_or_wrong_labels_get_their_sentence() -> None:
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(16, 3))
    with pytest.raises(InputError, match="does not take sketches of 1x9x9"):
        lower(net, (1, 9, 9))
    with pytest.raises(UnsupportedError, match=r"takes \(channels, height, width\), not \(4, 4\)"):
        lower(net, (4, 4))
    with pytest.raises(ModelFormatError, match="3 outputs has 2 labels"):
        lower(net, (1, 4, 4), ["cat", "dog"])


def test_the_network_is_left_as_it_was() -> None:
    net = dabnet.build("resnet18", 20, "fbin", width=0.125, input_size=32).train()
    next(net.children()).eval()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    modes = [module.training for module in net.modules()]
    lower(net, (1, 32, 32))
    assert [module.training for module in net.modules()] == modes
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


@pytest.mark.parametrize(
    "changes",
    [
        {"weights": "irnet", "input_gradient": "annealed"},
        {"weights": "recu", "threshold": "learned", "nonlinearity": "rprelu"},
        {"weights": "adabin", "input_gradient": "approx"},
        {"weights": "dab-learned", "activations": "int4"},
        {"weights": "dab", "split_every": 3},
        {"weights": "adabin", "sign_levels": "learned", "input_gradient": "annealed"},
    ],
)
def test_later_methods_answer_the_same_in_the_runtime(changes: dict[str, Any]) -> None:
    torch.manual_seed(0)
    net = dabnet.build(
        "resnet18", 5, width=0.125, input_size=32, **{"shortcuts": "conv", "activations": "sign", **changes}
    )
    x = drawings(8, 32)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for step in range(3):
        net.train()(torch.from_numpy(x)).logsumexp(dim=1).sum().backward()
        optimizer.step()
        dabnet.constrain_(net, centre=False, progress=step / 3)
    assert_same(unsettle(net, x), x)


class ChangesValues(nn.Module):
    """Changes values in place that it uses again."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.relu, self.how = nn.ReLU(inplace=True), how

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        if self.how == "module":
            z = self.relu(y)
            y = self.second(z) + y
        elif self.how == "function":
            z = F.relu(y, True)
            y = self.second(z) + y
        elif self.how == "method":
            y.relu_()
            y = self.second(y)
        elif self.how == "sum":
            z = self.second(y)
            z.add_(y)
            y = z
        elif self.how == "two names":
            same = y
            y += self.second(y)
            y = y + same
        return torch.add(input=y, other=y).mean(dim=(2, 3))


@pytest.mark.parametrize("how", ["module", "function", "method", "sum", "two names"])
def test_what_is_changed_in_place_is_exported_as_torch_has_it_or_refused(how: str) -> None:
    net = ChangesValues(how).eval()
    if how == "two names":  # the trace does not tell them apart
        with pytest.raises(UnsupportedError, match=r"write x = x \+ y instead of x \+= y"):
            lower(net, (1, 8, 8))
        return
    sketches = torch.rand(3, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    packed = Session(lower(net, (1, 8, 8)).model).run(sketches.numpy())
    torch.testing.assert_close(torch.from_numpy(packed), net(sketches).detach(), rtol=1e-5, atol=1e-6)
    assert verify(net, lower(net, (1, 8, 8)).model, sketches).is_fine


def test_layers_that_do_more_than_they_show_are_refused() -> None:
    layer = BinaryConv2d(4, 8, 3)
    layer.keeps_weights_real = True
    with pytest.raises(UnsupportedError, match="first stage of its training"):
        lower(nn.Sequential(nn.Conv2d(1, 4, 3), layer), (1, 8, 8))
    hooked = nn.Conv2d(1, 4, 3)
    hooked.register_forward_hook(lambda _module, _inputs, output: 2 * output)
    with pytest.raises(UnsupportedError, match="has a forward hook"):
        lower(nn.Sequential(hooked), (1, 8, 8))

    class Mine(BinaryConv2d):
        def forward(self, x: Tensor) -> Tensor:
            return 2 * super().forward(x)

    with pytest.raises(UnsupportedError, match="is a Mine, and packed models have none"):
        lower(nn.Sequential(nn.Conv2d(1, 4, 3), Mine(4, 8, 3)), (1, 8, 8))
