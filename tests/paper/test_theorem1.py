from __future__ import annotations

import math
from decimal import Decimal
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dabnet.errors import InputError
from paper.theorem1 import (
    ACTIVATIONS,
    best_groups,
    build_product,
    count_neurons,
    find_theorem1,
    measure,
    run_network,
)

group_sizes = st.lists(st.integers(1, 4), min_size=1, max_size=3).filter(lambda sizes: 2 <= math.prod(sizes) <= 8)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_six_inputs_take_64_20_and_22_neurons_and_err_with_at_least_the_seventh_power(activation: str) -> None:
    found = find_theorem1(6, [1, 2, 3], activation).figures["networks"]
    assert [each["neurons"] for each in found.values()] == [64, 20, 22]
    assert [each["groups"] for each in found.values()] == [[6], [3, 2], [3, 2, 1]]
    for each in found.values():
        assert min(each["orders"]) >= 7
        assert each["order"] == pytest.approx(8, abs=1e-3)
        assert each["rounding"] < 1e-20


@settings(max_examples=15, deadline=None)
@given(group_sizes, st.sampled_from(list(ACTIVATIONS)), st.integers(0, 1000))
def test_the_error_of_any_grouping_falls_with_the_power_n_plus_2(groups: list[int], name: str, seed: int) -> None:
    found = measure(groups, ACTIVATIONS[name], seed)
    assert found.order == pytest.approx(math.prod(groups) + 2, abs=0.01)
    assert found.neurons == count_neurons(groups)
    assert found.rounding < 1e-20


@settings(max_examples=15, deadline=None)
@given(group_sizes)
def test_each_layer_has_weights_of_one_magnitude_and_groups_are_apart(groups: list[int]) -> None:
    layers = build_product(groups, ACTIVATIONS["exp"])
    assert len(layers) == len(groups) + 1
    assert len(layers[-1].neurons) == 1
    before = math.prod(groups)
    for layer in layers:
        for neuron in layer.neurons:
            indices = [index for index, _ in neuron]
            assert len(set(indices)) == len(indices)
            assert set(indices) <= set(range(before))
            assert {sign for _, sign in neuron} <= {1, -1}
        before = len(layer.neurons)


def test_a_network_multiplies() -> None:
    activation = ACTIVATIONS["exp"]
    inputs = [Decimal(x) for x in ("0.01", "-0.02", "0.03", "0.015")]
    answer = run_network(build_product([2, 2], activation), inputs, activation)
    assert float(answer) == pytest.approx(float(math.prod(inputs)), rel=1e-3)


@given(st.integers(2, 36), st.integers(1, 3))
def test_the_best_groups_take_the_fewest_neurons(n: int, layers: int) -> None:
    divisors = [d for d in range(1, n + 1) if n % d == 0]
    every = [groups for groups in product(divisors, repeat=layers) if math.prod(groups) == n]
    found = best_groups(n, layers)
    assert found in every
    assert count_neurons(found) == min(map(count_neurons, every))


@pytest.mark.parametrize(
    ("n", "layers", "activation", "words"),
    [
        (1, [1], "exp", "number of inputs must be from 2"),
        (6, [0], "exp", "number of layers must be from 1"),
        (6, [], "exp", "--layers 1 2 3"),
        (6, [1], "tanh", "'tanh' is not a kind of activation"),
    ],
)
def test_what_cannot_be_built_is_one_sentence(n: int, layers: list[int], activation: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        find_theorem1(n, layers, activation)
