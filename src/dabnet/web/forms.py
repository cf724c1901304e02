"""Which drawing a body holds where its content type does not say: a form with a file, or bytes of no kind."""

from __future__ import annotations

import re

from dabnet.errors import InputError

JSON, SVG, PNG = "application/json", "image/svg+xml", "image/png"
FORM = "multipart/form-data"
"""What browsers and `curl -F` send files in."""
UNSAID = ("", "application/octet-stream", "application/x-www-form-urlencoded")
"""Content types that say nothing: none, and those that programs put there when nobody told them another."""
MAX_PARTS = 16
"""Fields of a form that are looked at."""


def find_drawing(body: bytes, content_type: str) -> bytes:
    """Return the drawing in a body: the first file of a form, or else its first field; or the body itself."""
    kind, _, rest = content_type.partition(";")
    if kind.strip().lower() != FORM:
        return body
    boundary = re.search(r'boundary="?([^";,\s]{1,70})"?', rest, re.IGNORECASE)
    if boundary is None:
        raise InputError("the form's content type names no boundary: let the library that sends the form set it.")
    fields = []
    parts = (b"\r\n" + body).split(b"\r\n--" + boundary[1].encode("latin-1"), MAX_PARTS + 1)
    for part in parts[1:-1]:  # before the first one is nothing, after the last one the form's end
        head, _, content = part.partition(b"\r\n\r\n")
        if re.search(rb"\bfilename\*?=", head, re.IGNORECASE):
            return content
        fields.append(content)
    if not fields:
        raise InputError("the form holds no file: send it as 'curl -F file=@drawing.png' does.")
    return fields[0]


def guess_kind(body: bytes) -> str:
    r"""Return the content type that a drawing should have had; any picture is as good as a PNG.

    >>> guess_kind(b' {"strokes": []}'), guess_kind(b"<svg/>"), guess_kind(b"\xff\xd8")
    ('application/json', 'image/svg+xml', 'image/png')
    """
    first = body[:1024].removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return SVG if first == b"<" else JSON if first in (b"[", b"{") else PNG
