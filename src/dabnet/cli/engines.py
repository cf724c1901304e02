"""The engines that a command can be told to run on."""

from __future__ import annotations

from dabnet.errors import InputError, check_choice

LOCAL, RAY = "local", "ray"


def check_engine(engine: str, address: str | None) -> None:
    """Refuse an engine that there is not, and an address without the engine that has one."""
    check_choice("kind of engine", engine, (LOCAL, RAY))
    if address is not None and engine != RAY:
        raise InputError("--address is where a Ray cluster is: add --engine ray.")
