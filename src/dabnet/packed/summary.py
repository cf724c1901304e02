"""What a model is made of: a table of its layers with bits, multiply-adds, K/n and bytes; without torch.

Multiply-adds are counted by what they multiply: one bit by one bit (XNOR and popcount), one bit by a real number
(adding or subtracting), or two real numbers.
"""

from __future__ import annotations

import io
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from dabnet._text import printable
from dabnet.packed import bits
from dabnet.packed.nodes import Conv
from dabnet.packed.write import to_bytes

if TYPE_CHECKING:
    from dabnet.packed.model import Model
    from dabnet.packed.nodes import Node, Shape

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
    """Multiply-adds of one bit by a real or whole number: of a weight by an input, or of a sign by a weight."""
    real_macs: int = 0
    k_share: float | None = None
    """K/n, the share of weights that take alpha, over all filters."""
    error: float | None = None
    """Squared error of the binary weights, as a share of the weights' squares."""
    bytes: int = 0
    """What it takes in the packed file."""


@dataclass
class Summary:
    """A network's layers and totals; prints as a table."""

    layers: list[LayerSummary]
    float_bytes: int
    """What the state dict, or all parameters of a packed model, take as float32."""
    bytes: int
    """The file that `export` writes; where the network cannot be packed, about what its numbers would take."""
    why_not_packed: str | None = None
    """What keeps the network from being packed."""
    not_counted: dict[str, str] = field(default_factory=dict)
    """The layers with weights whose multiply-adds are not in the table, each with the reason."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and strings, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        text = io.StringIO()
        Console(file=text, width=132, force_terminal=False, markup=False, emoji=False).print(self._table())
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
                printable(layer.name),
                layer.kind,
                "not run" if layer.output_shape is None else "x".join(map(str, layer.output_shape)),
                *map(_count, (layer.one_bit_parameters, layer.real_parameters)),
                *map(_count, (layer.binary_macs, layer.one_bit_macs, layer.real_macs)),
                _share(layer.k_share),
                _share(layer.error),
                _count(layer.bytes),
            )
        return table


def summarize_packed(model: Model) -> Summary:
    """Tell what each node of a packed model that has arrays is and costs, for one sketch.

    >>> from dabnet.packed import read_model
    >>> summarize_packed(read_model("tuberlin")).layers[0].kind
    'int8 conv 7x7'
    """
    rows = [
        _describe(node, model.shapes[node.inputs[0]], model.shapes[at + 1])
        for at, node in enumerate(model.nodes)
        if any(True for _ in node.arrays())
    ]
    parameters = sum(row.one_bit_parameters + row.real_parameters for row in rows)
    return Summary(rows, BYTES_PER_FLOAT * parameters, len(to_bytes(model)))


def _describe(node: Node, before: Shape, after: Shape) -> LayerSummary:
    row = LayerSummary(node.name, node.OP, tuple(after[:3]))
    row.bytes = sum(found.nbytes for _, found in node.arrays())
    row.real_parameters = sum(found.size for name, found in node.arrays() if name not in ("bits", "flip"))
    if isinstance(node, Conv):
        weights = "real" if node.weight is not None else "int8" if node.int8 is not None else "one-bit"
        row.kind = f"{weights} conv {node.kernel[0]}x{node.kernel[1]}"
        taps = node.taps(before)
        macs = after.height * after.width * node.filters * taps
        if node.bits is None:
            row.real_macs = macs
        else:
            row.one_bit_parameters = node.filters * taps
            row.k_share = float(bits.unpack(node.bits, taps).mean())
            row.binary_macs, row.one_bit_macs = (macs, 0) if before.is_signs else (0, macs)
    return row


def _count(value: int) -> str:
    return f"{value:,}" if value else ""


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
