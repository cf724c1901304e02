"""Filters of every kind that the split must get right, and the slow way to split them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Rng = np.random.Generator


def _flat_gain(rng: Rng, n: int) -> NDArray[Any]:
    """Draw weights for which nearly every split is as good as any other, so that every bin is a suspect."""
    u = rng.uniform(0.001, 0.999, n)
    return (1 - 2 * u) / np.sqrt(u * (1 - u))


DRAWN: dict[str, Callable[[Rng, int], NDArray[Any]]] = {
    "gaussian": lambda rng, n: rng.normal(0, 0.05, n),
    "laplace": lambda rng, n: rng.laplace(0, 1, n),
    "skewed": lambda rng, n: rng.lognormal(0, 2, n),
    "cauchy": lambda rng, n: rng.standard_cauchy(n),
    "two clusters": lambda rng, n: rng.choice([-1e3, 1e3], n) + rng.normal(0, 1e-3, n),
    "many equal": lambda rng, n: rng.choice(rng.normal(0, 1, 5), n),
    "denormal": lambda rng, n: rng.normal(0, 1e-42, n),
    "huge": lambda rng, n: rng.uniform(-3e38, 3e38, n),
    "offset": lambda rng, n: 1e4 + rng.normal(0, 0.01, n),
    "all scales": lambda rng, n: rng.choice([-1, 1], n) * 2.0 ** rng.uniform(-149, 127, n),
    "flat gain": _flat_gain,
    "constant": lambda rng, n: np.full(n, rng.normal()),
}


@st.composite
def drawn_filters(draw: st.DrawFn, kind: str) -> NDArray[np.float32]:
    """Filters of a kind, (n,): mostly long enough to be searched rather than sorted."""
    n = draw(st.one_of(st.integers(1, 4), st.integers(5, 200), st.integers(200, 3000)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return DRAWN[kind](rng, n).astype(np.float32)


def arbitrary_filters() -> st.SearchStrategy[NDArray[np.float32]]:
    """Filters of whatever finite floats hypothesis thinks of, repeated to be long."""
    short = hnp.arrays(
        np.float32, st.integers(1, 40), elements=st.floats(allow_nan=False, allow_infinity=False, width=32)
    )
    return st.tuples(short, st.integers(1, 12)).map(lambda pair: np.repeat(*pair))


def every_gain(w: NDArray[np.float32]) -> tuple[NDArray[np.longdouble], np.longdouble]:
    """The gain D_i of every split i = 1 .. n-1 of the centred filter, and its energy, in extended precision."""
    x = np.sort(w).astype(np.longdouble)
    x = x - x.mean()
    i = np.arange(1, len(x))
    low = np.cumsum(x)[:-1]
    return low**2 / i + (x.sum() - low) ** 2 / (len(x) - i), np.sum(x**2)


def squared_error(w: NDArray[np.float32], binary: NDArray[Any]) -> np.longdouble:
    return np.longdouble(np.sum((w.astype(np.longdouble) - binary) ** 2))
