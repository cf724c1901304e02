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
    size = max((image.shape[0] for row in rows for image in row.images), default=96)
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
    picture: Image.Image | None = None
    """What it was read from, no larger than the drawing, to stand beside it."""


def draw_captioned(drawings: Sequence[Captioned], columns: int = 8) -> Image.Image:
    """Draw drawings of one size in lines, black on white, each with its title below and its picture to the left."""
    size = drawings[0].image.shape[0]
    gap, font, small = size // 8, ImageFont.load_default(max(11, size // 9)), ImageFont.load_default(max(9, size // 11))
    has_pictures = any(drawing.picture is not None for drawing in drawings)
    columns = min(columns // 2 if has_pictures else columns, len(drawings))
    width, height = (2 if has_pictures else 1) * size, size + 3 * gap
    lines = -(-len(drawings) // columns)
    extent = (columns * (width + gap) + gap, lines * (height + gap) + gap)
    sheet = Image.new("RGB" if has_pictures else "L", extent, "white")
    pen = ImageDraw.Draw(sheet)
    for number, (image, title, note, picture) in enumerate(drawings):
        line, column = divmod(number, columns)
        left, top = gap + column * (width + gap), gap + line * (height + gap)
        if picture is not None:
            sheet.paste(picture, (left + (size - picture.width) // 2, top + (size - picture.height) // 2))
        sheet.paste(_shade(INK, sheet), (left + width - size, top), Image.fromarray(image))
        middle = left + width - size // 2
        pen.text((middle, top + size + gap), _shorten(title), fill=_shade(INK, sheet), font=font, anchor="ms")
        pen.text((middle, top + size + 2 * gap), _shorten(note), fill=_shade(GREY, sheet), font=small, anchor="ms")
    return sheet


def _shade(shade: int, sheet: Image.Image) -> int | tuple[int, int, int]:
    return shade if sheet.mode == "L" else (shade, shade, shade)


def _shorten(title: str, longest: int = 24) -> str:
    return title if len(title) <= longest else title[: longest - 1] + "…"
