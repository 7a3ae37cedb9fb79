"""Joins on equal keys: the right side is held once, with its keys, whatever the number of blocks on the left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import OmnigraphError
from omnigraph.read import joins
from tests.support.snapshots import Graph, ask, make_graph

SCHEMA = """
node Left { code: String @key  n: I64?  f: F64?  t: String? }
node Right { code: String @key  n: I64?  f: F64?  t: String? }
edge Near: Left -> Left
"""
VALUES = [0, 1, None, 2, 3]


def rows(prefix: str, count: int) -> list[dict[str, Any]]:
    found = []
    for i in range(count):
        n = VALUES[i % 5]
        f = float("nan") if i % 7 == 3 else float(i % 4)
        found.append(
            {"id": f"{prefix}{i}", "code": f"{prefix}{i}", "n": n, "f": f, "t": f"t{i % 6}"}
        )
    return found


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    near = [{"id": f"e{i}", "src": "l0", "dst": f"l{i}"} for i in range(40)]
    return make_graph(
        tmp_path, SCHEMA, {"Left": rows("l", 40), "Right": rows("r", 30), "Near": near}
    )


def joined(graph: Graph, *on: str, **options: Any) -> Any:
    """All pairs of neighbours of a hub, and of rows on the right that are equal in some columns."""
    equal = " ".join(f"$b.{name} = $c.{other}" for name, _, other in (o.partition("=") for o in on))
    text = f'match {{ $a: Left {{ code: "l0" }} $a $e:near $b $c: Right {equal} }}'
    return ask(graph, text + " return { $b.code as b, $c.code as c, $e.id as e }", **options)


@pytest.mark.parametrize(
    "on", [("t=t",), ("n=n",), ("f=f",), ("n=f",), ("t=t", "n=n"), ("t=t", "n=f", "f=f")]
)
def test_rows_join_where_all_keys_are_equal(graph: Graph, on: tuple[str, ...]) -> None:
    pairs = [name.split("=") for name in on]
    wanted = {
        (b["code"], c["code"])
        for b in rows("l", 40)
        for c in rows("r", 30)
        if all(b[x] is not None and b[x] == c[y] for x, y in pairs)
    }
    for block_rows in (None, 3):
        found = joined(graph, *on, block_rows=block_rows).rows
        assert {(row["b"], row["c"]) for row in found} == wanted
        assert len(found) == len(wanted)


def test_keys_of_the_right_side_are_numbered_once(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, blocks, built = joins._Right.pairs, [], []
    of = joins._Keys.of

    def pairs(self: Any, left: Any, sizes: Any) -> Any:
        blocks.append(left.n)
        return real(self, left, sizes)

    def counted(*given: Any) -> Any:
        built.append(1)
        return of(*given)

    monkeypatch.setattr(joins._Right, "pairs", pairs)
    monkeypatch.setattr(joins._Keys, "of", counted)
    joined(graph, "t=t", block_rows=3)
    assert (len(blocks) > 5, len(built)) == (True, 1)


def test_keys_are_charged_to_the_join(tmp_path: Path) -> None:
    near = [{"id": "e", "src": "l0", "dst": "l1"}]
    data = {"Left": rows("l", 2), "Right": rows("r", 1000), "Near": near}
    graph = make_graph(tmp_path, SCHEMA, data)
    assert len(joined(graph, "t=t", memory_bytes_max=60_000)) == 167
    with pytest.raises(OmnigraphError) as error:
        joined(graph, "t=t", memory_bytes_max=1000 * joins.KEY_BYTES)
    assert (error.value.code, error.value.details["operator"]) == ("memory_exceeded", "Join")
