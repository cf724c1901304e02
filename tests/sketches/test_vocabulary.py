from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from dabnet.errors import InputError
from dabnet.packed import read_model
from dabnet.sketches.catalog import quickdraw_classes
from dabnet.sketches.folds import TRAIN_ONLY
from dabnet.sketches.prepare import prepare
from dabnet.sketches.sources import open_source, unite
from dabnet.sketches.store import SketchSet
from dabnet.sketches.vocabulary import Vocabulary, load_vocabulary
from tests.sketches import published


def test_every_class_of_tu_berlin_and_quick_draw_means_exactly_one_label_of_everyday() -> None:
    everyday = load_vocabulary("everyday")
    tu_berlin = read_model("tuberlin").labels
    quickdraw = quickdraw_classes()
    assert (len(tu_berlin), len(quickdraw)) == (250, 345)
    times = Counter(name for names in everyday.names.values() for name in names)
    assert all(times[name] == 1 for name in {*tu_berlin, *quickdraw})
    assert set(everyday.labels) == set(everyday.labels_of([*tu_berlin, *quickdraw]))
    assert 370 <= len(everyday.labels) <= 420


def test_what_is_no_vocabulary_is_refused_with_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "words.toml"
    for text, sentence in (
        ("car = [", "cannot be read"),
        ("car = 'car'", "needs a list of names for 'car'"),
        ("car = []", "needs a list of names for 'car'"),
        ("car = ['car', 'suv']\nsuv = ['suv']", "has 'suv' twice, under 'car' and 'suv'"),
        ("", "is empty"),
    ):
        file.write_text(text)
        with pytest.raises(InputError, match=sentence):
            load_vocabulary(file)
    with pytest.raises(InputError, match=r"no vocabulary 'everday'.* everyday"):
        load_vocabulary("everday")
    with pytest.raises(InputError, match="does not say what 'spork' and 1 more means: add a line to it"):
        load_vocabulary("everyday").labels_of(["cat", "spork", "foon"])


def test_a_union_has_one_label_for_what_means_the_same_and_each_source_keeps_its_folds(tmp_path: Path) -> None:
    images, strokes = published.arrays(tmp_path)
    berlin = published.tu_berlin(tmp_path / "berlin", each=9)
    words = Vocabulary(
        "words", {"fruit": ("apple",), "sea animal": ("fish",), "car": ("car (sedan)",), "time": ("clock",)}
    )
    sources = [open_source(path) for path in (images, berlin, strokes)]
    united = unite(sources, words)
    stored = SketchSet(prepare(united, tmp_path / "union.parquet", folds=[3, 4, 0], seed=5, workers=1).path)
    assert stored.classes == ["fruit", "sea animal", "car", "time"]
    assert [rows for _, rows in stored.info.sources] == [10, 27, 10]
    assert stored.sources.tolist() == [0] * 10 + [1] * 27 + [2] * 10
    alone = [SketchSet(prepare(source, tmp_path / f"{n}.parquet", folds=folds, seed=5, workers=1).path)
             for n, (source, folds) in enumerate(zip(sources, (3, 4, 3), strict=True))]  # fmt: skip
    assert np.array_equal(stored.folds, [*alone[0].folds, *alone[1].folds, *[TRAIN_ONLY] * 10])
    given = [name for each in alone for name in np.array(each.classes)[each.labels]]
    assert [stored.classes[label] for label in stored.labels] == words.labels_of(given)
    assert stored.ids.tolist() == [name for each in alone for name in each.ids.tolist()]


def test_a_union_that_cannot_be_tested_or_told_apart_is_refused(tmp_path: Path) -> None:
    _, strokes = published.arrays(tmp_path)
    words = Vocabulary("words", {"apple": ("apple",), "fish": ("fish",)})
    source = open_source(strokes)
    with pytest.raises(InputError, match="have the same name"):
        unite([source, source], words)
    united = unite([source], words)
    with pytest.raises(InputError, match="1 sources and 2 numbers of folds"):
        prepare(united, tmp_path / "union.parquet", folds=[3, 3])
    with pytest.raises(InputError, match="for training only: let at least one have folds"):
        prepare(united, tmp_path / "union.parquet", folds=[0])
    assert not list(tmp_path.glob("union*"))
