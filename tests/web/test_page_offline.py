"""The page without our server: as static files, as one file, with the network off; or on the server alone."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from dabnet.cli import main
from dabnet.web.page import POLICY

from .conftest import Server, start
from .pad import HOUSE, SIZES, Pad, expected, new_context
from .test_page_exchange import TREE, give


class _Files(http.server.SimpleHTTPRequestHandler):
    """Serves files with the policy that the page must work under, and nothing else."""

    def end_headers(self) -> None:
        self.send_header("content-security-policy", POLICY)
        super().end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module", params=["files", "single"])
def address(request: pytest.FixtureRequest, core: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the page is: on a web server that knows only files, and in a file of its own."""
    folder = tmp_path_factory.mktemp("page")
    if request.param == "single":
        main_ok(["page", "--single", "-o", str(folder / "pad.html")])
        yield (folder / "pad.html").as_uri()
        return
    main_ok(["page", "-o", str(folder / "site")])
    handler = functools.partial(_Files, directory=str(folder / "site"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def main_ok(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0


@pytest.mark.parametrize("size", SIZES)
def test_it_guesses_after_every_stroke_with_the_network_off_and_asks_nobody(
    size: str, browser: Browser, address: str
) -> None:
    context = new_context(browser, size)
    pad = Pad(context).open(address)
    expect(pad.at("where")).to_contain_text("nothing that you draw leaves your machine")
    context.set_offline(True)
    pad.requests.clear()
    for stroke in HOUSE:
        pad.draw(stroke)
        assert list(pad.guesses()) == expected(pad.strokes())
    pad.at("see").check()
    assert pad.seen().max() == 1
    give(pad, "drop", "tree.png", "image/png", TREE.read_bytes())
    expect(pad.at("headline")).to_have_text("tree")
    pad.page.keyboard.press("Control+z")
    pad.at("share").click()
    link = pad.at("link").input_value()
    pad.page.keyboard.press("Escape")
    pad.at("play").click()
    pad.at("go").click()
    pad.draw(HOUSE[0])
    pad.at("play").click()
    assert pad.requests == []
    assert link.startswith(f"{address}#draw=1")
    context.close()
    assert pad.problems == []


def test_the_served_page_sends_nothing_either(desktop: Pad, core: None) -> None:
    expect(desktop.at("where")).to_contain_text("nothing that you draw leaves your machine")
    desktop.requests.clear()
    desktop.draw(*HOUSE)
    assert list(desktop.guesses()) == expected(desktop.strokes())
    assert desktop.requests == []


def test_one_file_keeps_the_drawing_and_opens_links(browser: Browser, core: None, tmp_path: Path) -> None:
    main_ok(["page", "--single", "-o", str(tmp_path / "pad.html")])
    context = new_context(browser, "desktop")
    pad = Pad(context).open((tmp_path / "pad.html").as_uri())
    pad.draw(*HOUSE)
    found = pad.guesses()
    pad.at("share").click()
    link = pad.at("link").input_value()
    pad.page.reload()
    assert pad.guesses() == found
    pad.at("clear").click()
    pad.page.goto("about:blank")
    pad.page.goto(link)
    assert next(iter(pad.guesses())) == next(iter(found))
    context.close()
    assert pad.problems == []


@pytest.fixture(scope="module")
def keeping() -> Iterator[Server]:
    """A server that keeps the model to itself: so is one where the core was not built."""
    with start("--keep-model") as started:
        yield started


@pytest.mark.parametrize("size", SIZES)
def test_without_the_core_the_server_guesses_and_the_page_says_so(size: str, browser: Browser, keeping: Server) -> None:
    context = new_context(browser, size)
    pad = Pad(context).open(keeping.address)
    expect(pad.at("where")).to_contain_text("what you draw is sent there")
    for stroke in HOUSE:
        pad.draw(stroke)
        assert list(pad.guesses()) == expected(pad.strokes())
    assert any(url.endswith("/v1/recognize?top=5") for url in pad.requests)
    pad.at("see").check()
    assert pad.seen().max() == 1
    give(pad, "drop", "tree.png", "image/png", TREE.read_bytes())
    expect(pad.at("headline")).to_have_text("tree")
    assert keeping.ask("GET", "/model.safetensors")[0] == keeping.ask("GET", "/dabnet.wasm")[0] == 404
    context.close()
    assert pad.problems == []


def test_a_browser_that_cannot_run_the_core_asks_the_server(browser: Browser, server: Server, core: None) -> None:
    context = new_context(browser, "desktop")
    pad = Pad(context)
    pad.page.add_init_script("WebAssembly.compile = () => Promise.reject(new Error('no'));")
    pad.open(server.address)
    expect(pad.at("where")).to_contain_text("what you draw is sent there")
    pad.draw(*HOUSE)
    assert list(pad.guesses()) == expected(pad.strokes())
    context.close()
    assert pad.problems == []


def test_a_server_that_is_gone_or_busy_is_told_kindly(browser: Browser, keeping: Server) -> None:
    context = new_context(browser, "desktop")
    pad = Pad(context).open(keeping.address)
    pad.page.route("**/v1/recognize*", lambda route: route.abort())
    pad.draw(HOUSE[0])
    expect(pad.at("remark")).to_have_text("The server does not answer. Is it still running?")
    pad.page.unroute("**/v1/recognize*")
    body = '{"error": "the server is busy (64 drawings wait): try again in a second."}'
    pad.page.route("**/v1/recognize*", lambda route: route.fulfill(status=503, body=body))
    pad.draw(HOUSE[1])
    expect(pad.at("remark")).to_contain_text("the server is busy")
    pad.page.unroute("**/v1/recognize*")
    assert list(pad.guesses()) == expected(pad.strokes())  # it asked again by itself
    context.close()
