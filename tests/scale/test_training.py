"""Trainings on several machines: two nodes of torchrun take the steps of one, and Ray runs the trainings of a study."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np

from dabnet.sketches.prepare import prepare
from dabnet.sketches.sources import open_source
from tests.cli.test_study import STUDY, TINY
from tests.distributed.lists import PATIENCE, children, kill, named, wait_for
from tests.scale.cluster import Nodes

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
TRAINING = "ray::_run_here"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_two_nodes_take_the_steps_of_one_process_that_divides_its_batches(tmp_path: Path) -> None:
    prepare(open_source("synthetic", limit=60), tmp_path / "set.parquet", workers=1)
    losses = ["-m", "tests.training.ddp_losses", str(tmp_path / "set.parquet")]
    alone = [sys.executable, *losses, str(tmp_path / "one"), "2"]
    subprocess.run(alone, check=True, env=ENVIRONMENT, timeout=300)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
    where = ["--master-addr", "127.0.0.1", "--master-port", str(free_port())]
    nodes = [
        subprocess.Popen(
            [*torchrun, "--node-rank", str(rank), *where, *losses, str(tmp_path / "two"), "1"], env=ENVIRONMENT
        )
        for rank in (0, 1)
    ]
    assert [node.wait(300) for node in nodes] == [0, 0]
    one = np.array(json.loads((tmp_path / "one" / "losses0.json").read_text()))
    two = np.array([json.loads((tmp_path / "two" / f"losses{rank}.json").read_text()) for rank in (0, 1)])
    steps = min(20, two.shape[1])
    assert steps >= 5
    assert np.abs(one.reshape(-1, 2).T - two)[:, :steps].max() < 1e-3


def test_a_cluster_trains_the_runs_of_a_study_whatever_is_killed(cluster: Nodes, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "tiny.toml").write_text(TINY)
    prepare(open_source("synthetic", limit=18), tmp_path / "set.parquet", workers=1)
    command = [sys.executable, "-m", "dabnet", "study", "study.toml", "--data", "set.parquet", "-o", "out", "--json"]
    process = subprocess.Popen(
        [*command, "--engine", "ray", "--address", cluster.address],
        cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    tasks = wait_for(lambda: [pid for raylet in cluster.raylets for pid in children(raylet) if named(pid, TRAINING)])
    kill(tasks[0])
    output, problems = process.communicate(timeout=3 * PATIENCE)
    assert process.returncode == 0, problems
    assert [cell["validation_accuracy"]["seeds"] for cell in json.loads(output)["cells"]] == [2, 2]
    local = subprocess.run(
        [*command[:-3], "-o", "local", "--json"], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert local.returncode == 0, local.stderr
    assert json.loads(local.stdout) == json.loads(output)  # the same weights, wherever they were trained
