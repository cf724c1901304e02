"""What the core does in one go: the names of a session's steps say it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dabnet.packed import Model
from dabnet.packed.bits import pack
from dabnet.packed.nodes import Add, Affine, Clamp, Concat, Conv, MaxPool, Node, PRelu, Quantize, Relu, Sign
from dabnet.runtime import Session, reference

from .models import models_of_chains, sketches

ONES = np.ones(2, dtype=np.float32)


def conv(value: int) -> Conv:
    return Conv(inputs=(value,), filters=2, weight=np.ones((2, 1, 1, 2), dtype=np.float32))


def binary_conv(value: int) -> Conv:
    bits = pack(np.ones((2, 2), dtype=bool))
    return Conv(inputs=(value,), filters=2, bits=bits, scale=ONES)


def affine(value: int) -> Affine:
    return Affine(inputs=(value,), scale=ONES, shift=ONES)


def prelu(value: int) -> PRelu:
    return PRelu(inputs=(value,), slope=ONES)


def steps(*nodes: Node) -> list[str]:
    """The steps of a model of 2x3x3, without what each makes."""
    return [step.partition(",")[0] for step in Session(Model((2, 3, 3), nodes)).steps]


def test_a_residual_block_is_two_steps() -> None:
    nodes = (
        Sign(inputs=(0,)),
        binary_conv(1),
        Sign(inputs=(2,)),
        binary_conv(3),
        Add(inputs=(0, 4)),
        Relu(inputs=(5,)),
    )
    assert steps(*nodes) == ["sign", "one-bit conv 1x1 + sign", "one-bit conv 1x1 + add + ReLU"]


def test_a_sum_gives_its_signs_and_what_its_activation_makes() -> None:
    nodes = (conv(0), Add(inputs=(1, 0)), prelu(2), Sign(inputs=(2,)), binary_conv(4), Add(inputs=(5, 3)))
    assert steps(*nodes) == ["real conv 1x1 + add + PReLU + sign", "one-bit conv 1x1 + add"]


def test_rprelu_is_done_with_the_convolution_before_it() -> None:
    """Shift, PReLU, shift: then the signs of what they make, and the numbers themselves for the next sum."""
    chain = (binary_conv(1), Add(inputs=(2, 0)), affine(3), prelu(4), affine(5))
    nodes = (Sign(inputs=(0,)), *chain, Sign(inputs=(6,)), binary_conv(7), Add(inputs=(8, 6)))
    assert steps(*nodes) == ["sign", "one-bit conv 1x1 + add + RPReLU + sign", "one-bit conv 1x1 + add"]
    assert steps(conv(0), affine(1), prelu(2), affine(3)) == ["real conv 1x1 + RPReLU"]
    assert steps(conv(0), affine(1), prelu(2)) == ["real conv 1x1 + affine + PReLU"]
    assert steps(conv(0), prelu(1), affine(2)) == ["real conv 1x1 + PReLU + affine"]
    assert steps(conv(0), affine(1)) == ["real conv 1x1 + affine"]


def test_what_lies_within_a_chain_and_is_needed_elsewhere_is_kept() -> None:
    assert steps(conv(0), affine(1), prelu(2), Add(inputs=(2, 3))) == ["real conv 1x1 + affine", "PReLU", "add"]
    assert steps(conv(0), affine(1), prelu(2), affine(3), Add(inputs=(3, 4))) == [
        "real conv 1x1 + affine + PReLU",
        "affine",
        "add",
    ]


def test_what_others_need_is_kept() -> None:
    """The convolution's own numbers are used twice: by the activation and by the sum."""
    assert steps(conv(0), Relu(inputs=(1,)), Add(inputs=(1, 2))) == ["real conv 1x1", "ReLU", "add"]


def test_a_value_that_comes_later_is_not_added_early() -> None:
    assert steps(conv(0), conv(0), Add(inputs=(1, 2))) == ["real conv 1x1", "real conv 1x1 + add"]


def test_the_answer_is_always_made() -> None:
    assert steps(conv(0)) == ["real conv 1x1"]
    assert steps(conv(0), Sign(inputs=(1,))) == ["real conv 1x1 + sign"]
    assert steps(conv(0), conv(0)) == ["real conv 1x1"] * 2  # the first is of no use, and made all the same


def test_signs_are_taken_before_pools_concats_and_activations() -> None:
    threshold = np.array([0, 1, 2, -1], dtype=np.float32)
    flip = pack(np.array([True, False, True, False]))
    pool = MaxPool(inputs=(3,), kernel=(2, 2))
    nodes = (conv(0), Relu(inputs=(1,)), Concat(inputs=(2, 0)), pool, Sign(inputs=(4,), threshold=threshold, flip=flip))
    assert steps(*nodes) == ["real conv 1x1 + sign", "sign", "concat", "pool of signs 2x2"]


def whole(value: int, scale: float = 1.0) -> Quantize:
    return Quantize(inputs=(value,), scale=scale, low=0, high=15)


def test_a_residual_block_of_whole_numbers_is_two_steps() -> None:
    block = (
        whole(0),
        binary_conv(1),
        Relu(inputs=(2,)),
        whole(3),
        binary_conv(4),
        Add(inputs=(0, 5)),
        Relu(inputs=(6,)),
    )
    assert steps(*block, whole(7), binary_conv(8), Add(inputs=(7, 9))) == [
        "quantize",
        "one-bit conv 1x1 + ReLU + quantize",
        "one-bit conv 1x1 + add + ReLU + quantize",
        "one-bit conv 1x1 + add",
    ]


def test_whole_numbers_are_made_before_pools_and_concats() -> None:
    pool = MaxPool(inputs=(5,), kernel=(2, 2))
    nodes = (whole(0), binary_conv(1), Relu(inputs=(2,)), binary_conv(1), Concat(inputs=(3, 4)), pool)
    assert steps(*nodes, whole(6), whole(5, 2.0)) == [
        "quantize",
        "one-bit conv 1x1 + ReLU + quantize",
        "one-bit conv 1x1 + quantize",
        "concat",
        "pool of whole numbers 2x2",
        "concat",
    ]


def test_a_convolution_of_real_weights_pools_before_whole_numbers_are_made() -> None:
    nodes = (conv(0), Relu(inputs=(1,)), MaxPool(inputs=(2,), kernel=(2, 2)), whole(3), binary_conv(4))
    assert steps(*nodes) == ["real conv 1x1 + ReLU + max-pool + quantize", "one-bit conv 1x1"]


def test_whole_numbers_that_are_alike_are_made_once() -> None:
    nodes = (conv(0), whole(1), binary_conv(2), whole(1), binary_conv(4), Add(inputs=(3, 5)))
    assert steps(*nodes) == ["real conv 1x1 + quantize", "one-bit conv 1x1", "one-bit conv 1x1 + add"]


def test_more_whole_numbers_than_a_convolution_can_make_are_made_later() -> None:
    made = (whole(1, float(scale)) for scale in range(1, 7))
    assert steps(conv(0), *made) == ["real conv 1x1 + quantize", "quantize", "quantize"]


def test_a_pool_that_is_needed_as_it_is_stays() -> None:
    """It is done with the convolution, and its signs are taken then."""
    relu, pool, sign = Relu(inputs=(1,)), MaxPool(inputs=(2,), kernel=(2, 2)), Sign(inputs=(3,))
    nodes = (conv(0), relu, pool, sign, binary_conv(4), Add(inputs=(3, 5)))
    assert steps(*nodes) == ["real conv 1x1 + ReLU + max-pool + sign", "one-bit conv 1x1 + add"]


def test_numbers_that_others_want_are_not_pooled_away() -> None:
    nodes = (conv(0), MaxPool(inputs=(1,), kernel=(1, 1)), Add(inputs=(1, 2)))
    assert steps(*nodes) == ["real conv 1x1", "max-pool 1x1", "add"]


def test_more_signs_than_a_convolution_can_take_are_taken_later() -> None:
    assert steps(conv(0), *(Sign(inputs=(1,)) for _ in range(10))) == ["real conv 1x1 + sign", "sign", "sign"]


def test_concats_of_concats_do_not_grow_without_bounds() -> None:
    nodes: list[Node] = [Relu(inputs=(0,)), *(Concat(inputs=(value, value)) for value in range(1, 14))]
    thresholds = [np.full(2**14, i, dtype=np.float32) for i in range(10)]
    assert len(steps(*nodes, *(Sign(inputs=(14,), threshold=t) for t in thresholds))) == len(nodes) + 10


def test_signs_are_not_moved_past_any_number_of_nodes() -> None:
    """What is moved step by step must not take the stack or the memory of all steps."""
    clamps = [Clamp(inputs=(value,), low=-float(value), high=1e6 - value) for value in range(3000)]
    assert len(steps(*clamps, Sign(inputs=(3000,)))) == 3001


@given(model=models_of_chains(), seed=st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_a_fused_chain_answers_as_its_nodes_one_by_one(model: Model, seed: int) -> None:
    """Sum, affine, activation, affine and signs, in every combination: bit for bit what the specification gives."""
    x = sketches(model, 2, seed)
    np.testing.assert_array_equal(Session(model).run(x), reference.answers(model, x))
