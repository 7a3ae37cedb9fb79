"""What reads bytes, as functions of bytes. A target lets our errors pass; anything else it raises is a finding."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec
import numpy as np

from omnigraph.core import layout, records
from omnigraph.core.repository import check_stamp
from omnigraph.lang.cast import cast_value
from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.languages import check_cypher, compile_cypher
from omnigraph.lang.lower import lower
from omnigraph.lang.plan_text import plan_text
from omnigraph.lang.query import (
    bind_params,
    check_query,
    compile_query,
    describe_operation,
    format_queries,
    lint_queries,
    parse_queries,
)
from omnigraph.lang.rewrite import rewrite
from omnigraph.lang.schema import (
    compile_schema,
    decode_ir,
    encode_ir,
    format_schema,
    lint_schema,
    parse_schema,
    plan_migration,
    schema_to_text,
)
from omnigraph.lang.source import Source
from omnigraph.model.catalog import NodeOrEdgeType
from omnigraph.model.names import branch_name, decode_name, encode_name
from omnigraph.model.tokens import Footprint
from omnigraph.model.types import PropType, Scalar
from omnigraph.read.topology_files import load_topology, topology_key
from tests.fuzz import documents
from tests.fuzz.ours import only_ours
from tests.support.dict_objects import DictObjects, Shelf
from tests.support.shapes import shape
from tests.unit.lang.query import test_any_text as queries
from tests.unit.lang.query.casefile import harbour
from tests.unit.lang.schema import test_any_text as schemas
from tests.unit.write import test_load_records as loading

Target = Callable[[bytes], None]
STORED = (
    records.GraphStamp,
    records.ChainObject,
    records.RefState,
    records.GcRecord,
    records.StoredSchema,
    records.KeyClaim,
    records.StoredPlan,
)


def _text(data: bytes) -> str:
    """Any text, lone surrogates included."""
    return data.decode("utf-8", "surrogateescape")


def _placed(found: Iterable[Diagnostic], text: str) -> None:
    for one in found:
        assert 0 <= one.span.start <= one.span.end <= len(text), one
        assert one.help, one


# --- the languages -------------------------------------------------------------------------------------------------


def schema_text(data: bytes) -> None:
    """Every stage of the schema language, and that what is printed means what was read."""
    text = data.decode("utf-8", "replace")
    _placed(lint_schema(text), text)
    ir = compile_schema(text)
    printed = format_schema(text)
    assert parse_schema(printed) == parse_schema(text)
    assert format_schema(printed) == printed
    assert decode_ir(encode_ir(ir)) == ir
    assert shape(compile_schema(schema_to_text(ir))) == shape(ir)
    assert plan_migration(ir, text).steps == ()


def query_text(data: bytes) -> None:
    """Every stage of the query language, and that what is printed means what was read."""
    text = data.decode("utf-8", "replace")
    lint_queries(text, harbour())
    only_ours(lambda: compile_query(text, harbour()))
    only_ours(lambda: parse_queries(f"match {{ {text}", bare=True))
    tree = parse_queries(text)
    printed = format_queries(text)
    assert parse_queries(printed) == tree
    assert format_queries(printed) == printed
    for query in tree.queries:
        plan = rewrite(lower(check_query(query, harbour(), Source(text))))
        assert plan_text(plan)
        assert rewrite(plan) == plan
        describe_operation(plan, harbour())


def cypher_text(data: bytes) -> None:
    """Cypher, from any text to a plan and its text."""
    text = data.decode("utf-8", "replace")
    _placed(check_cypher(text, harbour()), text)
    plan = compile_cypher(text, harbour(), {"a": 1, "b": "x", "c": [1, None], "d": {"k": 1.5}})
    assert plan_text(plan)
    describe_operation(plan, harbour())


PARAMETERS = """query q($a: String?, $b: I32?, $c: U64?, $d: F32?, $e: Date?, $f: DateTime?, $g: Bool?,
  $h: [I64]?, $i: Vector(2)?, $j: [Date]?, $k: Blob?, $l: [String]?) {
  match { $p: Port  $p.code = $a } return { $p.code } }"""


def parameters(data: bytes) -> None:
    """JSON values for parameters of every type."""
    plan = compile_query(PARAMETERS, harbour())
    for value in (_json(data), data.decode("utf-8", "replace")):
        for name in "abcdefghijkl":
            only_ours(partial(bind_params, plan, {name: value}))
        for scalar in Scalar:
            cast_value(value, PropType(scalar))


def _json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def schema_grammar(data: bytes) -> None:
    """Schemas drawn from the grammar: the properties of the language, guided by what they reach."""
    schemas.test_only_our_errors_come_out.hypothesis.fuzz_one_input(data)  # type: ignore[attr-defined]
    schemas.test_any_three_schemas_merge_or_conflict.hypothesis.fuzz_one_input(data)  # type: ignore[attr-defined]


def query_grammar(data: bytes) -> None:
    """Queries drawn from the grammar."""
    queries.test_formatting_keeps_meaning_and_comments.hypothesis.fuzz_one_input(data)  # type: ignore[attr-defined]
    queries.test_every_checked_query_lowers.hypothesis.fuzz_one_input(data)  # type: ignore[attr-defined]


# --- loads -----------------------------------------------------------------------------------------------------------


def ndjson(data: bytes) -> None:
    """Lines of graph records: the fast readings find what the exact one finds."""
    _both_readings(data, None)


def plain_rows(data: bytes) -> None:
    """Lines that are rows of one type."""
    _both_readings(data, loading.CATALOG.nodes["Thing"])
    _both_readings(data, loading.CATALOG.edges["Links"])


def _both_readings(data: bytes, kind: NodeOrEdgeType | None) -> None:
    fast = loading.reading_of(data, kind)
    with loading.only_exact():
        assert fast == loading.reading_of(data, kind)


# --- what is stored ------------------------------------------------------------------------------------------------


def stored_object(data: bytes) -> None:
    """Objects of a graph, as JSON and as any bytes: whatever is accepted is written as it was read."""
    if not data:
        return
    kind: Any = STORED[data[0] % len(STORED)]
    for packed in (zlib.compress(data[1:], 1), data[1:]):
        only_ours(partial(_again, kind, packed))
    only_ours(lambda: check_stamp(data[1:], "memory://fuzz"))


def _again(kind: Any, packed: bytes) -> None:
    thing = records.decode(kind, packed, "key")
    assert records.decode(kind, records.encode(thing), "key") == thing
    if isinstance(thing, records.Commit | records.Seal | records.Tombstone):
        records.operations_of(thing)
        records.keys_of(thing)


def stored_schema(data: bytes) -> None:
    """The stored form of a schema: accepted only if it is exactly what we write."""
    assert encode_ir(decode_ir(data)) == data


def footprint(data: bytes) -> None:
    """Footprints in commits: what is not understood meets everything."""
    read = Footprint.from_text(_text(data))
    for tokens in (np.array([], np.uint64), np.array([0, 7, 2**64 - 1], np.uint64)):
        read.meets(tokens)
    assert Footprint.from_text(read.to_text()).to_text() == read.to_text()


def names(data: bytes) -> None:
    """Names of branches and their keys; ids of commits."""
    text = _text(data)
    only_ours(lambda: layout.parse_commit_id(text))
    only_ours(lambda: layout.name_in(text))
    only_ours(lambda: decode_name(text))
    name = branch_name(text)
    path = encode_name(name)
    assert decode_name(path) == name
    assert not set(path.split("/")) & {"", ".", ".."}


def topology_file(data: bytes) -> None:
    """Derived files: used or ignored."""
    store = DictObjects(Shelf())
    store.put(topology_key("edges/x"), data)
    load_topology(store, "edges/x")


TARGETS: dict[str, Target] = {
    target.__name__: target
    for target in (
        schema_text,
        query_text,
        cypher_text,
        schema_grammar,
        query_grammar,
        parameters,
        ndjson,
        plain_rows,
        stored_object,
        stored_schema,
        footprint,
        names,
        topology_file,
        *documents.TARGETS,
    )
}


def assert_ours(name: str, data: bytes) -> None:
    """Run one target on one input; our errors are answers, everything else is raised."""
    only_ours(lambda: TARGETS[name](data))
