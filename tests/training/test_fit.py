from __future__ import annotations

import csv
import dataclasses
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

import dabnet
from dabnet.cli import main
from dabnet.errors import InputError
from dabnet.networks.catalog import build
from dabnet.networks.convert import binary_layers
from dabnet.sketches.store import SketchSet
from dabnet.training.data import Batches, Changed, divide
from dabnet.training.evaluate import evaluate
from dabnet.training.fit import fit, take_over
from dabnet.training.run import begin_run, load_trained, open_run
from dabnet.training.teacher import load_teacher
from tests import warm
from tests.training.conftest import TINY

ROOT = Path(__file__).parents[2]
FILES = {
    "recipe.toml", "run.json", "metrics.csv", "traces.csv", "last.ckpt", "best.safetensors", "result.json",
    "curves.png", "traces.png", "confusion.png", "tensorboard", "held_back.txt",
}  # fmt: skip


PLAIN = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}


def start(*arguments: object) -> warm.Running:
    return warm.start("train", "--threads", 1, *arguments)


def run(*arguments: object, limit: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run `dabnet train`; no file may become larger than `limit` bytes."""
    return warm.run("train", "--threads", 1, *arguments, limit=limit, **PLAIN)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def finished(small_set: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run from the command line, to its end."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    recipe = folder.with_name("tiny.toml")
    recipe.write_text(TINY.to_toml())
    command = [sys.executable, "-m", "dabnet", "train", "--threads", "1", str(recipe), "--data", str(small_set)]
    command += ["--fold", "1", "-o", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=os.environ | PLAIN)
    assert done.returncode == 0, done.stderr
    for words in ("epoch   3  loss", "images/s", "sketches of fold 1, never seen before: top-1", "curves.png"):
        assert words in done.stdout
    return folder


def test_a_run_leaves_everything_in_its_folder(finished: Path, small_set: Path) -> None:
    assert {path.name for path in finished.iterdir()} == FILES
    begun = open_run(finished)
    assert (begun.recipe, begun.data, begun.fold) == (TINY, small_set.resolve(), 1)
    rows = list(csv.DictReader((finished / "metrics.csv").read_text().splitlines()))
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    assert float(rows[-1]["train_loss"]) < float(rows[0]["train_loss"])
    traces = list(csv.DictReader((finished / "traces.csv").read_text().splitlines()))
    assert len(traces) == 3 * len({row["layer"] for row in traces})
    assert all(0 < float(row["k_share"]) < 1 and 0 < float(row["error"]) < 1 for row in traces)


def test_load_gives_the_network_whose_result_was_written(finished: Path, small_set: Path) -> None:
    model = load_trained(finished)
    assert (model.classes, model.raster) == (TINY.classes, TINY.raster)
    net = dabnet.load(finished)
    assert not net.training
    sketches = SketchSet(small_set)
    parts = divide(sketches, TINY, fold=1)
    found = evaluate(net, sketches, parts.test, TINY.raster, labels=parts.labels, class_names=parts.classes)
    assert found.top1 == json.loads((finished / "result.json").read_text())["top1"]
    assert torch.equal(
        net(torch.ones(1, 1, 32, 32)), dabnet.load(finished / "best.safetensors")(torch.ones(1, 1, 32, 32))
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_stopped_in_an_epoch_ends_with_the_same_weights(
    finished: Path, small_set: Path, tmp_path: Path, number: signal.Signals
) -> None:
    folder = tmp_path / "stopped"
    arguments = (finished.with_name("tiny.toml"), "--data", small_set, "--fold", 1, "-o", folder)
    process = start(*arguments)
    until = time.monotonic() + 120
    while not (folder / "last.ckpt").exists() and time.monotonic() < until:
        time.sleep(0.005)
    process.send_signal(number)
    told = time.monotonic()
    _, errors = process.communicate(timeout=300)
    assert time.monotonic() - told < 60  # on a busy machine; it does not wait for anything
    epochs = len((folder / "metrics.csv").read_text().splitlines()) - 1
    assert 1 <= epochs < 3
    if number != signal.SIGKILL:
        assert process.returncode == 130
        assert errors == f"Stopped. Every finished epoch is kept: go on with: dabnet train --resume {folder}\n"
    done = run("--resume", folder)
    assert done.returncode == 0, done.stderr
    whole, resumed = (torch.load(run / "last.ckpt", weights_only=True) for run in (finished, folder))
    for name, tensor in whole["state_dict"].items():
        assert torch.equal(tensor, resumed["state_dict"][name]), name
    best, again = (load_file(run / "best.safetensors") for run in (finished, folder))
    assert all(torch.equal(tensor, again[name]) for name, tensor in best.items())
    assert json.loads((folder / "result.json").read_text()) == json.loads((finished / "result.json").read_text())
    assert (folder / "traces.csv").read_text() == (finished / "traces.csv").read_text()


def test_a_run_with_every_ingredient_on_is_killed_and_ends_with_the_same_weights(
    union_set: Path, tmp_path: Path
) -> None:
    everything = {
        "mixup": 0.3, "cutmix": 0.5, "weight_decay": 0.001, "average": 0.9, "shear": 10.0, "erase": 0.3,
        "prefixes": 0.5, "balance": 0.7, "epoch_size": 256, "scribbles": 0.1, "first_stage": 0.4, "classes": None,
    }  # fmt: skip
    recipe = tmp_path / "everything.toml"
    recipe.write_text(dataclasses.replace(TINY, **everything).to_toml())  # type: ignore[arg-type]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    arguments = (recipe, "--data", union_set, "--no-test")
    done = run(*arguments, "-o", whole)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader((whole / "metrics.csv").read_text().splitlines()))
    assert {name for name in rows[0] if ":" in name} == {"validation_accuracy:Synthetic sketches"}
    process = start(*arguments, "-o", killed)
    until = time.monotonic() + 120
    while not (killed / "last.ckpt").exists() and time.monotonic() < until:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    done = run("--resume", killed)
    assert done.returncode == 0, done.stderr
    one, two = (torch.load(folder / "last.ckpt", weights_only=True)["state_dict"] for folder in (whole, killed))
    assert any(name.startswith("average.") for name in one)
    assert all(torch.equal(tensor, two[name]) for name, tensor in one.items())
    best, again = (load_file(folder / "best.safetensors") for folder in (whole, killed))
    assert all(torch.equal(tensor, again[name]) for name, tensor in best.items())


def test_two_processes_take_the_steps_of_one_that_divides_its_batches(small_set: Path, tmp_path: Path) -> None:
    alone = warm.run(small_set, tmp_path / "one", 2, module="tests.training.ddp_losses")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-addr", "127.0.0.1",
        "--master-port", str(free_port()), "-m", "tests.training.ddp_losses",
        str(small_set), str(tmp_path / "two"), "1",
    ]  # fmt: skip
    together = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    for done in (alone, together):
        assert done.returncode == 0, done.stderr
    one = np.array(json.loads((tmp_path / "one" / "losses0.json").read_text()))
    two = np.array([json.loads((tmp_path / "two" / f"losses{rank}.json").read_text()) for rank in (0, 1)])
    steps = 20
    assert len(one) >= 2 * steps
    assert np.abs(one.reshape(-1, 2).T - two)[:, :steps].max() < 1e-3
    assert one[-4:].mean() < one[:4].mean()


def test_a_network_is_tuned_on_classes_of_your_own(finished: Path, small_set: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tuned"
    recipe = dataclasses.replace(TINY, classes=["apple", "car", "fish"], epochs=1)
    begin_run(folder, recipe, small_set, 0)
    found = fit(folder, recipe, SketchSet(small_set), 0, start=load_trained(finished), device="cpu")
    assert found is not None
    assert load_trained(folder).classes == ["apple", "car", "fish"]
    other = dataclasses.replace(recipe, width=0.25)
    with pytest.raises(InputError, match="is built otherwise"):
        fit(tmp_path / "other", other, SketchSet(small_set), 0, start=load_trained(finished), device="cpu")


def test_what_has_the_same_name_and_shape_is_taken_over_and_the_rest_stays_new(finished: Path) -> None:
    start = load_trained(finished).net
    for recipe, classes in ((TINY, 3), (dataclasses.replace(TINY, weights="real", activations="real"), 5)):
        net = build(**recipe.network_settings(classes))
        before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
        taken, new = take_over(net, start)
        after, theirs = net.state_dict(), start.state_dict()
        assert sorted(taken + new) == sorted(after)
        assert all(torch.equal(after[name], theirs[name]) for name in taken)
        assert all(torch.equal(after[name], before[name]) for name in new)
        assert all(name not in theirs or theirs[name].shape != after[name].shape for name in new)
        assert {"stem.conv.weight", "stage4.1.conv2.branch.conv.weight"} <= set(taken)
    net = build(**TINY.network_settings(5))
    assert take_over(net, start)[1] == []
    images = torch.rand(2, 1, 32, 32)
    assert torch.equal(net.eval()(images), start.eval()(images))


def test_a_student_is_stopped_before_and_after_its_first_epoch_and_ends_with_the_same_weights(
    finished: Path, small_set: Path, tmp_path: Path
) -> None:
    # Both the weights it starts from and its teacher are found again; neither the teacher nor a test is in its folder.
    whole, stopped = tmp_path / "student", tmp_path / "stopped"
    recipe = finished.with_name("tiny.toml")
    arguments = ["--data", small_set, "--fold", 1, "--no-test", "--teacher", finished, "--from", finished]
    changes = ["--set", "epochs=2", "--set", "precision=wbin", "--set", "teacher_temperature=2"]
    done = run(recipe, *arguments, *changes, "-o", whole)
    assert done.returncode == 0, done.stderr
    assert "tensors are taken over; new: " in done.stdout
    assert "Not tested. On sketches held back from training, in epoch" in done.stdout
    assert {path.name for path in whole.iterdir()} == FILES - {"result.json", "confusion.png"}
    assert (whole / "held_back.txt").read_text() == (finished / "held_back.txt").read_text()
    begun = open_run(whole)
    assert (begun.start, begun.test, begun.recipe.teacher) == (finished.resolve(), False, str(finished.resolve()))

    begin_run(stopped, begun.recipe, begun.data, begun.fold, start=begun.start, test=begun.test)  # and killed at once
    process = start("--resume", stopped)
    until = time.monotonic() + 120
    while not (stopped / "last.ckpt").exists() and time.monotonic() < until:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert len((stopped / "metrics.csv").read_text().splitlines()) == 2
    done = run("--resume", stopped, "--json")
    assert done.returncode == 0, done.stderr
    rows = csv.DictReader((whole / "metrics.csv").read_text().splitlines())
    best = max(float(row["validation_accuracy"]) for row in rows)
    assert json.loads(done.stdout)["validation_accuracy"] == best
    one, two = (torch.load(folder / "last.ckpt", weights_only=True)["state_dict"] for folder in (whole, stopped))
    assert {name.removeprefix("net.") for name in one} == set(load_trained(whole).net.state_dict())
    assert all(torch.equal(tensor, two[name]) for name, tensor in one.items())
    assert not (stopped / "result.json").exists()


def test_a_teacher_that_cannot_teach_is_refused_in_a_sentence(finished: Path) -> None:
    recipe = dataclasses.replace(TINY, teacher=str(finished))
    classes = TINY.classes or []
    assert load_teacher(recipe, classes) is not None
    assert load_teacher(TINY, classes) is None
    for student, known, words in (
        (recipe, ["apple", "car"], r"knows other classes \(5, and 2 are to be learnt\)"),
        (recipe, classes[::-1], "knows other classes"),
        (dataclasses.replace(recipe, size=48), classes, r"sees sketches otherwise \(size 32.*not size 48"),
        (dataclasses.replace(TINY, teacher_share=0.5), classes, "this recipe is for a student"),
        (dataclasses.replace(TINY, teacher=str(finished.parent)), classes, "has no finished epoch"),
    ):
        with pytest.raises(InputError, match=words):
            load_teacher(student, known)


def test_what_cannot_be_done_is_one_sentence_and_loses_nothing(
    finished: Path, small_set: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = finished.with_name("tiny.toml")
    (tmp_path / "bad.toml").write_text("epoch = 3")
    damaged = tmp_path / "damaged"
    shutil.copytree(finished, damaged)
    content = (damaged / "last.ckpt").read_bytes()
    (damaged / "last.ckpt").write_bytes(content[: len(content) // 2])
    other = tmp_path / "other"
    shutil.copytree(finished, other)
    (other / "recipe.toml").write_text(dataclasses.replace(TINY, classes=["cat", "house", "key"]).to_toml())
    for arguments, words in (
        ([tmp_path / "bad.toml", "--data", small_set], "Did you mean 'epochs'?"),
        ([recipe], "give a prepared set with --data"),
        ([], "give a prepared set with --data"),
        ([recipe, "--data", tmp_path / "no.parquet", "-o", tmp_path / "new"], "is not there"),
        ([recipe, "--data", small_set, "-o", finished], "holds a run already"),
        ([recipe, "--data", small_set, "--fold", 9, "-o", tmp_path / "new9"], "has no fold 9"),
        (["--resume", tmp_path / "nothing"], "holds no run that can be resumed"),
        (["--resume", damaged], "last.ckpt' is damaged"),
        (["--resume", other], "is of another network"),
        (["--resume", finished, "--set", "epochs=9"], "leave out the recipe"),
        ([recipe, "--data", small_set, "--set", "epochs=0"], "epochs must be from 1"),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(["train", *map(str, arguments)])
        errors = capsys.readouterr().err
        assert stopped.value.code == 2
        assert words in errors
        assert errors.count("\n") == 1
    assert (damaged / "best.safetensors").read_bytes() == (finished / "best.safetensors").read_bytes()


def test_a_full_disk_is_one_sentence_and_the_run_goes_on_later(finished: Path, small_set: Path, tmp_path: Path) -> None:
    folder = tmp_path / "full"
    done = run(finished.with_name("tiny.toml"), "--data", small_set, "-o", folder, "--set", "epochs=1", limit=200_000)
    assert done.returncode == 2
    assert "make room, and resume the run" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(folder.glob("*.writing"))
    again = run("--resume", folder)
    assert again.returncode == 0, again.stderr


def test_files_that_hold_no_network_are_refused_in_a_sentence(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.safetensors").write_bytes(b"rubbish")
    whole = (finished / "best.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(whole[:-100])
    for name, words in {
        "empty": "has no finished epoch yet",
        "none": "is not there",
        "bad.safetensors": "does not hold a network",
        "cut.safetensors": "does not hold a network",
    }.items():
        with pytest.raises(InputError, match=words):
            dabnet.load(tmp_path / name)


def test_a_network_can_be_kept_with_other_binary_weights_than_it_trained_with(small_set: Path, tmp_path: Path) -> None:
    recipe = dataclasses.replace(
        TINY, weights="irnet", input_gradient="annealed", final_weights="dab", binary_decay=1.0, decay_to=(-0.02, 0.08),
        epochs=2, validation=0.2,
    )  # fmt: skip
    folder = tmp_path / "run"
    begin_run(folder, recipe, small_set, fold=0)
    result = fit(folder, recipe, SketchSet(small_set), fold=0)
    assert result is not None
    kept = load_trained(folder).net
    assert {layer.method for layer in binary_layers(kept)} == {"dab"}
    state = torch.load(folder / "last.ckpt", weights_only=True)["state_dict"]
    progress = [float(value) for name, value in state.items() if name.endswith("progress")]
    assert len(progress) == 2 * len(list(binary_layers(kept)))  # of weights and of signs
    assert progress == [1.0] * len(progress)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"decay_to": (0.1, 0.2)}, "decay_to must be one number below 0 and one above"),
        ({"decay_to": (-2.0, 0.2)}, "decay_to must be two numbers from -1 to 1"),
        ({"final_weights": "real"}, "final_weights is another way to make weights binary"),
    ],
)
def test_a_recipe_for_weights_that_makes_no_sense_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        dataclasses.replace(TINY, **changes)


def test_plain_norms_are_those_of_sketches_as_they_are(small_set: Path, tmp_path: Path) -> None:
    recipe = dataclasses.replace(TINY, epochs=1, plain_norms=True)
    sketches = SketchSet(small_set)
    begin_run(tmp_path / "plain", recipe, small_set, 1, test=False)
    fit(tmp_path / "plain", recipe, sketches, 1, test=False, device="cpu")
    net = load_trained(tmp_path / "plain").net
    parts = divide(sketches, recipe, 1)
    batches = Batches(parts.train, recipe)
    images = Changed(sketches, parts.labels, recipe).unchanged(np.concatenate([key.rows for key in batches]))
    first = next(module for module in net.modules() if isinstance(module, nn.BatchNorm2d))
    seen: list[Tensor] = []
    first.register_forward_pre_hook(lambda _module, inputs: seen.append(inputs[0]))
    with torch.no_grad():
        net(images)
    assert first.running_mean is not None
    assert torch.allclose(seen[0].mean(dim=(0, 2, 3)), first.running_mean, atol=1e-4)
