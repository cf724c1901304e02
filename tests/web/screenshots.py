"""Draws the pictures of the page that the documentation shows: `python -m tests.web.screenshots`."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, expect

from benchmarks.photographs import take_photograph
from dabnet.sketches import read_sketch

from .conftest import start
from .pad import ROOT, SIZES, Pad, new_context, run_browser
from .test_page_exchange import give

IMAGES = ROOT / "docs" / "images"
GAP = 24
COLOURS = 96


def open_pad(browser: Browser, address: str, size: str, scheme: Literal["light", "dark"]) -> Pad:
    context = new_context(browser, size, color_scheme=scheme)
    return Pad(context).open(address)


def shoot(pad: Pad) -> Image.Image:
    pad.page.mouse.move(0, 0)
    pad.page.evaluate("scrollTo(0, 0)")
    pad.page.wait_for_timeout(400)  # bars glide to their length
    image = Image.open(io.BytesIO(pad.page.screenshot())).convert("RGB")
    pad.page.context.close()
    return image


def save(image: Image.Image, path: Path) -> None:
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")


def draw_example(pad: Pad, name: str) -> None:
    pad.page.locator(f"[data-example={name}]").click()
    expect(pad.at("headline")).to_have_text(name)


def drawn(browser: Browser, address: str) -> Image.Image:
    """Return the page with a drawing, and what the network sees of it."""
    pad = open_pad(browser, address, "desktop", "light")
    draw_example(pad, "cat")
    pad.at("see").check()
    pad.seen()
    return shoot(pad)


def playing(browser: Browser, address: str) -> Image.Image:
    """Return the page in the dark, where the network has just guessed what was to be drawn."""
    pad = open_pad(browser, address, "desktop", "dark")
    pad.at("play").click()
    while pad.at("card-title").inner_text() != "umbrella":
        pad.at("play").click()  # stop, and begin again
        pad.at("play").click()
    pad.at("go").click()
    pad.draw_example("umbrella")
    expect(pad.at("card-title")).to_have_text("I see it: umbrella!")
    return shoot(pad)


def photographed(browser: Browser, address: str) -> Image.Image:
    """Return the page with a photograph, and what the network sees of it."""
    pad = open_pad(browser, address, "desktop", "light")
    sketch = read_sketch(ROOT / "examples" / "cactus.json")
    give(pad, "drop", "photo.jpg", "image/jpeg", take_photograph(sketch, "shadow", "marker", np.random.default_rng(25)))
    expect(pad.at("headline")).to_have_text("cactus")
    pad.seen()
    return shoot(pad)


def phones(browser: Browser, address: str) -> Image.Image:
    """Return the page on three phones."""
    shots = []
    for size, name in {"phone": "snail", "small": "teapot", "sideways": "star"}.items():
        pad = open_pad(browser, address, size, "dark" if size == "small" else "light")
        draw_example(pad, name)
        viewport = SIZES[size][0]
        shots.append(shoot(pad).resize((viewport["width"], viewport["height"]), Image.Resampling.LANCZOS))
    width = sum(shot.width + GAP for shot in shots) + GAP
    sheet = Image.new("RGB", (width, max(shot.height for shot in shots) + 2 * GAP), "#9a9a9a")
    left = GAP
    for shot in shots:
        sheet.paste(shot, (left, GAP))
        left += shot.width + GAP
    return sheet


PICTURES = {"pad": drawn, "pad-game": playing, "pad-photograph": photographed, "pad-phones": phones}


def main() -> None:
    with start() as server, run_browser() as browser:
        for name, draw in PICTURES.items():
            save(draw(browser, server.address), IMAGES / f"{name}.png")


if __name__ == "__main__":
    main()
