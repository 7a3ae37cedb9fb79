"""Migration plans, as data: tests/cases/schema/migrations.txt."""

from __future__ import annotations

import copy

import pytest
from msgspec.json import decode, encode

from omnigraph.lang.diagnostics import LanguageError
from omnigraph.lang.schema import (
    SchemaChangeRefused,
    compile_schema,
    decode_ir,
    encode_ir,
    plan_migration,
)
from omnigraph.lang.schema.steps import (
    AddConstraint,
    AddProperty,
    AddType,
    DropConstraint,
    DropProperty,
    DropType,
    ExtendEnum,
    PropertyStep,
    RenameProperty,
    RenameType,
    Step,
    UnsupportedChange,
    UpdateTypeMetadata,
    WidenProperty,
    step_of,
)
from tests.support.shapes import shape

from .casefile import Migration, migrations


def show(step: Step) -> str:
    """A step in the words of the case file."""
    match step:
        case RenameType():
            text = f"{step.type_kind} {step.from_name} -> {step.to_name}"
        case AddType() | DropType() | UpdateTypeMetadata():
            text = f"{step.type_kind} {step.name}"
        case RenameProperty():
            text = f"{step.type_kind} {step.type_name} {step.from_name} -> {step.to_name}"
        case PropertyStep():
            text = f"{step.type_kind} {step.type_name}.{step.property_name}"
        case AddConstraint() | DropConstraint():
            text = f"{step.type_kind} {step.type_name} {step.constraint}"
        case UnsupportedChange():
            text = step.entity
        case _:
            text = f"{step.to_json()['type_kind']} {step.to_json()['type_name']}"
    return " ".join(part for part in (step.kind, text, step.code) if part)


@pytest.mark.parametrize("case", migrations(), ids=lambda case: case.title)
def test_migration(case: Migration) -> None:
    accepted = compile_schema(case.before)
    if case.expected[0].startswith("error "):
        with pytest.raises(LanguageError) as caught:
            plan_migration(accepted, case.after)
        found = caught.value.diagnostics[0]
        place = f"{found.span.line}:{found.span.column}"
        text = f"error {found.code} {place} {found.message} [{found.suggestion}]"
        assert all(word in text for word in case.expected[0].split()), text
        return
    plan = plan_migration(accepted, case.after)
    steps = [show(step) for step in plan.steps]
    warnings = sorted({f"warning {d.code}" for d in plan.diagnostics})
    expected = [e for e in case.expected[1:] if not e.startswith("warning ")]
    assert plan.supported == (case.expected[0] == "supported")
    assert steps == expected
    assert [w for w in case.expected if w.startswith("warning ")] in (warnings, [])
    assert tuple(step_of(decode(encode(step.to_json()))) for step in plan.steps) == plan.steps


def test_identities_are_given_by_kind_and_name_then_by_owner_and_property() -> None:
    ir = compile_schema(
        "edge B: Z -> A { q: I32? }\nnode Z { b: I32 a: I32 }\nnode A { c: I32 }\ninterface I { x: I32 }"
    )
    types = {t.name: t.type_id for _, t in ir.types()}
    assert types == {"I": 1, "A": 2, "Z": 3, "B": 4}
    properties = {
        f"{t.name}.{p.name}": p.property_id for _, t in ir.types() for p in t.properties.values()
    }
    assert properties == {"I.x": 5, "A.c": 6, "Z.a": 7, "Z.b": 8, "B.q": 9}
    assert [n.table_id for n in ir.nodes] == ["n2", "n3"]
    assert [e.table_id for e in ir.edges] == ["e4"]


def test_identities_survive_renames_and_new_ones_are_derived() -> None:
    accepted = compile_schema("node A { a: String b: I32 }")
    text = 'node B @rename_from("A") { z: String @rename_from("a") b: I32 c: I32? }'
    (node,) = compile_schema(text, accepted=accepted).nodes
    assert (node.type_id, node.table_id) == (1, "n1")
    found = {p.name: p.property_id for p in node.properties.values()}
    assert (found["b"], found["z"]) == (3, 2)
    assert 2**51 <= found["c"] < 2**52


def test_the_same_addition_has_the_same_identity_whatever_else_was_added() -> None:
    root = compile_schema("node A { a: String }")
    one = compile_schema("node A { a: String b: I32? }\nnode C { c: I32 }", accepted=root)
    step = compile_schema("node A { a: String x: I32? }", accepted=root)
    text = "node A { a: String b: I32? @index x: I32? }\nnode C { c: I32 d: I32 }"
    other = compile_schema(text, accepted=step)
    assert set(other.identities()) > set(one.identities())


def test_what_left_its_name_does_not_come_back_under_it() -> None:
    root = compile_schema("node A { a: String b: I32? }")
    ids = {root.nodes[0].properties["b"].property_id}
    ir = root
    for text in ("node A { a: String }", 'node A { a: String z: I32? @rename_from("b") }') * 3:
        ir = compile_schema(text, accepted=ir)
        ir = compile_schema("node A { a: String b: I32? }", accepted=ir)
        ids.add(ir.nodes[0].properties["b"].property_id)
    assert len(ids) == 7
    assert decode_ir(encode_ir(ir)) == ir


def test_a_dropped_and_added_type_gets_a_new_table() -> None:
    accepted = compile_schema("node A { a: String }\nnode B { }")
    without = compile_schema("node B { }", accepted=accepted)
    again = compile_schema("node A { a: String }\nnode B { }", accepted=without)
    assert again.nodes[0].table_id not in ("n1", "n2")
    third = compile_schema("node B { }", accepted=without)
    assert compile_schema("node A { a: String }\nnode B { }", accepted=third) == again


def test_key_members_keep_the_order_of_their_creation() -> None:
    accepted = compile_schema("node A { a: String b: String @key(b, a) }")
    assert accepted.nodes[0].key == ("a", "b")
    text = 'node A { z: String @rename_from("a") b: String @key(b, z) }'
    assert compile_schema(text, accepted=accepted).nodes[0].key == ("z", "b")
    assert [step.kind for step in plan_migration(accepted, text).steps] == ["rename_property"]


def test_an_edge_key_starts_with_its_ends() -> None:
    ir = compile_schema("node A { }\nedge E: A -> A { a: I32 z: I32 @key(z, dst, a, src) }")
    assert ir.edges[0].key == ("src", "dst", "a", "z")


def test_steps_say_what_running_them_needs() -> None:
    accepted = compile_schema("node A { a: I32 e: enum(x) }")
    plan = plan_migration(accepted, 'node A { a: I64 e: enum(x, y) d: String @default("n") }')
    widen, add, extend = plan.steps
    assert isinstance(widen, WidenProperty)
    assert (widen.table_id, widen.property_id, str(widen.to_type)) == ("n1", 2, "I64")
    assert isinstance(add, AddProperty)
    assert (add.table_id, add.default, str(add.property_type)) == ("n1", "n", "String")
    assert isinstance(extend, ExtendEnum)
    assert extend.added_values == ("y",)
    assert add.to_json() == {
        "kind": "add_property",
        "type_kind": "node",
        "type_name": "A",
        "type_id": 1,
        "table_id": "n1",
        "property_name": "d",
        "property_id": add.property_id,
        "property_type": "String",
        "default": "n",
    }


@pytest.mark.parametrize(("allow", "mode"), [(False, "soft"), (True, "hard")])
def test_drops_are_hard_only_when_data_loss_is_allowed(allow: bool, mode: str) -> None:
    accepted = compile_schema("node A { a: String b: I32 }\nnode B { }")
    plan = plan_migration(accepted, "node A { a: String }", allow_data_loss=allow)
    modes = [step.mode for step in plan.steps if isinstance(step, DropType | DropProperty)]
    assert modes == [mode, mode]


def test_an_unsupported_plan_raises_with_the_code_of_its_first_obstacle() -> None:
    accepted = compile_schema("node A { a: String }")
    plan = plan_migration(accepted, "node A { a: I32 b: String }")
    with pytest.raises(SchemaChangeRefused) as caught:
        plan.raise_unsupported()
    assert caught.value.code == "OG-MF-106"
    assert len(caught.value.details["steps"]) == 2
    assert copy.deepcopy(caught.value).code == "OG-MF-106"


def test_the_shape_does_not_depend_on_identities_or_order() -> None:
    one = compile_schema("node A { a: String b: I32 @key(a, b) }")
    text = "/* x */ node A { b: I32 a: String @key(b, a) }"
    other = compile_schema(text, accepted=compile_schema("node B { }"))
    assert one != other
    assert shape(one) == shape(other)
