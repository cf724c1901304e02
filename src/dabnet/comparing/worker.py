"""One engine in a process of its own, so that its memory and its threads are its own.

    python -m dabnet.comparing.worker ENGINE MODEL SKETCHES THREADS

It says "ready", then answers each line of JSON on its input with one on its output: {"batch": 8, "runs": 3} with the
seconds of so many runs, after one that does not count; {"logits": 8} with what it answers; {"memory": true} with bytes.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dabnet._lazy import load
from dabnet.comparing.engines import ENGINES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dabnet.comparing.engines import Run


def peak_memory() -> int:
    """Return the most bytes of memory that this process has had resident."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else 1024 * peak
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def answer(request: dict[str, Any], run: Run, x: NDArray[np.float32], imported: int) -> dict[str, Any]:
    """Do what one line asks for."""
    if "memory" in request:
        peak = peak_memory()
        return {"peak": peak, "growth": peak - imported}
    if "logits" in request:
        return {"logits": run(x[: request["logits"]]).tolist()}
    batch = np.ascontiguousarray(x[: request["batch"]])
    run(batch)
    seconds = []
    for _ in range(request["runs"]):
        start = time.perf_counter()
        run(batch)
        seconds.append(time.perf_counter() - start)
    return {"seconds": seconds}


def main() -> None:
    """Serve until the input ends."""
    engine, path, sketches, threads = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a library may print, but not between the answers
    load(ENGINES[engine].library)
    x = np.load(sketches)
    imported = peak_memory()
    run = ENGINES[engine].open(Path(path), int(threads))
    run(x[:1])
    print(json.dumps("ready"), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), run, x, imported)), file=answers, flush=True)


if __name__ == "__main__":
    main()
