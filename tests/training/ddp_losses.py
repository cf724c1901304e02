"""Trains for one epoch and writes the loss of every step: for a test that compares one process with two.

[torchrun --nproc-per-node N] ddp_losses.py SET FOLDER ACCUMULATE
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path

import torch
from torch import Tensor

from dabnet.sketches.store import SketchSet
from dabnet.training.fit import fit
from dabnet.training.mixing import Batch
from dabnet.training.module import Training
from tests.training.conftest import TINY

losses: list[float] = []
step = Training.training_step


def noted(self: Training, batch: Batch, number: int) -> Tensor:
    loss = step(self, batch, number)
    losses.append(float(loss.detach()))
    return loss


if __name__ == "__main__":
    torch.set_num_threads(1)
    data, folder, accumulate = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    folder.mkdir(exist_ok=True)
    Training.training_step = noted  # type: ignore[method-assign, assignment]
    recipe = dataclasses.replace(TINY, epochs=1, batch_size=32, accumulate=accumulate, classes=None)
    fit(folder, recipe, SketchSet(data), fold=0, device="cpu")
    (folder / f"losses{os.environ.get('RANK', 0)}.json").write_text(json.dumps(losses))
