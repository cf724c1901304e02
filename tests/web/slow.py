"""dabnet, with a network that takes its time, so many seconds per batch, or fails."""

import os
import time
from typing import Any

from dabnet.cli import main
from dabnet.runtime.recognizer import Recognizer

run = Recognizer.run


def run_slowly(recognizer: Recognizer, x: Any, **limits: Any) -> Any:
    if os.environ.get("FAILS"):
        raise RuntimeError("a network that fails")
    time.sleep(float(os.environ.get("SECONDS_PER_BATCH", "0.3")))
    return run(recognizer, x, **limits)


if __name__ == "__main__":
    Recognizer.run = run_slowly  # type: ignore[assignment, method-assign]
    main()
