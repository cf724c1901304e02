"""Table 1: how much smaller networks get. Beside the figures that the paper cites, files that are packed here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dabnet.binarizers.choices import Method, Precision
from dabnet.exporting.summary import summary
from dabnet.networks.catalog import build
from paper.finding import Finding, Table
from paper.published import COMPRESSION, NETWORKS, VARIANTS

CLASSES = 250
SETTINGS: dict[str, tuple[Precision, Method]] = {
    "fprec": ("fprec", "dab"),
    "wbin-bwn": ("wbin", "xnor"),
    "fbin-xnor": ("fbin", "xnor"),
    "wbin-dab": ("wbin", "dab"),
    "fbin-dab": ("fbin", "dab"),
}
"""Precision and method of each variant."""


def find_table1(progress: Callable[[str], None] = lambda _: None) -> Finding:
    """Pack each network at the paper's size, in each variant, and compare the file with its float32 weights."""
    measured: dict[str, dict[str, dict[str, Any]]] = {}
    rows = []
    for network, name in NETWORKS.items():
        measured[network] = {}
        for variant, (precision, method) in SETTINGS.items():
            progress(f"packing {name}, {VARIANTS[variant]}")
            net = build(network.replace("-", "_"), CLASSES, precision, method)
            found = summary(net, (1, net.input_size, net.input_size))
            times = found.float_bytes / found.bytes
            measured[network][variant] = {
                "bytes": found.bytes, "float32_bytes": found.float_bytes, "times_smaller": times,
                "pixels": net.input_size,
            }  # fmt: skip
            rows.append((f"{name}, {VARIANTS[variant]}", f"{found.bytes:,}", f"{found.float_bytes:,}", f"{times:.1f}"))
    cited = [(method, f"{times:g}") for method, times in COMPRESSION.items() if method != "Binarization"]
    best = max(each["times_smaller"] for network in measured.values() for each in network.values())
    return Finding(
        "table1",
        "Table 1: compression",
        {"cited_by_the_paper": COMPRESSION, "classes": CLASSES, "packed_here": measured},
        [
            Table(
                f"Packed here: the paper's networks at full size, {CLASSES} classes",
                ("network", "bytes, packed", "bytes, float32", "times smaller"),
                rows,
            ),
            Table(
                "As the paper cites them from the literature; not measured here",
                ("method", "times smaller"),
                [*cited, ("Binarization", f"about {COMPRESSION['Binarization']:g}")],
            ),
        ],
        [
            "The files are whole: bits, scales, thresholds, the real layers and the header; without labels. Weights "
            "are fresh, which changes no size.",
            f"One bit instead of 32 would be 32 times; the first layer and the scales leave {best:.1f} at best. "
            "Sketch-A-Net keeps its last layer real, too.",
        ],
    )
