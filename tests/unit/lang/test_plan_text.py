"""The text of plans shows conditions as they were written: tests/cases/query/rules.txt holds whole plans."""

from __future__ import annotations

import pytest

from omnigraph.lang import ir
from omnigraph.lang.plan_text import describe, plan_text
from omnigraph.lang.query import compile_query
from omnigraph.lang.tree import conjuncts
from tests.unit.lang.query.casefile import harbour, rules

HEAD = "query q($q: Vector(2), $low: F64, $names: [String], $on: Bool)"
CONDITIONS = (
    '$v.name starts_with "a" and $v.name in $names and cast($v.name as F64) > $low',
    '$v.teu > 3 or not $v.active and $v.flag != "NO"',
    "($v.teu > 3 or $v.active) and ($v.teu < 1 or $on)",
    "not ($v.active and $on)",
    "$v.teu * (2 + $v.imo) - 1 >= -$v.imo / 3 % 5",
    "$v.teu - ($v.imo - 1) = -(5)",
    "not $v.teu in [1, 2, -3]",
    "$v.flag is not null and coalesce($v.flag, $v.name) is null",
    'regex_match(lower($v.name), "^a.*\\n") and substring($v.name, 0, 3) contains "\\""',
    'search($v.notes, "a b") and search_all($v.notes, "a") and phrase($v.notes, "b") and fuzzy($v.notes, "c", 1)',
    '$v.built >= date("2001-01-01") and days_between($v.built, now()) > 7',
    'cast($v.built as DateTime) < datetime("2024-01-01T10:00:00.000Z")',
    '$v.id = "x" and $v.@type = "Vessel"',
)


def scan_of(condition: str) -> ir.NodeScan:
    text = f"{HEAD} {{ match {{ $v: Vessel ({condition}) }} return {{ $v.name }} }}"
    body = compile_query(text, harbour()).body
    assert isinstance(body, ir.Read)
    assert isinstance(body.plan, ir.Project)
    assert isinstance(body.plan.input, ir.NodeScan)
    return body.plan.input


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_reads_as_it_was_written(condition: str) -> None:
    written = condition.replace("$v.@type", "type($v)")
    assert describe(scan_of(condition)) == ("NodeScan", f"$v: Vessel where {written}")


def test_a_printed_statement_is_the_same_statement() -> None:
    seen = 0
    for case in rules():
        if not case.expected.startswith(("plan\ninsert", "plan\nupdate", "plan\ndelete")):
            continue
        query = compile_query(case.text, harbour())
        head = case.text[: case.text.index("{")]
        again = compile_query(f"{head} {{ {plan_text(query)} }}", harbour())
        assert again.body == query.body, case.title
        seen += 1
    assert seen > 5


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_printed_condition_is_the_same_condition(condition: str) -> None:
    scan = scan_of(condition)
    printed = describe(scan)[1].split(" where ", 1)[1]
    assert conjuncts(scan_of(printed).predicate) == conjuncts(scan.predicate)
