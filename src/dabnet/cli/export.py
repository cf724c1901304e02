"""`dabnet export`: a trained network as one small file."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from dabnet._files import check_output, write_beside
from dabnet._lazy import load
from dabnet.cli.console import PlainConsole
from dabnet.cli.progress import show_progress
from dabnet.errors import InputError
from dabnet.exporting.lower import lower
from dabnet.exporting.quantize import quantize_activations
from dabnet.packed import to_bytes
from dabnet.packed.int8 import store_real_weights
from dabnet.sketches.raster import show_batch
from dabnet.sketches.store import SketchSet
from dabnet.training.run import load_trained

if TYPE_CHECKING:
    from dabnet.training.calibrate import Calibration


class Format(StrEnum):
    """What to write."""

    PACKED = "packed"
    ONNX = "onnx"


class RealWeightsChoice(StrEnum):
    """How weights that are not binary are stored."""

    FLOAT32 = "float32"
    INT8 = "int8"


class ActivationsChoice(StrEnum):
    """What layers with one-bit weights take instead of real numbers."""

    INT8 = "int8"
    INT4 = "int4"


def export(
    model: Annotated[Path, typer.Argument(help="A run's folder, or a weights file.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; model.safetensors or model.onnx.")
    ] = None,
    format: Annotated[  # noqa: A002  # the option's name
        Format, typer.Option(help="A packed model for dabnet's runtime, or ONNX for others, with weights of 32 bits.")
    ] = Format.PACKED,
    calibrate: Annotated[
        bool,
        typer.Option("--calibrate", help="Fit how sure it is to how often it is right, on the run's held-back part."),
    ] = False,
    real_weights: Annotated[
        RealWeightsChoice,
        typer.Option(help="How weights that are not binary are stored: int8 takes a quarter of the bytes, rounded."),
    ] = RealWeightsChoice.FLOAT32,
    activations: Annotated[
        ActivationsChoice | None,
        typer.Option(help="Whole numbers instead of real ones for layers with one-bit weights: faster."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="A prepared set, for --activations: steps are fitted to what its sketches make."),
    ] = None,
    count: Annotated[int, typer.Option("--sketches", help="How many of its sketches, chosen at random.", min=1)] = 64,
    threads: Annotated[int, typer.Option(help="Threads that run it, to calibrate or to fit steps.", min=1)] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON, and nothing else.")] = False,
) -> None:
    """Pack a trained network into one file: one bit per binary weight, norms folded away, labels and all.

    The file is safetensors, runs without torch (dabnet.runtime.Session), and docs/file-format.md explains every byte.
    With --calibrate it holds a temperature that makes its probabilities fit how often it is right. With --activations
    int8 a network that was trained with real activations (WBin) gets whole numbers without any training; int4 loses
    more unless it is trained so (activations=int4 in the recipe).
    """
    if (activations is None) != (data is None):
        raise InputError("--activations and --data go together: real sketches tell how large the numbers are.")
    if calibrate and format is Format.ONNX:
        raise InputError("an ONNX file cannot hold a temperature: leave out --calibrate, or --format onnx.")
    path = output or Path("model.safetensors" if format is Format.PACKED else "model.onnx")
    check_output(path)
    trained = load_trained(model)
    size = (1, trained.raster.size, trained.raster.size)
    packed = lower(trained.net, size, trained.classes, trained.raster.to_dict()).model
    if activations is not None and data is not None:
        found = SketchSet(data)
        rows = np.random.default_rng(0).permutation(len(found))[:count]
        x = show_batch(found.read(rows), trained.raster)
        with show_progress("Fitting steps", PlainConsole(quiet=as_json)) as progress:
            packed = quantize_activations(packed, activations.value, x, threads=threads, progress=progress)
    packed = store_real_weights(packed, real_weights.value)
    fitted: Calibration | None = None
    if calibrate:
        with show_progress("Calibrating", PlainConsole(quiet=as_json)) as progress:
            fitted = load("dabnet.training.calibrate").calibrate(packed, model, threads=threads, progress=progress)
        packed = fitted.model
    written = to_bytes(packed) if format is Format.PACKED else load("dabnet.exporting.onnx_file").to_onnx(packed)
    write_beside(path, written)
    float_bytes = sum(4 * tensor.numel() for tensor in trained.net.state_dict().values() if tensor.is_floating_point())
    if as_json:
        figures: dict[str, object] = {"path": str(path), "format": str(format)}
        figures |= {"bytes": len(written), "float_bytes": float_bytes, "real_weights": real_weights.value}
        figures |= {"classes": len(trained.classes), "input_size": size}
        if fitted:
            figures |= {"temperature": packed.temperature, "calibration_sketches": fitted.sketches}
            figures |= {"ece_before": fitted.ece_before, "ece_after": fitted.ece_after}
        typer.echo(json.dumps(figures, indent=2))
        return
    typer.echo(
        f"{path}: {len(written):,} bytes, {float_bytes / len(written):.1f} times smaller than the network's float32 "
        f"weights; sketches of {size[1]}x{size[2]}, {len(trained.classes)} classes."
    )
    if fitted:
        typer.echo(
            f"Temperature {packed.temperature:.4g}, fitted on the run's {fitted.sketches:,} held-back sketches: "
            f"calibration error {fitted.ece_before:.1%} before, {fitted.ece_after:.1%} after."
        )
    if activations is not None:
        typer.echo(f"How often it is right: dabnet evaluate {path} --data {data}")
    elif format is Format.PACKED:
        typer.echo(f"Compare it with the network: dabnet verify {model} {path}")
