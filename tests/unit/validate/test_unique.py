"""Uniqueness is judged on what will be there in the end."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.core.txn import TableView
from omnigraph.errors import OmnigraphError
from omnigraph.validate import ValidationFailed, checks, evaluate
from omnigraph.write.resolve import Mode, resolve
from tests.support.writing import Bench, Rows, bench, incoming

SCHEMA = """
node Crew { badge: String @key  email: String? @unique  rank: I32? }
node Slot {
  name: String @key
  day: Date?  at: DateTime?  open: Bool?  price: F64?  big: U64?
  @unique(day, open)
  @unique(price)
  @unique(at)
  @unique(big)
}
edge Mentors: Crew -> Crew { since: I32?  @unique(src, dst) }
"""


@pytest.fixture
def graph() -> Bench:
    made = bench(SCHEMA)
    made.put(
        Crew=[{"badge": "K1", "email": "a@x"}, {"badge": "K2", "email": "b@x"}, {"badge": "K3"}]
    )
    return made


def refused(graph: Bench, mode: Mode = Mode.MERGE, /, **rows: Rows) -> OmnigraphError:
    with pytest.raises(OmnigraphError) as caught:
        graph.put(mode, **rows)
    return caught.value


def violation(error: OmnigraphError) -> dict[str, Any]:
    assert isinstance(error, ValidationFailed)
    [found] = error.details["violations"]
    return dict(found)


def test_a_value_another_stored_row_holds_is_refused(graph: Bench) -> None:
    found = violation(refused(graph, Crew=[{"badge": "K9", "email": "a@x"}]))
    assert (found["rule"], found["id"], found["other_id"]) == ("unique", "K9", "K1")
    assert found["value"] == "a@x"


def test_two_rows_of_one_input_may_not_share_a_value(graph: Bench) -> None:
    rows = [{"badge": "K8", "email": "z@x"}, {"badge": "K9", "email": "z@x"}]
    found = violation(refused(graph, Crew=rows))
    assert {found["id"], found["other_id"]} == {"K8", "K9"}


def test_null_is_exempt(graph: Bench) -> None:
    graph.put(Crew=[{"badge": "K8", "email": None}, {"badge": "K9", "email": None}])
    assert len(graph.rows("Crew")) == 5


def test_writing_a_row_again_with_its_own_value_is_no_violation(graph: Bench) -> None:
    graph.put(Crew=[{"badge": "K1", "email": "a@x", "rank": 3}])
    assert graph.rows("Crew")[0]["rank"] == 3


def test_a_value_given_up_may_be_taken_in_the_same_write(graph: Bench) -> None:
    graph.put(Crew=[{"badge": "K1", "email": "new@x"}, {"badge": "K2", "email": "a@x"}])
    assert [row["email"] for row in graph.rows("Crew")] == ["new@x", "a@x", None]


def test_two_rows_may_swap_their_values(graph: Bench) -> None:
    graph.put(Crew=[{"badge": "K1", "email": "b@x"}, {"badge": "K2", "email": "a@x"}])
    assert [row["email"] for row in graph.rows("Crew")] == ["b@x", "a@x", None]


def test_a_value_given_up_in_an_earlier_statement_may_be_taken_in_a_later_one(graph: Bench) -> None:
    graph.mutate(
        'query m() { update Crew set { email: "c@x" } where badge = "K1"'
        ' insert Crew { badge: "K9", email: "a@x" } }'
    )
    assert [row["email"] for row in graph.rows("Crew")] == ["c@x", "b@x", None, "a@x"]


def test_a_value_taken_and_given_up_again_in_one_query_is_free(graph: Bench) -> None:
    graph.mutate(
        'query m() { insert Crew { badge: "K3", email: "t@x" }'
        ' insert Crew { badge: "K3", email: null } insert Crew { badge: "K9", email: "t@x" } }'
    )
    assert [row["email"] for row in graph.rows("Crew")][2:] == [None, "t@x"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("price", 0.1),
        ("at", dt.datetime(2024, 5, 31, 12, 30, tzinfo=dt.UTC)),
        ("big", 2**64 - 1),
    ],
)
def test_stored_values_are_probed_in_their_own_type(field: str, value: Any) -> None:
    graph = bench(SCHEMA)
    graph.put(Slot=[{"name": "one", field: value}])
    found = violation(refused(graph, Slot=[{"name": "two", field: value}]))
    assert (found["rule"], found["property"]) == ("unique", field)


def test_zero_and_negative_zero_are_one_value() -> None:
    graph = bench(SCHEMA)
    graph.put(Slot=[{"name": "one", "price": 0.0}])
    assert violation(refused(graph, Slot=[{"name": "two", "price": -0.0}]))["rule"] == "unique"


def test_a_group_is_unique_as_a_tuple() -> None:
    graph = bench(SCHEMA)
    day, other = dt.date(2024, 1, 1), dt.date(2024, 1, 2)
    graph.put(Slot=[{"name": "one", "day": day, "open": True}])
    graph.put(Slot=[{"name": "two", "day": day, "open": False}])
    graph.put(Slot=[{"name": "three", "day": other, "open": True}])
    graph.put(Slot=[{"name": "four", "day": day, "open": None}])
    found = violation(refused(graph, Slot=[{"name": "five", "day": day, "open": True}]))
    assert found["value"] == ["2024-01-01", True], "details are JSON"
    assert found["properties"] == ["day", "open"]
    assert found["other_id"] == "one"


def test_a_group_of_an_edge_may_be_its_ends(graph: Bench) -> None:
    graph.put(Mentors=[{"src": "K1", "dst": "K2"}])
    graph.put(Mentors=[{"src": "K2", "dst": "K1"}, {"src": "K1", "dst": "K3"}])
    found = violation(refused(graph, Mentors=[{"src": "K1", "dst": "K2"}]))
    assert found["properties"] == ["dst", "src"]


def test_a_deleted_row_gives_its_value_up(graph: Bench) -> None:
    graph.mutate('query m() { delete Crew where badge = "K1" }')
    graph.put(Crew=[{"badge": "K9", "email": "a@x"}])
    assert graph.ids("Crew") == ["K2", "K3", "K9"]


def test_an_overwrite_is_unique_in_itself_and_forgets_what_was_there(graph: Bench) -> None:
    graph.put(Mode.OVERWRITE, Crew=[{"badge": "K9", "email": "a@x"}])
    assert graph.ids("Crew") == ["K9"]
    twice = [{"badge": "K1", "email": "q@x"}, {"badge": "K2", "email": "q@x"}]
    assert violation(refused(graph, Mode.OVERWRITE, Crew=twice))["rule"] == "unique"


def test_several_columns_of_many_rows_are_probed_through_one() -> None:
    graph = bench(SCHEMA)
    crew = [{"badge": f"K{i:05d}"} for i in range(2_200)]
    pairs = [{"src": f"K{i:05d}", "dst": f"K{i + 1:05d}"} for i in range(0, 2_200, 2)]
    graph.put(Crew=crew, Mentors=pairs)
    error = refused(graph, Mentors=pairs)
    assert len(error.details["violations"]) == 100
    assert error.details["more"]


def test_the_same_values_are_reported_once_whoever_is_asked(graph: Bench) -> None:
    rows = [{"badge": "K9", "email": "a@x"}, {"badge": "K8", "email": "b@x"}]
    txn = graph.txn()
    one = resolve(txn, [incoming(txn.catalog, "Crew", rows)])
    other = resolve(txn, [incoming(txn.catalog, "Crew", rows[::-1])])
    found = [[v.message for v in evaluate(r.changes, txn).violations] for r in (one, other)]
    assert found[0] == found[1]
    assert "'K8' and 'K2'" in found[0][0]


def test_a_row_that_keeps_its_value_is_not_looked_for(
    graph: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    probed: list[list[str]] = []
    real = checks._probe

    def told(view: TableView, rows: pa.Table, group: tuple[str, ...]) -> pa.Table:
        probed.append(rows["id"].to_pylist())
        return real(view, rows, group)

    monkeypatch.setattr(checks, "_probe", told)
    graph.put(Crew=[{"badge": "K1", "email": "a@x", "rank": 7}, {"badge": "K2", "email": "c@x"}])
    assert probed == [["K2"]], "only a value that is new to its row may be somebody else's"
