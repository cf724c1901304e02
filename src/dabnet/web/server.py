"""Runs the application until it is told to stop, and then answers what it accepted."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

import uvicorn

from dabnet.errors import InputError
from dabnet.web.app import create_app

if TYPE_CHECKING:
    from collections.abc import Callable

    from dabnet.web.service import Service

DRAIN_SECONDS = 0.25
"""After a signal: how long requests that are under way through the network still count as accepted."""
STOP_SECONDS = 3
"""How long accepted requests may take after that."""
SWITCH_SECONDS = 0.0005
"""How long one thread may keep Python from another that has work: the network must not wait long for its turn."""


def listen(host: str, port: int) -> socket.socket:
    """Take a port."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server((address[0], address[1]), family=family, backlog=1024)
    except OSError as problem:
        reason = problem.strerror if isinstance(problem, socket.gaierror) else os.strerror(problem.errno or 0)
        raise InputError(
            f"cannot listen on {host}, port {port} ({reason}): choose others with --host and --port."
        ) from None


def serve(service: Service, listener: socket.socket, ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; calls `ready` with the address of the page, as soon as it can be opened."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # every address of this machine
        host = "localhost"
    address = f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
    config = uvicorn.Config(
        create_app(service),
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    sys.setswitchinterval(SWITCH_SECONDS)
    signal.signal(signal.SIGTERM, _exit)  # uvicorn raises the signal again after it has stopped
    with suppress(KeyboardInterrupt):
        _Server(config, service, lambda: ready(address)).run([listener])


def _exit(*_: object) -> NoReturn:
    raise SystemExit(0)


class _Server(uvicorn.Server):
    """Uvicorn, which says when it is ready, and ends patiently with senders and impatiently with silence."""

    def __init__(self, config: uvicorn.Config, service: Service, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._service, self._ready = service, ready
        self._silent: dict[object, tuple[object, int]] = {}

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:  # once a second
            self._close_silent()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no new connections, let those that are there finish, and then stop."""
        self._service.is_stopping = True
        for server in self.servers:
            server.close()
        await asyncio.sleep(DRAIN_SECONDS)
        self._service.stop()
        await super().shutdown(sockets)

    def _close_silent(self) -> None:
        """Close connections that have begun no request for too long, whatever they dribble."""
        silent: dict[object, tuple[object, int]] = {}
        for connection in list(self.server_state.connections):
            cycle = getattr(connection, "cycle", None)
            if cycle is not None and not cycle.response_complete:
                continue
            before, seconds = self._silent.get(connection, (cycle, 0))
            silent[connection] = (cycle, seconds + 1 if before is cycle else 0)
            if silent[connection][1] > self._service.limits.seconds and connection.transport is not None:
                connection.transport.close()
        self._silent = silent
