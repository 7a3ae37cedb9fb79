"""The text of plans: what tests/cases/query/rules.txt does not show."""

from __future__ import annotations

import pytest

from omnigraph.lang.outline import outline
from omnigraph.lang.query import compile_query
from tests.unit.lang.query.casefile import harbour


def outlined(clauses: str, returned: str = "$v.name", order: str = "") -> str:
    text = f"query q($q: Vector(2)) {{ match {{ $v: Vessel {clauses} }} return {{ {returned} }} {order} }}"
    return outline(compile_query(text, harbour()))


@pytest.mark.parametrize(
    ("clause", "words"),
    [
        ('$v.name starts_with "a"', '(v.name starts_with "a")'),
        ('$v.name contains "a"', '(v.name contains "a")'),
        ('regex_match($v.name, "a.*")', 'regex_match(v.name, "a.*")'),
        ('search($v.notes, "a")', 'search(v.notes, "a")'),
        ('fuzzy($v.notes, "a", 1)', 'fuzzy(v.notes, "a", 1)'),
    ],
)
def test_conditions_are_told_in_the_words_of_the_language(clause: str, words: str) -> None:
    assert words in outlined(clause)


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ('order { bm25($v.notes, "a") } limit 3', 'bm25(v.notes, "a")'),
        ("order { nearest($v.shape, $q) } limit 3", "nearest(v.shape, $q"),
        (
            'order { rrf(nearest($v.shape, $q), bm25($v.notes, "a")) } limit 3',
            'bm25(v.notes, "a")',
        ),
    ],
)
def test_rankings_are_told(order: str, words: str) -> None:
    assert words in outlined("", order=order)


def test_counts_of_rows_are_told() -> None:
    assert "= count(*)" in outlined("", returned="count(*) as n")
