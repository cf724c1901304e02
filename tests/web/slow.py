"""dabnet, with a network that takes its time: so many seconds a batch."""

import os
import time

from dabnet.cli import main
from dabnet.runtime.recognizer import Recognizer

run = Recognizer.run


def run_slowly(recognizer, x):  # type: ignore[no-untyped-def]
    time.sleep(float(os.environ.get("SECONDS_A_BATCH", "0.3")))
    return run(recognizer, x)


Recognizer.run = run_slowly  # type: ignore[method-assign]
main()
