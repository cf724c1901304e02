"""Code blocks of the README and the guides, and how their commands are run.

A line of a `sh` block runs as it stands, in a folder that has what the guides speak of, but for these:

* what takes hours says so in its comment, and is only parsed: the command and its options must exist;
* `make` and `pip install` must name a target, or extras, that there are: the tests themselves run by them;
* `dabnet serve` gets a free port and answers the rest of the page, then it is stopped.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import NamedTuple

from tests import warm

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\S*)[^\n]*\n(?P<code>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
PORT = "127.0.0.1:8000"


class Block(NamedTuple):
    """What stands between two fences."""

    page: Path
    language: str
    code: str


def blocks(*languages: str) -> list[Block]:
    """Return the blocks of all pages, in these languages if any are named."""
    found = []
    for page in PAGES:
        matches = FENCE.finditer(page.read_text(encoding="utf-8"))
        found += [Block(page, match["language"], textwrap.dedent(match["code"])) for match in matches]
    return [block for block in found if not languages or block.language in languages]


def commands(page: Path) -> list[str]:
    """Return the lines of a page's `sh` blocks."""
    return [line for block in blocks("sh") if block.page == page for line in block.code.splitlines() if line.strip()]


def takes_hours(line: str) -> bool:
    """Return whether a command says that it takes hours.

    >>> takes_hours("dabnet train R    # hours: all of it"), takes_hours("dabnet train hours")
    (True, False)
    """
    return "hours" in line.partition(" #")[2]


def parse(line: str, folder: Path) -> None:
    """See that a command, and every option that it is given, is there."""
    words = [word for word in shlex.split(line, comments=True) if "$" not in word]
    words = words[words.index("dabnet") + 1 :]
    done = warm.run(*words, "--help", cwd=folder)
    assert done.returncode == 0, f"{line}\n{done.stderr}"


class Sandbox:
    """A folder to run a page's commands in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._server: subprocess.Popen[str] | None = None
        self._address = ""

    def run(self, line: str) -> str:
        """Run a command as the guides have it, and return what it prints."""
        if takes_hours(line):
            parse(line, self.folder)
            return ""
        words = shlex.split(line, comments=True)
        if words[0] == "make":
            assert re.search(rf"^{words[1]}:.*##", (ROOT / "Makefile").read_text(), re.MULTILINE), line
            return ""
        if words[:2] == ["pip", "install"]:
            return check_extras(words[-1])
        if words[:2] == ["dabnet", "serve"]:
            return self._serve(words[2:])
        if words[0] == "dabnet" and not set(line.partition(" #")[0]) & set("<>|$*"):
            done = warm.run(*words[1:], cwd=self.folder, COLUMNS="120")
        else:
            line = line.replace(PORT, self._address or PORT).replace("curl ", "curl -sS --fail ")
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", line],
                cwd=self.folder, env=os.environ | {"PATH": path}, capture_output=True, text=True,
            )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout

    def _serve(self, options: list[str]) -> str:
        self.close()
        command = [sys.executable, "-u", "-m", "dabnet", "serve", *options, "--port", "0"]
        self._server = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, text=True)
        assert self._server.stdout is not None
        for line in self._server.stdout:
            if found := re.search(r"http://(127\.0\.0\.1:\d+)", line):
                self._address = found[1]
                return line
        raise AssertionError("the server ended before it told its address")

    def close(self) -> None:
        """Stop the server."""
        if self._server is not None:
            self._server.send_signal(signal.SIGTERM)
            self._server.communicate(timeout=30)
            assert self._server.returncode == 0
            self._server = None


def check_extras(requirement: str) -> str:
    """See that the extras of 'dabnet[a,b]' exist."""
    extras = re.findall(r"[\w-]+", requirement.partition("[")[2])
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras) <= set(known), requirement
    return ""
