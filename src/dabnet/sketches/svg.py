"""The strokes of an SVG drawing: every subpath, line and shape is one, and curves become short straight lines.

Read are path, line, polyline, polygon, rect (with its rounded corners), circle and ellipse, in groups and with their
`transform`. Not drawn is what SVG keeps for other uses (defs, clipPath, mask, pattern, marker, symbol) or hides with
`display`, nor what has no colour but white, such as a background. Not supported, and left out, are `use`, text, images
and style sheets. Other colours do not matter: a filled shape is its outline. SVG would draw a path up to its first
mistake; here that is an error, and so is an svg with a viewport of its own inside the svg, so that nobody takes half a
drawing for a whole one.
"""

from __future__ import annotations

import cmath
import math
import re
from typing import TYPE_CHECKING, NamedTuple
from xml.parsers import expat

import numpy as np

from dabnet.errors import InputError
from dabnet.sketches.sketch import Sketch
from dabnet.sketches.svg_path import ARGUMENTS, LARGEST, NUMBER, Pen, check_count, draw_path, quote, to_floats

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dabnet.sketches.svg_path import Cubic

MAX_BYTES = 8_000_000
MAX_ELEMENTS = 32_768
"""Elements and transforms; like MAX_POINTS, so that a stranger's file does not keep us busy for long."""
MAX_PROLOGUE = 65_536
"""Bytes before the first element that are read with care."""
MAX_DEPTH = 200
"""Elements inside one another."""
FLATNESS = 1 / 2000
"""How far a line may be from the curve it stands for, as a share of the drawing's longer side."""
MAX_LINES = 256
"""Lines that a cubic may become: more than FLATNESS ever asks for, but for rounding."""

_NAMESPACE = "http://www.w3.org/2000/svg"
_ENCODING = re.compile(r"utf-8|utf-16|us-ascii|iso-8859-\d+|windows-125\d", re.IGNORECASE)
_DECLARATION = re.compile(rb"<!(?:ENTITY|ATTLIST|ELEMENT|NOTATION)")
_DECLARES = "the SVG declares entities or attributes of its own, which could be endless: save it as plain SVG."
_CONTAINERS = ("svg", "g", "a", "switch")
_SHAPES = ("path", "line", "polyline", "polygon", "rect", "circle", "ellipse")
_UNITS = {"": 1.0, "px": 1.0, "in": 96.0, "cm": 96 / 2.54, "mm": 96 / 25.4, "pt": 96 / 72, "pc": 16.0}

_LENGTH = re.compile(rf"\s*+{NUMBER}([a-z%]*+)\s*+", re.ASCII)
_TRANSFORM = re.compile(r"[\s,]*+([A-Za-z]++)\s*+\(([^()]*+)\)", re.ASCII)
_STRAY = re.compile(r"[^\s\d.,eE+-]", re.ASCII)
_PROPERTY = re.compile(r"(?:^|;)\s*+(display|fill|stroke)\s*+:\s*+([^;]*+)", re.ASCII)
_PAPER = ("none", "transparent", "white", "#fff", "#ffffff", "rgb(255,255,255)", "rgb(255, 255, 255)")


def sketch_from_svg(data: bytes) -> Sketch:
    """Read an SVG file's bytes; y points down, as in SVG.

    >>> sketch = sketch_from_svg(b'<svg><path d="M0 0h4v3z"/><g transform="scale(2)"><circle r="1"/></g></svg>')
    >>> sketch
    Sketch(2 strokes, ... points)
    >>> sketch.strokes[0].tolist()
    [[0.0, 0.0], [4.0, 0.0], [4.0, 3.0], [0.0, 0.0]]
    """
    if len(data) > MAX_BYTES:
        raise InputError(f"the SVG has more than {MAX_BYTES:,} bytes: simplify it first.")
    if not data.strip():
        raise InputError("the SVG file is empty: save it again.")
    if _DECLARATION.search(data.replace(b"\0", b"")):  # in UTF-16 too
        raise InputError(_DECLARES)
    reader = _Reader()
    reader.read(data)
    if not reader.cubics:
        raise InputError("the SVG has no lines: it needs at least one path, line or shape.")
    cubics = _transform(np.array(reader.cubics), np.repeat(reader.matrices, reader.counts, axis=0))
    return _flatten(cubics, np.array(reader.starts))


class _Inherited(NamedTuple):
    """What an element hands down to those inside it."""

    matrix: NDArray[np.float64]
    style: dict[str, str]


class _Reader:
    """Follows a document's elements, and collects what they draw."""

    def __init__(self) -> None:
        self.cubics: list[Cubic] = []
        self.starts: list[int] = []  # the cubics that begin a stroke
        self.matrices: list[NDArray[np.float64]] = []  # the matrix of each shape
        self.counts: list[int] = []  # the cubics of each shape
        self._elements = 0
        self._open: list[_Inherited | None] = []  # of each open element; None if it is not drawn
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.specified_attributes = True  # a default in the document's DTD would make much of little
        self._parser.XmlDeclHandler = self._declare
        self._parser.StartDoctypeDeclHandler = self._start_doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = lambda _: self._open.pop()

    def read(self, data: bytes) -> None:
        try:
            # After an error in a handler, expat goes on to the end of what it was given. So it gets the prologue, which
            # may declare what takes long, in small pieces, and the rest at once: long tokens would be read many times.
            position = 0
            while not self._elements and position < min(len(data), MAX_PROLOGUE):
                self._parser.Parse(data[position : position + 512], False)
                position += 512
            self._parser.Parse(data[position:], True)
        except expat.ExpatError as problem:
            raise InputError(f"this is not a well-formed SVG (line {problem.lineno}): save it again.") from None
        except (UnicodeError, LookupError):
            raise InputError("the SVG's text cannot be decoded: save it as UTF-8.") from None

    def _declare(self, _version: str, encoding: str | None, _standalone: int) -> None:
        if encoding is not None and not _ENCODING.fullmatch(encoding):  # else any codec of Python's could run
            raise InputError(f"the SVG's encoding {quote(encoding)} is not supported: save it as UTF-8.")

    def _start_doctype(self, _name: str, _system: str | None, _public: str | None, has_subset: int) -> None:
        if has_subset:
            raise InputError(_DECLARES)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._count_element()
        if len(self._open) >= MAX_DEPTH:
            raise InputError(f"the SVG nests elements more than {MAX_DEPTH} deep: ungroup them first.")
        namespace, _, name = name.rpartition(" ")
        is_drawn = namespace in ("", _NAMESPACE) and (name in _CONTAINERS or name in _SHAPES)
        if not self._open and not (is_drawn and name == "svg"):
            raise InputError(f"this XML file is not an SVG: it must start with the element svg, not {quote(name)}.")
        outer = self._open[-1] if self._open else _Inherited(np.eye(3), {})
        self._open.append(None)
        if outer is None or not is_drawn:
            return
        matrix, style = outer.matrix, _read_style(attributes, outer.style)
        if style["display"] == "none" or (name in _SHAPES and _is_blank(style)):
            return
        try:
            for step in _read_transform(attributes.get("transform", "")):
                self._count_element()
                with np.errstate(all="ignore"):  # what overflows is found when all is read
                    matrix = matrix @ step
            if name in _SHAPES:
                self._collect(draw_path(_to_path(name, attributes)), matrix)
                return
            if name == "svg" and len(self._open) > 1 and not attributes.keys().isdisjoint(("x", "y", "viewBox")):
                raise InputError("this svg inside the svg has coordinates of its own: ungroup it first.")
        except InputError as problem:
            raise InputError(f"line {self._parser.CurrentLineNumber}: {problem}") from None
        self._open[-1] = _Inherited(matrix, style)

    def _count_element(self) -> None:
        self._elements += 1
        if self._elements > MAX_ELEMENTS:
            raise InputError(f"the SVG has more than {MAX_ELEMENTS:,} elements and transforms: simplify it first.")

    def _collect(self, pen: Pen, matrix: NDArray[np.float64]) -> None:
        check_count(len(self.cubics) + len(pen.cubics))
        self.starts += [len(self.cubics) + start for start in pen.starts]
        self.cubics += pen.cubics
        self.matrices.append(matrix)
        self.counts.append(len(pen.cubics))


def _transform(cubics: NDArray[np.complex128], matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """From (cubics, 4) and a matrix (3, 3) for each to (cubics, 4, 2) in the coordinates of the whole drawing."""
    points = np.stack([cubics.real, cubics.imag, np.ones_like(cubics.real)], axis=-1)
    with np.errstate(all="ignore"):
        moved: NDArray[np.float64] = np.einsum("cij,ckj->cki", matrices[:, :2], points)
        if not (np.abs(moved) < LARGEST**2).all():  # nor NaN
            raise InputError("the drawing's coordinates are too large once transformed: scale it down first.")
    return moved


def _flatten(cubics: NDArray[np.float64], starts: NDArray[np.int64]) -> Sketch:
    """Split each of the cubics (cubics, 4, 2) into equal steps, as many as its bend needs."""
    # The extent is that of five points on each cubic: control points may lie far outside, ends may coincide.
    extent = np.ptp((_bernstein(np.linspace(0, 1, 5)) @ cubics).reshape(-1, 2), axis=0).max()
    # A line across 1/n of the curve is within max|B''| / 8n² of it, and |B''| <= 6 |second difference|.
    bend = np.hypot(*np.moveaxis(np.diff(cubics, n=2, axis=1), -1, 0)).max(axis=1)
    needed = np.sqrt(0.75 / FLATNESS * bend / extent) if extent else bend
    lines = np.ceil(needed).clip(1, MAX_LINES).astype(np.int64)
    ends = np.cumsum(lines)
    check_count(int(ends[-1]))
    which = np.repeat(np.arange(len(cubics)), lines)
    step = np.arange(1, ends[-1] + 1) - (ends - lines)[which]
    points = np.einsum("pk,pkd->pd", _bernstein(step / lines[which]), cubics[which])
    return Sketch.from_points(points, ends[np.append(starts[1:], len(cubics)) - 1])


def _bernstein(t: NDArray[np.float64]) -> NDArray[np.float64]:
    """(times, 4): how much of each control point makes the point at each time."""
    return np.stack([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3], axis=-1)


def _read_style(attributes: dict[str, str], inherited: dict[str, str]) -> dict[str, str]:
    """Return the properties that decide whether a shape is seen: its own, `style` before attributes, or its group's."""
    written = {key: value.strip() for key, value in _PROPERTY.findall(attributes.get("style", ""))}
    found = {key: written.get(key, attributes.get(key, "")).strip().lower() for key in ("display", "fill", "stroke")}
    return {key: value or (inherited.get(key, "") if key != "display" else "") for key, value in found.items()}


def _is_blank(style: dict[str, str]) -> bool:
    """Say whether a shape is paper on paper: no colour but white, such as a background. SVG fills black if not told."""
    return style["fill"] in _PAPER and style["stroke"] in ("", *_PAPER)


def _read_transform(text: str) -> Iterator[NDArray[np.float64]]:
    """The matrices (3, 3) of a list of transforms; a point goes through the last one first."""
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TRANSFORM.match(text, position)
        if match is None:
            raise InputError(f"the transform cannot be read at {quote(text, position)}: correct it there.")
        yield _make_matrix(match[1], _read_numbers(match[2]))
        position = match.end()


def _read_numbers(text: str) -> list[float]:
    numbers: list[float] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = ARGUMENTS["H"].match(text, position)
        if match is None or len(numbers) == 6:
            raise InputError(f"the transform's numbers {quote(text)} are not a list of six at most: correct them.")
        numbers += to_floats(match.groups())
        position = match.end()
    return numbers


def _make_matrix(kind: str, numbers: list[float]) -> NDArray[np.float64]:
    a, b, c, d, e, f = 1.0, 0.0, 0.0, 1.0, 0.0, 0.0
    match kind, numbers:
        case "matrix", [_, _, _, _, _, _]:
            a, b, c, d, e, f = numbers
        case "translate", [_] | [_, _]:
            e, f = [*numbers, 0.0][:2]
        case "scale", [_] | [_, _]:
            a, d = numbers[0], numbers[-1]
        case "rotate", [_] | [_, _, _]:
            turn, centre = cmath.rect(1, math.radians(numbers[0])), complex(*numbers[1:])
            a, b, c, d = turn.real, turn.imag, -turn.imag, turn.real
            e, f = (centre - turn * centre).real, (centre - turn * centre).imag
        case "skewX", [angle]:
            c = math.tan(math.radians(angle))
        case "skewY", [angle]:
            b = math.tan(math.radians(angle))
        case _:
            raise InputError(
                f"the transform {quote(kind)} of {len(numbers)} numbers is not one of SVG's: "
                "use matrix, translate, scale, rotate, skewX or skewY."
            )
    return np.array([[a, c, e], [b, d, f], [0, 0, 1]])


def _to_path(name: str, attributes: dict[str, str]) -> str:
    """The path data that draws a shape."""

    def length(key: str) -> float:
        match = _LENGTH.fullmatch(attributes.get(key, "0"))
        if match is None or match[2] not in _UNITS:
            raise InputError(f"{key}={quote(attributes[key])} is not a length: give a number, or one in px, mm or cm.")
        return to_floats((match[1],))[0] * _UNITS[match[2]]

    def radii() -> tuple[float, float]:
        given = [max(0.0, length(key)) for key in ("rx", "ry") if key in attributes] or [0.0]
        return given[0], given[-1]  # one that is not given is like the other

    match name:
        case "path":
            return attributes.get("d", "")
        case "line":
            return f"M{length('x1')},{length('y1')} L{length('x2')},{length('y2')}"
        case "polyline" | "polygon":
            points = attributes.get("points", "").strip()
            if stray := _STRAY.search(points):
                raise InputError(f"the points cannot be read at {quote(points, stray.start())}: write only numbers.")
            return points and f"M{points}" + ("Z" if name == "polygon" else "")
        case "rect":
            return _round_rect(length("x"), length("y"), length("width"), length("height"), *radii())
        case _:
            rx, ry = radii() if name == "ellipse" else (length("r"), length("r"))
            return _round_rect(length("cx") - rx, length("cy") - ry, 2 * rx, 2 * ry, rx, ry)  # nothing but corners


def _round_rect(x: float, y: float, width: float, height: float, rx: float, ry: float) -> str:
    if width <= 0 or height <= 0:
        return ""  # as SVG has it
    rx, ry = min(rx, width / 2), min(ry, height / 2)
    right, bottom, corner = x + width, y + height, f"A{rx},{ry} 0 0 1"
    return (
        f"M{x + rx},{y} H{right - rx} {corner} {right},{y + ry} V{bottom - ry} {corner} {right - rx},{bottom} "
        f"H{x + rx} {corner} {x},{bottom - ry} V{y + ry} {corner} {x + rx},{y} Z"
    )
