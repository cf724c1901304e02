"""The optimal split: the two values that stand for a filter's weights with the least squared error.

This is exact two-means clustering in one dimension (equally: Otsu's threshold), Theorem 2 of the paper. Sorted, the
best split puts the `i` smallest weights into one group and the others into another, where `i` maximises

    D_i = P_i² / i + (T - P_i)² / (n - i)        P_i: sum of the i smallest, T: sum of all

and each group is replaced by its mean. `alpha` is the mean of larger magnitude (the positive one of two equal ones),
`beta` the other, the mask `e` marks the weights that take `alpha`, and `K` counts them. Of equal D the smallest `i`
wins; equal weights share a group; a constant filter has alpha = beta and K = n.

The paper's Algorithm 1 sorts twice. The native search (native/split_search.cpp) sorts none but small filters, and takes
linear time.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, overload

import numpy as np

from dabnet import _native
from dabnet.errors import InputError, NonFiniteError

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

ArrayT = TypeVar("ArrayT")

TIE = 1e-12
"""Two gains this close, relatively, differ by rounding at most: the smaller low group wins."""


class Split(NamedTuple, Generic[ArrayT]):
    """Two values per filter, and which weights take which, as arrays of the kind that was split."""

    alpha: ArrayT
    """(filters,) float64: the mean of larger magnitude."""
    beta: ArrayT
    """(filters,) float64: the other mean."""
    mask: ArrayT
    """(filters, n) bool: the weights that take `alpha`."""
    k: ArrayT
    """(filters,) int64: how many do."""


@overload
def optimal_split(
    w: NDArray[np.float32],
    threads: int = 1,
    *,
    low_counts: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
    layer: str = "",
    binary: NDArray[np.float32] | None = None,
) -> Split[NDArray[Any]]: ...
@overload
def optimal_split(
    w: torch.Tensor,
    threads: int = 1,
    *,
    low_counts: tuple[torch.Tensor, torch.Tensor] | None = None,
    layer: str = "",
    binary: torch.Tensor | None = None,
) -> Split[torch.Tensor]: ...
def optimal_split(
    w: Any, threads: int = 1, *, low_counts: tuple[Any, Any] | None = None, layer: str = "", binary: Any = None
) -> Split[Any]:
    """Split each row of `w`, float32 (filters, n), into the two groups of least squared error.

    Takes numpy arrays and torch tensors, contiguous or not, without copying them; the answer is of the same kind and on
    the same device. Means are float64, so that `alpha` and `beta` are exact even for weights far from zero.

    `low_counts` limits the search, a filter at a time, to splits whose group of smaller weights holds at least
    `low_counts[0]` and at most `low_counts[1]` weights (int64, (filters,)); where equal weights leave none, all splits
    are searched.
    `layer` is a name for the error that a NaN or an infinite weight raises. `binary`, an array like `w` in one piece,
    is filled with the two values: `alpha` or `beta` for each weight.

    >>> s = optimal_split(np.array([[-1.0, 0.5, 3.0, 3.5]], dtype=np.float32))
    >>> float(s.alpha[0]), float(s.beta[0]), s.mask[0].tolist(), int(s.k[0])
    (3.25, -0.25, [False, False, True, True], 2)
    """
    if threads < 1:
        raise InputError(f"optimal_split needs at least one thread, not {threads}.")
    torch = sys.modules.get("torch")  # nobody has a tensor who has not imported torch
    if torch is not None and isinstance(w, torch.Tensor):
        _check(w, w.dtype == torch.float32)
        if w.device.type == "cpu":
            limits = None if low_counts is None else (low_counts[0].numpy(), low_counts[1].numpy())
            values = None if binary is None else binary.numpy()
            native = _split_native(w.detach().numpy(), threads, limits, layer, values)
            return Split(*(torch.from_numpy(array) for array in native))
        from dabnet.binarizers.sweep import sweep_split

        split = sweep_split(w, low_counts=low_counts, layer=layer)
        if binary is not None:
            binary.copy_(torch.where(split.mask, split.alpha[:, None], split.beta[:, None]))
        return split
    if not isinstance(w, np.ndarray):
        raise InputError(
            f"optimal_split takes a numpy array or a torch tensor, not {type(w).__name__}: "
            "wrap it, for example np.asarray(w, dtype=np.float32)."
        )
    _check(w, w.dtype == np.float32)
    return _split_native(w, threads, low_counts, layer, binary)


def nonfinite(filter_index: int, layer: str) -> NonFiniteError:
    """Say which filter holds a NaN or an infinity, and in which layer where that is known."""
    where = f"filter {filter_index}" + (f" of layer '{layer}'" if layer else "")
    return NonFiniteError(
        f"{where} holds a NaN or an infinite weight and cannot be binarized: "
        "lower the learning rate, or load weights that are finite."
    )


def _check(w: Any, is_float32: bool) -> None:
    if not is_float32:
        raise InputError(
            f"optimal_split takes float32 weights, not {str(w.dtype).removeprefix('torch.')}: convert them first."
        )
    if w.ndim != 2:
        raise InputError(
            f"optimal_split takes weights of shape (filters, n), not {tuple(w.shape)}: "
            "reshape them to one filter per row, for example w.reshape(len(w), -1)."
        )
    if 0 in w.shape:
        raise InputError(f"optimal_split needs at least one filter and one weight, not shape {tuple(w.shape)}.")


def _split_native(
    w: NDArray[np.float32],
    threads: int,
    low_counts: tuple[NDArray[np.int64], NDArray[np.int64]] | None,
    layer: str,
    binary: NDArray[np.float32] | None,
) -> Split[NDArray[Any]]:
    filters, n = w.shape
    if binary is not None and (binary.shape != w.shape or not binary.flags.c_contiguous or binary.dtype != w.dtype):
        raise InputError(f"binary must be a float32 array of shape {w.shape}, in one piece.")
    if not w.flags.aligned or any(stride % w.itemsize for stride in w.strides):
        w = w.copy()  # a view into packed records, which no pointer to float can walk
    least = most = None
    if low_counts is not None:
        if any(limit.shape != (filters,) for limit in low_counts):
            raise InputError(f"low_counts must be two arrays of shape ({filters},), a number for each filter.")
        least, most = (np.clip(limit, 0, n).astype(np.int64) for limit in low_counts)
    split: Split[NDArray[Any]] = Split(
        np.empty(filters),
        np.empty(filters),
        np.empty((filters, n), dtype=bool),
        np.empty(filters, dtype=np.int64),
    )
    bad = _native.split_filters(
        w, least, most, threads, split.alpha, split.beta, split.mask.view(np.uint8), split.k, binary
    )
    if bad >= 0:
        raise nonfinite(bad, layer)
    return split
