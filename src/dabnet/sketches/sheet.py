"""Contact sheets: many drawings in one picture, with their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

PAPER, FAINT, GREY, INK = 255, 226, 110, 28


class SheetRow(NamedTuple):
    """A row of a sheet: what it shows, a word about it, and images of one size (size, size), ink 255 on 0."""

    title: str
    note: str
    images: Sequence[NDArray[np.uint8]]


def draw_sheet(rows: Sequence[SheetRow]) -> Image.Image:
    """Draw rows of drawings under each other, black on white, each with its title to the left."""
    size = max(image.shape[0] for row in rows for image in row.images)
    gap, font = size // 12, ImageFont.load_default(max(11, size // 6))
    small = ImageFont.load_default(max(9, size // 8))
    margin = 2 * gap + int(max(font.getlength(_shorten(row.title)) for row in rows))
    columns = max(len(row.images) for row in rows)
    sheet = Image.new("L", (margin + columns * (size + gap) + gap, len(rows) * (size + gap) + gap), PAPER)
    pen = ImageDraw.Draw(sheet)
    for number, row in enumerate(rows):
        top = gap + number * (size + gap)
        if number:
            pen.line([(gap, top - gap // 2), (sheet.width - gap, top - gap // 2)], fill=FAINT)
        pen.text((gap, top + size // 2), _shorten(row.title), fill=INK, font=font, anchor="ls")
        pen.text((gap, top + size // 2 + gap // 2), row.note, fill=GREY, font=small, anchor="lt")
        for column, image in enumerate(row.images):
            sheet.paste(INK, (margin + column * (size + gap), top), Image.fromarray(np.asarray(image)))
    return sheet


class Captioned(NamedTuple):
    """A drawing of a sheet, (size, size), ink 255 on 0, with what to say of it: a title and a word below."""

    image: NDArray[np.uint8]
    title: str
    note: str


def draw_captioned(drawings: Sequence[Captioned], columns: int = 8) -> Image.Image:
    """Draw drawings of one size in lines, black on white, each with its title below."""
    size = drawings[0].image.shape[0]
    gap, font, small = size // 8, ImageFont.load_default(max(11, size // 9)), ImageFont.load_default(max(9, size // 11))
    columns, height = min(columns, len(drawings)), size + 3 * gap
    lines = -(-len(drawings) // columns)
    sheet = Image.new("L", (columns * (size + gap) + gap, lines * (height + gap) + gap), PAPER)
    pen = ImageDraw.Draw(sheet)
    for number, (image, title, note) in enumerate(drawings):
        line, column = divmod(number, columns)
        left, top = gap + column * (size + gap), gap + line * (height + gap)
        sheet.paste(INK, (left, top), Image.fromarray(image))
        middle = left + size // 2
        pen.text((middle, top + size + gap), _shorten(title), fill=INK, font=font, anchor="ms")
        pen.text((middle, top + size + 2 * gap), _shorten(note), fill=GREY, font=small, anchor="ms")
    return sheet


def _shorten(title: str, longest: int = 24) -> str:
    return title if len(title) <= longest else title[: longest - 1] + "…"
