"""A million drawings on two nodes get, bit for bit, the answers of one process, at nearly the rate of a bare loop.

DABNET_SCALE_DATA names a prepared set of strokes, whose drawings are repeated; without it they are made by a program.
DABNET_SCALE_DRAWINGS is how many there are, a million if it says nothing.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks.scale import read_drawings, run_loops, watching, write_drawings
from dabnet.runtime import Recognizer
from dabnet.sketches.batch import Batch
from tests.distributed.lists import start_command
from tests.scale.cluster import Nodes

COUNT = int(os.environ.get("DABNET_SCALE_DRAWINGS") or 1_000_000)
DATA = os.environ.get("DABNET_SCALE_DATA")
WANTED = 0.8
MINUTES = 30


def test_a_million_drawings_get_the_answers_of_one_process(cluster: Nodes, tmp_path: Path) -> None:
    drawings = read_drawings(Path(DATA) if DATA else None)
    write_drawings(drawings, COUNT, tmp_path / "drawings.parquet")
    bare = run_loops(drawings, 2)
    begun = time.monotonic()
    process = start_command(
        tmp_path / "drawings.parquet", "-o", tmp_path / "out", "--engine", "ray", "--address", cluster.address, "--json"
    )
    with watching(process.pid, cluster.process) as taken:
        output, problems = process.communicate(timeout=60 * MINUTES)
    seconds, spent = time.monotonic() - begun, taken()
    assert process.returncode == 0, problems
    # Of seconds of the processor, the command's and all of Ray's: other work on the machine changes these little.
    share = COUNT / spent / bare.processor
    print(f"\n{COUNT:,} drawings, {len(drawings):,} of them different, on two nodes with a core each: {seconds:.0f} s,")
    print(f"{COUNT / seconds / 2:,.0f} per second and core; two bare loops: {bare.clock:,.0f}.")
    print(f"{COUNT / spent:,.0f} per second of the processor, {share:.0%} of the bare loop's {bare.processor:,.0f}.")

    answers = answers_of_one_process(drawings)
    seen = np.zeros(COUNT, dtype=np.int64)
    for path in (tmp_path / "out").glob("*.parquet"):
        found = pq.read_table(path, columns=["key", "top", "error"]).to_pydict()
        np.add.at(seen, found["key"], 1)
        for key, top, error in zip(found["key"], found["top"], found["error"], strict=True):
            expected = answers.get(key % len(drawings))
            assert (error is None) == (expected is not None)
            assert expected == (top and [(guess["label"], guess["probability"]) for guess in top])
    assert (seen == 1).all()  # nothing is lost, nothing is there twice
    assert json.loads(output)["drawings"] == COUNT
    assert WANTED <= share < 1.2  # more would be a mistake of the clock


def answers_of_one_process(drawings: list[list[list[list[int]]]]) -> dict[int, list[tuple[str, float]]]:
    """Return the answer to each drawing that can be read, by its number, from a plain loop over lists of points."""
    answers: dict[int, list[tuple[str, float]]] = {}
    recognizer = Recognizer.load()
    for start in range(0, len(drawings), 1024):
        batch = Batch()
        for drawing in drawings[start : start + 1024]:
            batch.try_to_add("", [list(zip(*stroke, strict=True)) for stroke in drawing])
        answers |= {start + number: answer for number, answer in recognizer.answer(batch, 3).items()}
    return answers
