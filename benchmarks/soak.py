"""Do good requests notice the bad ones? For `python -m benchmarks.abuse --soak SECONDS`.

First 32 connections send good requests only, for a tenth of the time: that is the measure. Then one request in ten is
hostile, of a kind drawn at random, on a connection of its own. Every good request must get the answer that the first
got, and none may take over a second more than the slowest of the first part.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.abuse import CLOSED, FLAT, GOOD, Kind, kinds, request, resident, send
from benchmarks.record import write_results
from benchmarks.serve import serve

CONNECTIONS = 32
SHARE = 0.1
"""The share of hostile requests."""
PAUSE = 0.05
"""Seconds between an answer and the next request: a page that guesses along sends about as often."""
SLOWER = 1.0
"""Seconds that a good request may take more than without hostile ones."""
SAMPLES = 60
"""How often memory is read."""


@dataclass
class Seen:
    """What came back."""

    seconds: list[float] = field(default_factory=list)
    wrong: Counter[str] = field(default_factory=Counter)
    hostile: int = 0
    odd: Counter[str] = field(default_factory=Counter)
    """Hostile requests that ended as they should not."""
    server_errors: int = 0
    memory: list[int] = field(default_factory=list)


class Good:
    """A connection that sends good requests, one after another, and opens again where the server closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self) -> tuple[str, bytes]:
        """Return the status and the body."""
        for attempt in (0, 1):  # a server may close a connection that was idle just as a request is on its way
            try:
                if self._streams is None:
                    self._streams = await asyncio.open_connection("127.0.0.1", self._port)
                reader, writer = self._streams
                writer.write(request(GOOD))
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                return head.split()[1].decode(), await reader.readexactly(length)
            except (ConnectionError, asyncio.IncompleteReadError):
                self.close()
                if attempt:
                    break
        return CLOSED, b""

    def close(self) -> None:
        """End the connection."""
        if self._streams is not None:
            self._streams[1].transport.abort()
        self._streams = None


def essence(status: str, body: bytes) -> str:
    """Return what must be the same in every answer to the same drawing."""
    return json.dumps(json.loads(body)["guesses"]) if status == "200" else status


async def load(port: int, process: int, seconds: float, share: float) -> Seen:
    """Keep the connections busy; a share of the requests is hostile."""
    bad = [pair for pair in kinds().items() if pair[0] != "good"]
    first = Good(port)
    expected = essence(*await first.ask())
    first.close()
    seen, until = Seen(), time.monotonic() + seconds

    async def hostile(name: str, kind: Kind) -> None:
        answer = await send(port, kind)
        seen.hostile += 1
        if answer not in kind.right:
            seen.odd[f"{name}: {answer}"] += 1
        seen.server_errors += answer.startswith("5")

    async def one(number: int) -> None:
        connection, draw = Good(port), random.Random(number)
        while time.monotonic() < until:
            if draw.random() < share:
                await hostile(*draw.choice(bad))
            else:
                begun = time.perf_counter()
                status, body = await connection.ask()
                seen.seconds.append(time.perf_counter() - begun)
                seen.server_errors += status.startswith("5")
                if (found := essence(status, body)) != expected:
                    seen.wrong[found[:80]] += 1
            await asyncio.sleep(PAUSE)
        connection.close()

    async def watch() -> None:
        while time.monotonic() < until:
            seen.memory.append(resident(process))
            await asyncio.sleep(seconds / SAMPLES)

    await asyncio.gather(watch(), *(one(number) for number in range(CONNECTIONS)))
    return seen


def soak(seconds: float, console: Console) -> None:
    """Run both parts and print what was found."""
    with serve(body_seconds=5) as (port, process), console.status("soaking"):
        alone = asyncio.run(load(port, process, seconds / 10, 0))
        among = asyncio.run(load(port, process, seconds, SHARE))
    table = Table("requests", "good ones", "median", "p99", "slowest", title=f"{CONNECTIONS} connections")
    for name, part in (("good only", alone), ("one in ten hostile", among)):
        times = (f"{1e3 * value:.0f} ms" for value in np.quantile(part.seconds, (0.5, 0.99, 1)))
        table.add_row(name, f"{len(part.seconds):,}", *times)
    console.print(table)
    middle = len(among.memory) // 2
    most = max(among.memory)
    growth = max(among.memory[middle:]) / max(among.memory[:middle])
    slower = max(among.seconds) - max(alone.seconds)
    errors = alone.server_errors + among.server_errors
    for holds, told in (
        (not among.wrong and not alone.wrong, f"every good request is answered right: {dict(among.wrong)} are not"),
        (slower <= SLOWER, f"none takes over {SLOWER:g} s more than the slowest without hostile ones: {slower:+.2f} s"),
        (
            growth < FLAT,
            f"memory is flat, second half against the first: {growth:.2f}x of {most / 1e6:.0f} MB",
        ),
        (not errors, f"no 5xx: {errors}"),
        (not among.odd, f"each of {among.hostile:,} hostile requests ends as it should: {dict(among.odd)} do not"),
    ):
        console.print(f"{'yes' if holds else 'NO '}  {told}", highlight=False)
    path = write_results(
        "soak",
        {
            "seconds": seconds,
            "connections": CONNECTIONS,
            "good_alone": len(alone.seconds),
            "good_among_hostile": len(among.seconds),
            "hostile": among.hostile,
            "odd": dict(among.odd),
            "slowest_alone": max(alone.seconds),
            "slowest_among_hostile": max(among.seconds),
            "wrong": dict(among.wrong),
            "server_errors": errors,
            "memory": among.memory,
        },
    )
    console.print(f"Written to {path.relative_to(path.parents[2])}")
