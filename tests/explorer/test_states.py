"""Every page at three widths, in light and dark: nothing sticks out, axe is content, and pictures are kept."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.explorer.browser import ARTIFACTS, AXE, found_by_axe
from tests.explorer.conftest import Open
from tests.explorer.test_safety import PAGES, SHOWN
from tests.explorer.world import World

pytestmark = pytest.mark.xdist_group("explorer")  # which shares one browser
HISTORY = "**/graphs/*/history*"
WIDTHS: dict[int, Any] = {
    1440: {"width": 1440, "height": 900},
    1024: {"width": 1024, "height": 768},
    390: {"width": 390, "height": 844},
}
SCHEMES = {1440: "light", 1024: "dark", 390: "dark"}


def _photograph(page: Page, name: str) -> None:
    folder = ARTIFACTS / "states"
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=folder / f"{name}.png")


def _wider_than_the_window(page: Page) -> list[str]:
    """What is cut off, or makes the page scroll sideways."""
    found: list[str] = page.evaluate(
        """() => document.documentElement.scrollWidth <= innerWidth ? [] :
          [...document.querySelectorAll('main *, header *')]
            .filter(e => e.getBoundingClientRect().right > innerWidth + 1)
            .filter(e => !e.closest('.table-box, .conflict-scroll, nav'))
            .slice(0, 5).map(e => e.className || e.tagName)"""
    )
    return found


@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_fits_its_window(window: Open, world: World, width: int) -> None:
    only = [] if width == 390 else ["color-contrast"]
    with window(color_scheme=SCHEMES[width]) as page:
        page.set_viewport_size(WIDTHS[width])
        page.goto(world.link("home"))
        for name, (path, params) in PAGES.items():
            page.goto(world.link(path, actor=None, **params))
            expect(page.locator(SHOWN[name]).first).to_be_visible()
            _photograph(page, f"{name}-{width}-{SCHEMES[width]}")
            assert not _wider_than_the_window(page), f"{name} is wider than {width} pixels"
            if AXE.is_file():
                assert not found_by_axe(page, only), f"{name} at {width} pixels"


def _slow(route: Route) -> None:
    """Never answered: what is shown while one waits."""


def test_waiting_and_failing_are_designed(window: Open, world: World) -> None:
    with window() as page:
        page.route(HISTORY, _slow)
        page.goto(world.link("home"))
        expect(page.get_by_role("status", name="Reading history")).to_be_visible()
        _photograph(page, "home-loading")
        page.unroute(HISTORY)
        page.route(HISTORY, lambda route: route.fulfill(status=500, body="nonsense"))
        page.goto(world.link("history", actor=None))
        expect(page.get_by_role("button", name="Try again")).to_be_visible()
        _photograph(page, "history-failing")
        page.unroute(HISTORY)
        page.get_by_role("button", name="Try again").click()
        expect(page.locator(".commit").first).to_be_visible()
        nothing = 'match { $f: Film  $f.title = "none" } return { $f }'
        page.goto(world.link("query", actor=None, q=nothing, run="1"))
        expect(page.get_by_text("Nothing matches")).to_be_visible()
        _photograph(page, "query-nothing")
        page.goto(
            world.link("query", actor=None, q="match { $f: Film } return { $f }", branch="gone")
        )
        expect(page.get_by_text("Choose another branch with b")).to_be_visible()
        expect(page.get_by_role("link", name="Go to main")).to_be_visible()
        _photograph(page, "branch-gone")


def test_everything_is_done_by_keyboard(page: Page, world: World) -> None:
    """Ask, sort, choose a node, walk on, save: without a mouse."""
    page.goto(
        world.link("query", q="match { $p: Person  $p actedIn $f } return { $p, $f }", run="1")
    )
    expect(page.locator("[data-nodes='20']")).to_be_visible()
    page.locator("main").focus()
    page.keyboard.press("/")
    page.keyboard.type("Lena")
    expect(page.get_by_role("option").first).to_contain_text("Lena Vogt")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Details of Person Lena Vogt")).to_be_visible()
    page.keyboard.press("l")
    expect(page.get_by_label("Layout")).to_have_value("layered")
    page.keyboard.press("f")
    expect(page.locator(".canvas-full")).to_be_visible()
    page.keyboard.press("f")
    page.keyboard.press("x")
    expect(page.get_by_role("button", name="Show 1 hidden node")).to_be_visible()
    save = page.get_by_role("button", name="Save the picture")
    save.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem", name="PNG")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("menuitem", name="SVG")).to_be_focused()
    page.keyboard.press("Escape")
    expect(save).to_be_focused()
    page.get_by_role("tab", name="Graph").focus()
    page.keyboard.press("ArrowRight")
    head = page.get_by_role("button", name="p", exact=True)
    head.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("columnheader").first).to_have_attribute("aria-sort", "ascending")
