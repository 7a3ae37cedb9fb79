"""Mutation queries: each one commit or none, each statement seeing the ones before it."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from omnigraph.core.layout import fresh_id
from omnigraph.core.plan import PublishPlan, Request, Verb
from omnigraph.core.publisher import Ticket, publish
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import Kind, OmnigraphError, PreconditionFailed
from omnigraph.lang.query import QueryKindMismatch, compile_query
from omnigraph.model.names import MAIN
from omnigraph.write.mutate import MutateOutcome, mutate
from tests.support.writing import Bench, bench

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  score: F64?
  small: F32?
  big: U64?
  city: String? @default("Oslo")
  seen: DateTime?
  tags: [String]?
}
node Log { text: String  at: DateTime? }
node Part { maker: String  number: I64  @key(maker, number)  note: String? }
edge Knows: Person -> Person { since: I32? }
edge Wrote: Person -> Log
"""


@pytest.fixture
def graph() -> Bench:
    made = bench(SCHEMA)
    made.put(
        Person=[
            {"name": "Ada", "age": 36, "city": "London"},
            {"name": "Bob", "age": 40, "city": None},
            {"name": "Cyd", "age": None, "city": "Rome"},
        ],
        Knows=[
            {"id": "k1", "src": "Ada", "dst": "Bob", "since": 1},
            {"id": "k2", "src": "Bob", "dst": "Cyd", "since": 2},
            {"id": "k3", "src": "Ada", "dst": "Ada"},
        ],
    )
    return made


def ages(graph: Bench) -> dict[str, int | None]:
    return {row["name"]: row["age"] for row in graph.rows("Person")}


# --- insert ------------------------------------------------------------------------------------------------------


def test_an_insert_adds_an_entity_and_counts_it(graph: Bench) -> None:
    done = graph.mutate('query m() { insert Person { name: "Eve", age: 7 } }')
    assert done.value == MutateOutcome(affected_nodes=1)
    assert done.commit is not None
    assert graph.rows("Person")[3]["city"] == "Oslo"


def test_a_keyed_insert_changes_only_the_fields_it_names(graph: Bench) -> None:
    done = graph.mutate('query m() { insert Person { name: "Ada", age: 37 } }')
    assert done.value.affected_nodes == 1
    [ada] = [row for row in graph.rows("Person") if row["name"] == "Ada"]
    assert (ada["age"], ada["city"]) == (37, "London")


def test_an_insert_of_null_clears_the_field(graph: Bench) -> None:
    graph.mutate(
        'query m($city: String?) { insert Person { name: "Ada", city: $city } }', city=None
    )
    assert graph.rows("Person")[0]["city"] is None


def test_an_insert_without_key_is_new_each_time(graph: Bench) -> None:
    for _ in range(2):
        graph.mutate('query m() { insert Log { text: "hello" } }')
    assert [row["text"] for row in graph.rows("Log")] == ["hello", "hello"]


def test_several_rows_of_one_insert_count_each_and_name_their_own_fields(graph: Bench) -> None:
    text = 'query m() { insert Person { name: "Eve", age: 1 }, { name: "Ada", city: "Bern" } }'
    assert graph.mutate(text).value == MutateOutcome(affected_nodes=2)
    ada, *_, eve = graph.rows("Person")
    assert (ada["age"], ada["city"]) == (36, "Bern")
    assert (eve["age"], eve["city"]) == (1, "Oslo")


def test_one_insert_may_not_give_a_key_twice(graph: Bench) -> None:
    error = graph.refused('query m() { insert Person { name: "Eve" }, { name: "Eve" } }')
    assert error.details["violations"][0]["rule"] == "duplicate"


def test_two_inserts_of_one_key_make_one_entity_and_count_twice(graph: Bench) -> None:
    text = 'query m() { insert Person { name: "Eve", age: 1 } insert Person { name: "Eve", city: "X" } }'
    assert graph.mutate(text).value.affected_nodes == 2
    eve = graph.rows("Person")[3]
    assert (eve["age"], eve["city"]) == (1, "X")


def test_an_edge_insert_always_adds_an_edge(graph: Bench) -> None:
    for _ in range(2):
        done = graph.mutate('query m() { insert Knows { from: "Ada", to: "Cyd", since: 9 } }')
        assert done.value == MutateOutcome(affected_edges=1)
    assert len(graph.rows("Knows")) == 5


def test_a_composite_key_is_an_endpoint_by_its_text() -> None:
    graph = bench(SCHEMA.replace("edge Wrote: Person -> Log", "edge Uses: Person -> Part"))
    graph.mutate(
        'query m() { insert Person { name: "Ada" } insert Part { maker: "a", number: 1 } }'
    )
    part = '["a","1"]'
    graph.mutate('query m($to: String) { insert Uses { from: "Ada", to: $to } }', to=part)
    assert graph.rows("Uses")[0]["dst"] == part


def test_a_null_key_is_refused(graph: Bench) -> None:
    error = graph.refused("query m($n: String?) { insert Person { name: $n } }", n=None)
    assert error.details["violations"][0]["rule"] == "key"
    assert "name" in error.message


# --- update ------------------------------------------------------------------------------------------------------


def test_an_update_changes_matching_rows_and_counts_them(graph: Bench) -> None:
    done = graph.mutate('query m() { update Person set { city: "Bern" } where age >= 36 }')
    assert done.value == MutateOutcome(affected_nodes=2)
    assert [row["city"] for row in graph.rows("Person")] == ["Bern", "Bern", "Rome"]


def test_values_are_computed_from_the_row_as_it_was(graph: Bench) -> None:
    graph.mutate(
        'query m() { update Person set { age: age + 1, score: age * 0.5 } where name = "Ada" }'
    )
    ada = graph.rows("Person")[0]
    assert (ada["age"], ada["score"]) == (37, 18.0)


def test_an_expression_over_null_is_null(graph: Bench) -> None:
    graph.mutate('query m() { update Person set { score: age + 1 } where name = "Cyd" }')
    assert graph.rows("Person")[2]["score"] is None


def test_an_edge_can_be_updated_and_found_by_its_ends(graph: Bench) -> None:
    done = graph.mutate(
        'query m() { update Knows set { since: 8 } where from = "Ada" and to = "Bob" }'
    )
    assert done.value == MutateOutcome(affected_edges=1)
    assert [row["since"] for row in graph.rows("Knows")] == [8, 2, None]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ('name = "Ada"', ["Ada"]),
        ('"Ada" = name', ["Ada"]),
        ('id = "Bob"', ["Bob"]),
        ('name in ["Ada", "Cyd", "Zoe"]', ["Ada", "Cyd"]),
        ('name = "Ada" and age = 40', []),
        ('name = "Ada" or age = 40', ["Ada", "Bob"]),
        ('not name = "Ada"', ["Bob", "Cyd"]),
        ("age is null", ["Cyd"]),
        ("age != 36", ["Bob"]),
        ('age > 30 and city = "London"', ["Ada"]),
        ("age + 4 = 40", ["Ada"]),
        ('city starts_with "Lon"', ["Ada"]),
        ("true", ["Ada", "Bob", "Cyd"]),
    ],
)
def test_a_condition_selects_where_it_is_true(
    graph: Bench, where: str, expected: list[str]
) -> None:
    text = 'query m() { update Person set { tags: ["hit"] } where CONDITION }'
    graph.mutate(text.replace("CONDITION", where))
    assert [r["name"] for r in graph.rows("Person") if r["tags"] == ["hit"]] == expected


def test_a_comparison_with_a_null_parameter_selects_nothing(graph: Bench) -> None:
    text = "query m($n: String?) { update Person set { age: 1 } where name = $n }"
    assert graph.mutate(text, n=None).commit is None


@pytest.mark.parametrize("number", [1.0, 1.5, 2**40])
def test_a_key_is_found_by_value_whatever_the_type_of_the_constant(
    graph: Bench, number: float
) -> None:
    graph.put(Part=[{"maker": "a", "number": 1}])
    text = 'query m($n: F64) { update Part set { note: "x" } where maker = "a" and number = $n }'
    assert graph.mutate(text, n=number).value.affected_nodes == (1 if number == 1.0 else 0)


def test_an_update_of_nothing_makes_no_commit(graph: Bench) -> None:
    before = graph.graph.snapshot().commit_id
    done = graph.mutate('query m() { update Person set { age: 1 } where name = "Zoe" }')
    assert (done.commit, done.value) == (None, MutateOutcome())
    assert graph.graph.snapshot().commit_id == before


def test_a_key_cannot_be_updated(graph: Bench) -> None:
    assert (
        "name"
        in graph.refused('query m() { update Person set { name: "X" } where age = 36 }').message
    )


def test_a_required_value_cannot_be_updated_to_null(graph: Bench) -> None:
    graph.put(Log=[{"text": "one"}])
    text = 'query m($t: String?) { update Log set { text: $t } where text = "one" }'
    [found] = graph.refused(text, t=None).details["violations"]
    assert (found["rule"], found["property"]) == ("required", "text")


# --- numbers -----------------------------------------------------------------------------------------------------


def test_an_integer_fits_a_float_property(graph: Bench) -> None:
    graph.mutate('query m() { insert Person { name: "Ada", score: 5, small: 2 } }')
    assert graph.rows("Person")[0]["score"] == 5.0


def test_a_whole_float_fits_an_integer_property(graph: Bench) -> None:
    graph.mutate('query m($x: F64) { insert Person { name: "Ada", age: $x } }', x=5.0)
    assert ages(graph)["Ada"] == 5


@pytest.mark.parametrize(
    ("name", "kind", "value"),
    [
        ("age", "F64", 5.5),
        ("age", "I64", 2**31),
        ("small", "F64", 1e300),
        ("score", "I64", 2**53 + 1),
        ("big", "I64", -1),
    ],
)
@pytest.mark.parametrize("verb", ["insert", "update", "computed"])
def test_a_number_that_does_not_fit_is_refused(
    graph: Bench, name: str, kind: str, value: float, verb: str
) -> None:
    texts = {
        "insert": 'insert Person { name: "Ada", NAME: $x }',
        "update": 'update Person set { NAME: $x } where name = "Ada"',
        "computed": 'update Person set { NAME: $x + age - age } where name = "Ada"',
    }
    text = "query m($x: KIND) { " + texts[verb] + " }"
    error = graph.refused(text.replace("NAME", name).replace("KIND", kind), x=value)
    assert error.kind is Kind.INVALID
    [found] = error.details["violations"]
    assert (found["rule"], found["property"]) == ("type" if value == 5.5 else "range", name)
    assert found["id"] == (None if verb == "insert" else "Ada")


def test_an_unsigned_number_beyond_the_signed_range_is_kept(graph: Bench) -> None:
    graph.mutate('query m($x: U64) { insert Person { name: "Ada", big: $x } }', x=2**64 - 1)
    assert graph.rows("Person")[0]["big"] == 2**64 - 1


# --- delete ------------------------------------------------------------------------------------------------------


def test_a_node_delete_takes_its_edges_along(graph: Bench) -> None:
    done = graph.mutate('query m() { delete Person where name = "Ada" }')
    assert done.value == MutateOutcome(affected_nodes=1, affected_edges=2)
    assert graph.ids("Knows") == ["k2"]


def test_an_edge_between_two_deleted_nodes_counts_once(graph: Bench) -> None:
    done = graph.mutate("query m() { delete Person where true }")
    assert done.value == MutateOutcome(affected_nodes=3, affected_edges=3)


def test_deleting_a_node_without_edges_leaves_edge_tables_as_they_were(graph: Bench) -> None:
    graph.mutate('query m() { insert Person { name: "Zoe" } }')
    before = graph.graph.snapshot().ref(graph.kind("Knows").table_id)
    graph.mutate('query m() { delete Person where name = "Zoe" }')
    assert graph.graph.snapshot().ref(graph.kind("Knows").table_id) == before


def test_a_delete_of_nothing_makes_no_commit(graph: Bench) -> None:
    done = graph.mutate(
        'query m() { delete Person where name = "Zoe" delete Knows where since = 99 }'
    )
    assert done.commit is None


@pytest.mark.parametrize(
    ("where", "left"),
    [('from = "Ada"', ["k2"]), ('to = "Cyd"', ["k1", "k3"]), ('id = "k3"', ["k1", "k2"])],
)
def test_edges_are_deleted_by_their_ends_or_id(graph: Bench, where: str, left: list[str]) -> None:
    graph.mutate(f"query m() {{ delete Knows where {where} }}")
    assert graph.ids("Knows") == left


def test_overlapping_deletes_count_an_entity_once(graph: Bench) -> None:
    done = graph.mutate("query m() { delete Person where age >= 36 delete Person where age >= 40 }")
    assert done.value == MutateOutcome(affected_nodes=2, affected_edges=3)


def test_null_in_the_column_of_an_earlier_delete_saves_no_row(graph: Bench) -> None:
    """Bob has no city: unknown for the first condition, true for the second."""
    done = graph.mutate(
        'query m() { delete Person where city = "London" delete Person where age > 1 }'
    )
    assert done.value == MutateOutcome(affected_nodes=2, affected_edges=3)
    assert graph.ids("Person") == ["Cyd"]


def test_an_edge_a_cascade_took_is_not_deleted_again(graph: Bench) -> None:
    text = 'query m() { delete Person where name = "Ada" delete Knows where from = "Ada" }'
    assert graph.mutate(text).value == MutateOutcome(affected_nodes=1, affected_edges=2)


def test_edges_deleted_first_are_not_cascaded_again(graph: Bench) -> None:
    text = 'query m() { delete Knows where from = "Ada" delete Person where name = "Ada" }'
    assert graph.mutate(text).value == MutateOutcome(affected_nodes=1, affected_edges=2)


# --- one query, one commit -----------------------------------------------------------------------------------------


def test_an_update_sees_an_earlier_insert(graph: Bench) -> None:
    text = 'query m() { insert Person { name: "Eve", age: 1 } update Person set { age: age + 1 } where age < 5 }'
    assert graph.mutate(text).value.affected_nodes == 2
    assert ages(graph)["Eve"] == 2


def test_an_update_sees_an_earlier_update(graph: Bench) -> None:
    text = (
        'query m() { update Person set { age: 100 } where name = "Ada"'
        " update Person set { age: age + 1 } where age > 99 }"
    )
    graph.mutate(text)
    assert ages(graph) == {"Ada": 101, "Bob": 40, "Cyd": None}


def test_an_earlier_value_is_not_found_any_more(graph: Bench) -> None:
    text = (
        "query m() { update Person set { age: 1 } where age = 36"
        " update Person set { age: 2 } where age = 36 }"
    )
    assert graph.mutate(text).value.affected_nodes == 1


def test_a_mutation_is_one_commit_with_its_counts_actor_and_message(graph: Bench) -> None:
    depth = len(graph.graph.log())
    verb = graph.verb(
        'query m() { insert Person { name: "Eve" } insert Knows { from: "Eve", to: "Ada" } }'
    )
    graph.graph.publish(verb, actor="ada", message="two at once")
    first, *rest = graph.graph.log()
    assert len(rest) == depth
    assert (first.kind, first.actor, first.message) == ("mutation", "ada", "two at once")
    assert first.changes["Knows"] == {"inserted": 1, "updated": 0, "deleted": 0}


def test_a_row_made_and_changed_in_one_query_is_one_insert(graph: Bench) -> None:
    graph.mutate(
        'query m() { insert Person { name: "Eve" } update Person set { age: 2 } where name = "Eve" }'
    )
    assert graph.graph.log()[0].changes["Person"] == {"inserted": 1, "updated": 0, "deleted": 0}


def test_a_failing_statement_undoes_the_whole_query_and_the_next_write_works(graph: Bench) -> None:
    graph.refused(
        'query m() { insert Person { name: "Eve" } insert Knows { from: "Eve", to: "Nobody" } }'
    )
    assert graph.ids("Person") == ["Ada", "Bob", "Cyd"]
    graph.mutate(
        'query m() { insert Person { name: "Eve" } insert Knows { from: "Eve", to: "Ada" } }'
    )
    assert "Eve" in graph.ids("Person")


def test_all_violations_of_a_query_are_reported_together(graph: Bench) -> None:
    text = (
        "query m($n: String?) { insert Person { name: $n } insert Log { text: $n }"
        ' insert Knows { from: "X", to: "Y" } }'
    )
    found = graph.refused(text, n=None).details["violations"]
    assert [v["rule"] for v in found] == ["key", "required", "endpoint", "endpoint"]


def test_now_is_one_instant_for_the_whole_query(graph: Bench) -> None:
    graph.mutate(
        'query m() { insert Log { text: "a", at: now() } insert Log { text: "b", at: now() }'
        " update Person set { seen: now() } where true }"
    )
    instants = {row["at"] for row in graph.rows("Log")} | {
        row["seen"] for row in graph.rows("Person")
    }
    [instant] = instants
    assert instant.microsecond % 1000 == 0
    assert abs(instant - dt.datetime.now(dt.UTC)) < dt.timedelta(minutes=5)


def test_inserts_and_deletes_do_not_share_a_query(graph: Bench) -> None:
    error = graph.refused(
        'query m() { insert Person { name: "Eve" } delete Person where name = "Ada" }'
    )
    text = error.render()
    assert "two queries" in text
    assert "block" in text, "both ways out"
    with graph.graph.branch("main").write() as block:
        block.mutate('insert Person { name: "Eve" }')
        block.mutate('delete Person where name = "Eve"')
    assert [result.to_json()["affected_nodes"] for result in block.results] == [1, 1]


def test_a_read_is_not_a_mutation(graph: Bench) -> None:
    read = compile_query("query q() { match { $p: Person } return { $p.name } }", graph.catalog)
    with pytest.raises(QueryKindMismatch):
        mutate(read)


# --- beside other writers ------------------------------------------------------------------------------------------


def racing(graph: Bench, text: str, rival: Callable[[], object]) -> Verb:
    """A verb that somebody else overtakes between its decision and its commit, once."""
    verb, runs = graph.verb(text), iter([True])

    def overtaken(txn: WriteTxn) -> PublishPlan:
        plan = verb(txn)
        if next(runs, False):
            rival()
        return plan

    return overtaken


def other(graph: Bench) -> Bench:
    """Another handle on the same graph, so that its writes do not queue behind ours."""
    from omnigraph.core.repository import open_repository
    from omnigraph.graph import Graph

    return Bench(Graph(open_repository(graph.graph.uri)))


@pytest.fixture
def shared(graph_root: str) -> Bench:
    from omnigraph.graph import init

    made = Bench(init(graph_root, schema=SCHEMA))
    made.put(Person=[{"name": "Ada", "age": 1}, {"name": "Bob", "age": 1}])
    return made


def test_an_update_that_loses_a_race_counts_on_the_new_value(shared: Bench) -> None:
    text = 'query m() { update Person set { age: age + 1 } where name = "Ada" }'
    rival = other(shared)
    shared.graph.publish(racing(shared, text, lambda: rival.mutate(text)))
    assert ages(shared) == {"Ada": 3, "Bob": 1}


def test_an_update_by_condition_sees_rows_that_arrived_meanwhile(shared: Bench) -> None:
    text = "query m() { update Person set { age: 9 } where age = 1 }"
    rival = other(shared)
    shared.graph.publish(
        racing(
            shared,
            text,
            lambda: rival.mutate('query m() { insert Person { name: "Eve", age: 1 } }'),
        )
    )
    assert ages(shared) == {"Ada": 9, "Bob": 9, "Eve": 9}


def test_an_edge_and_the_deletion_of_its_node_do_not_both_happen(shared: Bench) -> None:
    insert = 'query m() { insert Knows { from: "Ada", to: "Bob" } }'
    rival = other(shared)
    with pytest.raises(OmnigraphError, match="Bob"):
        shared.graph.publish(
            racing(
                shared,
                insert,
                lambda: rival.mutate('query m() { delete Person where name = "Bob" }'),
            )
        )
    assert shared.rows("Knows") == []


def test_a_deletion_takes_an_edge_along_that_arrived_meanwhile(shared: Bench) -> None:
    delete = 'query m() { delete Person where name = "Bob" }'
    rival = other(shared)
    done = shared.graph.publish(
        racing(
            shared,
            delete,
            lambda: rival.mutate('query m() { insert Knows { from: "Ada", to: "Bob" } }'),
        )
    )
    assert done.value == MutateOutcome(affected_nodes=1, affected_edges=1)
    assert shared.rows("Knows") == []


def test_an_update_of_another_row_meanwhile_does_not_run_the_verb_again(shared: Bench) -> None:
    runs: list[int] = []
    verb = shared.verb('query m() { update Person set { age: 5 } where name = "Ada" }')
    rival = other(shared)

    def counted(txn: WriteTxn) -> PublishPlan:
        runs.append(1)
        plan = verb(txn)
        if len(runs) == 1:
            rival.mutate('query m() { update Person set { age: 7 } where name = "Bob" }')
        return plan

    shared.graph.publish(counted)
    assert (len(runs), ages(shared)) == (1, {"Ada": 5, "Bob": 7})


def test_writers_folded_into_one_commit_see_each_other_in_order(graph: Bench) -> None:
    texts = [
        'insert Person { name: "Eve", age: 1 }',
        'insert Knows { from: "Eve", to: "Ada" }',
        "update Person set { age: age + 1 } where age = 1",
        'insert Knows { from: "Eve", to: "Nobody" }',
        'insert Person { name: "Eve", city: "Bern" }',
        'delete Person where name = "Ada"',
        "update Person set { age: age + 1 } where age = 2",
    ]
    tickets = [ticket(graph, "query m() { " + text + " }") for text in texts]
    publish(graph.graph._repo, tickets)
    assert [t.error is None for t in tickets] == [True, True, True, False, True, True, True]
    commits = {t.outcome.commit.number for t in tickets if t.outcome and t.outcome.commit}
    assert len(commits) == 1
    assert tickets[5].outcome is not None
    assert tickets[5].outcome.value == MutateOutcome(affected_nodes=1, affected_edges=3)
    eve = graph.rows("Person")[2]
    assert (eve["name"], eve["age"], eve["city"]) == ("Eve", 3, "Bern")
    assert graph.ids("Knows") == ["k2"]


def ticket(graph: Bench, text: str) -> Ticket:
    request = Request(branch=MAIN, verb=graph.verb(text))
    return Ticket(request, fresh_id(), instant=time.time_ns() // 1000)


def test_a_condition_on_the_commit_is_kept(shared: Bench) -> None:
    seen = shared.graph.snapshot().commit_id
    text = 'query m() { insert Person { name: "Eve" } }'
    shared.graph.publish(shared.verb(text), if_commit=seen)
    with pytest.raises(PreconditionFailed):
        shared.graph.publish(shared.verb(text), if_commit=seen)


def test_a_repeated_request_is_answered_with_the_first_result(shared: Bench) -> None:
    verb = shared.verb('query m() { update Person set { age: age + 1 } where name = "Ada" }')
    for _ in range(2):
        done = shared.graph.publish(verb, idempotency_key="once", fingerprint="f")
    assert done.replayed
    assert done.value == {"affected_nodes": 1, "affected_edges": 0}
    assert ages(shared)["Ada"] == 2


# --- embeddings --------------------------------------------------------------------------------------------------

EMBEDDED = """
node Doc { slug: String @key  text: String?  vector: Vector(2)? @embed("text", model="m") }
node Strict { slug: String @key  text: String  vector: Vector(2) @embed("text") }
"""


def embedded(graph: Bench, text: str, **params: Any) -> list[tuple[list[str], int, str | None]]:
    """Run a mutation with an embedder that makes a vector of each text's length."""
    asked: list[tuple[list[str], int, str | None]] = []

    def embed(texts: Sequence[str], dim: int, model: str | None) -> list[list[float]]:
        asked.append((list(texts), dim, model))
        return [[float(len(t))] * dim for t in texts]

    query = compile_query(text, graph.catalog)
    graph.graph.publish(mutate(query, params, embed=embed))
    return asked


def test_texts_are_embedded_together() -> None:
    graph = bench(EMBEDDED)
    asked = embedded(
        graph,
        'query m($t: String) { insert Doc { slug: "a", text: $t }, { slug: "b", text: "four" } }',
        t="x",
    )
    assert asked == [(["x", "four"], 2, "m")]
    assert [row["vector"] for row in graph.rows("Doc")] == [[1.0, 1.0], [4.0, 4.0]]


def test_a_vector_that_is_given_is_not_made() -> None:
    graph = bench(EMBEDDED)
    assert (
        embedded(graph, 'query m() { insert Doc { slug: "a", text: "t", vector: [1.0, 2.0] } }')
        == []
    )
    assert graph.rows("Doc")[0]["vector"] == [1.0, 2.0]


def test_a_text_that_changes_makes_its_vector_anew_and_null_clears_it() -> None:
    graph = bench(EMBEDDED)
    embedded(graph, 'query m() { insert Doc { slug: "a", text: "t" } }')
    embedded(graph, 'query m() { update Doc set { text: "longer" } where slug = "a" }')
    assert graph.rows("Doc")[0]["vector"] == [6.0, 6.0]
    embedded(graph, 'query m($t: String?) { update Doc set { text: $t } where slug = "a" }', t=None)
    assert graph.rows("Doc")[0]["vector"] is None


def test_a_vector_that_never_had_a_text_stays() -> None:
    graph = bench(EMBEDDED)
    embedded(graph, 'query m() { insert Doc { slug: "a", vector: [1.0, 2.0] } }')
    embedded(graph, 'query m($t: String?) { update Doc set { text: $t } where slug = "a" }', t=None)
    assert graph.rows("Doc")[0]["vector"] == [1.0, 2.0]


def test_a_text_computed_from_the_row_is_embedded_too() -> None:
    graph = bench(EMBEDDED)
    embedded(graph, 'query m() { insert Doc { slug: "abc", text: "t" } }')
    embedded(graph, 'query m() { update Doc set { text: slug } where slug = "abc" }')
    assert graph.rows("Doc")[0]["vector"] == [3.0, 3.0]


def test_without_an_embedder_a_required_vector_is_missed() -> None:
    graph = bench(EMBEDDED)
    [found] = graph.refused('query m() { insert Strict { slug: "a", text: "t" } }').details[
        "violations"
    ]
    assert (found["rule"], found["property"]) == ("required", "vector")
    embedded(graph, 'query m() { insert Strict { slug: "a", text: "t" } }')
    assert graph.ids("Strict") == ["a"]


def test_the_provider_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = bench(EMBEDDED)
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    graph.mutate('query m() { insert Doc { slug: "a", text: "t" } }')
    vector = graph.rows("Doc")[0]["vector"]
    assert sum(x * x for x in vector) == pytest.approx(1.0)


# --- blobs -------------------------------------------------------------------------------------------------------

BLOBS = "node Doc { slug: String @key  body: Blob?  n: I32? }"


def test_a_blob_is_written_as_base64_and_kept_by_writes_that_do_not_name_it() -> None:
    graph = bench(BLOBS)
    graph.mutate(
        'query m($b: Blob) { insert Doc { slug: "a", body: $b, n: 1 } }', b="base64:aGVsbG8="
    )
    graph.mutate('query m() { update Doc set { n: 2 } where slug = "a" }')
    graph.mutate('query m() { insert Doc { slug: "a", n: 3 } }')
    assert graph.rows("Doc") == [{"id": "a", "slug": "a", "body": b"hello", "n": 3}]


@pytest.mark.parametrize("body", ["base64:***", "/etc/hostname"])
def test_a_blob_that_is_neither_base64_nor_allowed_is_refused(body: str) -> None:
    graph = bench(BLOBS)
    error = graph.refused('query m($b: Blob) { insert Doc { slug: "a", body: $b } }', b=body)
    assert ": expected bytes" in error.message
