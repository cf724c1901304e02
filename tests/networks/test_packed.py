from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import dabnet
from dabnet.comparing.fresh import fresh_model
from dabnet.comparing.sketches import draw_sketches
from dabnet.comparing.twin import real_twin
from dabnet.errors import InputError, UnsupportedError
from dabnet.networks.packed import PackedNetwork
from dabnet.packed import Model, read_model, to_bytes
from dabnet.packed.nodes import AvgPool, Conv
from dabnet.runtime import Session, reference
from tests.runtime.models import models, models_of_signs, sketches


def assume_that_torch_has_it(model: Model) -> None:
    assume(not any(isinstance(node, AvgPool) and node.dilation != (1, 1) for node in model.nodes))
    # A convolution in groups once crashed in torch, for a reason that was not found; no network of ours has any.
    assume(all(node.groups == 1 for node in model.nodes if isinstance(node, Conv)))


@given(model=models_of_signs(), seed=st.integers(0, 2**32))
@settings(max_examples=60, suppress_health_check=[HealthCheck.filter_too_much])
def test_any_model_gives_the_references_answers_to_the_bit_where_sums_are_exact(model: Model, seed: int) -> None:
    assume_that_torch_has_it(model)
    x = sketches(model, 2, seed, exact=True)
    found = PackedNetwork(model)(torch.from_numpy(x))
    np.testing.assert_array_equal(found.numpy(), reference.answers(model, x))


@given(model=models(), seed=st.integers(0, 2**32))
@settings(max_examples=60, suppress_health_check=[HealthCheck.filter_too_much])
def test_any_model_of_real_numbers_gives_the_references_answers(model: Model, seed: int) -> None:
    twin = real_twin(model)
    assume_that_torch_has_it(twin)
    x = sketches(model, 2, seed)
    expected = reference.answers(twin, x)
    with torch.inference_mode():
        found = PackedNetwork(twin)(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4 * max(1.0, float(np.abs(expected).max(initial=0))))


@pytest.mark.parametrize("precision", ["fbin", "wbin", "fprec"])
@pytest.mark.parametrize("network", ["resnet18", "googlenet"])
def test_a_network_answers_as_its_session_does(network: str, precision: str) -> None:
    model = fresh_model(network, 10, precision=precision, method="dab", width=0.125, input_size=48)
    x = draw_sketches(3, model.input_size)
    expected = Session(model).run(x)
    found = PackedNetwork(model).eval()(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())


def test_the_shipped_model_answers_in_torch_as_in_its_session() -> None:
    net = dabnet.load("default")
    assert not net.training
    session = Session("default")
    x = draw_sketches(20, session.input_size, session.model.raster)
    expected, found = session.run(x), net(torch.from_numpy(x)).numpy()
    assert (found.argmax(axis=1) == expected.argmax(axis=1)).mean() >= 0.95
    # Rounding turns a sign here and there, in a few sketches; the others agree to the last digits.
    assert np.median(np.abs(found - expected).max(axis=1)) < 1e-3 * np.abs(expected).max()


def test_a_packed_file_of_your_own_is_loaded_and_one_named_default_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = fresh_model("resnet18", 3, precision="fbin", width=0.125, input_size=32)
    monkeypatch.chdir(tmp_path)
    assert read_model("default").answers > 3
    for name in ("m.safetensors", "default"):
        Path(name).write_bytes(to_bytes(model))
        assert dabnet.load(name)(torch.zeros(2, 1, 32, 32)).shape == (2, 3)
    assert Session("default").model.answers == 3
    Path("default").unlink()
    Path("default").mkdir()
    Path("default", "other.safetensors").touch()
    refused: tuple[Callable[[str], object], ...] = (dabnet.load, Session)
    for load in refused:
        with pytest.raises(InputError, match="'default'"):
            load("default")


def test_means_that_torch_does_not_have_are_refused_in_a_sentence() -> None:
    pool = AvgPool(inputs=(0,), kernel=(2, 2), dilation=(2, 2))
    with pytest.raises(UnsupportedError, match="torch has no dilated means"):
        PackedNetwork(Model((1, 5, 5), (pool,)))(torch.zeros(1, 1, 5, 5))


def test_it_is_not_packed_again(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="a packed model already: copy the file"):
        dabnet.export(dabnet.load("default"), tmp_path / "m.safetensors")


def test_it_moves_and_is_copied_as_any_module() -> None:
    model = fresh_model("resnet18", 3, precision="fbin", width=0.125, input_size=32)
    net = PackedNetwork(model)
    assert not list(net.parameters())
    x = torch.from_numpy(draw_sketches(2, model.input_size))
    other = PackedNetwork(model)
    other.load_state_dict(net.state_dict())
    assert torch.equal(other.double().float()(x), net(x))
