"""How fast is one binary convolution? A whole layer of dabnet's beside OpenVINO's node alone, one thread.

    python -m benchmarks.binary_conv [--turns 40]

The four 3x3 convolutions of ResNet-18, 115.6 million multiply-adds each. dabnet's layer takes packed signs, counts,
scales and adds, both sums of DAB's, compares with a threshold and packs the signs. OpenVINO's `BinaryConvolution` has
one sum, and does the sign after it, too. Both are middle layers of a chain, timed in turns by the engines' counters.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import openvino as ov
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.record import write_results
from dabnet.comparing.binary_graph import to_binary_graph
from dabnet.packed.bits import pack
from dabnet.packed.model import Model
from dabnet.packed.nodes import Conv, Node, Sign
from dabnet.runtime import Session

SHAPES = ((64, 56), (128, 28), (256, 14), (512, 7))
LENGTH = 4
"""Convolutions in a chain; the first and the last have other neighbours, and do not count."""
WANTED = 0.6
"""dabnet's layer should take at most this much of OpenVINO's node."""
LIMIT_MS = 0.07
"""Two look-ups per cycle at 3.2 GHz, each of 32 filters, 4 channels and 2 positions; more is in docs/kernels.md."""


def make_chain(channels: int, side: int, *, has_offset: bool) -> Model:
    """Return sign, convolution, sign, convolution, and so on; about half of the signs are +1."""
    rng = np.random.default_rng(channels)
    nodes: list[Node] = []
    for _ in range(LENGTH):
        threshold = rng.normal(0, 0.1, channels).astype(np.float32)
        nodes.append(Sign(inputs=(len(nodes),), threshold=threshold))
        scale = rng.uniform(0.5, 1.5, channels).astype(np.float32) / np.float32(np.sqrt(9 * channels))
        shift = rng.normal(0, 0.1, channels).astype(np.float32) * scale if has_offset else None
        ones = pack(rng.random((channels, 9 * channels)) < 0.5)
        window: dict[str, Any] = {"kernel": (3, 3), "padding": (1, 1, 1, 1)}
        nodes.append(Conv(inputs=(len(nodes),), filters=channels, bits=ones, scale=scale, offset=shift, **window))
    return Model((channels, side, side), tuple(nodes))


class OpenVinoChain:
    """A chain of OpenVINO's, and the least seconds of its middle nodes."""

    def __init__(self, model: Model) -> None:
        graph = to_binary_graph(model)
        graph.reshape([1, *model.input_size])
        settings = {"INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY", "PERF_COUNT": True}
        self._request = ov.Core().compile_model(graph, "CPU", settings).create_infer_request()

    def time(self, x: np.ndarray[Any, Any], runs: int) -> float:
        """Return the least seconds of a middle node."""
        least = float("inf")
        for _ in range(runs):
            self._request.infer([x], share_inputs=True)
            nodes = [node for node in self._request.profiling_info if node.node_type == "BinaryConvolution"]
            assert len(nodes) == LENGTH
            least = min(least, *(node.real_time.total_seconds() for node in nodes[1:-1]))
        return least


def time_layer(session: Session, x: np.ndarray[Any, Any], runs: int) -> float:
    """Return the least seconds of a middle layer of dabnet's."""
    times: list[float] = [seconds for step, seconds in session.layer_times(x, runs) if "conv" in step]
    assert len(times) == LENGTH
    return min(times[1:-1])


def measure(channels: int, side: int, turns: int) -> dict[str, Any]:
    model = make_chain(channels, side, has_offset=True)
    session, theirs = Session(model), OpenVinoChain(make_chain(channels, side, has_offset=False))
    x = np.random.default_rng(0).standard_normal((1, channels, side, side), dtype=np.float32)
    best = {"dabnet": float("inf"), "openvino": float("inf")}
    for _ in range(turns):
        best["dabnet"] = min(best["dabnet"], time_layer(session, x, 10))
        best["openvino"] = min(best["openvino"], theirs.time(x, 10))
    multiply_adds = channels * channels * 9 * side * side
    return {
        "layer": f"{channels} -> {channels}, {side}x{side}",
        "dabnet_ms": best["dabnet"] * 1e3,
        "openvino_ms": best["openvino"] * 1e3,
        "ratio": best["dabnet"] / best["openvino"],
        "multiply_adds_per_second": multiply_adds / best["dabnet"],
        "of_limit": best["dabnet"] * 1e3 / LIMIT_MS,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=40, help="turns of ten runs each")
    turns = parser.parse_args().turns
    console = Console()
    rows = [measure(channels, side, turns) for channels, side in track(SHAPES, description="layers", transient=True)]
    table = Table("layer", title=f"One 3x3 binary convolution: ms, one thread; the limit is {LIMIT_MS}")
    for heading in ("dabnet", "OpenVINO", "ratio", f"at most {WANTED}", "G madds/s", "of limit"):
        table.add_column(heading, justify="right")
    for row in rows:
        holds = "yes" if row["ratio"] <= WANTED else "NO"
        rate = f"{row['multiply_adds_per_second'] / 1e9:.0f}"
        times = f"{row['dabnet_ms']:.3f}", f"{row['openvino_ms']:.3f}", f"{row['ratio']:.2f}"
        table.add_row(row["layer"], *times, holds, rate, f"{row['of_limit']:.2f}x")
    console.print(table)
    path = write_results("binary-conv", {"turns": turns, "layers": rows})
    console.print(f"Written to {path.relative_to(path.parents[2])}")


if __name__ == "__main__":
    main()
