from __future__ import annotations

import json
from typing import Any

import pytest

from dabnet.cli import main


def summarize(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    with pytest.raises(SystemExit) as ended:
        main(["summary", "resnet18", "--width", "0.125", "--size", "32", "--classes", "5", *options, "--json"])
    assert not ended.value.code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def kinds(found: dict[str, Any]) -> set[str]:
    return {layer["kind"] for layer in found["layers"]}


@pytest.mark.parametrize(
    ("options", "paper", "kind"),
    [
        ([], ["--precision", "fbin", "--method", "dab"], "BinaryConv2d dab sign"),
        (["--weights", "xnor"], ["--method", "xnor"], "BinaryConv2d xnor sign"),
        (["--activations", "real"], ["--precision", "wbin"], "BinaryConv2d dab real"),
        (["--weights", "real", "--activations", "real"], ["--precision", "fprec"], "Conv2d"),
    ],
)
def test_both_axes_and_the_papers_names_name_the_same_network(
    capsys: pytest.CaptureFixture[str], options: list[str], paper: list[str], kind: str
) -> None:
    found, other = summarize(capsys, *options), summarize(capsys, *paper)
    assert kind in kinds(found)
    assert (kinds(found), found["bytes"]) == (kinds(other), other["bytes"])


def test_other_settings_are_set_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--set", "threshold=learned", "--set", "nonlinearity=rprelu", "--set", "shortcuts=conv")
    assert kinds(summarize(capsys, *options)) >= {"RSign", "RPReLU"}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--precision", "fbin", "--weights", "dab"], "what is binary is given twice"),
        (["--activations", "int8"], "activations='int8' is not available yet: choose real or sign."),
        (["--set", "widht=2"], "'resnet18' has no setting 'widht'. Did you mean 'width'?"),
        (["--set", "nonlinearity"], "write --set KEY=VALUE"),
    ],
)
def test_a_bad_option_is_one_sentence(capsys: pytest.CaptureFixture[str], options: list[str], sentence: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["summary", "resnet18", *options])
    error = capsys.readouterr().err
    assert (ended.value.code, error.count("\n"), sentence in error) == (2, 1, True)
