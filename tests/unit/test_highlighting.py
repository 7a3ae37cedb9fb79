"""Colours for schemas and queries: every word of the languages is recognised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pygments.token import Error, Keyword, Name

from omnigraph.highlighting import QueryLexer, SchemaLexer
from tests.docs.pages import ROOT, blocks

PAGES = sorted((ROOT / "docs").rglob("*.md"))


def test_a_schema_and_a_query_have_their_colours() -> None:
    schema = list(SchemaLexer().get_tokens("node Person { name: String @key } // who"))
    assert (Keyword, "node") in schema
    assert (Name.Class, "Person") in schema
    assert (Keyword.Type, "String") in schema
    assert (Name.Decorator, "@key") in schema
    query = list(
        QueryLexer().get_tokens('match { $p: Person { name: "Ada" } } return { count($p) as n }')
    )
    assert (Keyword, "match") in query
    assert (Name.Variable, "$p") in query
    assert (Name.Function, "count") in query


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_nothing_in_the_docs_is_unknown(page: Path) -> None:
    for block in blocks(page):
        lexer: Any = {"pg": SchemaLexer, "gq": QueryLexer}.get(block.language)
        if lexer is not None:
            tokens = list(lexer().get_tokens(block.body))
            assert Error not in {kind for kind, _ in tokens}
            assert "".join(text for _, text in tokens).strip() == block.body.strip()
