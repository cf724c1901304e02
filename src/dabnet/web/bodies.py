"""From a request's body to a drawing, within limits."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from dabnet.errors import InputError
from dabnet.sketches.files import parse_json
from dabnet.sketches.images import sketch_from_bytes
from dabnet.sketches.read import sketch_from_json
from dabnet.sketches.svg import sketch_from_svg
from dabnet.web.forms import FORM, JSON, SVG, UNSAID, find_drawing, guess_kind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

    from dabnet.sketches.sketch import Sketch

PICTURES = ("image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp", "image/tiff")
KINDS = (JSON, SVG, *PICTURES, FORM, "application/octet-stream")
"""Content types that hold a drawing; others, which say nothing, are taken too."""
MAX_TEXT = 1_000_000
"""Bytes of JSON or SVG: while Python parses it, nothing else runs."""


@dataclass(frozen=True)
class Limits:
    """What a server takes."""

    queue: int = 64
    """Requests that are accepted and not answered yet."""
    body: int = 8_000_000
    """Bytes of a body."""
    seconds: float = 10.0
    """Seconds that a request's head, and then its body, may take to come in, and an answer to be read."""
    pixels: int = 16_000_000
    """Pixels of a picture; a small file can hold many."""
    held: int = 256_000_000
    """Bytes of all bodies that are coming in or wait to be read."""
    head: int = 32_768
    """Bytes of a request's head."""
    headers: int = 100
    """Headers of a request."""
    connections: int = 512
    """Connections at a time."""
    stuck: float = 30.0
    """Seconds after which a thread that still works on the same drawings is called stuck."""
    run: float = 20.0
    """Seconds that a drawing may take once its body is there, waiting included."""


class RefusedError(Exception):
    """A request that gets no guesses, but a status and a sentence."""

    def __init__(self, status: int, sentence: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.headers = status, headers or {}


class AskedDrawing(NamedTuple):
    """A drawing, and what was asked for beside it."""

    sketch: Sketch
    options: dict[str, Any]


class BodyReader:
    """Takes in the bodies of requests; counts the bytes that are held."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._held = 0
        self._patience: set[asyncio.Timeout] = set()
        self._is_stopping = False

    @asynccontextmanager
    async def hold(self, request: Request) -> AsyncIterator[tuple[bytes, str]]:
        """Take in a whole body, or refuse it, and say what kind it is; it counts as held until the end."""
        kind = content_kind(request)
        limit = min(self.limits.body, MAX_TEXT) if kind in (JSON, SVG) else self.limits.body
        length = request.headers.get("content-length", "").lstrip("0")
        if len(length) > len(str(limit)) or int(length or 0) > limit:
            raise _too_large(limit)
        body = bytearray()
        try:
            await self._fill(body, request, limit)
            drawing = bytes(body)
            if kind in (*UNSAID, FORM):
                drawing = find_drawing(drawing, request.headers.get("content-type", ""))
                kind = guess_kind(drawing)
                if kind in (JSON, SVG) and len(drawing) > MAX_TEXT:
                    raise _too_large(MAX_TEXT)
            yield drawing, kind
        finally:
            self._held -= len(body)

    async def _fill(self, body: bytearray, request: Request, limit: int) -> None:
        try:
            async with self._deadline():
                async for chunk in request.stream():
                    body += chunk
                    self._held += len(chunk)
                    if len(body) > limit:
                        raise _too_large(limit)
                    if self._held > self.limits.held:
                        raise busy("too many uploads at once")
        except TimeoutError:
            if self._is_stopping:
                raise RefusedError(503, "the server is stopping: try again later.", {"retry-after": "1"}) from None
            sentence = f"the body took longer than {self.limits.seconds:g} s: send it faster, or send less."
            raise RefusedError(408, sentence, {"connection": "close"}) from None

    def stop(self) -> None:
        """Wait no longer for the rest of bodies."""
        self._is_stopping = True
        for patience in self._patience:
            patience.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def _deadline(self) -> AsyncIterator[None]:
        async with asyncio.timeout(self.limits.seconds) as patience:
            self._patience.add(patience)
            try:
                yield
            finally:
                self._patience.discard(patience)


def read_drawing(body: bytes, kind: str, limits: Limits) -> AskedDrawing:
    """Read a drawing from a body of that content type."""
    if not body:
        raise InputError("the body is empty: send the drawing in it.")
    if kind == JSON:
        content = parse_json(body)
        sketch = sketch_from_json(content)
        return AskedDrawing(sketch, content if isinstance(content, dict) else {})
    return AskedDrawing(sketch_from_svg(body) if kind == SVG else sketch_from_bytes(body, limits.pixels), {})


def content_kind(request: Request) -> str:
    """Return a request's content type, without its parameters, or refuse it."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (*KINDS, *UNSAID):
        known = f"{', '.join(KINDS[:-1])} or {KINDS[-1]}"
        raise RefusedError(415, f"the content type '{kind[:100]}' holds no drawing: send {known}.")
    return kind


def busy(reason: str) -> RefusedError:
    """Ask to come again."""
    return RefusedError(503, f"the server is busy ({reason}): try again in a second.", {"retry-after": "1"})


def _too_large(limit: int) -> RefusedError:
    return RefusedError(413, f"the body has more than {limit:,} bytes: simplify the drawing, or shrink the picture.")
