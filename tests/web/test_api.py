from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import dabnet
from dabnet.packed import find_model
from dabnet.sketches.raster import rasterize
from dabnet.sketches.read import read_sketch
from dabnet.sketches.sketch import Sketch
from dabnet.web.metrics import BOUNDS
from dabnet.web.page import KINDS, page_files

from ..sketches.drawings import HOUSE, encode, paint
from .conftest import Server

SVG = b'<svg><path d="M10 50V95H90V50M5 50 50 5 95 50z"/></svg>'
PICTURE = paint(HOUSE)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", json.dumps({"strokes": HOUSE}).encode()),
        ("application/json; charset=utf-8", json.dumps(HOUSE).encode()),
        ("image/svg+xml", SVG),
        ("image/png", encode(PICTURE)),
        ("IMAGE/JPEG", encode(PICTURE, "JPEG")),
        ("image/webp", encode(PICTURE, "WEBP")),
        ("image/gif", encode(PICTURE, "GIF")),
        ("image/bmp", encode(PICTURE, "BMP")),
        ("image/tiff", encode(PICTURE, "TIFF")),
    ],
)
def test_a_drawing_gets_the_answer_that_python_gets(server: Server, kind: str, body: bytes) -> None:
    status, found = server.recognize(body, "?top=4", kind)
    assert status == 200
    expected = dabnet.Recognizer.load().recognize(read_sketch(body), top=4)
    assert [(guess["label"], guess["probability"]) for guess in found["guesses"]] == [
        (label, pytest.approx(share, abs=1e-5)) for label, share in expected
    ]
    assert found["sure"] is (expected[0][1] >= 0.5)
    times = found["milliseconds"]
    assert 0 < times["read"] + times["wait"] + times["run"] <= times["total"] + 0.01


def test_how_many_guesses_is_said_in_the_body_or_the_query(server: Server) -> None:
    for body, query, count in (
        ({"strokes": HOUSE}, "", 5),
        ({"strokes": HOUSE, "top": 2}, "", 2),
        ({"strokes": HOUSE, "top": 2}, "?top=3", 2),
        ({"strokes": HOUSE}, "?top=1000", len(dabnet.Recognizer.load().labels)),
    ):
        status, found = server.recognize(body, query)
        assert (status, len(found["guesses"])) == (200, count)


def test_the_raster_is_what_the_network_sees(server: Server) -> None:
    status, headers, body = server.ask("POST", "/v1/raster", {"strokes": HOUSE})
    assert (status, headers["content-type"]) == (200, "image/png")
    with Image.open(io.BytesIO(body)) as image:
        expected = rasterize(Sketch.from_strokes(HOUSE), dabnet.Recognizer.load().raster)
        assert np.array_equal(np.asarray(image), expected)


def test_the_model_is_described(server: Server) -> None:
    _, _, body = server.ask("GET", "/v1/model")
    recognizer = dabnet.Recognizer.load()
    assert json.loads(body) == {
        "labels": recognizer.labels,
        "input_size": list(recognizer.input_size),
        "kernels": recognizer.session.kernels,
        "threads": 1,
        "bytes": find_model("default").stat().st_size,
        "min_confidence": 0.5,
        "version": dabnet.__version__,
    }


@pytest.mark.parametrize(
    ("status", "words", "body", "query", "kind"),
    [
        (422, "not valid JSON (line 1, column 2: ", b"{", "", "application/json"),
        (422, "the body is empty", b"", "", "application/json"),
        (422, "lists within lists, without end", b"[" * 100_000, "", "application/json"),
        (422, "it is no text): save it as UTF-8", b'{"a": "\xff"}', "", "application/json"),
        (422, "the body is empty", b"", "", "application/octet-stream"),
        (422, "names no boundary", b"hello", "", "multipart/form-data"),
        (422, "the form holds no file", b"hello", "", "multipart/form-data; boundary=x"),
        (422, "the form holds no file", b"--x--\r\n", "", "multipart/form-data; boundary=x"),
        (422, "not a picture", b"--x\r\n\r\nhello\r\n--x--\r\n", "", "multipart/form-data; boundary=x"),
        (422, "holds no drawing", b"5", "", "application/json"),
        (422, "holds no drawing", b'{"lines": []}', "", "application/json"),
        (422, "has no ink", b'{"strokes": []}', "", "application/json"),
        (422, "single point", b'{"strokes": [[[5, 5]]]}', "", "application/json"),
        (422, "stroke 1 is not a list of points", b'{"strokes": [[["5", "6"], [1, 2]]]}', "", "application/json"),
        (422, "not a finite number", b'{"strokes": [[[NaN, 6], [1, 2]]]}', "", "application/json"),
        (
            422,
            "more than 32,768 points: simplify",
            {"strokes": [[[i, i % 7] for i in range(40_000)]]},
            "",
            "application/json",
        ),
        (422, "'top' is how many guesses", {"strokes": HOUSE, "top": 0}, "", "application/json"),
        (422, "'top' is how many guesses", {"strokes": HOUSE, "top": True}, "", "application/json"),
        (422, "'top' is how many guesses", SVG, "?top=many", "image/svg+xml"),
        (422, "'top' is how many guesses", SVG, "?top=1001", "image/svg+xml"),
        (422, "the body is empty", b"", "", "image/png"),
        (422, "not a picture that can be read", SVG, "", "image/png"),
        (422, "picture is damaged", encode(PICTURE)[:-300], "", "image/png"),
        (422, "more than 16,000,000 pixels", encode(Image.new("1", (4001, 4000))), "", "image/png"),
        (422, "no ink", encode(Image.new("L", (64, 64), 255)), "", "image/png"),
        (422, "SVG", b"no svg", "", "image/svg+xml"),
        (413, "more than 1,000,000 bytes", b"[" * 1_000_001, "", "application/json"),
        (413, "more than 8,000,000 bytes", bytes(8_000_001), "", "image/png"),
        (413, "more than 1,000,000 bytes", b"[" * 1_000_001, "", "application/octet-stream"),
        (413, "more than 8,000,000 bytes", bytes(8_000_001), "", "multipart/form-data; boundary=x"),
        (415, "'text/plain' holds no drawing: send application/json, image/svg+xml", b"hello", "", "text/plain"),
    ],
)
def test_what_cannot_be_recognized_gets_one_sentence(
    server: Server, status: int, words: str, body: Any, query: str, kind: str
) -> None:
    found, answer = server.recognize(body, query, kind)
    assert found == status
    assert set(answer) == {"error"}
    assert words in answer["error"]
    assert answer["error"].endswith(".")


def test_other_paths_and_methods_are_refused_in_json(server: Server) -> None:
    for method, path, status in (("GET", "/nothing", 404), ("GET", "/v1/recognize", 405), ("POST", "/", 405)):
        found, headers, body = server.ask(method, path)
        assert (found, headers["content-type"]) == (status, "application/json")
        assert "/docs lists" in json.loads(body)["error"]


def test_every_example_of_the_description_works(server: Server) -> None:
    description = json.loads(server.ask("GET", "/openapi.json")[2])
    tried = 0
    for path in ("/v1/recognize", "/v1/raster"):
        for kind, content in description["paths"][path]["post"]["requestBody"]["content"].items():
            if "example" in content:
                body = content["example"] if isinstance(content["example"], dict) else content["example"].encode()
                assert server.ask("POST", path, body, kind)[0] == 200
                tried += 1
    assert tried == 4


@pytest.mark.parametrize("body", [json.dumps(HOUSE).encode(), SVG, encode(PICTURE), encode(PICTURE, "JPEG")])
@pytest.mark.parametrize("kind", [None, "application/octet-stream", "application/x-www-form-urlencoded"])
def test_a_content_type_that_says_nothing_is_no_matter(server: Server, kind: str | None, body: bytes) -> None:
    with contextlib.closing(server.connect()) as connection:
        connection.putrequest("POST", "/v1/recognize?top=1")
        connection.putheader("content-length", str(len(body)))
        if kind is not None:
            connection.putheader("content-type", kind)
        connection.endheaders(body)
        found = json.loads(connection.getresponse().read())
    assert found["guesses"][0]["label"] == first_guess(body)


def first_guess(data: bytes) -> str:
    """Return what the default model takes a file's drawing for."""
    return dabnet.Recognizer.load().recognize(read_sketch(data), top=1)[0][0]


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
@pytest.mark.parametrize(
    "options", [["-F", "file=@house.png"], ["-F", "top=3", "-F", "file=@house.png"], ["--data-binary", "@house.png"]]
)
def test_curl_sends_files_as_people_type_it(server: Server, options: list[str], tmp_path: Path) -> None:
    (tmp_path / "house.png").write_bytes(encode(PICTURE))
    command = ["curl", "-s", *options, f"{server.address}v1/recognize"]
    found = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60, cwd=tmp_path).stdout)
    assert found["guesses"][0]["label"] == first_guess(encode(PICTURE))


@pytest.mark.parametrize(
    "head",
    [
        'content-disposition: form-data; name="file"; filename="a.png"\r\ncontent-type: image/png',
        "Content-Disposition: form-data; name=\"file\"; FILENAME*=utf-8''a.png",
        'content-disposition: form-data; name="file"',
    ],
)
def test_the_file_of_a_form_is_the_drawing(server: Server, head: str) -> None:
    picture = encode(PICTURE)
    assert b"\r\n" in picture
    for quote in ("", '"'):
        form = b"--a b\r\n" + head.encode() + b"\r\n\r\n" + picture + b"\r\n--a b--\r\n"
        kind = f"multipart/form-data; boundary={quote}a-b{quote}"
        status, found = server.recognize(form.replace(b"--a b", b"--a-b"), kind=kind)
        assert (status, found["guesses"][0]["label"]) == (200, first_guess(picture))


def test_the_docs_are_short_and_take_nothing_from_elsewhere(server: Server) -> None:
    status, headers, body = server.ask("GET", "/docs")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert headers["content-security-policy"].startswith("default-src 'none'")
    page = body.decode()
    assert len(page) < 20_000
    for route in json.loads(server.ask("GET", "/openapi.json")[2])["paths"]:
        assert f" {route}</code>" in page
    assert "curl -F file=@photo.jpg" in page
    assert "<script" not in page
    assert not re.findall(r'(?:src|href)="(?!/)', page)
    style = page.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in headers["content-security-policy"]


def test_requests_are_counted_as_prometheus_reads_them(server: Server) -> None:
    before = server.metrics()
    server.recognize({"strokes": HOUSE})
    server.recognize(b"{")
    server.ask("GET", "/nowhere")
    after = server.metrics()

    def grew(name: str) -> float:
        return after[name] - before.get(name, 0)

    assert grew('dabnet_requests_total{path="/v1/recognize",status="200"}') == 1
    assert grew('dabnet_requests_total{path="/v1/recognize",status="422"}') == 1
    assert grew('dabnet_requests_total{path="other",status="404"}') == 1
    assert grew('dabnet_request_seconds_bucket{path="/v1/recognize",le="+Inf"}') == 2
    assert grew('dabnet_request_seconds_count{path="/v1/recognize"}') == 2
    assert grew("dabnet_drawings_total") == grew("dabnet_batches_total") == 1
    assert after["dabnet_queue_length"] == 0
    counts = [after[f'dabnet_request_seconds_bucket{{path="/v1/recognize",le="{bound}"}}'] for bound in BOUNDS]
    assert counts == sorted(counts)


def test_the_page_takes_nothing_from_elsewhere(server: Server) -> None:
    names = [name for name in page_files(0.5) if name != "index.html"]
    assert {"pad.css", "pad.js", "icon.svg"} < set(names)
    for name in ["", *names]:
        status, headers, body = server.ask("GET", f"/{name}")
        kind = KINDS[Path(name or "index.html").suffix]
        assert (status, headers["content-type"].removesuffix("; charset=utf-8")) == (200, kind)
        assert headers["content-security-policy"].startswith(
            "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; "
        )
        urls = set(re.findall(rb"https?://[^\s'\"]+", body))
        assert urls <= {b"http://www.w3.org/2000/svg"}
        status, _, body = server.ask("GET", f"/{name}", **{"if-none-match": headers["etag"]})
        assert (status, body) == (304, b"")


def test_serving_does_not_load_torch() -> None:
    code = (
        "import sys, dabnet.cli.serve, dabnet.web.server, dabnet.web.service\n"
        "assert not {'torch', 'lightning', 'pyarrow', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
