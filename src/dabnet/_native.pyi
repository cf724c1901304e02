from typing import Literal

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
def find_ink(
    pixels: NDArray[np.uint8], bitmap: NDArray[np.uint8], is_clean: bool
) -> Literal["clean", "photograph"] | None: ...

COMPILER: str
IS_STABLE_ABI: bool

BAD_ARGUMENT: int
BAD_MODEL: int
TOO_LARGE: int
TOO_MUCH_WORK: int
BAD_INPUT: int
NOT_FINITE: int
CANCELLED: int
NO_MEMORY: int
TIME_LIMIT: int
MAX_MEMORY: int
MAX_WORK: float

class CoreError(Exception):
    args: tuple[int, str]

def probabilities(logits: NDArray[np.float32], temperature: float, out: NDArray[np.float64]) -> None: ...
def kernel_names() -> list[str]: ...
def inspect(data: bytes) -> str: ...

class Drawings:
    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def add(self, points: NDArray[np.float32], ends: NDArray[np.int64]) -> None: ...
    def add_strokes(self, strokes: object) -> bool: ...
    def add_json(self, data: bytes) -> bool: ...
    def add_lines(self, data: bytes, threads: int) -> tuple[list[tuple[int, int, int, bool]], int]: ...
    def strokes(self, i: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]: ...

class Cancel:
    def __init__(self) -> None: ...
    def cancel(self) -> None: ...
    @property
    def is_cancelled(self) -> bool: ...

class Model:
    def __init__(self, data: bytes, threads: int, max_memory: int, max_work: float, kernels: str) -> None: ...
    def about(self) -> str: ...
    def run(
        self,
        images: NDArray[np.float32],
        logits: NDArray[np.float32],
        cancel: Cancel | None,
        seconds: float | None,
        hears_signals: bool,
    ) -> None: ...
    def recognize(
        self,
        drawings: Drawings,
        first: int,
        end: int,
        names: list[str],
        top: int,
        cancel: Cancel | None,
        seconds: float | None,
        hears_signals: bool,
    ) -> list[list[tuple[str, float]]]: ...
    def time_steps(self, image: NDArray[np.float32], seconds: NDArray[np.float64]) -> None: ...
    def draw_strokes(
        self, points: NDArray[np.float32], ends: NDArray[np.int64], image: NDArray[np.float32]
    ) -> None: ...
    def draw_bitmap(self, bitmap: NDArray[np.uint8], line_width: float, image: NDArray[np.float32]) -> None: ...
    def rank(self, logits: NDArray[np.float32], top: int) -> list[tuple[str, float]]: ...
