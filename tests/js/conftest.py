"""Node, and the core compiled to WebAssembly, for tests that need them."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])

Run = Callable[..., str]


def lacks(what: str) -> None:
    """Skip a test for what is not here; on CI, fail."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(what)


def run(*command: str | Path, folder: Path = ROOT) -> str:
    """Run a command, whose program may stand beside Python; return what it prints."""
    program = shutil.which(str(command[0]), path=PATH)
    if program is None:
        lacks(f"there is no {command[0]}: scripts/system-packages test installs it where it may")
    words = [str(program), *map(str, command[1:])]
    environment = os.environ | {"PATH": PATH, "PYTHON": sys.executable}
    done = subprocess.run(words, env=environment, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="session")
def built() -> Path:
    """Where dabnet.wasm and compare_kernels.wasm are, both up to date; one test process at a time builds them."""
    folder = ROOT / "build" / "wasm"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run(ROOT / "scripts" / "build-wasm", "compare_kernels")
    return folder
