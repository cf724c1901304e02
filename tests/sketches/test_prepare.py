from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from dabnet.errors import InputError
from dabnet.sketches import prepare as preparing
from dabnet.sketches.prepare import prepare
from dabnet.sketches.raster import Raster, rasterize
from dabnet.sketches.sources import Source, open_source
from dabnet.sketches.store import SketchSet
from tests.sketches import published


def test_published_layouts_are_prepared_and_read_back(tmp_path: Path) -> None:
    folders = published.quickdraw(tmp_path / "quick")
    berlin = published.tu_berlin(tmp_path / "berlin")
    sources: list[str | Path] = [
        *folders,
        *published.arrays(tmp_path),
        berlin,
        published.sketchy(tmp_path / "sketchy"),
        "synthetic",
    ]
    for number, path in enumerate(sources):
        source = open_source(path, limit=30)
        made = prepare(source, tmp_path / f"{number}.parquet", raster=Raster(size=48), workers=1)
        drawings = [drawing for piece in range(len(source)) for drawing in source.read(piece)]
        stored = SketchSet(made.path)
        assert (made.drawings, made.left_out, made.resumed) == (len(drawings), [], 0)
        assert made.bytes == made.path.stat().st_size
        assert stored.ids.tolist() == [drawing.id for drawing in drawings]
        assert stored.labels.tolist() == [drawing.label for drawing in drawings]
        assert (stored.classes, stored.info.licence, stored.info.raster.size) == (source.classes, source.licence, 48)
        for row, drawing in enumerate(drawings):
            assert np.array_equal(rasterize(stored[row]), rasterize(drawing.sketch))  # type: ignore[arg-type]
        assert not list(tmp_path.glob("*.partial")) + list(tmp_path.glob("*.writing"))


def test_folds_are_the_sources_or_dealt_from_the_seed(tmp_path: Path) -> None:
    images, _ = published.arrays(tmp_path)
    stored = SketchSet(prepare(open_source(images), tmp_path / "own.parquet", workers=1).path)
    assert stored.folds.tolist() == [row % 3 for row in range(10)]
    berlin = open_source(published.tu_berlin(tmp_path / "berlin", each=9))
    first, again, other = (
        SketchSet(prepare(berlin, tmp_path / f"{name}.parquet", seed=seed, workers=1).path).folds
        for name, seed in (("first", 1), ("again", 1), ("other", 2))
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert set(np.bincount(3 * np.repeat([0, 1, 2], 9) + first)) == {3}


@pytest.mark.parametrize("listed", [True, False])
def test_sketchys_photos_are_never_divided_and_its_own_test_photos_are_fold_0(tmp_path: Path, listed: bool) -> None:
    source = open_source(published.sketchy(tmp_path / "sketchy", test_list=listed))
    stored = SketchSet(prepare(source, tmp_path / "set.parquet", workers=1).path)
    photos = np.array([name.rsplit("/", 2)[1] + name.rsplit("/", 1)[1].split("-")[0] for name in stored.ids])
    for photo in set(photos):
        assert len(set(stored.folds[photos == photo])) == 1
    tested = set(photos[stored.folds == 0])
    if listed:
        assert tested == {"applen07739125_3", "fishn07739125_5"}
    assert len(tested) == 2  # of ten photos per class
    assert set(stored.folds) == set(range(10))


def test_several_processes_give_the_same_file_as_one(tmp_path: Path) -> None:
    source = open_source("synthetic", limit=60)
    seen: list[tuple[int, int, int]] = []
    made = [
        prepare(source, tmp_path / f"{workers}.parquet", workers=workers, progress=lambda *news: seen.append(news))
        for workers in (1, 2)
    ]
    assert made[0].path.read_bytes() == made[1].path.read_bytes()
    pieces = len(source)
    assert [news[0] for news in seen] == 2 * list(range(pieces + 1))
    assert seen[-1] == (pieces, pieces, made[0].drawings)


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_source("synthetic", limit=100)
    output = tmp_path / "set.parquet"
    read: list[int] = []
    real = preparing._read_piece

    def note(source: Source, parts: list[Path], piece: int) -> int:
        if len(read) == 2:
            raise KeyboardInterrupt
        read.append(piece)
        return real(source, parts, piece)

    monkeypatch.setattr(preparing, "_read_piece", note)
    with pytest.raises(KeyboardInterrupt):
        prepare(source, output, workers=1)
    assert not output.exists()
    monkeypatch.setattr(preparing, "_read_piece", real)
    made = prepare(source, output, workers=1)
    assert made.resumed == 2
    whole = prepare(source, tmp_path / "whole.parquet", workers=1)
    assert output.read_bytes() == whole.path.read_bytes()


def test_work_begun_with_something_else_is_not_taken_over(tmp_path: Path) -> None:
    partial = tmp_path / "set.parquet.partial"
    partial.mkdir()
    (partial / "piece-000000.parquet").write_bytes(b"of another set")
    (partial / "plan.json").write_text('{"title": "Other"}')
    made = prepare(open_source("synthetic", limit=2), tmp_path / "set.parquet", workers=1)
    assert made.resumed == 0
    assert len(SketchSet(made.path)) == made.drawings


def test_unreadable_drawings_are_left_out_and_reported(tmp_path: Path) -> None:
    folder = published.tu_berlin(tmp_path / "berlin")
    whole = (folder / "png" / "apple" / "2.png").read_bytes()
    (folder / "png" / "apple" / "2.png").write_bytes(whole[:100])
    (folder / "png" / "clock" / "15.png").write_bytes(b"")
    made = prepare(open_source(folder), tmp_path / "set.parquet", workers=1)
    assert made.drawings == 16
    assert [name for name, _ in made.left_out] == ["2", "15"]
    stored = SketchSet(made.path)
    assert stored.info.left_out == made.left_out
    assert np.bincount(stored.labels).tolist() == [5, 6, 5]


def test_a_large_set_becomes_shards(tmp_path: Path) -> None:
    source = open_source("synthetic", limit=60)
    one = SketchSet(prepare(source, tmp_path / "one.parquet", workers=1).path)
    made = prepare(source, tmp_path / "many.parquet", workers=1, shard_rows=300)
    many = SketchSet(made.path)
    assert sorted(file.name for file in made.path.iterdir())[:2] == ["00000.parquet", "00001.parquet"]
    assert len(many) == len(one) == made.drawings
    assert np.array_equal(many.folds, one.folds)
    for row in range(0, len(one), 37):
        assert np.array_equal(many[row].points, one[row].points)  # type: ignore[arg-type]


def test_nothing_is_overwritten_or_made_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "set.parquet").write_text("precious")
    with pytest.raises(InputError, match="is already there: delete it first, or write to another file with -o"):
        prepare(open_source("synthetic", limit=1), tmp_path / "set.parquet")
    assert (tmp_path / "set.parquet").read_text() == "precious"
    (tmp_path / "bad" / "thing").mkdir(parents=True)
    (tmp_path / "bad" / "thing" / "1.png").write_bytes(b"rubbish")
    with pytest.raises(InputError, match=r"holds no drawing that can be read \(the first: thing/1.png: "):
        prepare(open_source(tmp_path / "bad"), tmp_path / "none.parquet", workers=1)
    assert not (tmp_path / "none.parquet").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        prepare(open_source("synthetic", limit=1), tmp_path / "file" / "set.parquet")


def test_a_full_disk_is_one_sentence_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_source("synthetic", limit=100)
    real = preparing._read_piece

    def fill(source: Source, parts: list[Path], piece: int) -> int:
        if piece == 2:
            raise OSError(28, os.strerror(28))
        return real(source, parts, piece)

    monkeypatch.setattr(preparing, "_read_piece", fill)
    with pytest.raises(InputError, match=r"No space left on device\): see to that, and run the same command again"):
        prepare(source, tmp_path / "set.parquet", workers=1)
    monkeypatch.setattr(preparing, "_read_piece", real)
    assert prepare(source, tmp_path / "set.parquet", workers=1).resumed == 2
