"""Looking at a graph: queries, the canvas, branches, points in time, and links that show the same to somebody else."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.explorer.browser import keep
from tests.explorer.conftest import Open
from tests.explorer.world import TOKENS, World

pytestmark = pytest.mark.xdist_group("explorer")  # which shares one browser
ACTORS = """query cast() {
  match { $p: Person  $p actedIn $f }
  return { $p, $f }
}"""
AUTUMN = "query q() { match { $f: Film  $f.year = 2026 } return { $f.title as title } }"


def test_a_token_is_asked_for_and_forgotten(page: Page, world: World) -> None:
    page.goto(f"{world.address}/ui/#/films/query")
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("does not accept this token")).to_be_visible()
    page.get_by_label("Token").fill(TOKENS["editor"])
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Query")).to_be_visible()
    assert TOKENS["editor"] not in page.url
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()


def test_a_query_is_drawn_and_a_node_expanded(page: Page, world: World) -> None:
    page.goto(world.link("query", q=ACTORS, run="1"))
    picture = page.locator("[data-nodes]")
    expect(picture).to_have_attribute("data-nodes", "20")
    expect(picture).to_have_attribute("data-edges", "24")
    expect(page.locator("canvas").first).to_be_visible()
    keep(page, "query")
    page.get_by_role("tab", name="List").click()
    page.get_by_role("button", name="The Cartographer", exact=True).click()
    details = page.get_by_role("complementary", name="Details of Film The Cartographer")
    expect(details.get_by_text("2021")).to_be_visible()
    details.get_by_role("tab", name=re.compile("Edges")).click()
    details.get_by_role("button", name="Expand MadeBy to Studio").click()
    expect(page.get_by_text("21 nodes, 25 edges")).to_be_visible()
    details.get_by_role("tab", name="History").click()
    expect(details.get_by_text("First films and people")).to_be_visible()
    page.get_by_role("tab", name="Picture").click()
    expect(page.locator("[data-nodes='21']")).to_be_visible()
    keep(page, "expand")


def test_results_are_also_a_table_json_and_a_plan(page: Page, world: World) -> None:
    text = "query q() { match { $f: Film } return { $f.title as title, $f.year as year } order { $f.year asc } }"
    page.goto(world.link("query", q=text, run="1", view="table"))
    expect(page.get_by_role("cell", name="The Long Tide")).to_be_visible()
    page.get_by_role("tab", name="JSON").click()
    expect(page.get_by_text('"The Long Tide"')).to_be_visible()
    page.get_by_role("tab", name="Plan").click()
    expect(page.get_by_role("tabpanel")).to_contain_text(re.compile("Film"))


def test_mistakes_are_explained_where_they_are(page: Page, world: World) -> None:
    page.goto(world.link("query", q="query q() { match { $p: Persn } return { $p.name } }"))
    expect(page.get_by_role("status").filter(has_text="1 problem")).to_be_visible()
    page.locator(".cm-lintRange-error").hover()
    expect(page.locator(".cm-tooltip")).to_contain_text("Did you mean Person?")


def test_another_branch_shows_another_graph(page: Page, world: World) -> None:
    page.goto(world.link("query", q=AUTUMN, run="1", view="table"))
    expect(page.get_by_role("heading", name=re.compile("0 rows|No rows"))).to_be_visible()
    page.get_by_role("button", name="main", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="autumn", exact=True).click()
    expect(page).to_have_url(re.compile("branch=autumn"))
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("cell", name="Low Season")).to_be_visible()


def test_a_link_shows_the_same_to_somebody_else(page: Page, window: Open, world: World) -> None:
    page.goto(world.link("query", q=AUTUMN, branch="autumn", run="1", view="table"))
    expect(page.get_by_role("cell", name="Low Season")).to_be_visible()
    link = page.url
    with window() as other:
        other.goto(world.link("query", actor="reader"))
        expect(other.get_by_role("heading", name="Query")).to_be_visible()
        other.goto(link)
        expect(other.get_by_role("cell", name="Low Season")).to_be_visible()
        expect(other.get_by_role("button", name="autumn", exact=True)).to_be_visible()


def test_the_past_can_be_looked_at_but_not_changed(page: Page, world: World) -> None:
    page.goto(world.link("query", at="v1"))
    expect(page.get_by_text("read-only: the past")).to_be_visible()


def test_the_schema_shows_types_and_samples(page: Page, world: World) -> None:
    page.goto(world.link("schema"))
    film = page.get_by_role("article").filter(has=page.get_by_role("heading", name="Film"))
    expect(film.get_by_text("8", exact=True).first).to_be_visible()
    expect(page.get_by_text("at most 1", exact=True)).to_be_visible()
    keep(page, "schema")
    page.get_by_role("button", name="Sample rows of Film").click()
    expect(page.get_by_role("cell", name="Glass Orchard").first).to_be_visible()


def test_keys_lead_everywhere(page: Page, world: World) -> None:
    page.goto(world.link("history"))
    expect(page.get_by_role("heading", name="History")).to_be_visible()
    for letter, title in (("s", "Schema"), ("r", "Review"), ("i", "Import"), ("q", "Query")):
        page.keyboard.press("g")
        page.keyboard.press(letter)
        expect(page.get_by_role("heading", name=title, level=1)).to_be_visible()
