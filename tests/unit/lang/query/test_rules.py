"""Every rule of the query language, as data: tests/cases/query/rules.txt."""

from __future__ import annotations

import pytest

from omnigraph.errors import CODES
from omnigraph.lang import ir
from omnigraph.lang.plan_text import plan_text
from omnigraph.lang.query import compile_query, lint_queries
from omnigraph.lang.query.codes import QUERIES, TYPES

from .casefile import Case, finding_text, findings, harbour, rules, typos

CASES = rules()


def answer(case: Case) -> str:
    """What the language says about a case, in the words of the case file."""
    found = findings(case.text, harbour())
    if found:
        return "\n".join(map(finding_text, found))
    query = compile_query(case.text, harbour())
    if case.expected.startswith("columns"):
        assert isinstance(query.body, ir.Read)
        return "columns " + ", ".join(f"{c.name}: {c.type}" for c in query.body.columns)
    return "plan\n" + plan_text(query)


@pytest.mark.parametrize("case", CASES, ids=[c.title for c in CASES])
def test_rule(case: Case) -> None:
    assert answer(case) == case.expected


def test_every_code_has_a_case() -> None:
    expected = "\n".join(case.expected for case in CASES)
    codes = [entry[0] for entry in (*TYPES, *QUERIES)]
    assert [code for code in codes if f"\n{code} " not in f"\n{expected}"] == []


def test_titles_are_unique() -> None:
    titles = [case.title for case in CASES]
    assert sorted(set(titles)) == sorted(titles)


def test_every_finding_says_what_to_do() -> None:
    for case in CASES:
        for found in findings(case.text, harbour()):
            assert found.help, case.title
            assert found.code in CODES


def test_the_first_suggestion_is_right_for_recorded_typos() -> None:
    sample = (
        'query find($name: String, $low: I64) @description("x") {\n'
        "  match {\n"
        '    $p: Port { code: "OSL", region: "north" }\n'
        "    $p $l:lane $q\n"
        "    $v: Vessel\n"
        "    $v calls $p\n"
        "    not { $p <lane> $_ }\n"
        "    optional { $c serves $v }\n"
        "    exists { $v visits $d }\n"
        "    search($v.notes, $name)\n"
        '    lower($v.name) starts_with "a"\n'
        '    $p.label contains "b"\n'
        "    $v.teu > $low\n"
        "    $l.nm is not null\n"
        '    $v.built >= date("2001-01-01")\n'
        "  }\n"
        '  return distinct { $v.name as title, $p.depth as depth, coalesce($v.flag, "x") as flag }\n'
        "  order { title desc, depth asc }\n"
        "  skip 1\n"
        "  limit 5\n"
        "}\n"
        "query change($badge: String) {\n"
        '  insert Crew { badge: $badge, email: "a" }\n'
        "  update Crew set { rank: 3 } where badge = $badge\n"
        "}\n"
    )
    assert findings(sample, harbour()) == []
    recorded = typos()
    assert len(recorded) >= 100
    wrong = []
    for typo in recorded:
        assert typo.right in sample, typo
        found = findings(sample.replace(typo.right, typo.wrong, 1), harbour())
        if not found or found[0].suggestion != typo.suggestion:
            wrong.append((typo, found[0] if found else None))
    assert len(wrong) <= len(recorded) // 10, wrong


def test_lint_reports_the_shape_callers_know() -> None:
    text = (
        'query a() { delete Crew where badge = "x" } query b() { match { $p: Prot } return { $p } }'
    )
    report = lint_queries(text, harbour(), "x.gq").to_json()
    assert list(report) == [
        "status",
        "schema_source",
        "query_path",
        "queries_processed",
        "errors",
        "warnings",
        "infos",
        "results",
        "findings",
    ]
    first, second = report["results"]
    assert (first["kind"], first["status"], len(first["warnings"])) == ("mutation", "ok", 1)
    assert (second["kind"], second["status"]) == ("read", "error")
    assert "Prot" in second["error"]
    assert (report["status"], report["errors"], report["warnings"]) == ("error", 1, 1)
