"""Drawings that were made to harm: small files that ask for much time, much memory, or a mistake."""

from __future__ import annotations

import io
import json
import struct
import zlib

from PIL import Image

from .drawings import encode


def strokes_that_numpy_would_pad(letters: int = 400_000, others: int = 1_500) -> bytes:
    """Make JSON of which numpy would make an array of texts, all as long as the longest."""
    return json.dumps({"strokes": [["a" * letters, *[""] * others]]}).encode()


def jpeg_of_empty_scans(side: int, scans: int) -> bytes:
    """Make a progressive JPEG with as many scans that hold nothing."""
    plain = encode(Image.new("L", (side, side), 128), "JPEG", progressive=True)
    first = plain.index(b"\xff\xda")
    empty = b"\xff\xda" + struct.pack(">HBBBBBB", 8, 1, plain[first + 5], 0, 1, 63, 0)
    return plain[:-2] + empty * scans + plain[-2:]


def jpeg_with_segments(count: int, content: bytes = b"") -> bytes:
    """Make a JPEG with as many comments before the picture."""
    plain = encode(Image.new("L", (64, 64), 128), "JPEG")
    return plain[:2] + (b"\xff\xe1" + struct.pack(">H", 2 + len(content)) + content) * count + plain[2:]


def jpeg_with_exif(exif: bytes, picture: Image.Image) -> bytes:
    """Make a JPEG whose EXIF holds these very bytes."""
    plain = encode(picture, "JPEG")
    content = b"Exif\0\0" + exif
    return plain[:2] + b"\xff\xe1" + struct.pack(">H", 2 + len(content)) + content + plain[2:]


def bad_exif() -> dict[str, bytes]:
    """Make EXIF that Pillow stumbles over, by what it raises or might."""

    def entries(*each: bytes) -> bytes:
        return b"II*\0\x08\0\0\0" + struct.pack("<H", len(each)) + b"".join(each) + b"\0\0\0\0"

    def entry(tag: int, kind: int, count: int, value: int) -> bytes:
        return struct.pack("<HHII", tag, kind, count, value)

    turned = entry(0x0112, 3, 1, 6)
    return {
        "struct.error": entries(turned, entry(0x0102, 12, 4, 1)),
        "AttributeError": entries(turned, entry(0x013B, 11, 1, 26)),
        "TypeError": entries(turned, entry(0x011A, 7, 4, 0xFFFFFFFF)),
        "ValueError": entries(turned, entry(0x8769, 8, 2, 0xFFFFFFFF)),
        "a text for an orientation": entries(entry(0x0112, 2, 3, 0x00363636)),
        "cut off in an entry": entries(entry(0x0112, 3, 1, 6))[:15],
        "cut off in the header": b"II*\0\x08",
        "entries outside": b"MM\0*\xff\xff\xff\xf0",
        "a list in itself": entries(entry(0x8769, 4, 1, 8), entry(0x0112, 3, 1, 1)),
        "many entries": b"II*\0\x08\0\0\0\xff\xff" + entry(0x8769, 4, 1, 8) * 5_000,
    }


def png_chunk(kind: bytes, content: bytes) -> bytes:
    """Write a chunk of a PNG."""
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png_with_chunks(chunk: bytes, count: int, picture: Image.Image) -> bytes:
    """Make a PNG with a chunk that many times before its pixels."""
    plain = encode(picture)
    return plain[:33] + chunk * count + plain[33:]


def png_text_bomb(megabytes: int = 100) -> bytes:
    """Write a compressed text that is large once it is read."""
    return png_chunk(b"zTXt", b"x\0\0" + zlib.compress(bytes(megabytes * 1_000_000), 9))


def webp_that_claims(width: int, height: int) -> bytes:
    """Make a WebP of a few bytes whose canvas has any size."""
    plain = encode(Image.new("RGBA", (8, 8), (0, 0, 0, 99)), "WEBP", lossless=True)
    claim = bytes([0x10, 0, 0, 0]) + struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    body = b"WEBP" + b"VP8X" + struct.pack("<I", 10) + claim + plain[plain.index(b"VP8L") :]
    return b"RIFF" + struct.pack("<I", len(body)) + body


def webp_of_frames(count: int, picture: Image.Image) -> bytes:
    """Make an animation whose first frame is the picture, with many frames after it."""
    file = io.BytesIO()
    others = [Image.new("RGB", picture.size, (i % 256, 0, 0)) for i in range(2)]
    picture.convert("RGB").save(file, "WEBP", save_all=True, append_images=others, lossless=True)
    plain = file.getvalue()
    last = plain.rindex(b"ANMF")
    body = plain[8:] + plain[last:] * count
    return b"RIFF" + struct.pack("<I", len(body)) + body


def svg_of_defaults(attributes: int = 60_000, elements: int = 32_000) -> bytes:
    """Make an SVG whose document type gives every element as many attributes."""
    defaults = " ".join(f'a{i:x} CDATA "x"' for i in range(attributes))
    return f"<!DOCTYPE svg [<!ATTLIST g {defaults}>]><svg>{'<g/>' * elements}</svg>".encode()
