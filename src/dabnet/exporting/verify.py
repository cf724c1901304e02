"""Does a packed model answer as its network does? Layer by layer on the same inputs, and from end to end.

Sums of real numbers are rounded in another order by torch than by the runtime. So a number may lie on one side of a
sign's threshold in one of them and on the other side in the other; that bit flips, and the flip may spread. Whole
numbers have a threshold at every half, and one that changes is counted as a flip, too. A layer
alone, on torch's own inputs, may flip a bit only where the number is within rounding of its threshold; and where the
whole network disagrees about a sketch, the first bit that flipped tells why.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, fx, nn

from dabnet.binarizers.activations import WholeNumbers
from dabnet.errors import InputError
from dabnet.exporting.lower import Lowered, lower
from dabnet.exporting.translate import GraphValue
from dabnet.networks.activations import RPReLU
from dabnet.networks.layers import BinaryLayer
from dabnet.networks.mode import evaluating
from dabnet.packed.file import read_model
from dabnet.packed.int8 import LARGEST
from dabnet.packed.model import Model
from dabnet.packed.nodes import Add, Concat, Conv, Node, Quantize, Sign
from dabnet.runtime import Session, reference

ROUNDING = 1e-5
"""Two numbers this close, relatively, may differ by rounding."""
BATCH = 10
"""Sketches at a time, as all values of a large network are kept for each of them."""

Values = dict[GraphValue, NDArray[np.float32]]


@dataclass
class LayerCheck:
    """How one node, given torch's own inputs, agrees with torch."""

    name: str
    op: str
    error: float = 0.0
    """The largest difference of real numbers, as a share of the value's largest number, before or after the bias: a sum
    is rounded before a bias can cancel it."""
    signs: int = 0
    """How many bits or whole numbers were compared."""
    flips: int = 0
    """How many of them differ."""
    flips_beyond: int = 0
    """How many differ although the number before the sign was farther than rounding from its threshold."""

    @property
    def is_fine(self) -> bool:
        """Whether all that differs is rounding."""
        return self.error <= ROUNDING and self.flips_beyond == 0


@dataclass
class Disagreement:
    """A sketch whose class the two do not agree about, and the first layer whose bits differ."""

    sketch: int
    torch_class: int
    packed_class: int
    layer: str = ""
    """Empty if no bit differs: then the two classes were a tie but for rounding."""
    flips: int = 0
    """Bits that differ in that layer."""
    distance: float = 0.0
    """How far the flipped number that was farthest from its threshold was from it, as a share of the channel's largest
    number; without a flip, the gap between the two classes as a share of the largest logit."""

    @property
    def is_explained(self) -> bool:
        """Whether rounding explains it."""
        return self.distance <= ROUNDING

    def __str__(self) -> str:
        about = f"sketch {self.sketch}: class {self.torch_class} in torch, {self.packed_class} packed; "
        if not self.layer:
            return about + f"no bit differs, and the two were {self.distance:.1e} apart"
        bits = f"{self.flips} bit{'s' if self.flips > 1 else ''}"
        return about + f"{bits} flipped first in '{self.layer}', at most {self.distance:.1e} from the threshold"


@dataclass
class Verification:
    """What was compared, and how it came out."""

    layers: list[LayerCheck]
    layer_sketches: int
    sketches: int = 0
    equal: int = 0
    """Sketches with the same likeliest class."""
    logits_error: float = 0.0
    """The largest difference of logits, as a share of a sketch's largest logit."""
    torch_right: int | None = None
    packed_right: int | None = None
    disagreements: list[Disagreement] = field(default_factory=list)
    has_int8: bool = False
    """Whether the file rounds real weights to 8 bits: then answers may differ by more than the rounding of sums."""

    @property
    def is_fine(self) -> bool:
        """Whether all that differs is rounding."""
        are_explained = self.has_int8 or all(item.is_explained for item in self.disagreements)
        return all(layer.is_fine for layer in self.layers) and are_explained

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and strings, for JSON."""
        return {**asdict(self), "is_fine": self.is_fine}


def verify(
    net: nn.Module,
    model: Model | str | PathLike[str],
    batches: Iterable[NDArray[np.float32]] | NDArray[np.float32] | Tensor,
    labels: Sequence[int] | NDArray[np.integer[Any]] | None = None,
    *,
    layer_sketches: int = 200,
    threads: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Verification:
    """Compare a network with the packed model that was exported from it, or its file, on sketches (N, C, H, W).

    The sketches are an array, a tensor, or batches of them. The first `layer_sketches` are compared layer by layer,
    too. `labels` are the right classes, if known. `progress` gets the sketches done after each batch. The answer's
    `is_fine` tells whether all that differs is rounding.

    Where a network of real activations got whole numbers when it was exported, it is asked with these.
    """
    model = model if isinstance(model, Model) else read_model(model)
    batches = _cut(batches, model) if isinstance(batches, np.ndarray | Tensor) else batches
    net = _rounding_as(net, model)
    lowered = lower(net, model.input_size)
    _check_twins(lowered.model, model)
    checks = [_NodeCheck(lowered, model, at) for at in range(len(model.nodes))]
    session, probes = Session(model, threads), _Probes(model, lowered.origins)
    has_int8 = any(isinstance(node, Conv) and node.int8 is not None for node in model.nodes)
    found = Verification([check.result for check in checks], 0, has_int8=has_int8)
    answers: list[tuple[NDArray[Any], NDArray[Any]]] = []
    with evaluating(net):
        for x in batches:
            values = _torch_values(lowered, x)
            if found.layer_sketches < layer_sketches:
                found.layer_sketches += len(x)
                for check in checks:
                    check.compare(values)
            ours, theirs = session.run(x), values[lowered.origins[-1]].reshape(len(x), model.answers)
            scale = np.abs(theirs).max(axis=1, keepdims=True).clip(min=1e-30)
            found.logits_error = max(found.logits_error, float((np.abs(ours - theirs) / scale).max()))
            for i in np.flatnonzero(ours.argmax(axis=1) != theirs.argmax(axis=1)):
                item = Disagreement(found.sketches + int(i), int(theirs[i].argmax()), int(ours[i].argmax()))
                probes.explain(item, x[i : i + 1], {s: v[i : i + 1] for s, v in values.items()}, theirs[i])
                found.disagreements.append(item)
            answers.append((theirs.argmax(axis=1), ours.argmax(axis=1)))
            found.sketches += len(x)
            if progress:
                progress(found.sketches)
    found.equal = found.sketches - len(found.disagreements)
    if labels is not None and answers:
        torch_classes, packed_classes = (np.concatenate(column) for column in zip(*answers, strict=True))
        right = np.asarray(labels)[: found.sketches]
        found.torch_right, found.packed_right = (
            int((torch_classes == right).sum()),
            int((packed_classes == right).sum()),
        )
    return found


def _cut(x: NDArray[np.float32] | Tensor, model: Model) -> Iterator[NDArray[np.float32]]:
    """Cut sketches into batches so small that all values of one can be kept."""
    sketches = np.asarray(x.detach().cpu() if isinstance(x, Tensor) else x, dtype=np.float32)
    if sketches.ndim != 4 or sketches.shape[1:] != tuple(model.input_size) or not len(sketches):
        wanted = ", ".join(map(str, model.input_size))
        raise InputError(f"sketches for this model have the shape (N, {wanted}), not {sketches.shape}.")
    return (sketches[start : start + BATCH] for start in range(0, len(sketches), BATCH))


def _rounding_as(net: nn.Module, model: Model) -> nn.Module:
    """Return the network, or a copy whose layers round real inputs where those of the file do."""
    quantizes = {
        node.name: before
        for node in model.nodes
        if isinstance(node, Conv) and node.inputs[0] and isinstance(before := model.nodes[node.inputs[0] - 1], Quantize)
    }
    real = {
        name
        for name, layer in net.named_modules()
        if name in quantizes and isinstance(layer, BinaryLayer) and layer.quantize_input is None
    }
    if not real:
        return net
    copied = copy.deepcopy(net)
    for name in real:
        layer, quantize = copied.get_submodule(name), quantizes[name]
        rounds = WholeNumbers((quantize.high - quantize.low).bit_length(), signed=quantize.low < 0)
        rounds.set_step(1 / quantize.scale)
        layer.quantize_input = rounds.to(layer.weight)  # type: ignore[arg-type]  # a parameter, not a module
    return copied


def _check_twins(expected: Model, model: Model) -> None:
    """Refuse a file whose nodes are not those of the network."""
    mine, theirs = ([(node.OP, _without_step(node)) for node in each.nodes] for each in (expected, model))
    if mine != theirs or any(
        abs(one.scale - other.scale) > ROUNDING * abs(other.scale)
        for one, other in zip(expected.nodes, model.nodes, strict=True)
        if isinstance(one, Quantize) and isinstance(other, Quantize)
    ):
        raise InputError("the packed model was not exported from this network: their layers differ.")


def _without_step(node: Node) -> dict[str, Any]:
    """Return a node's settings; a step is learned, and may be rounded, too."""
    return {name: value for name, value in node.settings().items() if name != "scale"}


class _Recorder(fx.Interpreter):
    """Runs a traced network and keeps every value of its graph, and the numbers before and after every sign."""

    def __init__(self, graph: fx.GraphModule) -> None:
        super().__init__(graph, garbage_collect_values=False)
        self.found: Values = {}

    def run_node(self, n: fx.Node) -> Any:
        layer = self.fetch_attr(str(n.target)) if n.op == "call_module" else None
        if isinstance(layer, BinaryLayer) and layer.quantize_input is not None:
            (x,), _ = self.fetch_args_kwargs_from_env(n)
            self.found[GraphValue(n.name, "input")] = _copied(layer.integer_input(x)[0])
        if isinstance(layer, RPReLU):
            (x,), _ = self.fetch_args_kwargs_from_env(n)
            shifted, bent = layer.shift(x), layer.bend(layer.shift(x))
            self.found[GraphValue(n.name, "shifted")], self.found[GraphValue(n.name, "bent")] = (
                _copied(shifted), _copied(bent)
            )  # fmt: skip
        result = super().run_node(n)
        if isinstance(result, Tensor):
            self.found[GraphValue(n.name)] = _copied(result)
        return result


def _copied(tensor: Tensor) -> NDArray[Any]:
    """Return its numbers as they are now: the next step may change them in place."""
    return tensor.detach().cpu().numpy().copy()


def _torch_values(lowered: Lowered, x: NDArray[np.float32]) -> Values:
    """Return torch's own value for each of the packed model's."""
    recorder = _Recorder(lowered.graph)
    recorder.run(torch.from_numpy(x.copy()))
    shapes = dict(zip(lowered.origins, lowered.model.shapes, strict=True))
    return {origin: recorder.found[origin].reshape(len(x), *shape[:3]) for origin, shape in shapes.items()}


class _NodeCheck:
    """Runs one node of a packed model natively on torch's inputs."""

    def __init__(self, lowered: Lowered, model: Model, at: int) -> None:
        self.node = model.nodes[at]
        self.inputs = [lowered.origins[i] for i in self.node.inputs]
        self.output = lowered.origins[at + 1]
        self.result = LayerCheck(self.node.name, self.node.OP)
        self._session = Session(_alone(model, at))
        if isinstance(self.node, Conv) and self.node.int8 is not None:
            self.result.error = _rounding_error(self.node, lowered.model.nodes[at])

    def compare(self, values: Values) -> None:
        given = np.concatenate([values[origin] for origin in self.inputs], axis=1)
        expected = values[self.output].reshape(len(given), -1)
        if isinstance(self.node, Conv) and self.node.int8 is not None:  # what the rounded weights give
            exact = reference.compute(self.node, given.transpose(0, 2, 3, 1))
            expected = exact.transpose(0, 3, 1, 2).reshape(len(given), -1)
        found = self._session.run(np.ascontiguousarray(given))
        if not isinstance(self.node, Sign | Quantize):
            largest = max(float(np.abs(expected).max(initial=0)), self._before_bias(values[self.output]), 1e-30)
            self.result.error = max(self.result.error, float(np.abs(found - expected).max(initial=0)) / largest)
            return
        flipped = (found != expected).reshape(given.shape)
        self.result.signs += flipped.size
        self.result.flips += int(flipped.sum())
        self.result.flips_beyond += int((flipped & (_distance(self.node, given) > ROUNDING)).sum())

    def _before_bias(self, expected: NDArray[np.float32]) -> float:
        """Return the largest number that a convolution's bias is added to."""
        if not isinstance(self.node, Conv) or self.node.bias is None:
            return 0.0
        return float(np.abs(expected - self.node.bias[:, None, None]).max(initial=0))


def _rounding_error(node: Conv, network: Node) -> float:
    """Return 0 if a filter's weights of 8 bits are the network's own, rounded to nearest, and else infinity."""
    assert isinstance(network, Conv)
    assert node.scale is not None
    off = np.abs(node.real_weight() - network.real_weight()) / node.scale[:, None, None, None]
    return 0.0 if float(off.max()) <= 0.5 + ROUNDING * LARGEST else float("inf")


def _nearest_threshold(node: Sign | Quantize, x: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the threshold nearest to each number: where its sign changes, or which whole number it becomes."""
    if isinstance(node, Quantize):
        scale = np.float64(np.float32(node.scale))
        halves: NDArray[np.float64] = np.floor(np.clip(scale * x, node.low, node.high - 1)) + 0.5
        return halves / scale
    at = np.zeros(x.shape[1]) if node.threshold is None else node.threshold.astype(np.float64)
    return np.broadcast_to(at[:, None, None], x.shape)


def _distance(node: Sign | Quantize, x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return how far numbers are from the nearest threshold, relatively."""
    at = _nearest_threshold(node, x)
    with np.errstate(invalid="ignore", divide="ignore"):
        distance = np.abs(x - at) / np.maximum(np.abs(x), np.abs(at))
    return np.where(np.isfinite(at), np.nan_to_num(distance), np.inf).astype(np.float32)


def _alone(model: Model, at: int) -> Model:
    """Return a model of one node, which takes all its inputs' channels one after the other.

    It takes signs as -1 and +1, and whole numbers as they are.
    """
    node = model.nodes[at]
    shapes = [model.shapes[i] for i in node.inputs]
    channels = sum(shape.channels for shape in shapes)
    size = (channels, shapes[0].height, shapes[0].width)
    nodes: list[Node] = []
    if shapes[0].is_signs:
        nodes.append(Sign(inputs=(0,)))
    elif not shapes[0].is_real:
        quantize = cast("Quantize", model.nodes[node.inputs[0] - 1])
        nodes.append(replace(quantize, inputs=(0,), scale=1.0))
    elif isinstance(node, Add | Concat):
        # Convolutions that pick the channels of each input, exactly.
        identity, start = np.eye(channels, dtype=np.float32), 0
        for shape in shapes:
            picked = identity[start : start + shape.channels, None, None, :]
            nodes.append(Conv(inputs=(0,), filters=shape.channels, weight=np.ascontiguousarray(picked)))
            start += shape.channels
    inputs = tuple(range(1, len(nodes) + 1)) if nodes else (0,)
    nodes.append(type(node)(**(vars(node) | {"inputs": inputs})))
    return Model(size, tuple(nodes))


class _Probe(NamedTuple):
    """The part of a model up to a sign or a quantize."""

    node: Sign | Quantize
    origin: GraphValue
    before: GraphValue
    session: Session


class _Probes:
    """Finds the first bits that flipped."""

    def __init__(self, model: Model, origins: Sequence[GraphValue]) -> None:
        self._model, self._origins = model, origins
        self._made: dict[int, _Probe] = {}

    def explain(self, item: Disagreement, x: NDArray[np.float32], values: Values, logits: NDArray[np.float32]) -> None:
        """Say why the two disagree about a sketch."""
        for at, node in enumerate(self._model.nodes):
            if not isinstance(node, Sign | Quantize):
                continue
            probe = self._probe(at, node)
            expected = values[probe.origin]
            flipped = probe.session.run(x).reshape(expected.shape) != expected
            if not flipped.any():
                continue
            before = values[probe.before]
            largest = np.maximum(np.abs(before).max(axis=(2, 3), keepdims=True), 1e-30)
            distance = np.abs(before - _nearest_threshold(node, before)) / largest
            item.layer, item.flips, item.distance = node.name, int(flipped.sum()), float(distance[flipped].max())
            return
        gap = float(logits[item.torch_class] - logits[item.packed_class])
        item.distance = gap / max(float(np.abs(logits).max()), 1e-30)

    def _probe(self, at: int, node: Sign | Quantize) -> _Probe:
        if at not in self._made:
            session = Session(self._model.part(at + 1))
            self._made[at] = _Probe(node, self._origins[at + 1], self._origins[node.inputs[0]], session)
        return self._made[at]
