"""What holds for every text, valid or not."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import OmnigraphError
from omnigraph.lang.diagnostics import ERRORS_MAX, Severity, render
from omnigraph.lang.schema import (
    compile_schema,
    decode_ir,
    encode_ir,
    format_schema,
    lint_schema,
    merge_schemas,
    parse_schema,
    plan_migration,
    schema_to_text,
)
from omnigraph.lang.source import Source
from tests.support.shapes import shape

from .strategies import broken_texts, schema_texts

ANY_TEXT = st.one_of(st.text(max_size=300), broken_texts(), st.text('node{}()[]@:"\\/*.. A1a\n'))


@given(ANY_TEXT)
@settings(max_examples=300)
def test_only_our_errors_come_out(text: str) -> None:
    found = lint_schema(text, "x.pg")
    errors = [d for d in found if d.severity is Severity.ERROR]
    assert len(errors) <= ERRORS_MAX
    for diagnostic in found:
        span = diagnostic.span
        assert 0 <= span.start <= span.end <= len(text)
        assert span.line == text.count("\n", 0, span.start) + 1
        assert diagnostic.help
        assert render(diagnostic, Source(text)).startswith(f"{diagnostic.severity}[")
    assert [d.span.start for d in found] == sorted(d.span.start for d in found)
    for function in (parse_schema, compile_schema, format_schema):
        try:
            function(text)
        except OmnigraphError:
            assert errors


@given(broken_texts())
def test_the_same_text_gives_the_same_diagnostics(text: str) -> None:
    assert lint_schema(text) == lint_schema(text)


@given(schema_texts())
@settings(max_examples=200)
def test_formatting_keeps_meaning_and_comments(text: str) -> None:
    printed = format_schema(text)
    assert parse_schema(printed) == parse_schema(text)
    assert format_schema(printed) == printed
    comments = [c.text.strip() for c in parse_schema(text).comments]
    assert sorted(c.text.strip() for c in parse_schema(printed).comments) == sorted(comments)


@given(schema_texts())
@settings(max_examples=100)
def test_a_valid_schema_survives_storage_and_printing(text: str) -> None:
    ir = compile_schema(text)
    assert decode_ir(encode_ir(ir)) == ir
    assert shape(compile_schema(schema_to_text(ir))) == shape(ir)
    assert plan_migration(ir, schema_to_text(ir)).steps == ()


@given(schema_texts(), schema_texts())
@settings(max_examples=100)
def test_a_plan_leads_from_any_schema_to_any_other(before: str, after: str) -> None:
    accepted = compile_schema(before)
    plan = plan_migration(accepted, after)
    desired = compile_schema(after, accepted=accepted)
    assert shape(desired) == shape(compile_schema(after))
    assert bool(plan.steps) == (shape(accepted) != shape(desired))
    assert plan_migration(desired, after).steps == ()
    assert plan.supported == all(step.kind != "unsupported_change" for step in plan.steps)


@given(schema_texts(), schema_texts(), schema_texts())
@settings(max_examples=150)
def test_any_three_schemas_merge_or_conflict(base: str, ours: str, theirs: str) -> None:
    root = compile_schema(base)
    one = compile_schema(ours, accepted=root)
    other = compile_schema(theirs, accepted=root)
    found = merge_schemas(root, one, other)
    back = merge_schemas(root, other, one)
    assert bool(found.conflicts) == bool(back.conflicts)
    assert (found.ir is None) == bool(found.conflicts)
    if found.ir is not None and back.ir is not None:
        assert shape(found.ir) == shape(back.ir)
        assert decode_ir(encode_ir(found.ir)) == found.ir
        assert compile_schema(schema_to_text(found.ir), accepted=found.ir) == found.ir


HOSTILE = {
    "parentheses": "(" * 65536,
    "braces": "{" * 65536,
    "mixed brackets": "{[(" * 21845,
    "lists": "node A { a: " + "[" * 65000,
    "annotations": "node A { a: String @x(" + "[" * 65000,
    "quotes": '"' * 65535,
    "escaped quotes": '\\"\n' * 21845,
    "open comments": "/*" * 32768,
    "slashes": "a/" * 32768,
    "stars": "/*" + "*" * 65533,
    "bad characters": "\u00e9 " * 32768,
    "dollars": "$" * 65536,
    "digits": "node A { a: Vector(" + "9" * 65000 + ") }",
    "exponents": "node A { a: I32 @default(1e" + "9" * 65000 + ") }",
    "long name": "node " + "A" * 65000 + " {}",
    "many nodes": "node A{}" * 8192,
    "many properties": "node A{" + "a:I32 " * 10900,
    "many misspelt types": "node A{" + "a:Strng\n" * 8190,
    "many unclosed": "node A{\n" * 8190,
    "many commas": "node A{" + "," * 65000,
    "enum values": "node A{a:enum(" + "x," * 32000,
    "blank lines behind": "node" + "\n" * 65000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_answered_soon(text: str) -> None:
    started = time.thread_time()
    found = lint_schema(text)
    spent = time.thread_time() - started
    assert found
    # The aim is 50 ms; the bound leaves room for a busy machine and still tells linear from quadratic.
    assert spent < 1.0, f"{spent * 1000:.0f} ms"
