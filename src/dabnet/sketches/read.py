"""Any drawing to a `Sketch`: a file, its bytes, a picture, an array or strokes; told apart by what is in them."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from dabnet.errors import InputError
from dabnet.sketches.files import MAX_FILE_BYTES, MAX_TEXT_BYTES, parse_json
from dabnet.sketches.images import sketch_from_array, sketch_from_bytes, sketch_from_picture
from dabnet.sketches.quickdraw import sketch_from_record
from dabnet.sketches.sketch import Sketch
from dabnet.sketches.svg import sketch_from_svg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike


def read_sketch(drawing: Sketch | str | os.PathLike[str] | bytes | Image.Image | Sequence[ArrayLike] | Any) -> Sketch:
    """Take a drawing in whatever form it comes.

    A path, an open file or the bytes of a PNG, JPEG, WebP, GIF, BMP, TIFF, SVG or JSON file; a Pillow image; an array
    (height, width) or (height, width, channels); strokes, each a list of (x, y). Pictures may be photographs. JSON, or
    what was parsed from it, holds strokes as `[[[x, y], ...], ...]`, an object with these as its `strokes`, or a Quick,
    Draw! object.

    >>> read_sketch([[(10, 10), (90, 50)], [(40, 80)]])
    Sketch(2 strokes, 3 points)
    >>> read_sketch(b"[[[10, 10], [90, 50]]]")
    Sketch(1 strokes, 2 points)
    """
    if isinstance(drawing, Sketch):
        return drawing
    if isinstance(drawing, str | os.PathLike):
        return _read_file(Path(drawing))
    if isinstance(drawing, bytes | bytearray | memoryview):
        return _read_bytes(bytes(drawing))
    if isinstance(drawing, io.BufferedIOBase | io.RawIOBase):
        return _read_open(drawing)
    if isinstance(drawing, dict):
        return sketch_from_json(drawing)
    if isinstance(drawing, Image.Image):
        return sketch_from_picture(drawing)
    if isinstance(drawing, np.ndarray) and drawing.dtype != np.object_:
        return sketch_from_array(drawing)
    if isinstance(drawing, list | tuple | np.ndarray):
        return Sketch.from_strokes(drawing)
    raise InputError(
        f"a {type(drawing).__name__} is not a drawing: give a path, bytes, a Pillow image, an array or strokes."
    )


def _read_open(file: io.BufferedIOBase | io.RawIOBase) -> Sketch:
    data = file.read(MAX_FILE_BYTES + 1) or b""  # its size may be anything: it may be a pipe, or grow
    if len(data) > MAX_FILE_BYTES:
        raise InputError(f"the file has more than {MAX_FILE_BYTES:,} bytes: make it smaller first.")
    return _read_bytes(data)


def _read_file(path: Path) -> Sketch:
    if str(path).startswith(("http:/", "https:/")):
        raise InputError(f"'{path}' is an address, and nothing is fetched: download it first.")
    try:
        with path.open("rb") as file:
            return _read_open(file)
    except OSError as problem:
        raise InputError(f"cannot read '{path}' ({problem.strerror}): check the path.") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _read_bytes(data: bytes) -> Sketch:
    if not data:
        raise InputError("the file is empty: save the drawing again.")
    first = data[:1024].removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if first not in (b"<", b"[", b"{"):
        return sketch_from_bytes(data)
    if len(data) > MAX_TEXT_BYTES:
        raise InputError(f"the drawing has {len(data):,} bytes, more than {MAX_TEXT_BYTES:,}: simplify it first.")
    if first == b"<":
        return sketch_from_svg(data)
    return sketch_from_json(parse_json(data))


def sketch_from_json(content: Any) -> Sketch:
    """Take what was parsed from JSON: strokes, an object with `strokes`, or a Quick, Draw! object.

    >>> sketch_from_json({"strokes": [[[10, 10], [90, 50]]]})
    Sketch(1 strokes, 2 points)
    """
    strokes = content.get("strokes") if isinstance(content, dict) else content
    if isinstance(strokes, list):
        return Sketch.from_strokes(strokes)
    if isinstance(content, dict) and "drawing" in content:
        return sketch_from_record(content)
    raise InputError('the JSON holds no drawing: write it as {"strokes": [[[x, y], [x, y], ...], ...]}.')
