"""Files that are almost right: good ones, changed a little, by bytes and by what they are made of."""

from __future__ import annotations

import io
import json
import random
import re
import struct
import tempfile
import zipfile
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from dabnet.sketches.prepare import prepare
from dabnet.sketches.sources import open_source

from . import hostile
from .drawings import HOUSE, encode, paint

NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
WORDS = [
    "1e999",
    "-0",
    "NaN",
    "true",
    "null",
    '"a"',
    "[]",
    "{}",
    "9" * 50,
    "1e-320",
    "[[1,2],[3,4]]",
    '"\\udc00"',
    "0.5",
]
SVG_WORDS = ["1e30", "-1", "NaN", "", "%", "99999999999999", "url(#a)", "none", "M", "z", "A1 1 0 0 1 5 5", "matrix(0)"]
SVGS = (
    '<svg><path d="M10 50V95H90V50M5 50 50 5 95 50z"/><g transform="scale(2) rotate(5 1 2)"><circle r="9"/></g></svg>',
    '<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE svg PUBLIC "a" "b"><svg xmlns="http://www.w3.org/2000/svg">'
    '<rect x="1" y="2" width="30mm" height="5" rx="2" style="fill:none;stroke:black"/><line x2="7" y2="9"/>'
    '<polyline points="1,2 3,4 5,6"/><ellipse cx="5" rx="3" ry="9"/>'
    '<path d="M0 0c1 2 3 4 5 6s7 8 9 9q1 2 3 4t5 6"/></svg>',
)
RECORD = {"word": "cat", "key_id": "5", "drawing": [[[0, 5, 9], [0, 9, 3]], [[1, 2], [3, 4]]]}


@cache
def pictures() -> list[bytes]:
    small = paint(HOUSE, size=48, width=2, scale=0.4, at=4)
    colours = small.convert("RGBA")
    colours.putalpha(small.point(lambda value: 255 - value))
    exif = Image.Exif()
    exif[0x0112] = 6
    return [
        encode(small),
        encode(colours),
        encode(small.convert("P")),
        encode(small.convert("1")),
        encode(Image.fromarray(np.asarray(small).astype(np.uint16) * 257)),
        encode(small, "PNG", save_all=True, append_images=[small.rotate(9)]),
        encode(small, "PNG", exif=exif),
        encode(small, "JPEG", exif=exif),
        encode(small, "JPEG", progressive=True),
        encode(small.convert("CMYK"), "JPEG"),
        encode(colours, "WEBP"),
        encode(colours, "WEBP", lossless=True, exif=exif),
        encode(small.convert("RGB"), "WEBP"),
        hostile.webp_of_frames(2, small),
        *(hostile.jpeg_with_exif(each, small) for each in list(hostile.bad_exif().values())[:6]),
    ]


@cache
def prepared() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return prepare(open_source("synthetic", limit=1), Path(folder, "set.parquet"), workers=1).path.read_bytes()


def change_bytes(data: bytes, random: random.Random) -> bytes:
    """Change a few bytes: flip, overwrite, cut, repeat, or put numbers that are at the limits."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 4, 16))):
        if not changed:
            break
        at = random.randrange(len(changed))
        match random.randrange(7):
            case 0:
                changed[at] ^= 1 << random.randrange(8)
            case 1:
                changed[at] = random.randrange(256)
            case 2:
                form = random.choice(("<I", ">I", "<H", ">H", "B"))
                size = struct.calcsize(form)
                changed[at : at + size] = struct.pack(form, random.choice(NUMBERS) % 256**size)
            case 3:
                del changed[at : at + random.choice((1, 4, 100))]
            case 4:
                changed[at:at] = changed[at : at + random.choice((1, 12, 300))] * random.choice((1, 2, 50))
            case 5:
                other = random.randrange(len(changed))
                changed[at : at + 8] = changed[other : other + 8]
            case _:
                del changed[at if random.random() < 0.3 else len(changed) :]
    return bytes(changed)


def change_picture(random: random.Random) -> bytes:
    """Change a picture's file; a PNG's checksums are put right again, or nothing after them would be seen."""
    data = random.choice(pictures())
    if not data.startswith(b"\x89PNG") or random.random() < 0.3:
        return change_bytes(data, random)
    chunks, position = [], 8
    while position + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, position)
        chunks.append((kind, data[position + 8 : position + 8 + length]))
        position += 12 + length
    at = random.randrange(len(chunks))
    kind, content = chunks[at]
    if kind == b"IDAT" and random.random() < 0.5:
        content = zlib.compress(change_bytes(zlib.decompress(content), random))
    elif kind == b"IHDR":
        position, value = random.randrange(13), random.choice((0, 1, 2, 3, 4, 6, 8, 16, 40, 255))
        content = content[:position] + bytes([value]) + content[position + 1 :]
    else:
        content = change_bytes(content, random)
    chunks[at] = (kind, content)
    if random.random() < 0.3:
        random.shuffle(chunks)
    return data[:8] + b"".join(hostile.png_chunk(*chunk) for chunk in chunks)


def change_text(text: str, words: list[str], random: random.Random) -> str:
    """Put other words in the place of some, or repeat or drop a part."""
    for _ in range(random.choice((1, 1, 2, 5))):
        parts = re.split(r"(-?\d+\.?\d*|[A-Za-z]+)", text)
        at = random.randrange(len(parts))
        match random.randrange(4):
            case 0 | 1:
                parts[at] = random.choice(words)
            case 2:
                parts[at:at] = parts[at : at + random.randrange(1, 9)] * random.choice((1, 3, 200))
            case _:
                del parts[at : at + random.randrange(1, 4)]
        text = "".join(parts)[:200_000]
    return text


def change_svg(random: random.Random) -> bytes:
    text = change_text(random.choice(SVGS), SVG_WORDS, random)
    data = text.encode(random.choice(("utf-8", "utf-8", "utf-16")))
    return change_bytes(data, random) if random.random() < 0.3 else data


def change_line(random: random.Random) -> bytes:
    text = json.dumps(random.choice((HOUSE, {"strokes": HOUSE, "top": 3}, RECORD)))
    data = change_text(text, WORDS, random).encode("utf-8", "backslashreplace")
    return (change_bytes(data, random) if random.random() < 0.3 else data).replace(b"\n", b" ")


def change_zip(random: random.Random) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name in ("cat/1.json", "dog/2.svg", "./cat//3.png", "train/cat/4.json", "d\udce9g/5.json"):
            make = {"svg": change_svg, "png": change_picture}.get(name[-3:], change_line)
            archive.writestr(name.encode("utf-8", "surrogateescape").decode("cp437"), make(random))
        archive.writestr("cat/6.json", json.dumps(HOUSE))
    return change_bytes(file.getvalue(), random) if random.random() < 0.7 else file.getvalue()


def change_array(array: NDArray[Any], random: random.Random) -> NDArray[Any]:
    match random.randrange(7):
        case 0:
            return array.astype(random.choice(("f4", "u1", "i8", "U3", "S2", "?", "c8", "u8")))
        case 1:
            return array.reshape(-1)
        case 2:
            return array[:1]
        case 3:
            return array[None]
        case 4:
            return np.full(array.shape, random.choice(NUMBERS))
        case 5:
            return np.array(random.choice(NUMBERS))
        case _:
            return np.asfortranarray(array)


def change_arrays(random: random.Random) -> bytes:
    """Change arrays of an .npz file: their types, shapes, values, or their bytes."""
    arrays: dict[str, NDArray[Any]] = {
        "labels": np.array([0, 1]),
        "class_names": np.array(["cat", "dog"]),
        "points": np.array([[0, 0], [5, 9], [1, 1], [8, 2]], np.float32),
        "end_of_stroke": np.array([0, 1, 0, 1]),
        "offsets": np.array([0, 2, 4]),
        "ids": np.array(["a", "b"]),
        "fold": np.array([0, 1]),
    }
    if random.random() < 0.4:
        arrays["images"] = np.stack(2 * [255 - 255 * np.eye(16, dtype=np.uint8)])
    for name in random.sample(list(arrays), random.choice((0, 1, 1, 2))):
        try:
            arrays[name] = change_array(arrays[name], random)
        except (ValueError, TypeError):
            del arrays[name]
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array)
            data = member.getvalue()
            archive.writestr(f"{name}.npy", change_bytes(data, random) if random.random() < 0.08 else data)
    return change_bytes(file.getvalue(), random) if random.random() < 0.3 else file.getvalue()


def change_set(random: random.Random) -> bytes:
    data = prepared()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    if random.random() < 0.6:
        changed = bytearray(data)
        for _ in range(random.choice((1, 1, 2))):
            changed[random.randrange(footer, len(data))] ^= 1 << random.randrange(8)
        return bytes(changed)
    return change_bytes(data, random)
