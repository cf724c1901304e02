"""What the server counts, as text that Prometheus reads.

See https://prometheus.io/docs/instrumenting/exposition_formats/.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from itertools import accumulate

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Seconds that divide the latencies."""


class Metrics:
    """Counts of answered requests.

    >>> metrics = Metrics()
    >>> metrics.count("/v1/recognize", 200, 0.004)
    >>> text = metrics.text({"dabnet_queue_length": ("Requests that were accepted and wait.", "gauge", 2)})
    >>> [line for line in text.splitlines() if line.endswith(("} 1", "length 2"))][:2]
    ['dabnet_requests_total{path="/v1/recognize",status="200"} 1',
     'dabnet_request_seconds_bucket{path="/v1/recognize",le="0.005"} 1']
    """

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(BOUNDS) + 1))
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def count(self, path: str, status: int, seconds: float) -> None:
        """Note a request that was answered."""
        self._requests[path, status] += 1
        self._buckets[path][bisect_left(BOUNDS, seconds)] += 1
        self._seconds[path] += seconds

    def text(self, others: dict[str, tuple[str, str, float]]) -> str:
        """Return it all, and other figures: a name with what it is, its type and its value."""
        lines = _head("dabnet_requests_total", "Requests that were answered.", "counter")
        for (path, status), count in sorted(self._requests.items()):
            lines.append(f'dabnet_requests_total{{path="{path}",status="{status}"}} {count}')
        name = "dabnet_request_seconds"
        lines += _head(name, "Time from a request's first line to its answer.", "histogram")
        for path, buckets in sorted(self._buckets.items()):
            *counts, total = accumulate(buckets)
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), (*counts, total), strict=True):
                lines.append(f'{name}_bucket{{path="{path}",le="{bound}"}} {count}')
            lines.append(f'{name}_sum{{path="{path}"}} {self._seconds[path]:.6f}')
            lines.append(f'{name}_count{{path="{path}"}} {total}')
        for name, (what, kind, value) in others.items():
            lines += [*_head(name, what, kind), f"{name} {value:g}"]
        return "\n".join(lines) + "\n"


def _head(name: str, what: str, kind: str) -> list[str]:
    return [f"# HELP {name} {what}", f"# TYPE {name} {kind}"]
