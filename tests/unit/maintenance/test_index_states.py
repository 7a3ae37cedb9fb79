"""What is shown of indices: everything a schema asks for is there after maintenance, with its size."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph.read.search import segments
from omnigraph.write.maintain import index_states

SCHEMA = """
node Doc {
  slug: String @key
  body: String? @index
  size: I64? @index
  kind: enum(a, b)? @index
  v: Vector(2)? @index
  @index(size, body)
}
"""


def test_nothing_is_pending_after_maintenance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = omnigraph.init(str(tmp_path / "g"), schema=SCHEMA)
    rows = [{"slug": f"d{i}", "body": "tea", "size": i, "kind": "a"} for i in range(50)]
    graph.load({"Doc": rows})
    monkeypatch.setattr(segments, "STORED_ROWS_MIN", 10)  # as if the load had made no file
    doc = graph.snapshot().catalog.nodes["Doc"]
    before = {(s.property, s.kind): s for s in index_states(graph.snapshot(), doc)}
    assert before["body", "TEXT"].covered_rows == 0
    graph.optimize()
    states = index_states(graph.snapshot(), doc)
    assert {(s.property, s.kind) for s in states} == {
        ("id", "BTREE"),
        ("slug", "BTREE"),
        ("body", "BTREE"),
        ("body", "TEXT"),
        ("size", "BTREE"),
        ("kind", "BTREE"),
        ("v", "EXACT"),
    }
    assert all(s.covered_rows == s.rows == 50 for s in states)
    assert all(s.bytes > 0 for s in states if s.kind != "EXACT")
    assert not any(report.indexed or report.text_bytes for report in graph.optimize())
