from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import dabnet
from dabnet.errors import InputError, NonFiniteError
from dabnet.packed import Model, read_model, to_bytes
from dabnet.packed.nodes import Conv
from dabnet.runtime import Recognizer, Session
from dabnet.runtime.recognizer import BATCH, probabilities
from dabnet.sketches import Raster, Sketch, rasterize, read_sketch, synthetic_strokes
from dabnet.sketches.raster import show_batch

HOUSE = [[(10, 90), (10, 45), (50, 10), (90, 45), (90, 90), (10, 90)], [(40, 90), (40, 60), (60, 60), (60, 90)]]


@pytest.fixture(scope="module")
def recognizer() -> Recognizer:
    return Recognizer.load()


def tiny(labels: tuple[str, ...] = ("left", "right"), **changes: Any) -> Model:
    """Counts the ink of the left and of the right half, of 8x8."""
    weight = np.zeros((2, 8, 8, 1), dtype=np.float32)
    weight[0, :, :4], weight[1, :, 4:] = 1, 1
    node = Conv(inputs=(0,), filters=2, kernel=(8, 8), weight=weight)
    raster: dict[str, float] = {"size": 8, "margin": 0.0, "pen": 0.1}
    return replace(Model((1, 8, 8), (node,), labels, raster), **changes)


def test_probabilities_are_those_of_the_sessions_logits_at_the_models_temperature(recognizer: Recognizer) -> None:
    model = read_model("default")
    assert model.raster is not None
    x = show_batch([read_sketch(HOUSE)], Raster.from_dict(model.raster))
    scaled = Session("default").run(x)[0].astype(np.float64) / model.temperature
    expected = np.exp(scaled) / np.exp(scaled).sum()
    found = recognizer.recognize(HOUSE, top=len(model.labels))
    assert [label for label, _ in found] == [model.labels[i] for i in np.argsort(-expected, kind="stable")]
    assert dict(found) == pytest.approx(dict(zip(model.labels, expected, strict=True)), abs=1e-9)
    assert sum(probability for _, probability in found) == pytest.approx(1)
    assert recognizer.recognize(HOUSE) == found[:5]
    assert recognizer.recognize(HOUSE, top=10**6) == found
    assert (recognizer.labels, recognizer.input_size) == (list(model.labels), model.input_size)


def test_a_drawing_is_the_same_in_whatever_form_it_comes(recognizer: Recognizer, tmp_path: Path) -> None:
    ask: Any = recognizer.recognize
    expected = dict(ask(HOUSE))
    (tmp_path / "house.json").write_text(json.dumps(HOUSE))
    svg = (
        "<svg>" + "".join(f"<polyline points='{' '.join(f'{x},{y}' for x, y in line)}'/>" for line in HOUSE) + "</svg>"
    )
    (tmp_path / "house.svg").write_text(svg)
    exact = [read_sketch(HOUSE), [np.array(stroke) for stroke in HOUSE], tmp_path / "house.json", tuple(HOUSE)]
    for drawing in (*exact, str(tmp_path / "house.svg"), svg.encode()):
        assert dict(ask(drawing)) == pytest.approx(expected, abs=1e-3)
    # A picture of it is seen nearly alike, dark on light or light on dark.
    ink = rasterize(read_sketch(HOUSE), Raster(256, margin=0.1, pen=0.02))
    picture = Image.fromarray(255 - ink)
    file = io.BytesIO()
    picture.save(file, "PNG")
    answers = [ask(form) for form in (picture, 255 - ink, ink, ink / 255, file.getvalue())]
    assert all(answer == answers[0] for answer in answers)
    assert answers[0][0][0] in dict(ask(HOUSE, top=10))


def test_what_python_programs_hold_is_a_drawing(recognizer: Recognizer, tmp_path: Path) -> None:
    ask: Any = recognizer.recognize
    expected, data = ask(HOUSE), json.dumps({"strokes": HOUSE}).encode()
    (tmp_path / "house.json").write_bytes(data)
    with (tmp_path / "house.json").open("rb") as file:
        for form in (data, bytearray(data), memoryview(data), io.BytesIO(data), file, {"strokes": HOUSE}):
            assert ask(form) == expected
    np.testing.assert_array_equal(recognizer.show([HOUSE, tmp_path / "house.json"])[0], recognizer.show([data])[0])


def test_a_list_of_sketches_gives_the_answers_of_each(recognizer: Recognizer, tmp_path: Path) -> None:
    ask: Any = recognizer.recognize
    sketches = synthetic_strokes(BATCH + 3)[0]
    alone = [ask(sketch, top=2) for sketch in sketches]
    assert ask(sketches, top=2) == alone
    strokes = [sketch.strokes for sketch in sketches[:3]]  # lists of arrays
    lists = [[stroke.tolist() for stroke in drawing] for drawing in strokes]
    assert ask(strokes, top=2) == ask(lists, top=2) == alone[:3]
    assert ask(lists[:1], top=2) == alone[:1]
    images = [255 - rasterize(sketch, Raster(100)) for sketch in sketches[:3]]
    pictures = [Image.fromarray(image) for image in images]
    assert ask(images, top=2) == ask(pictures, top=2)
    for i, picture in enumerate(pictures):
        picture.save(tmp_path / f"{i}.png")
    paths = sorted(tmp_path.iterdir())
    assert ask([str(path) for path in paths]) == ask(pictures)


@pytest.mark.parametrize("threads", [1, 3])
def test_many_drawings_get_the_answers_of_drawing_running_and_ranking_them_in_python(threads: int) -> None:
    recognizer = Recognizer.load(threads=threads)
    sketches = synthetic_strokes(50)[0]
    pictures = [Sketch.from_ink(rasterize(sketch, Raster(100))) for sketch in sketches[:3]]
    several = [*sketches[:7], *pictures, *sketches[7:]]
    chances = recognizer.run(recognizer.show(several))
    assert recognizer.recognize(several, top=250) == [recognizer.rank(row, top=250) for row in chances]
    logits = recognizer.session.run(recognizer.show(several)).astype(np.float64)
    weights = np.exp((logits - logits.max(axis=1, keepdims=True)) / recognizer.session.temperature)
    np.testing.assert_allclose(chances, weights / weights.sum(axis=1, keepdims=True), rtol=1e-14)


def test_a_model_that_answers_with_no_number_says_so_for_many_drawings_too() -> None:
    weight = np.full((2, 8, 8, 1), 3e38, dtype=np.float32)
    nodes = (Conv(inputs=(0,), filters=2, kernel=(8, 8), weight=weight),)
    with pytest.raises(NonFiniteError, match="not finite"):
        Recognizer(Session(tiny(nodes=nodes))).recognize(synthetic_strokes(3)[0])


def test_a_model_of_your_own_is_loaded_from_a_path_or_bytes(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(to_bytes(tiny()))
    right_heavy = Sketch.from_strokes([[(0, 0), (9, 0), (9, 9), (5, 9), (5, 5), (9, 5)]])
    for source in (path, str(path), path.read_bytes()):
        found = dabnet.Recognizer.load(source, threads=2).recognize(right_heavy)
        assert [label for label, _ in found] == ["right", "left"]
    warm = Recognizer(Session(tiny(temperature=100.0))).recognize(right_heavy)
    assert 0.5 < warm[0][1] < found[0][1]


def test_equally_likely_labels_keep_their_order() -> None:
    assert [label for label, _ in Recognizer(Session(tiny())).recognize([[(0, 0), (9, 9)], [(9, 0), (0, 9)]])] == [
        "left",
        "right",
    ]


def test_logits_of_any_size_have_probabilities() -> None:
    found = probabilities(np.array([[1e30, 0.0], [-1e30, -1e30]], dtype=np.float32), 1e-300)
    assert found.tolist() == [[1, 0], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (tiny(labels=()), "the model has no labels"),
        (tiny(raster=None), "does not say how to draw a sketch"),
        (tiny(raster={"size": 9, "margin": 0.0, "pen": 0.1}), "takes 1x8x8, and sketches are drawn 1x9x9"),
        (tiny(raster={"size": 8, "margin": 0.9, "pen": 0.1}), "margin must be from 0 to 0.4"),
    ],
)
def test_a_model_that_cannot_recognize_says_what_it_lacks(model: Model, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Recognizer.load(to_bytes(model))


@pytest.mark.parametrize(
    ("sketch", "words"),
    [
        ([], "no ink"),
        ([[]], "no ink"),
        (np.full((64, 64), 255, dtype=np.uint8), "no ink"),
        (Image.new("RGB", (64, 64), "white"), "no ink"),
        ([[(1, 1)]], "single point"),
        ("nowhere.png", "cannot read 'nowhere.png'"),
        (["nowhere.png"], "cannot read 'nowhere.png'"),
        (7, "a int is not a drawing"),
    ],
)
def test_what_is_no_drawing_gets_one_sentence(recognizer: Recognizer, sketch: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        recognizer.recognize(sketch)


def test_an_answer_has_at_least_one_label(recognizer: Recognizer) -> None:
    ask: Any = recognizer.recognize
    for top in (0, -1, 2.0, "3", None):
        with pytest.raises(InputError, match=f"top must be 1 or more, not {top!r}"):
            ask(HOUSE, top=top)
    assert len(ask(HOUSE, top=np.int64(2))) == 2
