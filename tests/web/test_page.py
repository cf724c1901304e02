"""The page in a real browser: Debian's Chromium, driven by Playwright. Screenshots are kept in build/screenshots."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect, sync_playwright

import dabnet
from dabnet.sketches import read_sketch

from .conftest import Server

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DESKTOP, PHONE = ViewportSize(width=1200, height=800), ViewportSize(width=390, height=844)

Stroke = list[tuple[float, float]]
HOUSE: list[Stroke] = [
    [(0.15, 0.5), (0.5, 0.12), (0.85, 0.5)],
    [(0.22, 0.45), (0.22, 0.88), (0.78, 0.88), (0.78, 0.45)],
    [(0.43, 0.88), (0.43, 0.62), (0.57, 0.62), (0.57, 0.88)],
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        problem = "there is no Chromium: scripts/system-packages test installs it where it may"
        pytest.fail(problem) if os.environ.get("CI") else pytest.skip(problem)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        arguments = ["--headless", "--no-sandbox", "--disable-gpu"]
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture(params=[("desktop", DESKTOP, "light"), ("phone", PHONE, "dark")], ids=["desktop", "phone"])
def page(request: pytest.FixtureRequest, browser: Browser, server: Server) -> Iterator[Page]:
    """The page as it is opened first; whatever is wrong in its console fails the test."""
    name, viewport, scheme = request.param
    is_phone = name == "phone"
    context = browser.new_context(
        viewport=viewport, color_scheme=scheme, has_touch=is_phone, device_scale_factor=1 + is_phone
    )
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(server.address)
    expect(page.locator("#knows summary")).to_contain_text("It knows")
    yield page
    page.screenshot(path=SCREENSHOTS / f"{request.node.name.replace('[', '-').strip(']')}.png", full_page=True)
    context.close()
    assert problems == []


def draw(page: Page, stroke: Stroke) -> None:
    box = page.locator("#canvas").bounding_box()
    assert box is not None
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in stroke]
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point, steps=4)
    page.mouse.up()


def until(page: Page, condition: str) -> None:
    """Wait for a condition in the page; the page's own policy lets nobody poll from inside."""
    end = time.monotonic() + 15
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(20)


def guesses(page: Page) -> Locator:
    return page.locator("#guesses .label").filter(has_text=re.compile(r"\w"))


def wait_for_guesses(page: Page) -> dict[str, str]:
    """Wait for the answer to the drawing as it is; return what the page shows of it."""
    expect(guesses(page)).to_have_count(5)
    until(page, "!asking && !again")
    rows = zip(guesses(page).all_inner_texts(), page.locator("#guesses .share").all_inner_texts(), strict=True)
    return dict(rows)


def expected(page: Page) -> list[str]:
    """What Python says of the strokes that the page has."""
    return [label for label, _ in dabnet.Recognizer.load().recognize(page.evaluate("strokes"))]


def test_every_stroke_is_guessed_and_undone(page: Page) -> None:
    labels = dabnet.Recognizer.load().labels
    expect(page.locator("#undo")).to_be_disabled()
    seen = []
    for count, stroke in enumerate(HOUSE, start=1):
        draw(page, stroke)
        assert page.evaluate("strokes.length") == count
        found = wait_for_guesses(page)
        assert list(found) == expected(page)
        assert set(found) <= set(labels)
        assert all(re.fullmatch(r"(< 0\.1|\d+(\.\d)?) %", share) for share in found.values())
        expect(page.locator("#time")).to_have_text(re.compile(r"^\d+\.\d ms to recognize, \d+ ms there and back$"))
        expect(page.locator("#spoken")).not_to_be_empty()
        seen.append(found)
    assert len({tuple(found.items()) for found in seen}) == 3
    sure = page.evaluate("at('guesses').classList.contains('sure')")
    expect(page.locator("#headline")).to_have_text(next(iter(seen[2])) if sure else "Not sure yet")

    for found in reversed(seen[:2]):
        page.locator("#undo").click()
        assert wait_for_guesses(page) == found
    page.locator("#undo").click()
    expect(guesses(page)).to_have_count(0)
    expect(page.locator("#headline")).to_have_text("What will it be?")


def test_clear_wipes_the_drawing_and_undo_brings_it_back(page: Page) -> None:
    draw(page, HOUSE[0])
    found = wait_for_guesses(page)
    ink = "paper.getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value)"
    assert page.evaluate(ink)
    page.locator("#clear").click()
    expect(guesses(page)).to_have_count(0)
    until(page, f"!({ink})")
    expect(page.locator("#clear")).to_be_disabled()
    page.keyboard.press("Control+z")
    assert wait_for_guesses(page) == found


def test_the_drawing_is_downloaded_and_recognized_alike(page: Page, tmp_path: Path) -> None:
    for stroke in HOUSE:
        draw(page, stroke)
    first = next(iter(wait_for_guesses(page)))
    for name in ("png", "json"):
        with page.expect_download() as download:
            page.locator(f"#{name}").click()
        assert download.value.suggested_filename == f"drawing.{name}"
        download.value.save_as(tmp_path / f"drawing.{name}")
    strokes = json.loads((tmp_path / "drawing.json").read_text())["strokes"]
    assert len(strokes) == 3
    assert strokes[0][0] == pytest.approx([150, 500], abs=3)
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


def test_it_shows_what_the_network_sees(page: Page) -> None:
    draw(page, HOUSE[0])
    expect(page.locator("#seen")).to_be_hidden()
    page.locator("#see").check()
    expect(page.locator("#seen")).to_be_visible()
    _, height, width = dabnet.Recognizer.load().input_size
    until(page, f"at('seen').width === {width} && at('seen').height === {height}")
    pixels = "at('seen').getContext('2d').getImageData(0, 0, at('seen').width, at('seen').height).data"
    until(page, f"{pixels}.some((value, i) => i % 4 === 0 && value > 200)")  # the red of a white line


def test_it_is_drawn_and_operated_by_the_keyboard(page: Page) -> None:
    page.locator("#canvas").focus()
    for key in ("Space", *["Shift+ArrowRight"] * 4, *["Shift+ArrowDown"] * 4, "Space"):
        page.keyboard.press(key)
    assert page.evaluate("strokes.map((stroke) => stroke.length)") == [9]
    assert page.evaluate("strokes[0].at(-1)") == [740, 740]
    wait_for_guesses(page)
    expect(page.locator("#spoken")).to_contain_text("%")
    page.keyboard.press("n")
    expect(page.locator("#see")).to_be_checked()
    width = page.evaluate("at('pen').valueAsNumber")
    page.keyboard.press("]")
    assert page.evaluate("at('pen').valueAsNumber") > width
    with page.expect_download():
        page.keyboard.press("p")
    page.keyboard.press("c")
    expect(guesses(page)).to_have_count(0)
    page.keyboard.press("z")
    wait_for_guesses(page)
    reached = set()
    for _ in range(10):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert {"undo", "clear", "pen", "png", "json", "see", "SUMMARY"} <= reached


def test_every_control_has_a_name(page: Page) -> None:
    draw(page, HOUSE[0])
    for name in ("Undo", "Clear", "Download PNG", "Download strokes as JSON"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_enabled()
    expect(page.get_by_role("slider", name="Pen width")).to_be_visible()
    expect(page.get_by_role("switch", name="Show what the network sees")).not_to_be_checked()
    expect(page.get_by_role("application", name="Drawing area")).to_have_accessible_description(
        re.compile("Arrow keys")
    )
    expect(page.get_by_role("list").first.get_by_role("listitem")).to_have_count(5)


def test_nothing_moves_when_guesses_come_and_nothing_is_wider_than_the_screen(page: Page) -> None:
    everything = "[...document.querySelectorAll('section, #guesses li, footer, button')]"
    positions = f"{everything}.map((element) => element.getBoundingClientRect().y)"
    before = page.evaluate(positions)
    for stroke in HOUSE:
        draw(page, stroke)
        wait_for_guesses(page)
        assert page.evaluate(positions) == before
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    small = page.evaluate(
        "[...document.querySelectorAll('button, .switch, .pen')].map((e) => e.getBoundingClientRect().height)"
    )
    assert min(small) >= 44


def test_a_finger_draws_and_a_dot_is_no_drawing_yet(browser: Browser, server: Server) -> None:
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(server.address)
    page.locator("#canvas").tap()
    assert page.evaluate("strokes.map((stroke) => stroke.length)") == [1]
    expect(page.locator("#headline")).to_have_text("What will it be?")
    box = page.locator("#canvas").bounding_box()
    assert box is not None
    session = context.new_cdp_session(page)
    points = [{"x": box["x"] + 20 + 10 * i, "y": box["y"] + 30 + 5 * i} for i in range(20)]
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": points[:1]})
    for point in points[1:]:
        session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [point]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    wait_for_guesses(page)
    assert page.evaluate("strokes[1].length") > 10
    assert page.evaluate("scrollY") == 0
    context.close()


def test_a_server_that_is_gone_is_told_kindly(browser: Browser, server: Server) -> None:
    context = browser.new_context(viewport=DESKTOP)
    page = context.new_page()
    page.goto(server.address)
    page.route("**/v1/recognize", lambda route: route.abort())
    draw(page, HOUSE[0])
    expect(page.locator("#remark")).to_have_text("The server does not answer. Is it still running?")
    page.unroute("**/v1/recognize")
    draw(page, HOUSE[1])
    wait_for_guesses(page)
    context.close()
