"""A million drawings on two nodes get, bit for bit, the answers of one process, at nearly the rate of a bare loop.

DABNET_SCALE_DATA names a prepared set of strokes, whose drawings are repeated; without it they are made by a program.
DABNET_SCALE_DRAWINGS is how many there are, a million if it says nothing; of fewer, only answers are asked, no rate.

A rate is drawings per second and core, twice: by the processor's seconds, those of the command, its workers and all of
Ray, which other work on the machine changes little; and by the clock, where there was no other work.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.scale import mean_rate, read_drawings, run_engine, run_loops, write_drawings
from dabnet.distributed.recognize_batch import ANSWERS
from dabnet.runtime import Recognizer
from dabnet.sketches.batch import Batch
from tests.scale.cluster import Nodes

MILLION = 1_000_000
COUNT = int(os.environ.get("DABNET_SCALE_DRAWINGS") or MILLION)
DATA = os.environ.get("DABNET_SCALE_DATA")
WANTED = 0.8
"""Of the bare loop's rate, per core."""
QUIET = 0.05
"""Share of the machine that other work may take where the clock is asked."""


def test_a_million_drawings_get_the_answers_of_one_process(cluster: Nodes, tmp_path: Path) -> None:
    drawings = read_drawings(Path(DATA) if DATA else None)
    path, out = tmp_path / "drawings.parquet", tmp_path / "out"
    write_drawings(drawings, COUNT, path)
    before = run_loops(drawings, 2)
    run = run_engine(path, out, 2, "--engine", "ray", "--address", cluster.address, nodes=cluster)
    bare, rate = mean_rate([before, run_loops(drawings, 2)]), run.rate(2)
    by_clock, by_processor = rate.clock / bare.clock, rate.processor / bare.processor
    print(f"\n{COUNT:,} drawings, {len(drawings):,} different, on two nodes with a core each: {run.seconds:.0f} s,")
    print(f"{rate.clock:,.0f} per second and core, {by_clock:.0%} of {bare.clock:,.0f} by two bare loops;")
    print(f"{rate.processor:,.0f} per second of the processor, {by_processor:.0%} of {bare.processor:,.0f}.")
    print(f"Other work took {run.others:.0%} of the machine.")

    expected = answers_of_one_process(drawings)
    found = [pq.read_table(file) for file in out.glob("*.parquet")]
    for table in found:
        rows = expected.take(pa.array(table["key"].to_numpy() % len(drawings)))
        assert table.drop_columns("key").combine_chunks().equals(rows.combine_chunks())
    keys = np.sort(np.concatenate([table["key"] for table in found]))
    assert np.array_equal(keys, np.arange(COUNT))  # nothing is lost, nothing is there twice
    labels = expected["label"].take(pa.array(np.arange(COUNT) % len(drawings)))
    assert run.summary["drawings"] == COUNT
    assert run.summary["errors"] == labels.null_count
    assert run.summary["classes"] == Counter(labels.drop_null().to_pylist())
    if COUNT >= MILLION:  # of fewer, starting Ray takes too large a share
        assert WANTED <= by_processor < 1.2  # more would be a mistake of the clock
        assert by_clock >= WANTED or run.others > QUIET


def answers_of_one_process(drawings: list[list[list[list[int]]]]) -> pa.Table:
    """Return the answers to all drawings from a plain loop over lists of points."""
    recognizer = Recognizer.load()
    answers: list[dict[str, Any]] = []
    for start in range(0, len(drawings), 1024):
        batch = Batch()
        for drawing in drawings[start : start + 1024]:
            batch.try_to_add("", [list(zip(*stroke, strict=True)) for stroke in drawing])
        found = recognizer.answer(batch, 3)
        for row in range(len(batch)):
            top = [{"label": label, "probability": probability} for label, probability in found.get(row, ())]
            error = str(batch.errors[row]) if row in batch.errors else None
            answers.append({**top[0], "top": top, "error": None} if top else {"error": error})
    return pa.Table.from_pylist(answers, pa.schema(ANSWERS))
