"""What was begun goes on only with what it was begun with."""

from __future__ import annotations

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from dabnet.errors import DabnetError
from dabnet.sketches.download import download
from dabnet.sketches.sources import open_source

LINE = '{"word":"cat","key_id":"1","drawing":[[[0,9],[0,9]]]}\n'


def test_a_folder_of_lines_is_told_by_its_files_and_its_limit(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / f"{name}.ndjson").write_text(LINE)
    before = open_source(str(tmp_path)).fingerprint()
    assert open_source(str(tmp_path)).fingerprint() == before
    assert open_source(str(tmp_path), limit=1).fingerprint() != before
    (tmp_path / "dog.ndjson").write_text(LINE + LINE)
    assert open_source(str(tmp_path)).fingerprint() != before


def test_arrays_are_told_by_the_rows_that_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    points, offsets = np.tile(np.array([[0, 0], [9, 9]], dtype=np.float32), (6, 1)), np.arange(0, 13, 2)
    strokes = {"points": points, "offsets": offsets, "end_of_stroke": np.tile([False, True], 6)}
    labels, names = np.array([0, 0, 0, 1, 1, 1]), np.array([b"a", b"b", b"c", b"d", b"e", b"f"])
    np.savez(path, labels=labels, class_names=np.array(["cat", "dog"]), ids=names, **strokes)  # type: ignore[arg-type]
    source = open_source(str(path))
    assert open_source(str(path), limit=1).fingerprint() != source.fingerprint() == open_source(str(path)).fingerprint()
    assert [drawing.id for drawing in source.read(0)] == ["a", "b", "c", "d", "e", "f"]


def test_of_two_downloads_of_one_file_one_waits(tmp_path: Path) -> None:
    content = bytes(range(256)) * 400
    begun, go_on = threading.Event(), threading.Event()

    class Slow(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[:1000])
            self.wfile.flush()
            begun.set()
            go_on.wait(30)
            self.wfile.write(content[1000:])

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address, target = f"http://127.0.0.1:{server.server_port}/f", tmp_path / "f.bin"
    try:
        first = threading.Thread(target=download, args=(address, target))
        first.start()
        assert begun.wait(30)
        with pytest.raises(DabnetError, match="another process is writing"):
            download(address, target)
        go_on.set()
        first.join(30)
    finally:
        go_on.set()
        server.shutdown()
        server.server_close()
    assert hashlib.sha256(target.read_bytes()).digest() == hashlib.sha256(content).digest()
