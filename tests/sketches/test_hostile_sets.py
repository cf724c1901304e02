"""Data sets that were made to harm, or grew so by accident: each gets a prepared set or a sentence."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dabnet.errors import InputError
from dabnet.sketches import quickdraw
from dabnet.sketches.prepare import prepare
from dabnet.sketches.sources import open_source
from dabnet.sketches.store import SketchSet

from .drawings import HOUSE, paint
from .hostile import bad_exif, jpeg_with_exif

DRAWING = json.dumps(HOUSE)


def run(source: Path, output: Path) -> tuple[SketchSet, list[tuple[str, str]]]:
    made = prepare(open_source(source), output, workers=1)
    return SketchSet(made.path), made.left_out


def test_a_zips_names_may_be_written_in_any_way(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        for name in ("./cat/1.json", "cat//2.json", "/dog/3.json", "./dog/./4.json", "cat/1.json"):
            archive.writestr(name, DRAWING)
    found, left_out = run(tmp_path / "set.zip", tmp_path / "set.parquet")
    assert (len(found), found.classes, left_out) == (4, ["cat", "dog"], [])


def test_names_that_are_not_utf_8_are_escaped(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/set/caf\xe9"
    Path(os.fsdecode(folder)).mkdir(parents=True)
    for name in (b"/1.json", b"/\xff.json"):
        Path(os.fsdecode(folder + name)).write_text(DRAWING)
    Path(os.fsdecode(folder + b"/\xfe.json")).write_text("rubbish")
    found, left_out = run(tmp_path / "set", tmp_path / "set.parquet")
    assert found.classes == ["caf\\udce9"]
    assert sorted(found.ids) == ["caf\\udce9/1.json", "caf\\udce9/\\udcff.json"]
    assert left_out[0][0] == "caf\\udce9/\\udcfe.json"


def test_a_lone_surrogate_in_a_key_is_escaped(tmp_path: Path) -> None:
    record = {"word": "cat", "drawing": [[[0, 5], [0, 9]]]}
    lines = [json.dumps({"key_id": key, **record}) for key in ("\udc00", "1", "9" * 100_000)]
    (tmp_path / "cat.ndjson").write_text("\n".join(lines))
    found, _ = run(tmp_path / "cat.ndjson", tmp_path / "set.parquet")
    assert found.ids[0].endswith("\\udc00")
    assert len(found) == 3
    assert max(map(len, found.ids)) < 200


def test_pipes_among_the_files_are_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "set" / "cat").mkdir(parents=True)
    (tmp_path / "set" / "cat" / "1.json").write_text(DRAWING)
    os.mkfifo(tmp_path / "set" / "cat" / "2.json")
    os.mkfifo(tmp_path / "set" / "testset.txt")
    os.mkfifo(tmp_path / "set" / "dog.ndjson")
    found, _ = run(tmp_path / "set", tmp_path / "set.parquet")
    assert len(found) == 1
    with pytest.raises(InputError, match="neither a file nor a folder"):
        open_source(tmp_path / "set" / "dog.ndjson")


def test_whatever_a_picture_raises_is_that_files_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "set" / "cat").mkdir(parents=True)
    (tmp_path / "set" / "cat" / "1.json").write_text(DRAWING)
    for number, exif in enumerate(bad_exif().values()):
        (tmp_path / "set" / "cat" / f"{number}.jpg").write_bytes(jpeg_with_exif(exif, paint(HOUSE)))
    found, left_out = run(tmp_path / "set", tmp_path / "set.parquet")
    assert (len(found), left_out) == (1 + len(bad_exif()), [])

    def fail(*_: Any) -> None:
        raise TypeError("a decoder's mistake")

    monkeypatch.setattr("dabnet.sketches.read.sketch_from_bytes", fail)
    found, left_out = run(tmp_path / "set", tmp_path / "again.parquet")
    assert (len(found), len(left_out)) == (1, len(bad_exif()))
    assert "a decoder's mistake" in left_out[0][1]


def arrays(**changes: Any) -> dict[str, Any]:
    whole = {
        "labels": np.array([0, 1]),
        "class_names": np.array(["cat", "dog"]),
        "points": np.array([[0, 0], [5, 9], [1, 1], [8, 2]], np.float32),
        "end_of_stroke": np.array([0, 1, 0, 1]),
        "offsets": np.array([0, 2, 4]),
    }
    return {**whole, **changes}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"offsets": np.array([0.0, 2.0, 4.0])}, "must be numbers, not float32, int64 and float64"),
        ({"offsets": np.array([0, 2**64 - 1, 4], np.uint64)}, "must rise"),
        ({"points": np.array([["a", "b"]] * 4)}, "must be numbers"),
        ({"points": np.array([[True, False]] * 4)}, "must be numbers"),
        ({"end_of_stroke": np.array(["a"] * 4)}, "must be numbers"),
        ({"ids": np.array([7])}, "the ids in .* must be one text or number per drawing"),
        ({"ids": np.array(7)}, "the ids in"),
        ({"fold": np.array([0, 1000])}, "the folds in .* must be from 0 to 99"),
        ({"fold": np.array([0, -1])}, "the folds in"),
        ({"fold3": np.array([0.0, 1.0])}, "the folds in .* must be one integer per drawing"),
        ({"class_names": np.array("cat")}, "the class_names in .* must be a list of texts"),
        ({"class_names": np.array([1, 2])}, "the class_names in"),
        ({"class_names": np.array([0x110000, 0x61, 0x62], np.uint32).view("U1")}, "letters that do not exist"),
        ({"ids": np.array([0x61, 0xFFFFFFFF], ">u4").view(">U1")}, "letters that do not exist"),
        ({"labels": np.array(0)}, "the labels in"),
        ({"labels": np.zeros(2, [("a", "i4")])}, "the labels in"),
    ],
    ids=lambda value: value if isinstance(value, str) else ", ".join(value),
)
def test_arrays_of_another_kind_are_refused_in_a_sentence(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    np.savez(tmp_path / "set.npz", **arrays(**changes))
    with pytest.raises(InputError, match=words):
        open_source(tmp_path / "set.npz")


def test_arrays_of_every_good_kind_are_taken(tmp_path: Path) -> None:
    changes = {"offsets": np.array([0, 2, 4], np.uint8), "ids": np.array([b"\xff", b"b"]), "fold": np.array([1, 99])}
    np.savez(tmp_path / "set.npz", **arrays(**changes, class_names=np.array([b"cat", b"d\xffg"])))
    found, left_out = run(tmp_path / "set.npz", tmp_path / "set.parquet")
    assert (len(found), found.classes, left_out) == (2, ["cat", "d\\xffg"], [])


def peak_megabytes(code: str, *arguments: object) -> float:
    """Run Python, and return the most memory it had resident above what importing takes."""
    before = (
        "import resource, sys\nfrom pathlib import Path\nimport dabnet.sketches.sources as sources\n"
        "from dabnet.sketches.prepare import prepare\nhad = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
    )
    code = f"{before}{code}\nprint((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - had) / 1e3)"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def test_an_array_that_nobody_uses_is_not_decompressed(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "set.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays().items():
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, array)
        with archive.open("unused.npy", "w", force_zip64=True) as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (3 * 10**8,)})
            for _ in range(30):
                file.write(bytes(10**7))
    assert peak_megabytes("sources.open_source(sys.argv[1])", tmp_path / "set.npz") < 60


def test_an_array_that_claims_more_than_there_is_takes_no_memory(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "set.npz", "w") as archive:
        for name, array in arrays().items():
            with archive.open(f"{name}.npy", "w") as file:
                claim = {"descr": array.dtype.str, "fortran_order": False, "shape": (10**12, *array.shape[1:])}
                np.lib.format.write_array_header_1_0(file, claim)
    with pytest.raises(InputError, match="is cut off"):
        open_source(tmp_path / "set.npz")


def test_a_long_line_is_read_past_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = json.dumps({"key_id": "7", "drawing": [[[0, 5], [0, 9]]]})
    with (tmp_path / "cat.ndjson").open("w") as file:
        file.write(f"{good}\n")
        for _ in range(15):
            file.write(" " * 10_000_000)
        file.write(f"\n{good}\n")
    made = tmp_path / "set.parquet"
    code = "prepare(sources.open_source(sys.argv[1]), Path(sys.argv[2]), workers=1)"
    assert peak_megabytes(code, tmp_path / "cat.ndjson", made) < 80
    found = SketchSet(made)
    assert len(found) == 2
    assert [reason for _, reason in found.info.left_out] == [
        "the line has more than 8,000,000 bytes: simplify the drawing first."
    ]


@pytest.mark.parametrize("length", [1, 49, 50, 51, 120, 1000])
def test_every_line_is_read_once_however_a_file_is_divided(
    tmp_path: Path, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quickdraw, "MAX_LINE", 60)
    lines = [json.dumps({"key_id": str(i), "drawing": [[[0, 5], [0, i + 1]]]}) for i in range(20)]
    lines[7] += " " * 100
    lines[12] = " " * 300
    path = tmp_path / "cat.ndjson"
    path.write_text("\n".join(lines) + "\n")
    size = path.stat().st_size
    read, left_out = [], 0
    with path.open("rb") as file:
        for start in range(0, size, length):
            for entry in quickdraw.read_lines(file, start, min(start + length, size)):
                if isinstance(entry.sketch, InputError):
                    left_out += 1
                else:
                    read.append(entry.key)
    assert read == [str(i) for i in range(20) if i not in (7, 12)]
    assert left_out == 2


def test_a_record_of_too_many_points_is_read_past(tmp_path: Path) -> None:
    head = struct.Struct("<Q2sbIH")
    large = head.pack(1, b"XX", 1, 0, 2) + 2 * (struct.pack("<H", 60_000) + bytes(120_000))
    small = head.pack(2, b"XX", 1, 0, 1) + struct.pack("<H", 2) + bytes([0, 5, 0, 9])
    (tmp_path / "cat.bin").write_bytes(large + small)
    found, left_out = run(tmp_path / "cat.bin", tmp_path / "set.parquet")
    assert found.ids.tolist() == ["2"]
    assert left_out == [("1", "the drawing has more than 32,768 points: simplify its strokes first.")]


def wait_until(condition: Callable[[], bool], seconds: float = 15) -> bool:
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.05)
    return condition()


def children(process: int) -> list[int]:
    found = Path(f"/proc/{process}/task/{process}/children")
    return list(map(int, found.read_text().split())) if found.exists() else []


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_workers_end_with_the_process_that_started_them_and_locks_too(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dabnet", "data", "prepare", "synthetic", "--limit", "20000", "--workers", "2"]
    command += ["-o", str(tmp_path / "set.parquet")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
        assert wait_until(lambda: len(list(tmp_path.glob("*.partial/piece-*"))) > 1, 60)
        workers = children(first.pid)
        assert len(workers) >= 2
        second = subprocess.run(command, capture_output=True, text=True)
        assert (second.returncode, second.stderr.count("\n")) == (2, 1)
        assert "another process is writing" in second.stderr
        assert first.poll() is None
        first.send_signal(signal.SIGKILL)
    assert wait_until(lambda: not any(map(is_running, workers)))
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["set.parquet.lock", "set.parquet.partial"]
    made = prepare(open_source("synthetic", limit=2), tmp_path / "set.parquet", workers=1)  # other work, same place
    assert made.resumed == 0
    assert [path.name for path in tmp_path.iterdir()] == ["set.parquet"]


def test_a_damaged_piece_is_read_again(tmp_path: Path) -> None:
    source = open_source("synthetic", limit=60)
    whole = prepare(source, tmp_path / "whole.parquet", workers=1)
    partial = tmp_path / "set.parquet.partial"
    partial.mkdir()
    (partial / "plan.json").write_text(json.dumps(source.fingerprint()))
    (partial / "piece-000000.parquet").write_bytes(b"PAR1 rubbish")
    made = prepare(source, tmp_path / "set.parquet", workers=1)
    assert made.resumed == 0
    assert made.path.read_bytes() == whole.path.read_bytes()
