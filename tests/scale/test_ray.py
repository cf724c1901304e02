"""A cluster of Ray's gives the answers of one process, whatever is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.distributed.lists import (
    assert_same_answers,
    children,
    kill,
    named,
    run_command,
    start_command,
    wait_for,
    wait_for_answers,
    write_parquet,
)
from tests.scale.cluster import LOCAL_ONLY, Nodes

TASK = "ray::Map(recognize)"


def options(tmp_path: Path, cluster: Nodes) -> list[str | Path]:
    drawings, out = tmp_path / "a.parquet", tmp_path / "out"
    return [drawings, "-o", out, "--partition", "500", "--engine", "ray", "--address", cluster.address, "--json"]


def tasks(cluster: Nodes) -> list[int]:
    return [pid for raylet in cluster.raylets for pid in children(raylet) if named(pid, TASK)]


@pytest.mark.parametrize("form", ["ray", "ray-class"])
def test_map_batches_takes_it_as_it_is(form: str, cluster: Nodes, tmp_path: Path) -> None:
    expected = write_parquet(tmp_path / "a.parquet", 3000)
    command: list[str | Path] = [sys.executable, "-m", "tests.scale.adapters", form, tmp_path / "a.parquet"]
    environment = {**os.environ, **LOCAL_ONLY, "RAY_ADDRESS": cluster.address}
    subprocess.run([*command, tmp_path / "out"], check=True, env=environment, timeout=150)
    assert pq.read_table(tmp_path / "out").sort_by("key").to_pylist() == expected.to_pylist()


def test_a_worker_that_is_killed_loses_nothing(cluster: Nodes, tmp_path: Path) -> None:
    expected = write_parquet(tmp_path / "a.parquet", 10_000)
    process = start_command(*options(tmp_path, cluster))
    wait_for_answers(tmp_path / "out", 2)
    kill(wait_for(lambda: tasks(cluster))[0])
    output, problems = process.communicate(timeout=150)
    assert process.returncode == 0, problems
    assert json.loads(output)["drawings"] == 10_000
    assert_same_answers(tmp_path / "out", expected)


def test_a_node_that_is_killed_loses_nothing(cluster: Nodes, tmp_path: Path) -> None:
    expected = write_parquet(tmp_path / "a.parquet", 10_000)
    process = start_command(*options(tmp_path, cluster))
    wait_for_answers(tmp_path / "out", 2)
    wait_for(lambda: [pid for pid in children(cluster.raylets[1]) if named(pid, TASK)])
    kill(cluster.raylets[1])
    output, problems = process.communicate(timeout=150)
    assert process.returncode == 0, problems
    assert json.loads(output)["drawings"] == 10_000
    assert_same_answers(tmp_path / "out", expected)


def test_a_driver_that_is_killed_goes_on_when_it_is_run_again(cluster: Nodes, tmp_path: Path) -> None:
    expected = write_parquet(tmp_path / "a.parquet", 10_000)
    process = start_command(*options(tmp_path, cluster))
    wait_for_answers(tmp_path / "out", 3)
    kill(process.pid)
    process.communicate()
    summary = json.loads(run_command(*options(tmp_path, cluster)))
    assert summary["drawings"] == 10_000
    assert 0 < summary["new"] <= 8800
    assert_same_answers(tmp_path / "out", expected)


def test_without_an_address_a_cluster_of_this_machine_is_used(tmp_path: Path) -> None:
    expected = write_parquet(tmp_path / "a.parquet", 2000)
    run_command(
        tmp_path / "a.parquet", "-o", tmp_path / "out", "--partition", "500", "--engine", "ray", "--workers", "2"
    )
    assert_same_answers(tmp_path / "out", expected)


def test_a_cluster_that_is_not_there_is_told_in_a_sentence(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", 20)
    process = start_command(
        tmp_path / "a.parquet", "-o", tmp_path / "out", "--engine", "ray", "--address", "127.0.0.1:1"
    )
    _, problems = process.communicate(timeout=150)
    assert process.returncode == 2
    assert "cannot reach a Ray cluster at '127.0.0.1:1'" in problems
    assert "Traceback" not in problems
