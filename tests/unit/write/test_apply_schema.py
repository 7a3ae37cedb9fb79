"""Schema changes: every supported step on real tables, refusals that leave no trace, and appliers in a race."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable
from typing import Any

import pytest

import omnigraph
from omnigraph.core.plan import PublishPlan, Verb
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import WriteConflict
from omnigraph.graph import Graph
from omnigraph.lang.schema import SchemaIR, plan_migration
from omnigraph.lang.schema.migrate import SchemaChangeRefused
from omnigraph.validate import ValidationFailed
from omnigraph.write.apply_schema import SchemaOutcome, apply_schema
from omnigraph.write.load import load
from omnigraph.write.maintain import declared_indices

BASE = """
node Person {
  name: String @key
  age: I32?
  city: String?
  mood: enum(glad, sad)?
}
node Town { label: String }
edge Knows: Person -> Person { since: I32? }
"""
_names = itertools.count()


@pytest.fixture
def graph() -> Graph:
    graph = omnigraph.init(f"memory://apply-schema-{next(_names)}", schema=BASE)
    graph.load(
        {
            "Person": [
                {"name": "ann", "age": 40, "city": "rome", "mood": "glad"},
                {"name": "bob", "age": 17, "city": "rome"},
                {"name": "cy", "age": None, "city": None},
            ],
            "Town": [{"id": "t1", "label": "rome"}],
            "Knows": [
                {"from": "ann", "to": "bob", "since": 2001},
                {"from": "ann", "to": "cy", "since": 2002},
            ],
        }
    )
    return graph


def schema_of(graph: Graph) -> Callable[[str], SchemaIR]:
    return lambda hashed: graph._repo.schema(hashed).ir


def apply(graph: Graph, text: str, **options: Any) -> SchemaOutcome:
    done = graph.publish(apply_schema(text, schema_of(graph), **options), alone=True)
    outcome = done.value
    assert isinstance(outcome, SchemaOutcome)
    return outcome


def edited(*replacements: tuple[str, str]) -> str:
    text = BASE
    for old, new in replacements:
        assert text.count(old) == 1, f"{old!r} must occur once"
        text = text.replace(old, new)
    return text


def rows(graph: Graph, type_name: str, *columns: str, at: object = None) -> list[dict[str, Any]]:
    snapshot = graph.snapshot(at=at)
    kind = snapshot.catalog.entity(type_name)
    assert kind is not None, f"no type {type_name}"
    table = snapshot.table_of(kind).scan(["id", *columns])
    return sorted(table.select(["id", *columns]).to_pylist(), key=lambda row: str(row["id"]))


def values(graph: Graph, type_name: str, column: str, at: object = None) -> list[Any]:
    return [row[column] for row in rows(graph, type_name, column, at=at)]


def head(graph: Graph) -> str:
    return graph.snapshot().commit_id


def kinds(outcome: SchemaOutcome) -> list[str]:
    return [step.kind for step in outcome.plan.steps]


# --- steps that change tables --------------------------------------------------------------------------------------


def test_an_unchanged_schema_makes_no_commit(graph: Graph) -> None:
    before = head(graph)
    outcome = apply(graph, BASE + "\n// a comment\n")
    assert (outcome.applied, outcome.plan.supported, kinds(outcome)) == (False, True, [])
    assert head(graph) == before


def test_a_nullable_property_is_added_as_null(graph: Graph) -> None:
    outcome = apply(graph, edited(("age: I32?", "age: I32?\n  email: String?")))
    assert outcome.applied
    assert kinds(outcome) == ["add_property"]
    assert values(graph, "Person", "email") == [None, None, None]
    graph.load([{"type": "Person", "data": {"name": "ann", "email": "a@x"}}])
    assert rows(graph, "Person", "age", "email")[0] == {"id": "ann", "age": 40, "email": "a@x"}


@pytest.mark.parametrize(
    ("declared", "stored"),
    [
        ("rank: I32 @default(7)", 7),
        ('word: String @default("hi")', "hi"),
        ("ok: Bool @default(true)", True),
        ('when: Date? @default("2020-02-29")', dt.date(2020, 2, 29)),
        ('tags: [String] @default(["a", "b"])', ["a", "b"]),
    ],
)
def test_a_property_with_a_default_fills_stored_rows(
    graph: Graph, declared: str, stored: object
) -> None:
    outcome = apply(graph, edited(("age: I32?", f"age: I32?\n  {declared}")))
    assert kinds(outcome) == ["add_property"]
    name = declared.split(":", maxsplit=1)[0]
    assert values(graph, "Person", name) == [stored] * 3


def test_a_renamed_property_keeps_its_values_and_ids(graph: Graph) -> None:
    outcome = apply(graph, edited(("age: I32?", 'years: I32? @rename_from("age")')))
    assert kinds(outcome) == ["rename_property"]
    assert rows(graph, "Person", "years") == [
        {"id": "ann", "years": 40},
        {"id": "bob", "years": 17},
        {"id": "cy", "years": None},
    ]


def test_a_renamed_type_keeps_its_table(graph: Graph) -> None:
    table = graph.snapshot().catalog.nodes["Town"].table_id
    outcome = apply(graph, edited(("node Town {", 'node City @rename_from("Town") {')))
    assert kinds(outcome) == ["rename_type"]
    renamed = graph.snapshot()
    assert renamed.catalog.nodes["City"].table_id == table
    assert renamed.entry(table).type_name == "City"
    assert rows(graph, "City", "label") == [{"id": "t1", "label": "rome"}]


def test_a_number_is_widened(graph: Graph) -> None:
    outcome = apply(graph, edited(("age: I32?", "age: I64?")))
    assert kinds(outcome) == ["widen_property"]
    assert values(graph, "Person", "age") == [40, 17, None]
    graph.load([{"type": "Person", "data": {"name": "dee", "age": 2**40}}])
    assert values(graph, "Person", "age") == [40, 17, None, 2**40]


def test_a_property_is_renamed_and_widened_at_once(graph: Graph) -> None:
    outcome = apply(graph, edited(("age: I32?", 'years: I64? @rename_from("age")')))
    assert sorted(kinds(outcome)) == ["rename_property", "widen_property"]
    assert values(graph, "Person", "years") == [40, 17, None]


def test_an_enum_is_extended(graph: Graph) -> None:
    apply(graph, edited(("enum(glad, sad)", "enum(glad, sad, calm)")))
    graph.load([{"type": "Person", "data": {"name": "cy", "mood": "calm"}}])
    assert values(graph, "Person", "mood") == ["glad", None, "calm"]


def test_nullability_is_relaxed(graph: Graph) -> None:
    apply(graph, edited(("label: String }", "label: String? }")))
    graph.load([{"type": "Town", "data": {"id": "t2"}}])
    assert values(graph, "Town", "label") == ["rome", None]


def test_a_type_is_added_and_can_be_used_at_once(graph: Graph) -> None:
    apply(graph, BASE + "\nnode Pet { tag: String @key }\nedge Owns: Person -> Pet\n")
    graph.load(
        [
            {"type": "Pet", "data": {"tag": "rex"}},
            {"edge": "Owns", "from": "ann", "to": "rex"},
        ]
    )
    assert rows(graph, "Pet", "tag") == [{"id": "rex", "tag": "rex"}]


def test_a_dropped_property_is_gone_here_and_readable_before(graph: Graph) -> None:
    before = head(graph)
    outcome = apply(graph, edited(("  age: I32?\n", "")))
    assert kinds(outcome) == ["drop_property"]
    assert outcome.collect == ()
    kind = graph.snapshot().catalog.nodes["Person"]
    assert "age" not in graph.snapshot().table_of(kind).schema.names
    assert values(graph, "Person", "age", at=before) == [40, 17, None]


def test_a_dropped_property_can_come_back_empty(graph: Graph) -> None:
    apply(graph, edited(("  age: I32?\n", "")))
    apply(graph, BASE)
    assert values(graph, "Person", "age") == [None, None, None]


def test_a_dropped_type_is_gone_here_and_readable_before(graph: Graph) -> None:
    before = head(graph)
    apply(graph, edited(("node Town { label: String }", "")))
    assert "Town" not in graph.snapshot().catalog.nodes
    assert values(graph, "Town", "label", at=before) == ["rome"]


def test_a_hard_drop_names_the_tables_to_collect(graph: Graph) -> None:
    catalog = graph.snapshot().catalog
    without = edited(("node Town { label: String }", ""), ("  age: I32?\n", ""))
    outcome = apply(graph, without, allow_data_loss=True)
    wanted = {catalog.nodes["Town"].table_id, catalog.nodes["Person"].table_id}
    assert set(outcome.collect) == wanted


def test_an_index_changes_no_table(graph: Graph) -> None:
    before = dict(graph.snapshot().commit.tables)
    outcome = apply(graph, edited(("city: String?", "city: String? @index")))
    assert kinds(outcome) == ["add_constraint"]
    assert dict(graph.snapshot().commit.tables) == before


def test_the_text_of_the_schema_is_stored(graph: Graph) -> None:
    text = edited(("age: I32?", "age: I32? // in years\n  email: String?"))
    apply(graph, text)
    assert graph.schema() == text


def test_a_schema_is_applied_on_its_branch_alone(graph: Graph) -> None:
    graph.create_branch("x")
    text = edited(("age: I32?", "age: I32?\n  email: String?"))
    graph.publish(apply_schema(text, schema_of(graph)), branch="x", alone=True)
    assert "email" in graph.snapshot("x").catalog.nodes["Person"].properties
    assert "email" not in graph.snapshot("main").catalog.nodes["Person"].properties


# --- rules against stored rows -------------------------------------------------------------------------------------


def refused(graph: Graph, text: str) -> list[dict[str, Any]]:
    before = head(graph)
    with pytest.raises(ValidationFailed) as caught:
        apply(graph, text)
    assert head(graph) == before
    found = caught.value.details["violations"]
    assert isinstance(found, list)
    return found


def test_uniqueness_is_added_only_if_the_rows_allow_it(graph: Graph) -> None:
    found = refused(graph, edited(("city: String?", "city: String? @unique")))
    assert [v["rule"] for v in found] == ["unique"]
    assert "rome" in found[0]["message"]
    apply(graph, edited(("age: I32?", "age: I32? @unique")))  # null is exempt


def test_uniqueness_of_a_new_property_with_a_default_is_judged_too(graph: Graph) -> None:
    text = edited(("age: I32?", "age: I32?\n  rank: I32 @default(1) @unique"))
    assert {v["rule"] for v in refused(graph, text)} == {"unique"}


def test_a_range_is_added_only_if_the_rows_allow_it(graph: Graph) -> None:
    ranged = edited(("mood: enum(glad, sad)?", "mood: enum(glad, sad)?\n  @range(age, 18..)"))
    found = refused(graph, ranged)
    assert [(v["rule"], v["id"], v["value"]) for v in found] == [("range", "bob", 17)]
    apply(graph, ranged.replace("18..", "17.."))


def test_a_pattern_is_added_only_if_the_rows_allow_it(graph: Graph) -> None:
    checked = edited(("mood: enum(glad, sad)?", 'mood: enum(glad, sad)?\n  @check(name, "^[a-b]")'))
    assert [v["id"] for v in refused(graph, checked)] == ["cy"]


def test_a_rule_on_a_renamed_property_reads_the_old_column(graph: Graph) -> None:
    text = edited(
        ("age: I32?", 'years: I32? @rename_from("age")'),
        ("mood: enum(glad, sad)?", "mood: enum(glad, sad)?\n  @range(years, 18..)"),
    )
    assert [v["id"] for v in refused(graph, text)] == ["bob"]


def test_a_key_is_added_only_if_the_ids_are_those_it_gives(graph: Graph) -> None:
    keyed = edited(("label: String }", "label: String @key }"))
    assert [v["id"] for v in refused(graph, keyed)] == ["t1"]
    graph.load({"Town": [{"id": "oslo", "label": "oslo"}]}, mode="overwrite")
    apply(graph, keyed)


def test_a_cardinality_is_narrowed_only_if_the_edges_allow_it(graph: Graph) -> None:
    narrow = edited(
        ("edge Knows: Person -> Person {", "edge Knows: Person -> Person @card(0..1) {")
    )
    assert "ann" in refused(graph, narrow)[0]["message"]
    outcome = apply(graph, narrow.replace("0..1", "0..2"))
    assert kinds(outcome) == ["change_cardinality"]


def test_a_dropped_rule_no_longer_holds(graph: Graph) -> None:
    apply(graph, edited(("age: I32?", "age: I32? @unique")))
    apply(graph, BASE)
    graph.load([{"type": "Person", "data": {"name": "dee", "age": 40}}])
    assert values(graph, "Person", "age") == [40, 17, None, 40]


def test_offenders_are_listed_up_to_a_bound(graph: Graph) -> None:
    graph.load({"Person": [{"name": f"p{i:04}", "age": 1} for i in range(300)]})
    ranged = edited(("mood: enum(glad, sad)?", "mood: enum(glad, sad)?\n  @range(age, 18..)"))
    found = refused(graph, ranged)
    assert len(found) == 100


def test_an_unsupported_change_names_every_step_in_the_way(graph: Graph) -> None:
    before = head(graph)
    text = edited(("age: I32?", "age: String?"), ("city: String?", "city: String?\n  nick: String"))
    plan = plan_migration(schema_of(graph)(graph.snapshot().commit.schema), text)
    assert not plan.supported
    with pytest.raises(SchemaChangeRefused) as caught:
        apply(graph, text)
    codes = {step["code"] for step in caught.value.details["steps"]}
    assert codes == {"OG-MF-103", "OG-MF-106"}
    assert head(graph) == before


# --- races ---------------------------------------------------------------------------------------------------------


def disturbed(graph: Graph, text: str, rival: Callable[[], object]) -> Verb:
    """An apply that lets a rival publish after it has looked."""
    inner = apply_schema(text, schema_of(graph))
    runs: list[int] = []

    def verb(txn: WriteTxn) -> PublishPlan:
        plan = inner(txn)
        runs.append(1)
        if len(runs) == 1:
            rival()
        return plan

    return verb


def test_two_appliers_get_one_commit_and_one_conflict(graph: Graph) -> None:
    one = edited(("age: I32?", "age: I32?\n  email: String?"))
    other = edited(("age: I32?", "age: I32?\n  phone: String?"))
    rival_graph = omnigraph.open(graph.uri)
    verb = disturbed(graph, one, lambda: apply(rival_graph, other))
    with pytest.raises(WriteConflict):
        graph.publish(verb, alone=True)
    assert "phone" in graph.snapshot().catalog.nodes["Person"].properties
    assert "email" not in graph.snapshot().catalog.nodes["Person"].properties


def test_a_row_that_breaks_the_new_rule_meanwhile_is_named(graph: Graph) -> None:
    rival_graph = omnigraph.open(graph.uri)
    ranged = edited(("mood: enum(glad, sad)?", "mood: enum(glad, sad)?\n  @range(age, 10..)"))
    child = [{"type": "Person", "data": {"name": "kid", "age": 3}}]
    with pytest.raises(ValidationFailed, match="kid"):
        graph.publish(disturbed(graph, ranged, lambda: rival_graph.load(child)), alone=True)
    assert "@range" not in graph.schema()


def meanwhile(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, acts: list[Callable[[Graph], Any]]
) -> None:
    """Others act, one after the other, each time this handle is about to publish."""
    tables, other = graph._repo.tables, omnigraph.open(graph.uri)
    real = tables.sync

    def sync(staged: Any) -> None:
        if acts:
            acts.pop(0)(other)
        real(staged)

    monkeypatch.setattr(tables, "sync", sync)


MORE = "query q($n: String, $a: I32) { insert Person { name: $n, age: $a } }"


def test_a_rule_is_judged_on_what_others_wrote_and_on_nothing_else(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph.storage.lance.reading import LanceTable

    scanned: list[int] = []
    real = LanceTable.scan

    def scan(self: LanceTable, *given: Any, **more: Any) -> Any:
        found = real(self, *given, **more)
        scanned.append(found.num_rows)
        return found

    acts = [
        lambda other: other.mutate(MORE, {"n": "new", "a": 400}),
        lambda other: other.mutate(MORE, {"n": "new", "a": 401}),
        lambda other: other.mutate('delete Person where name = "new"'),
    ]
    meanwhile(graph, monkeypatch, list(acts))
    monkeypatch.setattr(LanceTable, "scan", scan)
    graph.apply_schema(edited(("age: I32?", "age: I32? @unique")))
    assert len(scanned) == 1, "all rows were read again"
    with pytest.raises(ValidationFailed):
        graph.load({"Person": [{"name": "x", "age": 9}, {"name": "y", "age": 9}]})


@pytest.mark.parametrize("rule", ["age: I32? @unique", "age: I32?\n  @unique(age, mood)"])
def test_a_value_that_is_taken_meanwhile_is_found(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, rule: str
) -> None:
    graph.mutate('insert Person { name: "one", age: 71, mood: "glad" }')
    twin = 'insert Person { name: "two", age: 71, mood: "glad" }'
    meanwhile(graph, monkeypatch, [lambda other: other.mutate(twin)])
    with pytest.raises(ValidationFailed, match="71"):
        graph.apply_schema(edited(("age: I32?", rule)))


def test_a_column_with_a_value_gets_it_in_rows_written_meanwhile(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"name": f"p{n:03}", "age": n} for n in range(300)]
    graph.load({"Person": rows})
    acts: list[Callable[[Graph], Any]] = [
        lambda other: other.mutate(MORE, {"n": "new", "a": 4}),
        lambda other: other.mutate('delete Person where name = "p007"'),
        lambda other: other.mutate('update Person set { age: 999 } where name = "p008"'),
    ]
    meanwhile(graph, monkeypatch, acts)
    graph.apply_schema(edited(("age: I32?", "age: I64?\n  level: I32 @default(7)")))
    assert not acts, "somebody did not act"
    text = "match { $p: Person } return { $p.name as name, $p.age as age, $p.level as level }"
    found = {row["name"]: (row["age"], row["level"]) for row in graph.query(text).rows}
    assert {level for _, level in found.values()} == {7}
    assert (found["new"][0], found["p008"][0], "p007" in found) == (4, 999, False)
    assert all(found[f"p{n:03}"][0] == n for n in range(300) if n not in (7, 8))
    assert omnigraph.open(graph.uri).doctor(deep=True).healthy


def test_a_load_that_meets_a_new_schema_is_read_again_under_it(graph: Graph) -> None:
    rival_graph = omnigraph.open(graph.uri)
    text = edited(("age: I32?", "age: I64?"))
    inner = load([{"type": "Person", "data": {"name": "dee", "age": 5}}])
    runs: list[int] = []

    def verb(txn: WriteTxn) -> PublishPlan:
        plan = inner(txn)
        runs.append(1)
        if len(runs) == 1:
            apply(rival_graph, text)
        return plan

    graph.publish(verb)
    assert len(runs) == 2
    assert values(graph, "Person", "age") == [40, 17, None, 5]


# --- indices -------------------------------------------------------------------------------------------------------


def test_declared_indices_follow_from_the_schema() -> None:
    graph = omnigraph.init(
        f"memory://apply-schema-{next(_names)}",
        schema="""
        node Doc {
          slug: String @key
          body: String @index
          size: I64? @index
          shape: Vector(2)? @index
          tags: [String]?
        }
        edge Cites: Doc -> Doc { note: String? @unique }
        """,
    )
    found = {(i.type_name, i.column, i.kind) for i in declared_indices(graph.snapshot().catalog)}
    assert found == {
        ("Doc", "id", "value"),
        ("Doc", "slug", "value"),
        ("Doc", "body", "text"),
        ("Doc", "body", "value"),
        ("Doc", "size", "value"),
        ("Doc", "shape", "vector"),
        ("Cites", "id", "value"),
        ("Cites", "src", "value"),
        ("Cites", "dst", "value"),
        ("Cites", "note", "value"),
    }
