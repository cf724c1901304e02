from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import dabnet
from dabnet.cli import main
from dabnet.sketches.raster import Raster, rasterize
from dabnet.sketches.sketch import Sketch
from dabnet.sketches.synthetic import synthetic_strokes

from ..sketches.drawings import HOUSE

EXAMPLES = Path(__file__).parents[2] / "examples"


def save_png(sketch: Sketch, path: Path) -> Path:
    Image.fromarray(255 - rasterize(sketch, Raster(200))).save(path)
    return path


def save_lines(count: int, path: Path) -> Path:
    """Write drawings as Quick, Draw! does."""
    with path.open("w") as file:
        for number, sketch in enumerate(synthetic_strokes(min(count, 20))[0] * -(-count // 20)):
            drawing = [stroke.T.round(3).tolist() for stroke in sketch.strokes]
            if number < count:
                file.write(json.dumps({"word": "thing", "key_id": str(number), "drawing": drawing}) + "\n")
    return path


def call(*arguments: object, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    program = [sys.executable, "-m", "dabnet", "recognize", *map(str, arguments)]
    return subprocess.run(program, input=stdin, capture_output=True, timeout=120)


def call_json(*arguments: object, stdin: bytes | None = None) -> list[dict[str, Any]]:
    done = call(*arguments, "--json", stdin=stdin)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_kind_of_file_gets_the_answer_that_python_gets(tmp_path: Path) -> None:
    sketch = Sketch.from_strokes(HOUSE)
    picture = save_png(sketch, tmp_path / "house.png")
    (tmp_path / "house.svg").write_text('<svg><path d="M10 50V95H90V50M5 50 50 5 95 50z"/></svg>')
    (tmp_path / "house.json").write_text(json.dumps({"strokes": HOUSE}))
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "houses.ndjson").write_text(json.dumps(HOUSE) + "\n\n" + json.dumps({"strokes": HOUSE}) + "\n")
    (tmp_path / "notes.txt").write_text("no drawing, and not asked for")
    found = {one["drawing"].removeprefix(f"{tmp_path}/"): one for one in call_json(tmp_path, "--top", 2)}
    names = ["deep/houses.ndjson:1", "deep/houses.ndjson:3", "house.json", "house.png", "house.svg"]
    assert list(found) == names
    recognizer = dabnet.Recognizer.load()
    sources: list[Sketch | Path] = [sketch, sketch, sketch, picture, tmp_path / "house.svg"]
    for name, source in zip(names, sources, strict=True):
        answer = recognizer.recognize(source, top=2)
        assert [(guess["label"], guess["probability"]) for guess in found[name]["guesses"]] == [
            (label, pytest.approx(share, abs=1e-5)) for label, share in answer
        ]
        assert found[name]["sure"] is (answer[0][1] >= 0.5)


@pytest.mark.parametrize("kind", ["png", "svg", "json", "pretty json", "lines"])
def test_standard_input_may_hold_any_of_them(kind: str, tmp_path: Path) -> None:
    content = {
        "png": save_png(Sketch.from_strokes(HOUSE), tmp_path / "house.png").read_bytes(),
        "svg": b"\n<svg><path d='M0 40 50 0 100 40'/></svg>",
        "json": json.dumps({"strokes": HOUSE}).encode(),
        "pretty json": json.dumps({"strokes": HOUSE}, indent=1).encode(),
        "lines": b'[[[0, 0], [9, 9]]]\n{"strokes": [[[0, 0], [9, 9]]]}',
    }[kind]
    names = [one["drawing"] for one in call_json("-", stdin=content)]
    assert names == {"json": ["-:1"], "lines": ["-:1", "-:2"]}.get(kind, ["-"])


def test_each_line_of_standard_input_is_answered_as_it_comes() -> None:
    command = [sys.executable, "-m", "dabnet", "recognize", "-", "--json"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in (1, 2, 3):
            process.stdin.write(json.dumps(HOUSE) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["drawing"] == f"-:{number}"
        process.stdin.close()
    assert process.returncode == 0


def test_a_bad_file_does_not_stop_the_others(tmp_path: Path) -> None:
    good = save_png(Sketch.from_strokes(HOUSE), tmp_path / "a.png")
    bad = tmp_path / "b.png"
    bad.write_bytes(b"no picture")
    lines = tmp_path / "c.ndjson"
    lines.write_bytes(b'{"strokes": 5}\n[[[0, 0], [9, 9]]]\n' + b"[" * 8_000_010 + b"\n[[[0, 0], [9, 9]]]\n")
    arguments = (good, bad, lines, tmp_path / "nowhere.svg")
    done = call(*arguments)
    assert done.returncode == 1
    assert [line.split()[0] for line in done.stdout.decode().splitlines()] == [
        "drawing",
        str(good),
        f"{lines}:2",
        f"{lines}:4",
    ]
    errors = done.stderr.decode().splitlines()
    assert errors[0] == (
        f"dabnet: {bad}: this is not a picture that can be read: give a PNG, JPEG, WebP, GIF, BMP or TIFF file."
    )
    assert errors[1].startswith(f"dabnet: {lines}:1: the JSON holds no drawing")
    assert errors[2].startswith(f"dabnet: {lines}:3: the drawing has 8,000,0")
    assert errors[3].startswith(f"dabnet: cannot read '{tmp_path}/nowhere.svg' (No such file or directory)")
    assert errors[4:] == ["4 of 7 drawings could not be read."]
    done = call(*arguments, "--json")
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert [set(one) for one in said].count({"drawing", "error"}) == 4


def test_what_is_not_likely_enough_is_not_sure(tmp_path: Path) -> None:
    path = save_png(Sketch.from_strokes(HOUSE), tmp_path / "a.png")
    _, row = call(path, "--min-confidence", 0, "--top", 2).stdout.decode().splitlines()
    best, other = dabnet.Recognizer.load().recognize(path, top=2)
    assert row.split()[1:3] == [best[0], f"{best[1] * 100:.0f}"]
    assert other[0] in row
    _, row = call(path, "--min-confidence", 1).stdout.decode().splitlines()
    assert row.removeprefix(str(path)).startswith(
        f"  not sure{' ' * (max(map(len, dabnet.Recognizer.load().labels)) - 8)}"
    )
    assert f"{best[0]} {best[1] * 100:.0f} %" in row
    assert not call_json(path, "--min-confidence", 1)[0]["sure"]


def test_the_sheet_shows_the_drawings(tmp_path: Path) -> None:
    lines = save_lines(10, tmp_path / "things.ndjson")
    done = call(lines, "--sheet", tmp_path / "sheet.png")
    assert done.returncode == 0
    assert done.stderr.decode() == f"10 drawings on {tmp_path}/sheet.png.\n"
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert (sheet.width, sheet.height) == (8 * 144 + 16, 2 * (128 + 4 * 16) + 16)
        assert min(sheet.tobytes()) < 60
    (tmp_path / "bad.png").write_bytes(b"bad")
    done = call(EXAMPLES / "mug.png", EXAMPLES / "sun.json", "--sheet", tmp_path / "pictures.png")
    assert done.returncode == 0
    with Image.open(tmp_path / "pictures.png") as sheet:  # the picture to the left of what the network saw of it
        assert (sheet.mode, sheet.size) == ("RGB", (2 * (2 * 128 + 16) + 16, 128 + 4 * 16 + 16))
        beside, none = (np.asarray(sheet.crop((left, 16, left + 128, 144))) for left in (16, 16 + 272))
        assert beside.min() < 60
        assert (none == 255).all()

    done = call(tmp_path / "bad.png", "--sheet", tmp_path / "none.png")
    assert done.returncode == 2
    assert done.stderr.decode().endswith("there is nothing to put on a sheet.\n")


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read as Linux tells it")
def test_recognizing_neither_loads_torch_nor_grows(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from dabnet.cli import main\n"
        "try: main(['recognize', sys.argv[1], '--json'])\n"
        "finally:\n"
        "    unwanted = {'torch', 'lightning', 'pyarrow', 'rich', 'fastapi', 'matplotlib'} & set(sys.modules)\n"
        "    print(unwanted, Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0], file=sys.stderr)\n"
    )
    peaks = []
    for count in (100, 3000):
        path = save_lines(count, tmp_path / f"{count}.ndjson")
        done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, timeout=120)
        assert done.stdout.count("\n") == count, done.stderr
        *told, loaded = done.stderr.splitlines()
        unwanted, peak = loaded.rsplit(maxsplit=1)
        assert unwanted == "set()"
        assert ("3,000 drawings in " in "".join(told)) == (count == 3000)
        peaks.append(int(peak))
    assert max(peaks) < 120_000  # kB
    assert peaks[1] < peaks[0] + 8_000


def test_progress_is_told_where_somebody_watches_and_the_answers_go_elsewhere(tmp_path: Path) -> None:
    path = save_lines(100, tmp_path / "things.ndjson")
    reader, writer = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "dabnet", "recognize", path, "--json"],
        stdout=subprocess.PIPE,
        stderr=writer,
        timeout=120,
    )
    os.close(writer)
    assert done.stdout.count(b"\n") == 100
    told = os.read(reader, 10_000)
    os.close(reader)
    assert b"\r100 drawings, " in told
    assert told.endswith(b"\r\x1b[K")
    assert call(path, "--json").stderr == b""


def test_a_model_of_your_own_and_bad_words(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for arguments, words in (
        (["-", "--model", tmp_path / "none.safetensors"], "is not a file that is there"),
        ([], "Missing argument"),
        (["-", "--top", "0"], "--top"),
        (["-", "--min-confidence", "2"], "--min-confidence"),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(["recognize", *map(str, arguments)])
        assert stopped.value.code == 2
        assert words in capsys.readouterr().err


def test_an_empty_folder_says_what_it_lacks(tmp_path: Path) -> None:
    done = call(tmp_path)
    assert done.returncode == 1
    assert f"the folder '{tmp_path}' has no drawings: they are files that end in .png" in done.stderr.decode()
