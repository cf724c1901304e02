"""The strokes of an SVG drawing: every subpath, line and shape is one, and curves become short straight lines.

Read are path, line, polyline, polygon, rect (with its rounded corners), circle and ellipse, in groups and with their
`transform`. Not drawn is what SVG keeps for other uses (defs, clipPath, mask, pattern, marker, symbol) or hides with
`display`. Not supported, and left out, are `use`, text, images and style sheets. Fill and stroke do not matter: a
filled shape is its outline. SVG would draw a path up to its first mistake; here that is an error, so that nobody takes
half a drawing for a whole one.
"""

from __future__ import annotations

import cmath
import math
import re
from typing import TYPE_CHECKING
from xml.parsers import expat

import numpy as np

from dabnet.errors import InputError
from dabnet.sketches.sketch import MAX_POINTS, Sketch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Command = tuple[str, list[float]]  # a path command's letter and its numbers
    Cubic = tuple[complex, complex, complex, complex]  # start, two control points, end; each is x + iy

MAX_BYTES = 8_000_000
MAX_ELEMENTS = 32_768
"""Elements and transforms; like MAX_POINTS, so that a stranger's file does not keep us busy for long."""
MAX_DEPTH = 200
"""Elements inside one another."""
LARGEST = 1e12
"""Numbers that an SVG may hold: beyond any drawing, and far from overflow."""
FLATNESS = 1 / 2000
"""How far a line may be from the curve it stands for, as a share of the drawing's longer side."""
MAX_LINES = 256
"""Lines that a cubic may become: more than FLATNESS ever asks for, but for rounding."""

_NAMESPACE = "http://www.w3.org/2000/svg"
_ENCODING = re.compile(r"utf-8|utf-16|us-ascii|iso-8859-\d+|windows-125\d", re.IGNORECASE)
_CONTAINERS = ("svg", "g", "a", "switch")
_SHAPES = ("path", "line", "polyline", "polygon", "rect", "circle", "ellipse")
_UNITS = {"": 1.0, "px": 1.0, "in": 96.0, "cm": 96 / 2.54, "mm": 96 / 25.4, "pt": 96 / 72, "pc": 16.0}

# What repeats is possessive or atomic, so that no text of a stranger's takes more than linear time.
_NUMBER = r"((?>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))"
_ARGUMENTS = {
    letter: re.compile("".join(r"\s*+,?+\s*+" + ("([01])" if kind == "f" else _NUMBER) for kind in kinds), re.ASCII)
    for letter, kinds in [
        *[("M", "nn"), ("L", "nn"), ("H", "n"), ("V", "n"), ("Z", "")],
        *[("C", "nnnnnn"), ("S", "nnnn"), ("Q", "nnnn"), ("T", "nn"), ("A", "nnnffnn")],
    ]
}
_LETTER = re.compile(r"\s*+([A-Za-z])", re.ASCII)
_LENGTH = re.compile(rf"\s*+{_NUMBER}([a-z%]*+)\s*+", re.ASCII)
_TRANSFORM = re.compile(r"[\s,]*+([A-Za-z]++)\s*+\(([^()]*+)\)", re.ASCII)
_STRAY = re.compile(r"[^\s\d.,eE+-]", re.ASCII)
_DISPLAY = re.compile(r"(?:^|;)\s*+display\s*+:\s*+([\w-]++)", re.ASCII)


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
    if b"<!ENTITY" in data.replace(b"\0", b""):  # in UTF-16 too; expat would go on expanding them after an error
        raise InputError("the SVG declares entities, which could be endless: save it as plain SVG.")
    reader = _Reader()
    reader.read(data)
    if not reader.cubics:
        raise InputError("the SVG has no lines: it needs at least one path, line or shape.")
    cubics = _transform(np.array(reader.cubics), np.repeat(reader.places, reader.counts, axis=0))
    return _flatten(cubics, np.array(reader.starts))


class _Reader:
    """Follows a document's elements, and collects what they draw."""

    def __init__(self) -> None:
        self.cubics: list[Cubic] = []
        self.starts: list[int] = []  # the cubics that begin a stroke
        self.places: list[NDArray[np.float64]] = []  # the matrix of each shape
        self.counts: list[int] = []  # the cubics of each shape
        self._elements = 0
        self._open: list[NDArray[np.float64] | None] = []  # the matrix of each open element; None if it is not drawn
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.specified_attributes = True  # a default in the document's DTD would make much of little
        self._parser.XmlDeclHandler = self._declare
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = lambda _: self._open.pop()

    def read(self, data: bytes) -> None:
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as problem:
            raise InputError(f"this is not a well-formed SVG (line {problem.lineno}): save it again.") from None
        except (UnicodeError, LookupError):
            raise InputError("the SVG's text cannot be decoded: save it as UTF-8.") from None

    def _declare(self, _version: str, encoding: str | None, _standalone: int) -> None:
        if encoding is not None and not _ENCODING.fullmatch(encoding):  # else any codec of Python's could run
            raise InputError(f"the SVG's encoding {_quote(encoding)} is not supported: save it as UTF-8.")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._count_element()
        if len(self._open) >= MAX_DEPTH:
            raise InputError(f"the SVG nests elements more than {MAX_DEPTH} deep: ungroup them first.")
        namespace, _, name = name.rpartition(" ")
        is_drawn = namespace in ("", _NAMESPACE) and (name in _CONTAINERS or name in _SHAPES)
        if not self._open and not (is_drawn and name == "svg"):
            raise InputError(f"this XML file is not an SVG: it must start with the element svg, not {_quote(name)}.")
        place = self._open[-1] if self._open else np.eye(3)
        self._open.append(None)
        if place is None or not is_drawn or _is_hidden(attributes):
            return
        try:
            for matrix in _read_transform(attributes.get("transform", "")):
                self._count_element()
                with np.errstate(all="ignore"):  # what overflows is found when all is read
                    place = place @ matrix
            if name in _SHAPES:
                self._collect(_draw(_to_path(name, attributes)), place)
                return
            if name == "svg" and len(self._open) > 1 and not attributes.keys().isdisjoint(("x", "y", "viewBox")):
                raise InputError("this svg inside the svg has coordinates of its own: ungroup it first.")
        except InputError as problem:
            raise InputError(f"line {self._parser.CurrentLineNumber}: {problem}") from None
        self._open[-1] = place

    def _count_element(self) -> None:
        self._elements += 1
        if self._elements > MAX_ELEMENTS:
            raise InputError(f"the SVG has more than {MAX_ELEMENTS:,} elements and transforms: simplify it first.")

    def _collect(self, pen: _Pen, place: NDArray[np.float64]) -> None:
        _check_count(len(self.cubics) + len(pen.cubics))
        self.starts += [len(self.cubics) + start for start in pen.starts]
        self.cubics += pen.cubics
        self.places.append(place)
        self.counts.append(len(pen.cubics))


def _transform(cubics: NDArray[np.complex128], places: NDArray[np.float64]) -> NDArray[np.float64]:
    """From (cubics, 4) and a matrix (3, 3) for each to (cubics, 4, 2) in the coordinates of the whole drawing."""
    points = np.stack([cubics.real, cubics.imag, np.ones_like(cubics.real)], axis=-1)
    with np.errstate(all="ignore"):
        moved: NDArray[np.float64] = np.einsum("cij,ckj->cki", places[:, :2], points)
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
    _check_count(int(ends[-1]))
    which = np.repeat(np.arange(len(cubics)), lines)
    step = np.arange(1, ends[-1] + 1) - (ends - lines)[which]
    points = np.einsum("pk,pkd->pd", _bernstein(step / lines[which]), cubics[which])
    return Sketch.from_points(points, ends[np.append(starts[1:], len(cubics)) - 1])


def _bernstein(t: NDArray[np.float64]) -> NDArray[np.float64]:
    """(times, 4): how much of each control point makes the point at each time."""
    return np.stack([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3], axis=-1)


def _check_count(count: int) -> None:
    if count > MAX_POINTS:
        raise InputError(f"the drawing has more than {MAX_POINTS:,} points: simplify its strokes first.")


def _quote(text: str, start: int = 0) -> str:
    text = text[start : start + 25].strip()
    return repr(text if len(text) < 25 else text[:20] + " ...")


def _is_hidden(attributes: dict[str, str]) -> bool:
    styles = _DISPLAY.findall(attributes.get("style", ""))
    return bool((styles[-1] if styles else attributes.get("display", "").strip()) == "none")


def _read_transform(text: str) -> Iterator[NDArray[np.float64]]:
    """The matrices (3, 3) of a list of transforms; a point goes through the last one first."""
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TRANSFORM.match(text, position)
        if match is None:
            raise InputError(f"the transform cannot be read at {_quote(text, position)}: correct it there.")
        yield _make_matrix(match[1], _read_numbers(match[2]))
        position = match.end()


def _read_numbers(text: str) -> list[float]:
    numbers: list[float] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _ARGUMENTS["H"].match(text, position)
        if match is None or len(numbers) == 6:
            raise InputError(f"the transform's numbers {_quote(text)} are not a list of six at most: correct them.")
        numbers += _to_floats(match.groups())
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
                f"the transform {_quote(kind)} of {len(numbers)} numbers is not one of SVG's: "
                "use matrix, translate, scale, rotate, skewX or skewY."
            )
    return np.array([[a, c, e], [b, d, f], [0, 0, 1]])


def _to_path(name: str, attributes: dict[str, str]) -> str:
    """The path data that draws a shape."""

    def length(key: str) -> float:
        match = _LENGTH.fullmatch(attributes.get(key, "0"))
        if match is None or match[2] not in _UNITS:
            raise InputError(f"{key}={_quote(attributes[key])} is not a length: give a number, or one in px, mm or cm.")
        return _to_floats((match[1],))[0] * _UNITS[match[2]]

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
                raise InputError(f"the points cannot be read at {_quote(points, stray.start())}: write only numbers.")
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


def _read_path(text: str) -> Iterator[Command]:
    """The commands of path data; numbers that repeat a command get its letter again."""
    command, position, end = "Z", 0, len(text.rstrip())
    while position < end:
        start = position
        if letter := _LETTER.match(text, position):
            command, position = letter[1], letter.end()
            if command.upper() not in _ARGUMENTS:
                where, known = _quote(text, letter.start(1)), "M, L, H, V, C, S, Q, T, A or Z"
                raise InputError(f"the path command '{command}' at {where} is not one of SVG's: use {known}.")
            if start == 0 and command not in "Mm":
                raise InputError(f"the path starts with the command '{command}': it must start with M.")
        elif command in "Zz":
            raise InputError(f"the path has no command at {_quote(text, position)}: write one there, such as M.")
        arguments = _ARGUMENTS[command.upper()]
        match = arguments.match(text, position)
        if match is None:
            where = _quote(text, start)
            raise InputError(f"the path command '{command}' needs {arguments.groups} numbers at {where}: add them.")
        yield command, _to_floats(match.groups())
        position = match.end()
        command = {"M": "L", "m": "l"}.get(command, command)


def _to_floats(texts: tuple[str, ...]) -> list[float]:
    numbers = list(map(float, texts))
    for number, text in zip(numbers, texts, strict=True):
        if abs(number) > LARGEST:
            raise InputError(f"the number {_quote(text)} is too large: scale the drawing down first.")
    return numbers


def _draw(path: str) -> _Pen:
    pen = _Pen()
    for count, (command, numbers) in enumerate(_read_path(path)):
        pen.follow(command, numbers)
        _check_count(max(count, len(pen.cubics)))  # commands too: those that draw nothing also take time
    return pen


class _Pen:
    """Draws path commands, all as cubics; a stroke begins with a cubic that is but its first point."""

    def __init__(self) -> None:
        self.cubics: list[Cubic] = []
        self.starts: list[int] = []  # the cubics that begin a stroke
        self._here = self._home = 0j
        self._is_down = False
        self._last = ("M", 0j)  # the last command and its last control point

    def follow(self, command: str, numbers: list[float]) -> None:
        kind, here = command.upper(), self._here
        origin = here if command.islower() else 0j
        if kind == "H":
            numbers = [numbers[0], (here - origin).imag]
        elif kind == "V":
            numbers = [(here - origin).real, numbers[0]]
        pairs = numbers[5:] if kind == "A" else numbers
        points = [origin + complex(x, y) for x, y in zip(pairs[::2], pairs[1::2], strict=True)]
        if kind in "ST":
            last, control = self._last
            points.insert(0, 2 * here - control if last in ("CS" if kind == "S" else "QT") else here)
        match kind:
            case "M":
                self._here = self._home = points[0]
                self._is_down = False
            case "L" | "H" | "V":
                self._line(points[0])
            case "C" | "S":
                self._curve(*points)
            case "Q" | "T":
                control, end = points
                self._curve(here + (control - here) * (2 / 3), end + (control - end) * (2 / 3), end)
            case "A":
                self._arc(points[0], *numbers[:5])
            case "Z":
                self._line(self._home)
                self._is_down = False
        self._last = (kind, points[-2] if len(points) > 1 else here)

    def _line(self, end: complex) -> None:
        third = (end - self._here) / 3
        self._curve(self._here + third, end - third, end)

    def _curve(self, first: complex, second: complex, end: complex) -> None:
        if not self._is_down:
            self.starts.append(len(self.cubics))
            self.cubics.append((self._here, self._here, self._here, self._here))
            self._is_down = True
        if not first == second == end == self._here:  # such as closing what is closed
            self.cubics.append((self._here, first, second, end))
        self._here = end

    def _arc(self, end: complex, rx: float, ry: float, rotation: float, is_large: float, is_sweep: float) -> None:
        """Draw part of an ellipse, by eighths: a cubic is within 5e-6 of the radius of those."""
        rx, ry = abs(rx), abs(ry)
        if min(rx, ry, abs(end - self._here)) < 1 / LARGEST**2:
            self._line(end)
            return
        # Where the ellipse is the unit circle and the chord's middle is 0, the chord goes from -half to half.
        turn, middle = cmath.rect(1, math.radians(rotation)), (self._here + end) / 2
        half = (end - self._here) / 2 / turn
        half = complex(half.real / rx, half.imag / ry)
        if abs(half) > 1:  # radii too small to reach the end grow until they do
            rx, ry, half = rx * abs(half), ry * abs(half), half / abs(half)
        distance = math.sqrt(max(0.0, 1 - abs(half) ** 2))
        centre = half / abs(half) * distance * (-1j if is_large == is_sweep else 1j)
        angle = 2 * math.asin(min(1.0, abs(half)))
        angle = (math.tau - angle if is_large else angle) * (1 if is_sweep else -1)
        count = math.ceil(abs(angle) / (math.pi / 4) - 1e-9) or 1
        handle = 4j / 3 * math.tan(angle / count / 4)
        start = -half - centre

        def place(point: complex) -> complex:
            point += centre
            return middle + turn * complex(rx * point.real, ry * point.imag)

        for i in range(count):
            a, b = (start * cmath.rect(1, angle * k / count) for k in (i, i + 1))
            self._curve(place(a * (1 + handle)), place(b * (1 - handle)), end if i == count - 1 else place(b))
