from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from dabnet.cli import main
from dabnet.comparing.fresh import fresh_model
from dabnet.errors import InputError
from dabnet.packed import Model, read_model, to_bytes
from dabnet.packed.nodes import Conv, Relu, Sign
from dabnet.runtime import Recognizer, Session
from dabnet.sketches.raster import show_batch
from dabnet.sketches.store import SketchSet
from dabnet.sketches.synthetic import draw_thing
from dabnet.training.data import divide
from dabnet.training.finetune import find_features, finetune, fit_head, tuning_recipe
from tests import warm
from tests.training.tuning import interrupt_learning, small_model

THINGS = ["cat", "house", "key", "sun", "tree"]
QUICK = ["epochs=3", 'classes=["cat", "house", "key", "sun", "tree"]']


@pytest.fixture
def drawings(tmp_path: Path) -> Path:
    """Nine drawings of each of five things, a folder a thing."""
    for name in THINGS:
        (tmp_path / "mine" / name).mkdir(parents=True)
        for i in range(9):
            strokes = draw_thing(name, np.random.default_rng([5, i])).strokes
            path = tmp_path / "mine" / name / f"{i}.json"
            path.write_text(json.dumps([stroke.tolist() for stroke in strokes]))
    return tmp_path / "mine"


def test_the_shipped_model_learns_classes_from_a_folder_of_drawings(drawings: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tuned"
    arguments = ("--from", "default", "--data", drawings, "-o", folder, "--set", "epochs=4")
    done = warm.run("train", "--threads", 1, *arguments, COLUMNS="200", NO_COLOR="1", TERM="dumb")
    assert done.returncode == 0, done.stderr
    for words in ("45 drawings of 5 classes", "5 classes learnt from 30 drawings", "On 15 others, of fold 0: top-1"):
        assert words in done.stdout
    assert {path.name for path in folder.iterdir()} == {"data.parquet", "model.safetensors", "result.json"}
    result = json.loads((folder / "result.json").read_text())
    assert result["top1"] > 0.7
    assert (result["learnt_from"], result["drawings"], result["views"]) == (30, 15, 4)
    assert result["command"].startswith("dabnet train --from default --data ")
    assert result["seconds"] > 0

    # The file is all that it takes: its answers are those that the test counted.
    recognizer = Recognizer.load(folder / "model.safetensors")
    assert recognizer.labels == THINGS
    sketches = SketchSet(folder / "data.parquet")
    rows = np.flatnonzero(sketches.folds == 0)
    guesses = [answer[0][0] for answer in recognizer.recognize(sketches.read(rows), top=1)]
    assert np.mean([guess == THINGS[sketches.labels[row]] for guess, row in zip(guesses, rows, strict=True)]) == (
        pytest.approx(result["top1"])
    )
    shipped, tuned = read_model("default"), read_model(folder / "model.safetensors")
    assert len(to_bytes(tuned)) < len(to_bytes(shipped))
    assert tuned.raster == shipped.raster


@pytest.mark.parametrize(
    ("settings", "dropped"),
    [({"precision": "fbin"}, 1), ({"precision": "fbin", "real_last": True}, 0), ({"precision": "wbin"}, 0)],
)
def test_all_layers_but_the_last_stay_as_they_are(small_set: Path, settings: dict[str, Any], dropped: int) -> None:
    model, sketches = small_model(**settings), SketchSet(small_set)
    told: list[tuple[int, int]] = []
    recipe = tuning_recipe(model, QUICK)
    found = finetune(model, sketches, recipe, 1, progress=lambda *now: told.append(now))
    assert found.model.nodes[:-1] == model.nodes[: -1 - dropped]  # signs before a binary last layer go with it
    assert (found.model.labels, found.model.raster) == (tuple(THINGS), model.raster)
    assert found.model.temperature >= 0.5
    assert (found.drawings, found.views) == (200, 3)
    assert told[-1] == (600, 600)
    assert 0 <= found.accuracy <= 1
    learnt = divide(sketches, recipe, 1).train  # which features at random tell apart a little
    logits = Session(found.model).run(show_batch(sketches.read(learnt), recipe.raster))
    assert (
        np.mean([THINGS[i] for i in logits.argmax(axis=1)] == np.array(sketches.classes)[sketches.labels[learnt]])
        > 0.25
    )
    again = finetune(model, sketches, recipe, 1)
    assert to_bytes(again.model) == to_bytes(found.model)


def test_many_drawings_are_seen_fewer_times_and_one_part_is_held_back(
    small_set: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dabnet.training.finetune.MOST_IMAGES", 450)
    monkeypatch.setattr("dabnet.training.finetune.FEW", 100)
    model = small_model(precision="fbin")
    found = finetune(model, SketchSet(small_set), tuning_recipe(model, [*QUICK, "weight_decay=0.01"]), 0)
    assert (found.views, found.weight_decay) == (2, 0.01)
    assert found.accuracy * 50 == pytest.approx(round(found.accuracy * 50))  # of 200 drawings, a quarter


def test_the_regression_is_at_its_minimum() -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(200, 6, dtype=torch.float64, generator=generator)
    labels = (features[:, :3] + torch.randn(200, 3, dtype=torch.float64, generator=generator)).argmax(dim=1)
    for decay in (1e-3, 1e-1):
        weight, bias = (tensor.requires_grad_() for tensor in fit_head(features, labels, 3, decay))
        loss = F.cross_entropy(features @ weight.T + bias, labels) + decay / 2 * weight.square().sum()
        gradients = torch.autograd.grad(loss, [weight, bias])  # convex: where it is 0, there is the minimum
        assert max(float(gradient.abs().max()) for gradient in gradients) < 1e-4


def test_features_are_what_enters_the_last_layer() -> None:
    linear = Conv(inputs=(2,), filters=2, weight=np.zeros((2, 1, 1, 4), dtype=np.float32))
    stem = Conv(inputs=(0,), filters=4, kernel=(3, 3), weight=np.zeros((4, 3, 3, 1), dtype=np.float32))
    assert find_features(Model((1, 3, 3), (stem, Relu(inputs=(1,)), linear))) == 2
    bits = np.zeros((2, 1), dtype=np.uint8)
    binary = Conv(inputs=(2,), filters=2, bits=bits, scale=np.ones(2, dtype=np.float32))
    assert find_features(Model((1, 3, 3), (stem, Sign(inputs=(1,)), binary))) == 1
    for nodes in ((stem, Relu(inputs=(1,))), (stem,), (Relu(inputs=(0,)), replace(stem, inputs=(1,)))):
        with pytest.raises(InputError, match="does not end with a linear layer"):
            find_features(Model((1, 3, 3), nodes))


def test_no_test_leaves_the_fold_alone(small_set: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "tuned"
    arguments = ["--from", "default", "--data", small_set, "--fold", 2, "-o", folder, "--no-test", "--json"]
    with pytest.raises(SystemExit) as ended:
        main(["train", *map(str, arguments), *(word for change in QUICK for word in ("--set", change))])
    assert ended.value.code in (0, None)
    figures = json.loads(capsys.readouterr().out)
    assert "top1" not in figures
    assert 0.7 < figures["held_back_top1"] <= 1
    assert figures["command"].endswith("--no-test")
    assert json.loads((folder / "result.json").read_text())["temperature"] == figures["temperature"]


@pytest.mark.parametrize("ignored", [False, True], ids=["a shell", "one that ignores Ctrl-C"])
def test_ctrl_c_leaves_nothing_half_made(drawings: Path, tmp_path: Path, ignored: bool) -> None:
    folder = tmp_path / "tuned"
    arguments = ["train", "--threads", "1", "--from", "default", "--data", str(drawings), "-o", str(folder)]
    arguments += ["--set", "epochs=600"]
    process: subprocess.Popen[str] | warm.Running
    if ignored:
        command = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", sys.executable, "-m", "dabnet", *arguments]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    else:
        process = warm.start(*arguments)
    code, errors = interrupt_learning(process, folder)
    assert code == 130
    assert errors == "Stopped, before there was anything to keep: run the same command again.\n"
    assert not folder.exists()


def test_what_cannot_be_tuned_is_one_sentence(
    small_set: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "recipe.toml").write_text("epochs = 3")
    nameless = tmp_path / "nameless.safetensors"
    nameless.write_bytes(to_bytes(fresh_model("resnet18", 3, precision="fbin", width=0.125, input_size=32)))
    (tmp_path / "done").mkdir()
    (tmp_path / "done" / "model.safetensors").write_bytes(b"")
    start = ["--from", "default", "-o", tmp_path / "new"]
    for arguments, words in (
        (start, "give drawings, a subfolder per class, with --data or --add"),
        ([tmp_path / "recipe.toml", *start, "--data", small_set], "tuned without a recipe"),
        ([*start, "--data", small_set, "--teacher", tmp_path], "without a teacher"),
        ([*start, "--data", small_set, "--set", "epoch=2"], "Did you mean 'epochs'?"),
        ([*start, "--data", small_set, "--set", "width=2"], "'width' does not matter where a packed model is tuned"),
        ([*start, "--data", small_set, "--fold", 8], "has no fold 8"),
        ([*start, "--data", tmp_path / "nothing"], "is not there"),
        (["--from", nameless, "--data", small_set, "-o", tmp_path / "new"], "the model has no labels"),
        (["--from", "default", "--data", small_set, "-o", tmp_path / "done"], "holds a tuned model already"),
        (
            [tmp_path / "recipe.toml", "--data", small_set, "--teacher", nameless, "-o", tmp_path / "x"],
            "is a packed model",
        ),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(["train", *map(str, arguments)])
        errors = capsys.readouterr().err
        assert stopped.value.code == 2
        assert words in errors
        assert errors.count("\n") == 1
    assert not (tmp_path / "new" / "model.safetensors").exists()
