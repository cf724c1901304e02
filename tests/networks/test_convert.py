from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import dabnet
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
