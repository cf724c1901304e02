from __future__ import annotations

from pathlib import Path

import pytest

from dabnet.errors import InputError
from dabnet.packed import find_model, is_packed, model_names, read_model
from dabnet.packed.cards import read_card


def test_the_shipped_model_is_small_and_says_all_that_a_recognizer_needs() -> None:
    path = find_model("default")
    assert path.stat().st_size < 1_000_000
    model = read_model("default")
    assert is_packed(path)
    assert len(model.labels) == model.answers
    assert model.raster is not None
    assert model.input_size == (1, model.raster["size"], model.raster["size"])
    assert model.temperature != 1


@pytest.mark.parametrize("name", [*model_names(), "default"])
def test_a_file_or_a_run_with_a_models_name_wins_but_other_folders_do_not(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = find_model(name)
    monkeypatch.chdir(tmp_path)
    assert find_model(name) == find_model(Path(name)) == shipped
    Path(name).mkdir()
    assert find_model(name) == shipped  # drawings may be in a folder of that name
    assert find_model(tmp_path / name) == tmp_path / name
    Path(name, "best.safetensors").touch()
    assert find_model(name) == Path(name)


def test_the_default_is_the_first_of_the_models() -> None:
    assert find_model("default") == find_model(model_names()[0])


def test_a_misspelt_name_suggests_the_nearest_but_a_path_stays_a_path() -> None:
    for name, meant in (("tuberln", "tuberlin"), ("Tuberlin", "tuberlin"), ("defualt", "default")):
        with pytest.raises(InputError, match=f"no model '{name}'.*'dabnet models'.* Did you mean '{meant}'?"):
            find_model(name)
    for path in ("resnet18", "tuberlin.safetensors", "runs/tuberlin", "nothing like it"):
        assert find_model(path) == Path(path)


def test_every_model_has_a_card_that_fits_its_file_and_a_page() -> None:
    root = Path(__file__).parents[2]
    shipped = {path.stem for path in find_model("default").parent.glob("*.safetensors") if "." not in path.stem}
    assert shipped == set(model_names())
    for name in model_names():
        card, model = read_card(name), read_model(name)
        assert (card.name, card.classes, card.bytes) == (name, len(model.labels), find_model(name).stat().st_size)
        page = (root / card.page).read_text()
        for source in card.data:
            assert source.licence in page
            assert source.attribution in page
        for figures in card.accuracy:
            assert 0 < figures.top1 < figures.top5 < 1
            assert f"{figures.top1 * 100:.1f} % | {figures.top5 * 100:.1f} %" in page
            assert f"{figures.calibration_error * 100:.1f} %" in page
            assert figures.command in page


def test_what_is_no_packed_model_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("nothing")
    (tmp_path / "cut").write_bytes(find_model("default").read_bytes()[:100])
    for name in ("text", "cut", "none", ""):
        assert not is_packed(tmp_path / name)
