"""The canonical formatter: what it prints, and that comments survive."""

from __future__ import annotations

import pytest

from omnigraph.lang.schema import (
    compile_schema,
    format_schema,
    parse_schema,
    schema_to_text,
)
from tests.support.shapes import shape

from .casefile import HARBOUR, Case, rules

VALID = [case for case in rules() if all(e.severity == "warning" for e in case.expected)]

MESSY = """\
// the head


/* a block
   of two lines */
interface   Named{label:String@index} // behind the interface
node Port @description("a \\"port\\"") @hot(1,b=true) implements Named,Other { // behind the brace
  // before a
  a : String // behind a

  b:enum(z,a-b,3d)?/* behind b */ c: Vector(3)@embed(a,model="m")   @default([1.5, -2])


  // before the rules
  @key( a,b )
  @range(c,-1..) @range(c, ..1e3) @check(a,"\\\\d+\\n")
  // before the end
}
interface Other { /* nothing */ }
edge E:Port->Port@card(0..*)@x
edge F: Port -> Port // a comment of F

edge G: Port /* inside */ -> Port { }
node Empty { }
// the tail
"""

TIDY = """\
// the head

/* a block
   of two lines */
interface Named {
  label: String @index
} // behind the interface

node Port @description("a \\"port\\"") @hot(1, b=true) implements Named, Other { // behind the brace
  // before a
  a: String // behind a

  b: enum(z, a-b, 3d)? /* behind b */
  c: Vector(3) @embed(a, model="m") @default([1.5, -2])

  // before the rules
  @key(a, b)
  @range(c, -1..)
  @range(c, ..1000.0)
  @check(a, "\\\\d+\\n")
  // before the end
}

interface Other { /* nothing */
}

edge E: Port -> Port @card(0..) @x
edge F: Port -> Port // a comment of F

/* inside */
edge G: Port -> Port {}

node Empty {}

// the tail
"""


def test_messy_text_is_tidied() -> None:
    assert format_schema(MESSY) == TIDY


def test_tidy_text_stays_as_it_is() -> None:
    assert format_schema(TIDY) == TIDY


@pytest.mark.parametrize("case", VALID, ids=lambda case: case.title)
def test_formatting_keeps_the_meaning(case: Case) -> None:
    text = case.text
    printed = format_schema(text)
    assert parse_schema(printed) == parse_schema(text)
    assert format_schema(printed) == printed


@pytest.mark.parametrize("case", VALID, ids=lambda case: case.title)
def test_a_stored_schema_prints_as_text_that_compiles_to_it(case: Case) -> None:
    ir = compile_schema(case.text)
    printed = schema_to_text(ir)
    assert shape(compile_schema(printed)) == shape(ir)
    assert format_schema(printed) == printed
    assert compile_schema(printed, accepted=ir) == ir


def test_the_harbour_schema_is_stored_and_printed() -> None:
    ir = compile_schema(HARBOUR)
    assert shape(compile_schema(schema_to_text(ir))) == shape(ir)
