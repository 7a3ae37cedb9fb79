"""Changing a graph: compare, revert, decide conflicts, merge, import, and being refused."""

from __future__ import annotations

import io
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import FilePayload, Page, expect

import omnigraph
from tests.explorer.browser import keep
from tests.explorer.conftest import Open
from tests.explorer.world import World

pytestmark = pytest.mark.xdist_group("explorer")  # which shares one browser
CSV = b"Name,Born,town,comment\nZora Neal,1977,Eatonville,writer\nTomas Rey,1990,Quito,\n"
PERSON = (
    "query q($name: String) { match { $p: Person  $p.name = $name } return { $p.city as city } }"
)
FILM = "query q($t: String) { match { $f: Film  $f.title = $t } return { $f.year as year, $f.rating as rating } }"
RECORD = b'{"edge": "Knows", "from": "Lena Vogt", "to": "Kenji Mori", "data": {}}\n'
EVERYTHING = {
    "actor": "reader",
    "branch": "main",
    "read_only": False,
    "actions": dict.fromkeys(("read", "change", "branch_create", "branch_merge"), True),
}


def _files(name: str, content: bytes) -> list[FilePayload]:
    return [{"name": name, "mimeType": "application/octet-stream", "buffer": content}]


# --- history -------------------------------------------------------------------------------------------------------


def test_two_branches_are_compared_in_rows_and_in_a_picture(page: Page, world: World) -> None:
    page.goto(world.link("history"))
    expect(
        page.get_by_role("list", name="Commits, newest first").get_by_role("listitem").first
    ).to_be_visible()
    assert page.locator("svg.lanes path").count() >= 9, "lines lead from commits to their parents"
    expect(page.get_by_label("Compare from")).to_have_value("main")  # not a grey hint
    page.get_by_label("Compare to").fill("autumn")
    page.get_by_role("button", name="Compare", exact=True).click()
    rows = page.get_by_role("region", name="Changed rows")
    expect(rows.get_by_role("row").filter(has_text="Low Season").first).to_be_visible()
    changed = rows.get_by_role("row").filter(has_text="The Cartographer").filter(has_text="rating")
    expect(changed.locator("del")).to_have_text("8")
    expect(changed.locator("ins")).to_have_text("8.2")
    expect(rows.get_by_role("row").filter(has_text="Olu Banjo → Low Season")).to_contain_text(
        "lead"
    )
    page.get_by_role("button", name="Person: 1 row removed").click()
    expect(rows.get_by_role("row").filter(has_text="Viktor Petrov")).to_be_visible()
    expect(rows.get_by_role("row")).to_have_count(2)
    page.get_by_role("button", name="Person: 1 row removed").click()
    page.get_by_role("tab", name="Picture").click()
    expect(page.locator("[data-nodes='8'][data-edges='7']")).to_be_visible()
    expect(page.get_by_role("list", name="Signs")).to_contain_text("+ added")
    keep(page, "compare")
    expect(page).to_have_url(re.compile("a=main.*b=autumn.*view=picture"))


def test_a_commit_is_reverted_after_a_look(page: Page, world: World) -> None:
    world.films.create_branch("undo")
    world.films.mutate(
        'query q() { delete Person where name = "Kenji Mori" }', branch="undo", message="A mistake"
    )
    page.goto(world.link("history"))
    page.get_by_role("button", name="A mistake").click()
    page.get_by_role("button", name="Revert…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("list", name="What changes")).to_contain_text("Person")
    dialog.get_by_role("button", name="Revert", exact=True).click()
    expect(page.get_by_role("button", name="Revert: A mistake")).to_be_visible()
    found = world.films.query(PERSON, {"name": "Kenji Mori"}, branch="undo")
    assert found.scalar() == "Osaka"


# --- merging -------------------------------------------------------------------------------------------------------


def test_conflicts_are_decided_one_by_one_and_merged(page: Page, world: World) -> None:
    page.goto(world.link("review", source="festival", target="desk"))
    expect(page.get_by_text("4 of 4 to decide")).to_be_visible()
    merge = page.get_by_role("button", name="Merge into desk")
    expect(merge).to_be_disabled()
    page.get_by_label("rating: take theirs").check()
    page.get_by_label("year: other value").fill("1996")
    keep(page, "review")
    page.get_by_label("city: take ours").check()
    expect(page.get_by_text("1 of 4 to decide")).to_be_visible()
    page.get_by_label("row: take theirs").check()
    expect(page.get_by_text("ready", exact=True)).to_be_visible()
    page.get_by_label("Message").fill("Agreed at the desk")
    expect(merge).to_be_enabled()
    merge.click()
    expect(page.get_by_text("festival is in desk now.")).to_be_visible()
    film = world.films.query(FILM, {"t": "The Long Tide"}, branch="desk").one()
    assert film == {"year": 1996, "rating": 8.8}
    assert (
        world.films.query(PERSON, {"name": "Lena Vogt"}, branch="desk").scalar()
        == "Leipzig-Plagwitz"
    )
    assert not world.films.query(PERSON, {"name": "Greta Holm"}, branch="desk")
    assert world.films.log("desk", 1)[0].message == "Agreed at the desk"
    page.get_by_role("link", name="Show the commit").click()
    expect(page.get_by_role("heading", name="Agreed at the desk")).to_be_visible()


def test_a_review_shows_what_the_branch_did_and_nothing_else(page: Page, world: World) -> None:
    """The target moved on after they parted: its own rows are no change of the branch."""
    films = world.films
    films.create_branch("trunk")
    films.create_branch("side", "trunk")
    films.load([{"type": "Studio", "data": {"name": "Side Door"}}], branch="side")
    films.mutate('query q() { delete Film where title = "Quiet Engines" }', branch="trunk")
    films.load([{"type": "Studio", "data": {"name": "Trunk Road"}}], branch="trunk")
    page.goto(world.link("review", source="side", target="trunk"))
    rows = page.get_by_role("region", name="Changed rows")
    expect(rows.get_by_text("Side Door").first).to_be_visible()
    expect(rows.get_by_role("row")).to_have_count(2)
    expect(page.get_by_role("button", name="Studio: 1 row added")).to_be_visible()
    page.get_by_role("link", name="Compare the two states instead").click()
    expect(
        page.get_by_role("region", name="Changed rows").get_by_text("Trunk Road").first
    ).to_be_visible()


def test_one_rule_decides_a_whole_type(page: Page, world: World) -> None:
    films = world.films
    films.create_branch("rule-ours", "main")
    films.create_branch("rule-theirs", "main")
    for branch, year in (("rule-ours", 2001), ("rule-theirs", 2002)):
        films.mutate(
            'query q($y: I32) { update Film set { year: $y } where title = "Quiet Engines" }',
            {"y": year}, branch=branch,
        )  # fmt: skip
    page.goto(world.link("review", source="rule-theirs", target="rule-ours"))
    page.get_by_label("All of Film").select_option("theirs")
    merge = page.get_by_role("button", name="Merge into rule-ours")
    expect(merge).to_be_enabled()
    merge.click()
    expect(page.get_by_text("rule-theirs is in rule-ours now.")).to_be_visible()
    assert films.query(FILM, {"t": "Quiet Engines"}, branch="rule-ours").one()["year"] == 2002


# --- importing -----------------------------------------------------------------------------------------------------


def test_a_file_is_looked_at_mapped_checked_and_loaded_to_a_branch(
    page: Page, world: World
) -> None:
    page.goto(world.link("import"))
    broken = CSV + b"Bad One,many,Nowhere,\n"
    page.get_by_label("File to import").set_input_files(_files("new people.csv", broken))
    expect(page.get_by_role("cell", name="Eatonville").first).to_be_visible()
    expect(page.get_by_label("Rows are of type")).to_have_value("Person")
    expect(page.get_by_label("Name fills")).to_have_value("name")
    page.get_by_label("town fills").select_option("city")
    page.get_by_role("button", name="Check").click()
    problems = page.get_by_role("region", name="Problems by line")
    expect(problems.get_by_role("row").filter(has_text="born")).to_contain_text("4")
    expect(page.get_by_role("alert")).to_contain_text("then choose the file again")
    expect(page.get_by_role("alert")).not_to_contain_text("--")  # words of the command line
    expect(problems).to_be_in_viewport()
    keep(page, "import")
    page.get_by_role("button", name="Choose another file").click()
    page.get_by_label("File to import").set_input_files(_files("new people.csv", CSV))
    born = page.get_by_role("region", name="Columns and what they fill").get_by_role("row").nth(2)
    expect(born).to_contain_text("whole number")
    page.get_by_label("town fills").select_option("city")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("2 Person rows can be loaded")).to_be_visible()
    page.get_by_label("Name of the new branch").fill("newcomers")
    page.get_by_role("button", name="Load to newcomers").click()
    expect(page.get_by_text("newcomers, a new branch.")).to_be_visible()
    assert world.films.query(PERSON, {"name": "Tomas Rey"}, branch="newcomers").scalar() == "Quito"
    assert not world.films.query(PERSON, {"name": "Tomas Rey"})
    page.get_by_role("link", name="Review it").click()
    expect(page.get_by_text("it takes over what the branch did")).to_be_visible()
    expect(
        page.get_by_role("region", name="Changed rows").get_by_text("Tomas Rey").first
    ).to_be_visible()


def _parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"start": ["Lena Vogt"], "end": ["Kenji Mori"]}), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "branch"),
    [
        pytest.param("friends.parquet", _parquet(), "from-parquet", id="parquet"),
        pytest.param("more.ndjson", RECORD, "from-ndjson", id="ndjson"),
    ],
)
def test_other_files_are_loaded_too(
    page: Page, world: World, name: str, content: bytes, branch: str
) -> None:
    page.goto(world.link("import"))
    page.get_by_label("File to import").set_input_files(_files(name, content))
    if name.endswith("parquet"):
        page.get_by_label("Rows are of type").select_option("Knows")
    page.get_by_label("Name of the new branch").fill(branch)
    page.get_by_role("button", name=f"Load to {branch}").click()
    expect(page.get_by_text("1 Knows row to")).to_be_visible()
    assert branch in world.films.branches()


# --- being refused ---------------------------------------------------------------------------------------------------


def test_who_may_only_read_is_offered_nothing_else(window: Open, world: World) -> None:
    with window() as page:
        page.goto(world.link("history", actor="reader"))
        expect(page.get_by_text("read-only", exact=True)).to_be_visible()
        page.get_by_role("button", name="Note from the set").click()
        expect(page.get_by_role("link", name="Look at this state")).to_be_visible()
        expect(page.get_by_role("button", name="Revert…")).to_have_count(0)
        page.goto(f"{world.address}/ui/#/films/review?source=autumn&target=main")
        expect(page.get_by_text("look only")).to_be_visible()
        changed = page.get_by_role("region", name="Changed rows")
        expect(changed.get_by_text("Low Season").first).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)
        expect(page.get_by_role("button", name="Merge into main")).to_have_count(0)
        keep(page, "review-look-only")
        page.goto(f"{world.address}/ui/#/films/import")
        expect(page.get_by_text("but not change it")).to_be_visible()


def test_a_refusal_of_the_policy_is_shown_as_such(window: Open, world: World) -> None:
    """The button was there when the page was loaded; meanwhile it is not allowed any more."""
    with window() as page:
        page.route("**/permissions*", lambda route: route.fulfill(json=EVERYTHING))
        page.goto(world.link("import", actor="reader"))
        page.get_by_label("File to import").set_input_files(_files("people.csv", CSV))
        page.get_by_role("button", name=re.compile("Load to import-people")).click()
        expect(page.get_by_role("alert")).to_contain_text("Not allowed")
        expect(page.get_by_role("alert")).to_contain_text("policy_denied")
    assert not [
        name
        for name in omnigraph.open(world.folder / "films").branches()
        if name.startswith("import-people")
    ]
