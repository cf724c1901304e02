"""An ONNX file with numbers of 8 bits: ONNX Runtime's own static quantization, as pairs of operators (QDQ)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

if TYPE_CHECKING:
    from numpy.typing import NDArray


class _Sketches(CalibrationDataReader):  # type: ignore[misc]  # onnxruntime has no types
    """Hands out sketches, one at a time."""

    def __init__(self, x: NDArray[np.float32]) -> None:
        self._left = iter(x)

    def get_next(self) -> dict[str, Any] | None:
        sketch = next(self._left, None)
        return None if sketch is None else {"sketches": sketch[None]}


def quantize(real: Path, path: Path, x: NDArray[np.float32]) -> None:
    """Write an ONNX file of ours with 8 bits per number, the ranges of its values taken from sketches `x`."""
    prepared = path.with_suffix(".prepared.onnx")
    quant_pre_process(real, prepared, skip_symbolic_shape=True)
    quantize_static(
        prepared,
        path,
        _Sketches(x),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
    prepared.unlink()
