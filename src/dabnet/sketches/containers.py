"""Pictures' files, checked and stripped before a decoder sees them.

A decoder believes a file: it takes memory for the size the file claims, follows every chunk, scan and frame, and parses
what cameras and editors wrote beside the picture. `open_container` counts all of these first, and keeps only the chunks
that hold the first picture. Of the rest, only the orientation is read. GIF, BMP and TIFF files go on as they are, but
for the size that they claim.
"""

from __future__ import annotations

import math
import re
import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

from dabnet.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_CHUNKS = 100_000
"""Chunks or segments of a file: a PNG of 100 MB, as the usual encoders write it, has a tenth of that."""
MAX_SCANS = 100
"""Scans of a JPEG: a progressive one has about ten."""
REDUCED = 3
"""How many times the pixels that are allowed a JPEG may have that can be decoded at reduced scale."""
MAX_SCANNED_PIXELS = 1_000_000_000
"""Pixels times scans: a decoder goes through the whole picture for each scan, even one that holds nothing."""


class Container(NamedTuple):
    """A picture's file with nothing in it but the picture, and what was read beside it."""

    format: str
    data: bytes
    width: int
    height: int
    orientation: int = 1
    """How to turn it, from 1 to 8, as EXIF counts."""
    scale: int = 1
    """What to divide width and height by as it is decoded."""


OTHERS = {
    b"ftyphei": "a HEIC photograph, which phones can also save as JPEG",
    b"ftypmif1": "a HEIF photograph, which phones can also save as JPEG",
    b"ftypavif": "an AVIF picture",
    b"%PDF": "a PDF document",
    b"8BPS": "a Photoshop document",
}
"""What people have, and what is not read, by what is in the first bytes."""


def _name_other(data: bytes) -> str:
    known = next((name for mark, name in OTHERS.items() if mark in data[:12]), None)
    return f"this is {known}, and cannot be read" if known else "this is not a picture that can be read"


def open_container(data: bytes, max_pixels: int) -> Container:
    """Check and strip the bytes of a PNG, JPEG, WebP, GIF, BMP or TIFF file."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        found = _open_png(data)
    elif data.startswith(b"\xff\xd8\xff"):
        found = _open_jpeg(data, max_pixels)
    elif data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        found = _open_webp(data)
    elif data.startswith((b"GIF87a", b"GIF89a")):
        found = Container("GIF", data, *_unpack("<HH", data, 6))
    elif data.startswith(b"BM"):
        found = Container("BMP", data, *_bmp_size(data))
    elif data.startswith((b"II*\0", b"MM\0*")):
        tags = _tiff_tags(data)
        found = Container("TIFF", data, tags.get(0x0100, 0), tags.get(0x0101, 0))
    else:
        raise InputError(f"{_name_other(data)}: give a PNG, JPEG, WebP, GIF, BMP or TIFF file.")
    check_pixels(-(-found.width // found.scale), -(-found.height // found.scale), max_pixels)
    return found


def _unpack(layout: str, data: bytes, start: int) -> tuple[int, ...]:
    if start + struct.calcsize(layout) > len(data):
        raise damaged("it is cut off")
    return struct.unpack_from(layout, data, start)


def _bmp_size(data: bytes) -> tuple[int, int]:
    """Read the width and height; a negative height only means that the rows go downwards."""
    (header,) = _unpack("<I", data, 14)
    width, height = _unpack("<HH" if header == 12 else "<ii", data, 18)
    return abs(width), abs(height)


def check_pixels(width: int, height: int, max_pixels: int) -> None:
    """Refuse a picture of too many pixels."""
    if width * height > max_pixels:
        raise InputError(f"the picture has more than {max_pixels:,} pixels: make it smaller first.")


def damaged(why: object) -> InputError:
    """Say that a picture cannot be read to its end."""
    return InputError(f"the picture is damaged ({str(why)[:100]}): save it again.")


def _check_count(count: int, most: int, what: str) -> None:
    if count > most:
        raise InputError(f"the picture's file has more than {most:,} {what}: save it again.")


_PNG_HEADER = struct.Struct(">IIBBBBB")


def _open_png(data: bytes) -> Container:
    """Keep the header, the palette, the transparency and the pixels, the latter in one chunk."""
    header, exif = b"", b""
    kept: list[tuple[bytes, bytes]] = []
    pixels: list[bytes] = []
    for kind, content, checksum in _png_chunks(data):
        if kind == b"eXIf":
            exif = exif or content
        if kind not in (b"IHDR", b"PLTE", b"tRNS", b"IDAT"):
            continue
        if zlib.crc32(content, zlib.crc32(kind)) != checksum:
            raise damaged(f"wrong checksum of {kind.decode()}")
        if kind == b"IDAT":
            pixels.append(content)
        elif kind == b"IHDR":
            header = content
        elif len(kept) < 2:  # one palette, one transparency
            kept.append((kind, content))
    if len(header) != _PNG_HEADER.size or not pixels:
        raise damaged("it has no pixels")
    chunks = [(b"IHDR", header), *kept, (b"IDAT", b"".join(pixels)), (b"IEND", b"")]
    body = b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(content, zlib.crc32(kind)))
        for kind, content in chunks
    )
    width, height = _PNG_HEADER.unpack(header)[:2]
    return Container("PNG", data[:8] + body, width, height, _orientation(exif))


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes, int]]:
    """Read each chunk's kind, content and checksum, up to the end or what is cut off."""
    position, count = 8, 0
    while position + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, position)
        end = position + 12 + length
        if kind == b"IEND":
            return
        if end > len(data):
            raise damaged("it is cut off")
        count += 1
        _check_count(count, MAX_CHUNKS, "chunks")
        yield kind, data[position + 8 : end - 4], int.from_bytes(data[end - 4 : end], "big")
        position = end


_MARKER = re.compile(rb"\xff[^\x00\xff]")
_MARKER_AFTER_SCAN = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
_SOS, _EOI = 0xDA, 0xD9
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # start-of-frame markers: what follows says the size


def _open_jpeg(data: bytes, max_pixels: int) -> Container:
    """Drop what applications and comments say before the first scan, and what follows the picture's end."""
    head, size, exif = [b"\xff\xd8"], (0, 0), b""
    scans, first_scan, end, count, most_pixels = 0, 0, len(data), 0, max_pixels
    position, pattern = 2, _MARKER
    while (match := pattern.search(data, position)) is not None:
        marker, position, pattern = data[match.start() + 1], match.end(), _MARKER
        count += 1
        _check_count(count, MAX_CHUNKS, "segments")
        if marker == _EOI:
            end = position
            break
        if marker == 0x01 or 0xD0 <= marker <= 0xD8:  # these stand alone
            continue
        start, position = match.start(), position + int.from_bytes(data[position : position + 2], "big")
        content = data[start + 4 : position]
        if marker == _SOS:
            scans, first_scan, pattern = scans + 1, first_scan or start, _MARKER_AFTER_SCAN
            _check_scans(scans, size, most_pixels if scans == 1 else max_pixels)
        elif marker in _FRAMES:
            if size != (0, 0) or len(content) < 6:
                raise damaged("it has more than one size, or none")
            size = (int.from_bytes(content[3:5], "big"), int.from_bytes(content[1:3], "big"))
            # With a single scan it is decoded row after row; otherwise all of it has to be kept before it is shrunk.
            most_pixels = max_pixels * (REDUCED if marker in (0xC0, 0xC1) else 1)
        elif marker == 0xE1 and content.startswith(b"Exif\0\0"):
            exif = exif or content[6:]
        if not scans and (not 0xE0 <= marker <= 0xFE or content[:4] in (b"JFIF", b"Adob")):
            head.append(data[start:position])
    if not scans or 0 in size:
        raise damaged("it has no pixels")
    scale = next((scale for scale in (1, 2, 4) if -(-size[0] // scale) * -(-size[1] // scale) <= max_pixels), 8)
    return Container("JPEG", b"".join(head) + data[first_scan:end], *size, _orientation(exif), scale)


def _check_scans(scans: int, size: tuple[int, int], max_pixels: int) -> None:
    check_pixels(*size, max_pixels)
    _check_count(scans, min(MAX_SCANS, MAX_SCANNED_PIXELS // max(1, size[0] * size[1])), "scans for its size")


def _open_webp(data: bytes) -> Container:
    """Keep the first frame, its transparency, and the size of the canvas."""
    kept, exif, size, frames = [], b"", (0, 0), 0
    for kind, content in _webp_chunks(data):
        if kind == b"EXIF":
            exif = exif or content.removeprefix(b"Exif\0\0")
        frames += kind in (b"ANMF", b"VP8 ", b"VP8L")
        if kind not in (b"VP8X", b"ANIM", b"ANMF", b"ALPH", b"VP8 ", b"VP8L") or frames > 1:
            continue
        size = max(size, _webp_size(kind, content), key=math.prod)
        if kind == b"VP8X":
            content = bytes([content[0] & ~0b101100]) + content[1:]  # neither profile nor EXIF nor XMP any more
        kept.append(kind + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2))
    if not frames or 0 in size:
        raise damaged("it has no pixels")
    body = b"WEBP" + b"".join(kept)
    return Container("WEBP", b"RIFF" + struct.pack("<I", len(body)) + body, *size, _orientation(exif))


def _webp_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    position, count = 12, 0
    while position + 8 <= len(data):
        kind, length = struct.unpack_from("<4sI", data, position)
        content = data[position + 8 : position + 8 + length]
        count += 1
        _check_count(count, MAX_CHUNKS, "chunks")
        if len(content) < length and kind in (b"VP8 ", b"VP8L", b"ANMF", b"VP8X"):
            raise damaged("it is cut off")
        yield kind, content
        position += 8 + length + length % 2


def _webp_size(kind: bytes, content: bytes) -> tuple[int, int]:
    """Read the width and height that a chunk claims; see RFC 9649."""
    if kind == b"VP8X" and len(content) >= 10:
        return int.from_bytes(content[4:7], "little") + 1, int.from_bytes(content[7:10], "little") + 1
    if kind == b"VP8 " and len(content) >= 10:
        width, height = struct.unpack_from("<HH", content, 6)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L" and len(content) >= 5:
        bits = int.from_bytes(content[1:5], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind in (b"VP8X", b"VP8 ", b"VP8L"):
        raise damaged("its header is cut off")
    return 0, 0


def _orientation(exif: bytes) -> int:
    """Read the orientation from EXIF, which is a TIFF file; 1, as it stands, if that cannot be read."""
    orientation = _tiff_tags(exif).get(0x0112, 1)
    return orientation if 1 <= orientation <= 8 else 1


def _tiff_tags(data: bytes) -> dict[int, int]:
    """Read the single numbers in a TIFF file's first list of entries, as far as they can be read."""
    found: dict[int, int] = {}
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(data[:4])
    if order is None:
        return found
    try:
        (start,) = struct.unpack_from(order + "I", data, 4)
        (entries,) = struct.unpack_from(order + "H", data, start)
        for entry in range(entries):
            at = start + 2 + 12 * entry
            tag, kind, count = struct.unpack_from(order + "HHI", data, at)
            if count == 1 and kind in (3, 4):
                (value,) = struct.unpack_from(order + ("H" if kind == 3 else "I"), data, at + 8)
                found.setdefault(tag, value)
    except struct.error:
        pass
    return found
