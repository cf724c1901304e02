from __future__ import annotations

import json
import os
import pickle
import re
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dabnet.errors import InputError
from dabnet.sketches.raster import Raster
from dabnet.sketches.sketch import Sketch
from dabnet.sketches.store import SCHEMA, SetInfo, SketchSet, make_table, open_writer
from dabnet.sketches.synthetic import synthetic_sketches, synthetic_strokes

INFO = SetInfo("Test", "MIT", ["a", "b"], Raster(size=32))


def write(path: Path, sketches: list[Sketch], group: int = 3, info: SetInfo = INFO) -> Path:
    ids, labels = [f"drawing {i}" for i in range(len(sketches))], [i % 2 for i in range(len(sketches))]
    with open_writer(path, SCHEMA.with_metadata({"dabnet": info.to_json()})) as writer:
        writer.write_table(make_table(ids, labels, sketches), row_group_size=group)
    return path


def some_sketches(count: int = 12) -> list[Sketch]:
    """Draw strokes and images in turn."""
    strokes, images = synthetic_strokes(count)[0], synthetic_sketches(count, size=100, seed=1)[0]
    return [strokes[i] if i % 2 else Sketch.from_ink(images[i]) for i in range(count)]


def same(first: Sketch, second: Sketch) -> bool:
    if first.points is not None:
        return np.array_equal(first.points, second.points) and np.array_equal(first.ends, second.ends)  # type: ignore[arg-type]
    return np.array_equal(first.bitmap, second.bitmap) and abs(first.line_width - second.line_width) < 1e-6  # type: ignore[arg-type]


def test_drawings_come_back_bit_for_bit_by_row_in_any_order(tmp_path: Path) -> None:
    sketches = some_sketches()
    stored = SketchSet(write(tmp_path / "set.parquet", sketches))
    assert len(stored) == 12
    for row in (11, 0, 5, 5, 2, 10, -1):
        assert same(stored[row], sketches[row])
    for read, sketch in zip(stored.read(range(12)), sketches, strict=True):
        assert same(read, sketch)
    assert stored.labels.tolist() == [0, 1] * 6
    assert stored.ids.tolist() == [f"drawing {i}" for i in range(12)]
    assert stored.classes == ["a", "b"]
    assert stored.info == INFO
    for row in (12, -13):
        with pytest.raises(IndexError):
            stored[row]


@given(
    st.lists(
        st.lists(st.lists(st.tuples(st.integers(0, 255), st.integers(0, 255)), min_size=1), min_size=1), max_size=5
    )
)
def test_any_strokes_survive_the_table(drawings: list[Any]) -> None:
    drawings = [drawing for drawing in drawings if len({point for stroke in drawing for point in stroke}) > 1]
    sketches = [Sketch.from_strokes(drawing) for drawing in drawings]
    column = make_table([""] * len(sketches), [0] * len(sketches), sketches).column("strokes").to_pylist()
    assert column == [[[v for point in stroke for v in point] for stroke in drawing] for drawing in drawings]


def test_one_drawing_is_read_without_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = SketchSet(write(tmp_path / "set.parquet", some_sketches()))
    groups: list[int] = []
    read = pq.ParquetFile.read_row_group

    def note(self: Any, group: int, *args: Any, **options: Any) -> Any:
        groups.append(group)
        return read(self, group, *args, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", note)
    columns: list[list[str]] = []
    read_column = pq.ParquetFile.read

    def note_columns(self: Any, names: list[str], **options: Any) -> Any:
        columns.append(names)
        return read_column(self, names, **options)

    monkeypatch.setattr(pq.ParquetFile, "read", note_columns)
    stored.read([7, 6, 8, 7])
    stored.read([0])
    assert groups == [2, 0]
    assert columns == [["line_width"]]  # of all, once: a few bytes per drawing, and none where there are strokes


def test_what_stays_in_memory_is_bounded(tmp_path: Path) -> None:
    sketches = some_sketches()
    limit = 2 * 3 * 40_000  # two groups of three
    stored = SketchSet(write(tmp_path / "set.parquet", sketches), cache_bytes=limit)
    for row in np.random.default_rng(0).integers(0, 12, 60):
        assert same(stored[int(row)], sketches[row])
        assert stored._cached_bytes <= limit
        assert stored._cached_bytes == sum(rows.bytes for rows in stored._cache.values())


def test_a_folder_of_files_is_one_set_and_goes_to_other_processes(tmp_path: Path) -> None:
    sketches = some_sketches()
    (tmp_path / "set").mkdir()
    write(tmp_path / "set" / "00000.parquet", sketches[:5])
    write(tmp_path / "set" / "00001.parquet", sketches[5:])
    stored = pickle.loads(pickle.dumps(SketchSet(tmp_path / "set")))
    assert len(stored) == 12
    assert all(same(stored[row], sketch) for row, sketch in enumerate(sketches))
    assert len(stored.labels) == len(stored.folds) == 12
    write(tmp_path / "set" / "00002.parquet", sketches, info=SetInfo("Other", "MIT", ["a", "b"], Raster()))
    with pytest.raises(InputError, match="belong to different sets"):
        SketchSet(tmp_path / "set")


def test_what_others_see_is_plain_parquet(tmp_path: Path) -> None:
    image = synthetic_sketches(1, size=256)[0][0]
    path = write(tmp_path / "set.parquet", [Sketch.from_ink(image)])
    row = pq.read_table(path).to_pylist()[0]
    nibbles = np.frombuffer(row["bitmap"], dtype=np.uint8).reshape(256, 128)
    levels = np.stack([nibbles >> 4, nibbles & 15], axis=-1).reshape(256, 256)
    assert np.abs(levels * 17.0 - image).max() <= 8.5
    assert (row["id"], row["label"], row["fold"], row["strokes"]) == ("drawing 0", 0, 0, None)


def test_files_that_are_no_set_are_refused_in_a_sentence(tmp_path: Path) -> None:
    good = write(tmp_path / "good.parquet", some_sketches(4))
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.parquet").write_text("hello")
    (tmp_path / "cut.parquet").write_bytes(good.read_bytes()[:-9])
    pq.write_table(pa.table({"x": [1]}), tmp_path / "other.parquet")
    for name, words in {
        "nothing.parquet": "is not there: make it with 'dabnet data prepare'",
        "empty": "holds no prepared set",
        "text.parquet": "is not a whole Parquet file",
        "cut.parquet": "is not a whole Parquet file",
        "other.parquet": "is not a set that dabnet prepared",
    }.items():
        with pytest.raises(InputError, match=words) as error:
            SketchSet(tmp_path / name)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "damaged"),
        ("[]", "damaged"),
        ("{}", "damaged"),
        (json.dumps({"format": 2}), "format 2, and this dabnet reads format 1"),
        (INFO.to_json().replace('"a"', "5"), "damaged"),
        (INFO.to_json().replace('"size": 32', '"size": 1'), "size must be"),
        (INFO.to_json().replace('"left_out": []', '"left_out": [5]'), "damaged"),
        (INFO.to_json().replace('"title"', '"titel"'), "damaged"),
    ],
)
def test_a_damaged_description_is_refused_in_a_sentence(text: str, words: str) -> None:
    assert SetInfo.from_json(INFO.to_json().encode()) == INFO
    with pytest.raises(InputError, match=words):
        SetInfo.from_json(text.encode())


def test_rows_that_make_no_drawing_are_refused_when_they_are_read(tmp_path: Path) -> None:
    table = make_table(["x"] * 4, [0, 0, 0, 9], some_sketches(4))
    strokes = pa.array([None, [[1.0, 2.0, 3.0]], [[0.0, 0.0, 1e400, 1.0]], []], SCHEMA.field("strokes").type)
    table = table.set_column(3, SCHEMA.field("strokes"), strokes)
    bitmaps = pa.array([bytes(32768), None, None, None], SCHEMA.field("bitmap").type)
    table = table.set_column(4, SCHEMA.field("bitmap"), bitmaps)
    table = table.set_column(5, SCHEMA.field("line_width"), pa.array([float("nan"), None, None, None], pa.float32()))
    pq.write_table(table.replace_schema_metadata({"dabnet": INFO.to_json()}), tmp_path / "set.parquet")
    stored = SketchSet(tmp_path / "set.parquet")
    for row, words in enumerate(("no ink", "an x without a y", "not a finite number", "no drawing in this row")):
        with pytest.raises(InputError, match=f"row {row} of '.*set.parquet': .*{words}"):
            stored[row]
    with pytest.raises(InputError, match="labels without a class name"):
        _ = stored.labels


@given(st.data())
def test_a_damaged_file_gives_drawings_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    content = bytearray(write(folder / "set.parquet", some_sketches(4)).read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (folder / "set.parquet").write_bytes(content)
    try:
        stored = SketchSet(folder / "set.parquet")
        for row in range(min(len(stored), 4)):
            assert isinstance(stored[row], Sketch)
    except InputError:
        pass


def test_no_flipped_byte_ends_the_process(tmp_path: Path) -> None:
    drawn = [*synthetic_strokes(4)[0], Sketch.from_ink(np.eye(9, dtype=np.uint8) * 255)]
    whole = write(tmp_path / "set.parquet", drawn).read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    # What describes the columns of row groups, around their names; the lines' width was what Arrow died of.
    names = [found.start() for found in re.finditer(b"line_width|label", whole[footer:])]
    changes = [(footer + name - back, bit) for name in names for back in range(1, 40) for bit in (1, 16)]
    random = np.random.default_rng(0)
    changes += [(position, 1 << bit) for position, bit in random.integers((4, 0), (len(whole), 8), (200, 2)).tolist()]
    child = os.fork()
    if child == 0:  # where dying is allowed
        status = 0
        for position, bit in changes:
            damaged = bytearray(whole)
            damaged[position] ^= bit
            (tmp_path / "damaged.parquet").write_bytes(damaged)
            try:
                found = SketchSet(tmp_path / "damaged.parquet")
                _ = found.labels, found.folds, found.ids
                found.read(range(min(len(found), 50)))
            except InputError:
                pass
            except BaseException:
                traceback.print_exc()
                status = 1
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
