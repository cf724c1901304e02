from __future__ import annotations

import pickle
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dabnet.errors import InputError
from dabnet.sketches.raster import Raster, rasterize
from dabnet.sketches.sketch import Sketch
from dabnet.sketches.sources import Drawing, Source, open_source
from tests.sketches import published
from tests.sketches.drawings import agreement, encode, paint

RASTER = Raster(size=64, pen=0.04)
THICK = Raster(size=64, pen=0.09)  # as bitmaps of 28x28 pixels have it


def read_all(source: Source) -> list[Drawing]:
    again = pickle.loads(pickle.dumps(source))  # as for another process
    return [drawing for piece in range(len(again)) for drawing in again.read(piece)]


def good(drawings: list[Drawing]) -> Iterator[Sketch]:
    for drawing in drawings:
        assert isinstance(drawing.sketch, Sketch), drawing
        yield drawing.sketch


def test_tu_berlin_is_the_same_as_folder_zip_and_svg(tmp_path: Path) -> None:
    folder = published.tu_berlin(tmp_path / "sketches")
    archive = published.zip_folder(folder, tmp_path / "sketches_png.zip")
    curves = published.tu_berlin(tmp_path / "curves", kind="svg")
    read = {}
    for path in (folder, archive, curves, folder / "png"):
        source = open_source(path)
        assert (source.title, source.folds) == ("TU-Berlin", 3) or path.name == "png"
        assert source.classes == ["apple", "car (sedan)", "clock"]
        read[path] = read_all(source)
        assert [drawing.label for drawing in read[path]] == [0] * 6 + [1] * 6 + [2] * 6
    assert [drawing.id for drawing in read[folder]] == [str(number) for number in range(1, 19)]
    for one, two, three in zip(good(read[folder]), good(read[archive]), good(read[curves]), strict=True):
        assert np.array_equal(rasterize(one, RASTER), rasterize(two, RASTER))
        assert agreement(rasterize(one, RASTER), rasterize(three, RASTER)) > 0.98


def test_sketchy_keeps_the_sketches_of_a_photo_together_and_its_own_test_photos(tmp_path: Path) -> None:
    drawings = read_all(open_source(published.sketchy(tmp_path)))
    assert len(drawings) == 60  # one view of each
    assert all("tx_000000000000" in drawing.id for drawing in drawings)
    assert [drawing.group for drawing in drawings[:4]] == ["apple/n07739125_0"] * 3 + ["apple/n07739125_1"]
    assert {drawing.group for drawing in drawings if drawing.fold == 0} == {"apple/n07739125_3", "fish/n07739125_5"}
    assert all(isinstance(drawing.sketch, Sketch) for drawing in drawings)


def test_quickdraw_is_the_same_in_every_form(tmp_path: Path) -> None:
    lines, records, bitmaps = (read_all(open_source(folder)) for folder in published.quickdraw(tmp_path))
    assert [drawing.id for drawing in lines[:2]] == ["1000000000000000", "1000000000000001"]
    assert [drawing.id for drawing in bitmaps[:2]] == ["cat.npy row 0", "cat.npy row 1"]
    assert [(d.id, d.label) for d in lines] == [(d.id, d.label) for d in records]
    assert [d.label for d in lines] == [d.label for d in bitmaps]
    for one, two, three in zip(good(lines), good(records), good(bitmaps), strict=True):
        assert np.array_equal(rasterize(one, RASTER), rasterize(two, RASTER))
        assert agreement(rasterize(one, THICK), rasterize(three, THICK)) > 0.9
    source = open_source(tmp_path / "ndjson")
    assert source.classes == ["cat", "hot air balloon", "sun"]
    assert "CC BY 4.0" in source.licence


def test_a_long_file_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, _, bitmaps = published.quickdraw(tmp_path)
    whole, rows = read_all(open_source(folder)), read_all(open_source(bitmaps))
    monkeypatch.setattr("dabnet.sketches.sources.quickdraw.BYTES_PER_PIECE", 700)
    monkeypatch.setattr("dabnet.sketches.sources.quickdraw.BITMAPS_PER_PIECE", 3)
    assert len(open_source(folder)) > 10
    assert [drawing.id for drawing in read_all(open_source(folder))] == [drawing.id for drawing in whole]
    assert [drawing.id for drawing in read_all(open_source(bitmaps))] == [drawing.id for drawing in rows]


def test_arrays_give_images_or_strokes_with_their_ids_and_folds(tmp_path: Path) -> None:
    images, strokes = (read_all(open_source(path)) for path in published.arrays(tmp_path))
    assert [drawing.id for drawing in images] == ["0"] * 5 + ["100"] * 5
    assert [drawing.fold for drawing in images] == [row % 3 for row in range(10)]
    assert [(drawing.id, drawing.fold) for drawing in strokes] == [("7", None)] * 5 + [("8", None)] * 5
    for one, two in zip(good(images), good(strokes), strict=True):
        assert agreement(rasterize(one, RASTER), rasterize(two, RASTER)) > 0.98


def test_a_folder_of_your_own_may_mix_forms_and_have_splits(tmp_path: Path) -> None:
    drawing = published.strokes("fish", 1)
    for split, name in (("train", "fish"), ("test", "fish"), ("train", "cup"), ("val", "cup")):
        (tmp_path / split / name).mkdir(parents=True)
        (tmp_path / split / name / "1.png").write_bytes(encode(paint(drawing, size=300)))
        (tmp_path / split / name / "2.svg").write_text(published.svg(drawing))
        (tmp_path / split / name / "notes.txt").write_text("not a drawing")
    drawings = read_all(open_source(tmp_path))
    assert [(d.id, d.label, d.fold) for d in drawings if d.id.endswith("png")] == [
        ("test/fish/1.png", 1, 0),
        ("train/cup/1.png", 0, 1),
        ("train/fish/1.png", 1, 1),
        ("val/cup/1.png", 0, 2),
    ]
    assert [sketch.image is None for sketch in good(drawings)] == [False, True] * 4


def test_synthetic_is_a_source_of_drawings() -> None:
    source = open_source("synthetic", limit=4)
    drawings = read_all(source)
    assert len(drawings) == 4 * len(source.classes)
    assert set(np.bincount([drawing.label for drawing in drawings])) == {4}
    assert list(good(drawings))


def test_a_limit_takes_the_first_of_each_class(tmp_path: Path) -> None:
    folders = published.quickdraw(tmp_path / "quick")
    paths = [*folders, *published.arrays(tmp_path), published.tu_berlin(tmp_path / "berlin")]
    for path in paths:
        whole, some = read_all(open_source(path)), read_all(open_source(path, limit=2))
        firsts = [[d.id for d in whole if d.label == label][:2] for label in range(len(open_source(path).classes))]
        assert [d.id for d in some] == [name for names in firsts for name in names]


def test_what_cannot_be_read_is_an_error_in_its_place(tmp_path: Path) -> None:
    folder = published.tu_berlin(tmp_path / "sketches") / "png" / "apple"
    whole = (folder / "2.png").read_bytes()
    (folder / "2.png").write_bytes(whole[: len(whole) // 2])
    (folder / "3.png").write_bytes(b"")
    for path in (tmp_path / "sketches", published.zip_folder(tmp_path / "sketches", tmp_path / "some.zip")):
        drawings = read_all(open_source(path))
        assert len(drawings) == 18
        bad = {drawing.id: str(drawing.sketch) for drawing in drawings if isinstance(drawing.sketch, InputError)}
        assert list(bad) == ["2", "3"]
        assert "damaged" in bad["2"]
        assert "empty" in bad["3"]


def test_a_damaged_member_of_an_archive_is_an_error_in_its_place(tmp_path: Path) -> None:
    archive = published.zip_folder(published.tu_berlin(tmp_path / "sketches"), tmp_path / "some.zip")
    data = bytearray(archive.read_bytes())
    with zipfile.ZipFile(archive) as opened:
        start = opened.getinfo("png/apple/4.png").header_offset + 80
    data[start : start + 20] = bytes(20)
    archive.write_bytes(data)
    bad = [drawing.id for drawing in read_all(open_source(archive)) if isinstance(drawing.sketch, InputError)]
    assert bad == ["4"]


def test_sources_that_cannot_be_used_are_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "set.rar").write_bytes(b"x")
    (tmp_path / "broken.zip").write_bytes(b"PK rubbish")
    (tmp_path / "broken.npz").write_bytes(b"PK rubbish")
    (tmp_path / "two").mkdir()
    for name in ("cat.ndjson", "cat.bin"):
        (tmp_path / "two" / name).write_bytes(b"")
    np.save(tmp_path / "cat.npy", np.zeros((3, 5)))
    for name, words in {
        "nothing": "is not there: check the path, or get a data set",
        "empty": "holds no drawings",
        "set.rar": "is no data set that can be read",
        "broken.zip": "is not a whole zip archive",
        "broken.npz": "is not a whole .npz file",
        "two": "more than one file of class 'cat'",
        "cat.npy": "is not Quick, Draw!'s bitmaps",
    }.items():
        with pytest.raises(InputError, match=words):
            open_source(tmp_path / name)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"labels": None}, "has no 'labels'"),
        ({"class_names": None}, "has no 'class_names'"),
        ({"points": None}, "has no 'points'"),
        ({"labels": np.array([0, 2])}, "must be from 0 to 1"),
        ({"labels": np.array([0.0, 1.0])}, "must be one integer per drawing"),
        ({"offsets": np.array([0, 2])}, "offsets"),
        ({"offsets": np.array([0, 5, 4])}, "offsets"),
        ({"end_of_stroke": np.array([0, 1])}, "end_of_stroke"),
        ({"images": np.zeros((3, 8, 8), np.uint8)}, r"must be uint8 \(2, height, width\), not uint8 \(3, 8, 8\)"),
        ({"images": np.zeros((2, 8, 8), np.float32)}, "must be uint8"),
        ({"images": np.array([{}, {}])}, "stored row by row, as numbers"),
        ({"labels": np.array([{}, {}])}, "not a whole .npz file"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_in_a_sentence(
    tmp_path: Path, change: dict[str, object], words: str
) -> None:
    content: dict[str, object] = {
        "points": np.array([[0, 0], [1, 1], [2, 2], [3, 3]]),
        "end_of_stroke": np.array([0, 1, 0, 1]),
        "offsets": np.array([0, 2, 4]),
        "labels": np.array([0, 1]),
        "class_names": np.array(["a", "b"]),
    }
    content = {key: value for key, value in {**content, **change}.items() if value is not None}
    np.savez(tmp_path / "set.npz", **content)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=words):
        open_source(tmp_path / "set.npz")
