"""`dabnet serve`: a page to draw on, and recognition over HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from dabnet._lazy import load
from dabnet.runtime.recognizer import MIN_CONFIDENCE, Recognizer
from dabnet.runtime.session import DEFAULT_MAX_WORK
from dabnet.web.page import has_core, page_files


def serve(
    model: Annotated[str, typer.Option(help="A packed model, or a name that 'dabnet models' lists.")] = "default",
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 lets other machines in.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on; 0 takes a free one.", min=0, max=65535)] = 8000,
    threads: Annotated[int, typer.Option(help="Threads of the network.", min=1)] = 1,
    batch: Annotated[int, typer.Option(help="Drawings that run together at most, when many come.", min=1)] = 8,
    queue: Annotated[int, typer.Option(help="Requests that may wait; more are answered 503 at once.", min=1)] = 64,
    max_body: Annotated[float, typer.Option(help="Megabytes that a picture's file may have.", min=0.1, max=1e6)] = 8,
    body_seconds: Annotated[
        float, typer.Option(help="Seconds that a request may take to come in, and its answer to be read.", min=0.1)
    ] = 10,
    max_pixels: Annotated[float, typer.Option(help="Megapixels that a picture may have.", min=0.01, max=50)] = 16,
    max_head: Annotated[int, typer.Option(help="Bytes that a request's head may have.", min=1024)] = 32_768,
    max_headers: Annotated[int, typer.Option(help="Headers that a request may have.", min=8)] = 100,
    max_connections: Annotated[
        int, typer.Option(help="Connections at a time; one more, and the one that waits longest is closed.", min=1)
    ] = 512,
    max_held: Annotated[
        float, typer.Option(help="Megabytes that all uploads may have together.", min=1, max=1e9)
    ] = 256,
    stuck_seconds: Annotated[
        float, typer.Option(help="Seconds after which /healthz says that a thread is stuck.", min=0.1)
    ] = 30,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            help="A name that requests may ask for in their Host header; may be given again. Without it, a server on a "
            "loopback address answers to loopback's names only, and any other to all names."
        ),
    ] = None,
    run_seconds: Annotated[float, typer.Option(help="Seconds that a drawing may take once it is there.", min=0.1)] = 20,
    max_work: Annotated[
        float, typer.Option(help="Billions of multiply-adds that the model may take for a drawing.", min=0)
    ] = DEFAULT_MAX_WORK / 1e9,
    min_confidence: Annotated[
        float, typer.Option(help="The probability from which on an answer is called sure.", min=0, max=1)
    ] = MIN_CONFIDENCE,
    keep_model: Annotated[
        bool, typer.Option("--keep-model", help="Do not send the model to browsers: the page asks the server instead.")
    ] = False,
) -> None:
    """Serve a page to draw on, which guesses along, and the same over HTTP.

    Open the address that it prints: the network runs in the page. Or send strokes, each a list of points, or a picture:

    curl -H 'content-type: application/json' -d '{"strokes": [[[0, 9], [5, 0], [9, 9]]]}' 127.0.0.1:8000/v1/recognize

    curl -H 'content-type: image/png' --data-binary @cup.png '127.0.0.1:8000/v1/recognize?top=3'

    /openapi.json describes it all; /v1/model, /healthz and /metrics (Prometheus) tell about the server.

    Ctrl-C or SIGTERM stops it, after it has answered what it accepted; what takes too
    long is cancelled, and a second signal ends it at once.

    The limits are those of a server that anyone may ask; SECURITY.md tells what they promise.
    """
    server, service, bodies = (load(f"dabnet.web.{name}") for name in ("server", "service", "bodies"))
    sends_model = has_core() and not keep_model
    recognizer = Recognizer.load(model, threads, max_work=max_work * 1e9)
    listener = server.listen(host, port)
    limits = bodies.Limits(
        queue=queue,
        body=int(max_body * 1e6),
        seconds=body_seconds,
        pixels=int(max_pixels * 1e6),
        held=int(max_held * 1e6),
        head=max_head,
        headers=max_headers,
        connections=max_connections,
        stuck=stuck_seconds,
        run=run_seconds,
    )
    serving = service.Service(recognizer, limits, batch=batch, min_confidence=min_confidence)
    page = page_files(min_confidence, recognizer.session.data if sends_model else None, "either")
    server.serve(serving, listener, _greet, allowed_host or [], page)


def _greet(address: str) -> None:
    typer.echo(f"Draw on {address} (Ctrl-C stops).")
