"""Measurements: `python -m benchmarks.NAME`. Peers are timed in the same run, interleaved, best of many."""
