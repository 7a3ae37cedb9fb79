"""Every rule of the schema language, as data: tests/cases/schema/rules.txt."""

from __future__ import annotations

import pytest

from omnigraph.errors import CODES
from omnigraph.lang.schema import lint_schema
from omnigraph.lang.schema.codes import ERRORS, LINT

from .casefile import HARBOUR, Case, rules, typos

CASES = rules()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_rule(case: Case) -> None:
    found = lint_schema(case.text)
    assert [(str(d.severity), d.code, d.span.line, d.span.column, d.suggestion) for d in found] == [
        (e.severity, e.code, e.line, e.column, e.suggestion) for e in case.expected
    ]
    for diagnostic, expected in zip(found, case.expected, strict=True):
        assert all(word in diagnostic.message for word in expected.words), diagnostic.message
        assert diagnostic.help, f"{diagnostic.code} has no help"


def test_every_schema_code_that_a_text_can_cause_has_a_case() -> None:
    covered = {expected.code for case in CASES for expected in case.expected}
    elsewhere = {"S24", "S31"}  # renames: test_migrate.py
    assert {entry[0] for entry in (*ERRORS, *LINT)} - covered == elsewhere


def test_case_titles_are_unique() -> None:
    titles = [case.title for case in CASES]
    assert len(titles) == len(set(titles))


def test_every_code_is_explained() -> None:
    for entry in (*ERRORS, *LINT):
        code = CODES[entry[0]]
        assert code.title
        assert code.explanation
        assert code.help


def test_nine_of_ten_typos_get_the_right_suggestion_first() -> None:
    recorded = typos()
    assert len(recorded) >= 100
    wrong = []
    for typo in recorded:
        assert typo.right in HARBOUR, f"{typo.right!r} is not in the schema"
        found = lint_schema(HARBOUR.replace(typo.right, typo.wrong, 1))
        first = next((d.suggestion for d in found if d.suggestion), None)
        if first != typo.suggestion:
            wrong.append((typo.wrong, typo.suggestion, first))
    assert len(wrong) <= len(recorded) // 10, wrong
