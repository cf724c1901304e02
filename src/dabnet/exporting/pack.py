"""Writes a trained network as one small file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dabnet._files import write_beside
from dabnet.exporting.lower import lower
from dabnet.packed import to_bytes
from dabnet.packed.int8 import store_real_weights

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from torch import nn

    from dabnet.packed import Model
    from dabnet.packed.int8 import RealWeights


def export(
    net: nn.Module,
    path: str | PathLike[str],
    input_size: Sequence[int] = (1, 224, 224),
    labels: Sequence[str] | None = None,
    *,
    raster: dict[str, float] | None = None,
    real_weights: RealWeights = "float32",
) -> Model:
    """Write a network as a packed model, one safetensors file that `dabnet.runtime.Session` runs; return the model.

    Args:
        net: any network of convolutions, linear and binary layers, norms, ReLUs and their relatives, pools, sums and
            concats; an `UnsupportedError` names a part that packed models do not have. It is left as it was.
        path: where to write.
        input_size: channels, height and width of a sketch. The file is for this size.
        labels: the classes' names in the order of the logits.
        raster: how to draw a sketch for it, `Raster.to_dict()`.
        real_weights: how weights that are not binary are stored, "float32" or "int8": a quarter of the bytes, rounded.

    >>> import tempfile
    >>> from dabnet.networks.catalog import build
    >>> net = build("resnet18", classes=10, precision="fbin", width=0.25, input_size=32)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = export(net, f"{folder}/m.safetensors", input_size=(1, 32, 32))
    >>> model.input_size, model.answers
    ((1, 32, 32), 10)
    """
    model = store_real_weights(lower(net, input_size, labels or (), raster).model, real_weights)
    write_beside(Path(path), to_bytes(model))
    return model
