"""The kernels for ARM, which an emulator runs on other machines."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "test-neon"


def test_neon_kernels_give_the_same_answers_bit_for_bit() -> None:
    tools = ["cmake", "ninja"]
    if platform.machine() not in ("aarch64", "arm64"):
        tools += ["aarch64-linux-gnu-g++", "qemu-aarch64"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    for tool in tools:
        if shutil.which(tool, path=path) is None:
            (pytest.fail if os.environ.get("CI") else pytest.skip)(f"there is no {tool}")
    environment = os.environ | {"PYTHON": sys.executable}
    done = subprocess.run([SCRIPT, "200"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "arm_neon against portable" in done.stdout
