from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dabnet.errors import InputError, ModelFormatError
from dabnet.packed import Model, to_bytes
from dabnet.packed.nodes import Conv, MaxPool, Quantize, Relu, Sign
from dabnet.runtime import Session, reference
from dabnet.runtime.session import kernel_names

from .models import halves, models, models_of_signs, sketches

TOLERANCE = 1e-5
"""The tolerance, as a share of the largest number of a value: sums of real numbers are rounded in another order."""


def assert_alike(found: NDArray[np.float32], expected: NDArray[np.float32]) -> None:
    assert found.shape == expected.shape
    if found.size:
        np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE * np.abs(expected).max())


def session_with(kernels: str, model: Model, threads: int = 1) -> Session:
    """A session that is forced to use some kernels, and does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DABNET_KERNELS", kernels)
        session = Session(model, threads)
    assert session.kernels == kernels
    return session


each_kernels = pytest.mark.parametrize("kernels", kernel_names())


@each_kernels
@given(model=models(binary=True), batch=st.sampled_from([0, 1, 7]), seed=st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_counts_of_signs_are_the_references_bit_for_bit(kernels: str, model: Model, batch: int, seed: int) -> None:
    x = sketches(model, batch, seed)
    np.testing.assert_array_equal(session_with(kernels, model).run(x), reference.answers(model, x))


@st.composite
def models_of_groups(draw: st.DrawFn, real: bool) -> Model:
    """A convolution in groups, after signs or not, wide enough for vectors, and what its offset and bias add."""
    groups, channels, filters = draw(st.sampled_from([(70, 1, 1), (96, 1, 2), (24, 3, 3), (33, 4, 2), (2, 32, 5)]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    taps = 9 * channels
    conv = Conv(
        inputs=(0 if real else 1,),
        filters=groups * filters,
        groups=groups,
        kernel=(3, 3),
        padding=draw(st.sampled_from([(0, 0, 0, 0), (1, 1, 1, 1), (2, 0, 1, 3)])),
        stride=(draw(st.integers(1, 2)), 1),
        dilation=(1, draw(st.integers(1, 2))),
        pad_value=0 if real else draw(st.integers(0, 1)),
        bits=rng.integers(0, 256, (groups * filters, (taps + 7) // 8), dtype=np.uint8)
        & np.array([255] * (taps // 8) + [(1 << taps % 8) - 1] * (taps % 8 > 0), dtype=np.uint8),
        scale=halves(rng, groups * filters),
        offset=halves(rng, groups * filters) if draw(st.booleans()) else None,
        bias=halves(rng, groups * filters) if draw(st.booleans()) else None,
    )
    nodes = (conv,) if real else (Sign(inputs=(0,)), conv)
    return Model((groups * channels, 6, 7), nodes)


@given(model=models_of_groups(real=False), seed=st.integers(0, 2**32), threads=st.sampled_from([1, 3]))
@settings(max_examples=60, deadline=None)
def test_signs_in_groups_are_the_references_bit_for_bit(model: Model, seed: int, threads: int) -> None:
    x = sketches(model, 2, seed)
    for kernels in kernel_names():
        np.testing.assert_array_equal(session_with(kernels, model, threads).run(x), reference.answers(model, x))


@given(model=models_of_groups(real=True), seed=st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_real_numbers_in_groups_are_the_references(model: Model, seed: int) -> None:
    x = sketches(model, 2, seed)
    expected = session_with("portable", model).run(x)
    assert_alike(expected, reference.answers(model, x))
    for kernels in kernel_names():
        np.testing.assert_array_equal(session_with(kernels, model).run(x), expected)


@pytest.mark.parametrize(
    ("groups", "filters", "is_general"), [(64, 64, False), (16, 64, False), (2, 60, True), (1, 64, False)]
)
def test_a_step_says_if_it_runs_on_the_slow_general_path(groups: int, filters: int, is_general: bool) -> None:
    taps = 9 * (64 // groups)
    bits = np.zeros((filters, (taps + 7) // 8), dtype=np.uint8)
    scale = np.ones(filters, dtype=np.float32)
    conv = Conv(inputs=(1,), filters=filters, groups=groups, kernel=(3, 3), bits=bits, scale=scale)
    (_, step) = Session(Model((64, 5, 5), (Sign(inputs=(0,)), conv))).steps
    assert step.endswith("on the slow general path") is is_general


@given(model=models(), seed=st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_all_kernels_give_the_same_answers_bit_for_bit(model: Model, seed: int) -> None:
    x = sketches(model, 3, seed)
    expected = session_with("portable", model).run(x)
    for kernels in kernel_names():
        np.testing.assert_array_equal(session_with(kernels, model).run(x), expected)


@each_kernels
@given(model=models_of_signs(), seed=st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_signs_may_be_taken_early(kernels: str, model: Model, seed: int) -> None:
    x = sketches(model, 2, seed, exact=True)
    np.testing.assert_array_equal(session_with(kernels, model).run(x), reference.answers(model, x))


@each_kernels
@given(model=models(), batch=st.sampled_from([0, 1, 7]), seed=st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_every_value_is_the_references(kernels: str, model: Model, batch: int, seed: int) -> None:
    """Each node on the reference's own inputs, so that a sign within rounding of its threshold spoils nothing else."""
    x = sketches(model, batch, seed)
    values = reference.run(model, x)
    for at, node in enumerate(model.nodes):
        if not all(model.shapes[i].is_real for i in node.inputs):
            continue  # with the node that made the signs or whole numbers, below
        alone = single_node(model, at)
        found = session_with(kernels, alone).run(np.ascontiguousarray(values[node.inputs[0]].transpose(0, 3, 1, 2)))
        expected = reference.answers(alone, values[node.inputs[0]].transpose(0, 3, 1, 2))
        if isinstance(node, Sign | Quantize):
            np.testing.assert_array_equal(found, expected)
        else:
            assert_alike(found, expected)


def single_node(model: Model, at: int) -> Model:
    """A model of one node, whose inputs are all the same value."""
    node = model.nodes[at]
    values = vars(node) | {"inputs": (0,) * len(node.inputs)}
    return Model(model.shapes[node.inputs[0]][:3], (type(node)(**values),))


@given(
    side=st.tuples(st.integers(2, 9), st.integers(2, 9)),
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    dilation=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    padding=st.tuples(*[st.integers(0, 4)] * 4),
    threads=st.integers(1, 3),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=300, deadline=None)
def test_any_pool_is_done_with_the_convolution_before_it(
    side: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    padding: tuple[int, int, int, int],
    threads: int,
    seed: int,
) -> None:
    """With dilation and padding, a row of the pool may see a row above those that the row before it saw."""
    rng = np.random.default_rng(seed)
    conv = Conv(inputs=(0,), filters=5, kernel=(2, 2), padding=(1, 0, 0, 1), weight=halves(rng, 5, 2, 2, 1))
    try:
        pool = MaxPool(inputs=(1,), kernel=kernel, stride=stride, dilation=dilation, padding=padding)
        model = Model((1, *side), (conv, pool))
    except ModelFormatError:
        reject()  # a window that does not fit, or sees nothing
    x = sketches(model, 3, seed, exact=True)
    np.testing.assert_array_equal(Session(model, threads).run(x), reference.answers(model, x))


@given(model=models(), seed=st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_answers_depend_on_neither_batch_nor_threads(model: Model, seed: int) -> None:
    x = sketches(model, 5, seed)
    alone = np.concatenate([Session(model).run(sketch[None]) for sketch in x])
    for threads in (1, 2, 3):
        np.testing.assert_array_equal(Session(model, threads=threads).run(x), alone)


@given(model=models(), seed=st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_a_file_answers_as_the_model_it_was_written_from(model: Model, seed: int) -> None:
    x = sketches(model, 2, seed)
    np.testing.assert_array_equal(Session(to_bytes(model)).run(x), Session(model).run(x))


def test_it_says_where_the_time_goes() -> None:
    session = Session(small_model())
    times = session.layer_times(sketches(session.model, 1), repeats=2)
    assert [name for name, _ in times] == ["real conv 3x3 + sign, to 70x7x7", "one-bit conv 3x3, to 4x5x5"]
    assert all(0 < seconds < 1 for _, seconds in times)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_a_forked_process_works_on_alone() -> None:
    """Its parent's threads are not there."""
    session = Session(small_model(), threads=3)
    x = sketches(session.model, 1)
    expected = session.run(x)
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends it, if it waits for threads that are not there
        is_right = np.array_equal(session.run(x), expected)
        del session
        os._exit(0 if is_right else 1)
    assert os.waitpid(child, 0)[1] == 0


def small_model() -> Model:
    rng = np.random.default_rng(0)
    first = Conv(inputs=(0,), filters=70, kernel=(3, 3), weight=rng.standard_normal((70, 3, 3, 1)).astype(np.float32))
    bits = rng.integers(0, 256, (4, -(-70 * 9 // 8)), dtype=np.uint8)
    bits[:, -1] &= 0x3F
    scale = np.ones(4, dtype=np.float32)
    return Model(
        (1, 9, 9),
        (first, Sign(inputs=(1,)), Conv(inputs=(2,), filters=4, kernel=(3, 3), bits=bits, scale=scale)),
    )


def test_threads_may_share_a_session() -> None:
    model = small_model()
    session = Session(model)
    x = sketches(model, 50)
    expected = session.run(x)
    wrong: list[int] = []

    def work(seed: int) -> None:
        chosen = np.random.default_rng(seed).integers(0, 50, 2500)
        wrong.extend(i for i in chosen if not np.array_equal(session.run(x[i : i + 1])[0], expected[i]))

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_it_says_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(to_bytes(Model((1, 9, 9), small_model().nodes, tuple(f"class {i}" for i in range(100)))))
    session = Session(path)
    assert session.input_size == (1, 9, 9)
    assert session.labels[:2] == ["class 0", "class 1"]
    assert session.kernels == kernel_names()[0]
    assert repr(session) == f"<dabnet Session: 1x9x9 -> 100, kernels {session.kernels}>"
    assert 9 * 9 * 4 < session.memory < 100_000


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        (np.zeros((1, 1, 9, 8), dtype=np.float32), r"shape \(N, 1, 9, 9\), not float32 \(1, 1, 9, 8\)"),
        (np.zeros((1, 9, 9), dtype=np.float32), r"not float32 \(1, 9, 9\)"),
        (np.zeros((1, 1, 9, 9)), r"takes a float32 array .* not float64"),
        ([[1.0]], r"not list"),
        (np.full((1, 1, 9, 9), np.nan, dtype=np.float32), r"holds a NaN or an infinite number"),
    ],
)
def test_bad_sketches_get_their_sentence(x: NDArray[np.float32], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Session(small_model()).run(x)


def test_other_arrays_than_contiguous_ones_are_taken() -> None:
    model = small_model()
    x = sketches(model, 6)
    np.testing.assert_array_equal(Session(model).run(x[::2]), Session(model).run(x)[::2])
    np.testing.assert_array_equal(Session(model).run(np.asfortranarray(x)), Session(model).run(x))


def test_kernels_are_chosen_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DABNET_KERNELS", "portable")
    assert Session(small_model()).kernels == "portable"
    monkeypatch.setenv("DABNET_KERNELS", "portble")
    with pytest.raises(InputError, match=r"names no kernels that run here.* Did you mean 'portable'"):
        Session(small_model())


def test_too_much_memory_is_refused_before_it_is_taken() -> None:
    weight = np.ones((1, 1, 1, 1), dtype=np.float32)
    wide = Conv(inputs=(0,), filters=1, padding=(4000, 4000, 4000, 4000), weight=weight)
    model = Model((1, 9, 9), (wide, Conv(inputs=(1,), filters=1, weight=weight)))
    with pytest.raises(ModelFormatError, match=r"more than 268,435,456 bytes of memory: raise max_memory"):
        Session(model)
    with pytest.raises(ModelFormatError, match="more than 1,000 bytes"):
        Session(small_model(), max_memory=1000)
    with pytest.raises(InputError, match="at least one thread, not 0"):
        Session(small_model(), threads=0)


def test_values_share_memory_where_they_can() -> None:
    long = Model((1, 100, 100), tuple(Relu(inputs=(i,)) for i in range(50)))
    assert Session(long).memory < 2.1 * 100 * 100 * 4


def test_importing_the_runtime_takes_no_torch_and_little_time() -> None:
    code = """
import sys, time
import numpy
start = time.process_time()  # which waits for nobody
import dabnet.runtime
print(time.process_time() - start)
assert not {"torch", "lightning", "matplotlib", "rich", "typer"} & set(sys.modules)
"""
    best = min(
        float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
        for _ in range(3)
    )
    assert best < 0.2
