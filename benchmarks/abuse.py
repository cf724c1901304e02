"""What does `dabnet serve` do with requests that nobody should send, and does its memory grow?

    python -m benchmarks.abuse [--rounds 10] [--requests 100] [--connections 16]
    python -m benchmarks.abuse --soak 600

Each round sends so many requests of every kind, some at a time: too large, malformed, too slow, made to take long or
much memory, and abandoned at each stage; and good ones among them, which must all be answered. A kind has its status,
or a connection that is closed. The server's resident memory is read after every round.

The soak keeps 32 connections busy for so many seconds, with one request in ten hostile, after a tenth of that time
without any: see benchmarks/soak.py.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from PIL import Image
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.record import write_results
from benchmarks.serve import serve
from tests.sketches import hostile
from tests.sketches.drawings import HOUSE, paint

PATIENCE = 2.0
"""Seconds that the server waits for a request here."""
FLAT = 1.1
"""Memory is flat if it is never this many times as much in the second half of the rounds as in the first."""
CLOSED = "closed"
GONE = "we left"
SVG = "image/svg+xml"
GOOD = json.dumps({"strokes": [[[0, 9], [5, 0], [9, 9], [0, 9]]]}).encode()


class Kind(NamedTuple):
    """Requests that are alike: what is sent, the answers that are right, and what sets them apart."""

    sent: bytes
    right: tuple[str, ...]
    leave: bool = False
    """Whether we go without reading the answer."""
    wait: bool = False
    """Whether the server waits for more: such requests go out all at once."""


def request(body: bytes, kind: str = "application/json", length: int | None = None) -> bytes:
    length = len(body) if length is None else length
    head = f"POST /v1/recognize HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n"
    return head.encode() + body


def kinds() -> dict[str, Kind]:
    picture = io.BytesIO()
    Image.new("1", (8000, 8000), 1).save(picture, "PNG")
    whole, chunk = request(GOOD), b"%x\r\n%s\r\n" % (600_000, b"[" * 600_000)
    chunked = whole.split(b"content-length")[0] + b"transfer-encoding: chunked\r\n\r\n"
    points = json.dumps({"strokes": [[[i, i % 7] for i in range(40_000)]]}).encode()
    return {
        "good": Kind(whole, ("200",)),
        "too large, by its head": Kind(request(b"[" * 1_000_001), ("413", CLOSED)),
        "too large, in pieces": Kind(chunked + 3 * chunk, ("413", CLOSED)),
        "too many points": Kind(request(points), ("422",)),
        "too many pixels": Kind(request(picture.getvalue(), "image/png"), ("422",)),
        "malformed JSON": Kind(request(b'{"strokes": [[[0, 9]'), ("422",)),
        "malformed picture": Kind(request(picture.getvalue()[:500], "image/png"), ("422",)),
        "an unknown type": Kind(request(b"hello", "text/plain"), ("415",)),
        "not HTTP": Kind(b"\x16\x03\x01\x02\x00\x01\r\n\r\n", ("400",)),
        "a head that never ends": Kind(b"POST /v1/recognize HTTP/1.1\r\nhost: localhost", (CLOSED, "408"), wait=True),
        "a body that never ends": Kind(request(b"{", length=1000), ("408",), wait=True),
        "left in the head": Kind(b"POST /v1/rec", (GONE,), leave=True),
        "left in the body": Kind(request(b"{", length=1000), (GONE,), leave=True),
        "left before the answer": Kind(whole, (GONE,), leave=True),
        **hostile_drawings(),
        **hostile_heads(),
    }


def hostile_drawings() -> dict[str, Kind]:
    """Drawings that ask for much time or memory, or for a mistake."""
    picture = paint(HOUSE)
    chunks = hostile.png_with_chunks(hostile.png_chunk(b"tEXt", b"a\0b"), 400_000, picture)
    turned = hostile.jpeg_with_exif(hostile.bad_exif()["TypeError"], picture.rotate(90))
    return {
        "strokes that numpy pads": Kind(request(hostile.strokes_that_numpy_would_pad()), ("422",)),
        "empty strokes": Kind(request(b"[" + b"[]," * 300_000 + b"[]]"), ("422",)),
        "a JPEG of 5,000 empty scans": Kind(request(hostile.jpeg_of_empty_scans(4000, 5000), "image/jpeg"), ("422",)),
        "a JPEG of as many as allowed": Kind(request(hostile.jpeg_of_empty_scans(4000, 50), "image/jpeg"), ("422",)),
        "a PNG of 400,000 chunks": Kind(request(chunks, "image/png"), ("422",)),
        "a WebP that claims a gigabyte": Kind(request(hostile.webp_that_claims(16383, 16383), "image/webp"), ("422",)),
        "an SVG of default attributes": Kind(request(hostile.svg_of_defaults(20_000, 32_000), SVG), ("422",)),
        "EXIF that Pillow stumbles over": Kind(request(turned, "image/jpeg"), ("200",)),
    }


def hostile_heads() -> dict[str, Kind]:
    """Requests that are wrong before their body, or that nobody reads the answers to."""
    whole = request(GOOD)
    chunked = whole.split(b"content-length")[0] + b"transfer-encoding: chunked\r\n\r\n1\r\n[\r\n0\r\na: "
    zeros = whole.replace(b"content-length: ", b"content-length: " + b"0" * 5_000)
    unread = b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * 16
    return {
        "a head of 300 kB": Kind(whole.replace(b"host", b"a: " + b"b" * 300_000 + b"\r\nhost"), ("431", CLOSED)),
        "5,000 headers": Kind(whole.replace(b"host", b"a: b\r\n" * 5_000 + b"host"), ("431", CLOSED)),
        "a trailer of 1 MB": Kind(chunked + b"b" * 1_000_000, ("431", CLOSED)),
        "400 requests ahead": Kind(whole * 400, ("200", "429", CLOSED)),
        "answers that nobody reads": Kind(unread, ("200", CLOSED), wait=True),
        "a length of 5,000 digits": Kind(zeros, ("200",)),
        "another host": Kind(whole.replace(b"localhost", b"evil.example.org"), ("421",)),
    }


async def send(port: int, kind: Kind) -> str:
    """Send a request on a connection of its own; return the answer's status, or what else became of it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(kind.sent)
        await writer.drain()
        if kind.leave:
            return GONE
        head = await asyncio.wait_for(reader.readline(), 30)
        return head.split()[1].decode() if head else CLOSED
    except ConnectionError:
        return CLOSED
    finally:
        writer.transport.abort()


async def send_many(port: int, kind: Kind, count: int, connections: int) -> Counter[str]:
    room = asyncio.Semaphore(count if kind.wait else connections)

    async def one() -> str:
        async with room:
            return await send(port, kind)

    return Counter(await asyncio.gather(*(one() for _ in range(count))))


def resident(process: int) -> int:
    return 1024 * int(Path(f"/proc/{process}/status").read_text().split("VmRSS:")[1].split()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="at least 2")
    parser.add_argument("--requests", type=int, default=100, help="of each kind in a round")
    parser.add_argument("--connections", type=int, default=16, help="at a time")
    parser.add_argument("--soak", type=float, metavar="SECONDS", help="the soak instead, ten minutes if 600")
    arguments = parser.parse_args()
    console = Console()
    if arguments.soak:
        from benchmarks.soak import soak

        soak(arguments.soak, console)
        return
    found: dict[str, Counter[str]] = {name: Counter() for name in kinds()}
    with serve(body_seconds=PATIENCE) as (port, process), Progress(console=console, transient=True) as progress:
        memory = [resident(process)]
        task = progress.add_task("requests", total=arguments.rounds * len(found))
        for _ in range(arguments.rounds):
            for name, kind in kinds().items():
                found[name] += asyncio.run(send_many(port, kind, arguments.requests, arguments.connections))
                progress.advance(task)
            memory.append(resident(process))
    table = Table("request", "what became of it", "right")
    wrong = 0
    for name, kind in kinds().items():
        bad = sum(count for answer, count in found[name].items() if answer not in kind.right)
        wrong += bad
        told = ", ".join(f"{answer}: {count:,}" for answer, count in sorted(found[name].items()))
        table.add_row(name, told, "yes" if not bad else f"NO: {bad}")
    console.print(table)
    console.print("memory at the start and after every round:", ", ".join(f"{each / 1e6:.1f}" for each in memory), "MB")
    middle = 1 + arguments.rounds // 2
    growth = max(memory[middle:]) / max(memory[1:middle])
    for holds, told in (
        (not wrong, f"every request is answered right: {wrong} are not"),
        (growth < FLAT, f"memory is flat, second half of the rounds against the first: {growth:.2f}x"),
    ):
        console.print(f"{'yes' if holds else 'NO '}  {told}", highlight=False)
    settings = {"requests": arguments.requests, "connections": arguments.connections}
    path = write_results("abuse", {**settings, "answers": found, "memory": memory})
    console.print(f"Written to {path.relative_to(path.parents[2])}")


if __name__ == "__main__":
    main()
