"""Every page, and every state of one, at three widths, in light and dark: nothing sticks out, axe is content, and
pictures are kept in `artifacts/explorer/states`. In `make test` a page is seen once at each width and a state at one of
them; at night all are seen at all of them, in both schemes.
"""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.explorer.browser import ARTIFACTS, AXE, found_by_axe
from tests.explorer.conftest import Open
from tests.explorer.states import HISTORY, MOMENTS, PAGES, State
from tests.explorer.world import World
from tests.support import rings

pytestmark = pytest.mark.xdist_group("explorer")  # which shares one browser
WIDTHS: dict[int, Any] = {
    1440: {"width": 1440, "height": 900},
    1024: {"width": 1024, "height": 768},
    390: {"width": 390, "height": 844},
}
SCHEMES = {1440: ("light", "dark"), 1024: ("dark", "light"), 390: ("dark", "light")}
CONTRAST = ["color-contrast"]  # which is all that a scheme changes
SETTLED = (
    """() => !document.querySelector('main [role=status][aria-label^=Reading], main .skeleton')"""
)


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


def _bring_about(page: Page, world: World, state: State) -> None:
    if state.route:
        page.route(HISTORY, state.route)
    fresh = state in MOMENTS.values()  # a new part behind # alone would keep what was open
    if fresh:
        page.goto("about:blank")
    page.goto(world.link(state.page, state.graph, "editor" if fresh else None, **state.params))
    if state.act:
        state.act(page)
    expect(page.locator(state.shown).first).to_be_visible()
    if not state.route:
        page.wait_for_function(SETTLED)


def _look(page: Page, name: str, width: int) -> None:
    """Pictures, what sticks out, and what axe says."""
    assert not _wider_than_the_window(page), f"{name} is wider than {width} pixels"
    for number, scheme in enumerate(SCHEMES[width][: rings.count(1, 2)]):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        _photograph(page, f"{name}-{width}-{scheme}")
        only = CONTRAST if number or width == 1024 else []
        if AXE.is_file():
            assert not found_by_axe(page, only), f"{name} at {width} pixels, {scheme}"
    page.emulate_media(color_scheme=SCHEMES[width][0])  # type: ignore[arg-type]


def _states(width: int) -> dict[str, State]:
    share = list(WIDTHS).index(width)
    chosen = [name for n, name in enumerate(MOMENTS) if rings.is_nightly() or n % 3 == share]
    return {**PAGES, **{name: MOMENTS[name] for name in chosen}}


@pytest.mark.parametrize("width", WIDTHS)
def test_every_state_fits_its_window(window: Open, world: World, width: int) -> None:
    with window(color_scheme=SCHEMES[width][0]) as page:
        page.set_viewport_size(WIDTHS[width])
        page.goto(f"{world.address}/ui/")
        expect(page.get_by_label("Token")).to_be_visible()
        _look(page, "sign-in", width)
        page.goto("about:blank")
        page.goto(world.link("home"))
        expect(page.get_by_role("banner")).to_be_visible()
        for name, state in _states(width).items():
            _bring_about(page, world, state)
            _look(page, name, width)
            page.unroute_all()


def test_all_states_are_seen_at_night_and_each_at_some_width_by_day() -> None:
    seen = {name for width in WIDTHS for name in _states(width)}
    assert seen == {*PAGES, *MOMENTS}


def test_a_failure_can_be_tried_again_and_a_branch_that_is_gone_leads_on(
    window: Open, world: World
) -> None:
    with window() as page:
        _bring_about(page, world, MOMENTS["failing"])
        expect(page.get_by_role("alert")).to_contain_text("The server failed to answer")
        expect(page.get_by_role("alert")).to_contain_text("the log of the server says why")
        page.unroute_all()
        page.get_by_role("button", name="Try again").click()
        expect(page.locator(".commit").first).to_be_visible()
        _bring_about(page, world, MOMENTS["branch-gone"])
        expect(page.get_by_text("Choose another branch with b")).to_be_visible()


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
