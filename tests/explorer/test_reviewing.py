"""Proposals in the browser: found, opened, commented on cell by cell, judged, merged or closed, and proposed."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.explorer.browser import keep
from tests.explorer.conftest import Open
from tests.explorer.world import World

pytestmark = pytest.mark.xdist_group("explorer")  # which shares one browser
YEAR = "query q($t: String) { match { $f: Film  $f.title = $t } return { $f.year as year } }"


def _draft(world: World, name: str, year: int, title: str = "Quiet Engines") -> None:
    """A branch that changes the year of a film."""
    world.films.create_branch(name)
    world.films.mutate(
        "query q($t: String, $y: I32) { update Film set { year: $y } where title = $t }",
        {"t": title, "y": year}, branch=name, actor="mara", message="Another year",
    )  # fmt: skip


def _review(page: Page, verdict: str, text: str) -> None:
    page.get_by_role("button", name="Review…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Comment", exact=True).first.fill(text)
    dialog.get_by_label(verdict).check()
    dialog.get_by_role("button", name="Submit review").click()
    expect(dialog).to_have_count(0)


def test_proposals_are_found_by_state_words_and_keys(page: Page, world: World) -> None:
    page.goto(world.link("review"))
    found = page.get_by_role("list", name="Open proposals")
    expect(found.get_by_role("link", name="Low Season and its lead")).to_be_visible()
    expect(found.get_by_text("Too early")).to_have_count(0)
    page.get_by_role("tab", name=re.compile("Closed")).click()
    expect(page).to_have_url(re.compile("state=closed"))
    expect(page.get_by_role("link", name="Too early")).to_be_visible()
    page.get_by_role("tab", name=re.compile("Approved")).click()
    expect(page.get_by_text("Nothing is approved and not merged.")).to_be_visible()
    page.get_by_role("tab", name=re.compile("All")).click()
    page.locator("main").focus()
    page.keyboard.press("/")
    page.keyboard.type("mara autumn")
    expect(
        page.get_by_role("list", name="All proposals").get_by_role("listitem").first
    ).to_be_visible()
    expect(page.get_by_role("link", name="Too early")).to_have_count(0)
    page.keyboard.press("Tab")
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="Low Season and its lead")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Low Season and its lead")).to_be_visible()
    expect(page).to_have_url(re.compile("n=1"))


def test_a_proposal_tells_what_was_said_found_and_wanted(page: Page, world: World) -> None:
    page.goto(world.link("review", n="1"))
    talk = page.get_by_role("list", name="Conversation")
    expect(talk).to_contain_text("The season catalogue lists it")
    expect(talk).to_contain_text("mara committed New rating")
    expect(talk).to_contain_text("lena asked for changes")
    expect(page.locator(".merge-box")).to_contain_text("lena wants changes")
    expect(page.locator(".merge-box")).to_contain_text("1 of 2 checks failed")
    expect(page.get_by_role("button", name="Merge into main")).to_be_disabled()
    people = page.get_by_role("complementary", name="About the proposal")
    expect(people).to_contain_text("wants changes")
    expect(people).to_contain_text("waiting")
    keep(page, "proposal")
    page.get_by_role("tab", name=re.compile("Checks")).click()
    rows = page.get_by_role("region", name="Rows found by of_the_future")
    expect(rows.get_by_role("row").filter(has_text="Low Season")).to_contain_text("2026")
    expect(page.get_by_role("list", name="Checks")).to_contain_text("rows found: 1; allowed: 0")
    page.get_by_role("tab", name=re.compile("Conversation")).click()
    page.get_by_role("link", name="Film The Cartographer · rating").click()
    cell = page.get_by_role("article", name="Film The Cartographer")
    expect(cell.locator("del")).to_have_text("8")
    expect(cell.locator("ins")).to_have_text("8.2")
    expect(cell).to_contain_text("Is that the festival's rating?")
    expect(page.get_by_role("article")).to_have_count(2)


def test_types_rows_and_cells_are_commented_on(page: Page, world: World) -> None:
    _draft(world, "talked", 2009)
    number = world.films.propose("talked", "Talk about it", actor="mara").number
    page.goto(world.link("review", n=str(number), tab="changes"))
    row = page.get_by_role("article", name="Film Quiet Engines")
    row.get_by_role("button", name="Comment on Film Quiet Engines · year").click()
    field = page.get_by_label("Comment on Film Quiet Engines · year").last
    expect(field).to_be_focused()
    page.keyboard.type("Which print?")
    keep(page, "proposal-comment")
    page.keyboard.press("Control+Enter")
    expect(row.locator(".remark")).to_contain_text("Which print?")
    row.get_by_role("button", name="Comment on Film Quiet Engines", exact=True).click()
    expect(row.get_by_role("textbox")).to_be_focused()
    page.keyboard.type("About all of it.")
    page.keyboard.press("Control+Enter")
    expect(row.locator(".remark")).to_have_count(2)
    page.get_by_role("button", name="Comment on Film", exact=True).click()
    expect(page.get_by_role("textbox")).to_be_focused()
    page.keyboard.type("And of films in general.")
    page.keyboard.press("Escape")
    expect(page.get_by_label("Comment on Film", exact=True)).to_have_count(1)  # the button alone
    page.get_by_role("tab", name=re.compile("Conversation")).click()
    page.locator("main").focus()
    page.keyboard.press("c")
    expect(page.get_by_label("Add a comment")).to_be_focused()
    page.keyboard.type("Thank you.")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("list", name="Conversation")).to_contain_text("Thank you.")
    said = [(e.actor, e.type, e.id, e.property) for e in world.films.proposal(number).thread[1:]]
    assert said == [
        ("editor", "Film", "Quiet Engines", "year"),
        ("editor", "Film", "Quiet Engines", None),
        ("editor", None, None, None),
    ]


def test_a_verdict_is_for_the_commit_that_was_looked_at(page: Page, world: World) -> None:
    _draft(world, "judged", 2010)
    number = world.films.propose("judged", "Judge it", actor="mara").number
    page.goto(world.link("review", n=str(number)))
    _review(page, "Request changes", "Where is that from?")
    expect(page.locator(".proposal-facts")).to_contain_text("Changes wanted")
    page.get_by_role("button", name="Review…").click()
    world.films.load([{"type": "Studio", "data": {"name": "Judged"}}], branch="judged")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Approve").check()
    dialog.get_by_role("button", name="Submit review").click()
    expect(dialog.get_by_role("alert")).to_contain_text("proposal_moved")
    assert world.films.proposal(number).state == "changes_wanted"
    page.reload()
    _review(page, "Approve", "Now it is fine.")
    expect(page.locator(".proposal-facts")).to_contain_text("Approved")
    expect(page.locator(".merge-box")).to_contain_text("1 approval of this commit")
    page.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Close proposal…").click()
    page.get_by_role("dialog").get_by_label("Why (optional)").fill("Another time.")
    page.get_by_role("button", name="Close without merging").click()
    expect(page.locator(".proposal-facts")).to_contain_text("Closed")
    expect(page.get_by_role("button", name="Review…")).to_have_count(0)
    page.get_by_role("tab", name=re.compile("Changes")).click()
    expect(page.get_by_role("article", name="Film Quiet Engines")).to_be_visible()


def test_conflicts_of_a_proposal_are_decided_and_merged(page: Page, world: World) -> None:
    page.goto(world.link("review", n="2"))
    expect(page.locator(".merge-box")).to_contain_text("1 of 1 conflict to decide")
    merge = page.get_by_role("button", name="Merge into print")
    expect(merge).to_be_disabled()
    page.get_by_role("link", name="1 of 1 conflict to decide").click()
    page.get_by_label("year: take theirs").check()
    keep(page, "proposal-conflicts")
    page.get_by_role("tab", name=re.compile("Conversation")).click()
    expect(page.locator(".merge-box")).to_contain_text("1 conflict decided")
    expect(merge).to_be_enabled()
    merge.click()
    expect(page.locator(".proposal-facts")).to_contain_text("Merged")
    expect(page.get_by_role("list", name="Conversation")).to_contain_text("editor merged this as")
    assert world.films.query(YEAR, {"t": "Glass Orchard"}, branch="print").scalar() == 2002
    made = world.films.log("print", 1)[0]
    assert (made.proposal, made.message) == (2, "Merge proposal 2: Years as the web has them")
    page.get_by_role("link", name="Show the commit").click()
    page.get_by_role("link", name="#2", exact=True).click()
    expect(page.get_by_role("heading", name="Years as the web has them")).to_be_visible()


def test_a_branch_is_proposed_from_its_review(page: Page, world: World) -> None:
    _draft(world, "offered", 2012)
    page.goto(world.link("review", source="offered", target="main"))
    expect(page.get_by_role("button", name="Merge into main")).to_be_enabled()  # as the policy is
    page.get_by_role("button", name="Propose…").click()
    dialog = page.get_by_role("dialog")
    send = dialog.get_by_role("button", name="Propose", exact=True)
    expect(dialog.get_by_label("Title")).to_be_focused()
    expect(send).to_be_disabled()
    dialog.get_by_label("Title").fill("A better year")
    dialog.get_by_label("Description").fill("From the archive.")
    dialog.get_by_label("Reviewers").fill("lena, kenji")
    send.click()
    expect(page.get_by_role("heading", name="A better year")).to_be_visible()
    made = world.films.proposals(target="main", limit=1)[0]
    assert (made.source, made.author, made.reviewers) == ("offered", "editor", ("lena", "kenji"))
    page.get_by_role("button", name="Review…").click()
    expect(page.get_by_role("dialog").get_by_label("Approve")).to_be_disabled()  # one's own
    page.keyboard.press("Escape")
    page.goto(world.link("review", actor=None, source="offered", target="main"))
    expect(page.get_by_role("link", name="A better year")).to_be_visible()
    expect(page.get_by_role("button", name="Propose…")).to_have_count(0)


def test_who_may_only_read_sees_it_all_and_is_offered_nothing(window: Open, world: World) -> None:
    with window() as page:
        page.goto(world.link("review", actor="reader"))
        expect(page.get_by_role("link", name="Low Season and its lead")).to_be_visible()
        expect(page.get_by_role("button", name="Propose a branch")).to_have_count(0)
        page.get_by_role("link", name="Low Season and its lead").click()
        expect(page.locator(".merge-box")).to_contain_text("You may not merge into main")
        for name in ("Review…", "Comment", "Merge into main"):
            expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
        page.get_by_role("tab", name=re.compile("Changes")).click()
        expect(page.get_by_role("article", name="Film The Cartographer")).to_be_visible()
        expect(page.get_by_role("button", name=re.compile("Comment on"))).to_have_count(0)


def test_nothing_waiting_and_failing_are_designed(window: Open, world: World) -> None:
    def slow(route: Route) -> None:
        """Never answered."""

    with window() as page:
        page.goto(world.link("review", graph="wide"))
        expect(page.get_by_text("No proposals yet")).to_be_visible()
        page.route("**/proposals/1/review*", slow)
        page.goto(world.link("review", actor=None, n="1"))
        expect(page.get_by_role("heading", name="Low Season and its lead")).to_be_visible()
        expect(page.get_by_role("status", name=re.compile("running the checks"))).to_be_visible()
        page.unroute("**/proposals/1/review*")
        page.route("**/proposals/1/review*", lambda route: route.fulfill(status=500, body="no"))
        page.goto(world.link("review", actor=None, n="1", tab="checks"))
        page.reload()
        expect(page.get_by_role("button", name="Try again")).to_be_visible()
        page.unroute("**/proposals/1/review*")
        page.get_by_role("button", name="Try again").click()
        expect(page.get_by_role("list", name="Checks")).to_be_visible()
        page.goto(world.link("review", actor=None, n="4711"))
        expect(page.get_by_role("alert")).to_contain_text("proposal_not_found")
        page.goto(world.link("review", actor=None, n="<img>"))
        expect(page.get_by_text("A proposal is named by its number.")).to_be_visible()
