from __future__ import annotations

import contextlib
import errno
import http.client
import json
import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dabnet.cli import main

from ..sketches.drawings import HOUSE
from .conftest import Server, start

BODY = json.dumps({"strokes": HOUSE}).encode()
HEAD = b"POST /v1/recognize HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"


def talk(server: Server, *parts: bytes, pause: float = 0.0) -> bytes:
    """Send bytes with pauses between them, and return all that comes until the connection is closed."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        for part in parts:
            connection.sendall(part)
            time.sleep(pause)
        came = b""
        while chunk := connection.recv(65536):
            came += chunk
        return came


def test_a_body_that_comes_too_slowly_is_refused() -> None:
    with start("--body-seconds", 0.5) as server:
        begun = time.monotonic()
        answer = talk(server, HEAD % 1000, b"{")
        assert 0.4 < time.monotonic() - begun < 5
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"the body took longer than 0.5 s" in answer
        assert server.recognize(BODY)[0] == 200


def test_a_connection_that_only_dribbles_is_closed() -> None:
    with start("--body-seconds", 0.5) as server, socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.settimeout(0.2)
        begun = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - begun < 10:
                connection.sendall(b"x")
                with contextlib.suppress(TimeoutError):
                    if not connection.recv(100):
                        break
        assert time.monotonic() - begun < 5


def test_a_chunked_body_is_counted_as_it_comes(server: Server) -> None:
    with contextlib.closing(server.connect()) as connection:
        chunks = (b" " * 300_000 for _ in range(4))
        connection.request("POST", "/v1/recognize", chunks, {"content-type": "application/json"}, encode_chunked=True)
        assert connection.getresponse().status == 413
    with contextlib.closing(server.connect()) as connection:
        chunks = (BODY[start : start + 7] for start in range(0, len(BODY), 7))
        connection.request("POST", "/v1/recognize", chunks, {"content-type": "application/json"}, encode_chunked=True)
        assert connection.getresponse().status == 200


def test_requests_that_are_abandoned_harm_nobody(server: Server) -> None:
    gone = 'dabnet_requests_total{path="/v1/recognize",status="499"}'
    before = server.metrics().get(gone, 0)
    for part in (b"POST /v1/rec", HEAD % 1000 + b"{", HEAD % len(BODY) + BODY):
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", server.port)) as connection:
                connection.sendall(part)
    assert server.recognize(BODY)[0] == 200
    time.sleep(0.2)
    found = server.metrics()
    assert found[gone] - before >= 20
    assert found["dabnet_queue_length"] == 0


def test_what_is_not_http_is_refused(server: Server) -> None:
    assert talk(server, b"\x16\x03\x01\x02\x00\x01\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert server.recognize(BODY)[0] == 200


def test_a_lone_request_does_not_wait(server: Server) -> None:
    waits = [server.recognize(BODY)[1]["milliseconds"]["wait"] for _ in range(20)]
    assert sorted(waits)[10] < 0.3


def test_past_the_queue_requests_are_refused_at_once_and_later_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECONDS_PER_BATCH", "0.5")
    with start("--queue", 4, "--batch", 1, module="tests.web.slow") as server:

        def ask(_: int) -> tuple[int, dict[str, str], float]:
            begun = time.monotonic()
            status, headers, __ = server.ask("POST", "/v1/recognize", BODY)
            return status, headers, time.monotonic() - begun

        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(ask, range(16)))
        refused = [(headers, seconds) for status, headers, seconds in answers if status == 503]
        assert sorted({status for status, _, _ in answers}) == [200, 503]
        assert 8 <= len(refused) <= 12
        assert all(headers["retry-after"] == "1" for headers, _ in refused)
        assert sorted(seconds for _, seconds in refused)[4] < 0.5  # before the first of the four that were taken
        assert server.ask("GET", "/healthz")[0] == 200
        assert ask(0)[0] == 200


def test_requests_that_come_together_run_together() -> None:
    with start("--batch", 8, module="tests.web.slow") as server:
        with ThreadPoolExecutor(17) as pool:
            assert set(pool.map(lambda _: server.recognize(BODY)[0], range(17))) == {200}
        found = server.metrics()
        assert found["dabnet_drawings_total"] == 17
        assert found["dabnet_batches_total"] <= 6


def test_told_to_stop_it_answers_what_it_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECONDS_PER_BATCH", "0.05")
    answered: list[int] = []
    dropped: list[str] = []

    def keep_asking(server: Server) -> None:
        connection = server.connect()
        while True:
            try:
                connection.connect() if connection.sock is None else None
            except OSError:
                return  # it takes no more
            try:
                connection.request("POST", "/v1/recognize", BODY, {"content-type": "application/json"})
                answer = connection.getresponse()
                answered.append(answer.status)
                json.loads(answer.read())
            except (OSError, http.client.HTTPException, ValueError) as problem:
                dropped.append(repr(problem))
                return

    with start("--batch", 4, module="tests.web.slow") as server:
        threads = [threading.Thread(target=keep_asking, args=(server,)) for _ in range(16)]
        for thread in threads:
            thread.start()
        idle = socket.create_connection(("127.0.0.1", server.port))  # that never says anything
        slow = socket.create_connection(("127.0.0.1", server.port))
        slow.sendall(HEAD % 1000 + b"{")  # a body that never ends
        time.sleep(1)
        before = len(answered)
        server.process.send_signal(signal.SIGTERM)
        begun = time.monotonic()
        server.process.wait(timeout=10)
        assert time.monotonic() - begun < 5
        for thread in threads:
            thread.join()
        assert dropped == []
        assert set(answered) == {200}
        assert len(answered) >= before + 10
        assert slow.recv(100).startswith(b"HTTP/1.1 503")
        idle.close()
        slow.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_idle_server_stops_at_once(number: signal.Signals) -> None:
    with start() as server:
        begun = time.monotonic()
        server.process.send_signal(number)
        assert server.process.wait(timeout=10) == 0
        assert time.monotonic() - begun < 3


def test_a_port_that_is_taken_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit) as stopped:
            main(["serve", "--port", str(port)])
    assert stopped.value.code == 2
    reason = os.strerror(errno.EADDRINUSE)
    assert capsys.readouterr().err == (
        f"dabnet: cannot listen on 127.0.0.1, port {port} ({reason}): choose others with --host and --port.\n"
    )
