from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from dabnet.errors import InputError
from dabnet.runtime.evaluation import Evaluation
from dabnet.training.pictures import draw_confusion, draw_curves, draw_traces

BLUE, ORANGE = (0x1D, 0x4E, 0xD8), (0xC2, 0x41, 0x0C)
CURVES = ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "learning_rate")


def answers(classes: int, drawings: int = 300, sure: float = 2.0) -> Evaluation:
    rng = np.random.default_rng(classes)
    labels = rng.integers(classes, size=drawings)
    logits = rng.normal(size=(drawings, classes))
    logits[np.arange(drawings), labels] += sure
    return Evaluation.from_logits(labels, logits, [f"thing {i}" for i in range(classes)])


def metrics(epochs: int) -> list[dict[str, Any]]:
    return [
        {
            "epoch": epoch,
            "train_loss": 4 / (epoch + 1),
            "train_accuracy": 1 - 1 / (epoch + 1),
            "validation_loss": 5 / (epoch + 1) + 0.1 * epoch,
            "validation_accuracy": 0.8 - 0.6 / (epoch + 1) - 0.01 * epoch,
            "learning_rate": 0.01 * 0.9**epoch,
            "images_per_second": 500 + epoch,
        }
        for epoch in range(epochs)
    ]


def traces(epochs: int, layers: int) -> list[dict[str, Any]]:
    return [
        {
            "epoch": epoch,
            "layer": f"layer{layer}",
            "alpha": 0.1 + 0.01 * epoch,
            "beta": -0.1 - 0.01 * layer,
            "k_share": 0.5 - 0.01 * layer,
            "flip": 0.1 / (epoch + 1) if epoch else "",
            "error": 0.3 + 0.01 * layer,
        }
        for epoch in range(epochs)
        for layer in range(layers)
    ]


def pixels(path: Path) -> NDArray[np.uint8]:
    """Read a picture, having checked that it is alone in its folder and not blank."""
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    with Image.open(path) as image:
        found = np.asarray(image.convert("RGB"))
    assert 0.001 < (found < 200).any(axis=-1).mean() < 0.9
    return found


def count(image: NDArray[np.uint8], colour: tuple[int, int, int]) -> int:
    return int((np.abs(image.astype(int) - colour) <= 1).all(axis=-1).sum())  # a renderer may round either way


def write_csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize("classes", [1, 2, 10, 30])
def test_a_confusion_matrix_of_few_classes_grows_with_them(tmp_path: Path, classes: int) -> None:
    path = tmp_path / "confusion.png"
    draw_confusion(answers(classes), path)
    height, width, _ = pixels(path).shape
    cell = 0.62 if classes <= 12 else 0.4
    assert (width, height) == (round(150 * max(5.5, 2.6 + cell * classes)), round(150 * (2.2 + cell * classes)))


@pytest.mark.parametrize("classes", [31, 250])
def test_a_confusion_matrix_of_many_classes_is_a_heat_map_with_the_worst_mistakes(tmp_path: Path, classes: int) -> None:
    path = tmp_path / "confusion.png"
    draw_confusion(answers(classes), path)
    image = pixels(path)
    assert image.shape == (1290, 2250, 3)
    assert count(image, ORANGE) > 10_000  # bars


def test_right_answers_are_blue_and_mistakes_are_orange(tmp_path: Path) -> None:
    path = tmp_path / "confusion.png"
    names = ["a", "b", "c"]
    labels = np.arange(3)
    draw_confusion(Evaluation.from_logits(labels, np.eye(3), names), path)
    image = pixels(path).astype(int)
    assert count(pixels(path), BLUE) > 3 * 50**2
    assert not (image[..., 0] > image[..., 2] + 40).any()
    draw_confusion(Evaluation.from_logits(labels, np.eye(3)[[1, 2, 0]], names), path)
    image = pixels(path).astype(int)
    assert (image[..., 0] > image[..., 2] + 40).sum() > 3 * 50**2
    assert not (image[..., 2] > image[..., 0] + 60).any()


@pytest.mark.parametrize("classes", [8, 40])
def test_a_perfect_network_has_a_picture_too(tmp_path: Path, classes: int) -> None:
    path = tmp_path / "confusion.png"
    draw_confusion(answers(classes, sure=100), path)
    pixels(path)


@pytest.mark.parametrize("classes", [4, 40])
def test_any_class_name_is_drawn_as_it_is(tmp_path: Path, classes: int) -> None:
    names = ["$x_", "\\frac{", "a very long name that would leave no room for the matrix", *map(str, range(classes))]
    labels = np.arange(classes)
    path = tmp_path / "confusion.png"
    draw_confusion(Evaluation.from_logits(labels, np.eye(classes)[::-1], names[:classes]), path)
    pixels(path)


def test_classes_without_drawings_have_an_empty_row(tmp_path: Path) -> None:
    path = tmp_path / "confusion.png"
    draw_confusion(Evaluation.from_logits(np.array([0]), np.zeros((1, 4)), list("abcd")), path)
    assert 50**2 < count(pixels(path), BLUE) < 2 * 100**2


def test_curves_have_a_panel_for_loss_accuracy_and_learning_rate(tmp_path: Path) -> None:
    path = tmp_path / "curves.png"
    draw_curves(metrics(30), path)
    image = pixels(path)
    assert image.shape == (1200, 1200, 3)
    assert count(image, BLUE) > 1000  # validation
    assert count(image, ORANGE) > 50  # its best


def test_curves_are_the_same_from_a_file_as_from_rows(tmp_path: Path) -> None:
    (tmp_path / "from_rows").mkdir()
    (tmp_path / "from_file").mkdir()
    first, second = tmp_path / "from_rows" / "curves.png", tmp_path / "from_file" / "curves.png"
    draw_curves(metrics(5), first)
    draw_curves(write_csv(tmp_path / "metrics.csv", metrics(5)), second)
    assert np.array_equal(pixels(first), pixels(second))


def test_rows_in_any_order_with_gaps_and_repeats_give_the_same_curves(tmp_path: Path) -> None:
    """As of a training whose validation has rows of its own, and that was resumed after a crash."""
    (tmp_path / "plain").mkdir()
    (tmp_path / "mixed").mkdir()
    first, second = tmp_path / "plain" / "curves.png", tmp_path / "mixed" / "curves.png"
    draw_curves(metrics(6), first)
    train = [{name: value for name, value in row.items() if "validation" not in name} for row in metrics(6)]
    validation = [
        {name: value if name == "epoch" or "validation" in name else "" for name, value in row.items()}
        for row in metrics(6)
    ]
    stale: list[dict[str, Any]] = [
        {"epoch": 2, "train_loss": 9.0},
        {"epoch": 3, "train_loss": math.nan},
        {"epoch": None, "train_loss": 7},
    ]
    draw_curves([*stale, *validation[::-1], *train], second)
    assert np.array_equal(pixels(first), pixels(second))


@pytest.mark.parametrize(
    ("columns", "epochs", "height"),
    [
        (("train_loss",), 1, 4),
        (("validation_accuracy",), 12, 4),
        (("train_loss", "validation_loss", "train_accuracy"), 2, 7),
        (("learning_rate",), 12, 2),
        (CURVES, 1, 8),
    ],
)
def test_what_was_not_measured_takes_no_room(
    tmp_path: Path, columns: tuple[str, ...], epochs: int, height: int
) -> None:
    path = tmp_path / "curves.png"
    draw_curves([{name: row[name] for name in ("epoch", *columns)} for row in metrics(epochs)], path)
    assert pixels(path).shape == (height * 150, 1200, 3)


@pytest.mark.parametrize("last", [0.0, 1e-300])
def test_a_learning_rate_may_end_at_0_or_next_to_it(tmp_path: Path, last: float) -> None:
    path = tmp_path / "curves.png"
    rates = [0.3, 0.2, 0.1, last]
    draw_curves([{"epoch": epoch, "learning_rate": rate} for epoch, rate in enumerate(rates)], path)
    pixels(path)


@pytest.mark.parametrize(("epochs", "layers"), [(1, 1), (30, 2), (1, 3), (30, 17)])
def test_traces_have_four_panels_and_a_line_a_layer(tmp_path: Path, epochs: int, layers: int) -> None:
    path = tmp_path / "traces.png"
    draw_traces(traces(epochs, layers), path)
    image = pixels(path)
    assert image.shape == (1050, 1500, 3)
    assert count(image, (68, 1, 84)) > 50  # the first layer's colour, at least in the legend
    assert (count(image, (189, 223, 38)) > 50) == (layers > 1)  # the last one's


def test_traces_may_lack_columns_and_be_read_from_a_file(tmp_path: Path) -> None:
    rows = [{name: row[name] for name in ("epoch", "layer", "k_share")} for row in traces(4, 3)]
    (tmp_path / "pictures").mkdir()
    path = tmp_path / "pictures" / "traces.png"
    draw_traces(write_csv(tmp_path / "traces.csv", rows), path)
    pixels(path)


def test_layers_that_stand_still_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "traces.png"
    draw_traces([{"epoch": epoch, "layer": "_$conv", "flip": 0.0} for epoch in range(5)], path)
    image = pixels(path)
    assert count(image[:900], (68, 1, 84)) > 500


@pytest.mark.parametrize("rows", [[], [{"epoch": 1}], [{"train_loss": 2.0}], [{"epoch": 0, "train_loss": math.nan}]])
def test_a_table_with_nothing_to_draw_is_an_error(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    with pytest.raises(InputError, match=r"the table has no loss, accuracy or learning rate"):
        draw_curves(rows, tmp_path / "curves.png")
    with pytest.raises(InputError, match=r"the table has no binary layer's values"):
        draw_traces(rows, tmp_path / "traces.png")
    assert not list(tmp_path.iterdir())


def test_a_table_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read '.*none.csv' \(No such file"):
        draw_curves(tmp_path / "none.csv", tmp_path / "curves.png")
    (tmp_path / "picture.csv").write_bytes(b"epoch,train_loss\n\xff\xfe\x00,1\n")
    with pytest.raises(InputError, match="is not a CSV file"):
        draw_curves(tmp_path / "picture.csv", tmp_path / "curves.png")
    with pytest.raises(InputError, match="'much' is not a number, and column 'train_loss' must hold numbers"):
        draw_curves([{"epoch": 1, "train_loss": "much"}], tmp_path / "curves.png")


@pytest.mark.parametrize("kind", ["svg", "pdf", "PNG"])
def test_the_name_chooses_the_kind_of_picture(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"curves.v2.{kind}"
    draw_curves(metrics(3), str(path))
    start = path.read_bytes()[:5]
    assert start in (b"<?xml", b"%PDF-", b"\x89PNG\r")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["curves", "curves.csv", ".png"])
def test_a_name_without_a_kind_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"end its name in .png, .svg or .pdf"):
        draw_curves(metrics(3), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_an_unwritable_path_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot write '.*' \(No such file or directory\): choose another place"):
        draw_curves(metrics(3), tmp_path / "none" / "curves.png")
    folder = tmp_path / "folder.png"
    folder.mkdir()
    draws: list[tuple[Callable[[Any, Path], None], Any]] = [
        (draw_confusion, answers(3)),
        (draw_curves, metrics(3)),
        (draw_traces, traces(2, 2)),
    ]
    for draw, data in draws:
        with pytest.raises(InputError, match=r"cannot write '.*folder.png' \(Is a directory\)"):
            draw(data, folder)
    assert list(tmp_path.rglob("*")) == [folder]
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InputError, match=r"\(Not a directory\)"):
        draw_curves(metrics(3), file / "curves.png")


def test_a_picture_that_fails_halfway_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "curves.png"
    draw_curves(metrics(3), path)
    before = path.read_bytes()

    def fill_the_disk(self: Any, target: Any, **_: Any) -> None:
        target.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dabnet.training.pictures.Figure.savefig", fill_the_disk)
    with pytest.raises(InputError, match="No space left"):
        draw_curves(metrics(4), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
