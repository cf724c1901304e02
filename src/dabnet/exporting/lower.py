"""From a network in torch to the nodes of a packed model.

torch.fx tells which modules and functions a sketch goes through; each becomes the draft of a node (`translate.py`).
Then drafts are merged: a batch norm after a convolution becomes part of its weights or scales, and whatever stands
before a sign becomes part of its threshold (`thresholds.py`). Numbers stay float64 until the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import fx, nn
from torch.fx.passes.shape_prop import ShapeProp

from dabnet.errors import InputError, UnsupportedError
from dabnet.exporting.thresholds import Thresholds
from dabnet.exporting.translate import MODULES, GraphValue, NodeDraft, Walk
from dabnet.networks.layers import BinaryLayer
from dabnet.networks.mode import evaluating
from dabnet.networks.packed import PackedNetwork
from dabnet.packed import bits
from dabnet.packed.model import Model
from dabnet.packed.nodes import Affine, Clamp, Conv, Node, PRelu, Quantize, Relu, Sign


class Lowered(NamedTuple):
    """A packed model, and where in the network each of its values is found."""

    model: Model
    graph: fx.GraphModule
    origins: list[GraphValue]
    """Where each value of the model is found in the graph; the first is the input's."""


def lower(
    net: nn.Module,
    input_size: Sequence[int],
    labels: Sequence[str] = (),
    raster: dict[str, float] | None = None,
) -> Lowered:
    """Turn a network into a packed model; an `UnsupportedError` names the first part that has no packed twin."""
    size = _check_size(input_size)
    if isinstance(net, PackedNetwork):
        raise UnsupportedError("the network is a packed model already: copy the file that it was loaded from.")
    with evaluating(net):
        graph = _trace(net, size)
        start = NodeDraft(Node, [], GraphValue(next(iter(graph.graph.nodes)).name), "")
        last = Walk(graph, start).run()
        _check_trace(net, graph, size)
    order = _merge(last)
    numbers = {draft: number for number, draft in enumerate([start, *order])}
    nodes = tuple(_make_node(draft, [numbers[before] for before in draft.inputs]) for draft in order)
    if not nodes:
        raise UnsupportedError("the network gives back what it gets: there is nothing to pack.")
    packed = Model(size, nodes, tuple(labels), raster)
    return Lowered(packed, graph, [draft.origin for draft in (start, *order)])


def _check_size(input_size: Sequence[int]) -> tuple[int, int, int]:
    if len(input_size) != 3 or not all(isinstance(side, int) and side > 0 for side in input_size):
        raise UnsupportedError(f"a packed model takes (channels, height, width), not {tuple(input_size)!r}.")
    return input_size[0], input_size[1], input_size[2]


class _Tracer(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, BinaryLayer) or type(m) in MODULES or super().is_leaf_module(m, module_qualified_name)


def _trace(net: nn.Module, size: tuple[int, int, int]) -> fx.GraphModule:
    """Record what a sketch goes through, with the shape of every value."""
    if not any(True for _ in net.children()) or isinstance(net, BinaryLayer):
        net = nn.Sequential(net)  # a single layer, which is to be found as such
    try:
        graph = fx.GraphModule(net, _Tracer().trace(net))
    except Exception as problem:  # a forward may do anything
        raise UnsupportedError(
            f"cannot follow the network's forward ({_short(problem)}): it must do the same for every sketch, "
            "without branching on values."
        ) from None
    like = next(net.parameters(), torch.zeros(0))
    try:
        # Two sketches, so that a batch is told from a side of 1.
        ShapeProp(graph).propagate(torch.zeros(2, *size, device=like.device, dtype=like.dtype))
    except Exception as problem:  # a forward may do anything
        raise InputError(
            f"the network does not take sketches of {'x'.join(map(str, size))} ({_short(problem)})."
        ) from None
    return graph


def _check_trace(net: nn.Module, graph: fx.GraphModule, size: tuple[int, int, int]) -> None:
    """Refuse a network that does something which its trace does not show, such as `x += y` where x has two names."""
    like = next(net.parameters(), torch.zeros(0))
    x = torch.rand(2, *size, generator=torch.Generator().manual_seed(0)).to(like.device, like.dtype)
    with torch.no_grad():
        mine, traced = net(x.clone()), graph(x.clone())
    if not torch.allclose(mine, traced, rtol=1e-3, atol=1e-5, equal_nan=True):
        raise UnsupportedError(
            "the network answers otherwise than the steps that it goes through: if it changes a value in place that it "
            "uses again, write x = x + y instead of x += y."
        )


def _merge(last: NodeDraft) -> list[NodeDraft]:
    """Merge drafts that one node can do; return those that are left, in order."""
    order = _in_order(last)
    uses = Counter(before for draft in order for before in draft.inputs)
    replaced: dict[NodeDraft, NodeDraft] = {}
    for draft in order:
        draft.inputs = [replaced.get(before, before) for before in draft.inputs]
        if draft.kind is Affine and draft.inputs[0].kind is Conv and uses[draft.inputs[0]] == 1:
            replaced[draft] = _fold_norm(draft.inputs[0], draft)
            uses[replaced[draft]] = uses[draft]
    last = replaced.get(last, last)
    _share_quantizes(_in_order(last))
    for draft in _in_order(last):
        if draft.kind is Sign:
            while (earlier := _before_sign(cast("Thresholds", draft.thresholds), draft.inputs[0])) is not None:
                draft.thresholds, draft.inputs = earlier, draft.inputs[0].inputs
    return _in_order(last)


def _share_quantizes(order: list[NodeDraft]) -> None:
    """Let layers that round the same value in the same steps take one and the same draft."""
    first: dict[tuple[Any, ...], NodeDraft] = {}
    for draft in order:
        if draft.kind is Quantize:
            first.setdefault((draft.inputs[0], *draft.settings.items()), draft)
    for draft in order:
        draft.inputs = [
            first[before.inputs[0], *before.settings.items()] if before.kind is Quantize else before
            for before in draft.inputs
        ]


def _in_order(last: NodeDraft) -> list[NodeDraft]:
    """Return the drafts that `last` needs, each after those that it needs itself, without the input."""
    order: dict[NodeDraft, None] = {}
    stack = [(last, False)]
    while stack:
        draft, is_ready = stack.pop()
        if draft in order or draft.kind is Node:
            continue
        if is_ready:
            order[draft] = None
        else:
            stack.append((draft, True))
            stack.extend((before, False) for before in reversed(draft.inputs))
    return list(order)


def _fold_norm(conv: NodeDraft, norm: NodeDraft) -> NodeDraft:
    """Return a convolution that norms what it makes."""
    scale, shift = norm.numbers["scale"], norm.numbers["shift"]
    numbers = {
        name: values * (scale if values.ndim == 1 else scale[:, None, None, None])
        for name, values in conv.numbers.items()
        if name != "bias"
    }
    numbers["bias"] = shift + scale * conv.numbers.get("bias", np.zeros_like(scale))
    return replace(conv, numbers=numbers, origin=norm.origin)


def _before_sign(thresholds: Thresholds, draft: NodeDraft) -> Thresholds | None:
    """Return thresholds of a node's input that make the same signs as these of its output; None if there are none."""
    if draft.kind is Affine:
        return thresholds.before_affine(draft.numbers["scale"], draft.numbers["shift"])
    if draft.kind is Relu:
        return thresholds.before_clamp(0, np.inf)
    if draft.kind is Clamp:
        return thresholds.before_clamp(draft.settings["low"], draft.settings["high"])
    if draft.kind is PRelu and (draft.numbers["slope"] >= 0).all():
        return thresholds.before_prelu(draft.numbers["slope"])
    return None


def _make_node(draft: NodeDraft, inputs: list[int]) -> Node:
    """Make the node of a draft, whose inputs are the values of these numbers."""
    arrays: dict[str, Any] = {name: np.ascontiguousarray(n, dtype=np.float32) for name, n in draft.numbers.items()}
    if draft.signs is not None:
        arrays["bits"] = bits.pack(draft.signs)
    if draft.thresholds is not None:
        threshold, flip = draft.thresholds.to_float32()
        if threshold.any():
            arrays["threshold"] = threshold
        if flip.any():
            arrays["flip"] = bits.pack(flip)
    return draft.kind(inputs=tuple(inputs), name=draft.name, **draft.settings, **arrays)


def _short(problem: Exception) -> str:
    return (str(problem).splitlines() or [type(problem).__name__])[0][:160]
