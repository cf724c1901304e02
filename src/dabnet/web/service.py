"""What the server does for a request: a slot in the queue, reading off the event loop, and a turn of the network."""

from __future__ import annotations

import asyncio
import io
from contextlib import asynccontextmanager, contextmanager
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from PIL import Image

from dabnet.errors import InputError, RunCancelledError, TimeLimitError
from dabnet.runtime.recognizer import MIN_CONFIDENCE, is_sure
from dabnet.runtime.session import Cancel
from dabnet.web.bodies import BodyReader, Limits, RefusedError, busy, content_kind, read_drawing
from dabnet.web.forms import JSON
from dabnet.web.metrics import Metrics
from dabnet.web.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterator

    from numpy.typing import NDArray
    from starlette.requests import Request

    from dabnet.runtime.recognizer import Recognizer

TOP = 5
"""Guesses, unless a request asks for another number."""
MAX_TOP = 1000
GRACE_SECONDS = 2.0
"""How long drawings may still run after the server was told to stop."""

T = TypeVar("T")


class Service:
    """Recognizes the drawings of requests.

    Args:
        recognizer: what knows the drawings.
        limits: what is taken.
        batch: drawings that the network runs together at most.
        min_confidence: the probability from which on it calls itself sure.
    """

    def __init__(
        self,
        recognizer: Recognizer,
        limits: Limits | None = None,
        *,
        batch: int = 8,
        min_confidence: float = MIN_CONFIDENCE,
    ) -> None:
        self.recognizer = recognizer
        self.limits = limits or Limits()
        self.min_confidence = min_confidence
        self.metrics = Metrics()
        self.waiting = 0
        self.is_stopping = False
        self._bodies = BodyReader(self.limits)
        self._cancel = Cancel()
        self._pipeline = Pipeline(self._run, min(batch, recognizer.session.batch), self.limits.run)

    async def recognize(self, request: Request) -> dict[str, Any]:
        """Return the guesses for a request's drawing, whether they are sure, and the milliseconds it took."""
        begun = perf_counter()
        async with self._take_in(request) as (body, kind):
            top = _Top(request.query_params.get("top"))
            with self._slot():
                recognize = self._pipeline.recognize
                ran = await self._in_time(recognize(lambda: self._read(body, kind, top), is_slow=kind != JSON))
        guesses = self.recognizer.rank(ran.chances, top.value)
        times = {"total": perf_counter() - begun, "read": ran.reading, "wait": ran.waiting, "run": ran.running}
        return {
            "guesses": [{"label": label, "probability": round(share, 6)} for label, share in guesses],
            "sure": is_sure(guesses, self.min_confidence),
            "milliseconds": {name: round(seconds * 1e3, 3) for name, seconds in times.items()},
        }

    async def _in_time(self, work: Awaitable[T]) -> T:
        """Wait for what is done for a request as long as that may take."""
        try:
            async with asyncio.timeout(self.limits.run):
                return await work
        except (TimeoutError, TimeLimitError):
            sentence = f"the drawing took longer than {self.limits.run:g} s: the model is too large for this server."
            raise RefusedError(504, sentence) from None
        except RunCancelledError:
            raise RefusedError(503, "the server is stopping: try again later.", {"retry-after": "1"}) from None

    def _run(self, x: NDArray[np.float32], seconds: float) -> NDArray[np.float64]:
        return self.recognizer.run(x, time_limit=seconds, cancel=self._cancel)

    async def draw(self, request: Request) -> bytes:
        """Return what the network would see of a request's drawing, as a PNG."""
        async with self._take_in(request) as (body, kind):
            with self._slot():
                read = self._pipeline.read
                png = read(lambda: _to_png(self._read(body, kind, _Top(None))), is_slow=kind != JSON)
                return await self._in_time(png)

    def about(self) -> dict[str, Any]:
        """Tell about the model."""
        session = self.recognizer.session
        return {
            "labels": self.recognizer.labels,
            "input_size": list(self.recognizer.input_size),
            "kernels": session.kernels,
            "threads": session.threads,
            "bytes": self._model_bytes,
            "min_confidence": self.min_confidence,
        }

    @cached_property
    def _model_bytes(self) -> int:
        return len(self.recognizer.session.data)

    def metrics_text(self) -> str:
        """Return all counts as Prometheus reads them."""
        return self.metrics.text(
            {
                "dabnet_queue_length": ("Requests that are accepted and not answered yet.", "gauge", self.waiting),
                "dabnet_batches_total": ("Runs of the network.", "counter", self._pipeline.batches),
                "dabnet_drawings_total": ("Drawings in these runs.", "counter", self._pipeline.drawings),
            }
        )

    def trouble(self) -> str | None:
        """Say why the server cannot answer, if it cannot."""
        if self.is_stopping:
            return "the server is stopping: try again later."
        if (seconds := self._pipeline.longest()) > self.limits.stuck:
            return f"a thread has worked on the same drawings for {seconds:.0f} s: restart the server."
        return None

    def stop(self) -> None:
        """Finish what was accepted, but wait for nothing more; cancel what then still runs after a while."""
        self._bodies.stop()
        asyncio.get_running_loop().call_later(GRACE_SECONDS, self._cancel.cancel)

    def close(self, seconds: float | None = None) -> None:
        """End all threads, or leave them alone after so many seconds; for what still runs nobody waits any more."""
        self._cancel.cancel()
        self._pipeline.close(seconds)

    @asynccontextmanager
    async def _take_in(self, request: Request) -> AsyncIterator[tuple[bytes, str]]:
        """Take a body in; refuse it at once if the queue is full."""
        content_kind(request)
        self._check_queue()
        async with self._bodies.hold(request) as (body, kind):
            yield body, kind

    @contextmanager
    def _slot(self) -> Iterator[None]:
        self._check_queue()
        self.waiting += 1
        try:
            yield
        finally:
            self.waiting -= 1

    def _check_queue(self) -> None:
        if self.waiting >= self.limits.queue:
            raise busy(f"{self.waiting} drawings wait")

    def _read(self, body: bytes, kind: str, top: _Top) -> NDArray[np.float32]:
        """Read a body as the network will see it, and how many guesses it asks for."""
        drawing = read_drawing(body, kind, self.limits)
        if "top" in drawing.options:
            top.take(drawing.options["top"])
        return self.recognizer.show([drawing.sketch])


class _Top:
    """How many guesses a request wants: what its body says, or its query."""

    def __init__(self, in_query: str | None) -> None:
        self.value = TOP
        if in_query is not None:
            is_number = in_query.isascii() and in_query.isdecimal() and len(in_query) < 5
            self.take(int(in_query) if is_number else in_query)

    def take(self, top: Any) -> None:
        if not isinstance(top, int) or isinstance(top, bool) or not 1 <= top <= MAX_TOP:
            raise InputError(f"'top' is how many guesses to give, from 1 to {MAX_TOP}, not {top!r:.40}.")
        self.value = top


def _to_png(x: NDArray[np.float32]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.rint(x[0, 0] * 255).astype(np.uint8)).save(file, "PNG")
    return file.getvalue()
