from __future__ import annotations

import io
import json
import re
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
        (422, "not valid JSON", b"{", "", "application/json"),
        (422, "not valid JSON", b"", "", "application/json"),
        (422, "not valid JSON", b"[" * 100_000, "", "application/json"),
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
        assert "/openapi.json lists" in json.loads(body)["error"]


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
