"""Where things lie: keys that name what they hold, and ids of commits that say where they are."""

from __future__ import annotations

import pytest

from omnigraph.core import layout
from omnigraph.errors import CommitNotFound

CHAIN = "0123456789abcdef"


def test_the_id_of_a_commit_says_where_it_is() -> None:
    for place in ((CHAIN, 7, None), (CHAIN, 0, None), (CHAIN, 7, 0), (CHAIN, 7, 12)):
        assert layout.parse_commit_id(layout.commit_id(*place)) == place
    assert layout.commit_id(CHAIN, 7, 2) == f"{CHAIN}.7.2"


def test_a_commit_with_content_is_named_by_its_last_member() -> None:
    assert layout.content_id(CHAIN, 7, 0) == f"{CHAIN}.7"
    assert layout.content_id(CHAIN, 7, 1) == f"{CHAIN}.7"
    assert layout.content_id(CHAIN, 7, 2) == f"{CHAIN}.7.1"
    assert layout.content_id(CHAIN, 7, 3) == f"{CHAIN}.7.2"


@pytest.mark.parametrize(
    "text", ["", CHAIN, f"{CHAIN}.", f"{CHAIN}.x", f"{CHAIN}.1.2.3", f"{CHAIN[1:]}.1", "main"]
)
def test_what_is_no_commit_id(text: str) -> None:
    with pytest.raises(CommitNotFound):
        layout.parse_commit_id(text)


def test_of_several_commits_of_a_chain_the_newest_counts() -> None:
    one = {"a": f"{CHAIN}.9", "b": f"{CHAIN}.3"}
    other = {"a": f"{CHAIN}.10", "b": f"{CHAIN}.2", "c": f"{CHAIN}.1"}
    newest = {"a": f"{CHAIN}.10", "b": f"{CHAIN}.3", "c": f"{CHAIN}.1"}
    assert layout.newest_of(one, other) == layout.newest_of(other, one) == newest
    assert layout.newest_of() == {}


def test_names_are_found_again_in_their_keys() -> None:
    for name in ("main", "a/b", "über", "a%2Fb"):
        assert layout.name_in(f"{layout.ref_folder(name)}/00000000000000000001") == name


def test_ids_are_long_and_never_the_same() -> None:
    made = {layout.fresh_id() for _ in range(100)}
    assert len(made) == 100
    assert {len(id) for id in made} == {16}
    assert all(layout.parse_commit_id(f"{id}.0")[0] == id for id in made)


def test_collections_are_counted_from_one() -> None:
    assert layout.record_key(1).rsplit("/", 1)[0] == layout.RECORDS
    assert layout.record_key(2) < layout.record_key(1), "the newest comes first in a listing"
    assert layout.job_key("j") == "_jobs/j.json"
    assert layout.plan_key("p") == "__recovery/p.json"
    assert layout.export_folder("j") == "_exports/j"
    assert layout.table_path("edge", "e1", "x") == "edges/e1-x"
