"""A Ray cluster of two nodes on this machine, which nothing outside of it can reach, until standard input ends.

    python -m tests.scale.cluster

`ray start --node-ip-address=127.0.0.1` would not do: it takes the network's address instead.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

ADDRESS = "127.0.0.1"
LOCAL_ONLY = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
"""Keeps Ray to 127.0.0.1, and from telling its makers of its use."""
OBJECT_STORE = 200_000_000


class Nodes(NamedTuple):
    """Where the cluster is, and what to kill to end a node: the first has the driver, the second only works."""

    address: str
    raylets: list[int]
    process: int
    """The process that started all the others."""


@contextmanager
def two_nodes() -> Iterator[Nodes]:
    """Run a Ray cluster of two nodes with a core each, until this ends."""
    command = [sys.executable, "-m", "tests.scale.cluster"]
    # Left to itself, Ray makes its workers give way to all other work, which bare loops do not.
    environment = {**os.environ, **LOCAL_ONLY, "RAY_worker_niceness": "0"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Nodes(**json.loads(process.stdout.readline()))
        process.stdin.close()
        process.wait(60)


def main() -> None:
    folder = tempfile.mkdtemp(prefix="dabnet-ray-", dir="/tmp")  # sockets' names must be short
    os.environ["RAY_TMPDIR"] = folder  # an argument would not do: Ray would still want the folder of an earlier cluster
    options = {"node_ip_address": ADDRESS, "num_cpus": 1, "object_store_memory": OBJECT_STORE}
    try:
        from ray.cluster_utils import Cluster

        cluster = Cluster(initialize_head=True, head_node_args={**options, "include_dashboard": False})
        nodes = [cluster.head_node, cluster.add_node(**options)]
        raylets = [node.all_processes["raylet"][0].process.pid for node in nodes]
        print(json.dumps(Nodes(cluster.address, raylets, os.getpid())._asdict()), flush=True)
        sys.stdin.read()
        cluster.shutdown()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
