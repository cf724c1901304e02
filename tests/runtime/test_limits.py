"""What a run may take: work, time and memory, and who may stop it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dabnet.errors import ModelFormatError, NonFiniteError, RunCancelledError, TimeLimitError
from dabnet.packed import Model, to_bytes
from dabnet.packed.nodes import AdaptiveAvgPool, Affine, AvgPool, Conv, Flatten, MaxPool, Node, Sign
from dabnet.runtime import Recognizer, Session
from dabnet.runtime.session import Cancel

from .heavy import SIDE, heavy_model
from .models import models, sketches

TRILLION = 1e12


def heavy_session(threads: int = 1, model: Model | None = None) -> Session:
    return Session(model or heavy_model(), threads, max_work=1000 * TRILLION)


def paper(session: Session) -> Any:
    return np.ones((1, *session.input_size), dtype=np.float32)


def test_a_small_file_that_would_run_for_minutes_is_refused() -> None:
    data = to_bytes(heavy_model())
    assert len(data) < 2000
    with pytest.raises(ModelFormatError, match=r"^the model takes [\d.e+]+ billion multiply-adds .* raise max_work"):
        Session(data)
    assert Session(data, max_work=10 * TRILLION).work > 0.5 * TRILLION


def test_a_convolutions_work_is_its_multiply_adds() -> None:
    weight = np.ones((5, 3, 3, 2), dtype=np.float32)
    model = Model((2, 30, 40), (Conv(inputs=(0,), filters=5, kernel=(3, 3), padding=(1, 1, 1, 1), weight=weight),))
    multiply_adds = 5 * 9 * 2 * 30 * 40
    assert multiply_adds <= Session(model).work < 1.2 * multiply_adds


@given(model=models())
@settings(max_examples=50, deadline=None)
def test_every_model_states_its_work(model: Model) -> None:
    work = Session(model).work
    assert work >= 1
    Session(model, max_work=work)
    with pytest.raises(ModelFormatError, match="raise max_work if you trust it"):
        Session(model, max_work=0.99 * work)
    with pytest.raises(ModelFormatError, match="raise max_work if you trust it"):
        Session(model, max_work=float("nan"))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_stops_at_its_time_limit(threads: int) -> None:
    session = heavy_session(threads)
    begun = time.monotonic()
    with pytest.raises(TimeLimitError, match=r"^the model took longer than 0.2 s: raise the time limit\.$"):
        session.run(paper(session), time_limit=0.2)
    assert 0.2 <= time.monotonic() - begun < 2


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("count", [1, 4])
def test_another_thread_can_stop_a_run(threads: int, count: int) -> None:
    session = heavy_session(threads)
    cancel = Cancel()
    timer = threading.Timer(0.2, cancel.cancel)
    timer.start()
    begun = time.monotonic()
    with pytest.raises(RunCancelledError, match=r"^the run was cancelled\.$"):
        session.run(np.concatenate([paper(session)] * count), cancel=cancel)
    assert time.monotonic() - begun < 2
    assert cancel.is_cancelled


def test_a_session_that_was_stopped_goes_on_as_before() -> None:
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((64, 9, 9, 32)).astype(np.float32)
    nodes = (Conv(inputs=(0,), filters=64, kernel=(9, 9), padding=(4, 4, 4, 4), weight=weight), Flatten(inputs=(1,)))
    session = Session(Model((32, 24, 24), (nodes[0], AdaptiveAvgPool(inputs=(1,), size=(2, 2)))), threads=2)
    x = sketches(session.model, 1)
    expected = session.run(x)
    for _ in range(20):
        with pytest.raises(TimeLimitError):
            session.run(np.concatenate([x] * 500), time_limit=0.01)
        np.testing.assert_array_equal(session.run(x), expected)


LONG: dict[str, tuple[Node, ...]] = {
    "max": (MaxPool(inputs=(0,), kernel=(SIDE // 2, SIDE // 2)),),
    "mean": (AvgPool(inputs=(0,), kernel=(SIDE // 2, SIDE // 2)),),
    "signs": (Sign(inputs=(0,)), Sign(inputs=(0,))),
    "conv": (
        Conv(inputs=(0,), filters=1, kernel=(SIDE // 2,) * 2, weight=np.ones((1, SIDE // 2, SIDE // 2, 1), np.float32)),
    ),
    "binary": (
        Sign(inputs=(0,)),
        Conv(
            inputs=(1,),
            filters=1,
            kernel=(SIDE // 2,) * 2,
            bits=np.full((1, SIDE * SIDE // 32), 255, np.uint8),
            scale=np.ones(1, np.float32),
        ),
    ),
    "one-bit": (
        Conv(
            inputs=(0,),
            filters=1,
            kernel=(SIDE // 2,) * 2,
            bits=np.full((1, SIDE * SIDE // 32), 255, np.uint8),
            scale=np.ones(1, np.float32),
            offset=np.ones(1, np.float32),
        ),
    ),
}


@pytest.mark.parametrize("kind", [name for name in LONG if name != "signs"])
def test_every_kind_of_layer_can_be_stopped(kind: str) -> None:
    """One layer that takes a minute or more: it stops within a tenth of a second of processor time."""
    session = heavy_session(model=Model((1, SIDE, SIDE), LONG[kind]))
    begun = time.thread_time()
    with pytest.raises(TimeLimitError):
        session.run(paper(session), time_limit=0.05)
    assert time.thread_time() - begun < 0.5


def test_an_answer_that_is_not_finite_is_an_error() -> None:
    huge = Affine(inputs=(0,), scale=np.full(1, 3e38, np.float32), shift=np.zeros(1, np.float32))
    session = Session(Model((1, 1, 1), (huge,)))
    assert session.run(np.ones((1, 1, 1, 1), np.float32)).tolist() == [[float(np.float32(3e38))]]
    with pytest.raises(NonFiniteError, match=r"^the model answered with a number that is not finite: .*\.$"):
        session.run(np.full((1, 1, 1, 1), 9, np.float32))


def test_memory_covers_an_image_and_its_answer() -> None:
    """A file of a few hundred bytes can ask for images of 64 MB, and for as much in answers."""
    large = to_bytes(Model((1, 4096, 4096), (Affine(inputs=(0,), scale=np.ones(1, "f4"), shift=np.ones(1, "f4")),)))
    with pytest.raises(ModelFormatError, match=r"more than 200,000,000 bytes of memory"):
        Session(large, max_memory=200_000_000)
    assert Session(large, max_memory=300_000_000).batch == 1
    assert Session("default").batch > 1000


def test_a_batch_takes_no_more_memory_than_allowed() -> None:
    code = """
import resource, sys
import numpy as np
from dabnet.packed import Model, to_bytes
from dabnet.packed.nodes import AdaptiveAvgPool, Flatten
from dabnet.runtime import Recognizer
from dabnet.sketches import synthetic_strokes
nodes = (AdaptiveAvgPool(inputs=(0,), size=(1, 2)), Flatten(inputs=(1,)))
model = Model((1, 2048, 2048), nodes, ("left", "right"), {"size": 2048, "margin": 0.05, "pen": 0.02})
recognizer = Recognizer.load(to_bytes(model))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert len(recognizer.recognize(synthetic_strokes(40)[0])) == 40
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10)
"""
    grown = int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
    assert grown < 300 << 20  # where 40 images take 640 MB


def test_ctrl_c_ends_a_recognition_at_once(tmp_path: Path) -> None:
    path, drawing = tmp_path / "heavy.safetensors", tmp_path / "line.json"
    path.write_bytes(to_bytes(heavy_model()))
    drawing.write_text("[[[0, 0], [9, 5]]]")
    command = [sys.executable, "-m", "dabnet", "recognize", str(drawing), "--model", str(path), "--max-work", "1e9"]
    times = []
    for _ in range(3):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            time.sleep(2.5)
            assert process.poll() is None, process.communicate()
            begun = time.monotonic()
            process.send_signal(signal.SIGINT)
            try:
                _, errors = process.communicate(timeout=20)
            finally:
                process.kill()
            times.append(time.monotonic() - begun)
        assert process.returncode != 0
        assert "Traceback" not in errors
        if times[-1] < 0.2:
            break
    assert min(times) < 0.2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_a_recognizer_that_was_stopped_can_be_forked() -> None:
    recognizer = Recognizer(heavy_session(threads=2))
    x = paper(recognizer.session)
    with pytest.raises(TimeLimitError):
        recognizer.run(x, time_limit=0.05)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            recognizer.run(x, time_limit=0.05)
        except TimeLimitError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


@given(seconds=st.sampled_from([0.0, 1e-9, 1e300, float("inf")]))
@settings(max_examples=4, deadline=None)
def test_any_number_of_seconds_is_taken(seconds: float) -> None:
    session = Session(Model((1, 1, 1), (Flatten(inputs=(0,)),)))
    assert session.run(np.ones((1, 1, 1, 1), np.float32), time_limit=seconds).tolist() == [[1.0]]
