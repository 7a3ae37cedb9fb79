"""Budgets: what a query may take, and errors that name the limit and what was observed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph.graph
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.lang.query import compile_query
from omnigraph.model import limits
from omnigraph.read import PROCESS, expand, scan, sorting
from omnigraph.read.budget import Budget
from omnigraph.read.expressions import holds
from tests.support.snapshots import Graph, ask, make_graph

SCHEMA = "node Item { code: String @key }\nedge Next: Item -> Item"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    items = [{"id": f"i{i}", "code": f"i{i}"} for i in range(40)]
    links = [{"id": f"n{i}", "src": f"i{i}", "dst": f"i{(i + 1) % 40}"} for i in range(40)]
    return make_graph(tmp_path, SCHEMA, {"Item": items, "Next": links})


def refused(graph: Graph, text: str, **options: object) -> OmnigraphError:
    with pytest.raises(OmnigraphError) as error:
        ask(graph, text, **options)  # type: ignore[arg-type]
    assert error.value.kind is Kind.LIMIT
    assert error.value.help
    return error.value


def test_more_rows_than_allowed_are_refused(graph: Graph) -> None:
    text = "match { $i: Item } return { $i.@id as i }"
    assert refused(graph, text, max_rows=39).details == {
        "limit": "max_rows",
        "limit_value": 39,
        "observed": 40,
    }
    assert len(ask(graph, text, max_rows=40)) == 40


def test_a_query_stops_when_its_time_is_over(graph: Graph) -> None:
    error = refused(graph, "match { $i: Item } return { $i.@id as i }", timeout=0.0)
    assert error.code == "deadline_exceeded"
    assert error.details["limit_seconds"] == 0.0


def test_a_query_stops_when_it_is_cancelled(graph: Graph) -> None:
    error = refused(graph, "match { $i: Item } return { $i.@id as i }", cancelled=lambda: True)
    assert error.code == "cancelled"


def test_a_count_that_does_not_fit_is_refused(graph: Graph) -> None:
    text = "match { %s } return { count(*) as n }"
    most = " ".join(f"$v{i}: Item" for i in range(11))
    assert ask(graph, text % most).scalar() == 40**11
    error = refused(graph, text % (most + " $w: Item"))
    assert error.details["observed"] == 40**12


def test_the_time_of_a_query_includes_that_of_compiling_it(monkeypatch: pytest.MonkeyPatch) -> None:
    served = omnigraph.init("memory://slow-compiler", schema=SCHEMA)
    real, late = time.monotonic, [0.0]

    def slow(*args: Any, **options: Any) -> Any:
        late[0] += 60.0
        return compile_query(*args, **options)

    monkeypatch.setattr(time, "monotonic", lambda: real() + late[0])
    monkeypatch.setattr(omnigraph.graph, "compile_query", slow)
    text = "match { $i: Item } return { $i.@id as i }"
    with pytest.raises(OmnigraphError) as error:
        served.query(text, timeout=30)
    assert error.value.code == "deadline_exceeded"
    assert served.query(text, timeout=30).rows == []  # compiled now


# --- blocks ------------------------------------------------------------------------------------------------------

PAIRS = "match { $a: Item $b: Item $c: Item } return { $a.code as a, $b.code as b, $c.code as c }"


class Calls:
    """Says after so many questions that nobody wants the answer any more."""

    def __init__(self, most: int) -> None:
        self.asked, self.most = 0, most

    def __call__(self) -> bool:
        self.asked += 1
        return self.asked > self.most


def test_a_query_is_cancelled_inside_an_operator(graph: Graph) -> None:
    calls = Calls(20)
    error = refused(graph, PAIRS, cancelled=calls, block_rows=16)
    assert error.code == "cancelled"
    assert calls.asked == 21


CODES = "match { $i: Item $i.code != 'x' } return { $i.code as code }".replace("'", '"')


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows scans have judged, block by block."""
    seen: list[int] = []

    def counted(expr: Any, rows: Any, ctx: Any) -> Any:
        seen.append(rows.n)
        return holds(expr, rows, ctx)

    monkeypatch.setattr(scan, "holds", counted)
    return seen


def test_a_large_scan_judges_its_rows_in_blocks(graph: Graph, judged: list[int]) -> None:
    whole = ask(graph, CODES).rows
    assert judged == [40]
    judged.clear()
    assert ask(graph, CODES, block_rows=16).rows == whole
    assert judged == [16, 16, 8]
    graph.delete("Item", [f"i{i}" for i in range(10)])
    judged.clear()
    assert len(ask(graph, CODES, block_rows=16)) == 30
    assert judged == [16, 14]


def test_a_limit_stops_a_scan(graph: Graph, judged: list[int]) -> None:
    assert len(ask(graph, CODES + " limit 3", block_rows=16)) == 3
    assert judged == [16]
    judged.clear()
    assert refused(graph, CODES, max_rows=3, block_rows=16).details["limit"] == "max_rows"
    assert judged == [16]


def test_a_scan_ends_between_its_blocks(graph: Graph, judged: list[int]) -> None:
    text = CODES.replace("$i.code as code", "count(*) as n")
    error = refused(graph, text, cancelled=lambda: len(judged) > 1, block_rows=16)
    assert error.code == "cancelled"
    assert judged == [16, 16]


def test_a_walk_begins_with_all_nodes_of_a_scan_or_the_first_ones(
    graph: Graph, judged: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    real = expand.expand

    def counted(step: Any, rows: Any, ctx: Any) -> Any:
        begun.append(rows.n)
        return real(step, rows, ctx)

    monkeypatch.setattr(expand, "expand", counted)
    text = CODES.replace("} return", "$i next $j } return").replace("$i.code as", "$j.code as")
    assert len(ask(graph, text, block_rows=16)) == 40
    assert (begun, judged) == ([40], [16, 16, 8])
    begun.clear()
    assert len(ask(graph, text + " limit 30", block_rows=16)) == 30
    assert begun == [16, 24]
    begun.clear()
    judged.clear()
    assert len(ask(graph, text + " limit 3", block_rows=16)) == 3
    assert (begun, judged) == ([16], [16])


@pytest.mark.parametrize(("least", "found"), [("i38", 8), ("i9", 1), ("j", 0)])
def test_a_walk_with_a_limit_ends_when_one_block_held_all_nodes(
    graph: Graph, least: str, found: int
) -> None:
    text = f'match {{ $i: Item $i.code >= "{least}" $i next $j }} return {{ $j }} limit 50'
    assert len(ask(graph, text)) == found


def test_a_limit_stops_the_work_below_it(graph: Graph) -> None:
    calls = Calls(100)
    found = ask(graph, PAIRS + " limit 3", cancelled=calls, block_rows=16, explain=True)
    assert len(found) == 3
    assert found.explain().to_json()["inputs"][0]["rows"] <= 16


def test_one_row_too_many_stops_the_work(graph: Graph) -> None:
    for text in (PAIRS, PAIRS + " order { $c.code }"):
        calls = Calls(1000)
        error = refused(graph, text, max_rows=20, cancelled=calls, block_rows=16)
        assert error.details["limit"] == "max_rows"
        assert calls.asked < 40, text


def test_what_an_operator_holds_is_refused_by_its_name(graph: Graph) -> None:
    error = refused(graph, PAIRS, memory_bytes_max=100_000, block_rows=16)
    assert error.code == "memory_exceeded"
    assert error.details["operator"] == "Result"
    assert error.details["limit"] == "query_memory_bytes_max"
    assert error.details["observed"] > error.details["limit_value"] == 100_000


def test_blocks_of_a_long_chain_of_operators_are_smaller(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[int] = []
    real = Budget.sizes

    def sizes(self: Budget, early: bool = False) -> Iterator[int]:
        found.append(self.block_rows)
        return real(self, early)

    monkeypatch.setattr(Budget, "sizes", sizes)
    for hops in (1, 3, 6):
        chain = " ".join(f"$i{n} $e{n}:next $i{n + 1}" for n in range(hops))
        text = f"match {{ $i0: Item {chain} }} return {{ $e0.id as x, $e{hops - 1}.id as y }}"
        found.clear()
        assert len(ask(graph, text, memory_bytes_max=64 << 20)) == 40
        assert set(found) == {(1 << 16) * 3 // max(hops, 3)}


def test_groups_and_orders_that_do_not_fit_wait_on_disk(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_SPILL", str(tmp_path / "spill"))
    monkeypatch.setattr(sorting, "RUN_ROWS", 1000)
    pairs = "match { $a: Item $b: Item $c: Item } return { $a.code as a, $b.code as b, $c.code as c"
    for text in (
        pairs + ", count(*) as n, count(distinct $c.code) as m } order { a desc, b, c } limit 2",
        pairs + " } order { $a.code desc, $b.code, $c.code } limit 50000",
    ):
        plain, told = (
            ask(graph, text).rows,
            ask(graph, text, memory_bytes_max=20_000_000, block_rows=500, explain=True),
        )
        assert told.rows == plain
        small = ask(
            graph,
            text.replace("50000", "2"),
            memory_bytes_max=1_500_000,
            block_rows=500,
            explain=True,
        )
        assert small.rows == plain[:2]
    assert list((tmp_path / "spill").iterdir()) == []


def test_memory_is_given_back(graph: Graph) -> None:
    before = PROCESS.bytes_used
    ask(graph, PAIRS + " limit 3", block_rows=16)
    refused(graph, PAIRS, memory_bytes_max=100_000, block_rows=16)
    assert PROCESS.bytes_used == before


def test_queries_share_the_memory_of_the_process(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PROCESS, "_bytes_max", 1000)
    error = refused(graph, PAIRS)
    assert (error.code, error.details["limit"]) == ("memory_exceeded", "memory_bytes_max")


def test_sizes_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_MEMORY", "4G")
    monkeypatch.setenv("OMNIGRAPH_QUERY_MEMORY", "512M")
    found = limits.memory_bytes.__wrapped__()
    assert (found.cache, found.queries, found.query) == (1 << 30, 3 << 30, 512 << 20)
    assert limits.memory_of_each(4) == {}, "it is set for each process"
    monkeypatch.setenv("OMNIGRAPH_MEMORY", "much")
    with pytest.raises(OmnigraphError, match="OMNIGRAPH_MEMORY"):
        limits.memory_bytes.__wrapped__()


def test_processes_of_one_server_share_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMNIGRAPH_MEMORY", raising=False)
    monkeypatch.delenv("OMNIGRAPH_QUERY_MEMORY", raising=False)
    alone = limits.memory_bytes.__wrapped__()
    monkeypatch.setenv("OMNIGRAPH_MEMORY", limits.memory_of_each(4)["OMNIGRAPH_MEMORY"])
    shared = limits.memory_bytes.__wrapped__()
    assert 4 * (shared.cache + shared.queries) <= alone.cache + alone.queries
    assert shared.query == pytest.approx(alone.query / 4, abs=1)


def test_nodes_that_a_walk_needs_together_are_charged(graph: Graph) -> None:
    text = CODES.replace("} return", "$i next $j } return").replace("$i.code as", "$j.code as")
    error = refused(graph, text, memory_bytes_max=100, block_rows=16)
    assert (error.code, error.details["operator"]) == ("memory_exceeded", "NodeScan")
