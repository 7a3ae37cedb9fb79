"""Three-way merges of schemas, as data: tests/cases/schema/merges.txt."""

from __future__ import annotations

import pytest

from omnigraph.lang.schema import (
    compile_schema,
    merge_schemas,
    schema_to_text,
)
from tests.support.shapes import shape

from .casefile import Merge, merges


@pytest.mark.parametrize("case", merges(), ids=lambda case: case.title)
def test_merge(case: Merge) -> None:
    base = compile_schema(case.base)
    ours = compile_schema(case.ours, accepted=base)
    theirs = compile_schema(case.theirs, accepted=base)
    for one, other in ((ours, theirs), (theirs, ours)):
        found = merge_schemas(base, one, other)
        if case.merged is not None:
            assert found.conflicts == ()
            assert found.ir is not None
            assert shape(found.ir) == shape(compile_schema(case.merged))
            assert len(set(found.ir.identities())) == len(list(found.ir.identities()))
        else:
            assert found.ir is None
            subjects = {(c.type_kind, c.property_name or "-", c.aspect) for c in found.conflicts}
            wanted = {(w[0], w[2], w[3]) for w in map(str.split, case.conflicts)}
            assert subjects == wanted
    first = merge_schemas(base, ours, theirs).conflicts
    assert [f"{c.type_name}" for c in first] == [c.split()[1] for c in case.conflicts]


def test_an_unchanged_side_costs_nothing() -> None:
    base = compile_schema("node A { a: I32 }")
    changed = compile_schema("node A { a: I64 }", accepted=base)
    assert merge_schemas(base, changed, base).ir is changed
    assert merge_schemas(base, base, changed).ir is changed
    assert merge_schemas(base, changed, changed).ir is changed


def test_identities_of_both_sides_are_kept() -> None:
    base = compile_schema("node A { a: I32 }")
    ours = compile_schema("node A { a: I32 }\nnode B { }", accepted=base)
    theirs = compile_schema("node A { a: I32 }\nnode C { }", accepted=base)
    merged = merge_schemas(base, ours, theirs).ir
    assert merged is not None
    assert {n.table_id for n in merged.nodes} == {
        n.table_id for side in (ours, theirs) for n in side.nodes
    }


def test_a_conflict_names_what_each_side_wants() -> None:
    base = compile_schema("node A { a: I32 }")
    ours = compile_schema("node A { a: I64 }", accepted=base)
    theirs = compile_schema("node A { a: F64 }", accepted=base)
    (conflict,) = merge_schemas(base, ours, theirs).conflicts
    assert conflict.to_json() == {
        "kind": "schema_conflict",
        "type_kind": "node",
        "type": "A",
        "field": "a",
        "aspect": "type",
        "base": "I32",
        "ours": "I64",
        "theirs": "F64",
    }


def test_the_text_of_a_merged_schema_compiles_to_it() -> None:
    base = compile_schema("node A { a: String }")
    ours = compile_schema("node A { a: String b: I32? @index }", accepted=base)
    theirs = compile_schema('node A @x("y") { a: String @key }', accepted=base)
    merged = merge_schemas(base, ours, theirs).ir
    assert merged is not None
    assert compile_schema(schema_to_text(merged), accepted=merged) == merged
