"""What a network is made of: a table of its layers with bits, multiply-adds, K/n and the error of binarizing.

`dabnet.packed.summary` has the table, and what multiply-adds are counted by.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from dabnet.errors import InputError, UnsupportedError
from dabnet.exporting.lower import lower
from dabnet.networks.layers import BinaryLayer
from dabnet.networks.mode import evaluating
from dabnet.networks.packed import PackedNetwork
from dabnet.packed import to_bytes
from dabnet.packed.int8 import RealWeights, store_real_weights
from dabnet.packed.summary import BYTES_PER_FLOAT, LayerSummary, Summary, summarize_packed


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
    `not_counted` names the layers whose multiply-adds are missing, such as an `nn.LSTM`. A packed model that was
    loaded is told of as it is in its file.

    >>> from dabnet.networks.layers import BinaryLinear
    >>> s = summary(nn.Sequential(nn.Flatten(), nn.Linear(64, 32), BinaryLinear(32, 8)), input_size=(1, 8, 8))
    >>> [(layer.name, layer.one_bit_parameters, layer.real_macs, layer.binary_macs) for layer in s.layers]
    [('1', 0, 2048, 0), ('2', 256, 0, 256)]
    """
    if isinstance(net, PackedNetwork):
        return summarize_packed(net.model)
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
