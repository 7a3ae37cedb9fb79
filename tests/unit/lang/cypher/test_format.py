"""The layout of texts in Cypher: canonical, stable, and never another meaning."""

from __future__ import annotations

import pytest

from omnigraph.lang.cypher.format import format_cypher
from omnigraph.lang.diagnostics import LanguageError
from tests.unit.lang.cypher.test_both_languages import ALIKE, PAIRS

WRITTEN = """// people
match (p:Person) where p.age>3 // old
  and p.name starts with 'A' optional match (p)-[:Knows]->(q)
with p, count(*) as n order by n desc limit 3
/* make */ merge (c:City {name:'x'}) on create set c.country = 'UK' on match set c.country='FR'
return p.name, n"""
FORMATTED = """// people
MATCH (p:Person)
  WHERE p.age>3 // old
    and p.name starts with 'A'
OPTIONAL MATCH (p)-[:Knows]->(q)
WITH p, count(*) as n
  ORDER BY n desc
  LIMIT 3
/* make */
MERGE (c:City {name:'x'})
  ON CREATE SET c.country = 'UK'
  ON MATCH SET c.country='FR'
RETURN p.name, n
"""


def test_a_clause_has_a_line_and_comments_stay() -> None:
    assert format_cypher(WRITTEN) == FORMATTED


@pytest.mark.parametrize("text", [cypher for cypher, _ in PAIRS + ALIKE])
def test_formatting_twice_changes_nothing(text: str) -> None:
    once = format_cypher(text)
    assert format_cypher(once) == once


def test_a_column_without_an_alias_keeps_its_name() -> None:
    text = "MATCH (n) RETURN n.a  is   null, n.`set`"
    assert format_cypher(text) in (text, "MATCH (n)\nRETURN n.a is null, n.`set`\n")
    assert "IS NULL" not in format_cypher(text)


def test_what_cannot_be_parsed_is_not_formatted() -> None:
    with pytest.raises(LanguageError):
        format_cypher("MATCH (n RETURN n")
