from collections.abc import Sequence

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
def kernel_names() -> list[str]: ...

class Network:
    def __init__(self, size: Sequence[int], threads: int, max_memory: int, kernels: str) -> None: ...
    def conv(
        self,
        value: int,
        kernel: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        filters: int,
        groups: int,
        pad_with_ones: bool,
        weight: NDArray[np.float32] | None,
        bits: NDArray[np.uint8] | None,
        scale: NDArray[np.float32] | None,
        middle: NDArray[np.float32] | None,
        bias: NDArray[np.float32] | None,
        added: int | None,
        signs: Sequence[tuple[NDArray[np.float32] | None, NDArray[np.uint8] | None]],
        makes_real: bool,
        slope: NDArray[np.float32] | None,
        low: float,
        high: float,
        pool: tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]] | None,
    ) -> int: ...
    def sign(self, value: int, threshold: NDArray[np.float32] | None, flip: NDArray[np.uint8] | None) -> int: ...
    def sign_pool(
        self,
        value: int,
        kernel: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        flip: NDArray[np.uint8] | None,
    ) -> int: ...
    def affine(self, value: int, scale: NDArray[np.float32], shift: NDArray[np.float32]) -> int: ...
    def clamp(self, value: int, low: float, high: float) -> int: ...
    def prelu(self, value: int, slope: NDArray[np.float32]) -> int: ...
    def max_pool(
        self,
        value: int,
        kernel: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
    ) -> int: ...
    def average_pool(
        self,
        value: int,
        kernel: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        count_padding: bool,
    ) -> int: ...
    def adaptive_pool(self, value: int, size: Sequence[int], largest: bool) -> int: ...
    def add(self, a: int, b: int) -> int: ...
    def concat(self, inputs: Sequence[int]) -> int: ...
    def flatten(self, value: int) -> int: ...
    def plan(self, answer: int) -> None: ...
    def time_steps(self, sketch: NDArray[np.float32]) -> list[float]: ...
    def output_shape(self, step: int) -> tuple[int, int, int]: ...
    def run(self, sketches: NDArray[np.float32], answers: NDArray[np.float32]) -> bool: ...
    @property
    def kernels(self) -> str: ...
    @property
    def memory(self) -> int: ...
