"""A headless Chromium that watches what a page does, and keeps pictures of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "src/omnigraph/server/ui/index.html"
AXE = ROOT / "explorer/node_modules/axe-core/axe.min.js"
ARTIFACTS = ROOT / "artifacts/explorer"
CHROMIUM = os.environ.get("OMNIGRAPH_CHROMIUM") or which("chromium") or which("chromium-browser")
PATIENCE_MILLISECONDS = 60_000
VIEW: Any = {"width": 1280, "height": 800}
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
]
# What a content security policy refuses is told to the console by Chromium; this tells it in words of ours.
REPORT_VIOLATIONS = """
document.addEventListener('securitypolicyviolation', event =>
  console.error('violation of ' + event.violatedDirective + ' by ' + event.blockedURI));
"""
PICTURE_PIXELS_MAX = 1200
TUTORIAL_VARIABLE = "OMNIGRAPH_SCREENSHOTS"


def missing() -> str | None:
    """Why the explorer cannot be tested here; none if it can."""
    if CHROMIUM is None:
        return "Chromium is not installed (Debian: apt install chromium)"
    if not BUILT.is_file():
        return "the explorer is not built (make explorer, which needs Node.js)"
    return None


@contextmanager
def launched() -> Iterator[Browser]:
    """One browser for all tests of a worker."""
    expect.set_options(timeout=PATIENCE_MILLISECONDS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Watch:
    """What a page did that no page of ours may do."""

    origin: str
    dialogs: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)

    def over(self, page: Page) -> None:
        page.on("dialog", self._dialog)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._console)
        page.on("request", self._request)

    def _dialog(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def _console(self, message: ConsoleMessage) -> None:
        # A refusal of the server, which the page then shows, is also told to the console.
        refused = message.text.startswith("Failed to load resource: the server responded")
        if message.type == "error" and not refused:
            self.errors.append(message.text)

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self.origin, "data:", "blob:")):
            self.strangers.append(request.url)

    def check(self) -> None:
        assert not self.dialogs, f"something opened a dialog: {self.dialogs}"
        assert not self.strangers, f"something was asked of others: {self.strangers}"
        assert not self.errors, f"the page failed: {self.errors}"


@contextmanager
def opened(browser: Browser, origin: str, name: str, **more: Any) -> Iterator[Page]:
    """A page in a window of its own; it is watched, and photographed if a test fails."""
    context = browser.new_context(viewport=VIEW, reduced_motion="reduce", **more)
    context.add_init_script(REPORT_VIOLATIONS)
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    watch = Watch(origin)
    page = context.new_page()
    watch.over(page)
    try:
        yield page
        watch.check()
    except BaseException:
        ARTIFACTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=ARTIFACTS / f"failed-{name}.png", full_page=True)
        raise
    finally:
        context.close()


def keep(page: Page, name: str) -> None:
    """A picture for whoever looks at the run, and for the tutorial when it is asked for."""
    tutorial = os.environ.get(TUTORIAL_VARIABLE)
    folders = [
        ARTIFACTS,
        *([ROOT / tutorial] if tutorial and name in _shown_in_the_tutorial() else []),
    ]
    page.evaluate("scrollTo(0, 0)")
    tall: Any = {**VIEW, "height": min(PICTURE_PIXELS_MAX, _height(page))}
    page.set_viewport_size(tall)
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=folder / f"{name}.png")
    page.set_viewport_size(VIEW)


def _shown_in_the_tutorial() -> set[str]:
    pages = (ROOT / "docs/tutorial").glob("*.md")
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    return set(re.findall(r"images/([\w-]+)\.png", text))


def _height(page: Page) -> int:
    """How tall the page is, from the bar above to the last word."""
    found: int = page.evaluate("document.documentElement.scrollHeight")
    return found


def found_by_axe(page: Page, only: list[str]) -> list[str]:
    """What axe says is wrong with a page: by its rules for WCAG A, AA and good practice, or some of them."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(AXE.read_text())
    found = page.evaluate(
        """async only => {
          const chosen = only.length > 0 ? {runOnly: {type: 'rule', values: only}} : {};
          return (await axe.run(document, {resultTypes: ['violations'], ...chosen})).violations;
        }""",
        only,
    )
    return [
        f"{one['id']}: {one['help']}: {[node['html'][:200] for node in one['nodes'][:3]]}"
        for one in found
    ]
