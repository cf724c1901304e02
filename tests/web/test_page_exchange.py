"""What comes into the page and goes out of it: pictures, links, the browser's storage, examples."""

from __future__ import annotations

import base64
import io
import json
import re

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

import dabnet
from dabnet.sketches import read_sketch

from .pad import HOUSE, ROOT, Pad, expected

TREE = ROOT / "examples" / "tree.png"
GIVE = """([way, name, type, base64]) => {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const data = new DataTransfer();
    data.items.add(new File([bytes], name, { type }));
    const event = way === "drop"
        ? new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true })
        : new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
    document.getElementById("canvas").dispatchEvent(event);
    return event.defaultPrevented;
}"""


def give(pad: Pad, way: str, name: str, kind: str, content: bytes) -> bool:
    """Open, drop or paste a file."""
    if way == "open":
        with pad.page.expect_file_chooser() as chooser:
            pad.at("open").click()
        chooser.value.set_files({"name": name, "mimeType": kind, "buffer": content})
        return True
    return bool(pad.page.evaluate(GIVE, [way, name, kind, base64.b64encode(content).decode()]))


def test_pictures_are_opened_dropped_and_pasted_and_what_the_network_saw_stands_beside(pad: Pad) -> None:
    pad.draw(HOUSE[0])
    drawn = pad.guesses()
    recognizer = dabnet.Recognizer.load()
    labels = [label for label, _ in recognizer.recognize(TREE)]
    shown = recognizer.show([read_sketch(TREE)])[0, 0]
    for way in ("open", "drop", "paste"):
        assert give(pad, way, "tree.png", "image/png", TREE.read_bytes()) or way == "paste"
        expect(pad.labels().first).to_have_text(labels[0])
        assert list(pad.guesses()) == labels
        expect(pad.at("seen")).to_be_visible()
        assert np.abs(pad.seen() - shown).max() < 0.01
        assert pad.ink() > 10_000
        expect(pad.at("share")).to_be_disabled()
        pad.page.keyboard.press("Control+z")
        expect(pad.at("seen")).to_be_hidden()
        assert pad.guesses() == drawn
    pad.page.keyboard.press("Control+y")
    expect(pad.labels().first).to_have_text(labels[0])
    pad.draw(HOUSE[0])  # a new drawing takes the picture's place
    expect(pad.at("seen")).to_be_hidden()
    assert len(pad.strokes()) == 1


def test_large_pictures_are_shrunk_and_files_of_strokes_are_opened(pad: Pad) -> None:
    large = io.BytesIO()
    with Image.open(ROOT / "examples" / "snowman.png") as picture:
        picture.convert("L").resize((3000, 2400)).save(large, "PNG")
    give(pad, "drop", "large.png", "image/png", large.getvalue())
    expect(pad.at("headline")).to_have_text("snowman")
    umbrella = ROOT / "examples" / "umbrella.json"
    give(pad, "open", "umbrella.json", "application/json", umbrella.read_bytes())
    expect(pad.at("headline")).to_have_text("umbrella")
    assert len(pad.strokes()) == len(json.loads(umbrella.read_text())["strokes"])
    assert all(0 <= value <= 1000 for stroke in pad.strokes() for point in stroke for value in point)


@pytest.mark.parametrize(
    ("name", "kind", "content", "sentence"),
    [
        ("a.png", "image/png", b"not a picture", "The picture cannot be decoded"),
        ("a.png", "image/png", b"", "The picture cannot be decoded"),
        ("a.txt", "text/plain", b"tree", "Open a PNG, JPEG, WebP, GIF or BMP"),
        ("a.svg", "image/svg+xml", b"<svg onload='alert(1)'/>", "Open a PNG, JPEG, WebP, GIF or BMP"),
        ("a.json", "application/json", b"{", "It is not JSON."),
        ("a.json", "application/json", b'{"strokes": [[[1]]]}', "There are no strokes in it"),
        ("a.json", "application/json", b'{"strokes": []}', "There are no strokes in it"),
        ("a.json", "application/json", b'{"strokes": [[[1, 1e400]]]}', "There are no strokes in it"),
        ("a.json", "", b"null", "There are no strokes in it"),
    ],
)
def test_a_file_that_holds_no_drawing_is_told_and_changes_nothing(
    desktop: Pad, name: str, kind: str, content: bytes, sentence: str
) -> None:
    desktop.draw(HOUSE[0])
    before = desktop.guesses()
    give(desktop, "drop", name, kind, content)
    expect(desktop.at("notice")).to_contain_text(sentence)
    assert desktop.guesses() == before
    desktop.draw(HOUSE[1])
    expect(desktop.at("notice")).to_be_hidden()


def test_a_picture_without_lines_is_told(desktop: Pad) -> None:
    blank = io.BytesIO()
    Image.new("L", (100, 100), 255).save(blank, "PNG")
    give(desktop, "paste", "blank.png", "image/png", blank.getvalue())
    expect(desktop.at("headline")).to_have_text("That did not work")
    expect(desktop.at("remark")).to_have_text(re.compile(r"^\w.+ .+ .+$"))
    desktop.page.keyboard.press("Control+z")
    desktop.expect_empty()


def test_a_link_holds_the_drawing_and_nothing_is_sent(pad: Pad) -> None:
    pad.draw(*HOUSE)
    pad.at("pen").fill("20")
    found, strokes = pad.guesses(), pad.strokes()
    pad.requests.clear()
    pad.at("share").click()
    link = pad.at("link").input_value()
    address, _, fragment = link.partition("#")
    assert address == pad.page.url
    assert fragment.startswith("draw=1")
    assert len(fragment) < 150
    pad.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    pad.at("copy").click()
    expect(pad.at("copied")).to_have_text("Copied.")
    assert pad.page.evaluate("navigator.clipboard.readText()") == link
    pad.page.get_by_role("button", name="Close").click()
    expect(pad.at("sharing")).to_be_hidden()
    assert pad.requests == []

    pad.at("clear").click()
    pad.draw(HOUSE[2])
    mine = pad.guesses()
    pad.page.goto("about:blank")
    pad.page.goto(link)
    first = next(iter(found))
    assert next(iter(pad.guesses())) == first
    for end in (0, -1):
        ends, ends_before = (np.array([stroke[end] for stroke in each]) for each in (pad.strokes(), strokes))
        assert np.abs(ends - ends_before).max() <= 0.5
    assert pad.at("pen").input_value() == "20"
    assert pad.page.url == address  # a reload keeps what was drawn since
    pad.page.keyboard.press("Control+z")  # and what was there before is not lost
    assert pad.guesses() == mine
    pad.page.evaluate("(fragment) => { location.hash = fragment; }", fragment)
    expect(pad.labels().first).to_have_text(first)
    assert len(pad.strokes()) == 3


BAD_LINKS = {
    "nothing": "",
    "another version": "2Dh_wAY4I",
    "no base64": "1<script>alert(1)</script>",
    "cut short": "1Dh_wAY4IBEcORRRDHEMkPyo7",
    "no strokes' end": "1Dv8",
    "a stroke of nothing": "1DgAA",
    "points off the paper": "1DgH-fwA",
    "a number without end": "1" + "_" * 40,
    "a bad length": "1A",
    "far too long": "1" + "D" * 100_000,
}


@pytest.mark.parametrize("text", BAD_LINKS.values(), ids=BAD_LINKS)
def test_a_strangers_link_that_is_broken_is_told_and_harms_nothing(desktop: Pad, text: str) -> None:
    desktop.draw(HOUSE[0])
    before, strokes = desktop.guesses(), desktop.strokes()
    address = desktop.page.url
    desktop.page.goto("about:blank")
    desktop.page.goto(f"{address}#draw={text}")
    expect(desktop.at("notice")).to_contain_text("The link is broken.")
    assert desktop.guesses() == before
    assert desktop.strokes() == strokes
    assert desktop.page.url == address


def test_a_drawing_too_large_for_a_link_is_told(desktop: Pad) -> None:
    dots = [[[x * 377 % 1000, x * 613 % 1000]] for x in range(1990)]
    give(desktop, "drop", "dots.json", "application/json", json.dumps({"strokes": dots}).encode())
    expect(desktop.at("share")).to_be_enabled()
    desktop.at("share").click()
    expect(desktop.at("notice")).to_contain_text("too large for a link: save it as JSON")
    expect(desktop.at("sharing")).to_be_hidden()


def test_a_reload_keeps_the_drawing_and_the_pen(pad: Pad) -> None:
    pad.draw(*HOUSE[:2])
    pad.at("pen").fill("30")
    found, strokes, ink = pad.guesses(), pad.strokes(), pad.ink()
    pad.page.reload()
    assert pad.guesses() == found
    assert pad.strokes() == strokes
    assert pad.ink() == ink
    assert pad.at("pen").input_value() == "30"


def test_damaged_storage_is_empty_paper(desktop: Pad) -> None:
    for stored in ("{", '{"strokes": [[[1, "2"]]]}', '{"strokes": [[[1, 1e9]]]}', "null"):
        desktop.page.evaluate("(stored) => localStorage.setItem('dabnet.drawing', stored)", stored)
        desktop.page.reload()
        desktop.expect_empty()
        assert desktop.ink() == 0


def test_examples_are_recognized_and_drawn_on(pad: Pad) -> None:
    names = pad.page.locator("[data-example]").evaluate_all("(all) => all.map((each) => each.dataset.example)")
    assert len(names) == 8
    for name in names:
        pad.page.locator(f"[data-example={name}]").click()
        expect(pad.at("headline")).to_have_text(name)
        assert list(pad.guesses()) == expected(pad.strokes())
        pad.page.keyboard.press("Control+z")
        pad.expect_empty()
    pad.page.keyboard.press("Control+y")
    pad.draw(HOUSE[0])
    assert len(pad.strokes()) > 1
