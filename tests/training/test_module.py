from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from dabnet.errors import NonFiniteError
from dabnet.networks.catalog import build
from dabnet.networks.convert import binary_layers
from dabnet.training.callbacks import trace, upper_side
from dabnet.training.data import NO_CLASS
from dabnet.training.mixing import Batch
from dabnet.training.module import Training, decay_binary_, learning_rate
from dabnet.training.recipe import Recipe, change_recipe
from dabnet.training.teacher import Teacher
from tests.training.conftest import TINY


def batch() -> Batch:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(8) % 5
    return Batch(torch.rand(8, 1, 32, 32, generator=generator), labels, labels, torch.ones(8))


def test_the_papers_schedule_halves_down_to_the_least() -> None:
    recipe = Recipe(epochs=400)
    rates = [0.002 * learning_rate(recipe, epoch * 10, 10) for epoch in (0, 49, 50, 100, 250, 399)]
    assert rates == pytest.approx([0.002, 0.002, 0.001, 0.0005, 0.0000625, 0.00005])


def test_one_cycle_rises_then_falls_and_cosine_falls_to_the_least() -> None:
    one_cycle, cosine = (Recipe(epochs=10, schedule=schedule) for schedule in ("one-cycle", "cosine"))
    rates = [learning_rate(one_cycle, step, 10) for step in range(101)]
    assert rates.index(max(rates)) == 30
    assert max(rates) == pytest.approx(1)
    assert rates[:31] == sorted(rates[:31])
    assert rates[30:] == sorted(rates[30:], reverse=True)
    falling = [learning_rate(cosine, step, 10) for step in range(101)]
    assert falling == sorted(falling, reverse=True)
    for last in (rates[-1], falling[-1]):
        assert last == pytest.approx(0.00005 / 0.002)


def test_weight_decay_spares_binary_weights_norms_and_biases() -> None:
    net = build(**TINY.network_settings(5))
    training = Training(net, dataclasses.replace(TINY, weight_decay=0.1), steps_per_epoch=1)
    optimizer = training.configure_optimizers()["optimizer"]
    decayed = {id(p) for group in optimizer.param_groups if group["weight_decay"] for p in group["params"]}
    everything = {id(p) for group in optimizer.param_groups for p in group["params"]}
    binary = {id(layer.weight) for layer in binary_layers(net)}
    assert binary
    assert not decayed & binary
    assert decayed == {id(p) for p in net.parameters() if p.ndim > 1} - binary
    assert everything == {id(p) for p in net.parameters()}


def test_weight_decay_spares_learned_thresholds_and_shifts() -> None:
    recipe = dataclasses.replace(TINY, weight_decay=0.1, threshold="learned", nonlinearity="rprelu")
    net = build(**recipe.network_settings(5))
    optimizer = Training(net, recipe, steps_per_epoch=1).configure_optimizers()["optimizer"]
    decayed = {id(p) for group in optimizer.param_groups if group["weight_decay"] for p in group["params"]}
    learned = [p for name, p in net.named_parameters() if "threshold" in name or "activation" in name]
    assert len(learned) > 20
    assert decayed
    assert not decayed & {id(p) for p in learned}


@pytest.mark.parametrize(("share", "temperature"), [(0.0, 1.0), (0.3, 1.0), (1.0, 4.0)])
def test_a_students_loss_is_the_formulas(share: float, temperature: float) -> None:
    recipe = dataclasses.replace(TINY, label_smoothing=0.1)
    student, teacher = (build(**{**recipe.network_settings(5), "width": width}) for width in (0.125, 0.25))
    training = Training(student, recipe, 1, Teacher(teacher, share, temperature))
    training.log_dict = lambda *_, **__: None  # type: ignore[method-assign]
    (images, labels, *_), before = batch(), {name: tensor.clone() for name, tensor in teacher.state_dict().items()}
    loss = training.training_step(batch(), 0)

    logits, answers = student(images).detach().double(), teacher.eval()(images).detach().double()
    smooth = torch.nn.functional.one_hot(labels, 5) * 0.9 + 0.1 / 5
    from_labels = -(smooth * logits.log_softmax(1)).sum(1).mean()
    wanted = (answers / temperature).softmax(1)
    given = (logits / temperature).softmax(1)
    from_teacher = temperature**2 * (wanted * (wanted / given).log()).sum(1).mean()
    assert float(loss.detach()) == pytest.approx(float((1 - share) * from_labels + share * from_teacher), rel=1e-4)

    loss.backward()
    assert all(parameter.grad is None for parameter in teacher.parameters())
    assert all(torch.equal(tensor, before[name]) for name, tensor in teacher.state_dict().items())
    assert not any("teacher" in name for name in training.state_dict())


@pytest.mark.parametrize("setting", ["mixup", "cutmix"])
def test_the_loss_of_two_sketches_in_one_is_mixed_as_they_are(setting: str) -> None:
    recipe = change_recipe(TINY, ["label_smoothing=0.1", f"{setting}=0.5"])
    training = Training(build(**recipe.network_settings(5)), recipe, 1)
    training.log_dict = lambda *_, **__: None  # type: ignore[method-assign]
    images, labels, *_ = batch()
    shares, second = torch.linspace(0.5, 1, 8), labels.flip(0)
    loss = training.training_step(Batch(images, labels, second, shares), 0)
    chances = training.net(images).detach().double().log_softmax(1)
    mixed = shares[:, None] * torch.nn.functional.one_hot(labels, 5)
    mixed = mixed + (1 - shares[:, None]) * torch.nn.functional.one_hot(second, 5)
    wanted = -((mixed * 0.9 + 0.1 / 5) * chances).sum(1).mean()
    assert float(loss.detach()) == pytest.approx(float(wanted), rel=1e-4)


def test_in_the_first_stage_weights_are_real_and_decayed_and_then_binary() -> None:
    recipe = dataclasses.replace(TINY, epochs=4, first_stage=0.5, weight_decay=0.1)
    net = build(**recipe.network_settings(5))
    training = Training(net, recipe, 1)
    optimizer = training.configure_optimizers()["optimizer"]
    trainer = SimpleNamespace(optimizers=[optimizer], current_epoch=0, global_step=1)
    training._trainer = trainer  # type: ignore[assignment]
    layers = list(binary_layers(net))
    everything = {id(p) for group in optimizer.param_groups for p in group["params"]}
    assert everything == {id(p) for p in net.parameters()}
    for epoch in (0, 1, 2, 3):
        trainer.current_epoch = epoch
        training.on_train_epoch_start()
        first = epoch < 2
        assert recipe.in_first_stage(epoch) == first
        decayed = {id(p) for group in optimizer.param_groups if group["weight_decay"] for p in group["params"]}
        assert ({id(layer.weight) for layer in layers} <= decayed) == first
        for layer in layers:
            assert torch.equal(layer.binary_weight(), layer.weight) == first
    assert not dataclasses.replace(recipe, epochs=1, first_stage=0.9).in_first_stage(0)


def test_a_compiled_step_learns_with_the_networks_own_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[torch.nn.Module] = []

    def note(net: torch.nn.Module) -> torch.nn.Module:
        compiled.append(net)
        return net

    monkeypatch.setattr(torch, "compile", note)
    recipe = dataclasses.replace(TINY, compile=True)
    net = build(**recipe.network_settings(5))
    training = Training(net, recipe, 1)
    training.log_dict = lambda *_, **__: None  # type: ignore[method-assign]
    assert compiled == [net]
    training.training_step(batch(), 0).backward()
    assert all(parameter.grad is not None for parameter in net.parameters())
    assert {name.removeprefix("net.") for name in training.state_dict()} == set(net.state_dict())


def test_scribbles_pull_towards_equal_chances_and_count_as_neither_right_nor_wrong() -> None:
    training = Training(build(**TINY.network_settings(5)), TINY, 1)
    noted: dict[str, Tensor] = {}
    training.log_dict = lambda figures, **_: noted.update(figures)  # type: ignore[method-assign]
    images, labels, *others = batch()
    labels[[1, 4]] = NO_CLASS
    loss = training.training_step(Batch(images, labels, *others), 0)

    chances = training.net(images).detach().double().log_softmax(1)
    known = [row for row in range(8) if row not in (1, 4)]
    of_known = -sum(float(chances[row, labels[row]]) for row in known)
    of_scribbles = sum(float((0.2 * (0.2 / chances[row].exp()).log()).sum()) for row in (1, 4))
    assert float(loss.detach()) == pytest.approx((of_known + of_scribbles) / 8, rel=1e-4)
    right = sum(int(chances[row].argmax() == labels[row]) for row in known)
    assert float(noted["train_accuracy"]) == pytest.approx(right / 6)


def test_a_loss_that_is_no_number_names_the_first_layer_that_went_wrong() -> None:
    recipe = dataclasses.replace(TINY, weights="real", activations="real")
    net = build(**recipe.network_settings(5))
    training = Training(net, recipe, steps_per_epoch=1)
    training.log_dict = lambda *_, **__: None  # type: ignore[method-assign]
    assert torch.isfinite(training.training_step(batch(), 0))
    names = [name for name, parameter in net.named_parameters() if parameter.ndim == 1]
    with torch.no_grad():
        net.get_parameter(names[3])[0] = float("nan")
    with pytest.raises(NonFiniteError, match=f"in epoch 1 .* first in '{names[3]}': lower learning_rate"):
        training.training_step(batch(), 0)


def test_a_number_that_a_sign_hides_from_the_loss_is_found_at_the_end_of_the_epoch() -> None:
    net = build(**TINY.network_settings(5))
    training = Training(net, TINY, steps_per_epoch=1)
    training.on_train_epoch_end()
    name = next(name for name, _ in net.named_parameters() if "norm" in name)
    with torch.no_grad():
        net.get_parameter(name)[0] = float("nan")
    with pytest.raises(NonFiniteError, match=f"in epoch 1 '{name}' is no longer finite: lower learning_rate"):
        training.on_train_epoch_end()


def test_a_layer_whose_output_overflows_is_named() -> None:
    recipe = dataclasses.replace(TINY, weights="real", activations="real")
    net = build(**recipe.network_settings(5))
    head = [name for name, module in net.named_modules() if isinstance(module, torch.nn.Linear)][-1]
    training = Training(net, recipe, steps_per_epoch=1)
    training.log_dict = lambda *_, **__: None  # type: ignore[method-assign]
    with torch.no_grad():
        weight = net.get_parameter(f"{head}.weight")
        weight.fill_(1e38)
        weight[0].fill_(-1e38)
    with pytest.raises(NonFiniteError, match=f"first in what layer '{head}' gives"):
        training.training_step(batch()._replace(images=batch().images * 1e6), 0)


def test_traces_tell_the_values_the_share_the_flips_and_the_error() -> None:
    net = build(**TINY.network_settings(5))
    layers = list(binary_layers(net))
    before = [upper_side(layer) for layer in layers]
    with torch.no_grad():
        layers[0].weight.neg_()
    rows = trace(net, before, epoch=4)
    assert rows[0]["flip"] == 1
    assert [row["layer"] for row in rows] == [layer.name for layer in layers]
    assert all(row["layer"] for row in rows)
    assert all(row["flip"] == 0 for row in rows[1:])
    for row, layer in zip(rows, layers, strict=True):
        weight = layer.weight.detach()
        difference = (weight - layer.binary_weight().detach()).square().sum() / weight.square().sum()
        assert row["error"] == pytest.approx(float(difference), rel=1e-4)
        assert row["k_share"] == pytest.approx(float(layer.two_values().mask.double().mean()))
        assert row["alpha"] >= row["beta"] > 0
        assert row["epoch"] == 4
        assert 0 < row["skew"] < 1


def test_binary_weights_decay_to_two_numbers_and_real_ones_do_not() -> None:
    net = build(**TINY.network_settings(5))
    stem = net.get_parameter("stem.conv.weight").clone()
    signs = [layer.weight >= 0 for layer in binary_layers(net)]
    for _ in range(60):
        decay_binary_(net, 0.2, (-0.1, 0.3))
    for layer, above in zip(binary_layers(net), signs, strict=True):
        torch.testing.assert_close(layer.weight.data, torch.where(above, 0.3, -0.1), rtol=0, atol=1e-4)
    assert torch.equal(net.get_parameter("stem.conv.weight"), stem)
