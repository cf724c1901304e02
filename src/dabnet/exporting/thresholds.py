"""A sign and what stands before it as one threshold per channel.

A channel's sign is +1 where `x >= at`, or, where it was turned, where `x <= at`. What grows or falls with x before the
sign only moves the threshold, or turns it: so does a norm, whatever its scale, a ReLU and its relatives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Thresholds:
    """Where each channel's sign changes, and in which of them it is +1 below."""

    at: NDArray[np.float64]
    turned: NDArray[np.bool_]

    @staticmethod
    def zeros(channels: int) -> Thresholds:
        """Return the plain sign: +1 where x >= 0."""
        return Thresholds(np.zeros(channels), np.zeros(channels, dtype=np.bool_))

    def before_affine(self, scale: Floats, shift: Floats) -> Thresholds:
        """Return the thresholds of x where these are of scale x + shift; with a scale of 0 the sign is always the same.

        >>> Thresholds.zeros(3).before_affine(np.array([2.0, -1.0, 0.0]), np.array([1.0, 3.0, 5.0]))
        Thresholds(at=array([-0.5,  3. , -inf]), turned=array([False,  True, False]))
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            moved = (self.at - shift) / scale
        always = np.where(self.turned, shift <= self.at, shift >= self.at)
        flat = scale == 0
        at = np.where(flat, np.where(always, -np.inf, np.inf), moved)
        return Thresholds(at, np.where(flat, False, self.turned ^ (scale < 0)))

    def before_clamp(self, low: float, high: float) -> Thresholds:
        """Return the thresholds of x where these are of x clamped to [low, high]; a ReLU is a clamp to [0, infinity].

        >>> Thresholds(np.array([-1.0, 0.5, 2.0]), np.zeros(3, dtype=bool)).before_clamp(0, 1).at
        array([-inf,  0.5,  inf])
        """
        too_low = np.where(self.turned, self.at < low, self.at <= low)
        too_high = np.where(self.turned, self.at >= high, self.at > high)
        return Thresholds(np.where(too_low, -np.inf, np.where(too_high, np.inf, self.at)), self.turned)

    def before_prelu(self, slope: Floats) -> Thresholds:
        """Return the thresholds of x where these are of a PReLU of x with slopes that are not negative."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            below = self.at / slope
        # Without a slope nothing is below 0, as with a ReLU.
        flat = np.where(self.turned, self.at < 0, self.at <= 0) & (slope == 0)
        return Thresholds(np.where(flat, -np.inf, np.where(self.at < 0, below, self.at)), self.turned)

    def to_float32(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Return (threshold, flip) so that the sign is +1 where (x >= threshold) != flip, for any finite float32 x."""
        with np.errstate(over="ignore"):
            at = self.at.astype(np.float32)
        # x <= at is not (x >= the next number).
        return np.where(self.turned, np.nextafter(at, np.float32(np.inf)), at).astype(np.float32), self.turned
