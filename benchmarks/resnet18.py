"""How fast does a binary network recognize a sketch? ResNet-18 and others, beside the engines one would use instead.

    python -m benchmarks.resnet18 [--runs 100] [--only "resnet18 int8 1"]

One sketch at a time, 250 classes. What the engines run is in `dabnet bench --help`: the real-valued twin of the same
layers, the same with 8 bits, and OpenVINO's graph of `BinaryConvolution`. Weights are fresh, with norms as after a
training. Engines take turns in processes of their own, and the least time counts.

Where the processor has AVX-512, every engine runs twice: with all instructions, and as on a processor that has none
beyond AVX2 (DABNET_KERNELS=x86_avx2, ONEDNN_MAX_CPU_ISA=AVX2, which OpenVINO heeds), so that like is compared with
like. ONNX Runtime knows no such limit; its time is the same in both.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.record import write_results
from dabnet.comparing.engines import ENGINES, OURS
from dabnet.comparing.fresh import fresh_model
from dabnet.comparing.measure import RUNS_PER_TURN, start_engines, take_turns
from dabnet.comparing.sketches import draw_sketches
from dabnet.runtime import Session
from dabnet.runtime.session import kernel_names

if TYPE_CHECKING:
    from rich.status import Status

    from dabnet.packed.model import Model

CLASSES = 250


class Race(NamedTuple):
    """A network, the engines beside dabnet, and how many times dabnet's time each should take, at least."""

    network: str
    precision: str
    """As the paper calls it, or the activations that one-bit weights are multiplied by."""
    threads: int
    wanted: dict[str, float | None]


EVERYONE = dict.fromkeys((name for name in ENGINES if name != OURS), None)
RACES = (
    Race("resnet18", "fbin", 1, {**EVERYONE, "onnxruntime": 9, "openvino-int8": 4.5, "openvino-binary": 2}),
    Race("resnet18", "fbin", 2, {**EVERYONE}),
    Race("sketch_a_net", "fbin", 1, {"onnxruntime": 4}),
    Race("googlenet", "fbin", 1, {"onnxruntime": 4}),
    Race("resnet18", "wbin", 1, {"onnxruntime": 0.7}),
    Race("resnet18", "int4", 1, {"onnxruntime": None, "openvino-int8": 2}),
    Race("resnet18", "int4", 2, {"openvino-int8": 2}),
    Race("resnet18", "int8", 1, {"onnxruntime": None, "openvino-int8": 1.1}),
    Race("resnet18", "int8", 2, {"openvino-int8": 1.1}),
    *(Race(name, kind, 1, {"openvino-int8": 1}) for name in ("sketch_a_net", "googlenet") for kind in ("int4", "int8")),
)
AVX2 = ", AVX2"
LIMITS: dict[str, dict[str, str]] = {"": {}, AVX2: {"DABNET_KERNELS": "x86_avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"}}
"""What engines may use, by what is added to their names."""
UNLIMITED = ("onnxruntime", "onnxruntime-int8")
"""Engines that take all instructions there are."""
SPEEDUP = 1.8
"""Two threads should be so many times as fast as one, at least."""


def build(race: Race) -> Model:
    """Return the network of a race, packed."""
    if race.precision in ("int4", "int8"):
        return fresh_model(race.network, CLASSES, weights="dab", activations=race.precision)
    return fresh_model(race.network, CLASSES, precision=race.precision)


def run_race(race: Race, model: Model, runs: int, status: Status) -> list[dict[str, Any]]:
    """Return each engine's least milliseconds, as a multiple of dabnet's, and whether that is what was wanted."""

    def progress(what: str, done: int, total: int) -> None:
        status.update(f"{race.network} {race.precision}, threads: {race.threads}; {what}, {done} of {total}")

    limits = LIMITS if "x86_avx512" in kernel_names() else {"": {}}
    names = [OURS, *race.wanted]
    with start_engines(model, names, threads=race.threads, environments=limits, progress=progress) as ready:
        turns = take_turns(ready, 1, -(-runs // RUNS_PER_TURN), progress=progress)
        seconds = {name: min(times) for name, times in turns.items()}
    rows = []
    for limit in limits:
        for name in names:
            least = seconds[name + limit]
            if name in UNLIMITED:
                least = min(seconds[name + any_limit] for any_limit in limits)
            ratio, wanted = least / seconds[OURS + limit], race.wanted.get(name)
            row: dict[str, Any] = {
                "engine": name,
                "runs": ENGINES[name].about,
                "instructions": limit.strip(", ") or "all",
            }
            row |= {"ms": least * 1e3, "ratio": ratio, "wanted": wanted}
            rows.append({**row, "holds": None if wanted is None else ratio >= wanted})
    return rows


def compare_threads(model: Model, runs: int) -> dict[str, float]:
    """Return dabnet's least milliseconds on one thread and on two, in turns.

    Many runs: on a shared machine, two cores are seldom undisturbed at the same time.
    """
    with start_engines(model, [OURS], threads=1) as one, start_engines(model, [OURS], threads=2) as two:
        seconds = take_turns({"1": one[OURS], "2": two[OURS]}, 1, -(-runs // RUNS_PER_TURN), runs=4 * RUNS_PER_TURN)
    single, double = min(seconds["1"]), min(seconds["2"])
    return {"one_ms": single * 1e3, "two_ms": double * 1e3, "ratio": single / double, "wanted": SPEEDUP}


def show(race: Race, size: int, rows: list[dict[str, Any]]) -> Table:
    threads = f"{race.threads} thread{'s' if race.threads > 1 else ''}"
    table = Table("engine", "runs", "instructions", title=f"{race.network} {race.precision}, {size}x{size}, {threads}")
    for heading in ("ms", "of dabnet", "wanted", "holds"):
        table.add_column(heading, justify="right")
    for row in rows:
        wanted = ("", "") if row["wanted"] is None else (f"{row['wanted']}x", "yes" if row["holds"] else "NO")
        table.add_row(
            row["engine"], row["runs"], row["instructions"], f"{row['ms']:.2f}", f"{row['ratio']:.2f}x", *wanted
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100, help="timed runs of each engine")
    parser.add_argument("--only", nargs="*", default=[], help="races to run, as in 'resnet18 int8 1': of one thread")
    asked = parser.parse_args()
    runs, only = asked.runs, asked.only
    races = [race for race in RACES if not only or f"{race.network} {race.precision} {race.threads}" in only]
    console = Console()
    results = []
    with console.status("building") as status:
        for race in races:
            model = build(race)
            rows = run_race(race, model, runs, status)
            size = model.input_size[1]
            about = {"network": race.network, "precision": race.precision, "size": size, "threads": race.threads}
            steps = Session(model).layer_times(draw_sketches(1, model.input_size), 20) if race.threads == 1 else []
            results.append({**about, "engines": rows, "steps": [{"step": s, "ms": 1e3 * t} for s, t in steps]})
            console.print(show(race, size, rows))
        status.update("one thread and two")
        threads = compare_threads(fresh_model("resnet18", CLASSES, precision="fbin"), runs)
    console.print(
        f"dabnet's resnet18 fbin: {threads['one_ms']:.2f} ms on one thread, {threads['two_ms']:.2f} on two, "
        f"{threads['ratio']:.2f}x as fast (wanted {SPEEDUP}x: {'yes' if threads['ratio'] >= SPEEDUP else 'NO'})"
    )
    path = write_results("resnet18", {"runs": runs, "races": results, "threads": threads})
    console.print(f"Written to {path.relative_to(path.parents[2])}")


if __name__ == "__main__":
    main()
