"""These tests need Ray, Spark, Dask and some minutes: `make test-scale` runs them, and `make test` leaves them out."""

import os
from collections.abc import Iterator

import pytest

from tests.scale.cluster import Nodes, two_nodes

if not os.environ.get("DABNET_SCALE"):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def cluster() -> Iterator[Nodes]:
    """Two nodes with a core each, both on 127.0.0.1."""
    with two_nodes() as nodes:
        yield nodes
