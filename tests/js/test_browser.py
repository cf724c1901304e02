"""The npm package in a browser: modules, workers, a strict policy, no network, pages from file://, pictures."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

import dabnet
from js import pack as js_pack

from .conftest import ROOT, lacks

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
POLICY = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'"
ARROW = [[[0, 50], [100, 50]], [[70, 20], [100, 50], [70, 80]]]
SCRIPTS = {
    "page.js": """
        import { Recognizer } from "./dabnet.js";
        globalThis.loaded = Recognizer.load({ wasm: "dabnet.wasm", model: "model.safetensors" });
    """,
    "worker.js": """
        import { Recognizer } from "./dabnet.js";
        const loaded = Recognizer.load({ wasm: "dabnet.wasm", model: "model.safetensors" });
        onmessage = async ({ data }) => {
          const recognizer = await loaded;
          const is_image = data instanceof Blob;
          postMessage(is_image ? await recognizer.recognizeImage(data) : recognizer.recognize(data));
        };
    """,
}


@pytest.fixture(scope="module")
def site(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package's files, with pages that use them."""
    folder = tmp_path_factory.mktemp("site") / "package"
    js_pack.lay_out(folder)
    for name, script in SCRIPTS.items():
        (folder / name).write_text(script)
    (folder / "favicon.ico").touch()
    (folder / "index.html").write_text('<!doctype html><script type="module" src="page.js"></script>')
    (folder / "classic.html").write_text(
        '<!doctype html><script src="dabnet.classic.js"></script><script src="model.classic.js"></script>'
    )
    shutil.copy(ROOT / "examples" / "tree.png", folder)
    return folder


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files with a policy, unless a page of ours has its script in it."""

    def end_headers(self) -> None:
        if self.path != "/example.html":
            self.send_header("content-security-policy", POLICY)
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        lacks("there is no Chromium: scripts/system-packages test installs it where it may")
    with sync_playwright() as playwright:
        arguments = ["--headless", "--no-sandbox", "--disable-gpu"]
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page whose console stays free of errors."""
    context = browser.new_context()
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page
    context.close()
    assert problems == []


@pytest.fixture(scope="module")
def recognizer() -> dabnet.Recognizer:
    return dabnet.Recognizer.load()


def check(guesses: list[dict[str, Any]], expected: list[tuple[str, float]]) -> None:
    assert [guess["label"] for guess in guesses] == [label for label, _ in expected]
    assert [guess["probability"] for guess in guesses] == pytest.approx([p for _, p in expected], rel=1e-12)


def test_a_page_asks_for_its_files_and_works_offline_under_a_strict_policy(
    page: Page, address: str, recognizer: dabnet.Recognizer
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.removeprefix(address)))
    page.goto(f"{address}/index.html")
    page.evaluate("loaded.then(() => 0)")
    assert sorted(asked) == ["/dabnet.js", "/dabnet.wasm", "/index.html", "/model.safetensors", "/page.js"]
    page.context.set_offline(True)
    asked.clear()
    for stop in (1, 2):
        guesses = page.evaluate("async (strokes) => (await loaded).recognize(strokes)", ARROW[:stop])
        check(guesses, recognizer.recognize(ARROW[:stop]))
    assert asked == []


def test_the_browser_decodes_pictures(page: Page, address: str, recognizer: dabnet.Recognizer) -> None:
    page.goto(f"{address}/index.html")
    expected = recognizer.recognize(ROOT / "examples" / "tree.png", top=3)
    for way in ("blob", "await createImageBitmap(blob)"):
        script = f"""async () => {{
            const blob = await (await fetch("tree.png")).blob();
            return (await loaded).recognizeImage({way}, {{ top: 3 }});
        }}"""
        check(page.evaluate(script), expected)
    said = page.evaluate("async () => (await loaded).recognizeImage(new Blob(['no'])).catch(({ message }) => message)")
    assert said == "the picture cannot be decoded here: give a PNG, JPEG, WebP or GIF."


def test_a_larger_picture_is_decoded_at_reduced_scale(page: Page, address: str) -> None:
    page.goto(f"{address}/index.html")
    script = """async () => {
        const canvas = new OffscreenCanvas(6000, 5000);
        const pen = canvas.getContext("2d");
        pen.fillStyle = "white";
        pen.fillRect(0, 0, 6000, 5000);
        pen.lineWidth = 60;
        pen.strokeRect(1500, 1500, 2500, 2500);
        return (await loaded).recognizeImage(await canvas.convertToBlob(), { top: 250 });
    }"""
    assert len(page.evaluate(script)) > 100


def test_a_worker_recognizes_strokes_and_pictures(page: Page, address: str, recognizer: dabnet.Recognizer) -> None:
    page.goto(f"{address}/index.html")
    ask = """async (strokes) => {
        const worker = new Worker("worker.js", { type: "module" });
        const given = strokes ?? (await (await fetch("tree.png")).blob());
        return new Promise((resolve, reject) => {
          worker.onmessage = ({ data }) => resolve(data);
          worker.onerror = reject;
          worker.postMessage(given);
        });
    }"""
    check(page.evaluate(ask, ARROW), recognizer.recognize(ARROW))
    check(page.evaluate(ask), recognizer.recognize(ROOT / "examples" / "tree.png"))


def test_classic_scripts_work_from_a_memory_stick(page: Page, site: Path, recognizer: dabnet.Recognizer) -> None:
    page.goto((site / "classic.html").as_uri())
    script = """async (strokes) =>
        (await dabnet.Recognizer.load({ wasm: dabnet.wasm, model: dabnet.model })).recognize(strokes)"""
    check(page.evaluate(script, ARROW), recognizer.recognize(ARROW))


def test_the_example_page_guesses_while_the_pen_moves(page: Page, address: str) -> None:
    page.goto(f"{address}/example.html")
    page.wait_for_function("pad.onpointermove !== null")
    box = page.locator("#pad").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 50, box["y"] + 50)
    page.mouse.down()
    guesses = set()
    for x, y in [(250, 60), (240, 250), (60, 240), (50, 50)]:
        page.mouse.move(box["x"] + x, box["y"] + y, steps=4)
        guesses.add(page.locator("#guess").inner_text())
    assert "Draw something." not in guesses
    assert guesses <= set(dabnet.Recognizer.load().labels)
    assert len((Path(js_pack.__file__).with_name("example.html")).read_text().splitlines()) <= 15
