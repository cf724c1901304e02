import numpy as np
from numpy.typing import NDArray

def split_filters(
    weights: NDArray[np.float32],
    least: NDArray[np.int64] | None,
    most: NDArray[np.int64] | None,
    threads: int,
    alpha: NDArray[np.float64],
    beta: NDArray[np.float64],
    mask: NDArray[np.uint8],
    k: NDArray[np.int64],
    binary: NDArray[np.float32] | None,
) -> int: ...
def paper_gradient(
    gradient: NDArray[np.float32],
    weights: NDArray[np.float32],
    mask: NDArray[np.uint8],
    alpha: NDArray[np.float32],
    beta: NDArray[np.float32],
    threads: int,
    out: NDArray[np.float32],
) -> None: ...
def rasterize_strokes(
    points: NDArray[np.float32], stroke_ends: NDArray[np.int64], margin: float, pen: float, out: NDArray[np.uint8]
) -> None: ...
def rasterize_bitmap(
    bitmap: NDArray[np.uint8], line_width: float, margin: float, pen: float, out: NDArray[np.uint8]
) -> bool: ...
def measure_line_width(bitmap: NDArray[np.uint8]) -> float: ...
