"""`dabnet export`: a trained network as one small file."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dabnet._files import write_beside
from dabnet._lazy import load
from dabnet.exporting.lower import lower
from dabnet.packed import to_bytes
from dabnet.training.run import load_model


class Format(StrEnum):
    """What to write."""

    PACKED = "packed"
    ONNX = "onnx"


def export(
    model: Annotated[Path, typer.Argument(help="A run's folder, or a weights file.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; model.safetensors or model.onnx.")
    ] = None,
    format: Annotated[  # noqa: A002  # the option's name
        Format, typer.Option(help="A packed model for dabnet's runtime, or ONNX for others, with weights of 32 bits.")
    ] = Format.PACKED,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON, and nothing else.")] = False,
) -> None:
    """Pack a trained network into one file: one bit a binary weight, norms folded away, labels and all.

    The file is safetensors, runs without torch (dabnet.runtime.Session), and docs/file-format.md explains every byte.
    """
    trained = load_model(model)
    size = (1, trained.raster.size, trained.raster.size)
    packed = lower(trained.net, size, trained.classes, trained.raster.to_dict()).model
    data = to_bytes(packed) if format is Format.PACKED else load("dabnet.exporting.onnx_file").to_onnx(packed)
    path = output or Path("model.safetensors" if format is Format.PACKED else "model.onnx")
    write_beside(path, data)
    float_bytes = sum(4 * tensor.numel() for tensor in trained.net.state_dict().values() if tensor.is_floating_point())
    if as_json:
        figures = {"path": str(path), "format": str(format), "bytes": len(data), "float_bytes": float_bytes}
        typer.echo(json.dumps(figures | {"classes": len(trained.classes), "input_size": size}, indent=2))
        return
    typer.echo(
        f"{path}: {len(data):,} bytes, {float_bytes / len(data):.1f} times smaller than the network's float32 weights; "
        f"sketches of {size[1]}x{size[2]}, {len(trained.classes)} classes."
    )
    if format is Format.PACKED:
        typer.echo(f"Compare it with the network: dabnet verify {model} {path}")
