from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from dabnet.cli import main
from dabnet.comparing.fresh import fresh_model
from dabnet.errors import InputError
from dabnet.packed import Model, find_model, model_names, read_model, to_bytes
from dabnet.runtime import Recognizer, Session
from dabnet.sketches.prepare import prepare
from dabnet.sketches.sources import open_source
from dabnet.sketches.store import SketchSet
from dabnet.sketches.synthetic import draw_thing
from dabnet.training.add_classes import add_classes, match_targets, read_head
from dabnet.training.class_features import (
    ClassFeatures,
    collect_features,
    describe_features,
    features_path,
    probe_features,
    read_features,
)
from dabnet.training.finetune import tuning_recipe
from dabnet.training.growing_head import COST, MOST_LIKELY, Head, Lesson
from tests import warm
from tests.training.tuning import interrupt_learning, small_model

QUICK = ("--set", "epochs=3")


def spiral(rng: np.random.Generator) -> list[list[float]]:
    turns, around = rng.uniform(2.5, 4), rng.uniform(0, 2 * math.pi)
    t = np.linspace(0.05, 1, 60)
    angle = around + 2 * math.pi * turns * t
    points = np.stack([t * np.cos(angle), rng.uniform(0.8, 1) * t * np.sin(angle)], axis=1)
    return (points + rng.normal(0, 0.01, points.shape)).round(3).tolist()  # type: ignore[no-any-return]


@pytest.fixture
def drawings(tmp_path: Path) -> Path:
    """Nine spirals, which TU-Berlin does not have, and nine cats, which it has, in a folder that is spelt otherwise."""
    for name in ("spiral", "Cat"):
        (tmp_path / "mine" / name).mkdir(parents=True)
        for i in range(9):
            rng = np.random.default_rng([6, i])
            strokes = [spiral(rng)] if name == "spiral" else [s.tolist() for s in draw_thing("cat", rng).strokes]
            (tmp_path / "mine" / name / f"{i}.json").write_text(json.dumps(strokes))
    return tmp_path / "mine"


def made_up_features(model: Model, seed: int = 0) -> ClassFeatures:
    """The features of drawings that never were, for a model that was never trained."""
    rng = np.random.default_rng(seed)
    width = model.shapes[model.nodes[-1].inputs[0]].channels
    labels = np.arange(len(model.labels)).repeat(30)
    features = rng.normal(size=(len(model.labels), width))[labels] + 0.3 * rng.normal(size=(len(labels), width))
    return describe_features(model, features, labels)


def test_a_class_is_added_and_a_known_one_gets_better_by_the_command(drawings: Path, tmp_path: Path) -> None:
    folder = tmp_path / "added"
    arguments = ("--from", "tuberlin", "--add", drawings, "-o", folder, "--set", "epochs=4")
    done = warm.run("train", "--threads", 1, *arguments, COLUMNS="300", NO_COLOR="1", TERM="dumb")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "1 class added to 250, from 12 drawings" in done.stdout
    assert "Known already, and given more drawings: cat." in done.stdout
    assert {path.name for path in folder.iterdir()} == {
        "data.parquet", "model.safetensors", "model.features.safetensors", "result.json",
    }  # fmt: skip
    figures = json.loads((folder / "result.json").read_text())
    assert (figures["new_classes"], figures["known_classes"], figures["classes"]) == (["spiral"], ["cat"], 251)
    assert figures["top1"] >= 0.8
    assert figures["drawings"] == 6
    assert abs(figures["estimated_cost"]) <= 0.02

    old, grown = read_model("tuberlin"), read_model(folder / "model.safetensors")
    assert grown.labels == (*old.labels, "spiral")
    assert grown.raster == old.raster
    assert (grown.temperature, grown.views_temperature) == (old.temperature, old.views_temperature)
    assert (folder / "model.safetensors").stat().st_size < find_model("tuberlin").stat().st_size + 2000
    before, after = read_head(old), read_head(grown)
    kept = [number for number, label in enumerate(old.labels) if label != "cat"]
    assert torch.equal(after[0][kept], before[0][kept])
    assert torch.equal(after[1][kept], before[1][kept])
    recognizer = Recognizer.load(folder / "model.safetensors")
    strokes = [spiral(np.random.default_rng([7, i])) for i in range(5)]
    assert sum(recognizer.recognize([stroke], top=1)[0][0] == "spiral" for stroke in strokes) >= 4
    walks = [np.random.default_rng([8, i]).normal(size=(80, 2)).cumsum(axis=0).tolist() for i in range(40)]
    sure = [
        np.mean([each.recognize([walk], top=1)[0][1] for walk in walks])
        for each in (Recognizer.load("tuberlin"), recognizer)
    ]
    assert sure[1] < sure[0] + 0.05  # no surer of what is nothing than before
    assert not any(recognizer.recognize([walk], top=1)[0][0] == "spiral" for walk in walks)


def test_classes_are_added_to_what_was_added(
    drawings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (drawings / "Cat").rename(tmp_path / "Cat")
    once, twice = tmp_path / "once", tmp_path / "twice"
    for start, folder, name in (("tuberlin", once, "spiral"), (once / "model.safetensors", twice, "curl")):
        next(drawings.iterdir()).rename(drawings / name)
        with pytest.raises(SystemExit) as ended:
            main(["train", "--from", str(start), "--add", str(drawings), "-o", str(folder), "--json", *QUICK])
        assert ended.value.code in (0, None)
        assert json.loads(capsys.readouterr().out)["new_classes"] == [name]
    assert read_model(twice / "model.safetensors").labels == (*read_model("tuberlin").labels, "spiral", "curl")


@given(seed=st.integers(0, 2**20), known=st.integers(0, 2))
@settings(max_examples=25, deadline=None)
def test_the_rows_are_where_the_loss_is_least(seed: int, known: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    weight, bias = torch.randn(5, 4, generator=rng, dtype=torch.float64), torch.zeros(5, dtype=torch.float64)
    old_rows = [-1, *range(known)]
    made_up, labels = torch.randn(5 * 6, 4, generator=rng, dtype=torch.float64), torch.arange(5).repeat_interleave(6)
    targets = torch.arange(len(old_rows)).repeat_interleave(3)
    views = torch.randn(2, len(targets), 4, generator=rng, dtype=torch.float64)
    scribbles = torch.randn(4, 4, generator=rng, dtype=torch.float64)
    temperature, decay = 0.7, 0.1
    head = Head(weight, bias, old_rows, temperature)
    rows, biases = (
        tensor.requires_grad_() for tensor in head.learn(Lesson(views, targets, made_up, labels, scribbles), decay)
    )

    columns = torch.tensor(head.columns)
    grown = torch.cat([weight, torch.zeros(1, 4)]).index_copy(0, columns, rows)
    grown_bias = torch.cat([bias, torch.zeros(1)]).index_copy(0, columns, biases)
    old = F.cross_entropy((made_up @ grown.T + grown_bias) / temperature, labels) * 5
    new = F.cross_entropy((views.flatten(0, 1) @ grown.T + grown_bias) / temperature, columns[targets.repeat(2)])
    start = torch.zeros_like(rows).index_copy(0, torch.arange(1, len(old_rows)), weight[:known])
    far = ((rows - start) * made_up.std(dim=0) / temperature).square().sum()
    shares = ((scribbles @ grown.T + grown_bias) / temperature).softmax(dim=1)
    nothing = -(1 - shares[:, columns].sum(dim=1)).log().sum() / 6
    loss = (old + nothing) / len(old_rows) + new + decay / 2 * far
    # The bias is free: what moves it, the rows' gradient does not see.
    slope = torch.autograd.grad(loss, biases, retain_graph=True)[0]
    assert slope.abs().max() < 1e-3
    mean = made_up.mean(dim=0)
    slopes = torch.autograd.grad(loss, rows)[0] - slope[:, None] * mean
    assert slopes.abs().max() < 5e-3


@pytest.mark.parametrize("old_rows", [[0, 1, 2], [0, 1, 2, -1], [0, -1], [-1]])
def test_all_classes_of_a_model_can_be_taught_at_once(old_rows: list[int]) -> None:
    rng = torch.Generator().manual_seed(0)
    means = 3 * torch.eye(4, dtype=torch.float64)
    labels = torch.arange(3).repeat_interleave(20)
    made_up = means[labels] + torch.randn(60, 4, generator=rng, dtype=torch.float64)
    head = Head(means[:3], torch.zeros(3, dtype=torch.float64), old_rows, 1.0)
    targets = torch.arange(len(old_rows)).repeat_interleave(5)
    views = means[torch.tensor(old_rows)[targets]][None] + torch.randn(1, len(targets), 4, generator=rng)
    rows, biases = head.learn(Lesson(views, targets, made_up, labels, torch.zeros(3, 4, dtype=torch.float64)), 0.1)
    assert rows.abs().max() < 100
    assert biases.abs().max() < 100
    weight, bias = head.grow((rows, biases), 0.0)
    right = (views[0] @ weight.T + bias).argmax(dim=1) == torch.tensor(head.columns)[targets]
    assert right.double().mean() > 0.7


def test_new_classes_are_made_likelier_only_as_far_as_old_ones_bear() -> None:
    features = made_up_features(replace(small_model(), labels=("a", "b", "c")))
    made_up, labels = features.sample(200, 0)
    means = torch.from_numpy(features.means).double()
    head = Head(means, -means.square().sum(dim=1) / 2, [-1], 1.0)
    far = (torch.zeros(1, means.shape[1], dtype=torch.float64), torch.tensor([-1e6], dtype=torch.float64))
    assert head.balance(far, made_up, labels) == (math.log(MOST_LIKELY), 0.0)
    near = (means[:1] * 1.0, (-means[:1].square().sum(dim=1) / 2) + 0.01)  # all of the first class is lost to it
    shift, cost = head.balance(near, made_up, labels)
    assert shift < 0
    assert cost <= COST


def test_features_survive_their_file_but_for_rounding(tmp_path: Path) -> None:
    model = small_model()
    features = made_up_features(model)
    path = features_path(tmp_path / "m.safetensors")
    assert path.name == "m.features.safetensors"
    path.write_bytes(features.to_bytes())
    found = read_features(path, model)
    assert found.labels == model.labels
    ranges = features.means.max(axis=0) - features.means.min(axis=0)
    assert (np.abs(found.means - features.means) <= 0.51 * ranges / 255 + 1e-6).all()
    np.testing.assert_allclose(found.spread, features.spread, rtol=1e-3, atol=1e-4)


def test_made_up_features_have_the_classes_means_and_covariance() -> None:
    features = made_up_features(small_model())
    found, labels = features.sample(4000, 1)
    for number, mean in enumerate(features.means):
        some = found[labels == number].numpy()
        np.testing.assert_allclose(some.mean(axis=0), mean, atol=0.05)
        np.testing.assert_allclose(np.cov(some.T), features.spread @ features.spread.T, atol=0.05)


def test_features_of_another_model_or_broken_ones_are_refused(tmp_path: Path) -> None:
    model, path = small_model(), tmp_path / "m.features.safetensors"
    with pytest.raises(InputError, match=r"there is no .*dabnet features MODEL --data SET"):
        read_features(path, model)
    whole = made_up_features(model).to_bytes()
    other = replace(small_model(precision="wbin"), labels=model.labels)
    assert not np.allclose(probe_features(other), probe_features(model))
    path.write_bytes(whole)
    for wrong in (other, replace(model, labels=("a", "b", "d"))):
        with pytest.raises(InputError, match="features of another model"):
            read_features(path, wrong)
    for broken in (b"", b"nothing", whole[:100], whole[:-10], to_bytes(model)):
        path.write_bytes(broken)
        with pytest.raises(InputError, match="does not hold the features of a model"):
            read_features(path, model)


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory: pytest.TempPathFactory) -> SketchSet:
    path = tmp_path_factory.mktemp("synthetic") / "set.parquet"
    return SketchSet(prepare(open_source("synthetic", limit=6), path, workers=1).path)


def test_features_are_those_of_the_drawings(synthetic: SketchSet) -> None:
    model = replace(small_model(), labels=("house", "sun", "tree"))
    names = [model.labels.index(name) if name in model.labels else -1 for name in synthetic.classes]
    labels = np.array(names, dtype=np.int64)[synthetic.labels]
    rows = np.flatnonzero(labels >= 0)
    found = collect_features(model, synthetic, labels, rows)
    assert found.means.shape == (3, Session(model.part(model.nodes[-1].inputs[0])).model.answers)
    with pytest.raises(InputError, match="has no drawing of 'tree' to take features of"):
        collect_features(model, synthetic, labels, rows[labels[rows] != 2])


def test_names_are_matched_however_they_are_spelt(synthetic: SketchSet) -> None:
    model = replace(small_model(), labels=("House", "Sun-", "c"))
    names, targets = match_targets(model, synthetic, ["house", "sun", "tree"])
    assert names == ["House", "Sun-", "tree"]
    assert set(targets.tolist()) == {-1, 0, 1, 2}
    with pytest.raises(InputError, match="has no class 'houses'"):
        match_targets(model, synthetic, ["houses"])


def test_a_single_class_with_a_single_drawing_can_be_added(synthetic: SketchSet) -> None:
    model = small_model()
    features = made_up_features(model)
    found = add_classes(model, features, synthetic, tuning_recipe(model, ["epochs=1", 'classes=["key"]']), fold=0)
    assert found.new == ("key",)
    assert found.model.labels == ("a", "b", "c", "key")
    assert found.features.labels == found.model.labels
    assert found.features.means.shape[0] == 4


def test_what_cannot_be_added_is_one_sentence(
    drawings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone, signs = tmp_path / "alone.safetensors", tmp_path / "signs.safetensors"
    alone.write_bytes(to_bytes(small_model()))
    signs.write_bytes(to_bytes(small_model(precision="fbin")))
    features_path(signs).write_bytes(made_up_features(small_model(precision="fbin")).to_bytes())
    nameless = tmp_path / "nameless.safetensors"
    nameless.write_bytes(to_bytes(fresh_model("resnet18", 3, precision="fbin", width=0.125, input_size=32)))
    (tmp_path / "twice").mkdir()
    for name in ("cat", "Cat"):
        shutil.copytree(drawings / "Cat", tmp_path / "twice" / name)
    for number, (arguments, words) in enumerate(
        (
            (["--add", drawings], "say which with --from"),
            (["--from", "default", "--add", drawings, "--data", drawings], "give one of the two"),
            (["--from", alone, "--add", drawings], "dabnet features MODEL --data SET"),
            (["--from", signs, "--add", drawings, *QUICK], "has signs for inputs"),
            (["--from", nameless, "--add", drawings], "the model has no labels"),
            (["--from", "default", "--add", tmp_path / "nothing"], "is not there"),
            (["--from", "default", "--add", drawings, "--fold", 7], "has no fold 7"),
            (["--from", "default", "--add", tmp_path / "twice"], "two of the classes are 'cat'"),
            (
                ["--from", "default", "--add", drawings, "--set", "width=2"],
                "does not matter where a packed model is tuned",
            ),
        )
    ):
        with pytest.raises(SystemExit) as stopped:
            main(["train", *map(str, arguments), "-o", str(tmp_path / "new" / str(number))])
        errors = capsys.readouterr().err
        assert stopped.value.code == 2
        assert words in errors
        assert errors.count("\n") == 1
    assert not list((tmp_path / "new").rglob("*.safetensors"))


def test_ctrl_c_leaves_nothing_half_made(drawings: Path, tmp_path: Path) -> None:
    folder = tmp_path / "added"
    arguments = ("--from", "default", "--add", drawings, "-o", folder, "--set", "epochs=600")
    code, errors = interrupt_learning(warm.start("train", "--threads", 1, *arguments), folder)
    assert code == 130
    assert errors == "Stopped, before there was anything to keep: run the same command again.\n"
    assert not folder.exists()


def test_the_shipped_models_have_features_that_fit_and_are_small() -> None:
    for name in model_names():
        path = features_path(find_model(name))
        assert path.stat().st_size <= 300_000
        model = read_model(name)
        found, labels = read_features(path, model).sample(10, 0)
        weight, bias = read_head(model)
        right = ((found @ weight.T + bias).argmax(dim=1) == labels).double().mean()
        assert right > 0.5


def test_features_are_written_beside_the_model(
    synthetic: SketchSet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "m.safetensors"
    model.write_bytes(to_bytes(replace(small_model(), labels=("house", "sun", "tree"))))
    with pytest.raises(SystemExit) as ended:
        main(["features", str(model), "--data", str(synthetic.path), "--json"])
    assert ended.value.code in (0, None)
    figures = json.loads(capsys.readouterr().out)
    assert Path(figures["path"]) == features_path(model)
    assert figures["bytes"] == features_path(model).stat().st_size
    assert read_features(features_path(model), read_model(model)).labels == ("house", "sun", "tree")
