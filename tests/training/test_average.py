from __future__ import annotations

import pytest
import torch
from torch import nn

from dabnet.networks.catalog import build
from dabnet.training.average import MovingAverage, measure_norms
from tests.training.conftest import TINY


def test_the_average_is_the_formulas_and_follows_faster_at_first() -> None:
    net = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        net.weight.fill_(0.0)
    average = MovingAverage(net, 0.9)
    wanted = 0.0
    for step in range(1, 200):
        with torch.no_grad():
            net.weight.fill_(float(step))
        average.update(net)
        decay = min(0.9, (1 + step) / (10 + step))
        wanted = decay * wanted + (1 - decay) * step
    assert average.network(net, []).get_parameter("weight").item() == pytest.approx(wanted, rel=1e-5)


def test_measured_norms_have_the_mean_and_the_spread_of_the_batches() -> None:
    net = nn.Sequential(nn.Conv2d(1, 3, 1), nn.BatchNorm2d(3)).eval()
    batches = list(torch.rand(5, 16, 1, 8, 8, generator=torch.Generator().manual_seed(0)))
    measure_norms(net, batches)
    outputs = [net[0](images) for images in batches]
    means = torch.stack([output.mean(dim=(0, 2, 3)) for output in outputs]).mean(dim=0)
    spreads = torch.stack([output.transpose(0, 1).flatten(1).var(dim=1) for output in outputs]).mean(dim=0)
    torch.testing.assert_close(net[1].running_mean, means)
    torch.testing.assert_close(net[1].running_var, spreads)
    assert not net.training
    assert net[1].momentum == 0.1


def test_the_averaged_network_leaves_the_trained_one_as_it_is() -> None:
    net = build(**TINY.network_settings(5))
    average = MovingAverage(net, 0.5)
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    with torch.no_grad():
        for parameter in average.buffers():
            if parameter.is_floating_point():
                parameter.add_(0.25)
    averaged = average.network(net, [torch.rand(8, 1, 32, 32)])
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())
    for name, parameter in averaged.named_parameters():
        torch.testing.assert_close(parameter, before[name] + 0.25)
    assert any("average" in name or "/" in name for name in average.state_dict())
