"""What a network is made of: a table of its layers with bits, multiply-adds, K/n and the error of binarizing.

Multiply-adds are counted by what they multiply: one bit by one bit (XNOR and popcount), one bit by a real number
(adding or subtracting), or two real numbers.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from dabnet.errors import InputError, UnsupportedError
from dabnet.exporting.lower import lower
from dabnet.networks.layers import BinaryLayer
from dabnet.networks.mode import evaluating
from dabnet.packed import to_bytes
from dabnet.packed.int8 import RealWeights, store_real_weights

BYTES_PER_FLOAT = 4


@dataclass
class LayerSummary:
    """One layer of the table."""

    name: str
    kind: str
    output_shape: tuple[int, ...] | None = None
    """Without the batch; None if the layer did not run."""
    one_bit_parameters: int = 0
    real_parameters: int = 0
    binary_macs: int = 0
    """Multiply-adds of one bit by one bit, for one sketch."""
    one_bit_macs: int = 0
    """Multiply-adds of one bit by a real number: of a weight by an input, or of a sign by a weight."""
    real_macs: int = 0
    k_share: float | None = None
    """K/n, the share of weights that take alpha, over all filters."""
    error: float | None = None
    """Squared error of the binary weights, as a share of the weights' squares."""
    bytes: int = 0
    """In the packed file."""


@dataclass
class Summary:
    """A network's layers and totals; prints as a table."""

    layers: list[LayerSummary]
    float_bytes: int
    """What the state dict takes as float32."""
    bytes: int
    """Of the file that `export` writes; where the network cannot be packed, about what its numbers would take."""
    why_not_packed: str | None = None
    """What keeps the network from being packed."""
    not_counted: dict[str, str] = field(default_factory=dict)
    """The layers with weights whose multiply-adds are not in the table, each with the reason."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and strings, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        text = io.StringIO()
        Console(file=text, width=132, force_terminal=False).print(self._table())
        binary, one_bit, real = (
            sum(getattr(layer, kind) for layer in self.layers) for kind in ("binary_macs", "one_bit_macs", "real_macs")
        )
        parameters = sum(layer.one_bit_parameters for layer in self.layers)
        real_parameters = sum(layer.real_parameters for layer in self.layers)
        note = f"\n              (about: it cannot be packed, for {self.why_not_packed})" if self.why_not_packed else ""
        missing = "".join(f"\nnot counted   {name or 'the network'}: {why}" for name, why in self.not_counted.items())
        return text.getvalue() + (
            f"parameters    {parameters:,} of 1 bit, {real_parameters:,} of 32 bit\n"
            f"multiply-adds {binary:,} of 1 bit by 1, {one_bit:,} of 1 bit by 32, {real:,} of 32 bit by 32\n"
            f"size          {self.bytes:,} bytes packed, {self.float_bytes:,} as float32: "
            f"{self.float_bytes / max(self.bytes, 1):.1f} times smaller{note}{missing}"
        )

    __repr__ = __str__

    def _table(self) -> Table:
        table = Table("layer", "kind", "output")
        headings = ("1-bit", "32-bit", "MACs 1·1", "MACs 1·32", "MACs 32·32", "K/n", "error", "bytes")
        for heading in headings:
            table.add_column(heading, justify="right")
        for layer in self.layers:
            table.add_row(
                layer.name,
                layer.kind,
                "not run" if layer.output_shape is None else "x".join(map(str, layer.output_shape)),
                *map(_count, (layer.one_bit_parameters, layer.real_parameters)),
                *map(_count, (layer.binary_macs, layer.one_bit_macs, layer.real_macs)),
                _share(layer.k_share),
                _share(layer.error),
                _count(layer.bytes),
            )
        return table


def summary(
    net: nn.Module,
    input_size: Sequence[int] = (1, 224, 224),
    labels: Sequence[str] | None = None,
    *,
    raster: dict[str, float] | None = None,
    real_weights: RealWeights = "float32",
) -> Summary:
    """Run one blank sketch of `input_size` through a network and tell what each layer is and costs.

    `bytes` is the size of the file that `dabnet.export` writes with the same arguments. A layer's bytes are what it
    takes there; the header and the labels take the rest, and a norm that became part of its neighbour takes none.
    `not_counted` names the layers whose multiply-adds are missing, such as an `nn.LSTM`.

    >>> from dabnet.networks.layers import BinaryLinear
    >>> s = summary(nn.Sequential(nn.Flatten(), nn.Linear(64, 32), BinaryLinear(32, 8)), input_size=(1, 8, 8))
    >>> [(layer.name, layer.one_bit_parameters, layer.real_macs, layer.binary_macs) for layer in s.layers]
    [('1', 0, 2048, 0), ('2', 256, 0, 256)]
    """
    layers = {
        module: _describe(name, module)
        for name, module in net.named_modules()
        if any(True for _ in module.parameters(recurse=False))
    }
    if not layers:
        raise InputError("summary needs a network with parameters, and this one has none.")

    def record(module: nn.Module, _: Any, output: Any) -> None:
        if isinstance(output, Tensor):
            layers[module].output_shape = tuple(output.shape[1:])
            _count_macs(layers[module], module, output)

    handles = [module.register_forward_hook(record) for module in layers]
    like = next(net.parameters())
    try:
        with evaluating(net):
            net(torch.zeros(1, *input_size, device=like.device, dtype=like.dtype))
    finally:
        for handle in handles:
            handle.remove()
    rows = list(layers.values())
    not_counted = {row.name: why for module, row in layers.items() if (why := _why_not_counted(module, row))}
    float_bytes = BYTES_PER_FLOAT * sum(t.numel() for t in net.state_dict().values() if t.is_floating_point())
    try:
        model = store_real_weights(lower(net, input_size, labels or (), raster).model, real_weights)
    except UnsupportedError as problem:
        return Summary(rows, float_bytes, sum(row.bytes for row in rows), str(problem).rstrip("."), not_counted)
    for row in rows:
        nodes = [node for node in model.nodes if node.name == row.name]
        row.bytes = sum(found.nbytes for node in nodes for _, found in node.arrays())
    return Summary(rows, float_bytes, len(to_bytes(model)), None, not_counted)


@torch.no_grad()
def binarization_error(weight: Tensor, binary: Tensor) -> float:
    """Return the squared error of a layer's binary weights as a share of its weights' squares."""
    weight = weight.double()
    return float((weight - binary).square().sum() / weight.square().sum().clamp(min=1e-300))


def _describe(name: str, module: nn.Module) -> LayerSummary:
    row = LayerSummary(name, type(module).__name__)
    own = sum(p.numel() for p in module.parameters(recurse=False))
    if isinstance(module, BinaryLayer):
        filters, n = len(module.weight), module.weights_per_filter
        row.kind = f"{type(module).__name__} {module.settings.weights} {module.settings.activations}"
        if not module.has_binary_weights:
            row.real_parameters, row.bytes = own, own * BYTES_PER_FLOAT
            return row
        row.one_bit_parameters = filters * n
        row.real_parameters = own - filters * n + 2 * filters
        row.k_share = float(module.two_values().mask.double().mean())
        row.error = binarization_error(module.weight, module.binary_weight())
        row.bytes = (filters * n + 7) // 8 + row.real_parameters * BYTES_PER_FLOAT
    else:
        row.real_parameters = own
        row.bytes = own * BYTES_PER_FLOAT
    return row


def _why_not_counted(module: nn.Module, row: LayerSummary) -> str | None:
    """Say why the multiply-adds of a layer with weights are not in its row; None if they are, or if it has no such."""
    if all(parameter.ndim < 2 for parameter in module.parameters(recurse=False)):
        return None
    if not isinstance(module, nn.Conv2d | nn.Linear):
        return f"the multiply-adds of a {type(module).__name__} are none that summary knows"
    return "it was not called" if row.output_shape is None else None


def _count_macs(row: LayerSummary, module: nn.Module, output: Tensor) -> None:
    if not isinstance(module, nn.Conv2d | nn.Linear):
        return
    macs = output[0].numel() * module.weight[0].numel()
    bits = isinstance(module, BinaryLayer) and (module.has_binary_weights + module.has_signs)
    if bits == 2:
        row.binary_macs += macs
    elif bits == 1:
        row.one_bit_macs += macs
    else:
        row.real_macs += macs


def _count(value: int) -> str:
    return f"{value:,}" if value else ""


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
