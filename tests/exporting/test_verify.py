from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import dabnet
from dabnet.errors import InputError
from dabnet.exporting.lower import lower
from dabnet.exporting.quantize import quantize_activations
from dabnet.exporting.verify import Disagreement, verify
from dabnet.packed import Model
from dabnet.packed.nodes import Conv, Quantize, Sign

from .test_lower import drawings, unsettle


@pytest.fixture(scope="module")
def net() -> nn.Module:
    torch.manual_seed(0)
    return unsettle(dabnet.build("resnet18", 20, "fbin", width=0.125, input_size=32), drawings(40, 32))


def changed(model: Model, at: int, **arrays: object) -> Model:
    nodes = list(model.nodes)
    nodes[at] = replace(nodes[at], **arrays)  # type: ignore[arg-type]
    return Model(model.input_size, tuple(nodes))


def test_twins_agree_about_everything(net: nn.Module) -> None:
    x = drawings(40, 32)
    labels = np.arange(40) % 20
    done: list[int] = []
    model = lower(net, (1, 32, 32)).model
    found = verify(net, model, [x[:25], x[25:]], labels, layer_sketches=10, progress=done.append)
    assert found.is_fine
    assert (found.sketches, found.layer_sketches, done) == (40, 25, [25, 40])
    assert found.equal + len(found.disagreements) == 40
    assert found.logits_error < 1e-4
    signs = [layer for layer in found.layers if layer.signs]
    assert len(signs) == sum(isinstance(node, Sign) for node in model.nodes) > 15
    assert all(layer.flips_beyond == 0 for layer in signs)
    right = net(torch.from_numpy(x)).argmax(dim=1).numpy() == labels
    assert found.torch_right == right.sum()
    assert found.to_dict()["is_fine"] is True


def test_a_network_of_your_own_is_compared_with_its_file(tmp_path: Path) -> None:
    torch.manual_seed(0)
    mine = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(512, 4)
    )
    dabnet.binarize_(mine, weights="dab", activations="sign", skip=["6"])
    path = tmp_path / "mine.safetensors"
    dabnet.export(mine, path, input_size=(1, 12, 12))
    for x in (drawings(25, 12), torch.from_numpy(drawings(25, 12))):
        found = dabnet.verify(mine, path, x)
        assert found.is_fine
        assert (found.sketches, found.layer_sketches) == (25, 25)
    with pytest.raises(InputError, match=r"have the shape \(N, 1, 12, 12\), not \(1, 12, 12\)"):
        dabnet.verify(mine, path, drawings(1, 12)[0])


@pytest.mark.parametrize("name", ["resnet18", "googlenet"])
def test_a_network_of_real_activations_is_compared_with_the_whole_numbers_of_its_file(name: str) -> None:
    torch.manual_seed(0)
    x = drawings(40, 64)
    real = unsettle(dabnet.build(name, 20, weights="dab", activations="real", width=0.125, input_size=64), x)
    model = quantize_activations(lower(real, (1, 64, 64)).model, "int8", x[:10])
    found = verify(real, model, x, layer_sketches=20)
    assert found.is_fine, [layer for layer in found.layers if not layer.is_fine] + found.disagreements
    rounded = [layer for layer in found.layers if layer.op == "quantize"]
    assert len(rounded) > 10
    assert all(layer.signs for layer in rounded)
    assert all(getattr(layer, "quantize_input", None) is None for layer in real.modules())  # it stays as it was
    at = next(i for i, node in enumerate(model.nodes) if isinstance(node, Quantize))
    other = changed(model, at, scale=1.01 * model.nodes[at].scale)  # type: ignore[attr-defined]
    assert not verify(real, other, x[:10]).is_fine


def test_a_moved_threshold_is_found_and_explains_what_differs(net: nn.Module) -> None:
    model = lower(net, (1, 32, 32)).model
    at = next(i for i, node in enumerate(model.nodes) if isinstance(node, Sign) and node.threshold is not None)
    node = model.nodes[at]
    assert isinstance(node, Sign)
    assert node.threshold is not None
    threshold = node.threshold.copy()
    threshold[np.isfinite(threshold)] += 0.3
    found = verify(net, changed(model, at, threshold=threshold), [drawings(40, 32)])
    assert not found.is_fine
    assert [layer.name for layer in found.layers if not layer.is_fine] == [node.name]
    assert found.layers[at].flips >= found.layers[at].flips_beyond > 0
    assert found.disagreements
    for item in found.disagreements:
        assert item.layer == node.name
        assert item.distance > 1e-3
        assert not item.is_explained
        assert f"flipped first in '{node.name}'" in str(item)


def test_a_threshold_moved_by_rounding_is_fine() -> None:
    """Every number is exactly at its threshold, and falls to the other side of one that is a hair higher."""
    net = nn.Sequential(nn.Conv2d(1, 2, 1, bias=False), nn.Conv2d(2, 2, 1, bias=False)).eval()
    nn.init.constant_(net[0].weight, 1.0)  # type: ignore[arg-type]
    net[1].weight.data = torch.tensor([[1.0, -0.5], [0.5, -1.0]])[:, :, None, None]
    dabnet.binarize_(net, "fbin")
    norm = net[1].norm
    assert isinstance(norm, nn.BatchNorm2d)
    norm.eps = 0.0
    assert norm.running_mean is not None
    norm.running_mean.fill_(1.0)
    model = lower(net, (1, 1, 1)).model
    at = next(i for i, node in enumerate(model.nodes) if isinstance(node, Sign))
    above = np.full(2, np.nextafter(np.float32(1), np.float32(2)))
    found = verify(net, changed(model, at, threshold=above), [np.ones((3, 1, 1, 1), dtype=np.float32)])
    assert (found.layers[at].signs, found.layers[at].flips, found.layers[at].flips_beyond) == (6, 6, 0)
    assert len(found.disagreements) == 3
    assert found.is_fine
    assert all(item.is_explained and item.layer == "1" and item.flips == 2 for item in found.disagreements)


def test_other_weights_are_found(net: nn.Module) -> None:
    model = lower(net, (1, 32, 32)).model
    at = next(i for i, node in enumerate(model.nodes) if isinstance(node, Conv) and node.bits is not None)
    node = model.nodes[at]
    assert isinstance(node, Conv)
    assert node.scale is not None
    found = verify(net, changed(model, at, scale=node.scale * np.float32(1.001)), [drawings(5, 32)])
    assert not found.is_fine
    assert [layer.name for layer in found.layers if not layer.is_fine] == [node.name]


def test_another_network_is_refused(net: nn.Module) -> None:
    other = dabnet.build("resnet18", 20, "fbin", width=0.25, input_size=32)
    with pytest.raises(InputError, match="was not exported from this network"):
        verify(net, lower(other, (1, 32, 32)).model, [])


def test_a_tie_says_that_no_bit_differs() -> None:
    item = Disagreement(sketch=3, torch_class=1, packed_class=2, distance=2e-7)
    assert item.is_explained
    assert str(item) == "sketch 3: class 1 in torch, 2 packed; no bit differs, and the two were 2.0e-07 apart"
