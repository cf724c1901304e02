"""Runs a packed model, natively and without torch. The core (native/) reads, checks, plans and runs it.

Numpy is imported where arrays are, since strokes go from a file to labels without any.
"""

from __future__ import annotations

import json
import os
import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dabnet import _native
from dabnet.errors import InputError, NonFiniteError, RunCancelledError, TimeLimitError, suggest
from dabnet.packed.core import refusal
from dabnet.packed.data import DEFAULT_MAX_MEMORY, read_bytes

if TYPE_CHECKING:
    from os import PathLike

    import numpy as np
    from numpy.typing import NDArray

    from dabnet.packed.model import Model

KERNELS_VARIABLE = "DABNET_KERNELS"
DEFAULT_MAX_WORK = _native.MAX_WORK
"""Multiply-adds, or what takes as long, that a model may take for one sketch, unless told otherwise."""
MAX_THREADS = 1024
Cancel = _native.Cancel
Drawings = _native.Drawings


class Session:
    """A packed model, ready to run; threads may share it, and it goes to other processes as it is.

    Args:
        model: a path, the bytes of a file, or a `Model`.
        threads: how many may be at work in one call, on sketches of their own or together on one. An answer does not
            depend on them.
        max_memory: bytes that the model, a sketch and its answer may take; a file that would take more is refused
            before it does. Calls that run at the same time take a little more, each the memory of one sketch's values.
        max_work: multiply-adds, or what takes as long, that the model may take for one sketch; a file that would take
            more is refused.

    The environment's DABNET_KERNELS names the kernels to use; without it the fastest that run here are taken.

    >>> import numpy as np
    >>> from dabnet.packed.model import Model
    >>> from dabnet.packed.nodes import Conv
    >>> mean = Conv(inputs=(0,), filters=1, kernel=(2, 2), weight=np.full((1, 2, 2, 1), 0.25, dtype=np.float32))
    >>> Session(Model((1, 2, 2), (mean,))).run(np.arange(8, dtype=np.float32).reshape(2, 1, 2, 2))
    array([[1.5],
           [5.5]], dtype=float32)
    """

    def __init__(
        self,
        model: str | PathLike[str] | bytes | Model,
        threads: int = 1,
        *,
        max_memory: int = DEFAULT_MAX_MEMORY,
        max_work: float = DEFAULT_MAX_WORK,
    ) -> None:
        if threads < 1:
            raise InputError(f"a Session needs at least one thread, not {threads}.")
        if threads > MAX_THREADS:
            raise InputError(f"a Session has at most {MAX_THREADS:,} threads, not {threads:,}.")
        self.threads, self.max_memory, self.max_work = threads, max_memory, max_work
        if isinstance(model, str | os.PathLike | bytes | bytearray | memoryview):
            self._data, path = read_bytes(model, max_memory)
        else:
            from dabnet.packed.write import to_bytes

            self._data, path = to_bytes(model), ""
        self._open(path)

    def _open(self, path: str = "") -> None:
        limits = min(max(self.max_memory, 0), 2**64 - 1), float(self.max_work)
        try:
            self._handle = _native.Model(self._data, self.threads, *limits, _wanted_kernels())
        except _native.CoreError as problem:
            raise refusal(problem, path) from None
        self._about: dict[str, Any] = json.loads(self._handle.about())

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs to open the same model."""
        return {name: getattr(self, name) for name in ("threads", "max_memory", "max_work", "_data")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    @property
    def data(self) -> bytes:
        """The bytes of the model's file."""
        return self._data

    @cached_property
    def model(self) -> Model:
        """The model with its nodes, for whoever wants to look at them."""
        from dabnet.packed.file import from_bytes

        return from_bytes(self._data)

    @property
    def labels(self) -> list[str]:
        """The classes' names, in the order of the logits."""
        return list(self._about["labels"])

    @property
    def input_size(self) -> tuple[int, int, int]:
        """Channels, height and width of a sketch."""
        channels, height, width, _ = self._about["input"]
        return channels, height, width

    @property
    def answers(self) -> int:
        """How many logits a sketch gets."""
        return int(self._about["answers"])

    @property
    def raster(self) -> dict[str, Any] | None:
        """How to draw a sketch for it: size, margin and pen; None if the model does not say."""
        raster: dict[str, Any] | None = self._about["raster"]
        return raster

    @property
    def temperature(self) -> float:
        """What logits are divided by before they become probabilities."""
        return float(self._about["temperature"])

    @property
    def views_temperature(self) -> float:
        """What the logarithm of several views' mean probability is divided by, to be as sure as it is right."""
        return float(self._about["views_temperature"])

    @property
    def kernels(self) -> str:
        """The name of the kernels that run it."""
        return str(self._about["kernels"])

    @property
    def memory(self) -> int:
        """The bytes that weights and values take."""
        return int(self._about["memory"])

    @property
    def work(self) -> float:
        """The multiply-adds of one sketch, or what takes as long."""
        return float(self._about["work"])

    @property
    def batch(self) -> int:
        """How many sketches and their answers fit into `max_memory` beside the model."""
        return int(self._about["batch"])

    @property
    def steps(self) -> list[str]:
        """What each step of the network is: a node, and those after it that are done with it."""
        return list(self._about["steps"])

    def run(
        self, x: NDArray[np.float32], *, time_limit: float | None = None, cancel: Cancel | None = None
    ) -> NDArray[np.float32]:
        """Return the logits, (N, classes), of sketches: float32 (N, channels, height, width), ink 1.0 on 0.0.

        After `time_limit` seconds it stops with a `TimeLimitError`; when another thread calls `cancel.cancel()`, with a
        `RunCancelledError`; on Ctrl-C, with `KeyboardInterrupt`.
        """
        import numpy as np

        x = self._checked(x)
        logits = np.empty((len(x), self.answers), dtype=np.float32)
        try:
            self._handle.run(x, logits, cancel, time_limit, _hears_signals())
        except _native.CoreError as problem:
            raise _run_error(problem, time_limit) from None
        return logits

    def recognize(
        self, drawings: Drawings, top: int, first: int = 0, end: int | None = None
    ) -> list[list[tuple[str, float]]]:
        """Return the likeliest labels of drawings `first` to before `end`, drawn, run and ranked natively."""
        try:
            return self._handle.recognize(
                drawings, first, len(drawings) if end is None else end, self.labels, top, None, None, _hears_signals()
            )
        except _native.CoreError as problem:
            raise _run_error(problem, None) from None

    def _checked(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        import numpy as np

        if not isinstance(x, np.ndarray) or x.dtype != np.float32 or x.ndim != 4 or x.shape[1:] != self.input_size:
            found = f"{x.dtype} {x.shape}" if isinstance(x, np.ndarray) else type(x).__name__
            wanted = ", ".join(map(str, self.input_size))
            raise InputError(f"this model takes a float32 array of shape (N, {wanted}), not {found}.")
        return np.ascontiguousarray(x)

    def layer_times(self, x: NDArray[np.float32], repeats: int = 10) -> list[tuple[str, float]]:
        """Return what each step of the network is, and its least time in seconds, on one thread and for one sketch."""
        import numpy as np

        sketch = self._checked(x)[:1]
        times = np.empty((repeats, len(self.steps)))
        for row in times:
            self._handle.time_steps(sketch, row)
        return list(zip(self.steps, times.min(axis=0).tolist(), strict=True))

    def __repr__(self) -> str:
        size = "x".join(map(str, self.input_size))
        return f"<dabnet Session: {size} -> {self.answers}, kernels {self.kernels}>"


def kernel_names() -> list[str]:
    """Return the names of the kernels that run here, the fastest first."""
    return _native.kernel_names()


def _hears_signals() -> bool:
    return threading.current_thread() is threading.main_thread()


def _wanted_kernels() -> str:
    wanted = os.environ.get(KERNELS_VARIABLE, "")
    if wanted and wanted not in kernel_names():
        known = ", ".join(kernel_names())
        raise InputError(
            f"{KERNELS_VARIABLE}='{wanted}' names no kernels that run here: choose one of {known}."
            f"{suggest(wanted, kernel_names())}"
        )
    return wanted


def _run_error(problem: _native.CoreError, time_limit: float | None) -> Exception:
    status, sentence = problem.args
    if status == _native.TIME_LIMIT:
        return TimeLimitError(f"the model took longer than {time_limit:g} s: raise the time limit.")
    if status == _native.CANCELLED:
        return RunCancelledError(sentence)
    if status == _native.NOT_FINITE:
        return NonFiniteError(sentence)
    return MemoryError(sentence) if status == _native.NO_MEMORY else InputError(sentence)
