"""Small files that ask for much: each is answered in a moment, with a sketch or a sentence."""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

from dabnet.errors import InputError
from dabnet.sketches.containers import open_container
from dabnet.sketches.read import read_sketch
from dabnet.sketches.sketch import Sketch

from . import hostile
from .drawings import HOUSE, encode, paint

PICTURE = paint(HOUSE)
SECONDS = 2.0
"""More than any of these takes on a busy machine, and less than any took before."""


def test_strokes_are_checked_before_any_array_is_made() -> None:
    body = hostile.strokes_that_numpy_would_pad()
    code = (
        "import sys\nfrom dabnet.sketches.read import read_sketch\n"
        "try: read_sketch(sys.stdin.buffer.read())\nexcept ValueError as problem: print(problem)"
    )
    gigabyte = 2**30  # of addresses: numpy would take 2.4 GB
    found = subprocess.run(
        [sys.executable, "-c", code],
        input=body,
        capture_output=True,
        env={"OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (gigabyte, gigabyte)),
        check=True,
    )
    assert found.stdout.startswith(b"stroke 1 is not a list of points")


@pytest.mark.parametrize(
    "stroke",
    [
        [[True, False], [1, 2]],
        [["1", "2"], [3, 4]],
        ["ab", "cd"],
        "abcd",
        {"1": 2},
        [[1, 2], [3, 4, 5]],
        [[1, 2], [3]],
        [[1, None], [2, 3]],
        [1, 2],
        [[[1, 2]], [[3, 4]]],
        [{1: 2, 3: 4}, [1, 2]],
        np.array([["1", "2"]]),
        np.array([[True, False]]),
    ],
    ids=str,
)
def test_only_numbers_are_coordinates(stroke: object) -> None:
    with pytest.raises(InputError, match="stroke 1 is not a list of points"):
        Sketch.from_strokes([stroke])  # type: ignore[list-item]


def test_a_number_of_many_digits_is_not_a_coordinate() -> None:
    with pytest.raises(InputError, match="not a finite number"):
        read_sketch(b"[[[" + b"9" * 4000 + b", 1], [1, 2]]]")


@pytest.mark.parametrize(
    "body",
    [
        b'{"strokes": [' + b"[]," * 1_300_000 + b"[[1, 2], [3, 4]]]}",
        b'{"drawing": [' + b"[[],[]]," * 600_000 + b"[[1, 2], [3, 4]]]}",
    ],
    ids=["strokes", "Quick, Draw!"],
)
def test_empty_strokes_are_counted(body: bytes) -> None:
    begun = time.process_time()
    with pytest.raises(InputError, match="more than 100,000 lists"):
        read_sketch(body)
    for name, stroke in (("strokes", "[]"), ("drawing", "[[],[]]")):
        with pytest.raises(InputError, match="more than 32,768"):
            read_sketch(f'{{"{name}": [{",".join(33_000 * [stroke])}]}}'.encode())
    assert time.process_time() - begun < SECONDS  # most of it parsing JSON


HARMFUL = {
    "a JPEG of 5,000 empty scans": (hostile.jpeg_of_empty_scans(4000, 5000), "more than 62 scans"),
    "a JPEG of 500,000 segments": (hostile.jpeg_with_segments(500_000), "more than 100,000 segments"),
    "a PNG of 600,000 chunks": (
        hostile.png_with_chunks(hostile.png_chunk(b"tEXt", b"a\0b"), 600_000, PICTURE),
        "more than 100,000 chunks",
    ),
    "a WebP that claims a gigabyte": (hostile.webp_that_claims(16383, 16383), "more than 50,000,000 pixels"),
    "an SVG of 60,000 default attributes": (hostile.svg_of_defaults(), "declares entities or attributes"),
}


@pytest.mark.parametrize("kind", HARMFUL)
def test_what_would_take_long_is_refused_at_once(kind: str) -> None:
    data, words = HARMFUL[kind]
    begun = time.process_time()
    with pytest.raises(InputError, match=words):
        read_sketch(data)
    assert time.process_time() - begun < SECONDS


HARMLESS = {
    "a progressive JPEG": encode(PICTURE, "JPEG", progressive=True),
    "a JPEG with long notes": hostile.jpeg_with_exif(bytes(60_000), PICTURE),
    "a PNG with texts that grow": hostile.png_with_chunks(hostile.png_text_bomb(), 5, PICTURE),
    "a PNG with empty chunks of pixels": hostile.png_with_chunks(hostile.png_chunk(b"IDAT", b""), 50_000, PICTURE),
    "a WebP of 20,000 frames": hostile.webp_of_frames(20_000, PICTURE),
    **{
        f"EXIF: {name}": hostile.jpeg_with_exif(
            exif, PICTURE.rotate(90) if "Error" in name or "struct" in name else PICTURE
        )
        for name, exif in hostile.bad_exif().items()
    },
}


@pytest.mark.parametrize("kind", HARMLESS)
def test_what_is_beside_the_picture_does_not_matter(kind: str) -> None:
    begun = time.process_time()
    assert read_sketch(HARMLESS[kind]).bitmap is not None
    assert time.process_time() - begun < SECONDS


def test_a_decoder_is_given_the_picture_and_nothing_else() -> None:
    secret = b"where it was taken"
    for data in (
        hostile.jpeg_with_exif(secret, PICTURE),
        hostile.png_with_chunks(hostile.png_chunk(b"tEXt", secret), 3, PICTURE),
        encode(PICTURE.convert("RGB"), "WEBP", exif=b"Exif\0\0" + secret),
    ):
        assert secret in data
        found = open_container(data, 10**6)
        assert secret not in found.data
        assert (found.width, found.height) == PICTURE.size


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_the_size_is_known_before_a_decoder_runs(kind: str) -> None:
    for size in ((1, 1), (3, 500), (500, 3), (257, 129)):
        for options in ({}, {"lossless": True}) if kind == "WEBP" else ({},):
            picture = Image.new("RGB", size, (9, 99, 199))
            found = open_container(encode(picture, kind, **options), 10**6)
            assert (found.width, found.height) == size
