"""The states of the explorer somebody can meet: where each is, what brings it about, and how one sees it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from playwright.sync_api import FilePayload, Page, Route

CAST = "match { $p: Person  $p actedIn $f } return { $p, $f }"
HISTORY = "**/graphs/*/history*"
BROKEN = b"name,born,city\nZora,1977,Quito\nBad One,many,Nowhere\nWorse,none,Lima\n"


@dataclass(frozen=True)
class State:
    """`shown` is what one waits for, once `act` was done on the page."""

    page: str
    shown: str
    params: dict[str, str] = field(default_factory=dict)
    act: Callable[[Page], None] | None = None
    graph: str = "films"
    route: Callable[[Route], None] | None = None  # what the server answers about history instead


def _press(*keys: str) -> Callable[[Page], None]:
    def act(page: Page) -> None:
        page.locator("main").focus()
        for key in keys:
            page.keyboard.press(key)

    return act


def _click(name: str) -> Callable[[Page], None]:
    return lambda page: page.get_by_role("button", name=re.compile(name)).first.click()


def _find(text: str) -> Callable[[Page], None]:
    def act(page: Page) -> None:
        page.get_by_label("Find a node").fill(text)
        page.get_by_role("option").first.click()

    return act


def _path(page: Page) -> None:
    _find("Greta Holm")(page)
    page.get_by_role("button", name="Find path…").click()
    _find("Seven Lanterns")(page)


def _import(page: Page) -> None:
    file: FilePayload = {"name": "people.csv", "mimeType": "text/csv", "buffer": BROKEN}
    page.get_by_label("File to import").set_input_files([file])
    page.get_by_role("button", name="Check").click()


def _never(route: Route) -> None:
    """What is shown while one waits."""


def _broken(route: Route) -> None:
    route.fulfill(status=500, body="nonsense")


PAGES = {
    "home": State("home", ".examples a"),
    "query": State("query", "[data-nodes]", {"q": CAST, "run": "1"}),
    "table": State("query", "td", {"q": CAST, "run": "1", "view": "table"}),
    "schema": State("schema", "article"),
    "history": State("history", ".commit"),
    "compare": State("history", ".changed-rows tr", {"a": "main", "b": "autumn"}),
    "overlay": State("history", ".overlay canvas", {"a": "main", "b": "autumn", "view": "picture"}),
    "review": State("review", ".verdict-line", {"source": "autumn", "target": "main"}),
    "proposals": State("review", ".proposal-row", {"state": "all"}),
    "proposal": State("review", ".merge-box", {"n": "1"}),
    "changes": State("review", ".reviewed-row", {"n": "1", "tab": "changes"}),
    "checks": State("review", ".offending", {"n": "1", "tab": "checks"}),
    "import": State("import", ".drop"),
}
MOMENTS = {
    "plan": State("query", ".plan, [role=tabpanel]", {"q": CAST, "run": "1", "view": "plan"}),
    "nothing": State("query", "text=Nothing matches", {
        "q": 'match { $f: Film  $f.title = "none" } return { $f }', "run": "1"}),
    "details": State("query", "aside[aria-label^='Details of']", {"q": CAST, "run": "1"}, _find("The Cartographer")),
    "path": State("query", "section[aria-label=Path] li", {"q": CAST, "run": "1"}, _path),
    "hub": State("query", "[data-nodes='300']", {"q": "match { $h: Hub  $h has $i } return { $h, $i }", "run": "1"},
                 graph="wide"),
    "problems": State("query", "[aria-label=Problems] button", {"q": "match { $p: Persn } return { $p.name }"}),
    "mutation": State("query", "dialog", {"q": 'update Person set { note: "x" } where name = "Lena Vogt"'},
                      _click("Run…")),
    "columns": State("query", "input[type=checkbox]", {"q": CAST, "run": "1", "view": "table"}, _click("^Columns")),
    "branches": State("home", "dialog", {}, _press("b")),
    "go-to": State("home", "dialog [role=option]", {}, _press("Control+k")),
    "keys": State("home", "dialog kbd", {}, _press("?")),
    "schema-edit": State("schema", ".cm-content", {"edit": "1"}),
    "commit": State("history", "text=Look at this state", {}, _click("Note from the set")),
    "import-problems": State("import", "[aria-label='Problems by line'] td", {}, _import),
    "branch-gone": State("query", "text=Go to main", {"q": CAST, "branch": "gone"}),
    "loading": State("home", "[role=status][aria-label='Reading history']", route=_never),
    "failing": State("history", "text=Try again", route=_broken),
}  # fmt: skip
