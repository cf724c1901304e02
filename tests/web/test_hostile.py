"""Requests that nobody should send: each is answered in a moment or its connection closed, and others are served."""

from __future__ import annotations

import contextlib
import json
import resource
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..sketches import hostile
from ..sketches.drawings import HOUSE, encode, paint
from .conftest import Server, start
from .large import SIZE

BODY = json.dumps({"strokes": HOUSE}).encode()
SECONDS = 1.0


@pytest.fixture(scope="module")
def hasty() -> Iterator[Server]:
    """A server that waits for a second only."""
    with start("--body-seconds", SECONDS, "--max-connections", 64) as started:
        yield started


def post(length: int | str = len(BODY), host: str = "localhost", more: str = "", path: str = "/v1/recognize") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {length}\r\n{more}\r\n".encode()


def get(path: str, method: str = "GET", host: str = "localhost", more: str = "") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{more}\r\n".encode()


def talk(server: Server, sent: bytes, seconds: float = 20) -> bytes:
    """Send bytes, and return all that comes until the connection is closed."""
    came = b""
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=seconds) as connection,
        contextlib.suppress(ConnectionError),
    ):
        connection.sendall(sent)
        while chunk := connection.recv(65536):
            came += chunk
    return came


def resident(server: Server) -> int:
    return 1024 * int(Path(f"/proc/{server.process.pid}/status").read_text().split("VmRSS:")[1].split()[0])


def test_strokes_that_numpy_would_pad_do_not_stop_the_server(server: Server) -> None:
    before = resident(server)
    for others, words in ((1_500, "stroke 1 is not a list of points"), (100_000, "more than 32,768 points")):
        begun = time.monotonic()
        status, answer = server.recognize(hostile.strokes_that_numpy_would_pad(others=others))
        assert (status, words in answer["error"]) == (422, True)
        assert time.monotonic() - begun < 2
    assert resident(server) - before < 100e6


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("image/jpeg", hostile.jpeg_of_empty_scans(4000, 5000)),
        ("image/svg+xml", hostile.svg_of_defaults(30_000, 30_000)),
        ("image/webp", hostile.webp_that_claims(16_383, 16_383)),
        ("image/png", hostile.png_with_chunks(hostile.png_chunk(b"tEXt", b"a\0b"), 500_000, paint(HOUSE))),
    ],
)
def test_a_drawing_that_would_take_long_is_refused_at_once(server: Server, kind: str, body: bytes) -> None:
    begun = time.monotonic()
    assert server.recognize(body, kind=kind)[0] in (413, 422)
    assert time.monotonic() - begun < 2


@pytest.mark.parametrize("kind", ["TypeError", "struct.error", "AttributeError", "ValueError"])
def test_bad_exif_is_not_the_servers_failure(server: Server, kind: str) -> None:
    body = hostile.jpeg_with_exif(hostile.bad_exif()[kind], paint(HOUSE))
    assert server.recognize(body, kind="image/jpeg")[0] == 200


@pytest.mark.parametrize(
    "sent",
    [
        post(more="a: " + "b" * 40_000),
        post(more="a: b\r\n" * 5_000 + "c: d"),
        b"POST /" + b"a" * 300_000,
        post(more="a: " + "b" * 10_000_000)[:-4],
        post().replace(b"content-length", b"transfer-encoding: chunked\r\nx")
        + b"1\r\n[\r\n0\r\na: "
        + b"b" * 10_000_000,
    ],
    ids=["a long header", "many short ones", "a long target", "a header that never ends", "a trailer that never ends"],
)
def test_a_long_head_is_refused_and_not_kept(hasty: Server, sent: bytes) -> None:
    before = resident(hasty)
    begun = time.monotonic()
    answer = talk(hasty, sent)
    assert time.monotonic() - begun < 4
    assert answer == b"" or answer.startswith(b"HTTP/1.1 431 ")
    assert resident(hasty) - before < 8e6
    assert hasty.recognize(BODY)[0] == 200


def test_a_head_within_the_limits_is_taken(hasty: Server) -> None:
    for more in ("a: " + "b" * 30_000 + "\r\n", "".join(f"a{i}: b\r\n" for i in range(90))):
        assert talk(hasty, get("/healthz", more=more)).startswith(b"HTTP/1.1 200 ")


def test_requests_whose_answers_nobody_reads_are_dropped(hasty: Server) -> None:
    def count() -> int:
        return len(list(Path(f"/proc/{hasty.process.pid}/fd").iterdir()))

    hasty.recognize(BODY)
    before = count()
    flood = get("/openapi.json").replace(b"connection: close\r\n", b"") * 10
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(0.2)
            connection.connect(("127.0.0.1", hasty.port))
            with contextlib.suppress(OSError):
                for _ in range(200):
                    connection.sendall(flood)
        assert hasty.recognize(BODY)[0] == 200
        until = time.monotonic() + 6 * SECONDS
        while count() > before + 2 and time.monotonic() < until:
            time.sleep(0.1)
        assert count() <= before + 2


@pytest.fixture(scope="module")
def large() -> Iterator[Server]:
    """A server with a large model, that waits for a second only."""
    with start("--body-seconds", SECONDS, module="tests.web.large") as started:
        yield started


def open_model(server: Server) -> socket.socket:
    """Ask for the model that goes with the page, on a connection that takes in little at a time."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(10)
    connection.connect(("127.0.0.1", server.port))
    connection.sendall(get("/model.safetensors"))
    return connection


def test_a_slow_reader_gets_the_whole_model(large: Server) -> None:
    begun, came = time.monotonic(), 0
    with open_model(large) as connection:
        while chunk := connection.recv(SIZE // 50):
            came += len(chunk)
            time.sleep(4 * SECONDS * len(chunk) / SIZE)
    assert time.monotonic() - begun > 4 * SECONDS
    assert came > SIZE


def test_models_that_nobody_reads_fill_no_memory_and_are_given_up(large: Server) -> None:
    assert len(large.ask("GET", "/model.safetensors")[2]) == SIZE
    before = resident(large)
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(open_model(large)) for _ in range(20)]
        assert large.recognize(BODY)[0] == 200
        assert resident(large) < before + 40_000_000  # not 20 models of 16 MB
        time.sleep(4 * SECONDS)
        came = 0
        with contextlib.suppress(ConnectionError):
            while chunk := connections[0].recv(65_536):
                came += len(chunk)
        assert came < SIZE


def test_only_some_requests_are_taken_ahead(hasty: Server) -> None:
    answer = talk(hasty, (post() + BODY) * 400)
    assert answer.count(b"HTTP/1.1 200 ") <= 40
    assert b"requests wait on this connection" in answer or answer.count(b"HTTP/1.1") <= 40


@pytest.mark.parametrize(
    "sent", [b"", b"POST /v1/rec", post(1000) + b"{"], ids=["silent", "in the head", "in the body"]
)
def test_idle_connections_lock_nobody_out(hasty: Server, sent: bytes) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", hasty.port), timeout=5))
            connection.sendall(sent)
        begun = time.monotonic()
        for _ in range(5):
            assert hasty.recognize(BODY)[0] == 200
        assert time.monotonic() - begun < SECONDS


def test_connections_are_bounded_by_their_own_limit_not_by_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def count(server: Server) -> int:
        return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))  # which the server inherits, and raises
    try:
        with start("--max-connections", 100, "--body-seconds", 30) as server, contextlib.ExitStack() as stack:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1024), hard))
            before = count(server)
            for _ in range(400):
                stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=5))
            assert server.recognize(BODY)[0] == 200
            assert count(server) <= before + 101
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_failure_is_counted_and_told_in_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAILS", "1")
    with start(module="tests.web.slow", errors="a network that fails") as server:
        status, headers, body = server.ask("POST", "/v1/recognize", BODY)
        assert (status, headers["content-type"]) == (500, "application/json")
        assert json.loads(body) == {"error": "the server failed: it is not your fault."}
        found = server.metrics()
        assert found['dabnet_requests_total{path="/v1/recognize",status="500"}'] == 1
        assert 'dabnet_requests_total{path="/v1/recognize",status="499"}' not in found


def test_a_content_length_of_any_number_of_digits_is_a_number(server: Server) -> None:
    answer = talk(server, post("0" * 5_000 + str(len(BODY)), more="connection: close\r\n") + BODY)
    assert answer.startswith(b"HTTP/1.1 200 ")
    answer = talk(server, post("0" * 5_000, more="connection: close\r\n"))
    assert answer.startswith(b"HTTP/1.1 422 ")


@pytest.mark.parametrize("path", ["/healthz", "/metrics", "/v1/model", "/openapi.json", "/", "/pad.js"])
def test_a_head_is_that_of_the_whole_answer(server: Server, path: str) -> None:
    status, headers, body = server.ask("HEAD", path)
    assert (status, body) == (200, b"")
    whole = server.ask("GET", path)
    if path != "/metrics":
        assert headers["content-length"] == whole[1]["content-length"] == str(len(whole[2]))
    assert headers["content-type"] == whole[1]["content-type"]


def test_nothing_is_left_to_be_guessed_by_a_browser(server: Server) -> None:
    for method, path in (("GET", "/healthz"), ("GET", "/"), ("GET", "/nowhere"), ("POST", "/v1/recognize")):
        answer = talk(server, get(path, method))
        assert answer.lower().count(b"x-content-type-options: nosniff") == 1
    assert b"x-content-type-options: nosniff" in talk(server, b"nonsense\r\n\r\n")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", b"200"),
        ("LOCALHOST:8000", b"200"),
        ("127.0.0.1:1", b"200"),
        ("[::1]:9", b"200"),
        ("evil.example.org", b"421"),
        ("localhost.evil.example.org", b"421"),
        ("", b"421"),
        ("localhost\r\nhost: evil.example.org", b"421"),
    ],
)
def test_on_loopback_only_loopbacks_names_are_answered(server: Server, host: str, status: bytes) -> None:
    assert talk(server, get("/healthz", host=host)).split()[1] == status


def test_other_names_can_be_allowed() -> None:
    with start("--allowed-host", "sketch.example.org") as server:
        for host, status in (("sketch.example.org", b"200"), ("localhost", b"200"), ("example.org", b"421")):
            assert talk(server, get("/healthz", host=host)).split()[1] == status


@pytest.mark.parametrize("numbers", [(signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGTERM)])
def test_a_second_signal_ends_the_server_at_once(
    numbers: tuple[signal.Signals, signal.Signals], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECONDS_PER_BATCH", "2.5")
    with start(module="tests.web.slow", code=128 + numbers[1]) as server:
        threading.Thread(
            target=lambda: contextlib.suppress(Exception) and talk(server, post() + BODY), daemon=True
        ).start()
        time.sleep(0.3)
        server.process.send_signal(numbers[0])
        time.sleep(0.2)
        assert server.process.poll() is None
        begun = time.monotonic()
        server.process.send_signal(numbers[1])
        server.process.wait(timeout=10)
        assert time.monotonic() - begun < 0.5


def test_a_stuck_thread_is_noticed_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECONDS_PER_BATCH", "60")
    with start("--stuck-seconds", 0.5, module="tests.web.slow", errors="graceful shutdown exceeded") as server:
        assert server.ask("GET", "/healthz")[0] == 200
        threading.Thread(target=talk, args=(server, post() + BODY), daemon=True).start()
        time.sleep(1)
        status, _, body = server.ask("GET", "/healthz")
        assert (status, b"has worked on the same drawings for" in body) == (503, True)
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(timeout=20)
        assert time.monotonic() - begun < 7


def test_bodies_count_as_held_until_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = encode(paint(HOUSE, size=1000)) + bytes(600_000)
    monkeypatch.setenv("SECONDS_PER_BATCH", "1")
    with start("--max-held", 1, module="tests.web.slow") as server:
        first = threading.Thread(target=server.recognize, args=(picture, "", "image/png"))
        first.start()
        time.sleep(0.4)
        assert server.recognize(picture, kind="image/png")[0] == 503
        first.join()
        assert server.recognize(picture, kind="image/png")[0] == 200
