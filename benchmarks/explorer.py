"""The explorer in a headless Chromium, on loopback: first paint, pictures of 300 nodes and of a hub, a long table.

python -m benchmarks explorer
"""

from __future__ import annotations

import gzip
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from playwright.sync_api import Browser, Page
from tests.explorer import browser as browsers
from tests.server.process import serving

import omnigraph

NODES = 300
EDGES = 900
ROUNDS = 7
PAINT_SECONDS = 1.0
LAYOUT_SECONDS = 1.0
BUNDLE_BYTES = 1_000_000
ROWS = 10_000
HUB_EDGES = 5_000
FRAME_SECONDS = 0.1
SCHEMA = """
node Item { name: String @key
  group: I32 }
node Line { code: String @key
  size: I32 }
edge Link: Item -> Item
edge Has: Item -> Line
"""
HUB = "match { $a: Item  $a has $b } return { $a.@id as a, $b.@id as b }"
LINES = "match { $l: Line } return { $l.code as code, $l.size as size }"
# A page of rows further with every frame, until the end: the longest time between two of them.
SCROLL = """() => new Promise(resolve => {
  const box = document.querySelector('.table-box');
  let last = performance.now(), longest = 0;
  const step = now => {
    longest = Math.max(longest, now - last);
    last = now;
    if (box.scrollTop + box.clientHeight >= box.scrollHeight - 1) return resolve(longest);
    box.scrollTop += 4 * box.clientHeight;
    requestAnimationFrame(step);
  };
  requestAnimationFrame(now => { last = now; requestAnimationFrame(step); });
})"""
QUERY = "query q() { match { $a: Item  $a link $b } return { $a.@id as a, $b.@id as b } }"
# From the press of a key to the first frame with all nodes in the picture: query, drawing queries, layout, painting.
MEASURE = f"""() => new Promise(resolve => {{
  const begun = performance.now();
  const look = () => document.querySelector("[data-nodes='{NODES}'] canvas")
    ? requestAnimationFrame(() => resolve(performance.now() - begun)) : requestAnimationFrame(look);
  [...document.querySelectorAll('button')].find(b => b.textContent.trim().startsWith('Run')).click();
  look();
}})"""


def run() -> None:
    """Measure and print; a missed target says so."""
    why = browsers.missing()
    if why is not None:
        print(f"left out: {why}")
        return
    print(f"{'':<44}{'median':>10}{'worst':>10}{'target':>10}")
    _size()
    with tempfile.TemporaryDirectory() as folder:
        _build(Path(folder) / "items")
        with (
            serving("--store", f"{folder}/items", "--unauthenticated") as server,
            browsers.launched() as browser,
        ):
            base = f"http://{server.address}/ui/"
            paints = [_paint(browser, base) for _ in range(ROUNDS)]
            _row("first contentful paint, empty cache", paints, PAINT_SECONDS)
            shown = [_usable(browser, base) for _ in range(ROUNDS)]
            _row("page ready to be used, empty cache", shown, PAINT_SECONDS)
            _row(
                f"{NODES} nodes, {EDGES} edges: run to picture",
                list(_pictures(browser, base, QUERY)),
                LAYOUT_SECONDS,
            )
            hubs = list(_pictures(browser, base, HUB))
            _row(f"hub of {HUB_EDGES:,} edges: run to picture", hubs, LAYOUT_SECONDS)
            _row(f"table of {ROWS:,} rows: slowest frame", [*_frames(browser, base)], FRAME_SECONDS)


def _build(place: Path) -> None:
    graph = omnigraph.init(place, SCHEMA)
    names = [f"item {n}" for n in range(NODES)]
    links = [(n, (n * 7 + k * 31 + 1) % NODES) for n in range(NODES) for k in range(EDGES // NODES)]
    codes = [f"line {n:05}" for n in range(ROWS)]
    graph.load(
        {
            "Item": [{"name": name, "group": n % 9} for n, name in enumerate(names)],
            "Link": [{"from": names[a], "to": names[b]} for a, b in links],
            "Line": pa.table({"code": codes, "size": pa.array(range(ROWS), pa.int32())}),
            "Has": pa.table({"from": names[:1] * HUB_EDGES, "to": codes[:HUB_EDGES]}),
        }
    )


def _window(browser: Browser) -> Page:
    return browser.new_context(viewport=browsers.VIEW).new_page()


def _paint(browser: Browser, base: str) -> float:
    page = _window(browser)
    page.goto(base)
    page.wait_for_function(
        "() => performance.getEntriesByName('first-contentful-paint').length > 0"
    )
    found: Any = page.evaluate(
        "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    )
    page.context.close()
    return float(found) / 1000


def _usable(browser: Browser, base: str) -> float:
    page = _window(browser)
    page.goto(f"{base}#/default/query")
    page.get_by_role("button", name="Run").wait_for()
    found: Any = page.evaluate("performance.now()")
    page.context.close()
    return float(found) / 1000


def _pictures(browser: Browser, base: str, query: str) -> Iterator[float]:
    for _ in range(ROUNDS):
        page = _window(browser)
        page.goto(f"{base}#/default/query?q={quote(query)}&view=graph")
        page.get_by_role("status").filter(has_text="No problems").wait_for()
        yield float(page.evaluate(MEASURE)) / 1000
        page.context.close()


def _frames(browser: Browser, base: str) -> Iterator[float]:
    for _ in range(ROUNDS):
        page = _window(browser)
        page.goto(f"{base}#/default/query?q={quote(LINES)}&view=table&run=1")
        page.locator("td").first.wait_for()
        yield float(page.evaluate(SCROLL)) / 1000
        page.context.close()


def _size() -> None:
    files = [file for file in browsers.BUILT.parent.rglob("*") if file.is_file()]
    packed = sum(len(gzip.compress(file.read_bytes(), 9)) for file in files)
    mark = "" if packed < BUNDLE_BYTES else "  MISSED"
    print(
        f"{f'{len(files)} files, gzip':<44}{packed / 1000:>8.0f}kB{'':>10}{BUNDLE_BYTES / 1000:>8.0f}kB{mark}"
    )


def _row(name: str, seconds: list[float], target: float) -> None:
    median, worst = statistics.median(seconds), max(seconds)
    mark = "" if median < target else "  MISSED"
    print(f"{name:<44}{median:>8.2f} s{worst:>8.2f} s{target:>8.2f} s{mark}", flush=True)


if __name__ == "__main__":
    run()
