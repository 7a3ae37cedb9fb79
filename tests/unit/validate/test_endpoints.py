"""Edges end at nodes that will be there, and nodes do not leave edges behind."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import OmnigraphError
from omnigraph.model.changes import Changes, TypeChanges
from omnigraph.model.tokens import endpoint_tokens, id_tokens
from omnigraph.storage.tables import ADDRESS
from omnigraph.validate import evaluate
from omnigraph.write.resolve import Mode, resolve
from tests.support.writing import Bench, Rows, bench, incoming

SCHEMA = """
node Person { name: String @key }
node City { name: String @key }
edge LivesIn: Person -> City { since: I32? }
edge Knows: Person -> Person
"""


@pytest.fixture
def graph() -> Bench:
    made = bench(SCHEMA)
    made.put(
        Person=[{"name": "Ada"}, {"name": "Bob"}],
        City=[{"name": "Oslo"}],
        LivesIn=[{"id": "l1", "src": "Ada", "dst": "Oslo"}],
        Knows=[{"id": "k1", "src": "Ada", "dst": "Bob"}],
    )
    return made


def violations(graph: Bench, mode: Mode = Mode.MERGE, /, **rows: Rows) -> list[dict[str, Any]]:
    with pytest.raises(OmnigraphError) as caught:
        graph.put(mode, **rows)
    return list(caught.value.details["violations"])


@pytest.mark.parametrize(
    ("edge", "side", "type_name"),
    [
        ({"src": "Eve", "dst": "Oslo"}, "src", "Person"),
        ({"src": "Ada", "dst": "Paris"}, "dst", "City"),
    ],
)
def test_an_end_that_does_not_exist_is_named(
    graph: Bench, edge: dict[str, str], side: str, type_name: str
) -> None:
    [found] = violations(graph, LivesIn=[edge])
    assert (found["rule"], found["property"], found["value"]) == ("endpoint", side, edge[side])
    assert f"{side} {edge[side]!r} of LivesIn is not found in {type_name}" in found["message"]


def test_both_ends_are_reported(graph: Bench) -> None:
    found = violations(graph, LivesIn=[{"src": "Eve", "dst": "Paris"}])
    assert [v["value"] for v in found] == ["Paris", "Eve"]


def test_an_id_of_another_type_is_no_end(graph: Bench) -> None:
    [found] = violations(graph, Knows=[{"src": "Ada", "dst": "Oslo"}])
    assert found["value"] == "Oslo"


def test_ends_may_come_with_the_same_write(graph: Bench) -> None:
    graph.put(
        LivesIn=[{"src": "Eve", "dst": "Paris"}], Person=[{"name": "Eve"}], City=[{"name": "Paris"}]
    )
    assert len(graph.rows("LivesIn")) == 2


def test_ends_may_come_with_an_earlier_statement(graph: Bench) -> None:
    graph.mutate(
        'query m() { insert Person { name: "Eve" } insert Knows { from: "Eve", to: "Ada" } }'
    )
    assert len(graph.rows("Knows")) == 2


def test_an_end_that_moves_is_checked(graph: Bench) -> None:
    [found] = violations(graph, LivesIn=[{"id": "l1", "src": "Ada", "dst": "Paris"}])
    assert (found["id"], found["property"]) == ("l1", "dst")


def test_an_overwrite_of_nodes_may_not_leave_edges_behind(graph: Bench) -> None:
    found = violations(graph, Mode.OVERWRITE, Person=[{"name": "Bob"}])
    assert [(v["rule"], v["type"], v["id"], v["value"]) for v in found] == [
        ("orphan_edge", "Knows", "k1", "Ada"),
        ("orphan_edge", "LivesIn", "l1", "Ada"),
    ]


def test_an_overwrite_of_nodes_together_with_their_edges_is_judged_by_the_new_ones(
    graph: Bench,
) -> None:
    graph.put(
        Mode.OVERWRITE, Person=[{"name": "Bob"}], Knows=[{"src": "Bob", "dst": "Bob"}], LivesIn=[]
    )
    assert graph.ids("Person") == ["Bob"]
    assert graph.rows("LivesIn") == []


def test_new_edges_of_an_overwrite_need_nodes_of_the_replacement(graph: Bench) -> None:
    rows: dict[str, Rows] = {"Person": [{"name": "Bob"}], "LivesIn": []}
    [found] = violations(graph, Mode.OVERWRITE, **rows, Knows=[{"src": "Bob", "dst": "Ada"}])
    assert (found["rule"], found["value"]) == ("endpoint", "Ada")


def test_an_overwrite_of_edges_is_checked_against_stored_nodes(graph: Bench) -> None:
    [found] = violations(graph, Mode.OVERWRITE, Knows=[{"src": "Ada", "dst": "Eve"}])
    assert found["value"] == "Eve"


def test_a_delete_that_forgets_its_edges_is_refused(graph: Bench) -> None:
    txn = graph.txn()
    kind = graph.kind("Person")
    gone = txn.view(kind.table_id).scan(["id"])
    report = evaluate(Changes({kind.table_id: TypeChanges(kind, deletes=gone)}), txn)
    assert {v.id for v in report.violations} == {"k1", "l1"}
    assert {v.rule for v in report.violations} == {"orphan_edge"}


def test_a_node_is_missed_at_the_far_end_too(graph: Bench) -> None:
    txn = graph.txn()
    kind = graph.kind("City")
    gone = txn.view(kind.table_id).scan(["id"])
    report = evaluate(Changes({kind.table_id: TypeChanges(kind, deletes=gone)}), txn)
    assert [(v.rule, v.id, v.property) for v in report.violations] == [("orphan_edge", "l1", "dst")]


def test_the_verdict_rests_on_the_ends_looked_up(graph: Bench) -> None:
    txn = graph.txn()
    given = incoming(txn.catalog, "LivesIn", [{"src": "Ada", "dst": "Oslo"}])
    reads = evaluate(resolve(txn, [given]).changes, txn).reads
    assert set(reads) == {graph.kind("Person").table_id, graph.kind("City").table_id}
    assert reads[graph.kind("City").table_id].tokens.tolist() == id_tokens_of("Oslo")
    assert not any(read.everything for read in reads.values())


def test_a_deletion_rests_on_nobody_adding_an_edge(graph: Bench) -> None:
    plan = graph.verb('query m() { delete Person where name = "Bob" }')(graph.txn())
    knows = plan.reads[graph.kind("Knows").table_id].tokens.tolist()
    assert set(knows) == {*end_tokens("src", "Bob"), *end_tokens("dst", "Bob")}
    assert plan.reads[graph.kind("LivesIn").table_id].tokens.tolist() == end_tokens("src", "Bob")


def deleted(graph: Bench, type_name: str) -> TypeChanges:
    """All nodes of a type go, and nobody thought of their edges."""
    kind = graph.kind(type_name)
    return TypeChanges(kind, deletes=graph.txn().view(kind.table_id).scan(["id"]))


def test_edges_the_verb_has_looked_up_are_not_looked_for_again(graph: Bench) -> None:
    change = deleted(graph, "Person")
    person = change.kind.table_id
    report = evaluate(Changes({person: change}), graph.txn(), cascaded=frozenset({person}))
    assert report.violations == ()
    knows = set(report.reads[graph.kind("Knows").table_id].tokens.tolist())
    everybody = ("Ada", "Bob")
    assert knows == {*end_tokens("src", *everybody), *end_tokens("dst", *everybody)}


def test_a_changed_edge_is_left_behind_like_others(graph: Bench) -> None:
    change = deleted(graph, "City")
    lives = graph.kind("LivesIn")
    stored = graph.txn().view(lives.table_id).scan(["id", "src", "dst", "since"])
    since = stored.schema.get_field_index("since")
    newer = stored.set_column(since, "since", pa.array([7], pa.int32())).drop_columns([ADDRESS])
    edges = TypeChanges(lives, updates=newer, before=stored)
    changes = Changes({change.kind.table_id: change, lives.table_id: edges})
    found = evaluate(changes, graph.txn()).violations
    assert [(v.rule, v.id) for v in found] == [("orphan_edge", "l1")]


def test_nodes_of_the_write_itself_are_not_looked_up(graph: Bench) -> None:
    txn = graph.txn()
    person = graph.kind("Person").table_id
    both: list[tuple[str, Rows]] = [
        ("Person", [{"name": "Eve"}, {"name": "Bob"}]),
        ("Knows", [{"src": "Eve", "dst": "Bob"}]),
    ]
    given = [incoming(txn.catalog, name, rows) for name, rows in both]
    assert person not in evaluate(resolve(txn, given).changes, txn).reads
    both[1] = ("Knows", [{"src": "Eve", "dst": "Ada"}])
    given = [incoming(txn.catalog, name, rows) for name, rows in both]
    assert person in evaluate(resolve(txn, given).changes, txn).reads
    assert person not in evaluate(resolve(txn, given, Mode.OVERWRITE).changes, txn).reads


def id_tokens_of(*ids: str) -> list[int]:
    found: list[int] = id_tokens(pa.array(ids)).tolist()
    return found


def end_tokens(side: str, *ids: str) -> list[int]:
    found: list[int] = endpoint_tokens(side, pa.array(ids)).tolist()
    return found
