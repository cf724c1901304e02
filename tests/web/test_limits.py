"""A server with a model that takes far too long."""

from __future__ import annotations

import json
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dabnet.packed import to_bytes

from ..runtime.heavy import heavy_model
from ..sketches.drawings import HOUSE
from .conftest import start

BODY = json.dumps({"strokes": HOUSE}).encode()


@pytest.fixture(scope="module")
def heavy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "heavy.safetensors"
    path.write_bytes(to_bytes(heavy_model()))
    return path


def test_a_drawing_that_takes_too_long_gets_an_error_and_the_server_stays_healthy(heavy: Path) -> None:
    with start("--model", heavy, "--max-work", "1e9", "--run-seconds", 0.5) as server:
        for _ in range(2):  # the threads are free again
            begun = time.monotonic()
            with ThreadPoolExecutor(4) as pool:
                answers = list(pool.map(lambda _: server.recognize(BODY), range(4)))
            assert time.monotonic() - begun < 5
            assert {status for status, _ in answers} == {504}
            assert answers[0][1]["error"].startswith("the drawing took longer than 0.5 s: ")
            assert server.ask("GET", "/healthz")[0] == 200
        assert server.ask("POST", "/v1/raster", BODY)[0] == 200
        assert server.metrics()["dabnet_queue_length"] == 0


def test_told_to_stop_it_cancels_what_takes_too_long(heavy: Path) -> None:
    with start("--model", heavy, "--max-work", "1e9", "--run-seconds", 600) as server:
        answers: list[tuple[int, Any]] = []
        asking = threading.Thread(target=lambda: answers.append(server.recognize(BODY)))
        asking.start()
        time.sleep(0.5)
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=20) == 0
        assert time.monotonic() - begun < 6  # 2.25 s of them to finish what was accepted
        asking.join()
        assert answers == [(503, {"error": "the server is stopping: try again later."})]
