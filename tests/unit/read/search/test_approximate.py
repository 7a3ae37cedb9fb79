"""The nearest vectors through a stored index: few are missed, distances are exact, and nothing stale is believed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import omnigraph
from omnigraph.graph import Graph
from omnigraph.lang.ir import Metric
from omnigraph.read import SHARED
from omnigraph.read import columns as columns_module
from omnigraph.read.columns import columns_of
from omnigraph.read.search import approximate
from omnigraph.write import maintain
from tests.support import rings

WIDTH = 8
SCHEMA = f"""
node Doc {{
  slug: String @key
  size: I64?
  v: Vector({WIDTH})? @index
}}
node Tag {{ name: String @key }}
edge Has: Tag -> Doc
"""
NEAREST = """
query q($v: Vector(8), $most: I64) {
  match { $d: Doc  $d.size < $most }
  return { $d.slug as slug, nearest($d.v, $v) as far }
  order { nearest($d.v, $v%s) }
  limit 10
}
"""

Rows = dict[str, tuple[int, list[float] | None]]


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Graph]:
    """A graph whose vectors are indexed however few they are."""
    monkeypatch.setattr(approximate, "INDEX_ROWS_MIN", 1)
    monkeypatch.setattr(maintain, "VECTOR_ROWS_MIN", 300)
    SHARED.clear()
    yield omnigraph.init(str(tmp_path / "g"), schema=SCHEMA)
    SHARED.clear()


def vector(rng: random.Random) -> list[float]:
    return [float(np.float32(rng.gauss(0, 1))) for _ in range(WIDTH)]


def load(graph: Graph, rows: Rows, branch: str = "main") -> None:
    records = [{"slug": slug, "size": size, "v": v} for slug, (size, v) in rows.items()]
    graph.load({"Doc": records}, branch=branch)


def ask(graph: Graph, query: list[float], approx: bool, most: int = 10**6, **where: Any) -> Any:
    text = NEAREST % (", approx" if approx else "")
    return graph.query(text, {"v": query, "most": most}, explain=True, **where)


def truth(rows: Rows, query: list[float], most: int) -> dict[str, float]:
    kept = {s: v for s, (size, v) in rows.items() if v is not None and size < most}
    return {s: float(((np.array(v) - np.array(query)) ** 2).sum()) for s, v in kept.items()}


def recall(graph: Graph, rows: Rows, rng: random.Random, most: int = 10**6, **where: Any) -> float:
    """The share of the ten nearest that is found; what is found is there, and as far as it says."""
    query = vector(rng)
    known = truth(rows, query, most)
    found = {row["slug"]: row["far"] for row in ask(graph, query, True, most, **where)}
    assert found == pytest.approx({slug: known[slug] for slug in found}, rel=1e-6)
    assert len(found) == min(10, len(known))
    best = sorted(known, key=lambda slug: known[slug])[:10]
    return len(set(best) & set(found)) / len(best) if best else 1.0


def test_the_index_is_used_and_few_are_missed(graph: Graph) -> None:
    rng = random.Random(1)
    rows: Rows = {f"d{i}": (i, vector(rng)) for i in range(2_000)}
    load(graph, rows)
    assert "exact: no index" in str(ask(graph, vector(rng), True).explain())
    graph.optimize()
    assert "approximate: IVF" in str(ask(graph, vector(rng), True).explain())
    assert "approximate" not in str(ask(graph, vector(rng), False).explain())
    assert np.mean([recall(graph, rows, rng) for _ in range(20)]) >= 0.95


def test_the_column_is_never_loaded(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns_module, "TAKEN_FROM_ROWS_MIN", 0)
    rng = random.Random(4)
    load(graph, {f"d{i}": (i, vector(rng)) for i in range(2_000)})
    graph.optimize()
    SHARED.clear()
    text = """
    query q($v: Vector(8)) { match { $d: Doc } return { $d.slug } order { nearest($d.v, $v, approx) } limit 2 }
    """
    for _ in range(12):
        assert "approximate: IVF" in str(
            graph.query(text, {"v": vector(rng)}, explain=True).explain()
        )
    found = columns_of(graph.snapshot(), graph.snapshot().catalog.nodes["Doc"], SHARED)
    assert not found.is_loaded("v")


def test_a_changed_metric_is_followed(graph: Graph) -> None:
    rng = random.Random(5)
    load(graph, {f"d{i}": (i, vector(rng)) for i in range(1_000)})
    graph.optimize()
    graph.apply_schema(SCHEMA.replace("@index", '@index @metric("dot")'))
    assert "exact: no index" in str(ask(graph, vector(rng), True).explain())
    graph.optimize()
    table = graph.snapshot().table_of(graph.snapshot().catalog.nodes["Doc"])
    assert [index.metric for index in table.indices() if index.column == "v"] == ["dot"]
    assert "approximate: IVF" in str(ask(graph, vector(rng), True).explain())
    before = graph.log()[0].id
    graph.optimize()
    assert graph.log()[0].id == before


def test_a_large_table_is_not_probed_more_than_a_small_one(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(graph, {f"d{i}": (i, vector(random.Random(i))) for i in range(400)})
    graph.optimize()
    snapshot = graph.snapshot()
    found = columns_of(snapshot, snapshot.catalog.nodes["Doc"], SHARED)
    probed: list[int] = []
    kind: Any = type(found.table)
    near = kind.near

    def counted(self: Any, column: str, v: list[float], count: int, probes: int) -> Any:
        probed.append(probes)
        return near(self, column, v, count, probes)

    monkeypatch.setattr(kind, "near", counted)
    for rows in (found.n, 16_000_000):
        monkeypatch.setattr(found, "n", rows)
        approximate.approximate(
            found, "v", [1.0] * WIDTH, Metric.L2, count=5, note=lambda **_: None
        )
    assert len(probed) == 2
    assert probed[0] == probed[1]


@pytest.mark.parametrize("most", [0, 2, 20, 1_000])
def test_conditions_come_first(graph: Graph, most: int) -> None:
    rng = random.Random(2)
    rows: Rows = {f"d{i}": (i, vector(rng)) for i in range(2_000)}
    load(graph, rows)
    graph.optimize()
    assert np.mean([recall(graph, rows, rng, most) for _ in range(10)]) >= 0.95


def test_a_traversal_comes_first(graph: Graph) -> None:
    rng = random.Random(3)
    load(graph, {f"d{i}": (i, vector(rng)) for i in range(1_000)})
    edges = [{"from": "t", "to": f"d{i}"} for i in range(3)]
    graph.load({"Tag": [{"name": "t"}], "Has": edges})
    graph.optimize()
    text = """
    query q($v: Vector(8)) {
      match { $t: Tag  $t has $d }
      return { $d.slug as slug }
      order { nearest($d.v, $v, approx) }
      limit 10
    }
    """
    found = graph.query(text, {"v": vector(rng)})
    assert {row["slug"] for row in found} == {"d0", "d1", "d2"}


@pytest.mark.parametrize("seed", range(rings.count(2, 30)))
def test_nothing_stale_is_believed(graph: Graph, seed: int) -> None:
    """Appends, upserts, deletions, compaction and a branch, with an index that is always some steps behind."""
    rng = random.Random(seed)
    branches: dict[str, Rows] = {"main": {f"d{i}": (i, vector(rng)) for i in range(400)}}
    load(graph, branches["main"])
    shares = [recall(graph, branches["main"], rng)]
    for step in range(14):
        name = rng.choice(sorted(branches))
        rows = branches[name]
        match rng.choice(["append", "upsert", "delete", "optimize", "branch"]):
            case "append":
                more: Rows = {f"d{step}-{i}": (i, vector(rng)) for i in range(rng.choice([5, 400]))}
            case "upsert":
                chosen = rng.sample(sorted(rows), min(len(rows), 50))
                more = {s: (0, None if rng.random() < 0.1 else vector(rng)) for s in chosen}
            case "delete":
                limit = rng.randint(0, 200)
                graph.mutate(f"query q() {{ delete Doc where size = {limit} }}", branch=name)
                branches[name] = {s: r for s, r in rows.items() if r[0] != limit}
                continue
            case "optimize":
                graph.optimize(name)
                continue
            case _:
                if "side" not in branches:
                    graph.create_branch("side", from_="main")
                    branches["side"] = branches["main"]
                continue
        if more:
            load(graph, more, name)
            branches[name] = {**rows, **more}
        shares += [recall(graph, branches[b], rng, branch=b) for b in branches]
    assert np.mean(shares) >= 0.95
