from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dabnet
from dabnet.cli import main
from dabnet.packed import find_model
from dabnet.packed.summary import LayerSummary, Summary


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
        (["--weights", "real", "--activations", "int8"], "activations='int8' is for one-bit weights"),
        (["--set", "widht=2"], "'resnet18' has no setting 'widht'. Did you mean 'width'?"),
        (["--set", "nonlinearity"], "write --set KEY=VALUE"),
    ],
)
def test_a_bad_option_is_one_sentence(capsys: pytest.CaptureFixture[str], options: list[str], sentence: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["summary", "resnet18", *options])
    error = capsys.readouterr().err
    assert (ended.value.code, error.count("\n"), sentence in error) == (2, 1, True)


def test_a_packed_model_is_summed_up_as_its_network_and_without_torch(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    net = dabnet.build("resnet18", 5, weights="dab", activations="sign", width=0.125, input_size=32)
    dabnet.export(net, path, input_size=(1, 32, 32), labels=list("abcde"))
    script = (
        "import sys; sys.modules['torch'] = None; from dabnet.cli import main; "
        f"main(['summary', {str(path)!r}, '--json'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["bytes"] == path.stat().st_size
    packed = {row["name"]: row for row in found["layers"] if "conv" in row["kind"]}
    trained = dabnet.summary(net, (1, 32, 32), list("abcde"))
    rows = [row for row in trained.layers if row.binary_macs + row.one_bit_macs + row.real_macs]
    assert len(rows) == len(packed) > 15
    for row in rows:
        same = packed[row.name]
        assert (same["binary_macs"], same["one_bit_macs"], same["real_macs"]) == (
            row.binary_macs, row.one_bit_macs, row.real_macs,
        )  # fmt: skip
        assert (same["one_bit_parameters"], same["k_share"]) == (row.one_bit_parameters, row.k_share)
    assert dabnet.summary(dabnet.load(path)).to_dict() == {**found, "layers": trained_shapes(found)}


def trained_shapes(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the layers as they are before JSON makes lists of tuples."""
    return [{**row, "output_shape": tuple(row["output_shape"])} for row in found["layers"]]


def test_a_model_that_ships_prints_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["summary", "default"])
    printed = capsys.readouterr().out
    assert not ended.value.code
    assert "one-bit conv" in printed
    assert f"{find_model('default').stat().st_size:,} bytes packed" in printed


def test_a_name_that_is_nothing_is_one_sentence_without_torch() -> None:
    script = "import sys; sys.modules['torch'] = None; from dabnet.cli import main; main(['summary', 'resnet19'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        2,
        "dabnet: 'resnet19' is neither a file nor a network's name. Did you mean 'resnet18'?\n",
    )


def test_names_of_layers_cannot_draw_on_the_terminal() -> None:
    layer = LayerSummary("[red]\x1b[2Jconv", "conv", (1, 1, 1))
    printed = str(Summary([layer], 4, 4))
    assert "[red]\\x1b[2Jconv" in printed
    assert "\x1b" not in printed
