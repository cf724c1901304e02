"""Lets four threads share sessions, and compares all answers; `make race` runs it under ThreadSanitizer.

python -m tests.runtime.share_session
"""

from __future__ import annotations

import argparse
import sys
import threading
import time

import numpy as np
from numpy.typing import NDArray

from dabnet.packed import Model
from dabnet.packed.bits import pack
from dabnet.packed.nodes import AdaptiveAvgPool, Add, Affine, Concat, Conv, MaxPool, Relu, Sign
from dabnet.runtime import Session

PYTHON_THREADS = 4
SKETCHES = 50
MOST_AT_ONCE = 3


def shared_model() -> Model:
    """Both kinds of convolutions, with values that share memory and one that is kept for a shortcut."""
    rng = np.random.default_rng(0)

    def floats(*shape: int) -> NDArray[np.float32]:
        return rng.standard_normal(shape).astype(np.float32)

    def bits(*shape: int) -> NDArray[np.uint8]:
        return pack(rng.random(shape) < 0.5)

    return Model(
        (1, 12, 12),
        (
            Conv(inputs=(0,), filters=20, kernel=(3, 3), padding=(1, 1, 1, 1), weight=floats(20, 3, 3, 1)),
            MaxPool(inputs=(1,), kernel=(2, 2), stride=(2, 2)),
            Sign(inputs=(2,), threshold=floats(20)),
            Conv(
                inputs=(3,),
                filters=20,
                kernel=(3, 3),
                padding=(1, 1, 1, 1),
                bits=bits(20, 180),
                scale=floats(20),
                offset=floats(20),
            ),
            Add(inputs=(4, 2)),
            Affine(inputs=(5,), scale=floats(20), shift=floats(20)),
            Relu(inputs=(6,)),
            Concat(inputs=(7, 2)),
            AdaptiveAvgPool(inputs=(8,), size=(1, 1)),
            Conv(inputs=(9,), filters=5, bits=bits(5, 40), scale=floats(5), bias=floats(5)),
        ),
    )


def count_wrong(session: Session, runs: int) -> int:
    """Run sketches, a few at once, from all threads; count the runs with other answers than one sketch alone has."""
    x = np.random.default_rng(1).standard_normal((SKETCHES, *session.input_size), dtype=np.float32)
    expected = np.concatenate([Session(session.model).run(sketch[None]) for sketch in x])
    wrong = [0] * PYTHON_THREADS

    def work(worker: int) -> None:
        rng = np.random.default_rng(worker)
        for _ in range(runs // PYTHON_THREADS):
            chosen = rng.integers(0, SKETCHES, rng.integers(1, MOST_AT_ONCE + 1))
            wrong[worker] += not np.array_equal(session.run(x[chosen]), expected[chosen])

    workers = [threading.Thread(target=work, args=(worker,)) for worker in range(PYTHON_THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000, help="of each session")
    runs = parser.parse_args().runs
    for threads in (1, 2):
        start = time.perf_counter()
        wrong = count_wrong(Session(shared_model(), threads=threads), runs)
        seconds = time.perf_counter() - start
        print(
            f"threads={threads}: {runs:,} runs from {PYTHON_THREADS} threads in {seconds:.0f} s, {wrong} wrong",
            flush=True,
        )
        if wrong:
            sys.exit("Threads that share a session spoil each other's answers.")


if __name__ == "__main__":
    main()
