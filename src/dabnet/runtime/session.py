"""Runs a packed model, natively and without torch."""

from __future__ import annotations

import math
import os
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from dabnet import _native
from dabnet.errors import InputError, ModelFormatError, suggest
from dabnet.packed.file import DEFAULT_MAX_MEMORY, read_model
from dabnet.packed.model import Model
from dabnet.packed.nodes import (
    AdaptiveAvgPool,
    AdaptiveMaxPool,
    Add,
    Affine,
    AvgPool,
    Clamp,
    Concat,
    Conv,
    Flatten,
    MaxPool,
    Node,
    PRelu,
    Relu,
    Sign,
)
from dabnet.runtime.plan import SignPool, Step, describe, plan

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray

KERNELS_VARIABLE = "DABNET_KERNELS"


class Session:
    """A packed model, ready to run; threads may share it.

    Args:
        model: a path, the bytes of a file, or a `Model`.
        threads: how many may be at work in one call, on sketches of their own or together on one. An answer does not
            depend on them.
        max_memory: bytes that the model may take; a file that would take more is refused before it does. Calls that run
            at the same time take a little more, each the memory of one sketch's values.

    The environment's DABNET_KERNELS names the kernels to use; without it the fastest that run here are taken.

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
    ) -> None:
        if threads < 1:
            raise InputError(f"a Session needs at least one thread, not {threads}.")
        self.model = model if isinstance(model, Model) else read_model(model, max_memory)
        self.threads = threads
        self._network = build_network(self.model, threads, max_memory, _wanted_kernels())

    @property
    def labels(self) -> list[str]:
        """The classes' names, in the order of the logits."""
        return list(self.model.labels)

    @property
    def input_size(self) -> tuple[int, int, int]:
        """Channels, height and width of a sketch."""
        return self.model.input_size

    @property
    def kernels(self) -> str:
        """The name of the kernels that run it."""
        return self._network.kernels

    @property
    def memory(self) -> int:
        """The bytes that weights and values take."""
        return self._network.memory

    def run(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Give the logits, (N, classes), of sketches: float32 (N, channels, height, width), ink 1.0 on 0.0."""
        x = self._checked(x)
        answers = np.empty((len(x), self.model.answers), dtype=np.float32)
        if not self._network.run(x, answers):
            raise InputError("a sketch holds a NaN or an infinite number: ink is 1.0, and paper 0.0.")
        return answers

    def _checked(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        if not isinstance(x, np.ndarray) or x.dtype != np.float32 or x.ndim != 4 or x.shape[1:] != self.input_size:
            found = f"{x.dtype} {x.shape}" if isinstance(x, np.ndarray) else type(x).__name__
            wanted = ", ".join(map(str, self.input_size))
            raise InputError(f"this model takes a float32 array of shape (N, {wanted}), not {found}.")
        return np.ascontiguousarray(x)

    def layer_times(self, x: NDArray[np.float32], repeats: int = 10) -> list[tuple[str, float]]:
        """Give what each step of the network is, and its least time in seconds, on one thread and for one sketch."""
        sketch = self._checked(x)[:1]
        times = np.min([self._network.time_steps(sketch) for _ in range(repeats)], axis=0)
        names = [describe(step, self._network.output_shape(i)) for i, step in enumerate(plan(self.model)[0])]
        return list(zip(names, times.tolist(), strict=True))

    def __repr__(self) -> str:
        size = "x".join(map(str, self.input_size))
        return f"<dabnet Session: {size} -> {self.model.answers}, kernels {self.kernels}>"


def kernel_names() -> list[str]:
    """Give the names of the kernels that run here, the fastest first."""
    return _native.kernel_names()


def build_network(model: Model, threads: int, max_memory: int, kernels: str = "") -> _native.Network:
    """Build the native twin of a checked model."""
    try:
        network = _native.Network(model.input_size, threads, max_memory, kernels)
        steps, answer = plan(model)
        places = {0: 0}  # of the plan's values among the network's
        for step in steps:
            inputs = [places[i] for i in step.node.inputs]
            if isinstance(step.node, Conv):
                first = _add_conv(
                    step, step.node, network, inputs[0], None if step.added is None else places[step.added]
                )
            else:
                first = _add(step.node, network, inputs)
            places.update({value: first + i for i, value in enumerate(step.values)})
        network.plan(places[answer])
    except MemoryError:
        raise ModelFormatError(
            f"the model takes more than {max_memory:,} bytes of memory: raise max_memory if you trust it."
        ) from None
    return network


def _wanted_kernels() -> str:
    wanted = os.environ.get(KERNELS_VARIABLE, "")
    if wanted and wanted not in kernel_names():
        known = ", ".join(kernel_names())
        raise InputError(
            f"{KERNELS_VARIABLE}='{wanted}' names no kernels that run here: choose one of {known}."
            f"{suggest(wanted, kernel_names())}"
        )
    return wanted


def _flat(array: NDArray[Any] | None) -> NDArray[Any] | None:
    return None if array is None else np.ascontiguousarray(array).reshape(-1)


def _add_conv(step: Step, node: Conv, network: _native.Network, value: int, added: int | None) -> int:
    activation = step.activation
    low, high = -math.inf, math.inf
    if isinstance(activation, Relu):
        low = 0.0
    elif isinstance(activation, Clamp):
        low, high = activation.low, activation.high
    return network.conv(
        value,
        node.kernel,
        node.stride,
        node.padding,
        node.dilation,
        node.filters,
        node.groups,
        bool(node.pad_value),
        _flat(node.weight),
        _flat(node.bits),
        node.scale,
        node.middle,
        node.bias,
        added,
        [(sign.threshold, sign.flip) for sign in step.signs.values()],
        step.real_value is not None,
        activation.slope if isinstance(activation, PRelu) else None,
        low,
        high,
        None if (pool := step.pool) is None else (pool.kernel, pool.stride, pool.padding, pool.dilation),
    )


@singledispatch
def _add(node: Node | SignPool, network: _native.Network, values: list[int]) -> int:
    """Add a node's native twin; give the number of the value that it makes."""
    raise NotImplementedError(type(node).__name__)


@_add.register(Sign)
def _(node: Sign, network: _native.Network, values: list[int]) -> int:
    return network.sign(values[0], node.threshold, node.flip)


@_add.register(SignPool)
def _(node: SignPool, network: _native.Network, values: list[int]) -> int:
    window = node.window
    return network.sign_pool(values[0], window.kernel, window.stride, window.padding, window.dilation, node.flip)


@_add.register(Affine)
def _(node: Affine, network: _native.Network, values: list[int]) -> int:
    return network.affine(values[0], node.scale, node.shift)


@_add.register(Relu)
def _(node: Relu, network: _native.Network, values: list[int]) -> int:
    return network.clamp(values[0], 0.0, math.inf)


@_add.register(Clamp)
def _(node: Clamp, network: _native.Network, values: list[int]) -> int:
    return network.clamp(values[0], node.low, node.high)


@_add.register(PRelu)
def _(node: PRelu, network: _native.Network, values: list[int]) -> int:
    return network.prelu(values[0], node.slope)


@_add.register(MaxPool)
def _(node: MaxPool, network: _native.Network, values: list[int]) -> int:
    return network.max_pool(values[0], node.kernel, node.stride, node.padding, node.dilation)


@_add.register(AvgPool)
def _(node: AvgPool, network: _native.Network, values: list[int]) -> int:
    window = (node.kernel, node.stride, node.padding, node.dilation)
    return network.average_pool(values[0], *window, bool(node.count_padding))


@_add.register(AdaptiveAvgPool)
def _(node: AdaptiveAvgPool, network: _native.Network, values: list[int]) -> int:
    return network.adaptive_pool(values[0], node.size, largest=False)


@_add.register(AdaptiveMaxPool)
def _(node: AdaptiveMaxPool, network: _native.Network, values: list[int]) -> int:
    return network.adaptive_pool(values[0], node.size, largest=True)


@_add.register(Add)
def _(node: Add, network: _native.Network, values: list[int]) -> int:
    return network.add(*values)


@_add.register(Concat)
def _(node: Concat, network: _native.Network, values: list[int]) -> int:
    return network.concat(values)


@_add.register(Flatten)
def _(node: Flatten, network: _native.Network, values: list[int]) -> int:
    return network.flatten(values[0])
