"""Making a graph: everything is prepared out of sight, and one object makes it exist, once."""

from __future__ import annotations

import pytest

from omnigraph.core import layout
from omnigraph.core.clock import Clock
from omnigraph.core.create import fill, fresh_stamp
from omnigraph.core.repository import Repository, read_stamp
from omnigraph.errors import CommitUnknown, GraphExists, GraphNotFound, StoreOutcomeUnknown
from omnigraph.model.limits import DEFAULT
from omnigraph.storage.objects import Location
from tests.support.dict_objects import DictObjects, Hook, Shelf, nothing
from tests.support.dict_tables import DictTables, Disk
from tests.support.worlds import add_person, people, stored_schema, submit

QUIET = Clock(pause=lambda _seconds: None)


def place(shelf: Shelf, before: Hook = nothing, after: Hook = nothing) -> Repository:
    """Where a graph is to be, with an identity of its own."""
    store = DictObjects(shelf, before, after)
    where = Location("memory://simulated", "memory", {})
    return Repository(where, store, DictTables(Disk(store)), fresh_stamp(QUIET), clock=QUIET)


def unanswered(folder: str, times: int = 1000) -> tuple[Hook, list[str]]:
    """Creates in a folder get no answer."""
    struck: list[str] = []

    def hook(verb: str, key: str) -> None:
        if verb == "put_new" and key.startswith(folder) and len(struck) < times:
            struck.append(key)
            raise StoreOutcomeUnknown("no answer")

    return hook, struck


def is_there(shelf: Shelf) -> bool:
    try:
        read_stamp(DictObjects(shelf))
    except GraphNotFound:
        return False
    return True


@pytest.mark.parametrize("folder", [layout.GRAPH, layout.CHAINS, layout.SCHEMAS])
def test_a_store_that_never_answers_leaves_no_graph(folder: str) -> None:
    shelf = Shelf()
    hook, struck = unanswered(folder)
    with pytest.raises((CommitUnknown, StoreOutcomeUnknown)):
        fill(place(shelf, before=hook), stored_schema())
    assert len(struck) == DEFAULT.unknown_attempts_max
    assert not is_there(shelf)
    fill(place(shelf), stored_schema())
    assert is_there(shelf), "what an attempt left is in nobody's way"


@pytest.mark.parametrize("folder", [layout.GRAPH, layout.CHAINS, layout.SCHEMAS])
@pytest.mark.parametrize("lost", ["request", "answer"])
def test_one_lost_message_is_made_good(folder: str, lost: str) -> None:
    shelf = Shelf()
    hook, struck = unanswered(folder, times=1)
    repo = place(shelf, before=hook) if lost == "request" else place(shelf, after=hook)
    fill(repo, stored_schema())
    assert struck, "nothing was lost: nothing is tested"
    assert read_stamp(DictObjects(shelf)) == repo.stamp
    submit(repo, add_person("ann"))
    assert people(repo) == ["ann"]


def test_of_two_who_create_a_graph_one_is_told_so() -> None:
    shelf = Shelf()
    rival = place(shelf)

    def before(verb: str, key: str) -> None:
        if key == layout.GRAPH and verb == "put_new":
            fill(rival, stored_schema())

    with pytest.raises(GraphExists):
        fill(place(shelf, before=before), stored_schema())
    assert read_stamp(DictObjects(shelf)) == rival.stamp
    submit(rival, add_person("ann"))
    assert people(rival) == ["ann"], "the loser spoiled something"
