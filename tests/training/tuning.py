"""What the tests of tuned models share: a model to start from, and the command that tunes one."""

from __future__ import annotations

import signal
import subprocess
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dabnet.comparing.fresh import fresh_model

if TYPE_CHECKING:
    from pathlib import Path

    from dabnet.packed import Model
    from tests.warm import Running


def small_model(**settings: Any) -> Model:
    """Make a model that was never trained, with all that a recognizer needs."""
    model = fresh_model("resnet18", 3, width=0.125, input_size=32, **settings)
    return replace(model, labels=("a", "b", "c"), raster={"size": 32, "margin": 0.05, "pen": 0.04})


def interrupt_learning(process: subprocess.Popen[str] | Running, folder: Path) -> tuple[int | None, str]:
    """Press Ctrl-C once a command has prepared its drawings, and return its exit code and last words."""
    until = time.monotonic() + 120
    while [path.name for path in folder.glob("*")] != ["data.parquet"] and time.monotonic() < until:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors
