"""The server's routes: the interface under /v1, and the page to draw on."""

from __future__ import annotations

import json
import logging
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import PurePath
from time import perf_counter
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.routing import Route

from dabnet import __version__
from dabnet.errors import InputError
from dabnet.web.api import ASKING, COUNTED, DRAWING, DRAWN, RECOGNIZED, ModelInfo, Problem
from dabnet.web.bodies import RefusedError
from dabnet.web.docs import DOCS_POLICY, describe
from dabnet.web.forms import JSON
from dabnet.web.hosts import is_allowed
from dabnet.web.page import INDEX, KINDS, POLICY, page_files

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from dabnet.web.service import Service

ALONE = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""What the content security policy of every page ends with."""
ABOUT = """Recognizes free-hand sketches with a binary neural network. Draw on the page at `/`, or send a drawing:

    curl -H 'content-type: application/json' -d '{"strokes": [[[0, 9], [5, 0], [9, 9]]]}' http://127.0.0.1:8000/v1/recognize
    curl -F file=@photo.jpg 'http://127.0.0.1:8000/v1/recognize?top=3'
    curl -H 'content-type: image/png' --data-binary @drawing.png http://127.0.0.1:8000/v1/raster > seen.png
"""
NOSNIFF, CLOSE = (b"x-content-type-options", b"nosniff"), (b"connection", b"close")
PART = 65_536
"""Bytes of a file that wait for their reader at most: whole models would fill the memory."""
GONE = 499
"""The status, in the counts only, of a request whose sender did not wait for the answer."""


def create_app(
    service: Service,
    hosts: frozenset[str] | None = None,
    close_seconds: float | None = None,
    page: dict[str, bytes] | None = None,
) -> FastAPI:
    """Make the application around a service, which it closes when it stops.

    Args:
        service: what answers requests.
        hosts: the names that it answers to.
        close_seconds: how long the service may take to close.
        page: files of the page, by name; by default those of a page that asks the server.
    """
    pages = {f"/{name}": content for name, content in (page or page_files(service.min_confidence)).items()}
    pages["/"] = pages.pop(f"/{INDEX}")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close(close_seconds)

    app = FastAPI(
        title="dabnet",
        version=__version__,
        description=ABOUT,
        docs_url=None,  # these pages would be fetched from elsewhere; /docs is ours
        redoc_url=None,
        lifespan=lifespan,
    )
    app.add_exception_handler(RefusedError, _refuse)
    app.add_exception_handler(InputError, _refuse_input)
    app.add_exception_handler(HTTPException, _refuse_path)
    app.add_exception_handler(ClientDisconnect, _let_go)

    @app.post("/v1/recognize", summary="Recognize a drawing", responses=RECOGNIZED, openapi_extra=ASKING)
    async def recognize(request: Request) -> Response:
        return _json(await service.recognize(request))

    @app.post(
        "/v1/raster",
        summary="Show what the network sees of a drawing",
        responses=DRAWN,
        response_class=Response,
        openapi_extra=DRAWING,
    )
    async def raster(request: Request) -> Response:
        return Response(await service.draw(request), media_type="image/png")

    @app.get("/v1/model", summary="Tell about the model")
    async def model() -> ModelInfo:
        return ModelInfo(**service.about(), version=__version__)

    @app.get("/healthz", summary="Tell whether the server can answer", responses={503: {"model": Problem}})
    async def healthz() -> Response:
        trouble = service.trouble()
        return _json({"status": "ok"}) if trouble is None else _json({"error": trouble}, 503)

    @app.get(
        "/metrics",
        summary="Return counts and latencies as Prometheus reads them",
        responses=COUNTED,
        response_class=Response,
    )
    async def metrics() -> Response:
        return Response(service.metrics_text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    app.add_route("/docs", _page(describe(app.openapi()), KINDS[".html"], DOCS_POLICY), ["GET"])
    for path, content in pages.items():
        app.add_route(path, _page(content, KINDS.get(PurePath(path).suffix, KINDS[".html"])), ["GET"])
    known = frozenset(route.path for route in app.routes if isinstance(route, Route))
    app.add_middleware(_Counted, service=service, hosts=hosts, known=known)
    return app


def _page(content: bytes, kind: str, policy: str = POLICY) -> Any:
    tag = f'"{sha256(content).hexdigest()[:16]}"'

    async def send_page(request: Request) -> Response:
        headers = {"cache-control": "no-cache", "content-security-policy": f"{policy}; {ALONE}", "etag": tag}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        if len(content) <= PART:
            return Response(content, media_type=kind, headers=headers)
        parts = (content[start : start + PART] for start in range(0, len(content), PART))
        return StreamingResponse(
            _one_by_one(parts), media_type=kind, headers={**headers, "content-length": f"{len(content)}"}
        )

    return send_page


async def _one_by_one(parts: Iterable[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def _json(content: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(json.dumps(content, ensure_ascii=False), status, headers, JSON)


async def _refuse(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, RefusedError)
    return _json({"error": str(problem)}, problem.status, problem.headers)


async def _refuse_input(_: Request, problem: Exception) -> Response:
    return _json({"error": str(problem)}, 422)


async def _refuse_path(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    sentence = {
        404: f"there is nothing at '{request.url.path[:100]}': /docs lists what there is.",
        405: f"'{request.url.path[:100]}' does not take {request.method[:20]}: /docs lists what it takes.",
    }.get(problem.status_code, str(problem.detail))
    return _json({"error": sentence}, problem.status_code, dict(problem.headers or {}))


async def _let_go(_: Request, __: Exception) -> Response:
    return Response(status_code=GONE)  # to nobody


class _Counted:
    """Counts every answer, also where something went wrong; once the server stops, asks to close the connection.

    Paths in `known` are counted by name, all others together.
    """

    def __init__(self, app: ASGIApp, service: Service, hosts: frozenset[str] | None, known: frozenset[str]) -> None:
        self._app, self._service, self._hosts, self._known = app, service, hosts, known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status = perf_counter(), GONE

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [pair for pair in message["headers"] if pair[0] != NOSNIFF[0]]
                message["headers"] = [*headers, NOSNIFF, *([CLOSE] if self._service.is_stopping else [])]
            await send(message)

        try:
            if not is_allowed(scope["headers"], self._hosts):
                sentence = "the request's Host is not a name of this server: allow it with --allowed-host."
                await _json({"error": sentence}, 421)(scope, receive, watch)
                return
            # Whoever asks for a head gets that of the whole answer; uvicorn leaves the body out.
            await self._app({**scope, "method": "GET"} if scope["method"] == "HEAD" else scope, receive, watch)
        except Exception:
            logging.getLogger("uvicorn.error").exception("a request failed: %s", scope["path"][:100])
            if status != GONE:
                raise  # half an answer was sent: the connection must end
            await _json({"error": "the server failed: it is not your fault."}, 500)(scope, receive, watch)
        finally:
            path = scope["path"] if scope["path"] in self._known else "other"
            self._service.metrics.count(path, status, perf_counter() - begun)
