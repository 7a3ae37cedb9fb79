"""Hostile names and values stay text, and no page asks anybody else."""

from __future__ import annotations

import pytest
from playwright.sync_api import FilePayload, Page, expect

from tests.explorer.hostile import HOSTILE
from tests.explorer.world import World

pytestmark = pytest.mark.xdist_group("explorer")  # which shares one browser
UNSEEN = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\ufeff"
THINGS = "query q() { match { $t: Thing } return { $t.name as name, $t.text as text } order { $t.name asc } }"
LINKS = "query q() { match { $a: Thing  $a next $b } return { $a, $b } }"


def test_there_are_enough_of_them() -> None:
    assert len(set(HOSTILE)) >= 50


def test_hostile_values_are_shown_as_they_are(page: Page, world: World) -> None:
    page.goto(world.link("query", graph="hostile", q=THINGS, run="1", view="table"))
    cells = page.get_by_role("cell")
    expect(cells.first).to_be_visible()
    expect(page.get_by_text("<script>alert(1)</script>").first).to_be_attached()
    table = page.get_by_role("region", name="Rows of the result")
    table.evaluate("box => { box.scrollTop = box.scrollHeight }")
    expect(page.get_by_text("⟨U+202E⟩gnp.txt exe").first).to_be_attached()
    shown = table.inner_text()
    assert not set(UNSEEN) & set(shown), "nothing turns the text around, and nothing is invisible"
    page.get_by_role("tab", name="JSON").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("onerror=alert(2)")


def test_hostile_names_are_drawn_opened_and_expanded(page: Page, world: World) -> None:
    page.goto(world.link("query", graph="hostile", q=LINKS, run="1"))
    expect(page.locator(f"[data-nodes='{len(HOSTILE)}']")).to_be_visible()
    page.get_by_role("tab", name="List").click()
    rows = page.get_by_role("region", name="Nodes of the graph").locator("tbody tr:not(.spacer)")
    details = page.get_by_role("complementary", name="Details of Thing")
    for number in range(10):
        rows.nth(number).get_by_role("button").first.click()
        expect(details.locator("h2")).to_have_text(
            rows.nth(number).locator("td").nth(2).inner_text()
        )
    details.get_by_role("tab", name="History").click()
    expect(details.get_by_role("listitem").first).to_be_visible()


@pytest.mark.parametrize(
    ("name", "params", "shown"),
    [
        ("schema", {}, "article"),
        ("history", {}, ".commit"),
        ("history", {"a": "main", "b": "other"}, ".changed-rows tr"),
        ("review", {"source": "other", "target": "main"}, ".verdict-line"),
        ("review", {}, ".proposal-row"),
        ("review", {"n": "1"}, ".merge-box"),
        ("review", {"n": "1", "tab": "changes"}, ".remark"),
    ],
)
def test_hostile_history_is_only_text(
    page: Page, world: World, name: str, params: dict[str, str], shown: str
) -> None:
    page.goto(world.link(name, graph="hostile", **params))
    expect(page.locator(shown).first).to_be_visible()
    for text in HOSTILE[:5]:
        assert page.locator("script, iframe, object, embed", has_text=text).count() == 0


def test_hostile_addresses_do_nothing(page: Page, world: World) -> None:
    page.goto(world.link("query", graph="hostile"))
    expect(page.get_by_role("heading", name="Query")).to_be_visible()
    for text in HOSTILE[:12]:
        page.goto(
            world.link(
                "query", graph="hostile", actor=None, q=text, branch=text, view=text, run="1"
            )
        )
        expect(page.get_by_role("banner").or_(page.get_by_role("alert")).first).to_be_visible()


def test_a_hostile_file_is_only_shown(page: Page, world: World) -> None:
    page.goto(world.link("import", graph="hostile"))
    quoted = "".join('"' + text.replace('"', '""') + '"\n' for text in HOSTILE)
    content = ('"<img src=x onerror=alert(90)>"\n' + quoted).encode()
    name = "<img src=x onerror=alert(91)>.csv"
    file: FilePayload = {"name": name, "mimeType": "text/csv", "buffer": content}
    page.get_by_label("File to import").set_input_files([file])
    expect(page.get_by_text("onerror=alert(90)").first).to_be_visible()
    expect(page.get_by_text("<svg onload=alert(3)>").first).to_be_attached()
