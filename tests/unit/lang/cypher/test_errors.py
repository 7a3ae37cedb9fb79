"""What is wrong with a text is said with a code, a place and, where there is one, the word that was meant."""

from __future__ import annotations

import pytest

from omnigraph.errors import OmnigraphError
from omnigraph.lang.cypher import compile_cypher
from omnigraph.lang.diagnostics import LanguageError
from omnigraph.lang.languages import check_cypher, is_cypher_text
from omnigraph.lang.schema import catalog_of, compile_schema

CATALOG = catalog_of(
    compile_schema(
        """
        interface Named { name: String }
        node Person implements Named { name: String @key age: I64? note: String? }
        node City implements Named { name: String @key age: String? }
        edge Knows: Person -> Person { since: I64? }
        edge Likes: Person -> Person
        edge LikesCity: Person -> City @label("Likes")
        """
    )
)
# text, code, the words the place covers, what was probably meant
CASES = [
    ("MATCH (p:Persn) RETURN p", "C002", "(p:Persn)", "Person"),
    ("MATCH (p)-[:Knos]->() RETURN p", "C003", "-[:Knos]->", "Knows"),
    ("MATCH (p:Person) RETURN p.nam", "C005", "p.nam", "name"),
    ("MATCH (n:Named) RETURN n.age", "C006", "n.age", None),
    ("MATCH (p:Person) RETURN q", "C007", "q", None),
    ("MATCH (p:Person) WITH p.name AS n RETURN p.age", "C007", "p", None),
    ("MATCH (p:Person) MATCH ()-[p]->() RETURN p", "C008", "-[p]->", None),
    ("MATCH (p:Person) WHERE p.age RETURN p", "C009", "p.age", None),
    ("RETURN 1 + true", "C009", "1 + true", None),
    ("MATCH (p:Person) WHERE count(p) > 1 RETURN p", "C010", "count(p)", None),
    ("MATCH (p:Person) RETURN p.age + count(*) AS n, p.name", "C010", None, None),
    ("RETURN toUper('a')", "C011", "toUper('a')", "toupper"),
    ("MATCH (p:Person) WITH p.name RETURN 1", "C012", "p.name", None),
    ("RETURN 1 AS a, 2 AS a", "C012", None, None),
    ("MATCH (p:Person)", "C013", "MATCH (p:Person)", None),
    ("RETURN 1 AS a UNION RETURN 2 AS b", "C014", "RETURN 2 AS b", None),
    ("RETURN 1 LIMIT -1", "C016", "-1", None),
    ("RETURN [1, 'a']", "C006", "[1, 'a']", None),
    ("CREATE (:Named {name: 'x'})", "C004", "(:Named {name: 'x'})", None),
    ("CREATE ({name: 'x'})", "C017", "({name: 'x'})", None),
    ("MATCH (p:Person) SET p:City", "C004", "p:City", None),
    ("MATCH (p:Person) SET p.nam = 1", "C005", "p.nam = 1", "name"),
    ("MATCH (p:Person) DELETE p RETURN p.name", "C018", "p.name", None),
    ("CREATE (p:Person {name: 'x'}) RETURN p.nam", "C005", "p.nam", "name"),
    ("MATCH (p:Person) RETURN (p)-[:Knows]->()", "C009", "(p)-[:Knows]->()", None),
    ("FOREACH (x IN [1] | CREATE ())", "C001", "FOREACH", None),
    ("CALL { MATCH (n) RETURN n }", "C001", "{", None),
    ("CALL omnigraph.search.txt('Person', 'note', 'x', 1)", "C011", None, "omnigraph.search.text"),
    ("MATCH (p:Person RETURN p", "P1", "RETURN", None),
    ("MATCH (p:Person) WHER p.age > 1 RETURN p", "P1", "WHER", "WHERE"),
    ("MTCH (p) RETURN p", "P1", "MTCH", "MATCH"),
    ("RETURN 'abc", "P4", "'abc", None),
    ("RETURN 99999999999999999999", "P7", "99999999999999999999", None),
    ("RETURN /* open", "P8", "/*", None),
    ("RETURN 1 ~ 2", "P3", "~", None),
]


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_an_error_says_what_and_where(case: tuple[str, str, str | None, str | None]) -> None:
    text, code, words, meant = case
    with pytest.raises(LanguageError) as raised:
        compile_cypher(text, CATALOG)
    first = raised.value.diagnostics[0]
    assert first.code == code
    assert first.help
    if words is not None:
        assert text[first.span.start : first.span.end] == words
    if meant is not None:
        assert first.suggestion == meant


def test_several_clauses_several_errors() -> None:
    text = "MATCH (p:Person WITH 1 AS x UNWIND AS y RETURN )"
    with pytest.raises(LanguageError) as raised:
        compile_cypher(text, CATALOG)
    assert len(raised.value.diagnostics) >= 3


def test_a_missing_parameter_is_named() -> None:
    with pytest.raises(OmnigraphError, match=r"\$name") as raised:
        compile_cypher("MATCH (p:Person {name: $name}) RETURN p", CATALOG)
    assert raised.value.code == "param_missing"


@pytest.mark.parametrize(
    "text",
    [
        "RETURN " + "(" * 5_000,
        "RETURN " + "-" * 100_000 + "1",
        "RETURN " + "NOT " * 50_000 + "true",
        "RETURN " + " + ".join(["1"] * 100_000),
        "RETURN " + "CASE WHEN true THEN " * 5_000,
        "RETURN 1" + "[0]" * 100_000,
        "MATCH " + "-->".join(["()"] * 100_000) + " RETURN 1",
        "RETURN " + " AND ".join(["true"] * 20_000),
        "`" * 100_000,
        "RETURN '" + "\\" * 99_999,
    ],
    ids=lambda text: text[:24],
)
def test_hostile_texts_are_bounded(text: str) -> None:
    found = check_cypher(text, CATALOG)
    assert all(one.code for one in found)


@pytest.mark.parametrize(
    ("text", "cypher"),
    [
        ("MATCH (p:Person) RETURN p", True),
        ("match (p) return p", True),
        ("// a comment\nOPTIONAL MATCH (p) RETURN p", True),
        ("/* x */ UNWIND [1] AS x RETURN x", True),
        ("MATCH p = (a)-->(b) RETURN p", True),
        ("CREATE (:Person)", True),
        ("match { $p: Person } return { $p.name }", False),
        ("query q() { match { $p: Person } return { $p.name } }", False),
        ('insert Person { name: "x" }', False),
        ('delete Person where name = "x"', False),
    ],
)
def test_which_language_a_text_is_in(text: str, cypher: bool) -> None:
    assert is_cypher_text(text) is cypher
    assert is_cypher_text(text, "gq") is False
