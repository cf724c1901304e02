"""How much of the network's speed is left behind HTTP? `dabnet serve` under load, beside the bare Session.

    python -m benchmarks.serve [--seconds 30] [--connections 32] [--threads 2]

The model is a ResNet-18 of 224x224 pixels with binary weights and activations, fresh, with norms as after a training. A
process of its own keeps as many connections busy as it is told, each sending strokes as JSON as soon as the answer to
the last has come. The bare Session runs batches of the same drawings, ready as arrays, before and after, on as many
threads. All of them share the machine's cores: what the server and the sender take is missing to the network.

Then more connections come than its queue has room for, and at last fewer: how soon are those refused that find no room,
and does it recover?
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.record import write_results
from dabnet.comparing.fresh import fresh_model
from dabnet.packed import to_bytes
from dabnet.runtime.recognizer import Recognizer
from dabnet.sketches.raster import Raster
from dabnet.sketches.synthetic import synthetic_strokes

CLASSES = 250
DRAWINGS = 64
BATCH = 16
WANTED_SHARE = 0.8
QUEUE = 16
"""Requests that the server takes when it is sent four times as many."""
WARM_UP = 1.0
"""Seconds before anything counts."""


def write_model(path: Path) -> None:
    model = fresh_model("resnet18", CLASSES, precision="fbin")
    raster = Raster(model.input_size[1]).to_dict()
    labels = tuple(f"thing {number}" for number in range(CLASSES))
    path.write_bytes(to_bytes(dataclasses.replace(model, labels=labels, raster=raster)))


def bodies() -> list[bytes]:
    """Return drawings as a page would send them."""
    drawn = synthetic_strokes(DRAWINGS)[0]
    rounded = [[(100 * stroke.astype(float)).round(1).tolist() for stroke in sketch.strokes] for sketch in drawn]
    return [json.dumps({"strokes": strokes}).encode() for strokes in rounded]


def run_session(path: Path, threads: int, seconds: float) -> float:
    """Return the sketches per second of the bare Session, in batches."""
    recognizer = Recognizer.load(path, threads)
    x = recognizer.show(synthetic_strokes(BATCH)[0])
    count, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < WARM_UP:
        recognizer.session.run(x)
    begun = time.perf_counter()
    while (taken := time.perf_counter() - begun) < seconds:
        recognizer.session.run(x)
        count += BATCH
    return count / taken


class Sender(asyncio.Protocol):
    """A connection that is never idle; notes when each answer came, its seconds and its status."""

    def __init__(self, requests: list[bytes], answers: list[tuple[float, float, int]]) -> None:
        self._requests, self._answers = requests, answers
        self._next = 0
        self._came = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        """Send the next request if this was the rest of an answer."""
        self._came += data
        head, separator, body = self._came.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        if separator and length and len(body) >= int(length[1]):
            now = time.perf_counter()
            self._answers.append((now, now - self._sent, int(head[9:12])))
            self._came = b""
            self._send()

    def connection_lost(self, _: Exception | None) -> None:
        """Count it as an error, unless the time is over."""
        if not self.is_over:
            self._answers.append((time.perf_counter(), 0.0, 0))

    def _send(self) -> None:
        self._transport.write(self._requests[self._next % len(self._requests)])
        self._next += 1
        self._sent = time.perf_counter()

    is_over = False


async def send(port: int, connections: int, seconds: float) -> dict[int, dict[str, Any]]:
    """Keep the server busy; return what came back after the warm-up, by status; 0 are connections that broke."""
    answers: list[tuple[float, float, int]] = []
    head = (
        "POST /v1/recognize HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n"
    )
    requests = [head.format(len(body)).encode() + body for body in bodies()]
    loop = asyncio.get_running_loop()
    for number in range(connections):
        rotated = requests[number % DRAWINGS :] + requests[: number % DRAWINGS]
        await loop.create_connection(partial(Sender, rotated, answers), "127.0.0.1", port)
    await asyncio.sleep(WARM_UP)
    begun = time.perf_counter()
    await asyncio.sleep(seconds)
    taken = time.perf_counter() - begun
    Sender.is_over = True
    came = [(spent, status) for when, spent, status in answers if when >= begun]
    return {
        status: {
            "answers": len(times),
            "per_second": len(times) / taken,
            "p50_ms": 1e3 * float(np.quantile(times, 0.5)),
            "p99_ms": 1e3 * float(np.quantile(times, 0.99)),
        }
        for status in sorted({status for _, status in came})
        if (times := [spent for spent, found in came if found == status])
    }


def send_in_process(port: int, connections: int, seconds: float) -> dict[int, dict[str, Any]]:
    Sender.is_over = False
    return asyncio.run(send(port, connections, seconds))


@contextmanager
def serve(**options: object) -> Iterator[tuple[int, int]]:
    """Run a server with these options; return its port and process number."""
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    command = [sys.executable, "-m", "dabnet", "serve", "--port", "0", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline().split(":")[2].split("/")[0]), server.pid
        finally:
            server.terminate()


def measure(path: Path, connections: int, threads: int, seconds: float) -> dict[str, Any]:
    """Measure the Session before and after, the server, and a server with too much to do and then less."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        before = pool.apply(run_session, (path, threads, seconds / 2))
        with serve(model=path, threads=threads, queue=2 * connections) as (port, _):
            served = pool.apply(send_in_process, (port, connections, seconds))
        after = pool.apply(run_session, (path, threads, seconds / 2))
        with serve(model=path, threads=threads, queue=QUEUE) as (port, _):
            overloaded = pool.apply(send_in_process, (port, 4 * QUEUE, seconds / 4))
            recovered = pool.apply(send_in_process, (port, QUEUE // 2, seconds / 4))
    session = (before + after) / 2
    return {
        "served": served,
        "overloaded": overloaded,
        "recovered": recovered,
        "session_per_second": session,
        "share": served[200]["per_second"] / session,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of the network; all cores")
    arguments = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory() as folder, console.status("measuring"):
        path = Path(folder, "model.safetensors")
        write_model(path)
        found = measure(path, arguments.connections, arguments.threads, arguments.seconds)
    table = Table(
        "load", "status", "answers", "per second", "p50", "p99", title="dabnet serve, ResNet-18 fbin at 224x224"
    )
    for load, told in (
        ("served", f"{arguments.connections} connections"),
        ("overloaded", f"{4 * QUEUE} connections, room for {QUEUE}"),
        ("recovered", f"{QUEUE // 2} connections after that"),
    ):
        for status, row in found[load].items():
            times = (f"{row[name]:.1f} ms" for name in ("p50_ms", "p99_ms"))
            table.add_row(told, str(status), f"{row['answers']:,}", f"{row['per_second']:.0f}", *times)
    table.add_row("the bare Session", "", "", f"{found['session_per_second']:.0f}", "", "")
    console.print(table)
    refused, served = found["overloaded"].get(503), found["overloaded"].get(200)
    for holds, told in (
        (set(found["served"]) == {200}, "no errors"),
        (found["share"] >= WANTED_SHARE, f"at least {WANTED_SHARE:.0%} of the bare Session: {found['share']:.0%}"),
        (
            set(found["overloaded"]) == {200, 503} and refused["p50_ms"] < served["p50_ms"] / 2,
            "what finds no room is refused with 503, sooner than the others are answered",
        ),
        (set(found["recovered"]) == {200}, "all are answered again when fewer come"),
    ):
        console.print(f"{'yes' if holds else 'NO '}  {told}", highlight=False)
    settings = {"seconds": arguments.seconds, "connections": arguments.connections, "threads": arguments.threads}
    written = write_results("serve", {**settings, **found, "wanted_share": WANTED_SHARE})
    console.print(f"Written to {written.relative_to(written.parents[2])}")


if __name__ == "__main__":
    main()
