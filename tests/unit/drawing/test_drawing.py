"""Pictures: what is in them, not how they look."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import omnigraph
from omnigraph.drawing import history_text, schema_mermaid, schema_svg
from omnigraph.drawing.entities import drawing_of, entities_of
from omnigraph.lang.schema import catalog_of, compile_schema

SCHEMA = """
node Person { name: String @key  age: I32?  tags: [String]? }
node Team { name: String @key }
edge Knows: Person -> Person
edge PlaysIn: Person -> Team @card(0..1)
edge Leads: Person -> Team
"""
CATALOG = catalog_of(compile_schema(SCHEMA))
START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A commit as far as it is drawn."""

    id: str
    parents: tuple[str, ...]
    time: datetime
    kind: str = "load"
    actor: str | None = None
    message: str | None = None


def commits(*lines: tuple[str, tuple[str, ...]]) -> list[Drawn]:
    """Newest first."""
    count = len(lines)
    return [
        Drawn(id, parents, START + timedelta(seconds=count - i))
        for i, (id, parents) in enumerate(lines)
    ]


def texts(svg: str) -> list[str]:
    root = ET.fromstring(svg)  # noqa: S314
    return [element.text or "" for element in root.iter() if element.tag.endswith("text")]


def test_a_mermaid_diagram_names_every_type() -> None:
    drawn = schema_mermaid(CATALOG)
    assert drawn.startswith("classDiagram")
    assert 'Person "0..1" --> Team : PlaysIn' in drawn
    assert "Person --> Person : Knows" in drawn


def test_an_svg_diagram_names_every_type_and_counts() -> None:
    shown = texts(schema_svg(CATALOG, {"Person": 1_200}))
    assert {"Person · 1,200", "Team", "Knows", "PlaysIn", "Leads"} <= set(shown)


def test_an_empty_schema_can_be_drawn() -> None:
    assert texts(schema_svg(catalog_of(compile_schema("")))) == []


def lines_of(drawn: str) -> list[str]:
    """The drawing without what depends on the day it is made."""
    return re.sub(r"  \d+d ago", "", drawn).splitlines()


def test_history_with_a_branch_and_a_merge() -> None:
    drawn = history_text(
        commits(
            ("m.2", ("m.1", "d.1")),
            ("d.1", ("d.0",)),
            ("m.1", ("m.0",)),
            ("d.0", ("m.0",)),
            ("m.0", ()),
        ),
        {"m.2": ["main"], "d.1": ["draft"]},
    )
    assert lines_of(drawn) == [
        "*  m.2  (main)  load",
        "|\\",
        "| *  d.1  (draft)  load",
        "* |  m.1  load",
        "| *  d.0  load",
        "|/",
        "*  m.0  load",
    ]


def test_hidden_parents_are_stepped_over() -> None:
    drawn = history_text(commits(("m.5", ("m.4",)), ("m.2", ("m.1",))), {})
    assert lines_of(drawn) == ["*  m.5  load", "*  m.2  load"]


def test_a_branch_joins_where_the_log_says_although_its_start_is_hidden() -> None:
    shown = commits(("m.3", ("m.2",)), ("d.1", ("d.0",)), ("m.1", ()))
    drawn = history_text(shown, {}, {"m.3": "m.1", "d.1": "m.1"})
    assert lines_of(drawn) == ["*  m.3  load", "| *  d.1  load", "|/", "*  m.1  load"]


def test_roles_are_painted() -> None:
    drawn = history_text(commits(("m.1", ())), {"m.1": ["main"]}, paint=lambda t, role: f"<{role}>")
    assert drawn == "*  <id>  <names>  <dim>  load"


def entities_svg(rows: list[dict[str, Any]]) -> str:
    return drawing_of(entities_of(row.values() for row in rows))


def test_entities_of_rows_are_drawn_once() -> None:
    ada = {"id": "ada", "type": "Person", "name": "Ada <3"}
    edge = {"id": "e1", "type": "Knows", "from": "ada", "to": "bob"}
    shown = texts(entities_svg([{"a": ada, "e": edge}, {"a": ada}, {"n": 3}]))
    assert sorted(shown) == ["Ada <3", "Knows", "Person", "bob"]  # a type is told beside its colour


def test_edges_are_arrows_also_from_a_node_to_itself() -> None:
    both = [{"e": {"id": i, "type": "Knows", "from": "a", "to": to}} for i, to in ("1b", "2a")]
    drawn = entities_svg(both)
    assert drawn.count("marker-end") == 2
    assert drawn.count(">Knows<") == 2


def test_the_same_rows_are_drawn_alike() -> None:
    rows = [{"p": {"nodes": [f"n{i}" for i in range(20)], "edges": [f"e{i}" for i in range(19)]}}]
    assert entities_svg(rows) == entities_svg(rows)


def test_what_notebooks_show(memory_root: str) -> None:
    graph = omnigraph.init(memory_root, schema=SCHEMA)
    graph.load({"Person": [{"name": "Ada", "age": 36}, {"name": "<b>"}]}, actor="me", message="two")
    assert "Person · 2" in graph._repr_html_()
    assert "two" in graph.log()[0]._repr_html_()
    assert "&lt;b&gt;" in graph.diff("main~1", "main")._repr_html_()
    plan = graph.plan_schema(SCHEMA.replace("age: I32?", "age: I32?  mail: String?"))
    assert "add_property" in plan._repr_html_()


def test_writes_logs_merges_and_plans_are_read_at_a_glance(memory_root: str) -> None:
    graph = omnigraph.init(memory_root, schema="node Person { name: String @key  age: I32? }")
    loaded = graph.load({"Person": [{"name": "Ada", "age": 36}]}, message="the first")
    assert loaded.commit is not None
    shown = loaded._repr_html_()
    assert f"<p>loaded · <code>{loaded.commit.id}</code> on main</p>" in shown
    assert "<td>Person</td><td>1</td>" in shown
    for branch, age in (("main", 40), ("draft", 41)):
        if branch == "draft":
            graph.create_branch("draft", from_="main~1")
        done = graph.mutate(
            'update Person set { age: $a } where name = "Ada"'.replace("$a", str(age)),
            branch=branch,
        )
        assert "<td>nodes</td><td>1</td>" in done._repr_html_()
    log = graph.log()
    assert isinstance(log, list)
    assert "<td>the first</td><td>Person +1</td>" in log._repr_html_()  # type: ignore[attr-defined]
    assert "dataclass" not in log._repr_html_()  # type: ignore[attr-defined]
    merged = graph.merge("draft")
    assert "1 conflict; nothing was changed" in merged._repr_html_()
    assert "<td>36</td><td>40</td><td>41</td>" in merged._repr_html_()
    plan = graph.query("match { $p: Person } return { $p.name }", explain=True).explain()
    assert "<b>NodeScan</b> <code>$p: Person</code>" in plan._repr_html_()


def test_entities_and_vectors_are_short_in_a_table(memory_root: str) -> None:
    graph = omnigraph.init(
        memory_root, schema="node Person { name: String @key  face: Vector(64)? }"
    )
    graph.load({"Person": [{"name": "Ada <b>", "face": [0.25] * 64}]})
    shown = graph.query(
        "match { $p: Person } return { entity($p) as p, $p.face as face }"
    )._repr_html_()
    assert "Ada &lt;b&gt;</span> <small>Person</small>" in shown
    assert "[0.25, 0.25, 0.25, … 64 numbers]" in shown
    assert "{&#x27;" not in shown
    only = graph.query("match { $p: Person } return { entity($p) as p }")._repr_html_()
    assert only.index("<details") < only.index("<table"), "the picture first"
