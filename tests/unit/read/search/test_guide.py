"""The examples of the guide are checked against the languages and the numbers in the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from omnigraph.errors import CODES
from omnigraph.lang.query import compile_query
from omnigraph.lang.schema import catalog_of, check_schema, compile_schema
from omnigraph.read.search import embed, text
from omnigraph.read.search.analyzer import ANALYZERS, NONE, analyzer_of

GUIDE = (Path(__file__).parents[4] / "docs/guides/search.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


SCHEMA = blocks("pg")[0]


def test_the_schema_is_accepted_without_a_warning() -> None:
    assert check_schema(SCHEMA) == ()
    article = catalog_of(compile_schema(SCHEMA)).nodes["Article"]
    assert analyzer_of(article.properties["code"]) is NONE


@pytest.mark.parametrize("query", blocks("gq"))
def test_every_query_compiles(query: str) -> None:
    assert compile_query(query, catalog_of(compile_schema(SCHEMA)))


def test_the_guide_names_every_analyzer_and_embedding_error() -> None:
    for name in ANALYZERS:
        assert f'@analyzer("{name}")' in GUIDE
    assert embed.EmbedModelMismatch.code in CODES
    for code in CODES:
        assert not code.startswith("embed_") or f"`{code}`" in GUIDE, code


def test_the_formula_has_the_numbers_of_the_code() -> None:
    assert f"f * {text.K1 + 1} / (f + {text.K1} * ({1 - text.B} + {text.B} * length" in GUIDE
