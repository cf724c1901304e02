"""Every drawing is in one partition, and each partition's answers are written whole or not at all."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dabnet.distributed import RecognizeBatch
from dabnet.distributed.partitions import Partition, plan_partitions, read_partition
from dabnet.distributed.work import RecognizePartition
from dabnet.errors import InputError
from tests.distributed.lists import assert_same_answers, write_lines, write_parquet


def read(partitions: list[Partition]) -> pa.Table:
    return pa.Table.from_batches([batch for partition in partitions for batch in read_partition(partition)])


@settings(max_examples=40)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(1, 40))
def test_every_row_is_in_one_partition(groups: list[int], most: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        table = pa.table({"key": range(sum(groups)), "drawing": ["[]"] * sum(groups)})
        with pq.ParquetWriter(path, table.schema) as writer:
            for end, rows in zip(sums(groups), groups, strict=True):
                writer.write_table(table.slice(end - rows, rows))
        partitions = plan_partitions([str(path)], Path(folder, "out"), most)
        assert read(partitions).combine_chunks() == table.combine_chunks()
        assert all(0 < partition.drawings <= most for partition in partitions)
        assert len({partition.output for partition in partitions}) == len(partitions)


def sums(numbers: list[int]) -> list[int]:
    return [sum(numbers[: end + 1]) for end in range(len(numbers))]


@settings(max_examples=40)
@given(st.lists(st.integers(0, 3000), max_size=12), st.integers(1, 4), st.booleans())
def test_every_line_is_in_one_partition(lengths: list[int], most: int, is_ended: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "lines.ndjson")
        lines = [b"x" * length for length in lengths]
        path.write_bytes(b"\n".join(lines) + b"\n" * is_ended)
        partitions = plan_partitions([str(path)], Path(folder, "out"), most)
        found = read(partitions)["drawing"].to_pylist() if partitions else []
        assert [line.rstrip(b"\n") for line in found] == [line for line in lines if line]


def test_a_folder_is_all_lists_in_it(tmp_path: Path) -> None:
    for name in ("b.parquet", "a.parquet", "notes.txt"):
        write_parquet(tmp_path / name, 3)
    partitions = plan_partitions([str(tmp_path)], tmp_path / "out", 100)
    assert [Path(partition.source).name for partition in partitions] == ["a.parquet", "b.parquet"]


def test_lists_that_cannot_be_meant_are_refused(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", 3)
    (tmp_path / "other").mkdir()
    write_parquet(tmp_path / "other" / "a.parquet", 3)
    write_lines(tmp_path / "lines.ndjson", 3)
    pq.write_table(pa.table({"sketch": [1]}), tmp_path / "sketch.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    for names, sentence in (
        (["a.parquet", "other/a.parquet"], "files of the same name"),
        (["a.parquet", "lines.ndjson"], "other columns than"),
        (["sketch.parquet"], "no column 'drawing'"),
        (["broken.parquet"], "cannot be read"),
        (["missing.parquet"], "is not there"),
        (["drawing.png"], "give files that end in .parquet, .ndjson"),
    ):
        with pytest.raises(InputError, match=sentence):
            plan_partitions([str(tmp_path / name) for name in names], tmp_path / "out", 100)


def test_lines_keep_their_fields_and_tell_what_is_wrong(tmp_path: Path) -> None:
    lines = [
        '{"key_id": "7", "word": "line", "recognized": true, "countrycode": "NL", "drawing": [[[0, 9], [0, 4]]]}',
        '{"key_id": 8, "word": ["no", "word"], "strokes": [[[0, 0], [9, 4]]]}',
        "[[[0, 0], [9, 4]]]",
        "{no JSON",
        '{"drawing": [[[1], [1]]]}',
    ]
    (tmp_path / "lines.ndjson").write_text("\n".join(lines))
    (partition,) = plan_partitions([str(tmp_path / "lines.ndjson")], tmp_path, 1000)
    RecognizePartition(RecognizeBatch(top=1))(partition)
    rows = pq.read_table(partition.output).to_pylist()
    assert [row["offset"] for row in rows] == [sum(len(line) + 1 for line in lines[:end]) for end in range(5)]
    assert [row["key_id"] for row in rows] == ["7", "8", None, None, None]
    assert [row["word"] for row in rows] == ["line", None, None, None, None]
    assert rows[0]["recognized"] is True
    assert rows[0]["top"] == rows[1]["top"] == rows[2]["top"] != None  # noqa: E711
    assert "not valid JSON" in rows[3]["error"]
    assert "single point" in rows[4]["error"]


def test_answers_are_written_once_and_counted(tmp_path: Path) -> None:
    expected = write_parquet(tmp_path / "a.parquet", 300)
    folder = tmp_path / "out"
    folder.mkdir()
    partitions = plan_partitions([str(tmp_path / "a.parquet")], folder, 128)
    work = RecognizePartition(RecognizeBatch(top=3))
    assert [work.done(partition) for partition in partitions] == [None] * 3
    outcomes = [work(partition) for partition in partitions]
    assert_same_answers(folder, expected)
    times = [Path(outcome.output).stat().st_mtime_ns for outcome in outcomes]
    assert [work(partition) for partition in partitions] == outcomes
    assert [Path(outcome.output).stat().st_mtime_ns for outcome in outcomes] == times
    assert sum(outcome.drawings for outcome in outcomes) == 300
    assert sum(outcome.errors for outcome in outcomes) == 300 - expected["error"].null_count > 0
    assert sum(sum(outcome.labels.values()) for outcome in outcomes) == expected["error"].null_count


def test_answers_to_something_else_are_neither_taken_nor_replaced(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", 20)
    (partition,) = plan_partitions([str(tmp_path / "a.parquet")], tmp_path / "out", 100)
    (tmp_path / "out").mkdir()
    RecognizePartition(RecognizeBatch(top=3))(partition)
    with pytest.raises(InputError, match="its top is 3, not 2"):
        RecognizePartition(RecognizeBatch(top=2))(partition)
    with pytest.raises(InputError, match="its model is"):
        RecognizePartition(RecognizeBatch("tuberlin", top=3))(partition)
    with pytest.raises(InputError, match="its end is 20, not 10"):
        RecognizePartition(RecognizeBatch(top=3))(partition._replace(end=10))
    Path(partition.output).write_bytes(b"something else")
    with pytest.raises(InputError, match="delete it"):
        RecognizePartition(RecognizeBatch(top=3))(partition)


def test_nothing_is_there_of_answers_that_could_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    write_parquet(tmp_path / "a.parquet", 20)
    (partition,) = plan_partitions([str(tmp_path / "a.parquet")], tmp_path / "out", 100)
    (tmp_path / "out").mkdir()
    monkeypatch.setattr(pq.ParquetWriter, "add_key_value_metadata", fail)
    with pytest.raises(InputError, match="make room"):
        RecognizePartition(RecognizeBatch())(partition)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_file_that_breaks_meanwhile_is_named(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", 20)
    (partition,) = plan_partitions([str(tmp_path / "a.parquet")], tmp_path, 100)
    data = bytearray((tmp_path / "a.parquet").read_bytes())
    data[4:400] = bytes(396)
    (tmp_path / "a.parquet").write_bytes(data)
    with pytest.raises(InputError, match=r"a\.parquet' cannot be read from 0 to 20"):
        RecognizePartition(RecognizeBatch())(partition)


def test_the_footer_says_what_it_is_the_answers_to(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", 20)
    (partition,) = plan_partitions([str(tmp_path / "a.parquet")], tmp_path / "out", 100)
    (tmp_path / "out").mkdir()
    RecognizePartition(RecognizeBatch())(partition)
    said = json.loads(pq.read_metadata(partition.output).metadata[b"dabnet"])
    assert (said["source"], said["first"], said["end"], said["drawings"]) == ("a.parquet", 0, 20, 20)
