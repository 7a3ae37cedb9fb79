"""A hard drop takes the data with it: the branch's past goes, other branches and tags keep theirs."""

from __future__ import annotations

import pytest

import omnigraph
from omnigraph.errors import CommitPruned

BEFORE = "node Person { name: String @key  email: String? }\nnode City { name: String @key }"
AFTER = "node Person { name: String @key }"
EMAILS = "query q() { match { $p: Person } return { $p.email as e } }"


def test_older_commits_of_the_branch_are_gone_and_nothing_else(memory_root: str) -> None:
    graph = omnigraph.init(memory_root, schema=BEFORE)
    graph.load({"Person": [{"name": "Ada", "email": "ada@x"}], "City": [{"name": "London"}]})
    old = graph.log()[0].id
    graph.create_branch("kept")
    graph.mutate('query m() { insert City { name: "Paris" } }')
    between = graph.log()[0].id
    done = graph.apply_schema(AFTER, allow_data_loss=True)
    assert done.applied
    with pytest.raises(CommitPruned):
        graph.query(EMAILS, at=between)
    assert graph.query(EMAILS, branch="kept").rows == [{"e": "ada@x"}]
    assert graph.query(EMAILS, at=old).rows == [{"e": "ada@x"}], "the fork of a live branch stays"


def test_a_soft_drop_keeps_the_past(memory_root: str) -> None:
    graph = omnigraph.init(memory_root, schema=BEFORE)
    graph.load({"Person": [{"name": "Ada", "email": "ada@x"}]})
    old = graph.log()[0].id
    graph.apply_schema(AFTER)
    assert graph.query(EMAILS, at=old).rows == [{"e": "ada@x"}]
