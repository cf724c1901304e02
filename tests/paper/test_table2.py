from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from dabnet.errors import InputError
from dabnet.sketches.prepare import prepare
from dabnet.sketches.sources import open_source
from dabnet.training.recipe import Recipe
from paper import table2
from paper.runs import Scale, open_scale
from paper.table2 import find_table2, train_missing
from paper.table3 import find_table3

TINY = Recipe(
    width=0.125, shortcuts="conv", size=32, epochs=1, batch_size=8, schedule="one-cycle", crops=1,
    classes=["cat", "sun"],
)  # fmt: skip


@pytest.fixture
def scale(tmp_path: Path) -> Scale:
    """Two recipes of one network, and no run of them."""
    folder = tmp_path / "recipes" / "small"
    folder.mkdir(parents=True)
    for variant, recipe in (("fbin-xnor", replace(TINY, weights="xnor")), ("fbin-dab", TINY)):
        (folder / f"tuberlin-resnet18-{variant}.toml").write_text(recipe.to_toml())
    return open_scale("small", tmp_path / "recipes", [tmp_path / "published", tmp_path / "runs"])


def finish(folder: Path, recipe: Recipe, top1: float, error: float) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recipe.toml").write_text(recipe.to_toml())
    (folder / "result.json").write_text(json.dumps({"top1": top1, "top5": 1.0}))
    columns = "epoch,layer,alpha,beta,k_share,flip,error"
    (folder / "traces.csv").write_text(f"{columns}\n1,a,0.1,0.1,0.4,0.01,{error}\n")


def test_what_is_missing_is_trained_and_nothing_else(scale: Scale, tmp_path: Path) -> None:
    data = prepare(open_source("synthetic", limit=12), tmp_path / "set.parquet", workers=1).path
    finish(tmp_path / "published" / "tuberlin-resnet18-fbin-xnor", replace(TINY, weights="xnor"), 0.5, 0.4)
    missing = find_table2(scale).figures["missing"]
    assert "tuberlin-resnet18-fbin-dab" in missing
    assert "tuberlin-resnet18-fbin-xnor" not in missing

    def train() -> None:
        train_missing(
            scale, data, "tuberlin", tmp_path / "runs",
            networks=["resnet18"], folds=[0], seeds=[0], device="cpu", console=Console(quiet=True),
        )  # fmt: skip

    train()
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["tuberlin-resnet18-fbin-dab"]
    finding = find_table2(scale)
    assert set(finding.figures["runs"]) == {"tuberlin-resnet18-fbin-dab", "tuberlin-resnet18-fbin-xnor"}
    rows = {row[0]: row for row in finding.tables[0].rows}
    assert rows["ResNet-18, FBin XNOR-Net"][1:] == ("50.0", "68.8", "-", "82.8")
    assert any(remark.startswith("ResNet-18, FBin, TU-Berlin: DAB-Net is ") for remark in finding.remarks)
    written = (tmp_path / "runs" / "tuberlin-resnet18-fbin-dab" / "last.ckpt").stat().st_mtime_ns
    train()
    assert (tmp_path / "runs" / "tuberlin-resnet18-fbin-dab" / "last.ckpt").stat().st_mtime_ns == written


def test_a_run_that_was_stopped_goes_on_and_one_begun_otherwise_is_left_alone(
    scale: Scale, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = prepare(open_source("synthetic", limit=12), tmp_path / "set.parquet", workers=1).path
    asked: list[tuple[str, int, int]] = []

    def fit(folder: Path, recipe: Recipe, sketches: Any, fold: int, **_: Any) -> None:
        asked.append((folder.name, fold, recipe.seed))
        if len(asked) == 2:
            raise KeyboardInterrupt
        finish(folder, recipe, 0.5, 0.4)

    def train(seeds: list[int], fold: int = 1) -> None:
        train_missing(
            scale, data, "tuberlin", tmp_path / "runs",
            networks=["resnet18"], folds=[fold], seeds=seeds, console=Console(quiet=True),
        )  # fmt: skip

    monkeypatch.setattr(table2, "fit", fit)
    with pytest.raises(KeyboardInterrupt):
        train([0, 1])
    train([0, 1])
    xnor, dab = "tuberlin-resnet18-fbin-xnor-fold1", "tuberlin-resnet18-fbin-dab-fold1"
    stopped = (f"{xnor}-seed1", 1, 1)
    assert asked == [(xnor, 1, 0), stopped, stopped, (dab, 1, 0), (f"{dab}-seed1", 1, 1)]

    (tmp_path / "runs" / dab / "result.json").unlink()
    (tmp_path / "runs" / dab / "recipe.toml").write_text(replace(TINY, epochs=9).to_toml())
    with pytest.raises(InputError, match="was begun with other settings"):
        train([0])
    with pytest.raises(InputError, match="has no fold 7"):
        train([0], fold=7)
    assert not list((tmp_path / "runs").glob("*-fold7*"))


def test_a_rival_that_is_ahead_is_said_to_be_ahead_and_the_traces_say_what_they_show(
    scale: Scale, tmp_path: Path
) -> None:
    published = tmp_path / "published"
    for seed, (xnor, dab) in enumerate([(0.50, 0.40), (0.52, 0.42)]):
        suffix = f"-seed{seed}" if seed else ""
        finish(published / f"tuberlin-resnet18-fbin-xnor{suffix}", replace(TINY, weights="xnor", seed=seed), xnor, 0.37)
        finish(published / f"tuberlin-resnet18-fbin-dab{suffix}", replace(TINY, seed=seed), dab, 0.38)
    said = " ".join(find_table2(scale).remarks)
    assert "DAB-Net is behind XNOR-Net (-10.0 points)" in said
    assert "0.380 against 0.370. A better fit to given weights did not become a better fit of trained ones" in said
    assert "1.0% against 1.0% of its weights change sides. Whether" in said
    (published / "tuberlin-resnet18-fbin-dab" / "flips.md").write_text("counted otherwise")
    (published / "tuberlin-resnet18-fbin-dab-seed1" / "flips.md").write_text("counted otherwise")
    assert "change sides" not in " ".join(find_table2(scale).remarks)
    assert "Missing of Sketchy" in said
    assert "--data sketchy.parquet --data-set sketchy" in said
    assert find_table3(scale).figures["dab"]["tuberlin-resnet18-fbin-dab"]["here"] == pytest.approx(0.41)


def test_what_makes_no_sense_is_one_sentence(scale: Scale, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no recipes"):
        open_scale("full", tmp_path / "recipes", [])
    with pytest.raises(InputError, match="'medium' is not a scale"):
        open_scale("medium", tmp_path / "recipes", [])
