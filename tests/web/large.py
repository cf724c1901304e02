"""The server with a page whose model is large: `python -m tests.web.large serve`."""

from __future__ import annotations

from dabnet.cli import main, serve
from dabnet.web.page import MODEL, Network, page_files

SIZE = 16_000_000


def large_files(min_confidence: float, model: bytes | None = None, network: Network = "page") -> dict[str, bytes]:
    return {**page_files(min_confidence), MODEL: bytes(SIZE)}


if __name__ == "__main__":
    serve.page_files = large_files  # type: ignore[attr-defined]
    main()
