"""Servers for tests, each in a process of its own, on a free port."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from dabnet.web.page import has_core

from .pad import SCREENSHOTS, SIZES, Pad, new_context, run_browser


class Server:
    """A server that runs, and how to ask it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        greeting = process.stdout.readline()
        assert greeting.startswith("Draw on http://127.0.0.1:"), greeting
        self.process = process
        self.address = greeting.split()[2]
        self.port = int(self.address.split(":")[2].strip("/"))

    def connect(self, timeout: float = 30) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(
        self, method: str, path: str, body: Any = None, kind: str = "application/json", **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request of its own; a body that is not bytes goes as JSON. Return status, headers and body."""
        if body is not None:
            headers["content-type"] = kind
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        with contextlib.closing(self.connect()) as connection:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()

    def recognize(self, body: Any, query: str = "", kind: str = "application/json") -> tuple[int, Any]:
        status, _, answer = self.ask("POST", f"/v1/recognize{query}", body, kind)
        return status, json.loads(answer)

    def metrics(self) -> dict[str, float]:
        lines = self.ask("GET", "/metrics")[2].decode().splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}


@contextlib.contextmanager
def start(*options: object, module: str = "dabnet", errors: str = "", code: int = 0) -> Iterator[Server]:
    """Run a server, until it is told to stop and has; what it says of errors must contain `errors`, or be nothing."""
    command = [sys.executable, "-m", module, "serve", "--port", "0", *map(str, options)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield Server(process)
        finally:
            process.terminate()
            _, said = process.communicate(timeout=20)
    assert process.returncode == code
    assert errors in said
    assert errors or not said, said


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """The server as it is by default."""
    with start() as started:
        yield started


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with run_browser() as chromium:
        yield chromium


@pytest.fixture(params=SIZES)
def pad(request: pytest.FixtureRequest, browser: Browser, server: Server) -> Iterator[Pad]:
    """The page as it is opened first, at each size; whatever is wrong in its console fails the test."""
    context = new_context(browser, request.param)
    pad = Pad(context).open(server.address)
    yield pad
    pad.page.screenshot(path=SCREENSHOTS / f"{request.node.name.replace('[', '-').strip(']')}.png")
    context.close()
    assert pad.problems == []


@pytest.fixture
def desktop(browser: Browser, server: Server) -> Iterator[Pad]:
    """The page at one size, for what depends on none."""
    context = new_context(browser, "desktop")
    pad = Pad(context).open(server.address)
    yield pad
    context.close()
    assert pad.problems == []


@pytest.fixture(scope="session")
def core() -> None:
    """The core as WebAssembly, where it was built."""
    if not has_core():
        problem = "the core is not built as WebAssembly: make wasm"
        pytest.fail(problem) if os.environ.get("CI") else pytest.skip(problem)
