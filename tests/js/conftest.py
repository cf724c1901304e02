"""Node, and the core compiled to WebAssembly, for tests that need them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dabnet.packed import find_model

ROOT = Path(__file__).parents[2]
WASM = ROOT / "build" / "wasm" / "dabnet.wasm"
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


def lacks(what: str) -> None:
    """Skip a test for what is not here; on CI, fail."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(what)


def run(*command: str | Path, folder: Path = ROOT) -> str:
    """Run a command, whose program may stand beside Python; return what it prints."""
    program = shutil.which(str(command[0]), path=PATH)
    if program is None:
        lacks(f"there is no {command[0]}: scripts/system-packages test installs it where it may")
    words = [str(program), *map(str, command[1:])]
    files = {"DABNET_WASM": str(WASM), "DABNET_MODEL": str(find_model("default"))}
    environment = os.environ | files | {"PATH": PATH, "PYTHON": sys.executable}
    done = subprocess.run(words, env=environment, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Let one process of the tests at a time change a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def built() -> Path:
    """Where dabnet.wasm and compare_kernels.wasm are, both up to date."""
    folder = ROOT / "build" / "wasm"
    with alone(folder):
        run(ROOT / "scripts" / "build-wasm", "compare_kernels")
    return folder
