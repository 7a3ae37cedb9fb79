"""The changed rows between two commits by the cheaper of two ways, and summaries that tell no less than happened."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.core.records import TableChange
from omnigraph.graph import Graph
from omnigraph.merge import changed
from omnigraph.merge.changed import (
    STEPS_MAX,
    Between,
    combined,
    is_listed,
    listed_ids,
    summary_of,
)
from omnigraph.merge.rows import Comparison, Delta
from omnigraph.model.limits import DEFAULT
from omnigraph.model.tokens import (
    Footprint,
    Tokens,
    endpoint_tokens,
    id_tokens,
    unique_tokens,
)
from omnigraph.storage import metrics
from tests.support.people import change, folded, people, reshape


@pytest.fixture
def graph() -> Graph:
    made = people()
    made.tag("start")
    return made


def between(
    graph: Graph, one: str = "start", other: str = "main", limit: int = STEPS_MAX
) -> Between:
    return Between(graph._repo, graph.snapshot(at=one), graph.snapshot(at=other), limit)


def table(graph: Graph, name: str) -> str:
    kind = graph.snapshot().catalog.entity(name)
    assert kind is not None
    return kind.table_id


def delta(graph: Graph, name: str, found: Between) -> Delta:
    kind = graph.snapshot().catalog.entity(name)
    assert kind is not None
    return found.delta(kind.table_id, kind)


def sides(found: Delta) -> tuple[list[str], list[str]]:
    before, after = (sorted(part["id"].to_pylist()) for part in (found.before, found.after))
    return before, after


# --- which way ---------------------------------------------------------------------------------------------------


def work(graph: Graph) -> None:
    change(graph, 'insert Person { name: "n" }')
    change(graph, 'update Person set { age: 9 } where name = "a"')
    change(graph, 'delete Person where name = "d"')
    graph.optimize()


@pytest.mark.parametrize("rows_max", [0, 20_000])
def test_both_ways_find_the_same_rows(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, rows_max: int
) -> None:
    monkeypatch.setattr(changed, "COMPARED_ROWS_MAX", rows_max)
    work(graph)
    assert sides(delta(graph, "Person", between(graph))) == (["a", "d"], ["a", "n"])
    assert sides(delta(graph, "Person", between(graph, "main", "start"))) == (
        ["a", "n"],
        ["a", "d"],
    )
    assert delta(graph, "City", between(graph)).is_empty


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ways that were gone, in order."""
    gone: list[str] = []
    for name in ("by_ids", "by_fragments"):
        real = getattr(changed, name)

        def told(*given: object, name: str = name, real: object = real) -> object:
            gone.append(name)
            return real(*given)  # type: ignore[operator]

        monkeypatch.setattr(changed, name, told)
    return gone


def test_ids_are_looked_up_only_where_fragments_say_too_little(
    graph: Graph, ways: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.load({"Person": [{"name": f"p{i}"} for i in range(40)]})
    graph.tag("loaded")
    change(graph, 'update Person set { age: 9 } where name = "a"')
    graph.optimize()
    delta(graph, "Person", between(graph, "loaded"))
    assert ways == ["by_fragments"], "a small table is read"
    ways.clear()
    monkeypatch.setattr(changed, "COMPARED_ROWS_MAX", 4)
    found = between(graph, "loaded")
    one, other = (s.table(table(graph, "Person")) for s in (found.one, found.other))
    compared = Comparison.of(one, other).rows
    assert compared > 4, "the compaction left the rows where they were"
    assert sides(delta(graph, "Person", found)) == (["a"], ["a"])
    assert ways == ["by_ids"]
    ways.clear()
    monkeypatch.setattr(changed, "LOOKUP_COST", compared)
    delta(graph, "Person", between(graph, "loaded"))
    assert ways == ["by_fragments"], "looking rows up would cost as much as reading them"
    ways.clear()
    monkeypatch.setattr(changed, "LOOKUP_COST", compared // 2)
    delta(graph, "Person", between(graph, "loaded"))
    assert ways == ["by_ids"]
    ways.clear()
    monkeypatch.setattr(changed, "COMPARED_ROWS_MAX", compared)
    delta(graph, "Person", between(graph, "loaded"))
    assert ways == ["by_fragments"], "so many rows are read without asking further"


def test_rows_are_counted_from_the_summaries_of_all_commits_between(graph: Graph) -> None:
    work(graph)
    change(graph, 'insert City { name: "w" }')
    folded(graph, 'insert Person { name: "f" }', 'insert City { name: "f" }')
    found = between(graph)
    assert found._touched_rows(table(graph, "Person")) == 4
    assert found._touched_rows(table(graph, "City")) == 2
    assert found._touched_rows(table(graph, "Lives")) == 0
    assert between(graph, limit=1)._touched_rows(table(graph, "City")) == float("inf")


def test_a_replaced_table_speaks_of_infinitely_many_rows(graph: Graph) -> None:
    change(graph, 'insert Person { name: "n" }')
    graph.load({"City": [{"name": "q"}]}, mode="overwrite")
    found = between(graph)
    assert found._touched_rows(table(graph, "City")) == float("inf")
    assert found._touched_rows(table(graph, "Person")) == 1
    assert sides(delta(graph, "City", found)) == (["x", "y"], ["q"])


def test_ids_are_listed_or_found_in_the_fragments_a_commit_brought(graph: Graph) -> None:
    many = [f"p{i}" for i in range(DEFAULT.changed_ids_max + 1)]
    graph.load({"Person": [{"name": name} for name in many]})
    change(graph, 'update Person set { age: 9 } where name = "a"')
    change(graph, 'insert City { name: "w" }')
    change(graph, 'delete Person where name = "d"')
    graph.optimize()
    ids = between(graph).touched_ids(table(graph, "Person"))
    assert ids is not None
    assert len(ids) == len(set(ids.to_pylist()))
    touched = {*many, "a", "d"}
    assert touched <= set(ids.to_pylist()) <= {*touched, "b", "c"}, "rows of this table alone"
    assert between(graph, limit=1).touched_ids(table(graph, "Person")) is None
    none = between(graph).touched_ids(table(graph, "Lives"))
    assert none is not None
    assert none.to_pylist() == []


def test_ids_of_a_type_that_came_between_cannot_be_told(graph: Graph) -> None:
    reshape(graph, "node City", "node Pet { name: String @key }\nnode City")
    graph.load({"Pet": [{"name": f"p{i}"} for i in range(DEFAULT.changed_ids_max + 1)]})
    ids = between(graph).touched_ids(table(graph, "Pet"))
    assert ids is None or len(ids) == DEFAULT.changed_ids_max + 1
    assert len(sides(delta(graph, "Pet", between(graph)))[1]) == DEFAULT.changed_ids_max + 1


def test_a_table_one_side_lacks_is_empty_there(graph: Graph) -> None:
    reshape(graph, "node City", "node Pet { name: String @key }\nnode City")
    change(graph, 'insert Pet { name: "rex" }')
    assert sides(delta(graph, "Pet", between(graph))) == ([], ["rex"])
    assert sides(delta(graph, "Pet", between(graph, "main", "start"))) == (["rex"], [])
    found = between(graph)
    assert found.differs(table(graph, "Pet"))
    assert found.is_touched(table(graph, "Pet"))


def test_commits_between_are_read_once(graph: Graph) -> None:
    work(graph)
    found = between(graph)
    assert found.steps() is found.steps()
    graph._repo.chains._known.clear()
    with metrics.operation("steps") as cost:
        found.steps()
    assert cost.ops == 0


# --- whether somebody wrote --------------------------------------------------------------------------------------


def test_maintenance_is_another_version_and_no_write(graph: Graph) -> None:
    for number in range(4):
        change(graph, f'insert City {{ name: "w{number}" }}')
    graph.tag("written")
    graph.optimize()
    city, person = table(graph, "City"), table(graph, "Person")
    found = between(graph, "written")
    assert found.differs(city), "nothing was compacted"
    assert not found.is_touched(city)
    assert between(graph).is_touched(city)
    assert not between(graph, "start", "written").differs(person)
    assert not between(graph, "start", "written").is_touched(person)
    assert not between(graph).is_touched(person)
    assert between(graph, "written", limit=0).is_touched(city), "what cannot be told counts"


# --- summaries ---------------------------------------------------------------------------------------------------


def tokens_of(found: TableChange) -> Footprint:
    return Footprint.from_text(found.touched)


def holds(found: TableChange, *tokens: Tokens) -> bool:
    return all(tokens_of(found).meets(each) for each in tokens)


def test_a_summary_names_ids_unique_values_and_ends(graph: Graph) -> None:
    change(graph, 'insert Person { name: "n", email: "e" }')
    change(graph, 'update Person set { age: 9, email: "f" } where name = "a"')
    change(graph, 'insert Knows { from: "c", to: "d" }')
    change(graph, 'delete Knows where from = "a"')
    change(graph, 'delete Person where name = "b"')
    kind = graph.snapshot().catalog.nodes["Person"]
    found = summary_of(delta(graph, "Person", between(graph)), kind, DEFAULT)
    assert (found.inserted, found.updated, found.deleted) == (1, 1, 1)
    assert (found.inserted_ids, found.updated_ids, found.deleted_ids) == (("n",), ("a",), ("b",))
    assert holds(found, *(id_tokens(pa.array([i])) for i in "nab"))
    assert holds(found, *(unique_tokens(["email"], [pa.array([v])]) for v in "ef"))
    assert not holds(found, id_tokens(pa.array(["c"])))
    assert not holds(found, endpoint_tokens("src", pa.array(["n"])))
    edges = graph.snapshot().catalog.edges["Knows"]
    found = summary_of(delta(graph, "Knows", between(graph)), edges, DEFAULT)
    ends = [("src", "a"), ("dst", "b"), ("src", "c"), ("dst", "d")]
    assert holds(found, *(endpoint_tokens(side, pa.array([id])) for side, id in ends))
    assert not holds(found, endpoint_tokens("src", pa.array(["b"])))


def test_a_summary_of_very_many_rows_may_concern_anything(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(graph, 'update Person set { age: 9 } where name = "a"')
    kind = graph.snapshot().catalog.nodes["Person"]
    found = delta(graph, "Person", between(graph))
    monkeypatch.setattr(changed, "FOOTPRINT_ROWS_MAX", 2)
    assert not tokens_of(summary_of(found, kind, DEFAULT)).everything
    monkeypatch.setattr(changed, "FOOTPRINT_ROWS_MAX", 1)
    assert tokens_of(summary_of(found, kind, DEFAULT)).everything


def listed(
    inserted: str = "", updated: str = "", deleted: str = "", *, token: int = 0
) -> TableChange:
    return TableChange(
        inserted=len(inserted),
        updated=len(updated),
        deleted=len(deleted),
        touched=Footprint.of(np.array([token], np.uint64)).to_text(),
        inserted_ids=tuple(inserted),
        updated_ids=tuple(updated),
        deleted_ids=tuple(deleted),
    )


def ids(found: TableChange) -> tuple[set[str], set[str], set[str]]:
    lists = (found.inserted_ids, found.updated_ids, found.deleted_ids)
    counts = (found.inserted, found.updated, found.deleted)
    assert [len(part or ()) for part in lists] == list(counts), "counts differ from lists"
    one, two, three = (set(part or ()) for part in lists)
    return one, two, three


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ((listed("a"), listed(updated="a")), ("a", "", "")),
        ((listed("a"), listed(deleted="a")), ("", "", "")),
        ((listed("a"), listed(deleted="a"), listed("a")), ("a", "", "")),
        ((listed(updated="a"), listed(updated="a")), ("", "a", "")),
        ((listed(updated="a"), listed(deleted="a")), ("", "", "a")),
        ((listed(deleted="a"), listed("a")), ("", "a", "")),
        ((listed(deleted="a"), listed("a"), listed(deleted="a")), ("", "", "a")),
        ((listed("ab", "c", "d"), listed("e", "ac", "b")), ("ae", "c", "d")),
    ],
)
def test_several_changes_are_one_from_the_first_state_to_the_last(
    changes: tuple[TableChange, ...], wanted: tuple[str, str, str]
) -> None:
    assert ids(combined(changes)) == tuple(map(set, wanted))


def test_the_footprint_of_several_changes_has_those_of_all() -> None:
    both = combined([listed("a", token=3), listed("b", token=5)])
    exact = tokens_of(both).exact
    assert exact is not None
    assert exact.tolist() == [3, 5]
    one = listed("a", token=3)
    assert combined([one]) == one
    assert combined([]) == TableChange()


@pytest.mark.parametrize(
    "other",
    [
        TableChange(inserted=300, touched=Footprint.of(np.array([5], np.uint64)).to_text()),
        TableChange(inserted=1, touched="*", inserted_ids=("b",), updated_ids=(), deleted_ids=()),
        TableChange(updated=2, all=True, touched="*"),
    ],
)
def test_what_is_not_told_of_one_change_is_not_told_of_all(other: TableChange) -> None:
    both = combined([listed("a", "b", "c"), other, listed("d", "ef")])
    assert (both.inserted, both.updated, both.deleted) == (
        2 + other.inserted,
        3 + other.updated,
        1,
    )
    assert tokens_of(both).everything
    assert not is_listed(both)
    assert both.all == other.all


def test_a_change_is_listed_where_every_row_is_named() -> None:
    whole = listed("a", "b", "c")
    assert is_listed(whole)
    assert listed_ids(whole) == ("a", "b", "c")
    assert not is_listed(TableChange(inserted_ids=("a",), updated_ids=()))
    assert listed_ids(TableChange(updated_ids=("b",))) == ("b",)
    assert listed_ids(TableChange()) == ()
    everything = TableChange(all=True, inserted_ids=(), updated_ids=(), deleted_ids=())
    assert not is_listed(everything)


def test_the_summary_of_a_way_is_that_of_its_commits_or_of_the_rows(graph: Graph) -> None:
    work(graph)
    change(graph, 'insert City { name: "w" }')
    folded(graph, 'insert Person { name: "f" }', 'insert Person { name: "g" }')
    for found in (between(graph), between(graph, limit=1)):
        told = found.summary(table(graph, "Person"))
        assert ids(told) == ({"n", "f", "g"}, {"a"}, {"d"})
        assert holds(told, id_tokens(pa.array(["a"])))
    assert between(graph).summary(table(graph, "Lives")) == TableChange()
