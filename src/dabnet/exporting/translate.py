"""What each module and function of torch is as a node of a packed model.

`MODULES`, `FUNCTIONS` and `METHODS` are the tables; what stands in none of them has no packed twin.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, fx, nn

from dabnet.binarizers.activations import LevelSign, RSign, Sign, WholeNumbers
from dabnet.errors import UnsupportedError
from dabnet.exporting.thresholds import Thresholds
from dabnet.networks.activations import RPReLU
from dabnet.networks.layers import BinaryConv2d, BinaryLayer, BinaryLinear
from dabnet.packed import nodes
from dabnet.packed.nodes import Node

Floats = NDArray[np.float64]


Part = Literal["output", "input", "shifted", "bent"]
"""What a node of torch's graph returns, or a value inside it: what a binary layer makes of its input, signs or whole
numbers; in an RPReLU the input of its PReLU (`shifted`), and what that makes of it (`bent`)."""


class GraphValue(NamedTuple):
    """Where in torch's graph a value is found."""

    node: str
    part: Part = "output"


@dataclass(eq=False)
class NodeDraft:
    """A node of the packed model while it is put together; its numbers are still float64."""

    kind: type[Node]
    inputs: list[NodeDraft]
    origin: GraphValue
    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    numbers: dict[str, Floats] = field(default_factory=dict)
    """Arrays that become float32."""
    signs: NDArray[np.bool_] | None = None
    """The signs of one-bit weights, (filters, weights)."""
    thresholds: Thresholds | None = None


class Walk:
    """Walks over torch's graph in order, and drafts the packed nodes.

    What translates a module or a function gets the walk and the node of torch's graph, and returns the draft of what
    makes its value.
    """

    def __init__(self, graph: fx.GraphModule, start: NodeDraft) -> None:
        self.graph = graph
        self.start = start
        self.made: dict[fx.Node, NodeDraft] = {}
        self.modules = dict(graph.named_modules())

    def run(self) -> NodeDraft:
        """Return the draft of the node that makes the answer; its inputs lead to the others."""
        answer = self.start
        for node in self.graph.graph.nodes:
            if node.op == "placeholder":
                if self.made:
                    raise UnsupportedError("the network takes more than one input: a packed model takes one.")
                self.made[node] = self.start
            elif node.op == "output":
                answer = self.draft_of(node, node.args[0])
            elif _shape(node) is not None:
                self.made[node] = self._translate(node)
                if self._is_inplace(node):  # whoever takes what it changed takes what it made
                    self.made[self.argument(node, 0, "input", None)] = self.made[node]
        return answer

    def _is_inplace(self, node: fx.Node) -> bool:
        if node.op == "call_module":
            return bool(getattr(self.modules[str(node.target)], "inplace", False))
        if node.op == "call_method":
            return str(node.target).endswith("_")
        if node.kwargs.get("inplace") or str(getattr(node.target, "__name__", "")).endswith("_"):
            return True
        return node.target in (F.relu, F.relu6, F.hardtanh, F.dropout) and True in node.args

    def _translate(self, node: fx.Node) -> NodeDraft:
        if node.op == "call_module":
            module = self.modules[str(node.target)]
            if module._forward_hooks:
                raise self.unsupported(node, "has a forward hook")
            if type(module) in (BinaryConv2d, BinaryLinear):
                return _binary_layer(self, node, cast("BinaryLayer", module))
            if type(module) in MODULES:
                return MODULES[type(module)](self, node, module)
            raise UnsupportedError(
                f"'{node.target}' is a {type(module).__name__}, and packed models have none: replace it, or keep the "
                "network in torch."
            )
        table = FUNCTIONS if node.op == "call_function" else METHODS
        if node.target not in table:
            called = getattr(node.target, "__name__", str(node.target))
            raise UnsupportedError(f"'{node.name}' calls {called}, and packed models have no such step: replace it.")
        return table[node.target](self, node)

    def draft_of(self, node: fx.Node, value: Any) -> NodeDraft:
        """Return the draft that makes a value that `node` takes."""
        if not isinstance(value, fx.Node) or value not in self.made:
            raise self.unsupported(node, "takes something that is not made from the sketch")
        return self.made[value]

    def first_input(self, node: fx.Node) -> NodeDraft:
        """Return the draft that makes what `node` takes first."""
        return self.draft_of(node, node.args[0] if node.args else node.kwargs.get("input"))

    def unsupported(self, node: fx.Node, what: str) -> UnsupportedError:
        """Return the error that says what of `node` has no packed twin."""
        return UnsupportedError(f"'{_name(node)}' {what}, and packed models cannot do that.")

    def argument(self, node: fx.Node, position: int, name: str, default: Any) -> Any:
        """Return an argument of a call, by its position or by its name."""
        if len(node.args) > position:
            return node.args[position]
        return node.kwargs.get(name, default)


def _name(node: fx.Node) -> str:
    return str(node.target) if node.op == "call_module" else node.name


def _shape(node: fx.Node) -> tuple[int, ...] | None:
    """Return the shape of what a node of torch's graph makes, without the batch; None if that is no tensor."""
    found: Any = node.meta.get("tensor_meta")
    return tuple(found.shape[1:]) if hasattr(found, "shape") else None


def _input_shape(node: fx.Node) -> tuple[int, ...]:
    """Return the shape of what a node takes first, without the batch."""
    before = next(iter(node.all_input_nodes))
    return cast("tuple[int, ...]", _shape(before))


def _numpy(tensor: Tensor) -> Floats:
    return tensor.detach().cpu().double().numpy()


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])


# Layers with weights.


def _conv(walk: Walk, node: fx.Node, layer: nn.Conv2d) -> NodeDraft:
    weight = _numpy(layer.weight).transpose(0, 2, 3, 1)
    return NodeDraft(
        nodes.Conv,
        [walk.first_input(node)],
        GraphValue(node.name),
        _name(node),
        {"filters": layer.out_channels, **_conv_settings(walk, node, layer)},
        {"weight": weight, **_bias(layer)},
    )


def _conv_settings(walk: Walk, node: fx.Node, layer: nn.Conv2d) -> dict[str, Any]:
    if layer.padding_mode != "zeros":
        raise walk.unsupported(node, f"pads with '{layer.padding_mode}'")
    left, right, top, bottom = layer._reversed_padding_repeated_twice
    return {
        "kernel": _pair(layer.kernel_size),
        "stride": _pair(layer.stride),
        "padding": (top, left, bottom, right),
        "dilation": _pair(layer.dilation),
        "groups": layer.groups,
    }


def _linear(walk: Walk, node: fx.Node, layer: nn.Linear) -> NodeDraft:
    _check_flat(walk, node)
    weight = _numpy(layer.weight)[:, None, None, :]
    settings = {"filters": layer.out_features}
    return NodeDraft(
        nodes.Conv,
        [walk.first_input(node)],
        GraphValue(node.name),
        _name(node),
        settings,
        {"weight": weight, **_bias(layer)},
    )


def _check_flat(walk: Walk, node: fx.Node) -> None:
    if len(_input_shape(node)) != 1:
        raise walk.unsupported(node, "is a linear layer of something that was not flattened")


def _bias(layer: nn.Conv2d | nn.Linear) -> dict[str, Floats]:
    return {} if layer.bias is None else {"bias": _numpy(layer.bias)}


def _binary_layer(walk: Walk, node: fx.Node, layer: BinaryLayer) -> NodeDraft:
    before = walk.first_input(node)
    name = _name(node)
    if not layer.has_binary_weights:
        raise walk.unsupported(node, "multiplies signs by real weights")
    if layer.keeps_weights_real:
        raise walk.unsupported(node, "still has real weights, in the first stage of its training")
    if layer.has_signs:
        before = NodeDraft(
            nodes.Sign, [before], GraphValue(node.name, "input"), name, thresholds=_thresholds(walk, node, layer)
        )
    step = 1.0
    if isinstance(layer.quantize_input, WholeNumbers):
        quantize, in_float32 = layer.quantize_input, layer.quantize_input.step.detach()
        step = float(in_float32)
        whole = {"scale": float(in_float32.reciprocal()), "low": quantize.low, "high": quantize.high}
        before = NodeDraft(nodes.Quantize, [before], GraphValue(node.name, "input"), name, whole)
    elif isinstance(layer.quantize_input, LevelSign):
        step = float(layer.quantize_input.distance.detach())
    mask, alpha, beta = layer.two_values()
    bias = layer.total_bias(layer.binary_weight().detach())
    signs = mask.reshape(layer.weight.shape).cpu().numpy()
    if isinstance(layer, BinaryConv2d):
        settings = _conv_settings(walk, node, layer)
        if layer.pad_value and not layer.has_signs:
            raise walk.unsupported(node, "pads real numbers with 1")
        settings |= {"pad_value": layer.pad_value}
        signs = signs.transpose(0, 2, 3, 1)
    else:
        _check_flat(walk, node)
        settings = {}
    offset = step * _numpy((alpha + beta) / 2).reshape(-1)
    return NodeDraft(
        nodes.Conv,
        [before],
        GraphValue(node.name),
        name,
        {"filters": len(signs), **settings},
        {
            "scale": step * _numpy((alpha - beta) / 2).reshape(-1),
            **({"offset": offset} if offset.any() else {}),
            **({} if bias is None else {"bias": _numpy(bias)}),
        },
        signs=signs.reshape(len(signs), -1),
    )


def _thresholds(walk: Walk, node: fx.Node, layer: BinaryLayer) -> Thresholds:
    """Return where the signs of a layer's inputs change, by what it learned and by the norm before."""
    thresholds = Thresholds.zeros(_input_shape(node)[0])
    if isinstance(layer.quantize_input, RSign):
        thresholds = replace(thresholds, at=_numpy(layer.quantize_input.threshold))
    elif isinstance(layer.quantize_input, LevelSign):
        thresholds = replace(thresholds, at=np.full_like(thresholds.at, float(layer.quantize_input.centre.detach())))
    elif type(layer.quantize_input) is not Sign:
        raise walk.unsupported(node, f"makes its inputs binary by {type(layer.quantize_input).__name__}")
    if layer.norm is not None:
        thresholds = thresholds.before_affine(*_norm_numbers(walk, node, layer.norm))
    return thresholds


def _norm(walk: Walk, node: fx.Node, norm: nn.Module) -> NodeDraft:
    scale, shift = _norm_numbers(walk, node, norm)
    if len(_input_shape(node)) == 2:
        raise walk.unsupported(node, "norms sequences")
    return NodeDraft(
        nodes.Affine, [walk.first_input(node)], GraphValue(node.name), _name(node), {}, {"scale": scale, "shift": shift}
    )


def _norm_numbers(walk: Walk, node: fx.Node, norm: nn.Module) -> tuple[Floats, Floats]:
    """Return the scale and the shift that a batch norm is in eval mode."""
    if not isinstance(norm, nn.BatchNorm1d | nn.BatchNorm2d):
        raise walk.unsupported(node, f"norms by {type(norm).__name__}")
    if norm.running_mean is None or norm.running_var is None:
        raise walk.unsupported(node, "norms by the statistics of a batch")
    scale = 1 / np.sqrt(_numpy(norm.running_var) + norm.eps)
    if norm.weight is not None:
        scale = scale * _numpy(norm.weight)
    shift = -_numpy(norm.running_mean) * scale
    if norm.bias is not None:
        shift = shift + _numpy(norm.bias)
    return scale, shift


# Nodes without weights.


def _draft(walk: Walk, node: fx.Node, kind: type[Node], **settings: Any) -> NodeDraft:
    """Draft a node that takes one value and has no arrays."""
    return NodeDraft(kind, [walk.first_input(node)], GraphValue(node.name), _name(node), settings)


def _pass_on(walk: Walk, node: fx.Node) -> NodeDraft:
    """Leave a module out that changes nothing when a network is not trained."""
    return walk.first_input(node)


def _relu(walk: Walk, node: fx.Node) -> NodeDraft:
    return _draft(walk, node, nodes.Relu)


def _clamp(walk: Walk, node: fx.Node, low: Any, high: Any) -> NodeDraft:
    if not all(isinstance(bound, int | float) for bound in (low, high)):
        raise walk.unsupported(node, "clamps to something that is not a pair of numbers")
    return _draft(walk, node, nodes.Clamp, low=float(low), high=float(high))


def _prelu(walk: Walk, node: fx.Node, layer: nn.PReLU) -> NodeDraft:
    slope = np.broadcast_to(_numpy(layer.weight), (_input_shape(node)[0],))
    return NodeDraft(nodes.PRelu, [walk.first_input(node)], GraphValue(node.name), _name(node), {}, {"slope": slope})


def _rprelu(walk: Walk, node: fx.Node, layer: RPReLU) -> NodeDraft:
    """Return a shift, a PReLU and a shift."""
    name, slope = _name(node), _numpy(layer.weight)
    before, after = (
        {"scale": np.ones_like(slope), "shift": _numpy(s)} for s in (layer.shift_before, layer.shift_after)
    )
    shifted = NodeDraft(nodes.Affine, [walk.first_input(node)], GraphValue(node.name, "shifted"), name, {}, before)
    bent = NodeDraft(nodes.PRelu, [shifted], GraphValue(node.name, "bent"), name, {}, {"slope": slope})
    return NodeDraft(nodes.Affine, [bent], GraphValue(node.name), name, {}, after)


def _pool(
    walk: Walk,
    node: fx.Node,
    kind: type[nodes.Windowed],
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any = 1,
    ceil_mode: bool = False,
    **settings: Any,
) -> NodeDraft:
    kernel, padding, dilation = _pair(kernel), _pair(padding), _pair(dilation)
    stride = kernel if stride is None or stride == [] else _pair(stride)
    after = list(padding)  # at the bottom and at the right
    if ceil_mode:
        # Windows that begin on the map may end beyond its padding.
        for axis, (size, positions) in enumerate(
            zip(_input_shape(node)[1:], cast("Any", _shape(node))[1:], strict=True)
        ):
            span = dilation[axis] * (kernel[axis] - 1) + 1
            after[axis] = max(0, (positions - 1) * stride[axis] + span - size - padding[axis])
    if settings.get("count_padding") and any(beyond > pad for beyond, pad in zip(after, padding, strict=True)):
        raise walk.unsupported(node, "counts padding in means over windows that end beyond it")
    return _draft(
        walk,
        node,
        kind,
        kernel=kernel,
        stride=stride,
        padding=(*padding, *after),
        dilation=dilation,
        **settings,
    )


def _max_pool(walk: Walk, node: fx.Node, layer: nn.MaxPool2d) -> NodeDraft:
    if layer.return_indices:
        raise walk.unsupported(node, "asks for the indices of the largest")
    return _pool(
        walk, node, nodes.MaxPool, layer.kernel_size, layer.stride, layer.padding, layer.dilation, layer.ceil_mode
    )


def _avg_pool(walk: Walk, node: fx.Node, layer: nn.AvgPool2d) -> NodeDraft:
    if layer.divisor_override is not None:
        raise walk.unsupported(node, "divides by a number of its own")
    count_padding = int(layer.count_include_pad and any(_pair(layer.padding)))
    return _pool(
        walk,
        node,
        nodes.AvgPool,
        layer.kernel_size,
        layer.stride,
        layer.padding,
        ceil_mode=layer.ceil_mode,
        count_padding=count_padding,
    )


def _adaptive(walk: Walk, node: fx.Node, kind: type[Node]) -> NodeDraft:
    shape = cast("tuple[int, ...]", _shape(node))
    return _draft(walk, node, kind, size=shape[1:])


def _flatten(walk: Walk, node: fx.Node) -> NodeDraft:
    before, after = _input_shape(node), _shape(node)
    if after == before:
        return walk.first_input(node)
    if after != (int(np.prod(before)),):
        raise walk.unsupported(node, f"makes {after} from {before}")
    # One number per channel is flat already.
    return walk.first_input(node) if before[1:] == (1, 1) else _draft(walk, node, nodes.Flatten)


def _mean(walk: Walk, node: fx.Node) -> NodeDraft:
    axes = walk.argument(node, 1, "dim", None)
    if len(_input_shape(node)) != 3 or not isinstance(axes, tuple | list) or {a % 4 for a in axes} != {2, 3}:
        raise walk.unsupported(node, "takes a mean over other axes than height and width")
    return _draft(walk, node, nodes.AdaptiveAvgPool, size=(1, 1))


def _add(walk: Walk, node: fx.Node) -> NodeDraft:
    terms = [walk.argument(node, 0, "input", None), walk.argument(node, 1, "other", None)]
    if node.kwargs.get("alpha", 1) != 1 or len({_shape(term) for term in terms if isinstance(term, fx.Node)}) != 1:
        raise walk.unsupported(node, "adds things of different shapes")
    return NodeDraft(nodes.Add, [walk.draft_of(node, term) for term in terms], GraphValue(node.name), _name(node))


def _concat(walk: Walk, node: fx.Node) -> NodeDraft:
    parts = walk.argument(node, 0, "tensors", [])
    axis = walk.argument(node, 1, "dim", 0)
    if axis not in (1, -len(cast("tuple[int, ...]", _shape(node)))):  # that is 1, too: the shape lacks the batch
        raise walk.unsupported(node, "concatenates along another axis than the channels")
    return NodeDraft(nodes.Concat, [walk.draft_of(node, part) for part in parts], GraphValue(node.name), _name(node))


def _no_dropout(walk: Walk, node: fx.Node) -> NodeDraft:
    if walk.argument(node, 2, "training", True):
        raise walk.unsupported(node, "drops numbers even when it is not training")
    return walk.first_input(node)


def _ignoring_layer(function: Callable[[Walk, fx.Node], NodeDraft]) -> Callable[[Walk, fx.Node, Any], NodeDraft]:
    return lambda walk, node, _: function(walk, node)


MODULES: dict[type[nn.Module], Callable[[Walk, fx.Node, Any], NodeDraft]] = {
    nn.AdaptiveAvgPool2d: lambda walk, node, _: _adaptive(walk, node, nodes.AdaptiveAvgPool),
    nn.AdaptiveMaxPool2d: lambda walk, node, _: _adaptive(walk, node, nodes.AdaptiveMaxPool),
    nn.AvgPool2d: _avg_pool,
    nn.BatchNorm1d: _norm,
    nn.BatchNorm2d: _norm,
    nn.Conv2d: _conv,
    nn.Dropout: _ignoring_layer(_pass_on),
    nn.Dropout2d: _ignoring_layer(_pass_on),
    nn.Flatten: _ignoring_layer(_flatten),
    nn.Hardtanh: lambda walk, node, layer: _clamp(walk, node, layer.min_val, layer.max_val),
    nn.Identity: _ignoring_layer(_pass_on),
    nn.Linear: _linear,
    nn.MaxPool2d: _max_pool,
    nn.PReLU: _prelu,
    nn.ReLU: _ignoring_layer(_relu),
    RPReLU: _rprelu,
    nn.ReLU6: lambda walk, node, _: _clamp(walk, node, 0.0, 6.0),
}
"""The modules that have a packed twin, beside binary layers."""


def _pool_function(layer: type[nn.Module], *names: str) -> Callable[[Walk, fx.Node], NodeDraft]:
    """Treat a call of a pooling function as the module of the same arguments."""

    def translate(walk: Walk, node: fx.Node) -> NodeDraft:
        given = dict(zip(names, node.args[1:], strict=False)) | {k: v for k, v in node.kwargs.items() if k != "input"}
        return MODULES[layer](walk, node, layer(**given))

    return translate


FUNCTIONS: dict[Any, Callable[[Walk, fx.Node], NodeDraft]] = {
    operator.add: _add,
    operator.iadd: _add,
    torch.add: _add,
    torch.cat: _concat,
    torch.concat: _concat,
    torch.flatten: _flatten,
    torch.mean: _mean,
    torch.relu: _relu,
    F.adaptive_avg_pool2d: lambda walk, node: _adaptive(walk, node, nodes.AdaptiveAvgPool),
    F.adaptive_max_pool2d: lambda walk, node: _adaptive(walk, node, nodes.AdaptiveMaxPool),
    F.avg_pool2d: _pool_function(
        nn.AvgPool2d, "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"
    ),
    F.dropout: _no_dropout,
    F.hardtanh: lambda walk, node: _clamp(
        walk, node, walk.argument(node, 1, "min_val", -1.0), walk.argument(node, 2, "max_val", 1.0)
    ),
    F.max_pool2d: _pool_function(
        nn.MaxPool2d, "kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices"
    ),
    F.relu: _relu,
    F.relu6: lambda walk, node: _clamp(walk, node, 0.0, 6.0),
}
# What torch's own code calls under another name.
FUNCTIONS |= {torch.max_pool2d: FUNCTIONS[F.max_pool2d]}

METHODS: dict[Any, Callable[[Walk, fx.Node], NodeDraft]] = {
    "add": _add,
    "add_": _add,
    "contiguous": _pass_on,
    "flatten": _flatten,
    "mean": _mean,
    "relu": _relu,
    "relu_": _relu,
    "reshape": _flatten,
    "view": _flatten,
}
