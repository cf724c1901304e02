"""The callable on each engine, as docs/scale.md shows it: `python -m tests.scale.adapters ENGINE DRAWINGS ANSWERS`."""

from __future__ import annotations

import os
import sys
from typing import Any

from dabnet.distributed import RecognizeBatch


def on_ray(drawings: str, answers: str) -> None:
    import ray

    rows = ray.data.read_parquet(drawings)
    rows.map_batches(RecognizeBatch(top=3), batch_format="pyarrow").write_parquet(answers)


def on_ray_as_a_class(drawings: str, answers: str) -> None:
    import ray

    rows = ray.data.read_parquet(drawings)
    options = {"fn_constructor_kwargs": {"top": 3}, "concurrency": 1}
    rows.map_batches(RecognizeBatch, batch_format="pyarrow", **options).write_parquet(answers)


def on_spark(drawings: str, answers: str) -> None:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # what workers run, which must have dabnet
    settings = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false"}
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    guess = "struct<label: string, probability: double>"
    schema = f"key bigint, label string, probability double, top array<{guess}>, error string"
    rows = spark.read.parquet(drawings)
    rows.mapInArrow(RecognizeBatch(top=3).stream, schema).write.parquet(answers)
    spark.stop()


def on_dask(drawings: str, answers: str) -> None:
    import dask.dataframe as dd
    import pandas as pd
    import pyarrow as pa

    recognize = RecognizeBatch(top=3)

    def recognize_frame(frame: Any) -> Any:
        table = recognize(pa.Table.from_pandas(frame, preserve_index=False))
        return table.to_pandas(types_mapper=pd.ArrowDtype)

    rows = dd.read_parquet(drawings, dtype_backend="pyarrow", split_row_groups=True)
    frames = rows.map_partitions(recognize_frame, meta=recognize_frame(rows.partitions[0].head(0, compute=True)))
    frames.to_parquet(answers, compute_kwargs={"scheduler": "processes", "num_workers": 2})


if __name__ == "__main__":
    {"ray": on_ray, "ray-class": on_ray_as_a_class, "spark": on_spark, "dask": on_dask}[sys.argv[1]](*sys.argv[2:])
