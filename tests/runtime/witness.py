"""Records what the runtime answers, and compares a later runtime with it, bit for bit.

    python -m tests.runtime.witness record FOLDER    before a change of the runtime
    python -m tests.runtime.witness check FOLDER     after it, with every set of kernels

The recording holds files, inputs and logits: random models, the three networks of the paper and the model that ships.
"""

from __future__ import annotations

import argparse
import os
import pickle
import sys
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dabnet.packed import Model, find_model, to_bytes
from dabnet.runtime import Session
from dabnet.runtime.session import kernel_names

from .models import models, models_of_signs, sketches

RANDOM_MODELS = 2400
NETWORKS = [
    ("resnet18", "fbin"),
    ("resnet18", "wbin"),
    ("googlenet", "fbin"),
    ("sketch_a_net", "fbin"),
    ("sketch_a_net", "wbin"),
]


class Witness(NamedTuple):
    """A file, what it was given, and what it answered."""

    name: str
    data: bytes
    x: NDArray[np.float32]
    logits: NDArray[np.float32]


def random_witnesses(count: int) -> list[Witness]:
    """Draw different random models, and run each on two inputs."""
    found: dict[bytes, Witness] = {}
    draw_until(found, int(0.6 * count), models(), exact=False)
    draw_until(found, int(0.8 * count), models(binary=True), exact=False)
    draw_until(found, count, models_of_signs(), exact=True)
    return list(found.values())


def draw_until(found: dict[bytes, Witness], wanted: int, strategy: st.SearchStrategy[Model], *, exact: bool) -> None:
    @settings(
        max_examples=2 * wanted,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(model=strategy, seed=st.integers(0, 2**32))
    def draw(model: Model, seed: int) -> None:
        if len(found) < wanted and (data := to_bytes(model)) not in found:
            x = sketches(model, 2, seed, exact=exact)
            found[data] = Witness(f"random model {len(found)}", data, x, Session(data).run(x))

    while len(found) < wanted:
        draw()


def network_witnesses() -> list[Witness]:
    """Run the networks of the paper, and the model that ships, on a few sketches."""
    from dabnet.comparing.fresh import fresh_model
    from dabnet.comparing.sketches import draw_sketches

    files = [(f"{name} {kind}", to_bytes(fresh_model(name, 250, precision=kind))) for name, kind in NETWORKS]
    files.append(("default", find_model("default").read_bytes()))
    found = []
    for name, data in files:
        session = Session(data)
        x = draw_sketches(20 if name == "default" else 3, session.input_size, seed=7)
        found.append(Witness(name, data, x, session.run(x)))
    return found


def record(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    witnesses: list[Any] = [tuple(each) for each in (*network_witnesses(), *random_witnesses(RANDOM_MODELS))]
    (folder / "witness.pickle").write_bytes(pickle.dumps(witnesses))
    print(f"{len(witnesses):,} models recorded.")


def check(folder: Path) -> list[str]:
    """Return the names of the models that answer otherwise now."""
    different = []
    witnesses = [Witness(*each) for each in pickle.loads((folder / "witness.pickle").read_bytes())]
    for kernels in kernel_names():
        for each in witnesses:
            with mock.patch.dict(os.environ, {"DABNET_KERNELS": kernels}):
                session = Session(each.data)
            if not np.array_equal(session.run(each.x).view(np.uint32), each.logits.view(np.uint32)):
                different.append(f"{each.name} ({kernels})")
        print(f"{len(witnesses):,} models with {kernels}: {len(different)} differ", flush=True)
    return different


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["record", "check"])
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    if arguments.what == "record":
        record(arguments.folder)
    elif different := check(arguments.folder):
        sys.exit("\n".join(different[:50]))


if __name__ == "__main__":
    main()
