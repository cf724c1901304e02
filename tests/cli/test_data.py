from __future__ import annotations

import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dabnet.cli import main
from dabnet.sketches.prepare import prepare
from dabnet.sketches.sources.synthetic import open_synthetic
from dabnet.sketches.store import SketchSet
from tests.cli.test_cli import run
from tests.sketches import published


def test_prepare_counts_reports_and_shows(tmp_path: Path) -> None:
    folder = published.tu_berlin(tmp_path / "berlin")
    (folder / "png" / "apple" / "2.png").write_bytes(b"")
    output = tmp_path / "set.parquet"
    done = run("data", "prepare", str(folder), "-o", str(output))
    assert done.returncode == 0, done.stderr
    for words in ("TU-Berlin: 3 classes", "CC BY 4.0", "17 drawings of 3 classes in ", " MB.", "1 could not be read"):
        assert words in " ".join(done.stdout.split())
    assert "2: the file is empty: save the drawing again." in done.stdout
    shown = run("data", "show", str(output), "-o", str(tmp_path / "new" / "sheet.png"), "--each", "3", "--size", "64")
    assert shown.returncode == 0, shown.stderr
    for words in (
        "17 drawings of 3 classes",
        "drawings per class",
        "3 folds; 1 drawing could not be read",
        "sheet.png",
    ):
        assert words in " ".join(shown.stdout.split())
    with Image.open(tmp_path / "new" / "sheet.png") as sheet:
        pixels = np.asarray(sheet.convert("L"))
    assert sheet.height == 3 * (64 + 5) + 5
    assert 0.01 < (pixels < 128).mean() < 0.3


def test_figures_come_as_json(tmp_path: Path) -> None:
    output = tmp_path / "set.parquet"
    made = json.loads(run("data", "prepare", "synthetic", "--limit", "3", "-o", str(output), "--json").stdout)
    assert made["drawings"] == len(SketchSet(output)) == 3 * made["classes"]
    assert made["bytes"] == output.stat().st_size
    shown = json.loads(run("data", "show", str(output), "-o", str(tmp_path / "sheet.png"), "--json").stdout)
    assert set(shown["classes"].values()) == {3}
    assert shown["folds"] == {"0": made["classes"], "1": made["classes"], "2": made["classes"]}
    assert shown["raster"] == {"size": 224, "margin": 0.05, "pen": 0.025}
    listed = json.loads(run("data", "list", "--json").stdout)
    assert listed["tuberlin"]["drawings"] == 20_000


def test_preparing_data_does_not_load_torch(tmp_path: Path) -> None:
    code = "import sys; from dabnet.cli import main\ntry: main()\nfinally: print('torch' in sys.modules)"
    done = run("data", "prepare", "synthetic", "--limit", "1", "-o", str(tmp_path / "set.parquet"), code=code)
    assert done.stdout.endswith("False\n")


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_command_goes_on_where_it_was(tmp_path: Path, signal_number: signal.Signals) -> None:
    output, partial = tmp_path / "set.parquet", tmp_path / "set.parquet.partial"
    command = [sys.executable, "-m", "dabnet", "data", "prepare", "synthetic", "--limit", "200", "-o", str(output)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    until = time.monotonic() + 60
    while not list(partial.glob("piece-*.parquet")) and time.monotonic() < until:
        time.sleep(0.01)
    if signal_number == signal.SIGTERM:
        process.send_signal(signal_number)
    else:  # Ctrl-C reaches every process of the terminal
        os.killpg(process.pid, signal_number)
    _, errors = process.communicate(timeout=300)
    assert not output.exists()
    kept = len(list(partial.glob("piece-*.parquet")))
    assert kept > 0
    if signal_number != signal.SIGKILL:
        assert process.returncode == 130
        assert errors == "Stopped. What was read is kept: run the same command again to go on.\n"
    done = run(*command[3:])
    assert done.returncode == 0, done.stderr
    assert f"({kept} pieces were there from before)" in " ".join(done.stdout.split())
    assert not partial.exists()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """Serve tmp_path/www."""
    (tmp_path / "www").mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(tmp_path / "www"))  # type: ignore[arg-type]

        def log_message(self, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def test_download_prepare_and_show_follow_each_other(tmp_path: Path, server: str) -> None:
    ndjson, _, _ = published.quickdraw(tmp_path / "quick")
    for file in ndjson.iterdir():
        (tmp_path / "www" / file.name).write_bytes(file.read_bytes())
    options = ("--classes", "cat,hot air balloon", "--mirror", server, "-o", str(tmp_path / "data"))
    done = run("data", "download", "quickdraw", *options)
    assert done.returncode == 0, done.stderr
    assert "SHA-256" in done.stdout
    prepared = run("data", "prepare", str(tmp_path / "data" / "quickdraw"), "-o", str(tmp_path / "set.parquet"))
    assert prepared.returncode == 0, prepared.stderr
    assert SketchSet(tmp_path / "set.parquet").classes == ["cat", "hot air balloon"]
    again = json.loads(run("data", "download", "quickdraw", *options, "--json").stdout)
    assert [Path(file["path"]).name for file in again] == ["cat.ndjson", "hot air balloon.ndjson"]


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the sentence that a command ends with; it must end with 2."""
    with pytest.raises(SystemExit) as ended:
        main(["data", *arguments])
    assert ended.value.code == 2, arguments
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_a_download_that_fails_is_one_sentence(tmp_path: Path, server: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "www" / "sketches_png.zip").write_bytes(b"not the archive")
    output = ("-o", str(tmp_path / "data"))
    for arguments, words in (
        (["tuberlin", "--mirror", server], "its md5 is "),
        (["tuberlin", "--mirror", server, "--sha256", "0" * 64], "its sha256 is "),
        (["tuberlin-svg", "--mirror", server], "404"),
        (["tuberlin", "--mirror", "http://127.0.0.1:9"], "cannot reach 127.0.0.1"),
        (["sketchy"], "only a browser can fetch it"),
        (["quickdraw"], "name the classes of quickdraw to get"),
        (["quickdraw", "--classes", "cta"], "Did you mean 'cat'?"),
        (["tu-berlin"], "Did you mean 'tuberlin'?"),
    ):
        said = refusal(capsys, "download", *arguments, *output)
        assert words in said
        assert said.startswith("dabnet: ")
        assert not list((tmp_path / "data").rglob("*.zip"))


def test_bad_arguments_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prepare(open_synthetic(1), tmp_path / "set.parquet", workers=1)
    (tmp_path / "file").write_text("")
    for arguments, words in (
        (["prepare", str(tmp_path / "nothing")], "is not there"),
        (["prepare", "synthetic", "-o", str(tmp_path / "set.parquet")], "is already there"),
        (["prepare", "synthetic", "-o", str(tmp_path / "other.parquet"), "--pen", "2"], "pen must be"),
        (["show", str(tmp_path / "nothing.parquet")], "is not there"),
        (["show", str(tmp_path / "set.parquet"), "--class", "aple"], "Did you mean 'apple'?"),
        (["show", str(tmp_path / "set.parquet"), "-o", str(tmp_path / "file" / "x.png")], "cannot write"),
    ):
        assert words in refusal(capsys, *arguments)
