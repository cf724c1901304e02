from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dabnet.errors import InputError
from dabnet.sketches.raster import rasterize
from dabnet.sketches.sketch import MAX_POINTS, Sketch
from dabnet.sketches.svg import FLATNESS, MAX_BYTES, MAX_DEPTH, MAX_ELEMENTS, sketch_from_svg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

TU_BERLIN = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<svg viewBox="0 0 800 800" preserveAspectRatio="xMinYMin meet" xmlns="http://www.w3.org/2000/svg" version="1.1">
<g fill="none" stroke="black" stroke-linecap="round" stroke-linejoin="round" stroke-width="4">
<g transform="translate(0,0) scale(3.125) translate(0,0)">
<path id="0" d="M109 53.0500030517578 C109.33 52.74 110.66 51.81 111 51.1900024414062 L120 60 "/>
<path id="1" d="M16 32 L48 32 L48 64 M0 0 L8 8"/>
</g></g></svg>
"""


def draw(elements: str) -> list[NDArray[np.float32]]:
    return sketch_from_svg(f"<svg>{elements}</svg>".encode()).strokes


def draw_path(data: str) -> list[NDArray[np.float32]]:
    return draw(f'<path d="{data}"/>')


def assert_same(strokes: Sequence[NDArray[np.float32]], others: Sequence[NDArray[np.float32]]) -> None:
    assert [len(stroke) for stroke in strokes] == [len(other) for other in others]
    size = np.abs(np.concatenate(others)).max()
    for stroke, other in zip(strokes, others, strict=True):
        np.testing.assert_allclose(stroke, other, rtol=0, atol=1e-6 * size)


def assert_drawn(stroke: NDArray[np.float32], curve: NDArray[np.float64]) -> None:
    """The stroke starts and ends where the curve (points, 2) does, and is as near to it as promised all along."""
    extent = np.ptp(curve, axis=0).max()
    np.testing.assert_allclose(stroke[[0, -1]], curve[[0, -1]], rtol=1e-6, atol=1e-6 * extent)
    a, ab = stroke[None, :-1].astype(np.float64), np.diff(stroke, axis=0)[None].astype(np.float64)
    ap = curve[:, None] - a
    along = ((ap * ab).sum(axis=-1) / np.maximum((ab**2).sum(axis=-1), 1e-300)).clip(0, 1)
    distances = np.linalg.norm(ap - along[..., None] * ab, axis=-1).min(axis=1)
    rounding = 1e-6 * np.abs(curve).max()
    assert distances.max() <= FLATNESS * extent * 1.02 + rounding


def casteljau(controls: NDArray[np.float64], times: NDArray[np.float64]) -> NDArray[np.float64]:
    points = np.repeat(controls[None], len(times), axis=0)
    while points.shape[1] > 1:
        points = points[:, :-1] + times[:, None, None] * np.diff(points, axis=1)
    return points[:, 0]


def test_a_tu_berlin_drawing_gives_its_strokes_and_the_same_image_as_its_points() -> None:
    sketch = sketch_from_svg(TU_BERLIN.encode())
    curved, angle, line = sketch.strokes
    assert angle.tolist() == [[50, 100], [150, 100], [150, 200]]
    assert line.tolist() == [[0, 0], [25, 25]]
    controls = np.array([[109, 53.0500030517578], [109.33, 52.74], [110.66, 51.81], [111, 51.1900024414062]]) * 3.125
    expected = np.append(casteljau(controls, np.linspace(0, 1, len(curved) - 1)), [[375, 187.5]], axis=0)
    np.testing.assert_allclose(curved, expected, rtol=1e-6)
    same = Sketch.from_strokes([expected, [(50, 100), (150, 100), (150, 200)], [(0, 0), (25, 25)]])
    assert np.array_equal(rasterize(sketch), rasterize(same))


@st.composite
def twins(draw_one: st.DrawFn) -> tuple[str, str]:
    """The same path twice: with absolute commands only, and with relative ones only; on whole numbers."""
    number = st.integers(-50, 50)
    absolute, relative = "M0 0L60 60", "m0 0l60 60"
    start, here = (0, 0), (60, 60)
    for command in draw_one(st.text("MLHVCSQTAZ", max_size=9)):
        count = {"C": 3, "S": 2, "Q": 2, "Z": 0}.get(command, 1)
        points = [(draw_one(number), draw_one(number)) for _ in range(count)]
        if command in "HV":
            axis = "HV".index(command)
            absolute += f"{command}{points[0][axis]} "
            relative += f"{command.lower()}{points[0][axis] - here[axis]} "
            points = [(points[0][0], here[1]) if command == "H" else (here[0], points[0][1])]
        else:
            ellipse = f"{draw_one(number)} 9 30 {draw_one(st.sampled_from(['0 0', '0 1', '1 0', '1 1']))} "
            text = command + (ellipse if command == "A" else "")
            absolute += text + " ".join(f"{x} {y}" for x, y in points)
            relative += text.lower() + " ".join(f"{x - here[0]} {y - here[1]}" for x, y in points)
        here = points[-1] if points else start
        start = here if command == "M" else start
    return absolute, relative


@given(twins())
def test_relative_commands_draw_what_absolute_ones_do(paths: tuple[str, str]) -> None:
    absolute, relative = paths
    assert_same(draw_path(relative), draw_path(absolute))


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("M1 2 3 4 5 6", "M1 2L3 4L5 6"),
        ("m1 2 3 4 5 6", "m1 2l3 4l5 6"),
        ("M1 2H5 7 9V3 4", "M1 2H5H7H9V3V4"),
        ("M0 0C1 2 3 4 5 6 7 8 9 8 7 6", "M0 0C1 2 3 4 5 6C7 8 9 8 7 6"),
        ("M0 0q1 2 3 4 5 6 7 8", "M0 0q1 2 3 4q5 6 7 8"),
        ("M0 0a5 5 0 013 4 5 5 0 10-3 1", "M0 0a5,5,0,0,1,3,4a5 5 0 1 0 -3 1"),
        ("M0 0a5 5 0 01.5.5", "M0 0a5 5 0 0 1 0.5 0.5"),
        ("M10-5.5.5-.5e1+3-1e-1", "M10 -5.5 L0.5 -5 L3 -0.1"),
        (" \n M\t1,2 ,\r\n3 , 4\n", "M1 2L3 4"),
        ("M1.,2.L.3e2,4E-1", "M1 2L30 0.4"),
    ],
)
def test_paths_written_short_are_the_paths_written_in_full(short: str, full: str) -> None:
    assert_same(draw_path(short), draw_path(full))


@st.composite
def number_texts(draw_one: st.DrawFn) -> str:
    number = draw_one(st.floats(-1e6, 1e6))
    text = draw_one(
        st.sampled_from([repr(number), f"{number:.3f}", f"{number:+.2e}", f"{number:.0f}", f"{number:.0f}."])
    )
    return re.sub(r"\b0\.(?=\d)", ".", text) if draw_one(st.booleans()) else text


@given(st.lists(st.tuples(number_texts(), number_texts()), min_size=1, max_size=9), st.data())
def test_numbers_are_read_as_written_with_separators_or_without(
    pairs: list[tuple[str, str]], data: st.DataObject
) -> None:
    texts = ["-3.5", "1e6", *(text for pair in pairs for text in pair)]
    joined = texts[0]
    for last, text in pairwise(texts):
        can_touch = text[0] in "+-" or (text[0] == "." and ("." in last or "e" in last))
        joined += data.draw(st.sampled_from(["", " "] if can_touch else [" ", ",", " , ", "\n"])) + text
    expected = np.array([float(text) for text in texts]).reshape(-1, 2)
    moves = np.append(True, (np.diff(expected, axis=0) != 0).any(axis=1))  # a line to where the pen is adds no point
    for strokes in (draw_path("M" + joined), draw(f'<polyline points="{joined}"/>')):
        assert len(strokes) == 1
        assert np.array_equal(strokes[0], expected[moves].astype(np.float32))


@pytest.mark.parametrize(
    ("smooth", "explicit"),
    [
        ("M0 0C1 5 6 7 9 9S4 3 8 1", "M0 0C1 5 6 7 9 9C12 11 4 3 8 1"),
        ("M0 0C1 5 6 7 9 9s-5-6-1-8s1 1 5 5", "M0 0C1 5 6 7 9 9C12 11 4 3 8 1C12 -1 9 2 13 6"),
        ("M0 0Q1 5 9 9T4 3T7 7", "M0 0Q1 5 9 9Q17 13 4 3Q-9 -7 7 7"),
        ("M3 4S4 3 8 1", "M3 4C3 4 4 3 8 1"),
        ("M3 4Q1 5 9 9S4 3 8 1", "M3 4Q1 5 9 9C9 9 4 3 8 1"),
        ("M3 4C1 5 9 9 2 1T8 1T9 5", "M3 4C1 5 9 9 2 1Q2 1 8 1Q14 1 9 5"),
        ("M0 0Q1 5 9 9M9 9T4 3", "M0 0Q1 5 9 9M9 9Q9 9 4 3"),
    ],
)
def test_a_smooth_curve_mirrors_the_control_point_of_its_own_kind_just_before(smooth: str, explicit: str) -> None:
    assert_same(draw_path(smooth), draw_path(explicit))


coordinates = st.tuples(st.floats(-100, 100), st.floats(-100, 100))


@given(st.lists(coordinates, min_size=3, max_size=4))
def test_curves_are_as_near_as_promised_to_their_dense_samples(points: list[tuple[float, float]]) -> None:
    controls = np.array(points)
    curve = casteljau(controls, np.linspace(0, 1, 300))
    assume(np.ptp(curve, axis=0).max() > 1e-3)  # what is smaller drowns in float32
    command = "Q" if len(points) == 3 else "C"
    (stroke,) = draw_path(
        f"M{points[0][0]!r} {points[0][1]!r}{command}" + " ".join(f"{x!r},{y!r}" for x, y in points[1:])
    )
    assert_drawn(stroke, curve)


def test_a_curve_gets_as_many_lines_as_the_drawing_shows_of_it() -> None:
    curve = '<path d="M0 0C0 10 10 10 10 0"/>'
    alone, small = draw(curve), draw(curve + '<line x2="1000"/>')
    assert len(alone[0]) > 5 * len(small[0]) > 5
    assert_same(draw(curve), [stroke * 1e-6 for stroke in draw(f'<g transform="scale(1e6)">{curve}</g>')])


@given(
    coordinates,
    st.tuples(st.floats(1, 50), st.floats(1, 50)),
    st.floats(-360, 360),
    st.floats(-3, 3),
    st.floats(0.05, 6.2).filter(lambda angle: abs(angle - math.pi) > 1e-3),
    st.booleans(),
)
def test_arcs_follow_the_true_ellipse_for_both_flags(
    centre: tuple[float, float],
    radii: tuple[float, float],
    rotation: float,
    start: float,
    angle: float,
    is_sweep: bool,
) -> None:
    times = start + np.linspace(0, angle if is_sweep else -angle, 400)
    cos, sin = math.cos(math.radians(rotation)), math.sin(math.radians(rotation))
    circle = np.stack([np.cos(times), np.sin(times)], axis=1)
    curve = circle * radii @ np.array([[cos, sin], [-sin, cos]]) + centre
    (x0, y0), (x1, y1) = curve[[0, -1]]
    flags = f"{int(angle > math.pi)}{int(is_sweep)}"
    (stroke,) = draw_path(f"M{x0} {y0}A{radii[0]} {radii[1]} {rotation} {flags}{x1} {y1}")
    assert_drawn(stroke, curve)


def test_every_point_of_a_circle_is_at_its_radius() -> None:
    for circle in ('<circle cx="30" cy="-7" r="5"/>', '<path d="M25-7a5 5 0 1010 0 5 5 0 10-10 0z"/>'):
        (stroke,) = draw(circle)
        distances = np.linalg.norm(stroke - (30, -7), axis=1)
        assert np.abs(distances - 5).max() < 1e-4
        assert stroke[0] == pytest.approx(stroke[-1])
        middles = np.linalg.norm((stroke[1:] + stroke[:-1]) / 2 - (30, -7), axis=1)
        assert np.abs(middles - 5).max() < 10 * FLATNESS
        assert 20 < len(stroke) < 100


@pytest.mark.parametrize(
    ("arc", "same"),
    [
        ("M0 0A1 1 0 0 1 10 0", "M0 0A5 5 0 0 1 10 0"),
        ("M0 0A1 2 90 0 1 10 0", "M0 0A2.5 5 90 0 1 10 0"),
        ("M0 0A-5-6 0 0 1 9 0", "M0 0A5 6 0 0 1 9 0"),
        ("M0 0A0 5 0 0 1 9 3", "M0 0L9 3"),
        ("M0 0L1 1A5 5 0 1 1 1 1L3 0", "M0 0L1 1L3 0"),
        ("M0 0A1e-300 1e-300 0 0 1 9 3", "M0 0L9 3"),
    ],
)
def test_odd_radii_are_taken_as_svg_says(arc: str, same: str) -> None:
    assert_same(draw_path(arc), draw_path(same))


def test_a_subpath_is_a_stroke_and_z_goes_home_once() -> None:
    strokes = draw_path("M0 0L4 0L4 3zL1 1M5 5L6 6L5 5ZM8 8M9 9zm1 1l1 0")
    assert [stroke.tolist() for stroke in strokes] == [
        [[0, 0], [4, 0], [4, 3], [0, 0]],
        [[0, 0], [1, 1]],
        [[5, 5], [6, 6], [5, 5]],
        [[9, 9]],
        [[10, 10], [11, 10]],
    ]


@pytest.mark.parametrize(
    ("transform", "matrix"),
    [
        ("matrix(1 2 3 4 5 6)", [[1, 3, 5], [2, 4, 6]]),
        ("matrix(1,0,0-1-.5.5)", [[1, 0, -0.5], [0, -1, 0.5]]),
        ("translate(3)", [[1, 0, 3], [0, 1, 0]]),
        (" translate ( 3 , -4 ) ", [[1, 0, 3], [0, 1, -4]]),
        ("scale(2)", [[2, 0, 0], [0, 2, 0]]),
        ("scale(2 -3)", [[2, 0, 0], [0, -3, 0]]),
        ("rotate(90)", [[0, -1, 0], [1, 0, 0]]),
        ("rotate(90 10 20)", [[0, -1, 30], [1, 0, 10]]),
        ("rotate(180, 1, 2)", [[-1, 0, 2], [0, -1, 4]]),
        ("skewX(45)", [[1, 1, 0], [0, 1, 0]]),
        ("skewY(45)", [[1, 0, 0], [1, 1, 0]]),
        ("translate(10,20) scale(2)", [[2, 0, 10], [0, 2, 20]]),
        ("scale(2),translate(10,20)", [[2, 0, 20], [0, 2, 40]]),
        ("scale(2)rotate(90)translate(1 0)", [[0, -2, 0], [2, 0, 2]]),
        ("", [[1, 0, 0], [0, 1, 0]]),
    ],
)
def test_transforms_are_their_matrices(transform: str, matrix: list[list[float]]) -> None:
    data = "M1 2C3 9 5 7 8 2L4 4"
    linear, shift = np.array(matrix)[:, :2], np.array(matrix)[:, 2]
    controls = np.array([[1, 2], [3, 9], [5, 7], [8, 2]]) @ linear.T + shift
    for svg in (
        f'<svg><path transform="{transform}" d="{data}"/></svg>',
        f'<svg><g transform="{transform}"><g><path d="{data}"/></g></g></svg>',
        f'<svg transform="{transform}"><path d="{data}"/></svg>',
    ):
        (stroke,) = sketch_from_svg(svg.encode()).strokes
        np.testing.assert_allclose(stroke[-1], linear @ (4, 4) + shift, atol=1e-5)
        assert_drawn(stroke[:-1], casteljau(controls, np.linspace(0, 1, 99)))


def test_an_outer_transform_comes_after_the_inner_one_and_ends_with_its_group() -> None:
    svg = """<g transform="translate(100 0)"><g transform="scale(2)">
      <line transform="rotate(90)" x2="3"/></g><line x2="1"/></g><line x2="1"/>"""
    inner, middle, outer = draw(svg)
    np.testing.assert_allclose(inner, [[100, 0], [100, 6]], atol=1e-5)
    assert middle.tolist() == [[100, 0], [101, 0]]
    assert outer.tolist() == [[0, 0], [1, 0]]


@pytest.mark.parametrize(
    ("shape", "path"),
    [
        ('<line x1="1" y1="2" x2="3px" y2="4"/>', "M1 2L3 4"),
        ('<line x2=" 1in "/>', "M0 0H96"),
        ('<polyline points="1,2 3,4-5 6"/>', "M1 2L3 4L-5 6"),
        ('<polygon points="1 2 3 4 -5 6"/>', "M1 2L3 4L-5 6Z"),
        ('<rect x="1" y="2" width="10" height="20"/>', "M1 2h10v20h-10z"),
        (
            '<rect width="10" height="20" rx="2"/>',
            "M2 0h6a2 2 0 012 2v16a2 2 0 01-2 2h-6a2 2 0 01-2-2v-16a2 2 0 012-2z",
        ),
        (
            '<rect width="10" height="20" rx="99" ry="10"/>',
            "M5 0a5 10 0 015 10 5 10 0 01-5 10 5 10 0 01-5-10 5 10 0 015-10",
        ),
        ('<rect width="9" height="9" rx="-1" ry="0"/>', "M0 0h9v9h-9z"),
        ('<circle cx="3" cy="4" r="2"/>', "M3 2a2 2 0 012 2 2 2 0 01-2 2 2 2 0 01-2-2 2 2 0 012-2"),
        ('<ellipse cx="3" cy="4" rx="2" ry="5"/>', "M3-1a2 5 0 012 5 2 5 0 01-2 5 2 5 0 01-2-5 2 5 0 012-5"),
        ('<ellipse ry="5"/>', "M0-5a5 5 0 015 5 5 5 0 01-5 5 5 5 0 01-5-5 5 5 0 015-5"),
    ],
)
def test_shapes_are_their_paths(shape: str, path: str) -> None:
    assert_same(draw(shape), draw_path(path))


LINE = '<line x2="7"/>'
BOMB = '<!DOCTYPE svg [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]><svg id="&b;"/>'


@pytest.mark.parametrize(
    "hidden",
    [
        *[f"<{name}>{LINE}</{name}>" for name in ("defs", "clipPath", "mask", "pattern", "marker", "symbol", "text")],
        f"<defs><g>{LINE}</g></defs>",
        f'<g display="none"><g>{LINE}</g></g>',
        f'<g style="fill:none; display : none">{LINE}</g>',
        '<line x2="7" display="none"/>',
        '<line x2="7" style="display:inline;display:none"/>',
        f"<path>{LINE}</path>",
        f'<other:g xmlns:other="urn:other">{LINE}</other:g>',
        '<use href="#a"/><circle/><rect width="5"/><rect width="-5" height="5"/><ellipse/><path/><polyline/>',
        '<polygon points=" "/><polyline points="1 1"/><path d="M1 1M2 2"/><path d=" "/>',
    ],
)
def test_what_svg_does_not_draw_is_no_stroke(hidden: str) -> None:
    (stroke,) = draw(f'{hidden}<line x2="1"/>')
    assert stroke.tolist() == [[0, 0], [1, 0]]


@pytest.mark.parametrize(
    "shown",
    [
        '<a><switch><g display="inline" style="stroke-display:none">{}</g></switch></a>',
        '<g display="none" style="display:inline">{}</g>',
        "<svg>{}</svg>",
        "<!-- <g display='none'> -->{}",
    ],
)
def test_what_svg_draws_is_a_stroke(shown: str) -> None:
    assert [stroke.tolist() for stroke in draw(shown.format(LINE))] == [[[0, 0], [7, 0]]]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "windows-1252"])
def test_namespaces_and_encodings_do_not_matter(encoding: str) -> None:
    name = encoding.removesuffix("-sig")
    for svg in (
        '<svg id="é"><line x2="7"/></svg>',
        '<svg id="é" xmlns="http://www.w3.org/2000/svg"><line x2="7"/></svg>',
        '<é:svg xmlns:é="http://www.w3.org/2000/svg"><é:line x2="7"/></é:svg>',
    ):
        data = f'<?xml version="1.0" encoding="{name}"?>\n{svg}'.encode(encoding)
        assert sketch_from_svg(data).strokes[0].tolist() == [[0, 0], [7, 0]]


def test_entities_are_refused_in_any_encoding() -> None:
    for encoding in ("utf-8", "utf-16", "utf-16-be"):
        with pytest.raises(InputError, match=r"declares entities or attributes of its own"):
            sketch_from_svg(BOMB.encode(encoding))


@pytest.mark.parametrize("subset", ["[]", "[<!ATTLIST g transform CDATA 'scale(2)'>]", "SYSTEM 'a.dtd' [<!-- -->]"])
def test_document_types_with_declarations_are_refused(subset: str) -> None:
    for encoding in ("utf-8", "utf-16"):
        with pytest.raises(InputError, match=r"declares entities or attributes of its own"):
            sketch_from_svg(f"<!DOCTYPE svg {subset}><svg>{LINE}</svg>".encode(encoding))


DEEP = "<g>" * MAX_DEPTH + LINE + "</g>" * MAX_DEPTH
KNOWN = "M, L, H, V, C, S, Q, T, A or Z"
KINDS = "matrix, translate, scale, rotate, skewX or skewY"


@pytest.mark.parametrize(
    ("svg", "sentence"),
    [
        ("", "the SVG file is empty: save it again."),
        (" \n", "the SVG file is empty: save it again."),
        ("<svg/>", "the SVG has no lines: it needs at least one path, line or shape."),
        ('<svg><path d="M1 1"/></svg>', "the SVG has no lines: it needs at least one path, line or shape."),
        ("a drawing", "this is not a well-formed SVG (line 1): save it again."),
        ('<svg>\n\n<path d="M0 0', "this is not a well-formed SVG (line 3): save it again."),
        ("<svg>\n<line/>\n", "this is not a well-formed SVG (line 3): save it again."),
        ("<html/>", "this XML file is not an SVG: it must start with the element svg, not 'html'."),
        ("<path d='M0 0L1 1'/>", "this XML file is not an SVG: it must start with the element svg, not 'path'."),
        ("<svg xmlns='a'/>", "this XML file is not an SVG: it must start with the element svg, not 'svg'."),
        (
            BOMB,
            "the SVG declares entities or attributes of its own, which could be endless: save it as plain SVG.",
        ),
        ("<svg>" + " " * MAX_BYTES, f"the SVG has more than {MAX_BYTES:,} bytes: simplify it first."),
        (f"<svg>{DEEP}</svg>", f"the SVG nests elements more than {MAX_DEPTH} deep: ungroup them first."),
        (
            "<svg>" + "<g/>" * MAX_ELEMENTS,
            f"the SVG has more than {MAX_ELEMENTS:,} elements and transforms: simplify it first.",
        ),
        (
            "<svg><g><svg viewBox='0 0 1 1'/></g></svg>",
            "line 1: this svg inside the svg has coordinates of its own: ungroup it first.",
        ),
        (
            "<?xml version='1.0' encoding='utf-7'?><svg/>",
            "the SVG's encoding 'utf-7' is not supported: save it as UTF-8.",
        ),
        ("<?xml version='1.0' encoding='iso-8859-99'?><svg/>", "the SVG's text cannot be decoded: save it as UTF-8."),
    ],
    ids=range(17),
)
def test_a_document_that_cannot_be_used_gets_its_sentence(svg: str, sentence: str) -> None:
    with pytest.raises(InputError) as problem:
        sketch_from_svg(svg.encode())
    assert str(problem.value) == sentence


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("M0 0X1 1", f"the path command 'X' at 'X1 1' is not one of SVG's: use {KNOWN}."),
        ("M0 0 1 1e 1", f"the path command 'e' at 'e 1' is not one of SVG's: use {KNOWN}."),
        ("M0 0L", "the path command 'L' needs 2 numbers at 'L': add them."),
        ("M0 0L1 1 2", "the path command 'L' needs 2 numbers at '2': add them."),
        ("M0 0L1,,1", "the path command 'L' needs 2 numbers at 'L1,,1': add them."),
        ("M0 0C1 2 3 4 5 L1 1", "the path command 'C' needs 6 numbers at 'C1 2 3 4 5 L1 1': add them."),
        ("M0 0A1 1 0 2 0 1 1", "the path command 'A' needs 7 numbers at 'A1 1 0 2 0 1 1': add them."),
        ("M0 0Lnan 1", "the path command 'L' needs 2 numbers at 'Lnan 1': add them."),
        ("M0 0Linf 1", "the path command 'L' needs 2 numbers at 'Linf 1': add them."),
        ("M0 0L٣ 1", "the path command 'L' needs 2 numbers at 'L٣ 1': add them."),
        ("L0 0", "the path starts with the command 'L': it must start with M."),
        (" 0 0", "the path has no command at '0 0': write one there, such as M."),
        ("M0 0z1 1", "the path has no command at '1 1': write one there, such as M."),
        ("M0 0L1e13 0", "the number '1e13' is too large: scale the drawing down first."),
        ("M0 0L-1e999 0", "the number '-1e999' is too large: scale the drawing down first."),
    ],
)
def test_a_mistake_in_a_path_gets_its_sentence_and_line(path: str, sentence: str) -> None:
    with pytest.raises(InputError) as problem:
        draw(f'{LINE}\n\n<path\n d="{path}"/>')
    assert str(problem.value) == f"line 3: {sentence}"


@pytest.mark.parametrize(
    ("element", "sentence"),
    [
        ('<polyline points="1 1 2"/>', "the path command 'L' needs 2 numbers at '2': add them."),
        ('<polygon points="1 1 L 2 2"/>', "the points cannot be read at 'L 2 2': write only numbers."),
        ('<line x2="50%"/>', "x2='50%' is not a length: give a number, or one in px, mm or cm."),
        ('<circle r="nan"/>', "r='nan' is not a length: give a number, or one in px, mm or cm."),
        ('<rect width="1e400"/>', "the number '1e400' is too large: scale the drawing down first."),
        ('<g transform="scale(2"/>', "the transform cannot be read at 'scale(2': correct it there."),
        ('<g transform="scale(2) 5"/>', "the transform cannot be read at '5': correct it there."),
        ('<g transform="zoom(2)"/>', f"the transform 'zoom' of 1 numbers is not one of SVG's: use {KINDS}."),
        ('<g transform="rotate(1 2)"/>', f"the transform 'rotate' of 2 numbers is not one of SVG's: use {KINDS}."),
        (
            '<g transform="rotate(4deg)"/>',
            "the transform's numbers '4deg' are not a list of six at most: correct them.",
        ),
        (
            '<g transform="matrix(1 2 3 4 5 6 7 8 9 10)"/>',
            "the transform's numbers '1 2 3 4 5 6 7 8 9 10' are not a list of six at most: correct them.",
        ),
    ],
)
def test_a_mistake_in_a_shape_or_transform_gets_its_sentence(element: str, sentence: str) -> None:
    with pytest.raises(InputError) as problem:
        draw(element)
    assert str(problem.value) == f"line 1: {sentence}"


@pytest.mark.parametrize(
    "elements",
    [
        f'<path d="M0 0{" 1 1" * MAX_POINTS}"/>'.replace(" 1 1 1 1", " 1 1 2 2"),
        f'<path d="{"M1 1" * (MAX_POINTS + 2)}"/>',
        f'<polyline points="{"1 1 2 2 " * MAX_POINTS}"/>',
        '<path d="M0 0L9 9"/>' * (MAX_POINTS // 2 + 1),
        '<circle r="5"/>' * (MAX_POINTS // 16),
    ],
    ids=["lines", "moves", "points", "paths", "curves"],
)
def test_too_many_points_are_refused(elements: str) -> None:
    with pytest.raises(
        InputError, match=rf"the drawing has more than {MAX_POINTS:,} points: simplify its strokes first\."
    ):
        draw(elements)


def test_as_many_points_as_allowed_are_read() -> None:
    (stroke,) = draw_path("M0 0" + "L1 1L2 2" * (MAX_POINTS // 2 - 1) + "L1 1")
    assert len(stroke) == MAX_POINTS


@pytest.mark.parametrize("transform", ["scale(1e12)" * 40, "scale(1e12)" * 40 + "scale(0)", "skewX(90)skewY(90)" * 10])
def test_coordinates_that_overflow_are_refused(transform: str) -> None:
    with pytest.raises(InputError, match=r"coordinates are too large once transformed: scale it down first\."):
        draw(f'<g transform="{transform}"><line x2="1" y2="1"/></g>')


@pytest.mark.parametrize("path", ["M1 1z", "M0 0C5e-324 0 5e-324 5e-324 0 0", "M1e12 0a1e12 1e-24 33 0 1 1e-4 0"])
def test_a_drawing_that_is_a_point_is_refused(path: str) -> None:
    with pytest.raises(InputError, match="the drawing is a single point"):
        draw_path(path)


def read_or_refuse(data: bytes) -> None:
    try:
        sketch = sketch_from_svg(data)
    except InputError as problem:
        assert re.fullmatch(r".+\.", str(problem), re.DOTALL)  # noqa: PT017 - either outcome is right
        return
    assert sketch.points is not None
    assert np.isfinite(sketch.points).all()
    assert len(sketch.points) <= MAX_POINTS


WHOLE = TU_BERLIN.replace(
    "</g></g></svg>",
    """</g><path d="m1e2-3.5.5h4v-3s1 2 3 4t5 5q1,2 3 4 5 6 7 8a5 6 30 1150 9z"/><rect width="3mm" height="4" rx="1"/>
    <circle cx="5" r="3" style="display:block"/><ellipse rx="4" ry="2" transform="rotate(30 1 2) skewX(5)"/>
    <polygon points="1,2 3,4 5 6" transform="matrix(1 0 0 1 5 5)"/><defs><line x2="4"/></defs></g></svg>""",
).encode()
SNIPPETS = [b'"', b"<", b">", b"/>", b"<g>", b"</g>", b"e", b"e999", b"-", b".", b"1e12", b"9" * 400, b"z", b"a", b"M"]
SNIPPETS += [b"\0", b"\xff", b"&x;", b"<!--", b"(", b")", b"1e-320", b"0", b" ", b"<svg>", b"nan", b"%", b"scale(1e12)"]


@given(st.binary() | st.text().map(str.encode) | st.binary().map(lambda data: b"<svg>" + data + b"</svg>"))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    read_or_refuse(data)


@given(
    st.lists(st.tuples(st.integers(0, len(WHOLE)), st.integers(0, 9), st.sampled_from([b"", *SNIPPETS])), max_size=6)
)
def test_a_damaged_drawing_is_read_or_refused(damages: list[tuple[int, int, bytes]]) -> None:
    data = WHOLE
    for position, length, snippet in damages:
        data = data[:position] + snippet + data[position + length :]
    read_or_refuse(data)


@given(
    st.lists(st.sampled_from(["1e12 ", "-1e12,", "1e-320 ", "0 ", "1", ".5", "-3 ", "1 1 ", *"MmLlHhVvCcSsQqTtAaZz"])),
    st.lists(
        st.sampled_from(["scale(1e12)", "scale(1e-12)", "scale(0 1)", "rotate(1e12 1e12 3)", "skewX(90)", "scale(-1)"])
    ),
)
def test_any_path_data_is_read_or_refused(path: list[str], transform: list[str]) -> None:
    shape = f'<path d="M3 4{"".join(path)}" transform="{"".join(transform)}"/>'
    read_or_refuse(f"<svg>{shape}</svg>".encode())


@pytest.mark.parametrize(
    "background",
    [
        '<rect width="100%" height="100%" fill="white"/>',
        '<rect width="900" height="900" fill="#FFF" stroke="none"/>',
        '<rect width="900" height="900" style="fill: rgb(255, 255, 255); stroke:#ffffff"/>',
        '<g fill="none"><path d="M0 0h900v900z"/></g>',
        '<g stroke="none"><g fill="white"><circle r="900"/></g></g>',
    ],
)
def test_white_paper_is_not_drawn(background: str) -> None:
    lines = '<g fill="none" stroke="black"><path d="M1 1L5 9"/><path style="stroke: red" d="M2 2L3 3"/></g>'
    with_it, without = (sketch_from_svg(f"<svg>{part}{lines}</svg>".encode()) for part in (background, ""))
    assert [stroke.tolist() for stroke in with_it.strokes] == [stroke.tolist() for stroke in without.strokes]
    assert len(without.strokes) == 2


def test_a_white_line_on_a_dark_shape_is_left_out_and_the_shape_stays() -> None:
    sketch = sketch_from_svg(b"<svg><rect width='9' height='9'/><path stroke='white' fill='none' d='M1 1L5 5'/></svg>")
    assert len(sketch.strokes) == 1
