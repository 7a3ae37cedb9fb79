"""Working with what a query gives: texts that are kept, mistakes that are listed, tables, files, and the canvas."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Locator, Page, expect

import omnigraph
from tests.explorer.browser import keep
from tests.explorer.conftest import Open
from tests.explorer.test_other_sites import exploring
from tests.explorer.world import HUB_EDGES, WIDE_ROWS, World

pytestmark = pytest.mark.xdist_group("explorer")  # which shares one browser
BODY = "match {\n  $p: Person\n  $p actedIn $f\n}\nreturn { $p, $f }\n"
ITEMS = "match { $i: Item } return { $i.code as code, $i.size as size } order { size asc }"
HUB = "match { $h: Hub  $h has $i } return { $h, $i }"
SVG = "{http://www.w3.org/2000/svg}"


def _editor(page: Page, label: str = "Query text") -> Locator:
    return page.get_by_label(label)


def _write(page: Page, text: str) -> None:
    """Replace what is in the editor, as somebody would."""
    _editor(page).click()
    for key in ("Control+a", "Delete"):
        page.keyboard.press(key)
    page.keyboard.insert_text(text)


def _downloaded(page: Page, menu: str, item: str) -> bytes:
    page.get_by_role("button", name=menu, exact=True).click()
    with page.expect_download() as waiting:
        page.get_by_role("menuitem", name=re.compile(f"^{item}")).click()
    return Path(waiting.value.path()).read_bytes()


# --- texts -----------------------------------------------------------------------------------------------------------


def test_a_body_alone_is_run_as_the_docs_write_it(page: Page, world: World) -> None:
    page.goto(world.link("query", q=BODY))
    run = page.get_by_role("button", name="Run")
    expect(run).to_be_enabled()
    _editor(page).click()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name=re.compile("^24 rows"))).to_be_visible()
    expect(page.locator("[data-nodes='20']")).to_be_visible()


def test_cypher_is_run_and_asks_for_its_parameters(page: Page, world: World) -> None:
    text = "MATCH (f:Film) WHERE f.year = $year RETURN f.title AS title ORDER BY title"
    page.goto(world.link("query", q=text, view="table"))
    page.get_by_label("$year").fill("2019")
    page.get_by_label("$year").press("Enter")
    expect(page.get_by_role("columnheader", name="title")).to_be_visible()


def test_cypher_that_writes_asks_first_and_mistakes_in_it_are_shown(
    page: Page, world: World
) -> None:
    page.goto(world.link("query", q="MATCH (f:Flim) SET f.rating = 1.0"))
    expect(page.get_by_role("button", name="Run…")).to_be_visible()
    expect(page.get_by_text("Flim").nth(1)).to_be_visible()


def test_drafts_survive_a_look_elsewhere(page: Page, world: World) -> None:
    page.goto(world.link("query"))
    _write(page, 'match { $s: Studio  $s.name = "mine" } return { $s }')
    page.get_by_role("link", name="Schema").click()
    page.get_by_role("button", name="Edit text").click()
    text = page.get_by_label("Schema text")
    expect(text).to_contain_text("node Person")
    text.press("Control+End")
    page.keyboard.type("\nnode Venue { name: String @key }")
    expect(page.get_by_role("heading", name=re.compile("^Plan for"))).to_be_visible()
    page.get_by_role("link", name="Query", exact=True).click()
    expect(_editor(page)).to_contain_text('$s.name = "mine"')
    page.reload()
    expect(_editor(page)).to_contain_text('$s.name = "mine"')
    page.get_by_role("link", name="Schema").click()
    page.get_by_role("button", name="Edit text").click()
    expect(page.get_by_text("This is your draft")).to_be_visible()
    expect(text).to_contain_text("node Venue")
    keep(page, "schema-draft")
    page.get_by_role("button", name="Take back").click()
    expect(text).not_to_contain_text("node Venue")
    page.goto(world.link("query", actor=None, q="match { $f: Film } return { $f }"))
    recent = page.get_by_role("complementary", name="Queries at hand")
    expect(recent.get_by_text('$s.name = "mine"')).to_be_visible()


def test_mistakes_are_listed_lead_to_their_place_and_are_put_right(
    page: Page, world: World
) -> None:
    page.goto(world.link("query", q="match { $p: Persn } return { $p.name }"))
    problems = page.get_by_role("list", name="Problems")
    found = problems.get_by_role("button").first
    expect(found).to_contain_text("line 1:13")
    expect(found).to_contain_text("Did you mean Person?")
    expect(found).not_to_contain_text("`")
    found.click()
    selection = page.locator(".cm-selectionBackground").first  # drawn with the next frame
    expect(selection).to_be_attached()
    keep(page, "problems")
    problems.get_by_role("button", name="Change to Person").click()
    expect(problems).to_have_count(0)
    expect(_editor(page)).to_contain_text("$p: Person }")
    page.goto(world.link("schema", actor=None, edit="1"))
    text = page.get_by_label("Schema text")
    expect(text).to_contain_text("node Person")
    text.press("Control+End")
    page.keyboard.type("\nnode Broken { name: Strin }")
    page.get_by_role("list", name="Problems").get_by_role("button").first.click()
    expect(text).to_be_focused()
    page.get_by_role("button", name="Take back").click()


def test_a_dialog_begins_where_one_types(page: Page, world: World) -> None:
    page.goto(world.link("query", q='update Person set { note: "x" } where name = "Lena Vogt"'))
    page.get_by_role("button", name="Run…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("1 node")).to_be_visible()
    expect(dialog.get_by_label("Message")).to_be_focused()
    keep(page, "mutation")


# --- tables and files ------------------------------------------------------------------------------------------------


def test_more_rows_than_are_shown_are_counted_and_downloaded(page: Page, world: World) -> None:
    page.goto(world.link("query", graph="wide", q=ITEMS, run="1", view="table"))
    expect(page.get_by_role("heading", name=re.compile("^12,000 rows"))).to_be_visible()
    expect(page.get_by_text("The first 10,000 of 12,000 rows. A download has all.")).to_be_visible()
    table = page.get_by_role("region", name="Rows of the result")
    expect(table.get_by_role("columnheader", name=re.compile("size"))).to_contain_text("I64")
    table.evaluate("box => { box.scrollTop = box.scrollHeight }")
    expect(table.get_by_role("cell", name="item-09999")).to_be_visible()
    table.get_by_role("button", name="size").click()
    table.get_by_role("button", name="size").click()
    table.evaluate("box => { box.scrollTop = 0 }")
    expect(table.locator("tbody tr:not(.spacer)").first).to_contain_text("item-09999")
    keep(page, "table")
    lines = list(csv.reader(io.StringIO(_downloaded(page, "Download", "CSV").decode())))
    assert (lines[0], len(lines) - 1) == (["code", "size"], WIDE_ROWS)
    rows = json.loads(_downloaded(page, "Download", "JSON"))
    assert (len(rows), rows[-1]) == (WIDE_ROWS, {"code": "item-11999", "size": 11999})
    whole = pq.read_table(io.BytesIO(_downloaded(page, "Download", "Parquet")))
    assert (whole.num_rows, whole.column_names) == (WIDE_ROWS, ["code", "size"])


def test_columns_are_chosen_and_whole_nodes_are_more_than_ids(page: Page, world: World) -> None:
    page.goto(world.link("query", q=BODY, run="1", view="table"))
    row = page.get_by_role("row").filter(has_text="Ida Lindqvist").first
    expect(row).to_contain_text("born 1961")
    expect(row).to_contain_text("city Malmö")
    expect(page.get_by_role("columnheader", name=re.compile("^f"))).to_contain_text("Film")
    page.get_by_role("button", name=re.compile("^Columns")).click()
    keep(page, "columns")
    page.get_by_role("checkbox", name="p", exact=True).uncheck()
    page.keyboard.press("Escape")
    expect(page.get_by_role("columnheader")).to_have_count(1)
    expect(page.get_by_role("button", name=re.compile("^Columns"))).to_be_focused()


def test_things_are_copied_without_a_clipboard_of_the_browser(window: Open, world: World) -> None:
    with window() as page:
        page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
        page.goto(world.link("query", q=BODY, run="1", view="json"))
        page.get_by_role("button", name="Copy link").click()
        expect(page.get_by_text("The link shows exactly this state")).to_be_visible()
        page.get_by_role("button", name="Copy all").click()
        expect(page.get_by_text("24 rows copied")).to_be_visible()


def test_commits_of_a_local_explorer_have_an_author(
    page: Page, tmp_path: Path, monkeypatch: Any
) -> None:
    for variable in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(variable, "/dev/null")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OMNIGRAPH_ACTOR", raising=False)
    graph = omnigraph.init(tmp_path / "people", "node Person { name: String @key }")
    with exploring(graph.uri) as link:
        page.unroute_all()
        own = page.context.browser.new_context().new_page()  # type: ignore[union-attr]
        own.goto(link)
        expect(own.get_by_text("Nothing is stored on main yet")).to_be_visible()
        keep(own, "home-empty")
        own.get_by_role("link", name="Write a row").click()
        _write(own, 'insert Person { name: "Ada" }')
        own.get_by_role("button", name="Run…").click()
        own.get_by_label("Your name").fill("Pilar Sáenz")
        own.get_by_label("Directly on main").check()
        own.get_by_role("button", name="Run on main").click()
        expect(own.get_by_text("1 node and 0 edges changed")).to_be_visible()
        own.context.close()
    assert graph.log("main", 1)[0].actor == "Pilar Sáenz"


# --- the canvas ------------------------------------------------------------------------------------------------------


def _find(page: Page, text: str) -> None:
    page.get_by_label("Find a node").fill(text)
    expect(page.get_by_role("option").first).to_contain_text(text)
    page.keyboard.press("Enter")


def _labels(drawing: ET.Element) -> list[str]:
    return [text.text or "" for text in drawing.iter(f"{SVG}text")]


def test_the_canvas_fills_the_window_and_is_saved_as_a_picture(window: Open, world: World) -> None:
    with window(accept_downloads=True) as page:
        page.set_viewport_size({"width": 1440, "height": 900})
        page.goto(world.link("query", q=BODY, run="1"))
        picture = page.locator("[data-nodes='20']")
        expect(picture).to_be_visible()
        box = picture.bounding_box()
        assert box is not None
        assert box["height"] > 400
        assert box["width"] > 1000
        assert box["y"] + box["height"] <= 900, "legend and tools are in sight without scrolling"
        drawing = ET.fromstring(_downloaded(page, "Save the picture", "SVG"))  # noqa: S314
        labels = _labels(drawing)
        assert "Ida Lindqvist" in labels
        assert len(labels) >= 18, "nearly every node finds room for its name"
        assert _downloaded(page, "Save the picture", "PNG").startswith(b"\x89PNG")
        dot = page.get_by_role("button", name=re.compile("^Film .*how it looks")).locator(".dot")
        colour = dot.evaluate("dot => getComputedStyle(dot).backgroundColor")
        _find(page, "Glass Orchard")
        chip = page.get_by_role("complementary").filter(has_text="Glass Orchard").locator(".dot")
        assert chip.first.evaluate("dot => getComputedStyle(dot).backgroundColor") == colour
        fills = {circle.get("fill") for circle in drawing.iter(f"{SVG}circle")}
        assert len(fills) == 2
        page.keyboard.press("Escape")
        expect(page.get_by_role("complementary").filter(has_text="Glass Orchard")).to_have_count(0)
        page.get_by_role("button", name="Full window").click()
        expect(picture).to_have_css("width", "1440px")
        keep(page, "canvas-full")


def test_a_path_is_shown_step_by_step_and_fitted(page: Page, world: World) -> None:
    page.goto(world.link("query", q=BODY, run="1"))
    expect(page.locator("[data-nodes='20']")).to_be_visible()
    _find(page, "Greta Holm")
    page.get_by_role("button", name="Find path…").click()
    _find(page, "Seven Lanterns")
    path = page.get_by_role("region", name="Path")
    steps = path.get_by_role("listitem")
    expect(steps.first).to_contain_text("Greta Holm")
    expect(steps.last).to_contain_text("Seven Lanterns")
    assert steps.count() >= 3
    expect(path.get_by_text(re.compile(r"Knows|ActedIn|Directed")).first).to_be_visible()
    path.get_by_role("button", name="Next step").click()
    expect(path.locator("[aria-current=step]")).to_have_text("Greta Holm")
    path.get_by_role("button", name="Next step").click()
    expect(page.get_by_role("complementary", name=re.compile("^Details of"))).to_be_visible()
    keep(page, "path")
    path.get_by_role("button", name="Leave the path").click()
    expect(path).to_have_count(0)


def test_layouts_differ_and_what_is_chosen_for_a_type_is_kept(page: Page, world: World) -> None:
    page.goto(world.link("query", q=BODY, run="1"))
    expect(page.locator("[data-nodes='20']")).to_be_visible()
    places = {}
    for layout in ("force", "layered", "radial"):
        page.get_by_label("Layout").select_option(layout)
        drawing = ET.fromstring(_downloaded(page, "Save the picture", "SVG"))  # noqa: S314
        places[layout] = [(c.get("cx"), c.get("cy")) for c in drawing.iter(f"{SVG}circle")]
        assert not [spot for spot in places[layout] if "NaN" in str(spot)]
        keep(page, f"layout-{layout}")
    assert len({str(spots) for spots in places.values()}) == 3
    assert len({x for x, _ in places["layered"]}) == 2, "people on one side, films on the other"
    menu = page.get_by_role("button", name=re.compile("^Person .*how it looks"))
    menu.click()
    page.get_by_role("radio", name="Colour 7").click()
    page.get_by_label("Caption").select_option("city")
    keep(page, "styling")
    page.reload()
    dot = menu.locator(".dot")
    expect(dot).to_have_css("background-color", "rgb(208, 67, 63)")
    drawing = ET.fromstring(_downloaded(page, "Save the picture", "SVG"))  # noqa: S314
    assert "Malmö" in _labels(drawing)
    page.goto(world.link("schema", actor=None))
    card = page.get_by_role("article").filter(has=page.get_by_role("heading", name="Person"))
    expect(card.locator(".dot").first).to_have_css("background-color", "rgb(208, 67, 63)")


def test_a_hub_of_thousands_says_how_many_there_are(page: Page, world: World) -> None:
    page.goto(world.link("query", graph="wide", q=HUB, run="1"))
    expect(page.locator("[data-nodes='300']")).to_be_visible()
    expect(page.get_by_text(f"from the first 1,000 of {HUB_EDGES:,} matches")).to_be_visible()
    drawing = ET.fromstring(_downloaded(page, "Save the picture", "SVG"))  # noqa: S314
    assert [name for name in _labels(drawing) if name.startswith("item-0")], "the key is the label"
    keep(page, "hub")
    _find(page, "item-11998")  # in the graph, and not drawn
    expect(page.get_by_role("complementary", name="Details of Item item-11998")).to_be_visible()
    _find(page, "hub")
    details = page.get_by_role("complementary", name="Details of Hub hub")
    details.get_by_role("tab", name=re.compile("Edges")).click()
    expect(details.locator(".ways .numeric")).to_have_text("5,000")


def test_no_node_is_called_nan(page: Page, world: World) -> None:
    page.goto(world.link("query", graph="wide", q="match { $r: Reading } return { $r }", run="1"))
    expect(page.locator("[data-nodes='2']")).to_be_visible()
    page.get_by_role("tab", name="List").click()
    names = page.get_by_role("region", name="Nodes of the graph").locator("tbody tr .link")
    expect(names).to_have_count(2)
    assert "NaN" not in names.all_inner_texts()
    assert "north" in names.all_inner_texts()


# --- the first screen ------------------------------------------------------------------------------------------------


def test_the_first_screen_shows_what_there_is_and_what_to_ask(page: Page, world: World) -> None:
    page.goto(f"{world.link('home')}")
    types = page.get_by_role("list", name="Node types")
    expect(types.get_by_role("listitem").first).to_contain_text("Person")
    expect(types.get_by_role("listitem").first).to_contain_text("12")
    expect(page.get_by_role("list", name="Edge types")).to_contain_text("Person → Film")
    latest = page.get_by_role("region", name="Latest changes").get_by_role("listitem")
    expect(latest.first).to_contain_text(" on ")
    keep(page, "home")
    titles = page.locator(".examples a").all_inner_texts()
    assert len(titles) >= 4
    for number in range(len(titles)):
        page.locator(".examples a").nth(number).click()
        expect(page.get_by_role("heading", name=re.compile(r"^[1-9]\d* rows? in"))).to_be_visible()
        page.go_back()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("branch autumn")
    keep(page, "go-to")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("branch=autumn"))


def test_declared_order_is_kept_and_relations_are_shown(page: Page, world: World) -> None:
    page.goto(world.link("schema"))
    card = page.get_by_role("article").filter(has=page.get_by_role("heading", name="Person"))
    expect(card).to_be_visible()
    assert card.locator(".property-list dt").all_inner_texts() == ["name", "born", "city", "note"]
    relations = card.get_by_role("list", name="Edges of Person")
    expect(relations).to_contain_text("ActedIn")
    relations.get_by_role("button", name="Knows").click()
    expect(page.get_by_role("heading", name="Sample of Knows")).to_be_visible()
