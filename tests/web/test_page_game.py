"""The game: it names a thing, there are 20 seconds to draw it, and the network guesses along."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from dabnet import Recognizer

from .conftest import Server
from .pad import HOUSE, SCREENSHOTS, SIZES, Pad, new_context


@pytest.fixture(params=SIZES)
def game(request: pytest.FixtureRequest, browser: Browser, server: Server) -> Iterator[Pad]:
    """The page with a clock that the test can put forward, and with things that are always the same."""
    context = new_context(browser, request.param)
    pad = Pad(context)
    pad.page.clock.install()
    pad.page.add_init_script("Math.random = () => 0.9999;")
    yield pad.open(server.address)
    pad.page.screenshot(path=SCREENSHOTS / f"{request.node.name.replace('[', '-').strip(']')}.png")
    context.close()
    assert pad.problems == []


def expect_no_overflow(pad: Pad) -> None:
    """Everything that is shown of the game is on its card, the card on the screen, and before the end on the paper."""
    assert pad.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    outside = """() => {
        const card = document.getElementById("card");
        const paper = (card.matches(".results") ? card : card.parentElement).getBoundingClientRect();
        const isOutside = (box) => box.width > 1 && (box.top < paper.top || box.bottom > paper.bottom
            || box.left < paper.left || box.right > paper.right || box.bottom > innerHeight);
        const all = [card, ...card.querySelectorAll("*")];
        return all.filter((each) => isOutside(each.getBoundingClientRect())).map((each) => each.id || each.tagName);
    }"""
    assert pad.page.evaluate(outside) == []


def test_six_rounds_of_20_seconds_end_with_a_score(game: Pad) -> None:
    game.draw(*HOUSE[:2])
    mine = game.guesses()
    game.at("play").click()
    expect_no_overflow(game)
    things = []
    for count in range(1, 7):
        expect(game.at("card-over")).to_have_text(f"Round {count} of 6 · draw")
        things.append(game.at("card-title").inner_text())
        expect(game.at("go")).to_be_focused()
        game.page.keyboard.press("Enter")
        expect(game.at("card")).to_be_hidden()
        expect(game.at("headline")).to_have_text(f"Draw: {things[-1]}")
        if "bottle" in things[-1]:
            expect(game.at("left")).to_have_text("20")
            game.draw_example("wine-bottle")
            expect(game.at("card-title")).to_have_text(f"I see it: {things[-1]}!")
            expect(game.at("card-text")).to_contain_text("It took you")
            expect_no_overflow(game)
        else:
            game.page.clock.fast_forward(16_000)
            expect(game.at("spoken")).to_have_text("5 seconds left.")
            game.page.clock.fast_forward(5_000)
            expect(game.at("card-title")).to_have_text("Time is up")
        game.page.clock.fast_forward(1000)
        game.at("go").click()
    assert len(set(things)) == 6
    assert set(things) <= set(Recognizer.load().labels)
    expect(game.at("card-title")).to_have_text("1 of 6")
    expect(game.at("card-text")).to_have_text("Your best so far.")
    expect(game.page.locator("#shelf li")).to_have_count(6)
    expect(game.page.locator("#shelf .guessed")).to_have_count(1)
    expect_no_overflow(game)

    game.page.keyboard.press("Enter")  # again
    expect(game.at("card-over")).to_have_text("Round 1 of 6 · draw")
    game.at("play").click()  # stops
    expect(game.at("card")).to_be_hidden()
    assert game.guesses() == mine
    game.page.keyboard.press("Control+z")
    assert len(game.strokes()) == 1  # it can still be undone
    game.page.keyboard.press("Control+y")
    assert game.guesses() == mine
    game.page.reload()
    assert game.guesses() == mine  # the game did not touch what was drawn before


def test_the_network_guesses_along_and_a_round_can_be_left(game: Pad) -> None:
    game.at("play").click()
    expect(game.at("open")).to_be_hidden()
    game.at("go").click()
    game.draw(HOUSE[1], lift=False)
    expect(game.labels()).to_have_count(5)
    expect(game.at("remark")).to_contain_text("I see:")
    expect(game.at("clock")).to_be_visible()
    game.page.mouse.up()
    game.page.keyboard.press("Control+z")
    expect(game.labels()).to_have_count(0)
    game.at("play").click()
    expect(game.at("clock")).to_be_hidden()
    game.expect_empty()
    expect(game.at("open")).to_be_visible()
    game.page.clock.fast_forward(30_000)
    expect(game.at("card")).to_be_hidden()
