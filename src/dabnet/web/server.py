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

try:
    import resource
except ImportError:  # on Windows
    resource = None  # type: ignore[assignment]

from dabnet.errors import InputError
from dabnet.web.app import create_app
from dabnet.web.connections import Connection, limit_connections
from dabnet.web.hosts import allowed_hosts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    from dabnet.web.service import Service

DRAIN_SECONDS = 0.25
"""After a signal: how long requests that are under way through the network still count as accepted."""
STOP_SECONDS = 3
"""How long accepted requests may take after that."""
CLOSE_SECONDS = 1
"""How long threads may take to end after that; one that decodes cannot be interrupted, but need not be waited for."""
SPARE_FILES = 128
"""Files that the server may have open beside connections."""
SWITCH_SECONDS = 0.0005
"""How long one thread may keep Python from another that has work: the network must not wait long for its turn."""


def listen(host: str, port: int) -> socket.socket:
    """Take a port."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server((address[0], address[1]), family=family, backlog=1024)
    except (OSError, UnicodeError) as problem:
        if isinstance(problem, UnicodeError):
            reason: str | None = "no address can be written so"
        else:
            reason = problem.strerror if isinstance(problem, socket.gaierror) else os.strerror(problem.errno or 0)
        raise InputError(
            f"cannot listen on {host}, port {port} ({reason}): choose others with --host and --port."
        ) from None


def serve(
    service: Service,
    listener: socket.socket,
    ready: Callable[[str], None],
    hosts: Sequence[str] = (),
    page: dict[str, bytes] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; calls `ready` with the address of the page, as soon as it can be opened.

    Requests must name one of `hosts`, or a loopback name if the server listens on a loopback address; without hosts, a
    server on another address answers to any name. A second signal ends it at once.
    """
    bound, port = listener.getsockname()[:2]
    host = "localhost" if bound in ("0.0.0.0", "::") else bound  # every address of this machine
    address = f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
    _allow_files(service.limits.connections + SPARE_FILES)
    config = uvicorn.Config(
        create_app(service, allowed_hosts(bound, hosts), CLOSE_SECONDS, page),
        http=limit_connections(service),
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


def _allow_files(count: int) -> None:
    """Let this process have as many files open, so that connections end at their own limit and not at this one."""
    if resource is None:  # where there is no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    if wanted < count:
        raise InputError(
            f"the limit of {hard:,} open files leaves no room for the connections: raise it, or choose fewer than "
            f"{max(1, hard - SPARE_FILES):,} with --max-connections."
        )


def _exit(*_: object) -> NoReturn:
    raise SystemExit(0)


class _Server(uvicorn.Server):
    """Uvicorn, which says when it is ready, looks after its connections, and stops within a time."""

    def __init__(self, config: uvicorn.Config, service: Service, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._service, self._ready = service, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:  # once a second
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.check(now)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no new connections, let those that are there finish, and then stop."""
        self._service.is_stopping = True
        for server in self.servers:
            server.close()
        await asyncio.sleep(DRAIN_SECONDS)
        self._service.stop()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop in good order; at the second signal, at once."""
        if self.should_exit:
            os._exit(128 + sig)
        super().handle_exit(sig, frame)
