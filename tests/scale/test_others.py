"""Spark and Dask run the callable by the lines that docs/scale.md shows, and get the answers of one process."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.distributed.lists import write_parquet
from tests.scale import adapters

DOCS = Path(__file__).parents[2] / "docs" / "scale.md"


@pytest.mark.parametrize("engine", ["spark", "dask"])
def test_another_engine_gets_the_answers_of_one_process(engine: str, tmp_path: Path) -> None:
    expected = write_parquet(tmp_path / "a.parquet", 3000)
    command: list[str | Path] = [sys.executable, "-m", "tests.scale.adapters", engine, tmp_path / "a.parquet"]
    subprocess.run([*command, tmp_path / "out"], check=True, timeout=300)
    found = pa.concat_tables([pq.read_table(path) for path in sorted((tmp_path / "out").glob("*.parquet"))])
    assert found.sort_by("key").select(expected.column_names).to_pylist() == expected.to_pylist()


@pytest.mark.parametrize("adapter", [adapters.on_ray, adapters.on_spark, adapters.on_dask])
def test_the_docs_show_what_is_tested(adapter: object) -> None:
    shown = {line.strip() for line in DOCS.read_text(encoding="utf-8").splitlines()}
    lines = [line.strip() for line in inspect.getsource(adapter).splitlines()]  # type: ignore[arg-type]
    calls = [line for line in lines if "map_batches(" in line or "mapInArrow(" in line or "recognize(" in line]
    assert calls
    assert [line for line in calls if line not in shown] == []
