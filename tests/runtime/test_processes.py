"""Sessions and recognizers in other processes and threads: the same answers everywhere."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import threading
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dabnet.packed import Model
from dabnet.runtime import Recognizer, Session
from dabnet.sketches import Sketch, synthetic_strokes

from .models import models, sketches


@given(model=models(), seed=st.integers(0, 2**32), threads=st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_a_copy_of_a_session_answers_as_it_does(model: Model, seed: int, threads: int) -> None:
    session = Session(model, threads)
    x = sketches(model, 2, seed)
    for twin in (pickle.loads(pickle.dumps(session)), copy.deepcopy(session), copy.copy(session)):
        np.testing.assert_array_equal(twin.run(x), session.run(x))
        assert (twin.threads, twin.steps, twin.memory, repr(twin)) == (
            threads,
            session.steps,
            session.memory,
            repr(session),
        )


def test_a_copy_keeps_what_it_may_take() -> None:
    session = Session("default", max_memory=100_000_000, max_work=1e9)
    twin = pickle.loads(pickle.dumps(session))
    assert (twin.max_memory, twin.max_work, twin.data) == (100_000_000, 1e9, session.data)
    assert len(pickle.dumps(session)) < len(session.data) + 1000


def recognize(recognizer: Recognizer, sketch: Sketch) -> list[tuple[str, float]]:
    return recognizer.recognize(sketch)


@pytest.mark.parametrize("method", sorted({"fork", "spawn"} & set(multiprocessing.get_all_start_methods())))
def test_a_recognizer_goes_to_other_processes(method: str) -> None:
    recognizer = Recognizer.load(threads=2)
    drawings = synthetic_strokes(6)[0]
    expected = [recognizer.recognize(drawing) for drawing in drawings]  # its threads run, too
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        assert list(pool.map(recognize, [recognizer] * len(drawings), drawings)) == expected


def test_eight_threads_get_the_same_answers() -> None:
    recognizer = Recognizer.load(threads=2)
    drawings = synthetic_strokes(8)[0]
    expected = recognizer.recognize(drawings)
    wrong: list[int] = []

    def work(worker: int) -> None:
        order: NDArray[np.intp] = np.random.default_rng(worker).permutation(len(drawings))
        for _ in range(10):
            wrong.extend(i for i in order if recognizer.recognize(drawings[i]) != expected[i])

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_core_draws_and_ranks_as_python_does() -> None:
    """Hosts without Python get the same image, the same labels, and the same probabilities."""
    recognizer = Recognizer.load()
    handle = recognizer.session._handle
    for sketch in synthetic_strokes(20)[0]:
        image = np.empty(recognizer.input_size[1:], dtype=np.float32)
        assert sketch.points is not None
        assert sketch.ends is not None
        handle.draw_strokes(sketch.points, sketch.ends, image)
        np.testing.assert_array_equal(image, recognizer.show([sketch])[0, 0])
        logits = recognizer.session.run(image[None, None])
        ranked = handle.rank(logits[0], 250)
        expected = recognizer.recognize(sketch, top=250)
        assert ranked == expected
