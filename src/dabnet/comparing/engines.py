"""The engines that can be compared: what each runs, the file that it loads, and how it is set up."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from dabnet._lazy import EXTRAS, load
from dabnet.comparing.sketches import draw_sketches
from dabnet.comparing.twin import real_twin
from dabnet.errors import MissingExtraError, check_choice
from dabnet.packed import read_model, to_bytes
from dabnet.runtime import Session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from dabnet.packed.model import Model

    Array = NDArray[np.float32]
    Run = Callable[[Array], Array]

OURS = "dabnet"
MAX_MEMORY = 8 << 30
"""Bytes that a model may take: whoever measures one has it on purpose."""
CALIBRATION = 16
"""Sketches that tell int8 the ranges of its values."""


@dataclass(frozen=True)
class Engine:
    """A way to run a model."""

    about: str
    library: str
    """What runs it."""
    tools: tuple[str, ...]
    """Libraries that write its file."""
    write: Callable[[Model, Path], Path]
    """Writes what it loads into a folder, unless it is there, and returns the file's path."""
    open: Callable[[Path, int], Run]
    """Loads that file for a number of threads; what it gives takes sketches to logits."""


def check_engines(names: list[str]) -> None:
    """Raise an error that says what to do about the first engine that there is not, or that is not installed."""
    for name in names:
        check_choice("known engine", name, tuple(ENGINES))
        for library in _missing(name):
            raise MissingExtraError(library, EXTRAS[library])


def is_installed(name: str) -> bool:
    """Return whether an engine could run here."""
    return not _missing(name)


def _missing(name: str) -> list[str]:
    """Return the libraries that an engine needs and that are not installed."""
    return [library for library in (ENGINES[name].library, *ENGINES[name].tools) if find_spec(library) is None]


def _write_packed(model: Model, folder: Path) -> Path:
    return _write(folder / "packed.safetensors", lambda: to_bytes(model))


def _write_twin(model: Model, folder: Path) -> Path:
    return _write(folder / "twin.safetensors", lambda: to_bytes(real_twin(model)))


def _write_onnx(model: Model, folder: Path) -> Path:
    return _write(folder / "twin.onnx", lambda: load("dabnet.exporting.onnx_file").to_onnx(real_twin(model)))


def _write(path: Path, make: Callable[[], bytes]) -> Path:
    if not path.exists():
        path.write_bytes(make())
    return path


def _write_int8(model: Model, folder: Path) -> Path:
    path = folder / "twin-int8.onnx"
    if not path.exists():
        real = _write_onnx(model, folder)
        load("dabnet.comparing.int8").quantize(
            real, path, draw_sketches(CALIBRATION, model.input_size, model.raster, seed=2)
        )
    return path


def _write_binary(model: Model, folder: Path) -> Path:
    graph = load("dabnet.comparing.binary_graph").to_binary_graph(model)
    import openvino

    path = folder / "binary.xml"
    openvino.save_model(graph, path, compress_to_fp16=False)
    return path


def _open_session(path: Path, threads: int) -> Run:
    return Session(path, threads, max_memory=MAX_MEMORY).run


def _open_torch(path: Path, threads: int) -> Run:
    import torch

    torch.set_num_threads(threads)
    net = load("dabnet.networks.packed").PackedNetwork(read_model(path, MAX_MEMORY)).eval()

    def run(x: Array) -> Array:
        with torch.inference_mode():
            logits: Array = net(torch.from_numpy(x)).numpy()
        return logits

    return run


def _open_onnxruntime(path: Path, threads: int) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    # Its threads wait busily, which is fast; but between runs they would do so in the others' way.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def run(x: Array) -> Array:
        logits: Array = session.run(None, {"sketches": x})[0]
        return logits

    return run


def _open_openvino(path: Path, threads: int) -> Run:
    import openvino

    core = openvino.Core()
    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
    model = core.read_model(path)
    requests: dict[tuple[int, ...], openvino.InferRequest] = {}

    def run(x: Array) -> Array:
        if x.shape not in requests:  # it is faster for a batch that it knows
            requests.clear()
            model.reshape(list(x.shape))
            requests[x.shape] = core.compile_model(model, "CPU", settings).create_infer_request()
        logits: Array = requests[x.shape].infer([x], share_inputs=True)[0]
        return logits

    return run


ENGINES: dict[str, Engine] = {
    OURS: Engine("packed model", "dabnet", (), _write_packed, _open_session),
    "torch": Engine("float32 twin", "torch", (), _write_twin, _open_torch),
    "onnxruntime": Engine("float32 twin", "onnxruntime", ("onnx",), _write_onnx, _open_onnxruntime),
    "onnxruntime-int8": Engine("int8 twin", "onnxruntime", ("onnx",), _write_int8, _open_onnxruntime),
    "openvino": Engine("float32 twin", "openvino", ("onnx",), _write_onnx, _open_openvino),
    "openvino-int8": Engine("int8 twin", "openvino", ("onnx", "onnxruntime"), _write_int8, _open_openvino),
    "openvino-binary": Engine("binary graph", "openvino", (), _write_binary, _open_openvino),
}
"""A twin has the same layers with weights of more bits; see `real_twin`, `int8` and `binary_graph`."""
