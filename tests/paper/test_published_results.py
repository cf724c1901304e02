"""The pictures and tables from the results that are in the repository, and what these must not hold."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dabnet.errors import InputError
from paper.filters import CHOSEN, keep_filters, load_filters
from paper.finding import Finding, keep
from paper.responses import find_responses
from paper.traces import PAIRS, find_alpha_beta, find_k_layers, find_k_time
from paper.weights import find_weights

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
FILTERS = RESULTS / "paper" / "filters.safetensors"
MAP = (ROOT / "docs" / "paper-to-code.md").read_text()


def check_picture(finding: Finding, folder: Path) -> None:
    keep(finding, "x", folder)
    path = folder / f"{finding.name}.png"
    assert path.stat().st_size < 150_000
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)
    for colour in ([0xC2, 0x41, 0x0C], [0x1D, 0x4E, 0xD8]):  # DAB, XNOR-Net
        assert (np.abs(pixels - colour).max(axis=-1) < 24).sum() > 200


def test_pictures_of_trainings_are_drawn_and_show_what_the_paper_shows(tmp_path: Path) -> None:
    values, time, layers = find_alpha_beta(RESULTS), find_k_time(RESULTS), find_k_layers(RESULTS)
    for finding in (values, time, layers):
        check_picture(finding, tmp_path)
    ratios = values.figures["alpha_by_beta_in_the_first_and_last_epoch"]
    assert all(last > first > 1 for first, last in ratios.values())
    shares = time.figures["last_epoch"][PAIRS["wbin"].title]
    assert shares[PAIRS["wbin"].dab] < 0.4 < 0.48 < shares[PAIRS["wbin"].xnor] < 0.52


def test_pictures_of_filters_are_drawn(tmp_path: Path) -> None:
    trained = load_filters(FILTERS)
    assert FILTERS.stat().st_size < 100_000
    weights, responses = find_weights(trained), find_responses(trained)
    check_picture(weights, tmp_path)
    check_picture(responses, tmp_path)
    assert weights.figures["error"]["dab"] < weights.figures["error"]["xnor"]
    likeness = responses.figures["correlation_with_the_real_filter"]
    assert np.mean(likeness["dab"]) > np.mean(likeness["xnor"]) > 0.8
    with pytest.raises(InputError, match="choose one of tuberlin-sketch-a-net-fprec"):
        find_weights(trained, "nothing")
    with pytest.raises(InputError, match="choose another with --sketch"):
        find_responses(trained, shown=1000)


def test_filters_are_kept_as_they_were_and_what_is_missing_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="train it by its recipe"):
        keep_filters(tmp_path, tmp_path / "filters.safetensors")
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match="holds no trained filters"):
        load_filters(tmp_path / "filters.safetensors")
    kept = {(each.run, each.layer): len(each.indices) for each in load_filters(FILTERS)}
    assert kept == {(run, layer): count for run, layers in CHOSEN.items() for layer, count in layers.items()}


def test_no_result_names_a_place_on_someones_machine() -> None:
    for path in (*RESULTS.rglob("*.json"), *RESULTS.rglob("*.toml"), *RESULTS.rglob("*.md")):
        assert not re.search(r'["\s`](/|[A-Z]:\\)\w', path.read_text()), path


def test_every_function_that_the_map_names_exists() -> None:
    names = set(re.findall(r"`((?:dabnet|paper)(?:\.\w+)+)`", MAP))
    assert len(names) > 25
    for name in names:
        parts = name.split(".")
        for end in range(len(parts), 0, -1):
            try:
                found = importlib.import_module(".".join(parts[:end]))
            except ModuleNotFoundError:
                continue
            for part in parts[end:]:
                found = getattr(found, part)
            break


def test_every_command_that_the_map_names_exists() -> None:
    from paper.commands import figure, paper

    known = {command.name or command.callback.__name__ for command in paper.registered_commands if command.callback}
    known |= {f"figure {command.name}" for command in figure.registered_commands}
    named = set(re.findall(r"dabnet paper (figure [\w-]+|[\w-]+)", MAP))
    assert named == known
