from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dabnet.packed import Model
from dabnet.packed.bits import pack
from dabnet.packed.nodes import Add, Concat, Conv, MaxPool, Node, PRelu, Relu, Sign
from dabnet.runtime.plan import SignPool, Step, plan

from .models import models, models_of_signs


def conv(value: int) -> Conv:
    return Conv(inputs=(value,), filters=2, weight=np.ones((2, 1, 1, 2), dtype=np.float32))


def binary_conv(value: int) -> Conv:
    bits = pack(np.ones((2, 2), dtype=bool))
    return Conv(inputs=(value,), filters=2, bits=bits, scale=np.ones(2, dtype=np.float32))


def steps(*nodes: Node) -> list[Step]:
    return plan(Model((2, 3, 3), nodes))[0]


def test_a_residual_block_is_two_steps() -> None:
    sign1, sign2, relu, add = Sign(inputs=(0,)), Sign(inputs=(2,)), Relu(inputs=(5,)), Add(inputs=(0, 4))
    first, second, third = steps(sign1, binary_conv(1), sign2, binary_conv(3), add, relu)
    assert (first.node, first.values) == (sign1, [1])
    assert (second.signs, second.real_value) == ({3: sign2}, None)
    assert (third.added, third.activation, third.real_value, third.signs) == (0, relu, 6, {})


def test_a_sum_gives_its_signs_and_what_its_activation_makes() -> None:
    slope = PRelu(inputs=(2,), slope=np.ones(2, dtype=np.float32))
    sign = Sign(inputs=(2,))
    first, last = steps(conv(0), Add(inputs=(1, 0)), slope, sign, binary_conv(4), Add(inputs=(5, 3)))
    assert (first.added, first.activation, first.signs) == (0, slope, {4: sign})
    assert (first.real_value, first.values) == (3, [3, 4])
    assert (last.added, last.real_value) == (3, 6)


def test_what_others_need_is_kept() -> None:
    """The convolution's own numbers are used twice: by the activation and by the sum."""
    (first, relu, add) = steps(conv(0), Relu(inputs=(1,)), Add(inputs=(1, 2)))
    assert (first.activation, first.real_value) == (None, 1)
    assert (relu.real_value, add.real_value) == (2, 3)


def test_a_value_that_comes_later_is_not_added_early() -> None:
    first, second = steps(conv(0), conv(0), Add(inputs=(1, 2)))
    assert (first.added, first.real_value) == (None, 1)
    assert (second.added, second.real_value) == (1, 3)


def test_the_answer_is_always_made() -> None:
    assert steps(conv(0))[-1].real_value == 1
    assert steps(conv(0), Sign(inputs=(1,)))[-1].values == [2]
    assert steps(conv(0), conv(0))[0].real_value == 1  # of no use, and made all the same


def test_signs_are_taken_before_pools_joins_and_activations() -> None:
    threshold = np.array([0, 1, 2, -1], dtype=np.float32)
    flip = pack(np.array([True, False, True, False]))
    pool = MaxPool(inputs=(3,), kernel=(2, 2))
    sign = Sign(inputs=(4,), threshold=threshold, flip=flip)
    first, of_input, join, pooled = steps(conv(0), Relu(inputs=(1,)), Concat(inputs=(2, 0)), pool, sign)
    (taken,) = first.signs.values()
    assert first.real_value is None
    assert taken.threshold is not None
    assert taken.threshold.tolist() == [-np.inf, 1]  # a ReLU always reaches 0
    assert isinstance(of_input.node, Sign)
    assert of_input.node.threshold is not None
    assert of_input.node.threshold.tolist() == [2, -1]
    assert join.node.inputs == (*first.signs, *of_input.values)
    assert isinstance(pooled.node, SignPool)
    assert (pooled.node.inputs, pooled.node.window, pooled.node.flip) == (tuple(join.values), pool, flip)


def test_a_pool_that_is_needed_as_it_is_stays() -> None:
    """It is done with the convolution, and its signs are taken then."""
    relu, pool, sign = Relu(inputs=(1,)), MaxPool(inputs=(2,), kernel=(2, 2)), Sign(inputs=(3,))
    first, last = steps(conv(0), relu, pool, sign, binary_conv(4), Add(inputs=(3, 5)))
    assert (first.activation, first.pool, first.signs, first.real_value) == (relu, pool, {4: sign}, 3)
    assert last.added == 3


def test_numbers_that_others_want_are_not_pooled_away() -> None:
    first, pooled, _ = steps(conv(0), MaxPool(inputs=(1,), kernel=(1, 1)), Add(inputs=(1, 2)))
    assert (first.pool, first.real_value, pooled.real_value) == (None, 1, 2)


def test_more_signs_than_a_convolution_can_take_are_taken_later() -> None:
    first, *rest = steps(conv(0), *(Sign(inputs=(1,)) for _ in range(10)))
    assert (first.real_value, len(first.signs), len(rest)) == (1, 8, 2)


def test_joins_of_joins_do_not_grow_without_bounds() -> None:
    nodes: list[Node] = [Relu(inputs=(0,)), *(Concat(inputs=(value, value)) for value in range(1, 14))]
    thresholds = [np.full(2**14, i, dtype=np.float32) for i in range(10)]
    assert len(steps(*nodes, *(Sign(inputs=(14,), threshold=t) for t in thresholds))) == len(nodes) + 10


@given(model=st.one_of(models(), models_of_signs()))
@settings(max_examples=200, deadline=None)
def test_every_step_finds_what_it_needs(model: Model) -> None:
    made = {0}
    steps, answer = plan(model)
    for step in steps:
        assert made.issuperset(step.node.inputs)
        assert step.added is None or step.added in made
        new = set(step.values)
        assert new
        assert not new & made
        made |= new
    assert answer in made
