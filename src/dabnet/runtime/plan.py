"""Which nodes the runtime does in one go.

A convolution has its numbers at hand one place at a time. So what follows it and needs nothing else is done there and
then: adding another value, an activation, and the sign. Nothing changes but what is written to memory in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dabnet.packed.model import Add, Clamp, Conv, PRelu, Relu, Sign

if TYPE_CHECKING:
    from dabnet.packed.model import Model, Node

Activation = Relu | Clamp | PRelu


@dataclass(frozen=True)
class Step:
    """A node and the nodes after it that are done with it: first the sum, then the sign of that and its activation."""

    node: Node
    added: int | None = None
    """The value that is added."""
    sign: Sign | None = None
    activation: Activation | None = None
    signs_value: int | None = None
    """The number of the value of signs that it makes, if any."""
    real_value: int | None = None
    """The number of the value of real numbers that it makes, if any."""


def fuse(model: Model) -> list[Step]:
    """Give the steps of a model, in order."""
    users: list[list[int]] = [[] for _ in model.shapes]
    for at, node in enumerate(model.nodes):
        for value in set(node.inputs):
            users[value].append(at)
    users[-1].append(len(model.nodes))  # the answer is used
    done: set[int] = set()
    steps = []
    for at, node in enumerate(model.nodes):
        if at in done:
            continue
        if isinstance(node, Conv):
            steps.append(_fuse_conv(model, at, users, done))
        elif model.shapes[at + 1].is_signs:
            steps.append(Step(node, signs_value=at + 1))
        else:
            steps.append(Step(node, real_value=at + 1))
    return steps


def _fuse_conv(model: Model, at: int, users: list[list[int]], done: set[int]) -> Step:
    value, added = at + 1, None
    if len(users[value]) == 1 and users[value][0] < len(model.nodes):
        follower = model.nodes[users[value][0]]
        if isinstance(follower, Add):
            other = next((i for i in follower.inputs if i != value), value)
            if other < value:  # it is there already
                added = other
                done.add(users[value][0])
                value = users[value][0] + 1
    sign = activation = signs_value = None
    others = []
    for user in users[value]:
        after = model.nodes[user] if user < len(model.nodes) else None
        if isinstance(after, Sign) and sign is None:
            sign, signs_value = after, user + 1
        elif isinstance(after, Activation) and activation is None:
            activation = after
            others.append(user)
        else:
            others.append(user)
    if len(others) != 1 or activation is None:
        activation = None
        real_value = value if others or sign is None else None
    else:
        real_value = others[0] + 1
    done.update(number - 1 for number in (signs_value, real_value) if number is not None and number != value)
    return Step(model.nodes[at], added, sign, activation, signs_value, real_value)
