"""The reference page says what the language does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from omnigraph.lang.query import compile_query, format_queries, parse_queries
from omnigraph.lang.query.calls import function_names
from omnigraph.lang.query.expressions import ExpressionParser
from omnigraph.lang.query.files import FileParser
from omnigraph.lang.query.parser import QueryParser
from tests.support.grammar import grammar_of

from .casefile import catalog_for

PAGE = (Path(__file__).parents[4] / "docs" / "reference" / "query-language.md").read_text()
EXAMPLES = re.findall(r"```gq\n(.*?)```", PAGE, re.DOTALL)
SCHEMA = re.findall(r"```pg\n(.*?)```", PAGE, re.DOTALL)[0]


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_compiles(text: str) -> None:
    tree = parse_queries(text)
    for query in tree.queries:
        compile_query(text, catalog_for(SCHEMA), query.name)
    assert parse_queries(format_queries(text)) == tree


def test_there_are_examples_of_every_kind() -> None:
    assert len(EXAMPLES) >= 7


def test_the_grammar_is_that_of_the_parser() -> None:
    assert grammar_of(FileParser, QueryParser, ExpressionParser) in PAGE


def test_every_function_is_named() -> None:
    assert [name for name in function_names() if f"{name}" not in PAGE] == []


def test_every_word_of_the_pattern_table_is_a_clause() -> None:
    clauses = re.findall(r"(?m)^\| `(\$.*?)` \|", PAGE)
    assert len(clauses) >= 10
    for clause in clauses:
        written = clause.replace("\\|", "|")
        binds = "" if ": " in written.split("}")[0] else "$p: Port "
        parse_queries(f"query q() {{ match {{ {binds}{written} }} return {{ 1 as one }} }}")
