from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dabnet.training.mixing import mix


def images(count: int, size: int = 12) -> Tensor:
    """Images that tell by any pixel which one they are."""
    return torch.arange(1.0, count + 1)[:, None, None, None].expand(count, 1, size, size).clone()


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_without_mixing_a_batch_stays_as_it_is_and_no_randomness_is_used() -> None:
    generator = seeded(0)
    before = generator.get_state()
    labels = torch.arange(4)
    batch = mix(images(4), labels, torch.ones(4, dtype=torch.bool), 0.0, 0.0, generator)
    assert torch.equal(batch.images, images(4))
    assert torch.equal(batch.labels, labels)
    assert torch.equal(batch.second_labels, labels)
    assert batch.shares.tolist() == [1] * 4
    assert torch.equal(generator.get_state(), before)


@given(st.integers(2, 9), st.integers(0, 2**32), st.floats(0.1, 5))
def test_mixup_adds_two_sketches_by_their_shares_and_names_both(count: int, seed: int, alpha: float) -> None:
    labels = torch.arange(count)
    batch = mix(images(count), labels, torch.ones(count, dtype=torch.bool), alpha, 0.0, seeded(seed))
    assert ((batch.shares >= 0.5) & (batch.shares <= 1)).all()
    wanted = batch.shares * (labels + 1) + (1 - batch.shares) * (batch.second_labels + 1)
    for position in ((0, 0), (5, 7)):
        torch.testing.assert_close(batch.images[:, 0, position[0], position[1]], wanted)
    assert sorted(batch.second_labels.tolist()) == labels.tolist()


@given(st.integers(2, 9), st.integers(0, 2**32), st.floats(0.1, 5))
def test_cutmix_replaces_one_square_and_shares_are_what_is_left(count: int, seed: int, alpha: float) -> None:
    labels = torch.arange(count)
    batch = mix(images(count), labels, torch.ones(count, dtype=torch.bool), 0.0, alpha, seeded(seed))
    for row in range(count):
        first, second = row + 1, int(batch.second_labels[row]) + 1
        shown = batch.images[row, 0]
        assert set(shown.unique().tolist()) <= {first, second}
        if first != second:
            box = shown == second
            assert float(batch.shares[row]) == pytest.approx(1 - float(box.float().mean()), abs=1e-6)
            rows, columns = box.any(1), box.any(0)
            assert bool((box == (rows[:, None] & columns[None])).all())
            assert int(rows.sum()) == int(columns.sum())
    assert (batch.shares >= 0.5).all()


def test_sketches_without_a_class_are_neither_changed_nor_mixed_in() -> None:
    known = torch.tensor([True, False, True, True, False, True])
    labels = torch.where(known, torch.arange(6), -1)
    batch = mix(images(6), labels, known, 1.0, 0.0, seeded(3))
    assert torch.equal(batch.images[~known], images(6)[~known])
    assert batch.shares[~known].tolist() == [1, 1]
    assert (batch.second_labels[known] >= 0).all()
    alone = mix(images(2), torch.tensor([0, -1]), torch.tensor([True, False]), 1.0, 0.0, seeded(3))
    assert torch.equal(alone.images, images(2))


def test_with_both_on_some_batches_have_one_and_some_the_other() -> None:
    kinds = set()
    for seed in range(20):
        batch = mix(images(8), torch.arange(8), torch.ones(8, dtype=torch.bool), 1.0, 1.0, seeded(seed))
        kinds.add(all(len(image.unique()) == 1 for image in batch.images))
    assert kinds == {True, False}


def test_the_same_seed_mixes_the_same_way() -> None:
    first, second = (
        mix(images(8), torch.arange(8), torch.ones(8, dtype=torch.bool), 0.4, 0.4, seeded(7)) for _ in range(2)
    )
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
