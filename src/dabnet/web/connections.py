"""Connections with limits: on what comes before a body, on requests sent ahead, on waiting, and on how many there are.

Uvicorn's parser takes heads of any length, and answers that nobody reads are held for ever. Here each connection counts
the bytes that are not body, and once a second the server asks each whether it has waited too long. Where there are too
many, one that only waits makes room for one that comes: of the sender with the most, the one that has waited longest.
"""

from __future__ import annotations

import json
from collections import Counter
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from dabnet.web.forms import JSON

if TYPE_CHECKING:
    import asyncio

    from dabnet.web.service import Service

AHEAD = 16
"""Requests that a connection may send before it has the answer to the first."""
FRAMING = 16
"""Bytes between chunks for each byte of a chunked body: a chunk of one byte needs five."""


class Connection(HttpToolsProtocol):
    """A connection of a server; `limit_connections` makes a class of it that has a service."""

    service: Service

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._refusal = (400, "this is not a request that can be read: send HTTP/1.1.")
        self._framing = 0  # bytes of the message that came and were not body
        self._body = 0
        self._fields = self._field_bytes = 0
        self._is_new = False  # whether a message ended in what was last received
        self.since = 0.0  # when it began to wait for a request
        self._unread_since: float | None = None
        self._cycles: list[RequestResponseCycle] = []  # of requests that are not answered

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection in, if there is room or can be made."""
        super().connection_made(transport)
        self.flow = _Flow(transport)
        self.since = self.loop.time()
        if len(self.connections) > self.service.limits.connections and not self._make_room():
            self._refuse(503, "the server is busy (too many connections): try again in a second.")

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell all requests that nobody waits for their answers; uvicorn tells the last one only."""
        super().connection_lost(exc)
        for cycle in self._cycles:
            cycle.disconnected = not cycle.response_complete
            cycle.message_event.set()

    def data_received(self, data: bytes) -> None:
        """Parse what came, and count what is not body."""
        if self.transport.is_closing():
            return
        body_before, self._is_new = self._body, False
        super().data_received(data)
        if self._is_new:
            return  # what follows the last message is less than was received at once
        self._framing += len(data) - (self._body - body_before)
        if self._framing > self.service.limits.head + FRAMING * self._body and not self.transport.is_closing():
            self._refuse(431, self._too_large())

    def on_message_begin(self) -> None:
        """Begin to count."""
        super().on_message_begin()
        self._fields = self._field_bytes = 0

    def on_url(self, url: bytes) -> None:
        """Count the target's bytes."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header, or a trailer."""
        self._fields += 1
        if self._fields > self.service.limits.headers:
            self._stop(431, f"the request has more than {self.service.limits.headers} headers: send fewer.")
        self._count(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start on a request, unless too many are ahead of it."""
        if len(self.pipeline) >= AHEAD:
            self._stop(429, f"more than {AHEAD} requests wait on this connection: read the answers first.")
        super().on_headers_complete()
        self._cycles = [cycle for cycle in self._cycles if not cycle.response_complete] + [self.cycle]

    def on_body(self, body: bytes) -> None:
        """Count the body's bytes; its own limit is looked after where it is read."""
        self._body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Begin anew."""
        self._is_new, self._framing, self._body = True, 0, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self.since = self.loop.time()
        super().on_response_complete()

    def send_400_response(self, _: str) -> None:
        """Answer what the parser, or a limit, stopped at."""
        self._refuse(*self._refusal)

    def resume_writing(self) -> None:
        """Go on with an answer, of which a part was read: the next part has its own time."""
        self._unread_since = None
        super().resume_writing()

    @property
    def is_waiting(self) -> bool:
        """Whether it has begun no request since the last was answered."""
        return self.cycle is None or self.cycle.response_complete

    def check(self, now: float) -> None:
        """Close the connection if it took too long to send a head, or to read an answer."""
        if self.transport.is_closing() and not self.transport.get_write_buffer_size():
            return
        if not self.transport.get_write_buffer_size():
            self._unread_since = None
        elif self._unread_since is None:
            self._unread_since = now
        elif now - self._unread_since > self.service.limits.seconds:
            self.transport.abort()
        if self.is_waiting and now - self.since > self.service.limits.seconds:
            self.transport.close()

    def _make_room(self) -> bool:
        """End another connection that only waits, be it for a request or a body, or for its answer to be read."""
        others = [each for each in self.connections if isinstance(each, Connection) and each is not self]
        waiting = [each for each in others if each.is_waiting or each.flow.write_paused or each.cycle.more_body]
        if not waiting:
            return False
        counts = Counter(each.client and each.client[0] for each in others)
        last = max(waiting, key=lambda each: (counts[each.client and each.client[0]], -each.since))
        self.connections.discard(last)  # at once, so that it is not chosen again
        last.transport.abort()
        return True

    def _count(self, size: int) -> None:
        self._field_bytes += size
        if self._field_bytes > self.service.limits.head:
            self._stop(431, self._too_large())

    def _too_large(self) -> str:
        return f"the request's head has more than {self.service.limits.head:,} bytes: send shorter headers."

    def _stop(self, status: int, sentence: str) -> None:
        """Make the parser stop here, which then asks for the answer."""
        self._refusal = (status, sentence)
        raise ValueError(sentence)

    def _refuse(self, status: int, sentence: str) -> None:
        body = json.dumps({"error": sentence}).encode()
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: {JSON}\r\ncontent-length: {len(body)}\r\n"
            "x-content-type-options: nosniff\r\nconnection: close\r\n\r\n"
        )
        self.service.metrics.count("other", status, 0.0)
        self.transport.write(head.encode() + body)
        self.transport.close()


class _Flow(FlowControl):
    """Uvicorn's, but one may go on reading where the connection is about to end: nothing comes."""

    def resume_reading(self) -> None:
        if not self._transport.is_closing():
            super().resume_reading()


def limit_connections(service: Service) -> type[Connection]:
    """Make the class of a service's connections."""
    return type("Connection", (Connection,), {"service": service})
