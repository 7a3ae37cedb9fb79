"""What the explorer may cost: the first page, a graph of 300 nodes, a table of 10,000 rows.

Bounds on times are for two busy cores without a graphics card; the figures of long runs are recorded.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.explorer.test_working import HUB, ITEMS
from tests.explorer.world import World
from tests.support.record import record

pytestmark = pytest.mark.xdist_group("explorer")  # which shares one browser
FIRST_BYTES_MAX = 100_000  # of scripts and styles the first page needs, as they are sent
FIRST_PAINT_MILLISECONDS_MAX = 1_000
DRAWN_SECONDS_MAX = 5
FRAME_MILLISECONDS_MAX = 50  # in the median, while a table of 10,000 rows is scrolled
ROWS_DRAWN_MAX = 120
TRIES = 3  # one within its bound is enough: others use the cores, too
SCROLL = """async box => {
  const times = [];
  const steps = 90;
  const far = box.scrollHeight - box.clientHeight;
  let last = performance.now();
  let drawn = 0;
  for (let step = 1; step <= steps; step++) {
    box.scrollTop = far * step / steps;
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    times.push(now - last);
    last = now;
    drawn = Math.max(drawn, box.querySelectorAll('tbody tr').length);
  }
  times.sort((a, b) => a - b);
  return {median: times[steps >> 1], worst: times[steps - 1], drawn};
}"""


def test_the_first_page_is_light_and_soon_there(page: Page, world: World) -> None:
    page.goto(world.link("home"))
    expect(page.get_by_role("list", name="Node types")).to_be_visible()
    sent = page.evaluate(
        """() => performance.getEntriesByType('resource')
          .filter(e => /\\.(js|css)$/.test(e.name.split('?')[0]))
          .reduce((sum, e) => sum + e.encodedBodySize, 0)"""
    )
    assert 0 < sent <= FIRST_BYTES_MAX
    paint = _best(lambda: _first_paint(page), FIRST_PAINT_MILLISECONDS_MAX)
    record("explorer: first page", {"bytes": sent, "first paint ms": round(paint)})


def _best(measure: Callable[[], float], most: float) -> float:
    """The first figure within its bound."""
    found: list[float] = []
    while len(found) < TRIES and (not found or found[-1] > most):
        found.append(measure())
    assert found[-1] <= most, f"{found} is more than {most}"
    return found[-1]


def _first_paint(page: Page) -> float:
    page.reload()
    expect(page.get_by_role("list", name="Node types")).to_be_visible()
    found: float = page.evaluate(
        "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    )
    return found


def test_three_hundred_nodes_of_a_hub_are_drawn_in_time(page: Page, world: World) -> None:
    page.goto(world.link("query", graph="wide", q=HUB))
    run = page.get_by_role("button", name="Run")
    expect(run).to_be_enabled()

    def seconds() -> float:
        started = time.monotonic()
        run.click()
        expect(page.locator("[data-nodes='300']")).to_be_visible()
        page.evaluate("() => new Promise(requestAnimationFrame)")
        return time.monotonic() - started

    drawn = _best(seconds, DRAWN_SECONDS_MAX)
    record("explorer: 300 nodes of a hub of 5,000", {"seconds": round(drawn, 2)})


def test_ten_thousand_rows_scroll(page: Page, world: World) -> None:
    page.goto(world.link("query", graph="wide", q=ITEMS, run="1", view="table"))
    table = page.get_by_role("region", name="Rows of the result")
    expect(table.get_by_role("cell").first).to_be_visible()
    runs: list[dict[str, float]] = []

    def frame() -> float:
        runs.append(table.evaluate(SCROLL))
        return runs[-1]["median"]

    median = _best(frame, FRAME_MILLISECONDS_MAX)
    expect(table.get_by_role("cell", name="item-09999")).to_be_visible()
    assert runs[-1]["drawn"] <= ROWS_DRAWN_MAX, "only rows in sight are in the page"
    figures = {"median frame ms": round(median, 1), "worst frame ms": round(runs[-1]["worst"], 1)}
    record("explorer: scrolling a table of 10,000 rows", figures)
