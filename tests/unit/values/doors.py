"""The doors values come in by. Each takes a type and a value and answers with the JSON shape of what is stored."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

import omnigraph
from omnigraph.errors import OmnigraphError, Violation
from omnigraph.lang import ir
from omnigraph.lang.query import bind_params, compile_query
from omnigraph.lang.schema import catalog_of, compile_schema
from omnigraph.merge.conflicts import ChosenValue, value_of
from omnigraph.model.catalog import Catalog, NodeType
from omnigraph.model.columns import arrow_schema
from omnigraph.remote.transport import encoded
from omnigraph.validate.rules import row_violations
from omnigraph.values.columns import column_of, default_of
from omnigraph.values.misfit import Misfit
from omnigraph.values.spelling import to_json
from omnigraph.write.input.options import Options
from omnigraph.write.input.parts import to_incoming
from omnigraph.write.input.problems import Problems
from omnigraph.write.input.sources import source_of

Door = Callable[[str, Any, Path], Any]
OPTIONS = Options(blob_allow=())


class Broken(OmnigraphError):
    """A row breaks a rule of its type, as `validation_failed` says."""

    def __init__(self, found: list[Violation]) -> None:
        super().__init__(found[0].message, details={"violations": [v.to_json() for v in found]})


@cache
def catalog(kind: str, default: str = "") -> Catalog:
    return catalog_of(compile_schema(f"node A {{ k: String  v: {kind}? {default} }}"))


def node(kind: str) -> NodeType:
    return catalog(kind).nodes["A"]


def stored(kind: str, values: pa.ChunkedArray | pa.Array) -> Any:
    """The first of some equal values, after the rules about rows."""
    rows = pa.table({"v": values}, pa.schema([arrow_schema(node(kind)).field("v")]))
    found = row_violations(rows, node(kind))
    if found:
        raise Broken(found)
    first, *others = [to_json(value) for value in values.to_pylist()]
    assert all(repr(other) == repr(first) for other in others)
    return first


def assigned(kind: str, value: Any) -> Any:
    """A value of a query, as a mutation assigns it."""
    prop = node(kind).properties["v"]
    try:
        column = column_of([value], prop.type, OPTIONS.context)
    except Misfit as misfit:
        raise Broken([misfit.at("A.v", prop.type, "v").violation("A")]) from None
    return stored(kind, column)


def loaded(kind: str, source: Any) -> Any:
    problems = Problems()
    found = to_incoming(source_of(source, OPTIONS).read(catalog(kind), problems))
    problems.settle()
    [incoming] = found
    return stored(kind, incoming.rows["v"])


def record(kind: str, value: Any, _: Path) -> Any:
    return loaded(kind, [{"type": "A", "data": {"v": value}}])


def row(kind: str, value: Any, _: Path) -> Any:
    return loaded(kind, {"A": [{"v": value}]})


def lines(kind: str, value: Any, _: Path) -> Any:
    return loaded(kind, io.BytesIO(json.dumps({"type": "A", "data": {"v": value}}).encode()))


def many_lines(kind: str, value: Any, _: Path) -> Any:
    """So many that the fast readings take them."""
    text = json.dumps({"type": "A", "data": {"v": value}}) + "\n"
    return loaded(kind, io.BytesIO(text.encode() * 20))


def other_lines(kind: str, value: Any, _: Path) -> Any:
    """The same, with something in them that the first of the fast readings leaves to the second."""
    text = json.dumps({"type": "A", "data": {"k": "\u00e9", "v": value}}) + "\n"
    return loaded(kind, io.BytesIO(text.encode() * 20))


def table(kind: str, value: Any, _: Path) -> Any:
    return loaded(kind, {"A": pa.table({"v": pa.array([value, value])})})


def cell(kind: str, value: Any, folder: Path) -> Any:
    text = value if isinstance(value, str) else json.dumps(value)
    quoted = '"' + text.replace('"', '""') + '"'
    (folder / "a.csv").write_text(f"k,v\na,{quoted}\nb,{quoted}\n")
    return loaded(kind, {"A": str(folder / "a.csv")})


def parameter(kind: str, value: Any, _: Path) -> Any:
    declared = "String" if kind.startswith("enum") else kind
    query = compile_query(
        f'query q($v: {declared}) {{ insert A {{ k: "a", v: $v }} }}', catalog(kind)
    )
    bound = bind_params(query, {"v": value}).values["v"]
    return assigned(kind, bound)


def served(kind: str, value: Any, folder: Path) -> Any:
    """A parameter that is sent to a server."""
    sent = msgspec.json.decode(encoded({"params": {"v": value}}))
    return parameter(kind, sent["params"]["v"], folder)


def literal(kind: str, value: Any, _: Path) -> Any:
    text = json.dumps(value, ensure_ascii=False)
    if kind in ("Date", "DateTime") and isinstance(value, str):
        text = f"{kind.lower()}({text})"
    elif kind == "[Date]":
        text = "[" + ", ".join(f"date({json.dumps(v)})" for v in value) + "]"
    query = compile_query(f'query q() {{ insert A {{ k: "a", v: {text} }} }}', catalog(kind))
    assert isinstance(query.body, ir.Mutation)
    [statement] = query.body.statements
    assert isinstance(statement, ir.Insert)
    [found] = [
        a.value.value
        for a in statement.rows[0].values
        if a.property == "v" and isinstance(a.value, ir.Literal)
    ]
    return assigned(kind, found)


def default(kind: str, value: Any, _: Path) -> Any:
    made = (
        catalog(kind, f"@default({json.dumps(value, ensure_ascii=False)})")
        .nodes["A"]
        .properties["v"]
    )
    return stored(kind, pa.array([default_of(made).as_py()], default_of(made).type))


def resolution(kind: str, value: Any, _: Path) -> Any:
    return assigned(kind, value_of(ChosenValue(value), node(kind), "v"))


@cache
def graph(kind: str) -> omnigraph.Graph:
    found = omnigraph.init(
        f"memory://doors-{abs(hash(kind))}", schema=f"node A {{ k: String @key  v: {kind}? }}"
    )
    found.mutate('insert A { k: "a" }')
    return found


def update(kind: str, value: Any, _: Path) -> Any:
    """The whole way through a graph."""
    declared = "String" if kind.startswith("enum") else kind
    statement = 'update A set { v: $v } where k = "a"'
    graph(kind).mutate(f"query q($v: {declared}) {{ {statement} }}", {"v": value})
    if kind == "Blob":
        return graph(kind).blob("A", "a", "v").read()
    return graph(kind).query("match { $a: A } return { $a.v as v }").to_json()["rows"][0]["v"]


JSON_DOORS = (
    record,
    row,
    lines,
    many_lines,
    other_lines,
    parameter,
    served,
    default,
    resolution,
    update,
)
PYTHON_DOORS = (record, row, parameter, served, resolution, update)
