"""What a worker does with a partition: read it, recognize it, and write the answers, whole or not at all."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from dabnet._files import open_beside
from dabnet.distributed.partitions import Outcome, read_outcome, read_partition, write_outcome

if TYPE_CHECKING:
    from dabnet.distributed.partitions import Partition
    from dabnet.distributed.recognize_batch import RecognizeBatch


class RecognizePartition:
    """Recognizes partitions, each however often it is told to: the same answers go to the same file."""

    def __init__(self, recognize: RecognizeBatch) -> None:
        self.recognize = recognize
        self.made_with: dict[str, Any] = {
            "model": hashlib.sha256(recognize.model).hexdigest(),
            "top": recognize.top,
        }

    def done(self, partition: Partition) -> Outcome | None:
        """Return what became of a partition, None if it is still to be done; refuse answers of another model."""
        return read_outcome(partition, self.made_with)

    def __call__(self, partition: Partition) -> Outcome:
        """Write the answers to a partition, unless they are there."""
        if (outcome := self.done(partition)) is not None:  # by a worker of whose end nobody heard
            return outcome
        answers = pa.Table.from_batches(self.recognize.stream(read_partition(partition)))
        labels = Counter(label for label in answers["label"].to_pylist() if label is not None)
        errors = len(answers) - answers["error"].null_count
        outcome = Outcome(partition.output, len(answers), errors, dict(labels.most_common()))
        with (
            open_beside(Path(partition.output), "run the same command again") as file,
            pq.ParquetWriter(file, answers.schema, compression="zstd") as writer,
        ):
            writer.write_table(answers)
            writer.add_key_value_metadata(write_outcome(outcome, partition, self.made_with))
        return outcome
