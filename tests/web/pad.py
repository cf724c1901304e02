"""The page in a real browser: how tests open it, draw on it and read it. Screenshots are in build/screenshots."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Browser, BrowserContext, Locator, Page, ViewportSize, expect, sync_playwright

import dabnet

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "build" / "screenshots"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SIZES: dict[str, tuple[ViewportSize, Literal["light", "dark"]]] = {
    "desktop": (ViewportSize(width=1280, height=800), "light"),
    "phone": (ViewportSize(width=390, height=844), "dark"),
    "sideways": (ViewportSize(width=844, height=390), "light"),
    "small": (ViewportSize(width=320, height=640), "dark"),
}

Stroke = list[tuple[float, float]]
HOUSE: list[Stroke] = [
    [(0.15, 0.5), (0.5, 0.12), (0.85, 0.5)],
    [(0.22, 0.45), (0.22, 0.88), (0.78, 0.88), (0.78, 0.45)],
    [(0.43, 0.88), (0.43, 0.62), (0.57, 0.62), (0.57, 0.88)],
]
SEEN = """() => {
    const { width, height } = document.getElementById("seen");
    const { data } = document.getElementById("seen").getContext("2d").getImageData(0, 0, width, height);
    return { width, height, values: Array.from(data).filter((_, i) => i % 4 === 0) };
}"""


@contextlib.contextmanager
def run_browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        problem = "there is no Chromium: scripts/system-packages test installs it where it may"
        pytest.fail(problem) if os.environ.get("CI") else pytest.skip(problem)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        arguments = ["--headless", "--no-sandbox", "--disable-gpu"]
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        chromium.close()


def new_context(browser: Browser, size: str, **options: Any) -> BrowserContext:
    viewport, scheme = SIZES[size]
    is_phone = size != "desktop"
    return browser.new_context(
        **{"viewport": viewport, "color_scheme": scheme, "has_touch": is_phone, "device_scale_factor": 1 + is_phone}
        | options
    )


class Pad:
    """The page, opened; `problems` is whatever is wrong in its console."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda said: self.problems.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, address: str) -> Pad:
        self.page.goto(address)
        expect(self.page.locator("#knows summary")).to_contain_text("It knows")
        return self

    def at(self, name: str) -> Locator:
        return self.page.locator(f"#{name}")

    def positions(self, stroke: Stroke) -> list[tuple[float, float]]:
        """Return where points of the paper, from 0 to 1, are on the screen."""
        box = self.at("canvas").bounding_box()
        assert box is not None
        return [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in stroke]

    def draw(self, *strokes: Stroke, lift: bool = True, steps: int = 4) -> None:
        for stroke in strokes:
            first, *rest = self.positions(stroke)
            self.page.mouse.move(*first)
            self.page.mouse.down()
            for position in rest:
                self.page.mouse.move(*position, steps=steps)
            if lift:
                self.page.mouse.up()

    def draw_example(self, name: str) -> None:
        """Draw one of the repository's examples with the mouse."""
        strokes = json.loads((ROOT / "examples" / f"{name}.json").read_text())
        strokes = strokes["strokes"] if isinstance(strokes, dict) else strokes
        self.draw(*([(0.1 + 0.8 * x / 100, 0.1 + 0.8 * y / 100) for x, y in stroke] for stroke in strokes), steps=1)

    def until(self, condition: str, *arguments: Any) -> None:
        """Wait for a condition in the page; the page's own policy lets nobody poll from inside."""
        end = time.monotonic() + 15
        while not self.page.evaluate(condition, *arguments):
            assert time.monotonic() < end, condition
            self.page.wait_for_timeout(10)

    def strokes(self) -> list[list[list[float]]]:
        """Return the strokes as the page keeps them for its next visit."""
        found: list[list[list[float]]] = self.page.evaluate(
            "JSON.parse(localStorage.getItem('dabnet.drawing')).strokes"
        )
        return found

    def guesses(self) -> dict[str, str]:
        """Wait for the answer to the drawing as it is; return what the page shows of it."""
        expect(self.labels()).to_have_count(5)
        expect(self.at("guesses")).to_have_attribute("aria-busy", "false")
        shares = self.page.locator("#guesses .share").all_inner_texts()
        return dict(zip(self.labels().all_inner_texts(), shares, strict=True))

    def labels(self) -> Locator:
        return self.page.locator("#guesses .label").filter(has_text=re.compile(r"\w"))

    def expect_empty(self) -> None:
        expect(self.labels()).to_have_count(0)
        expect(self.at("headline")).to_have_text("What will it be?")

    def ink(self) -> int:
        """Return how many pixels of the paper are painted."""
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        count: int = self.page.evaluate(
            """() => {
                const canvas = document.getElementById("canvas");
                const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
                return data.filter((value, i) => i % 4 === 3 && value > 0).length;
            }"""
        )
        return count

    def seen(self) -> NDArray[np.float64]:
        """Return what the page shows of what the network sees, as soon as it does."""
        self.until(f"({SEEN})().values.some((value) => value > 200)")
        found = self.page.evaluate(SEEN)
        return np.array(found["values"]).reshape(found["height"], found["width"]) / 255


def expected(strokes: list[list[list[float]]]) -> list[str]:
    """Return what Python says of strokes."""
    return [label for label, _ in dabnet.Recognizer.load().recognize(strokes)]
