"""Arrow batches give the answers that a Recognizer gives, whatever their types; what is broken comes with its error."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dabnet.distributed import RecognizeBatch
from dabnet.distributed.columns import ColumnReader
from dabnet.errors import InputError, ModelFormatError
from dabnet.runtime import Recognizer
from dabnet.sketches.batch import Batch
from dabnet.sketches.synthetic import synthetic_strokes

EXAMPLES = Path(__file__).parents[2] / "examples"
ARROW = [[[0, 50], [100, 50]], [[70, 20], [100, 50], [70, 80]]]
FLOATS = st.floats(-1e6, 1e6, width=32)
STROKES = st.lists(st.lists(st.lists(FLOATS, min_size=2, max_size=2), max_size=5), max_size=4)
"""Drawings as lists of points, among them such without ink."""
ANYTHING = st.lists(
    st.none()
    | st.lists(
        st.none() | st.lists(st.none() | st.lists(st.none() | st.floats(width=32), max_size=3), max_size=4),
        max_size=3,
    ),
    max_size=6,
)
"""Rows of any shape: nulls at every level, numbers that are none, lists of any length."""


@pytest.fixture(scope="module")
def drawings() -> list[list[list[list[float]]]]:
    return [[stroke.tolist() for stroke in sketch.strokes] for sketch in synthetic_strokes(40)[0]]


def quickdraw(points: list[Any]) -> list[Any]:
    return [[list(axis) for axis in zip(*stroke, strict=True)] or [[], []] for stroke in points]


def guesses(answers: Any) -> list[Any]:
    return [
        answer and [(each["label"], each["probability"]) for each in answer] for answer in answers["top"].to_pylist()
    ]


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.list_(pa.list_(pa.float64()))),
        pa.large_list(pa.list_(pa.large_list(pa.float32()))),
        pa.list_(pa.list_(pa.list_(pa.float32(), 2))),
    ],
)
def test_points_get_the_answers_of_a_recognizer(kind: pa.DataType, drawings: list[Any]) -> None:
    batch = pa.record_batch({"strokes": pa.array(drawings, kind), "key": list(range(len(drawings)))})
    answers = RecognizeBatch(top=3)(batch)
    assert guesses(answers) == Recognizer.load().recognize(drawings, top=3)
    assert answers["label"].to_pylist() == [answer[0][0] for answer in guesses(answers)]
    assert answers["probability"].to_pylist() == [answer[0][1] for answer in guesses(answers)]
    assert answers["key"].to_pylist() == list(range(len(drawings)))
    assert answers["error"].null_count == len(drawings)


@pytest.mark.parametrize("number", [pa.uint8(), pa.int64(), pa.float32()])
def test_quickdraw_form_gets_the_answers_of_a_recognizer(number: pa.DataType, drawings: list[Any]) -> None:
    scaled = [[(np.array(stroke) % 256).astype(int).tolist() for stroke in drawing] for drawing in drawings]
    column = pa.array([quickdraw(drawing) for drawing in scaled], pa.list_(pa.list_(pa.list_(number))))
    table = pa.Table.from_batches(
        [pa.record_batch({"drawing": part}) for part in (column[:7], column[7:7], column[7:])]
    )
    assert guesses(RecognizeBatch()(table)) == Recognizer.load().recognize(scaled)


def test_a_slice_is_read_where_it_is(drawings: list[Any]) -> None:
    batch = pa.record_batch({"drawing": pa.array(drawings)})
    assert guesses(RecognizeBatch()(batch.slice(5, 9))) == Recognizer.load().recognize(drawings[5:14])


def test_short_lines_have_the_form_of_the_drawings_around_them(drawings: list[Any]) -> None:
    both = [[[0, 9], [40, 3]]]
    expected = Recognizer.load().recognize([both, quickdraw(both)], top=2)
    assert expected[0] != expected[1]
    recognize = RecognizeBatch(top=2)
    assert guesses(recognize(pa.record_batch({"drawing": [*drawings, both]})))[-1] == expected[0]
    assert guesses(recognize(pa.record_batch({"drawing": [*map(quickdraw, drawings), both]})))[-1] == expected[1]
    assert guesses(recognize(pa.record_batch({"drawing": [both]}))) == [expected[1]]
    assert guesses(recognize(pa.record_batch({"strokes": [both]}))) == [expected[0]]
    later = [pa.record_batch({"drawing": part}) for part in (drawings, [both])]
    assert guesses(list(recognize.stream(later))[1]) == [expected[0]]


@given(st.lists(STROKES, max_size=6))
def test_whatever_can_be_drawn_is_read_as_one_by_one(rows: list[Any]) -> None:
    column = pa.array(rows, pa.list_(pa.list_(pa.list_(pa.float64()))))
    for batch in ({"strokes": column}, {"drawing": pa.array(list(map(quickdraw, rows)), column.type)}):
        arrow = pa.record_batch(batch)
        read = ColumnReader(arrow.schema).read(arrow)
        for number, row in enumerate(rows):
            expected, found = Batch(), read.sketch(number)
            expected.try_to_add("", row)
            assert str(read.errors.get(number)) == str(expected.errors.get(0))
            if (sketch := expected.sketch(0)) is not None:
                assert found is not None
                np.testing.assert_array_equal(found.points, sketch.points)
                np.testing.assert_array_equal(found.ends, sketch.ends)


@given(ANYTHING, st.sampled_from(["drawing", "strokes"]))
def test_a_row_of_any_shape_gets_an_answer_or_an_error(rows: list[Any], name: str) -> None:
    batch = pa.record_batch({name: pa.array(rows, pa.list_(pa.list_(pa.list_(pa.float32()))))})
    answers = RecognizeBatch(top=1)(batch)
    assert answers.num_rows == len(rows)
    for row in answers.to_pylist():
        assert (row["error"] is None) == (row["label"] is not None) == (row["top"] is not None)


def test_pictures_and_json_are_read_as_files_are() -> None:
    files = [EXAMPLES / "camera.png", EXAMPLES / "key.svg", EXAMPLES / "cat.json"]
    contents = [path.read_bytes() for path in files]
    batch = pa.record_batch({"image": pa.array(contents, pa.binary())})
    assert guesses(RecognizeBatch()(batch)) == Recognizer.load().recognize(files)
    texts = pa.record_batch({"drawing": [None, *(content.decode() for content in contents[1:])], "image": contents})
    assert guesses(RecognizeBatch()(texts)) == Recognizer.load().recognize(files)


def test_a_text_is_never_taken_for_the_path_of_a_file() -> None:
    answers = RecognizeBatch()(pa.record_batch({"drawing": [str(EXAMPLES / "cat.json")]}))
    assert answers["error"][0].is_valid


def test_a_broken_row_comes_with_its_error_and_others_with_answers() -> None:
    drawing = pa.array([quickdraw(ARROW), None, [[[1, 2], [3]]], [], [[[7], [7]]]])
    image = pa.array([None, b"no picture", None, None, None], pa.binary())
    answers = RecognizeBatch(top=1)(pa.record_batch({"drawing": drawing, "image": image})).to_pylist()
    assert guesses_of_one(answers[0]) == Recognizer.load().recognize(ARROW, top=1)
    assert [row["error"] is None for row in answers] == [True, False, False, False, False]
    assert "both must be as long" in answers[2]["error"]
    assert "no ink" in answers[3]["error"]
    assert "single point" in answers[4]["error"]
    assert all(row["label"] is row["probability"] is row["top"] is None for row in answers[1:])


def guesses_of_one(row: dict[str, Any]) -> list[tuple[str, float]]:
    return [(each["label"], each["probability"]) for each in row["top"]]


def test_columns_that_are_called_like_answers_are_kept_under_another_name() -> None:
    batch = pa.record_batch({"label": ["arrow"], "drawing": [quickdraw(ARROW)], "word": ["arrow"]})
    answers = RecognizeBatch()(batch)
    assert answers.schema.names == ["given_label", "word", "label", "probability", "top", "error"]
    assert answers["given_label"].to_pylist() == ["arrow"]


def test_no_rows_give_no_rows_with_the_same_columns() -> None:
    batch = pa.record_batch({"drawing": pa.array([], pa.list_(pa.list_(pa.list_(pa.int16()))))})
    recognize = RecognizeBatch()
    full = recognize(pa.record_batch({"drawing": [quickdraw(ARROW)]}))
    assert recognize(batch).schema == full.schema
    assert recognize(pa.Table.from_batches([batch])).num_rows == 0
    assert recognize(batch.schema.empty_table()).schema == full.schema


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"sketch": [1]}, "no column 'drawing', 'strokes' or 'image', but 'sketch'"),
        ({"drawing": [1]}, "the column 'drawing' has int64"),
        ({"image": [[[[1.0]]]]}, "should have bytes of a picture"),
        ({"drawing": ["[]"], "label": [1], "given_label": [2]}, "two columns 'given_label'"),
    ],
)
def test_columns_that_cannot_be_meant_are_refused(columns: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)):
        RecognizeBatch()(pa.record_batch(columns))


def test_it_goes_to_other_processes_with_the_bytes_of_its_model(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(Recognizer.load().session.data)
    sent = pickle.dumps(RecognizeBatch(path, top=2))
    path.unlink()
    assert len(guesses(pickle.loads(sent)(pa.record_batch({"drawing": [quickdraw(ARROW)]})))[0]) == 2
    assert pickle.loads(sent).recognizer is pickle.loads(sent).recognizer


def test_a_model_that_is_refused_is_refused_before_any_batch(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"no model")
    with pytest.raises(ModelFormatError):
        RecognizeBatch(path)
    with pytest.raises(InputError, match="top must be 1 or more"):
        RecognizeBatch(top=0)
    with pytest.raises(InputError, match="not an Arrow batch"):
        RecognizeBatch()({"drawing": [ARROW]})
