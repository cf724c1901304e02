"""What the core (native/) says of a file, as Python sees it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dabnet import _native
from dabnet.errors import ModelFormatError

if TYPE_CHECKING:
    from dabnet.packed.nodes import Shape


def check_bytes(data: bytes, path: str = "") -> tuple[Shape, ...]:
    """Check a file; return the shapes of its input and of what each node makes, or raise `ModelFormatError`."""
    from dabnet.packed.nodes import Shape

    try:
        about = json.loads(_native.inspect(data))
    except _native.CoreError as problem:
        raise refusal(problem, path) from None
    return tuple(Shape(c, height, width, element) for c, height, width, element in about["shapes"])


def refusal(problem: _native.CoreError, path: str = "") -> ModelFormatError:
    """Return the error for a file that the core refused, which was at `path`."""
    status, sentence = problem.args
    said = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in sentence)
    if path and status == _native.BAD_MODEL:
        said = f"'{path}' is not a packed model that can be used: {said}"
    return ModelFormatError(said)
