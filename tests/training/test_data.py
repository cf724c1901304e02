from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dabnet.errors import InputError
from dabnet.sketches.folds import TRAIN_ONLY
from dabnet.sketches.raster import rasterize
from dabnet.sketches.store import SketchSet
from dabnet.training.data import (
    NO_CLASS,
    Batches,
    Changed,
    divide,
    sampling_shares,
    training_loader,
    validation_loader,
)
from dabnet.training.recipe import Recipe
from tests.training.conftest import TINY


def test_the_test_fold_is_never_trained_or_chosen_on_and_all_classes_are_everywhere(small_set: Path) -> None:
    sketches = SketchSet(small_set)
    parts = divide(sketches, dataclasses.replace(TINY, classes=None), fold=1)
    assert set(parts.test) == set(np.flatnonzero(sketches.folds == 1))
    rows = np.concatenate([parts.train, parts.validation, parts.test])
    assert np.array_equal(np.sort(rows), np.arange(len(sketches)))
    for part in parts[:3]:
        assert set(sketches.labels[part]) == set(range(20))
    assert len(parts.validation) == pytest.approx(0.1 * 800, abs=20)


def test_some_classes_are_counted_anew(small_set: Path) -> None:
    sketches = SketchSet(small_set)
    parts = divide(sketches, TINY, fold=0)
    assert parts.classes == TINY.classes
    for row in np.concatenate(parts[:3]):
        assert parts.classes[parts.labels[row]] == sketches.classes[sketches.labels[row]]
    assert len(np.concatenate(parts[:3])) == 300


def test_a_set_that_does_not_serve_is_refused_in_a_sentence(small_set: Path) -> None:
    sketches = SketchSet(small_set)
    for changes, fold, words in (
        ({"classes": ["cat", "hause"]}, 0, "has no class 'hause'. Did you mean 'house'"),
        ({"classes": ["cat"]}, 0, "needs at least two classes"),
        ({}, 7, "has no fold 7 to test on: it has 0, 1, 2"),
    ):
        with pytest.raises(InputError, match=words):
            divide(sketches, dataclasses.replace(TINY, **changes), fold)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="fewer than a batch of 512: set batch_size to 180 or less"):
        Batches(divide(sketches, TINY, 0).train, dataclasses.replace(TINY, batch_size=512))


def test_an_epoch_shows_every_drawing_once_in_an_order_of_its_own(small_set: Path) -> None:
    parts = divide(SketchSet(small_set), TINY, fold=0)
    batches = Batches(parts.train, TINY)
    orders = []
    for epoch in (0, 1, 0):
        batches.set_epoch(epoch)
        keys = list(batches)
        assert len(keys) == len(batches) == len(parts.train) // 32
        orders.append(np.concatenate([key.rows for key in keys]))
        assert len(set(orders[-1])) == len(orders[-1])
        assert set(orders[-1]) <= set(parts.train)
    assert np.array_equal(orders[0], orders[2])
    assert not np.array_equal(orders[0], orders[1])


def test_two_devices_take_the_parts_that_one_takes_in_turn(small_set: Path) -> None:
    rows = divide(SketchSet(small_set), TINY, fold=0).train
    one = list(Batches(rows, dataclasses.replace(TINY, accumulate=2)))
    two = [list(Batches(rows, TINY, devices=2, device=device)) for device in (0, 1)]
    for step, (first, second) in enumerate(zip(*two, strict=True)):
        for key, alone in ((first, one[2 * step]), (second, one[2 * step + 1])):
            assert (key.epoch, key.number) == (alone.epoch, alone.number)
            assert np.array_equal(key.rows, alone.rows)
            assert len(key.rows) == 16
    with pytest.raises(InputError, match="cannot be divided into 5 equal parts"):
        Batches(rows, TINY, devices=5)


def test_a_batch_depends_on_nothing_but_its_key(small_set: Path) -> None:
    sketches = SketchSet(small_set)
    parts = divide(sketches, TINY, fold=0)
    first, second = list(Batches(parts.train, TINY))[:2]
    state = torch.random.get_rng_state()
    data = Changed(sketches, parts.labels, TINY)
    images, labels, *_ = data[first]
    assert torch.equal(torch.random.get_rng_state(), state)
    torch.manual_seed(5)
    again, *_ = Changed(SketchSet(small_set), parts.labels, TINY)[first]
    assert torch.equal(images, again)
    assert not torch.equal(images, data[second][0])
    assert images.shape == (32, 1, 32, 32)
    assert labels.tolist() == parts.labels[first.rows].tolist()
    assert 0.5 < float(images.amax()) <= 1


def test_scribbles_take_the_places_of_some_drawings_and_leave_the_others_as_they_are(small_set: Path) -> None:
    sketches = SketchSet(small_set)
    parts = divide(sketches, TINY, 0)
    plain = dataclasses.replace(TINY, remove_strokes=0.0, deform_strokes=0.0)
    data, scribbled = (
        Changed(sketches, parts.labels, dataclasses.replace(plain, scribbles=share)) for share in (None, 0.4)
    )
    shares = []
    for key in Batches(parts.train, TINY):
        (images, labels, *_), (changed, known, *_) = data[key], scribbled[key]
        assert torch.equal(scribbled[key][0], changed)
        shares.append(float((known == NO_CLASS).float().mean()))
        assert torch.equal(known[known != NO_CLASS], labels[known != NO_CLASS])
        for row in range(len(labels)):
            assert torch.equal(images[row], changed[row]) == (known[row] != NO_CLASS)
    assert 0.25 < sum(shares) / len(shares) < 0.55
    assert (parts.labels[parts.train] >= 0).all()


@pytest.mark.parametrize("workers", [0, 1])
def test_loaders_give_whole_batches(small_set: Path, workers: int) -> None:
    sketches = SketchSet(small_set)
    parts = divide(sketches, TINY, fold=0)
    assert len(list(training_loader(sketches, parts, TINY, workers=workers))) == len(parts.train) // 32
    found = list(validation_loader(sketches, parts, TINY, workers=workers))
    images, labels = torch.cat([batch[0] for batch in found]), torch.cat([batch[1] for batch in found])
    assert labels.tolist() == parts.labels[parts.validation].tolist()
    row = int(parts.validation[3])
    assert torch.equal(images[3, 0], torch.from_numpy(rasterize(sketches[row], TINY.raster)) / 255)


def test_what_another_run_held_back_is_held_back_again(small_set: Path) -> None:
    sketches = SketchSet(small_set)
    other = divide(sketches, dataclasses.replace(TINY, seed=5), fold=0)
    ids = set(sketches.ids[other.validation].tolist())
    mine = divide(sketches, TINY, fold=0)
    assert {*sketches.ids[mine.validation].tolist()} != ids
    again = divide(sketches, TINY, fold=0, held_back=[*ids, "not here"])
    assert {*sketches.ids[again.validation].tolist()} == ids
    assert not {*again.train.tolist()} & {*again.validation.tolist()}
    # Too few of them to judge by, or only drawings of the test: a share as ever.
    for held in (["not here"], sketches.ids[mine.test].tolist()):
        assert divide(sketches, TINY, fold=0, held_back=held).validation.tolist() == mine.validation.tolist()


def balanced(**settings: Any) -> Recipe:
    return dataclasses.replace(TINY, batch_size=10, **settings)


@pytest.mark.parametrize("balance", [0.0, 0.5, 1.0])
def test_balanced_batches_draw_a_group_of_n_as_n_to_the_rest_of_the_way(balance: float) -> None:
    groups = np.repeat([0, 1, 2], [400, 100, 25])
    drawn_shares = sampling_shares(groups, np.zeros_like(groups), balance, balance_sources=0.0)
    batches = Batches(np.arange(525), balanced(epoch_size=1000), shares=drawn_shares)
    drawn = np.concatenate([key.rows for key in batches])
    assert len(drawn) == 1000 == len(batches) * 10
    shares = np.array([400, 100, 25.0]) ** (1 - balance)
    found = np.bincount(groups[drawn], minlength=3) / 1000
    assert found == pytest.approx(shares / shares.sum(), abs=0.01)
    # No drawing of a group is drawn more than once more often than another.
    times = np.bincount(drawn, minlength=525)
    assert all(np.ptp(times[groups == group]) <= 1 for group in range(3))


def test_sources_are_evened_out_beside_the_groups_within_them() -> None:
    groups, sources = np.repeat([0, 1, 2], [400, 100, 25]), np.repeat([0, 1], [500, 25])
    for balance in (0.0, 1.0):
        shares = sampling_shares(groups, sources, balance, balance_sources=1.0)
        assert np.bincount(sources, shares) == pytest.approx([0.5, 0.5])
        within = np.bincount(groups, shares)[:2]
        assert within / within.sum() == pytest.approx([0.5, 0.5] if balance else [0.8, 0.2])


def test_an_epoch_of_fewer_drawings_takes_others_the_next_time() -> None:
    batches = Batches(np.arange(500), balanced(epoch_size=50))
    epochs = []
    for epoch in (0, 1, 0):
        batches.set_epoch(epoch)
        epochs.append(np.concatenate([key.rows for key in batches]).tolist())
    assert len(set(epochs[0])) == 50
    assert epochs[0] == epochs[2] != epochs[1]
    with pytest.raises(InputError, match="fewer than a batch of 10: set batch_size to 5 or less"):
        Batches(np.arange(500), balanced(epoch_size=5))


def test_drawings_for_training_only_are_in_no_test_and_no_validation(union_set: Path) -> None:
    sketches = SketchSet(union_set)
    parts = divide(sketches, dataclasses.replace(TINY, classes=None), fold=0)
    spare = np.flatnonzero(sketches.folds == TRAIN_ONLY)
    assert len(spare)
    assert set(spare) <= set(parts.train)
    assert not set(spare) & {*parts.validation, *parts.test}
    assert sorted({*parts.train, *parts.validation, *parts.test}) == list(range(len(sketches)))
    assert {tuple(pair) for pair in np.c_[sketches.sources, parts.labels]} == {
        (group // len(parts.classes), group % len(parts.classes)) for group in set(parts.groups.tolist())
    }
