import numpy as np
from numpy.typing import NDArray

def split_filters(
    weights: NDArray[np.float32],
    least: NDArray[np.int64] | None,
    most: NDArray[np.int64] | None,
    threads: int,
    alpha: NDArray[np.float64],
    beta: NDArray[np.float64],
    mask: NDArray[np.bool_],
    k: NDArray[np.int64],
) -> int: ...
