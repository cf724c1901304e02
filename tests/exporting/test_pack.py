from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

import dabnet
from dabnet.errors import InputError
from dabnet.exporting.lower import lower
from dabnet.exporting.onnx_file import to_onnx

from .test_lower import drawings, unsettle

LABELS = [f"thing {i}" for i in range(250)]


@pytest.mark.parametrize(("name", "size"), [("sketch_a_net", 97), ("resnet18", 64), ("googlenet", 64)])
@pytest.mark.parametrize("precision", ["wbin", "fbin"])
@pytest.mark.parametrize("labels", [None, LABELS])
def test_the_summary_knows_the_files_size_to_the_byte(
    tmp_path: Path, name: str, size: int, precision: Any, labels: list[str] | None
) -> None:
    net = dabnet.build(name, 250, precision, width=0.25, input_size=size)
    path = tmp_path / "m.safetensors"
    dabnet.export(net, path, (1, size, size), labels)
    found = dabnet.summary(net, (1, size, size), labels)
    assert found.bytes == path.stat().st_size
    assert found.why_not_packed is None
    assert 0 < sum(layer.bytes for layer in found.layers) < found.bytes


@pytest.mark.parametrize("precision", ["wbin", "fbin"])
def test_resnet18_is_thirty_times_smaller_than_its_state_dict(tmp_path: Path, precision: Any) -> None:
    net = dabnet.build("resnet18", 250, precision)
    path = tmp_path / "m.safetensors"
    dabnet.export(net, path, labels=LABELS)
    state = sum(4 * tensor.numel() for tensor in net.state_dict().values() if tensor.is_floating_point())
    assert state / path.stat().st_size >= 30


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    net = dabnet.build("resnet18", 5, "fbin", width=0.125, input_size=32)
    path = tmp_path / "m.safetensors"
    path.write_bytes(b"old")
    with pytest.raises(InputError, match="labels"):
        dabnet.export(net, path, (1, 32, 32), ["too", "few"])
    assert path.read_bytes() == b"old"
    model = dabnet.export(net, path, (1, 32, 32), list("abcde"))
    session = dabnet.runtime.Session(path)
    assert session.labels == list("abcde")
    assert session.input_size == model.input_size == (1, 32, 32)
    assert [item.name for item in tmp_path.iterdir()] == ["m.safetensors"]
    with pytest.raises(InputError, match=r"cannot write .* choose another place"):
        dabnet.export(net, tmp_path / "nowhere" / "m.safetensors", (1, 32, 32))


@pytest.mark.parametrize("precision", ["wbin", "fbin"])
def test_onnx_gives_the_same_classes_as_torch(precision: Any) -> None:
    torch.manual_seed(0)
    x = drawings(100, 32)
    net = unsettle(dabnet.build("googlenet", 20, precision, width=0.125, input_size=32), x)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(to_onnx(lower(net, (1, 32, 32)).model), options, ["CPUExecutionProvider"])
    (found,) = session.run(None, {"sketches": x})
    expected = net(torch.from_numpy(x)).detach().numpy()
    assert np.mean(found.argmax(axis=1) == expected.argmax(axis=1)) >= 0.98
