"""SVG's path data: commands such as `M10 10 c1 2 3 4 5 6 z`, drawn as cubics."""

from __future__ import annotations

import cmath
import math
import re
from typing import TYPE_CHECKING

from dabnet.errors import InputError
from dabnet.sketches.sketch import MAX_POINTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    Command = tuple[str, list[float]]  # a path command's letter and its numbers
    Cubic = tuple[complex, complex, complex, complex]  # start, two control points, end; each is x + iy

LARGEST = 1e12
"""Numbers that an SVG may hold: beyond any drawing, and far from overflow."""

# What repeats is possessive or atomic, so that no text of a stranger's takes more than linear time.
NUMBER = r"((?>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))"
ARGUMENTS = {
    letter: re.compile("".join(r"\s*+,?+\s*+" + ("([01])" if kind == "f" else NUMBER) for kind in kinds), re.ASCII)
    for letter, kinds in [
        *[("M", "nn"), ("L", "nn"), ("H", "n"), ("V", "n"), ("Z", "")],
        *[("C", "nnnnnn"), ("S", "nnnn"), ("Q", "nnnn"), ("T", "nn"), ("A", "nnnffnn")],
    ]
}
_LETTER = re.compile(r"\s*+([A-Za-z])", re.ASCII)


def _read_path(text: str) -> Iterator[Command]:
    """The commands of path data; numbers that repeat a command get its letter again."""
    command, position, end = "Z", 0, len(text.rstrip())
    while position < end:
        start = position
        if letter := _LETTER.match(text, position):
            command, position = letter[1], letter.end()
            if command.upper() not in ARGUMENTS:
                where, known = quote(text, letter.start(1)), "M, L, H, V, C, S, Q, T, A or Z"
                raise InputError(f"the path command '{command}' at {where} is not one of SVG's: use {known}.")
            if start == 0 and command not in "Mm":
                raise InputError(f"the path starts with the command '{command}': it must start with M.")
        elif command in "Zz":
            raise InputError(f"the path has no command at {quote(text, position)}: write one there, such as M.")
        arguments = ARGUMENTS[command.upper()]
        match = arguments.match(text, position)
        if match is None:
            where = quote(text, start)
            raise InputError(f"the path command '{command}' needs {arguments.groups} numbers at {where}: add them.")
        yield command, to_floats(match.groups())
        position = match.end()
        command = {"M": "L", "m": "l"}.get(command, command)


def to_floats(texts: tuple[str, ...]) -> list[float]:
    """Read numbers, none of them too large."""
    numbers = list(map(float, texts))
    for number, text in zip(numbers, texts, strict=True):
        if abs(number) > LARGEST:
            raise InputError(f"the number {quote(text)} is too large: scale the drawing down first.")
    return numbers


def draw_path(path: str) -> Pen:
    """Follow path data with a pen."""
    pen = Pen()
    for count, (command, numbers) in enumerate(_read_path(path)):
        pen.follow(command, numbers)
        check_count(max(count, len(pen.cubics)))  # commands too: those that draw nothing also take time
    return pen


class Pen:
    """Draws path commands, all as cubics; a stroke begins with a cubic that is but its first point."""

    def __init__(self) -> None:
        self.cubics: list[Cubic] = []
        self.starts: list[int] = []  # the cubics that begin a stroke
        self._here = self._home = 0j
        self._is_down = False
        self._last = ("M", 0j)  # the last command and its last control point

    def follow(self, command: str, numbers: list[float]) -> None:
        """Draw what one command says."""
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
        """Draw part of an ellipse by eighths, which cubics follow to 5e-6 of the radius."""
        rx, ry = abs(rx), abs(ry)
        if min(rx, ry, abs(end - self._here)) < 1 / LARGEST**2:
            self._line(end)
            return
        # Where the ellipse is the unit circle and the chord's middle is 0, the chord goes from -half to half. If that
        # is too long for the circle, SVG lets the circle grow until the chord is its diameter: the centre is 0.
        turn, middle = cmath.rect(1, math.radians(rotation)), (self._here + end) / 2
        half = (end - self._here) / 2 / turn
        half = complex(half.real / rx, half.imag / ry)
        distance = math.sqrt(max(0.0, 1 - abs(half) ** 2))
        centre = half / abs(half) * distance * (-1j if is_large == is_sweep else 1j)
        angle = 2 * math.asin(min(1.0, abs(half)))
        angle = (math.tau - angle if is_large else angle) * (1 if is_sweep else -1)
        count = math.ceil(abs(angle) / (math.pi / 4) - 1e-9) or 1
        handle = 4j / 3 * math.tan(angle / count / 4)
        start = -half - centre

        def from_circle(point: complex) -> complex:
            point += centre
            return middle + turn * complex(rx * point.real, ry * point.imag)

        for i in range(count):
            a, b = (start * cmath.rect(1, angle * k / count) for k in (i, i + 1))
            self._curve(
                from_circle(a * (1 + handle)), from_circle(b * (1 - handle)), end if i == count - 1 else from_circle(b)
            )


def check_count(count: int) -> None:
    """Refuse a drawing of too many points."""
    if count > MAX_POINTS:
        raise InputError(f"the drawing has more than {MAX_POINTS:,} points: simplify its strokes first.")


def quote(text: str, start: int = 0) -> str:
    """Return the text from `start` on, shortened, for an error's sentence."""
    text = text[start : start + 25].strip()
    return repr(text if len(text) < 25 else text[:20] + " ...")
