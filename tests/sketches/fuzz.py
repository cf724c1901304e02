"""Feeds mutated pictures, SVGs, JSON lines, zip, npz and Parquet files to the command line's own code.

    python -m tests.sketches.fuzz --count 50000

Each file must end with exit code 0, 1 or 2 and without a traceback, within 5 seconds of processor time, and the process
within a bound of memory. Files come from a seed and an index, so that each can be made again; a process takes some
hundred of them, and the system bounds its memory. What was found is kept in build/fuzz-inputs.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from dabnet.cli import main as command_line

from . import mutations

FOLDER = Path("build/fuzz-inputs")
MAX_SECONDS = 5.0
"""Seconds of processor time for one file."""
MAX_GROWTH = 1_000_000_000
"""Bytes that a process may have resident above what it had before the first file: a picture may have 50 million pixels,
and Quick, Draw!'s lines 8 million bytes."""
MAX_ADDRESSES = 6 << 30
"""Bytes of addresses that the system lets a process have."""
A_PROCESS = 250
"""Files that one process takes."""
SILENCE = 300.0
"""Seconds after which a process that says nothing is ended."""


class Kind(NamedTuple):
    """Files that are alike: how one is made, how many there are of a hundred, and the command that reads them."""

    make: Callable[[random.Random], bytes]
    share: int
    suffix: str
    together: int
    """Files that are given to one command."""
    command: Callable[[list[Path], Path], list[str]]


def _recognize(files: list[Path], _: Path) -> list[str]:
    return ["recognize", "--json", *map(str, files)]


def _prepare(files: list[Path], folder: Path) -> list[str]:
    return ["data", "prepare", str(files[0]), "-o", str(folder / "out.parquet"), "--workers", "1", "--json"]


def _show(files: list[Path], folder: Path) -> list[str]:
    options = ["--rows", "3", "--each", "3", "--size", "16", "--json"]
    return ["data", "show", str(files[0]), "-o", str(folder / "sheet.png"), *options]


KINDS = {
    "picture": Kind(mutations.change_picture, 44, ".png", 25, _recognize),
    "svg": Kind(mutations.change_svg, 20, ".svg", 25, _recognize),
    "line": Kind(mutations.change_line, 20, ".ndjson", 25, _recognize),
    "zip": Kind(mutations.change_zip, 5, ".zip", 1, _prepare),
    "npz": Kind(mutations.change_arrays, 7, ".npz", 1, _prepare),
    "parquet": Kind(mutations.change_set, 4, ".parquet", 1, _show),
}


def work(name: str, start: int, stop: int, seed: int) -> dict[str, Any]:
    """Try some files of a kind, in this process."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_ADDRESSES, MAX_ADDRESSES))
    kind = KINDS[name]
    folder = FOLDER / f"{name}-{start}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _try(["recognize", "--json", "examples/house.svg"])  # imports, and what is made once
    before = _peak()
    codes: Counter[int] = Counter()
    problems: list[str] = []
    slowest = 0.0
    for first in range(start, stop, kind.together):
        files = []
        for index in range(first, min(stop, first + kind.together)):
            path = folder / f"{index}{kind.suffix}"
            path.write_bytes(kind.make(random.Random(f"{seed} {name} {index}")))
            files.append(path)
        seconds, code, said = _try(kind.command(files, folder))
        if (seconds > MAX_SECONDS or said) and len(files) > 1:  # which of them?
            alone = [_try(kind.command([path], folder)) for path in files]
            seconds, code, said = max(alone, key=lambda each: (bool(each[2]), each[0]))
        slowest = max(slowest, seconds)
        codes[code] += len(files)
        if said or seconds > MAX_SECONDS:
            problems.append(f"{name} {first}: {seconds:.1f} s, {said}")
        else:
            for path in [*files, *folder.glob("*.partial"), *folder.glob("out*"), *folder.glob("sheet*")]:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        if _peak() - before > MAX_GROWTH:
            problems.append(f"{name} {first}: {_peak() - before:,} bytes of memory")
            break
    if not problems:
        left = [path.name for path in folder.iterdir()]
        problems += [f"{name} {start}: left behind {left}"] if left else []
        shutil.rmtree(folder)
    return {"codes": codes, "slowest": slowest, "growth": _peak() - before, "problems": problems}


def _try(arguments: list[str]) -> tuple[float, int, str]:
    """Run a command; return its processor time, its exit code, and what was wrong with how it ended."""
    said = io.StringIO()
    begun = time.process_time()
    code, wrong = -1, ""
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            command_line(arguments)
    except SystemExit as stopped:
        code = stopped.code if isinstance(stopped.code, int) else 0
    except BaseException:
        wrong = traceback.format_exc()
    if code not in (0, 1, 2) or "Traceback" in said.getvalue():
        wrong = wrong or f"exit code {code}: {said.getvalue()[-2000:]}"
    return time.process_time() - begun, code, wrong


def _peak() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def run(name: str, start: int, stop: int, seed: int) -> dict[str, Any]:
    """Try some files of a kind, in a process of their own."""
    command = [sys.executable, "-m", "tests.sketches.fuzz", "--work", name, str(start), str(stop), "--seed", str(seed)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SILENCE, env=environment)
        if done.returncode == 0:
            found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
            return found
        why = f"the process ended with {done.returncode}: {done.stderr[-2000:]}"
    except subprocess.TimeoutExpired:
        why = f"no end after {SILENCE:.0f} s"
    return {"codes": {}, "slowest": 0.0, "growth": 0, "problems": [f"{name} {start} to {stop}: {why}"]}


def tasks(count: int) -> Iterator[tuple[str, int, int]]:
    for name, kind in KINDS.items():
        total = -(-count * kind.share // 100)
        for start in range(0, total, A_PROCESS):
            yield name, start, min(total, start + A_PROCESS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=50_000, help="files in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--only", choices=KINDS, help="files of this kind only, as many as it has in all")
    parser.add_argument("--work", nargs=3, metavar=("KIND", "START", "STOP"), help="try these in this process")
    arguments = parser.parse_args()
    if arguments.work:
        name, start, stop = arguments.work
        print(json.dumps(work(name, int(start), int(stop), arguments.seed)))
        return
    begun = time.monotonic()
    listed = [task for task in tasks(arguments.count) if arguments.only in (None, task[0])]
    codes: dict[str, Counter[str]] = {name: Counter() for name in KINDS}
    slowest, growth = dict.fromkeys(KINDS, 0.0), dict.fromkeys(KINDS, 0)
    problems: list[str] = []
    with ThreadPoolExecutor(arguments.processes) as pool:
        results = pool.map(lambda task: run(task[0], task[1], task[2], arguments.seed), listed)
        for done, ((name, _, _), found) in enumerate(zip(listed, results, strict=True), start=1):
            codes[name].update(found["codes"])
            slowest[name], growth[name] = max(slowest[name], found["slowest"]), max(growth[name], found["growth"])
            problems += found["problems"]
            if sys.stderr.isatty() or done % 20 == 0:
                print(f"{done} of {len(listed)} processes, {len(problems)} problems", file=sys.stderr, flush=True)
    total = sum(sum(each.values()) for each in codes.values())
    for name in KINDS:
        told = ", ".join(f"exit code {code}: {count:,}" for code, count in sorted(codes[name].items()))
        figures = f"slowest command {slowest[name]:.2f} s; {growth[name] / 1e6:.0f} MB"
        print(f"{name:8} {sum(codes[name].values()):7,} files; {told}; {figures}")
    print(
        f"{total:,} files in {time.monotonic() - begun:,.0f} s: {len(problems)} problems; no file took more than "
        f"{max(slowest.values()):.2f} s (at most {MAX_SECONDS:g}), no process grew by more than "
        f"{max(growth.values()) / 1e6:.0f} MB (at most {MAX_GROWTH / 1e6:.0f})."
    )
    for problem in problems:
        print(problem)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
