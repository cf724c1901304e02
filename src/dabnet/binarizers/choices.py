"""The names of what can be chosen."""

from __future__ import annotations

from typing import Literal

Precision = Literal["fprec", "wbin", "fbin"]
"""Nothing binary; weights binary; weights and activations binary."""

Method = Literal["dab", "xnor", "bnn"]
"""How a filter's two values are found: distribution-aware, XNOR-Net's, or +1 and -1."""

WeightGradient = Literal["paper", "exact", "ste"]
"""What stands for the gradient of binary weights; see `dabnet.binarizers.weights`."""

SignGradient = Literal["clipped", "approx"]
"""What stands for the gradient of a sign; see `dabnet.binarizers.activations`."""
