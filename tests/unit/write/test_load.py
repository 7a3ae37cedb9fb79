"""Loads end to end: modes, what counts, one commit or none, branches made by a load, races, embeddings."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.core.plan import PublishPlan, Verb
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import BranchNotFound, OptionInvalid, WriteConflict
from omnigraph.graph import Graph
from omnigraph.validate import KeyConflict, ValidationFailed
from omnigraph.write.apply_schema import apply_schema
from omnigraph.write.embed import EmbeddingFailed
from omnigraph.write.input.problems import InputInvalid
from omnigraph.write.load import LoadOutcome, load

SCHEMA = """
node Person { name: String @key  age: I32?  email: String? @unique }
node Note { text: String? }
edge Knows: Person -> Person { since: I32? }
edge Likes: Person -> Note { @key(src, dst) }
edge Boss: Person -> Person @card(0..1)
"""
_names = itertools.count()
Rows = list[dict[str, Any]]


@pytest.fixture
def graph() -> Graph:
    graph = omnigraph.init(f"memory://load-{next(_names)}", schema=SCHEMA)
    graph.load({"Person": [{"name": "ann", "age": 40}, {"name": "bob", "age": 20}]})
    return graph


def person(name: str, **data: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **data}}


def knows(source: str, target: str, **data: Any) -> dict[str, Any]:
    return {"edge": "Knows", "from": source, "to": target, "data": data}


def rows(graph: Graph, type_name: str, *columns: str, branch: str = "main") -> Rows:
    snapshot = graph.snapshot(branch)
    kind = snapshot.catalog.entity(type_name)
    assert kind is not None
    found = snapshot.table_of(kind).scan(["id", *columns]).select(["id", *columns]).to_pylist()
    return sorted(found, key=lambda row: str(row["id"]))


def ages(graph: Graph, branch: str = "main") -> dict[str, int | None]:
    return {row["id"]: row["age"] for row in rows(graph, "Person", "age", branch=branch)}


def unchanged(graph: Graph, source: Any, error: type[Exception], mode: str = "merge") -> Any:
    """A load that must fail and leave no trace; and the next load works at once."""
    before = graph.snapshot().commit
    with pytest.raises(error) as caught:
        graph.load(source, mode=mode)
    assert graph.snapshot().commit == before
    graph.load([person("next")])
    return caught.value


# --- modes -------------------------------------------------------------------------------------------------------


def test_merge_changes_the_fields_it_names(graph: Graph) -> None:
    graph.load([person("ann", email="a@x"), person("bob", age=None), person("cy")])
    assert ages(graph) == {"ann": 40, "bob": None, "cy": None}


def test_append_refuses_what_exists_and_writes_nothing(graph: Graph) -> None:
    error = unchanged(graph, [person("new"), person("bob")], KeyConflict, "append")
    assert "bob" in str(error)
    assert ages(graph).keys() == {"ann", "bob", "next"}


def test_append_adds_rows_and_defaults(graph: Graph) -> None:
    done = graph.load([person("cy", age=1)], mode="append")
    assert dict(done.nodes) == {"Person": 1}
    assert ages(graph) == {"ann": 40, "bob": 20, "cy": 1}


def test_overwrite_replaces_the_types_present_and_no_others(graph: Graph) -> None:
    graph.load({"Note": [{"id": "n", "text": "t"}]})
    graph.load([person("dee", age=9)], mode="overwrite")
    assert ages(graph) == {"dee": 9}
    assert rows(graph, "Note", "text") == [{"id": "n", "text": "t"}]


def test_overwriting_nodes_away_under_edges_is_refused(graph: Graph) -> None:
    graph.load([knows("ann", "bob")])
    error = unchanged(graph, [person("ann")], ValidationFailed, "overwrite")
    assert "bob" in str(error)


def test_a_type_named_without_rows_is_emptied_by_overwrite(graph: Graph) -> None:
    graph.load({"Note": [{"id": "n"}]})
    done = graph.load({"Note": []}, mode="overwrite")
    assert dict(done.nodes) == {"Note": 0}
    assert rows(graph, "Note") == []
    assert ages(graph) == {"ann": 40, "bob": 20}


def test_an_unknown_mode_is_refused(graph: Graph) -> None:
    with pytest.raises(OptionInvalid, match="append"):
        graph.load([], mode="replace")


# --- what counts -------------------------------------------------------------------------------------------------


def test_an_empty_load_is_a_commit(graph: Graph) -> None:
    before = graph.snapshot().commit_id
    done = graph.load([])
    assert done.commit is not None
    assert (done.commit.id, done.commit.kind) != (before, "load")
    assert done.commit.kind == "load"


def test_a_load_is_one_commit_of_all_types(graph: Graph) -> None:
    count = len(graph.log())
    done = graph.load([knows("cy", "ann"), person("cy"), {"type": "Note", "data": {"id": "n"}}])
    assert len(graph.log()) == count + 1
    assert (dict(done.nodes), dict(done.edges)) == ({"Person": 1, "Note": 1}, {"Knows": 1})


def test_edges_without_identity_are_new_each_time_and_counted(graph: Graph) -> None:
    records = [knows("ann", "bob"), knows("bob", "ann", id="k1")]
    for _ in range(2):
        done = graph.load(records)
        assert dict(done.new_each_time) == {"Knows": 1}
    assert len(rows(graph, "Knows")) == 3


def test_edges_with_a_key_are_loaded_again_without_harm(graph: Graph) -> None:
    records = [{"type": "Note", "data": {"id": "n"}}, {"edge": "likes", "from": "ann", "to": "n"}]
    for _ in range(2):
        assert dict(graph.load(records).new_each_time) == {}
    assert rows(graph, "Likes") == [{"id": '["ann","n"]'}]


def test_the_last_of_two_rows_with_one_id_wins_field_by_field(graph: Graph) -> None:
    notes: Rows = [{"id": "n", "text": "a"}, {"id": "n", "text": "b"}, {"id": "n"}]
    graph.load({"Note": notes})
    assert rows(graph, "Note", "text") == [{"id": "n", "text": "b"}]


def test_a_key_may_not_occur_twice_in_one_load(graph: Graph) -> None:
    error = unchanged(graph, [person("cy", age=1), person("cy", age=2)], ValidationFailed)
    assert "cy" in str(error)


def test_an_outcome_survives_its_json() -> None:
    outcome = LoadOutcome({"A": 1}, {"B": 2}, {"B": 1})
    assert LoadOutcome.from_json(outcome.to_json()) == outcome


# --- all or nothing ----------------------------------------------------------------------------------------------


def test_a_rejected_load_leaves_no_trace(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    path.write_text(
        '{"type":"Person","data":{"name":"cy"}}\n{"type":"Person","data":{"age":"x"}}\n'
    )
    error = unchanged(graph, str(path), InputInvalid)
    assert error.details["violations"][0]["line"] == 2
    assert "cy" not in ages(graph)


def test_every_broken_rule_is_listed_with_its_place(graph: Graph) -> None:
    graph.load([person("cy", email="e@x")])
    records = [
        knows("nobody", "ann"),
        person("dee", email="e@x"),
        {"edge": "Boss", "from": "ann", "to": "bob"},
        {"edge": "Boss", "from": "ann", "to": "cy"},
    ]
    error = unchanged(graph, records, ValidationFailed)
    found = {(v["rule"], v["type"], v["line"]) for v in error.details["violations"]}
    rules = {rule for rule, _, _ in found}
    assert len(found) == 3
    assert {"unique"} < rules
    assert ("Knows", 1) in {(name, line) for _, name, line in found}


def test_required_is_judged_on_the_final_row() -> None:
    graph = omnigraph.init(
        f"memory://load-{next(_names)}", schema="node T { k: String @key  need: I32  more: I32? }"
    )
    graph.load([{"type": "T", "data": {"k": "a", "need": 1}}])
    graph.load([{"type": "T", "data": {"k": "a", "more": 2}}])
    for records in (
        [{"type": "T", "data": {"k": "b"}}],
        [{"type": "T", "data": {"k": "a", "need": None}}],
    ):
        with pytest.raises(ValidationFailed, match="need"):
            graph.load(records)
    assert rows(graph, "T", "need", "more") == [{"id": "a", "need": 1, "more": 2}]


# --- branches ----------------------------------------------------------------------------------------------------


def test_a_load_can_make_its_branch_in_the_same_commit(graph: Graph) -> None:
    main = graph.snapshot().commit_id
    done = graph.load([person("cy")], branch="inbox", create_from="main", actor="me", message="hi")
    assert done.branch_created
    assert done.commit is not None
    assert done.commit.parents == (main,)
    assert (done.commit.kind, done.commit.actor, done.commit.message) == ("load", "me", "hi")
    assert graph.log("inbox")[0].id == done.commit.id
    assert graph.log("inbox")[1].id == main
    assert "cy" in ages(graph, "inbox")
    assert "cy" not in ages(graph)
    assert graph.snapshot().commit_id == main


def test_a_branch_made_by_a_load_takes_more_writes_and_merges_of_history(graph: Graph) -> None:
    graph.load([person("cy", age=1)], branch="inbox", create_from="main")
    graph.load([person("cy", age=2)], branch="inbox")
    graph.load([person("main", age=3)])
    assert ages(graph, "inbox") == {"ann": 40, "bob": 20, "cy": 2}
    assert len(graph.log("inbox")) == len(graph.log("main")) + 1


def test_a_failed_load_leaves_no_branch(graph: Graph) -> None:
    for records in ([knows("ann", "nobody")], [person("x", age="y")]):
        with pytest.raises((ValidationFailed, InputInvalid)):
            graph.load(records, branch="inbox", create_from="main")
        assert graph.branches() == ["main"]
        with pytest.raises(BranchNotFound):
            graph.snapshot("inbox")
    graph.load([person("cy")], branch="inbox", create_from="main")
    assert graph.branches() == ["main", "inbox"]


def test_a_load_that_fails_while_staging_gives_the_name_back(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> object:
        raise RuntimeError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("omnigraph.core.first_commit.stage", fail)
        with pytest.raises(RuntimeError):
            graph.load([person("cy")], branch="inbox", create_from="main")
    assert graph.branches() == ["main"]
    assert graph.load([person("cy")], branch="inbox", create_from="main").branch_created


def test_a_branch_that_exists_is_loaded_into(graph: Graph) -> None:
    graph.create_branch("inbox")
    done = graph.load([person("cy")], branch="inbox", create_from="main")
    assert not done.branch_created
    assert "cy" in ages(graph, "inbox")


def test_a_branch_is_not_made_from_one_that_does_not_exist(graph: Graph) -> None:
    with pytest.raises(BranchNotFound):
        graph.load([person("cy")], branch="inbox", create_from="nowhere")
    assert graph.branches() == ["main"]


def test_a_source_that_moves_meanwhile_is_planned_again(graph: Graph) -> None:
    rival = omnigraph.open(graph.uri)
    inner = load([person("cy", age=1)])
    runs: list[str] = []

    def verb(txn: WriteTxn) -> PublishPlan:
        plan = inner(txn)
        runs.append(txn.snapshot.commit_id)
        if len(runs) == 1:
            rival.load([person("dee", age=2)])
        return plan

    graph.publish(verb, branch="inbox", create_from="main")
    assert len(runs) == 2
    assert ages(graph, "inbox") == {"ann": 40, "bob": 20, "cy": 1, "dee": 2}


def test_a_load_under_a_key_is_made_once(graph: Graph) -> None:
    first = graph.load([knows("ann", "bob")], idempotency_key="k")
    again = graph.load([knows("ann", "bob")], idempotency_key="k")
    assert (first.replayed, again.replayed) == (False, True)
    assert first.commit is not None
    assert again.commit is not None
    assert again.commit.id == first.commit.id
    assert dict(again.edges) == {"Knows": 1}
    assert len(rows(graph, "Knows")) == 1


def test_a_load_under_a_key_makes_its_branch_once(graph: Graph) -> None:
    first = graph.load([person("cy")], branch="in", create_from="main", idempotency_key="k")
    again = graph.load([person("cy")], branch="in", create_from="main", idempotency_key="k")
    assert (first.branch_created, again.branch_created, again.replayed) == (True, False, True)
    assert first.commit is not None
    assert again.commit is not None
    assert again.commit.id == first.commit.id


# --- races -------------------------------------------------------------------------------------------------------


def raced(inner: Verb, rival: Callable[[], object]) -> tuple[Verb, list[int]]:
    runs: list[int] = []

    def verb(txn: WriteTxn) -> PublishPlan:
        plan = inner(txn)
        runs.append(1)
        if len(runs) == 1:
            rival()
        return plan

    return verb, runs


def test_a_merge_that_lost_a_race_keeps_what_the_winner_wrote(graph: Graph) -> None:
    rival = omnigraph.open(graph.uri)
    verb, runs = raced(load([person("ann", age=1)]), lambda: rival.load([person("ann", email="e")]))
    graph.publish(verb)
    assert len(runs) == 2
    assert rows(graph, "Person", "age", "email")[0] == {"id": "ann", "age": 1, "email": "e"}


def test_a_load_of_other_rows_does_not_run_again(graph: Graph) -> None:
    rival = omnigraph.open(graph.uri)
    verb, runs = raced(load([person("cy", age=1)]), lambda: rival.load([person("dee")]))
    graph.publish(verb)
    assert len(runs) == 1
    assert ages(graph).keys() == {"ann", "bob", "cy", "dee"}


def test_an_overwrite_answers_with_the_conflict(graph: Graph) -> None:
    rival = omnigraph.open(graph.uri)
    verb, _ = raced(load([person("cy")], "overwrite"), lambda: rival.load([person("dee")]))
    with pytest.raises(WriteConflict):
        graph.publish(verb)
    assert "dee" in ages(graph)


def test_a_source_read_once_is_not_read_under_another_schema(graph: Graph) -> None:
    rival = omnigraph.open(graph.uri)
    other = SCHEMA.replace("age: I32?", "age: I64?")

    def change() -> None:
        rival.publish(apply_schema(other, lambda h: rival._repo.schema(h).ir), alone=True)

    verb, _ = raced(load(iter([person("cy", age=1)])), change)
    with pytest.raises(WriteConflict, match="only once"):
        graph.publish(verb)


# --- embeddings --------------------------------------------------------------------------------------------------


class Provider:
    """Vectors from the length of a text, and a record of what was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str], dim: int, model: str | None) -> list[list[float]]:
        assert (dim, model) == (2, "m")
        self.asked += texts
        return [[float(len(text)), 0.5] for text in texts]


@pytest.fixture
def documents() -> Graph:
    return omnigraph.init(
        f"memory://load-{next(_names)}",
        schema="""
        node Doc { slug: String @key  text: String?  note: I32?  vec: Vector(2)? @embed("text", model="m") }
        """,
    )


def doc(slug: str, **data: Any) -> dict[str, Any]:
    return {"type": "Doc", "data": {"slug": slug, **data}}


def test_new_and_changed_texts_are_embedded_and_no_others(documents: Graph) -> None:
    provider = Provider()
    records = [
        doc("a", text="one"),
        doc("b", text="three"),
        doc("c", vec=[9, 9], text="x"),
        doc("d"),
    ]
    documents.publish(load(records, embed=provider))
    assert provider.asked == ["one", "three"]
    vectors = [row["vec"] for row in rows(documents, "Doc", "vec")]
    assert vectors == [[3.0, 0.5], [5.0, 0.5], [9.0, 9.0], None]
    provider.asked.clear()
    changed = [doc("a", text="one"), doc("b", text="seven77"), doc("c", note=1)]
    documents.publish(load(changed, embed=provider))
    assert provider.asked == ["seven77"]
    assert [row["vec"] for row in rows(documents, "Doc", "vec")][1] == [7.0, 0.5]


def test_a_retry_asks_for_no_vector_again(documents: Graph) -> None:
    provider, rival = Provider(), omnigraph.open(documents.uri)
    verb, runs = raced(
        load([doc("a", text="one")], embed=provider), lambda: rival.load([doc("a", note=1)])
    )
    documents.publish(verb)
    assert len(runs) == 2
    assert provider.asked == ["one"]


def test_a_provider_that_fails_stops_the_load(documents: Graph) -> None:
    def broken(texts: Sequence[str], dim: int, model: str | None) -> list[list[float]]:
        raise OSError("no network")

    before = documents.snapshot().commit
    with pytest.raises(EmbeddingFailed, match="no network") as caught:
        documents.publish(load([doc("a", text="one")], embed=broken))
    assert caught.value.retryable
    assert documents.snapshot().commit == before
