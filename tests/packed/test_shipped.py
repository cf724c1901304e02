from __future__ import annotations

from pathlib import Path

import pytest

from dabnet.packed import find_model, is_packed, read_model


def test_the_shipped_model_is_small_and_says_all_that_a_recognizer_needs() -> None:
    path = find_model("default")
    assert path.stat().st_size < 1_000_000
    model = read_model("default")
    assert is_packed(path)
    assert len(model.labels) == model.answers
    assert model.raster is not None
    assert model.input_size == (1, model.raster["size"], model.raster["size"])
    assert model.temperature != 1


def test_a_file_or_folder_named_default_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = find_model("default")
    monkeypatch.chdir(tmp_path)
    assert find_model("default") == find_model(Path("default")) == shipped
    Path("default").mkdir()
    assert find_model("default") == Path("default")
    assert find_model(tmp_path / "default") == tmp_path / "default"


def test_what_is_no_packed_model_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("nothing")
    (tmp_path / "cut").write_bytes(find_model("default").read_bytes()[:100])
    for name in ("text", "cut", "none", ""):
        assert not is_packed(tmp_path / name)
