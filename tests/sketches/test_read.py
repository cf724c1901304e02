from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dabnet.errors import InputError
from dabnet.sketches.raster import Raster, rasterize
from dabnet.sketches.read import read_sketch
from dabnet.sketches.sketch import Sketch
from tests.sketches.drawings import HOUSE, agreement, encode, paint
from tests.sketches.test_quickdraw import record

PICTURE = paint(HOUSE)
SVG = "<svg>" + "".join(f"<polyline points='{' '.join(f'{x},{y}' for x, y in s)}'/>" for s in HOUSE) + "</svg>"
FORMS: dict[str, Any] = {
    "strokes": HOUSE,
    "strokes as arrays": [np.array(stroke) for stroke in HOUSE],
    "a sketch": Sketch.from_strokes(HOUSE),
    "a canvas's JSON": json.dumps(HOUSE).encode(),
    "an object with strokes": json.dumps({"strokes": HOUSE}).encode(),
    "JSON after a byte order mark": b"\xef\xbb\xbf \n" + json.dumps(HOUSE).encode(),
    "a Quick, Draw! line": json.dumps(record(HOUSE)).encode(),
    "SVG": SVG.encode(),
    "PNG": encode(PICTURE),
    "a Pillow image": PICTURE,
    "an array": np.asarray(PICTURE),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_drawing_is_the_same_in_every_form(form: str) -> None:
    raster = Raster(size=96)
    plain = rasterize(Sketch.from_strokes(HOUSE), raster)
    assert agreement(rasterize(read_sketch(FORMS[form]), raster), plain) > 0.98


def test_a_file_is_known_by_what_it_holds_not_by_its_name(tmp_path: Path) -> None:
    for form, drawing in FORMS.items():
        if isinstance(drawing, bytes):
            path = tmp_path / "drawing.dat"
            path.write_bytes(drawing)
            assert type(read_sketch(path)) is type(read_sketch(str(path))) is Sketch, form


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"[[[0, 0], [1", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[[[0, 0], [NaN, 1]]]", "not a finite number"),
        (b"[[[0, 0]]]", "a single point"),
        (b"[]", "no ink"),
        (b"[[[" + b"9" * 5000 + b", 1]]]", "not valid JSON"),
        (b"<svg></svg>", "no lines"),
        (b"[" + b" " * 9_000_000, "more than 8,000,000"),
        (b"{}", 'holds no drawing: write it as {"strokes"'),
        (b'{"strokes": 5}', "holds no drawing"),
        (encode(PICTURE)[:-300], "damaged"),
    ],
)
def test_a_bad_file_is_named_in_one_sentence(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "mine.png"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words) as error:
        read_sketch(path)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


def test_what_is_not_there_or_no_drawing_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read '.*nothing.png' \(No such file or directory\): check the path"):
        read_sketch(tmp_path / "nothing.png")
    with pytest.raises(InputError, match="cannot read"):
        read_sketch(tmp_path)
    with pytest.raises(InputError, match="a int is not a drawing"):
        read_sketch(5)


@given(
    st.binary(max_size=100), st.sampled_from([b"", b"<", b"[", b"{", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF"])
)
def test_any_bytes_give_a_sketch_or_a_sentence(data: bytes, start: bytes) -> None:
    with contextlib.suppress(InputError):
        assert isinstance(read_sketch(start + data), Sketch)
