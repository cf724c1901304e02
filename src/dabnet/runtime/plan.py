"""Which nodes the runtime does in one go, and which on bits.

A convolution has its numbers at hand one place at a time. So what follows it and needs nothing else is done there and
then: adding another value, an activation, and signs. And where only signs of a value are wanted, they are taken before
a max-pool, a join or a ReLU instead of after it, and these work on bits: the largest number under a window reaches a
threshold where any of them does. Nothing changes but what is written to memory in between.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dabnet.packed.bits import pack, unpack
from dabnet.packed.nodes import (
    AdaptiveAvgPool,
    AdaptiveMaxPool,
    Add,
    AvgPool,
    Clamp,
    Concat,
    Conv,
    MaxPool,
    Node,
    PRelu,
    Relu,
    Sign,
    Windowed,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dabnet.packed.model import Model

Activation = Relu | Clamp | PRelu

MOST_SIGNS = 8
"""That a convolution takes of its numbers; as many as native/kernels/kernels.h has room for."""


@dataclass(frozen=True, kw_only=True)
class SignPool:
    """A max-pool on signs that were taken with these flips."""

    inputs: tuple[int, ...]
    window: MaxPool
    flip: NDArray[np.uint8] | None


@dataclass(frozen=True)
class Step:
    """A node and the nodes after it that are done with it: first the sum, then signs of that and its activation.

    With a pool, the activation comes before it, and the signs after it.
    """

    node: Node | SignPool
    added: int | None = None
    """The value that is added."""
    activation: Activation | None = None
    real_value: int | None = None
    """The number of the value that it makes; none if only signs of it are wanted."""
    signs: dict[int, Sign] = field(default_factory=dict)
    """The signs that it takes, by the numbers of their values."""
    pool: MaxPool | None = None

    @property
    def values(self) -> list[int]:
        """The numbers of all values that it makes, in order."""
        return ([] if self.real_value is None else [self.real_value]) + list(self.signs)


@dataclass
class Graph:
    """Nodes in order, by the number of the value that each makes."""

    nodes: dict[int, Node | SignPool]
    answer: int

    def users(self) -> dict[int, list[int]]:
        """Give the values that are made of each value."""
        users: dict[int, list[int]] = {value: [] for value in (0, *self.nodes)}
        for value, node in self.nodes.items():
            for used in set(node.inputs):
                users[used].append(value)
        return users


def plan(model: Model) -> tuple[list[Step], int]:
    """Give the steps of a model, in order, and the number of the value that is its answer."""
    graph = Graph({at + 1: node for at, node in enumerate(model.nodes)}, len(model.nodes))
    graph = take_signs_early(graph, [shape.channels for shape in model.shapes])
    return fuse(graph), graph.answer


def take_signs_early(graph: Graph, channels: list[int]) -> Graph:
    """Move signs to before the pools, joins and activations of which only signs are wanted."""
    passed = _only_signs_wanted(graph)
    if not passed:
        return graph
    early = _EarlySigns(graph, passed, channels)
    for value, node in graph.nodes.items():
        if isinstance(node, Sign):
            early.moved[value] = early.take(node.inputs[0], node.threshold, node.flip)
        elif value not in passed:
            inputs = tuple(early.moved.get(i, i) for i in node.inputs)
            early.nodes[value] = node if inputs == node.inputs else dataclasses.replace(node, inputs=inputs)
        if len(early.nodes) > 4 * len(graph.nodes) + 16:  # many signs of many joins: not worth it
            return graph
    return Graph(early.nodes, early.moved.get(graph.answer, graph.answer))


def _only_signs_wanted(graph: Graph) -> set[int]:
    """Find the pools, joins and activations that signs can be taken before."""
    users = graph.users()
    found: set[int] = set()
    for value, node in reversed(graph.nodes.items()):
        can_pass = type(node) in (MaxPool, Concat, Relu) or (isinstance(node, Clamp) and node.low <= node.high)
        is_wanted = value == graph.answer or not users[value]
        if can_pass and not is_wanted and all(u in found or isinstance(graph.nodes[u], Sign) for u in users[value]):
            found.add(value)
    return found


class _EarlySigns:
    """The nodes of a graph whose signs are taken early, as they are put in order."""

    def __init__(self, graph: Graph, passed: set[int], channels: list[int]) -> None:
        self.graph, self.passed, self.channels = graph, passed, channels
        self.nodes: dict[int, Node | SignPool] = {}
        self.moved: dict[int, int] = {}  # from a value of signs to its new number
        self._taken: dict[tuple[int, bytes, bytes], int] = {}
        self._next = len(channels)

    def take(self, value: int, threshold: NDArray[np.float32] | None, flip: NDArray[np.uint8] | None) -> int:
        """Put the nodes for signs of a value; give the number of their value."""
        key = (value, b"" if threshold is None else threshold.tobytes(), b"" if flip is None else flip.tobytes())
        if key not in self._taken:
            node = self.graph.nodes.get(value) if value in self.passed else None
            if isinstance(node, Relu | Clamp):
                low, high = (node.low, node.high) if isinstance(node, Clamp) else (0.0, np.inf)
                number = self.take(node.inputs[0], self._moved_threshold(value, threshold, low, high), flip)
            else:
                number = self._put(self._signs_node(node, value, threshold, flip))
            self._taken[key] = number
        return self._taken[key]

    def _put(self, node: Node | SignPool) -> int:
        self.nodes[self._next] = node
        self._next += 1
        return self._next - 1

    def _signs_node(
        self, node: Node | SignPool | None, value: int, threshold: NDArray[np.float32] | None,
        flip: NDArray[np.uint8] | None,
    ) -> Node | SignPool:  # fmt: skip
        if isinstance(node, MaxPool):
            return SignPool(inputs=(self.take(node.inputs[0], threshold, flip),), window=node, flip=flip)
        if isinstance(node, Concat):
            flips = None if flip is None else unpack(flip, self.channels[value])
            parts, first = [], 0
            for part in node.inputs:
                end = first + self.channels[part]
                some = None if threshold is None else threshold[first:end]
                parts.append(self.take(part, some, None if flips is None else pack(flips[first:end])))
                first = end
            return Concat(inputs=tuple(parts))
        return Sign(inputs=(value,), threshold=threshold, flip=flip)

    def _moved_threshold(
        self, value: int, threshold: NDArray[np.float32] | None, low: float, high: float
    ) -> NDArray[np.float32]:
        """Give the thresholds before a clamp that make the signs after it."""
        after = np.zeros(self.channels[value], dtype=np.float32) if threshold is None else threshold
        before = np.where(after <= np.float32(low), -np.inf, np.where(after > np.float32(high), np.inf, after))
        return before.astype(np.float32)


def fuse(graph: Graph) -> list[Step]:
    """Give the steps of a graph, in order."""
    users = graph.users()
    order = {value: at for at, value in enumerate((0, *graph.nodes))}
    done: set[int] = set()
    steps = []
    for value, node in graph.nodes.items():
        if value in done:
            continue
        if not isinstance(node, Conv):
            steps.append(Step(node, real_value=value))
            continue
        total, added = _sum_after(graph, value, users, order)
        step = _fuse_conv(graph, node, total, added, users)
        done.update((total, *step.values))
        if step.real_value is not None and node.weight is not None and added is None and not step.signs:
            step = _fuse_pool(graph, step, step.real_value, users)
            done.update(step.values)
        steps.append(step)
    return steps


def _sum_after(graph: Graph, value: int, users: dict[int, list[int]], order: dict[int, int]) -> tuple[int, int | None]:
    """Give the sum that a convolution's value goes into and what is added to it, if that is there in time."""
    if len(users[value]) == 1 and value != graph.answer:
        follower = graph.nodes[users[value][0]]
        if isinstance(follower, Add):
            other = next((i for i in follower.inputs if i != value), value)
            if order[other] < order[value]:
                return users[value][0], other
    return value, None


def _fuse_conv(graph: Graph, node: Conv, total: int, added: int | None, users: dict[int, list[int]]) -> Step:
    signs, others = _signs_of(graph, total, users)
    if len(others) == 1 and others[0] != total:
        activation = graph.nodes[others[0]]
        if isinstance(activation, Activation):
            return Step(node, added, activation, others[0], signs)
    return Step(node, added, None, total if others or not signs else None, signs)


def _fuse_pool(graph: Graph, step: Step, value: int, users: dict[int, list[int]]) -> Step:
    """Let a convolution pool its numbers, if nobody else wants them."""
    pool = graph.nodes[users[value][0]] if len(users[value]) == 1 and value != graph.answer else None
    if type(pool) is not MaxPool:
        return step
    pooled = users[value][0]
    signs, others = _signs_of(graph, pooled, users)
    real_value = pooled if others or not signs else None
    return dataclasses.replace(step, real_value=real_value, signs=signs, pool=pool)


def _signs_of(graph: Graph, value: int, users: dict[int, list[int]]) -> tuple[dict[int, Sign], list[int]]:
    """Give the signs that a value's maker can take, and what else is made of it: itself, if it is wanted."""
    signs: dict[int, Sign] = {}
    others = [value] if value == graph.answer else []
    for user in users[value]:
        after = graph.nodes[user]
        if isinstance(after, Sign) and len(signs) < MOST_SIGNS:
            signs[user] = after
        else:
            others.append(user)
    return signs, others


def describe(step: Step, output: tuple[int, int, int]) -> str:
    """Say what a step is and what it makes: channels, height and width."""
    node = step.node.window if isinstance(step.node, SignPool) else step.node
    name = "pool of signs" if isinstance(step.node, SignPool) else _NAMES.get(type(node), type(node).__name__.lower())
    if isinstance(node, Conv):
        name = "real conv" if node.bits is None else "one-bit conv"
    if isinstance(node, Windowed):
        name += " {}x{}".format(*node.kernel)
    done = ["add"] * (step.added is not None)
    if step.activation is not None:
        done.append(_NAMES.get(type(step.activation), type(step.activation).__name__.lower()))
    done += ["max-pool"] * (step.pool is not None) + ["sign"] * bool(step.signs)
    return f"{name}{''.join(f' + {what}' for what in done)}, to {'x'.join(map(str, output))}"


_NAMES: dict[type, str] = {
    MaxPool: "max-pool",
    AvgPool: "mean pool",
    AdaptiveMaxPool: "max-pool",
    AdaptiveAvgPool: "mean pool",
    Concat: "join",
    Relu: "ReLU",
    PRelu: "PReLU",
}
