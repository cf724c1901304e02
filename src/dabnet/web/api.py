"""How the server's answers look, and what its OpenAPI description says of requests."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from dabnet.web.bodies import KINDS, PICTURES
from dabnet.web.forms import FORM, JSON, SVG

HOUSE = [
    [[10, 50], [50, 10], [90, 50]],
    [[20, 50], [20, 90], [80, 90], [80, 50]],
    [[45, 90], [45, 65], [60, 65], [60, 90]],
]
HOUSE_SVG = '<svg><path d="M10 50 50 10 90 50M20 50V90H80V50M45 90V65H60V90" fill="none" stroke="black"/></svg>'


class Guess(BaseModel):
    """A class, and how likely the drawing is one of it."""

    label: str
    probability: float = Field(ge=0, le=1)


class Milliseconds(BaseModel):
    """Where the time went: from the request's first line to its answer, and parts of it."""

    total: float
    read: float = Field(description="Parsing and rasterizing the drawing.")
    wait: float = Field(description="Until the network was free.")
    run: float = Field(description="In the network, together with the batch.")


class Answer(BaseModel):
    """The guesses, the likeliest first."""

    guesses: list[Guess]
    sure: bool = Field(description="Whether the first guess is at least as likely as the server's least confidence.")
    milliseconds: Milliseconds


class ModelInfo(BaseModel):
    """The model that answers."""

    labels: list[str]
    input_size: list[int] = Field(description="Channels, height and width.", min_length=3, max_length=3)
    kernels: str = Field(description="The instruction set that it runs with.")
    threads: int
    bytes: int = Field(description="Of the model's file.")
    min_confidence: float
    version: str = Field(description="Of dabnet.")


class Problem(BaseModel):
    """Why there is no answer, and what to do."""

    error: str


ANSWER_EXAMPLE = {
    "guesses": [{"label": "house", "probability": 0.93}, {"label": "barn", "probability": 0.04}],
    "sure": True,
    "milliseconds": {"total": 3.4, "read": 0.3, "wait": 0.0, "run": 2.6},
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    408: {"model": Problem, "description": "The body came in too slowly."},
    413: {"model": Problem, "description": "The body is too large."},
    415: {"model": Problem, "description": "The content type holds no drawing."},
    421: {"model": Problem, "description": "The Host header is not a name of this server."},
    422: {"model": Problem, "description": "The body holds no drawing that can be read."},
    429: {"model": Problem, "description": "Too many requests were sent ahead on this connection."},
    431: {"model": Problem, "description": "The request's head is too large."},
    503: {
        "model": Problem,
        "description": "Too many requests wait: try again.",
        "headers": {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}},
    },
    504: {"model": Problem, "description": "The drawing took longer than the server allows."},
}
RECOGNIZED: dict[int | str, dict[str, Any]] = {
    200: {"model": Answer, "content": {JSON: {"example": ANSWER_EXAMPLE}}},
    **PROBLEMS,
}
DRAWN: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/png": {"schema": {"type": "string", "format": "binary"}}}},
    **PROBLEMS,
}
COUNTED: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}

_POINT = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
_STROKES = {
    "type": "object",
    "required": ["strokes"],
    "properties": {
        "strokes": {
            "description": "Each a list of [x, y], at any scale, y downwards; at most 32,768 points in all.",
            "type": "array",
            "minItems": 1,
            "items": {"type": "array", "minItems": 1, "items": _POINT},
        },
        "top": {"description": "How many guesses to give.", "type": "integer", "minimum": 1, "maximum": 1000},
    },
}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
DRAWING: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": (
            "Strokes as JSON, or a picture, also as the file of a form. JSON may be a bare list of strokes, or a "
            "Quick, Draw! object. Pictures may be dark on light, light on dark, or photographs. Where the content type "
            "says nothing, the first bytes do."
        ),
        "content": {
            JSON: {"schema": _STROKES, "example": {"strokes": HOUSE, "top": 3}},
            SVG: {"schema": {"type": "string"}, "example": HOUSE_SVG},
            **dict.fromkeys((*PICTURES, "application/octet-stream"), _BINARY),
            FORM: {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            },
        },
    },
}
ASKING: dict[str, Any] = {
    **DRAWING,
    "parameters": [
        {
            "name": "top",
            "in": "query",
            "description": "How many guesses to give; for JSON it may stand beside the strokes instead.",
            "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 5},
        }
    ],
}
assert set(DRAWING["requestBody"]["content"]) == set(KINDS)
