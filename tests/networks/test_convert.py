from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import dabnet
from dabnet.binarizers import RSign
from dabnet.errors import InputError
from dabnet.networks.layers import BinaryConv2d, BinaryLayer, BinaryLinear


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        return x + F.relu(self.norm(self.conv(x)))


class Somebodys(nn.Module):
    """A network as anyone might write it: biases, a depthwise convolution, a block inside."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, stride=2)
        self.body = nn.Sequential(Block(8), nn.Conv2d(8, 8, 3, groups=8), nn.ReLU(), Block(8))
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.body(F.relu(self.stem(x)))
        logits: Tensor = self.head(features.mean(dim=(2, 3)))
        return logits


ALL = ["body.0.conv", "body.1", "body.3.conv", "head"]


def quadrants(count: int) -> tuple[Tensor, Tensor]:
    """A task a small network can learn: which quarter of the picture holds the ink?"""
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(0, 4, (count,), generator=generator)
    x = torch.zeros(count, 1, 16, 16)
    for i, quarter in enumerate(y.tolist()):
        row, column = (torch.randint(0, 5, (2,), generator=generator)).tolist()
        x[i, 0, row + 8 * (quarter // 2) :, column + 8 * (quarter % 2) :][:3, :3] = 1
    return x, y


@pytest.mark.parametrize("precision", ["wbin", "fbin"])
def test_somebodys_network_converts_and_learns(precision: Any) -> None:
    torch.manual_seed(0)
    net = Somebodys()
    assert dabnet.binarize_(net, precision=precision, method="dab") == ALL
    x, y = quadrants(256)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    dabnet.constrain_(net)
    losses = []
    for _ in range(40):
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        dabnet.constrain_(net)
        losses.append(loss.item())
    assert losses[-1] < 0.6 * losses[0]
    for layer in net.modules():
        if isinstance(layer, BinaryLayer):
            assert all(len(filter_.unique()) <= 2 for filter_ in layer.binary_weight())
            assert layer.weight.abs().max() <= 1


def test_the_first_layer_stays_unless_told_otherwise() -> None:
    net = Somebodys()
    dabnet.binarize_(net)
    assert type(net.stem) is nn.Conv2d
    assert isinstance(net.body[0].conv, BinaryConv2d)
    assert isinstance(net.head, BinaryLinear)
    assert net.head.name == "head"
    assert dabnet.binarize_(Somebodys(), keep_first=False) == ["stem", *ALL]


@pytest.mark.parametrize(
    ("skip", "converted"),
    [
        (["head"], ALL[:3]),
        (["body.0"], ALL[1:]),
        (["body"], ["head"]),
        (["*.conv"], ["body.1", "head"]),
        (["body.?"], ["head"]),
        (["body.*", "head"], []),
    ],
)
def test_skip_leaves_names_and_what_is_inside_them(skip: list[str], converted: list[str]) -> None:
    assert dabnet.binarize_(Somebodys(), skip=skip) == converted


def test_layers_stay_the_same_objects_with_the_same_parameters() -> None:
    net = Somebodys()
    head, weight, bias = net.head, net.head.weight, net.head.bias
    heard = []
    head.register_forward_hook(lambda *_: heard.append(True))
    dabnet.binarize_(net)
    assert net.head is head
    assert head.weight is weight
    assert head.bias is bias
    net(torch.zeros(2, 1, 16, 16))
    assert heard


def test_a_batch_norm_stands_before_every_sign_unless_told_otherwise() -> None:
    net = Somebodys()
    dabnet.binarize_(net, precision="fbin")
    assert isinstance(net.body[0].conv.norm, nn.BatchNorm2d)
    assert isinstance(net.head.norm, nn.BatchNorm1d)
    for settings in ({"precision": "wbin"}, {"norm": False}):
        plain = Somebodys()
        dabnet.binarize_(plain, **settings)
        assert plain.head.norm is None


def test_conversion_draws_no_random_numbers() -> None:
    net = Somebodys()
    before = torch.get_rng_state()
    dabnet.binarize_(net, max_k_step=0.1)
    assert torch.equal(torch.get_rng_state(), before)


def test_fprec_and_a_second_time_change_nothing() -> None:
    net = Somebodys()
    assert dabnet.binarize_(net, precision="fprec") == []
    assert type(net.head) is nn.Linear
    dabnet.binarize_(net, method="xnor")
    assert dabnet.binarize_(net, method="dab", keep_first=False) == ["stem"]
    assert net.head.method == "xnor"


def test_conversion_keeps_device_type_mode_and_can_be_copied() -> None:
    net = Somebodys().double().eval()
    dabnet.binarize_(net, max_k_step=0.1)
    assert all(p.dtype == torch.float64 for p in net.parameters())
    x = torch.randn(2, 1, 16, 16, dtype=torch.float64)
    assert torch.equal(copy.deepcopy(net)(x), net(x))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            {"skip": ["haed"]},
            "skip names 'haed', but nothing in the network is called so. Did you mean 'head'?",
        ),
        ({"skip": "head"}, r"skip takes a list of names: write skip=\['head'\]"),
        ({"precision": "bin"}, "'bin' is not a precision: choose one of fprec, wbin, fbin"),
        ({"method": "dab-net"}, "'dab-net' is not a method"),
        ({"method": "bnn", "gradient": "paper"}, "method 'bnn' has no 'paper' gradient"),
        ({"pad_value": 3}, "pad_value is what a padded tap holds"),
        ({"max_k_step": 0}, "max_k_step must be from 1e-09 to 1, not 0"),
        ({"maxkstep": 0.1}, "binarize_ has no setting 'maxkstep'. Did you mean 'max_k_step'?"),
        ({"weights": "xnor", "precision": "fbin"}, "what is binary is given twice"),
    ],
)
def test_bad_settings_get_their_sentence_and_change_nothing(arguments: dict[str, Any], sentence: str) -> None:
    net = Somebodys()
    with pytest.raises(InputError, match=sentence):
        dabnet.binarize_(net, **arguments)
    assert not any(isinstance(module, BinaryLayer) for module in net.modules())


class Reader(nn.Module):
    """A network with weights in other places than convolutions and linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        self.first = nn.Linear(8, 8)
        self.lstm = nn.LSTM(8, 8, batch_first=True)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.second = nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8)
        self.own = OwnLinear(8, 8)
        self.head = nn.Linear(8, 4)


class OwnLinear(nn.Linear):
    """Somebody's own."""


def test_what_is_left_alone_is_told_with_the_reason() -> None:
    found = dabnet.binarize_(Reader())
    assert found == ["second", "head"]
    plain = "only plain nn.Conv2d and nn.Linear become binary"
    around = "around it uses its weights directly"
    assert found.left_alone == {
        "embed": f"it is a Embedding; {plain}",
        "first": "the first layer stays real as in the paper; keep_first=False makes it binary",
        "lstm": f"it is a LSTM; {plain}",
        "attention": f"it is a MultiheadAttention; {plain}",
        "attention.out_proj": f"the MultiheadAttention {around}",
        "encoder.self_attn": f"it is a MultiheadAttention; {plain}",
        "encoder.self_attn.out_proj": f"the MultiheadAttention {around}",
        "encoder.linear1": f"the TransformerEncoderLayer {around}",
        "encoder.linear2": f"the TransformerEncoderLayer {around}",
        "own": f"it is a OwnLinear, a subclass of Linear that may compute otherwise; {plain}",
    }
    again = dabnet.binarize_(Somebodys(), skip=["body.?", "he*"])
    assert again == []
    assert again.left_alone["body.0.conv"] == "skip names it by 'body.?'"
    assert again.left_alone["head"] == "skip names it by 'he*'"


def test_converted_and_left_alone_are_all_layers_with_weights() -> None:
    several: list[dict[str, Any]] = [{}, {"skip": ["body.0"]}, {"keep_first": False}, {"precision": "fprec"}]
    for arguments in several:
        net = Somebodys()
        layers = {name for name, layer in net.named_modules() if isinstance(layer, nn.Conv2d | nn.Linear)}
        found = dabnet.binarize_(net, **arguments)
        assert set(found) | set(found.left_alone) == layers
        assert not set(found) & set(found.left_alone)


def test_a_layer_that_is_first_and_last_stays_real_with_a_warning_that_says_so() -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(8, 4))
    with pytest.warns(UserWarning, match="made nothing binary .*'1': the first layer, and here also the last, stays"):
        found = dabnet.binarize_(net)
    assert (found, list(found.left_alone)) == ([], ["1"])
    assert dabnet.binarize_(net, keep_first=False) == ["1"]
    with pytest.warns(UserWarning, match="there are no layers with weights"):
        dabnet.binarize_(nn.Sequential(nn.ReLU()))


@pytest.mark.parametrize(
    ("skip", "sentence"),
    [
        (["stem"], r"skip names 'stem', but nothing of it would become binary \('stem': the first layer stays real"),
        (["head", "s*"], r"skip names 's\*', but nothing of it would become binary"),
        (["body.2"], r"skip names 'body.2', but .* \(no layer there has weights\): leave it out of skip"),
    ],
)
def test_a_skip_that_changes_nothing_is_refused(skip: list[str], sentence: str) -> None:
    net = Somebodys()
    with pytest.raises(InputError, match=sentence):
        dabnet.binarize_(net, skip=skip)
    assert not any(isinstance(module, BinaryLayer) for module in net.modules())
    dabnet.binarize_(Somebodys(), skip=["stem"], keep_first=False)


def test_learned_thresholds_take_the_place_of_norms() -> None:
    net = Somebodys()
    assert dabnet.binarize_(net, threshold="learned") == ALL
    assert net.head.norm is None
    assert isinstance(net.head.quantize_input, RSign)
    net(torch.zeros(2, 1, 16, 16)).sum().backward()
    with pytest.raises(InputError, match="already is a learned threshold"):
        dabnet.binarize_(Somebodys(), threshold="learned", norm=True)


def test_an_axis_that_is_not_given_is_binary() -> None:
    for arguments, axes in (({}, ("dab", "sign")), ({"weights": "xnor"}, ("xnor", "sign")),
                            ({"activations": "real"}, ("dab", "real")), ({"weights": "real"}, ("real", "sign")),
                            ({"method": "bnn"}, ("bnn", "sign"))):  # fmt: skip
        net = Somebodys()
        assert dabnet.binarize_(net, **arguments) == ALL  # type: ignore[arg-type]
        settings: Any = net.head.settings
        assert (settings.weights, settings.activations) == axes


def test_what_is_no_module_gets_its_sentence() -> None:
    with pytest.raises(InputError, match=r"binarize_ takes a torch\.nn\.Module, not list"):
        dabnet.binarize_([nn.Linear(2, 2)])  # type: ignore[arg-type]


def test_constrain_touches_binary_layers_only() -> None:
    net = Somebodys()
    dabnet.binarize_(net, skip=["head"])
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.fill_(7.0)
    dabnet.constrain_(net, centre=False)
    after = {name: set(parameter.flatten().tolist()) for name, parameter in net.named_parameters()}
    assert after["stem.weight"] == after["head.weight"] == after["body.1.bias"] == {7.0}
    assert after["body.1.weight"] == {1.0}
