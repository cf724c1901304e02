from __future__ import annotations

import json
from typing import cast

import pytest
import torch
from torch import Tensor, nn

import dabnet
from dabnet.errors import InputError
from dabnet.networks.layers import BinaryConv2d


def network() -> nn.Sequential:
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, bias=False),
        nn.BatchNorm2d(8),
        nn.Conv2d(8, 16, 3, stride=2, groups=2, bias=False),
        nn.ReLU(),
        nn.Conv2d(16, 16, 1, bias=False),
        nn.Flatten(),
        nn.Linear(16 * 4, 10),
    )
    dabnet.binarize_(net, "fbin", skip=["4", "6"], norm=False)
    dabnet.binarize_(net, "wbin", "xnor", skip=["6"])
    return net


def test_every_count_is_right() -> None:
    net = network()
    s = dabnet.summary(net, input_size=(1, 7, 7), labels=list("abcdefghij"))
    rows = {layer.name: layer for layer in s.layers}
    assert list(rows) == ["0", "1", "2", "4", "6"]
    assert rows["0"].output_shape == (8, 5, 5)
    assert rows["2"].output_shape == (16, 2, 2)
    assert rows["6"].output_shape == (10,)
    assert (rows["0"].real_macs, rows["0"].real_parameters) == (8 * 25 * 9, 72)
    assert (rows["2"].binary_macs, rows["2"].one_bit_parameters) == (16 * 4 * 36, 16 * 36)
    assert (rows["4"].one_bit_macs, rows["4"].one_bit_parameters) == (16 * 4 * 16, 256)
    assert (rows["6"].real_macs, rows["6"].real_parameters) == (640, 650)
    assert rows["2"].bytes == 16 * -(-36 // 8) + 16 * 8  # and no threshold: there is no norm before the sign
    assert rows["1"].bytes == 0  # it became the first layer's bias, and that one the sign's threshold
    assert s.float_bytes == 4 * (72 + 4 * 8 + 576 + 256 + 650)


def test_k_share_and_error_are_the_binarizers_own() -> None:
    net = network()
    row = next(layer for layer in dabnet.summary(net, (1, 7, 7)).layers if layer.name == "2")
    layer = cast("BinaryConv2d", net[2])
    mask, alpha, beta = layer.two_values()
    w = layer.weight.detach().flatten(1)
    assert row.k_share == pytest.approx(mask.float().mean().item())
    lost = (w - torch.where(mask, alpha, beta)).square().sum() / w.square().sum()
    assert row.error == pytest.approx(lost.item(), rel=1e-5)


class Reads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(7, 6, batch_first=True)
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)
        self.unused = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(7)
        self.head = nn.Linear(6, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.lstm(x[:, 0])[0])
        logits: Tensor = self.head(self.attention(x, x, x)[0].mean(dim=1))
        return logits


def test_what_it_cannot_count_is_named() -> None:
    s = dabnet.summary(Reads(), (1, 7, 7))
    assert s.not_counted == {
        "lstm": "the multiply-adds of a LSTM are none that summary knows",
        "attention": "the multiply-adds of a MultiheadAttention are none that summary knows",
        "attention.out_proj": "it was not called",
        "unused": "it was not called",
    }
    assert sum(layer.real_macs for layer in s.layers) == 30  # the head's alone
    for name, why in s.not_counted.items():
        assert f"not counted   {name}: {why}" in str(s)
    assert s.to_dict()["not_counted"] == s.not_counted
    everything = dabnet.summary(network(), (1, 7, 7))
    assert everything.not_counted == {}
    assert "not counted" not in str(everything)


def test_signs_that_meet_real_weights_are_counted_as_one_bit_by_32() -> None:
    net = nn.Sequential(nn.Conv2d(1, 8, 1), BinaryConv2d(8, 4, 3, weights="real", threshold="learned"))
    s = dabnet.summary(net, (1, 7, 7))
    rows = {layer.name: layer for layer in s.layers}
    assert (rows["1"].one_bit_macs, rows["1"].real_parameters, rows["1"].kind) == (
        4 * 25 * 72, 4 * 72, "BinaryConv2d real sign",
    )  # fmt: skip
    assert rows["1.quantize_input"].real_parameters == 8
    assert "multiplies signs by real weights" in str(s.why_not_packed)


def test_the_network_is_left_as_it_was() -> None:
    net = network().train()
    net[1].eval()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    dabnet.summary(net, (1, 7, 7))
    assert [module.training for module in net] == [True, False, True, True, True, True, True]
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert not any(module._forward_hooks for module in net.modules())


def test_it_prints_as_a_table_and_turns_into_json() -> None:
    s = dabnet.summary(network(), (1, 7, 7))
    text = str(s)
    for words in ("BinaryConv2d dab sign", "BinaryConv2d xnor real", "K/n", "times smaller", "832 of 1 bit"):
        assert words in text
    assert json.loads(json.dumps(s.to_dict()))["bytes"] == s.bytes


def test_a_layer_that_does_not_run_says_so() -> None:
    class Unused(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.spare = nn.Linear(4, 2), nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = self.used(x)
            return logits

    assert "not run" in str(dabnet.summary(Unused(), (4,)))


def test_a_network_without_parameters_gets_its_sentence() -> None:
    with pytest.raises(InputError, match="needs a network with parameters"):
        dabnet.summary(nn.Sequential(nn.ReLU()))
