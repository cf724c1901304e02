"""A short page about the interface, made from its OpenAPI description: nothing in it is fetched from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin: 2rem 0 0; font-size: 1.05rem; }
code, pre { font: 14px/1.5 ui-monospace, monospace; }
pre { overflow-x: auto; padding: 0.75rem 1rem; border: 1px solid #8886; border-radius: 6px; }
table { border-collapse: collapse; } td { padding: 0.1rem 1rem 0.1rem 0; vertical-align: top; }
"""
DOCS_POLICY = (
    f"default-src 'none'; style-src 'sha256-{base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()}'"
)
"""The content security policy of the page: its style, and nothing else."""


def describe(api: dict[str, Any]) -> bytes:
    """Return the page about an OpenAPI description: what it is, and each route with its parameters and answers."""
    about = api["info"]
    routes = "".join(_routes(api))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(about["title"])}: HTTP interface</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style>'
        f"<h1>{escape(about['title'])} {escape(about['version'])}</h1>{_paragraphs(about['description'])}{routes}"
        '<p>The same for programs: <a href="/openapi.json">/openapi.json</a>. Draw: <a href="/">/</a>.'
    ).encode()


def _routes(api: dict[str, Any]) -> Iterator[str]:
    for path, methods in api["paths"].items():
        for method, route in methods.items():
            yield f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(route['summary'])}."
            if body := route.get("requestBody"):
                kinds = ", ".join(f"<code>{escape(kind)}</code>" for kind in body["content"])
                yield f"<p>{escape(body['description'])} Content types: {kinds}."
            rows = [
                (f"<code>?{escape(one['name'])}=</code>", one["description"]) for one in route.get("parameters", [])
            ]
            rows += [(escape(status), answer["description"]) for status, answer in route["responses"].items()]
            yield f"<table>{''.join(f'<tr><td>{name}<td>{escape(words)}' for name, words in rows)}</table>"


def _paragraphs(text: str) -> str:
    """Turn paragraphs, and indented ones that are code, into HTML."""
    blocks = [block.strip("\n") for block in text.split("\n\n") if block.strip()]
    return "".join(
        f"<pre>{escape(chr(10).join(line.strip() for line in block.splitlines()))}</pre>"
        if block.startswith("    ")
        else f"<p>{escape(block)}"
        for block in blocks
    )
