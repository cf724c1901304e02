"""These tests need Ray, Spark, Dask and some minutes: `make test-scale` runs them, and `make test` leaves them out."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.scale.cluster import LOCAL_ONLY, Nodes

if not os.environ.get("DABNET_SCALE"):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def cluster() -> Iterator[Nodes]:
    """Two nodes with a core each, both on 127.0.0.1."""
    command = [sys.executable, "-m", "tests.scale.cluster"]
    environment = {**os.environ, **LOCAL_ONLY}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Nodes(**json.loads(process.stdout.readline()))
        process.stdin.close()
        process.wait(60)
