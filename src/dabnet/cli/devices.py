"""Where torch can compute."""

from __future__ import annotations

import torch

from dabnet.errors import InputError, check_choice


def check_device(device: str) -> None:
    """Raise an `InputError` unless torch can compute there."""
    check_choice("device", device, ("auto", "cpu", "cuda", "mps"))
    is_missing = (device == "cuda" and not torch.cuda.is_available()) or (
        device == "mps" and not torch.backends.mps.is_available()
    )
    if is_missing:
        raise InputError(f"torch finds no {device} device on this machine: choose --device cpu, or auto.")
