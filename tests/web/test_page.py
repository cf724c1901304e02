"""The page that the server serves, at four sizes: drawing, guesses, and everything that people expect of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, expect

import dabnet
from dabnet.sketches import read_sketch

from .conftest import Server
from .pad import HOUSE, Pad, expected, new_context


def test_every_stroke_is_guessed_undone_and_redone(pad: Pad) -> None:
    expect(pad.at("undo")).to_be_disabled()
    seen = []
    for count, stroke in enumerate(HOUSE, start=1):
        pad.draw(stroke)
        found = pad.guesses()
        assert len(pad.strokes()) == count
        assert list(found) == expected(pad.strokes())
        assert all(re.fullmatch(r"(< 0\.1|\d+(\.\d)?) %", share) for share in found.values())
        expect(pad.at("time")).to_have_text(re.compile(r"^\d+\.\d ms to recognize$"))
        expect(pad.at("spoken")).not_to_be_empty()
        seen.append(found)
    assert len({tuple(found.items()) for found in seen}) == 3
    is_sure = pad.at("guesses").evaluate("(list) => list.classList.contains('sure')")
    expect(pad.at("headline")).to_have_text(next(iter(seen[2])) if is_sure else "Not sure yet")

    expect(pad.at("redo")).to_be_disabled()
    pad.at("undo").click()
    assert pad.guesses() == seen[1]
    pad.page.keyboard.press("Control+z")
    assert pad.guesses() == seen[0]
    for count, redo in ((2, "Control+Shift+Z"), (3, "Control+y")):
        pad.page.keyboard.press(redo)
        assert pad.guesses() == seen[count - 1]
        assert len(pad.strokes()) == count
    pad.at("undo").click()
    pad.at("redo").click()
    assert pad.guesses() == seen[2]

    pad.at("undo").click()
    pad.draw(HOUSE[0])  # what was undone is gone now
    expect(pad.at("redo")).to_be_disabled()
    for _ in range(3):
        pad.page.keyboard.press("Control+z")
    pad.expect_empty()


def test_clear_wipes_the_drawing_and_undo_brings_it_back(pad: Pad) -> None:
    pad.draw(HOUSE[0])
    found = pad.guesses()
    assert pad.ink() > 100
    pad.at("clear").click()
    pad.expect_empty()
    assert pad.ink() == 0
    expect(pad.at("clear")).to_be_disabled()
    pad.page.keyboard.press("Control+z")
    assert pad.guesses() == found


def test_a_click_leaves_a_dot_and_a_dot_is_no_drawing_yet(pad: Pad) -> None:
    assert pad.ink() == 0
    pad.draw([(0.5, 0.5)])
    assert pad.ink() > 20
    assert [len(stroke) for stroke in pad.strokes()] == [1]
    pad.expect_empty()
    expect(pad.at("undo")).to_be_enabled()


def test_guesses_come_while_the_pen_moves(pad: Pad) -> None:
    pad.draw([*HOUSE[1], *HOUSE[0]], lift=False)
    before = pad.guesses()
    for position in pad.positions([(0.5, 0.9), (0.1, 0.1), (0.9, 0.1)]):
        pad.page.mouse.move(*position, steps=5)
    text = "".join(label + share for label, share in before.items())
    pad.until("(before) => document.getElementById('guesses').textContent !== before", text)
    pad.page.mouse.up()
    assert list(pad.guesses()) == expected(pad.strokes())


def test_the_drawing_is_downloaded_and_recognized_alike(pad: Pad, tmp_path: Path) -> None:
    pad.draw(*HOUSE)
    first = next(iter(pad.guesses()))
    for name in ("png", "json"):
        pad.page.locator("#save summary").click()
        with pad.page.expect_download() as download:
            pad.at(name).click()
        expect(pad.at(name)).to_be_hidden()
        assert download.value.suggested_filename == f"drawing.{name}"
        download.value.save_as(tmp_path / f"drawing.{name}")
    strokes = json.loads((tmp_path / "drawing.json").read_text())["strokes"]
    assert len(strokes) == 3
    assert strokes[0][0] == pytest.approx([150, 500], abs=4)
    with Image.open(tmp_path / "drawing.png") as picture:
        assert picture.size == (1000, 1000)
        assert picture.convert("L").getextrema() == (0, 255)
        assert picture.convert("L").getpixel((5, 5)) == 255
    recognizer = dabnet.Recognizer.load()
    assert recognizer.recognize(tmp_path / "drawing.json", top=1)[0][0] == first
    image, strokes_image = (
        recognizer.show([read_sketch(tmp_path / f"drawing.{kind}")]).ravel() for kind in ("png", "json")
    )
    # Their lines, a few pixels wide, are less than one apart.
    assert image @ strokes_image > 0.5 * np.linalg.norm(image) * np.linalg.norm(strokes_image)


def test_it_shows_what_the_network_sees(pad: Pad) -> None:
    pad.draw(HOUSE[0])
    expect(pad.at("seen")).to_be_hidden()
    pad.at("see").check()
    expect(pad.at("seen")).to_be_visible()
    pad.guesses()
    shown = dabnet.Recognizer.load().show([read_sketch(pad.strokes())])[0, 0]
    assert np.abs(pad.seen() - shown).max() < 0.01


def test_it_is_drawn_and_operated_by_the_keyboard(pad: Pad) -> None:
    pad.at("canvas").focus()
    for key in ("Space", *["Shift+ArrowRight"] * 4, *["Shift+ArrowDown"] * 4, "Space"):
        pad.page.keyboard.press(key)
    assert [len(stroke) for stroke in pad.strokes()] == [9]
    assert pad.strokes()[0][-1] == [740, 740]
    pad.guesses()
    expect(pad.at("spoken")).to_contain_text("%")
    pad.page.keyboard.press("n")
    expect(pad.at("see")).to_be_checked()
    width = pad.at("pen").evaluate("(pen) => pen.valueAsNumber")
    pad.page.keyboard.press("]")
    assert pad.at("pen").evaluate("(pen) => pen.valueAsNumber") > width
    with pad.page.expect_download():
        pad.page.keyboard.press("p")
    pad.page.keyboard.press("c")
    pad.expect_empty()
    pad.page.keyboard.press("z")
    pad.guesses()
    pad.page.keyboard.press("z")
    pad.expect_empty()
    pad.page.keyboard.press("y")
    pad.guesses()
    reached = set()
    for _ in range(12):
        pad.page.keyboard.press("Tab")
        reached.add(pad.page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert {"undo", "redo", "clear", "pen", "open", "share", "see", "SUMMARY"} - {"redo"} <= reached


def test_every_control_has_a_name(pad: Pad) -> None:
    pad.draw(HOUSE[0])
    pad.page.locator("#save summary").click()
    for name in ("Undo", "Clear", "Open", "Share", "Download PNG", "Download strokes as JSON", "Play"):
        expect(pad.page.get_by_role("button", name=name, exact=True)).to_be_enabled()
    expect(pad.page.get_by_role("button", name="Redo", exact=True)).to_be_disabled()
    expect(pad.page.get_by_role("slider", name="Pen width")).to_be_visible()
    expect(pad.page.get_by_role("switch", name="Show what the network sees")).not_to_be_checked()
    expect(pad.page.get_by_role("application", name="Drawing area")).to_have_accessible_description(
        re.compile("Arrow keys")
    )
    expect(pad.at("guesses").get_by_role("listitem")).to_have_count(5)
    nameless = pad.page.locator("button:visible").evaluate_all(
        "(all) => all.filter((b) => !(b.ariaLabel ?? b.textContent))"
    )
    assert nameless == []


def test_nothing_moves_overlaps_or_leaves_the_screen(pad: Pad) -> None:
    everything = "[...document.querySelectorAll('section, #guesses li, footer, .tools, .group > button')]"
    heights = f"{everything}.map((element) => element.getBoundingClientRect().y)"
    before = pad.page.evaluate(heights)
    for stroke in HOUSE:
        pad.draw(stroke)
        pad.guesses()
        assert pad.page.evaluate(heights) == before
    width, height = pad.page.evaluate("[innerWidth, innerHeight]")
    assert pad.page.evaluate("document.documentElement.scrollWidth") <= width

    names = ("play", "undo", "redo", "clear", "pen", "open", "share", "save")
    boxes = {name: pad.at(name).bounding_box() for name in names}
    for name, box in boxes.items():
        assert box is not None
        assert box["x"] >= 0, name
        assert box["x"] + box["width"] <= width, name
        assert box["y"] + box["height"] <= height, f"{name} is below the fold"
        assert name == "pen" or min(box["width"], box["height"]) >= 44, name
        for other_name, other in boxes.items():
            assert other is not None
            apart = (
                box["x"] + box["width"] <= other["x"]
                or other["x"] + other["width"] <= box["x"]
                or box["y"] + box["height"] <= other["y"]
                or other["y"] + other["height"] <= box["y"]
            )
            assert name == other_name or apart, (name, other_name)


@pytest.mark.parametrize("size", ["phone", "sideways", "small"])
def test_a_finger_draws_on_the_paper_and_scrolls_beside_it(size: str, browser: Browser, server: Server) -> None:
    context = new_context(browser, size, is_mobile=True)
    pad = Pad(context).open(server.address)
    pad.page.locator("#canvas").tap()
    assert [len(stroke) for stroke in pad.strokes()] == [1]
    session = context.new_cdp_session(pad.page)

    def swipe(points: list[tuple[float, float]]) -> None:
        touches = [{"x": x, "y": y} for x, y in points]
        session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": touches[:1]})
        for touch in touches[1:]:
            session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [touch]})
        session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    swipe(pad.positions([(0.2 + 0.03 * i, 0.7 - 0.03 * i) for i in range(20)]))
    pad.guesses()
    assert len(pad.strokes()[1]) > 10
    assert pad.page.evaluate("scrollY") == 0
    box = pad.at("headline").bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    swipe([(box["x"] + 50, y - 10 * i) for i in range(15)])
    pad.until("scrollY > 30")
    context.close()
    assert pad.problems == []
