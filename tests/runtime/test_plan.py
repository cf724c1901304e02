from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from dabnet.packed import Model
from dabnet.packed.bits import pack
from dabnet.packed.model import Add, Conv, Node, PRelu, Relu, Sign
from dabnet.runtime.plan import Step, fuse

from .models import models


def conv(value: int) -> Conv:
    return Conv(inputs=(value,), filters=2, weight=np.ones((2, 1, 1, 2), dtype=np.float32))


def binary_conv(value: int) -> Conv:
    bits = pack(np.ones((2, 2), dtype=bool))
    return Conv(inputs=(value,), filters=2, bits=bits, scale=np.ones(2, dtype=np.float32))


def steps(*nodes: Node) -> list[Step]:
    return fuse(Model((2, 3, 3), nodes))


def test_a_residual_block_is_two_steps() -> None:
    sign1, sign2, relu, add = Sign(inputs=(0,)), Sign(inputs=(2,)), Relu(inputs=(5,)), Add(inputs=(0, 4))
    first, second, third = steps(sign1, binary_conv(1), sign2, binary_conv(3), add, relu)
    assert (first.node, first.signs_value, first.real_value) == (sign1, 1, None)
    assert (second.sign, second.signs_value, second.real_value) == (sign2, 3, None)
    assert (third.added, third.activation, third.real_value, third.signs_value) == (0, relu, 6, None)


def test_a_sum_gives_its_signs_and_what_its_activation_makes() -> None:
    slope = PRelu(inputs=(2,), slope=np.ones(2, dtype=np.float32))
    sign = Sign(inputs=(2,))
    first, last = steps(conv(0), Add(inputs=(1, 0)), slope, sign, binary_conv(4), Add(inputs=(5, 3)))
    assert (first.added, first.activation, first.sign) == (0, slope, sign)
    assert (first.real_value, first.signs_value) == (3, 4)
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
    assert steps(conv(0), Sign(inputs=(1,)))[-1].signs_value == 2
    assert steps(conv(0), conv(0))[0].real_value == 1  # of no use, and made all the same


@given(model=models())
@settings(max_examples=200, deadline=None)
def test_every_step_finds_what_it_needs(model: Model) -> None:
    made = {0}
    for step in fuse(model):
        assert made.issuperset(step.node.inputs)
        assert step.added is None or step.added in made
        new = {value for value in (step.real_value, step.signs_value) if value is not None}
        assert new
        assert not new & made
        made |= new
    assert len(model.nodes) in made
