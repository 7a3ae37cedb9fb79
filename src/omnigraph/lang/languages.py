"""Detects the query language of a text. Cypher itself is imported with its first text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from omnigraph.errors import OptionInvalid
from omnigraph.lang import ir
from omnigraph.lang.diagnostics import Diagnostic, LanguageError
from omnigraph.lang.query import QueryKindMismatch, Want, choose, parse_queries
from omnigraph.model.catalog import Catalog

if TYPE_CHECKING:
    from omnigraph.lang.query.lint import LintReport

LANGUAGES = ("gq", "cypher")
# What no text in `.gq` starts with, comments aside.
START = re.compile(
    r"""optional\s+match\b | match\s*(?:\(|[A-Za-z_`][\w`]*\s*=|(?:all)?shortestpaths?\s*\()
      | use\b | unwind\b | with\b | return\b(?!\s*\{) | call\b | create\b | merge\b
      | detach\s+delete\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
# The start of a text that is more than queries: settings, or a single statement.
FILE_START = re.compile(r"(?:set|reset|show|explain|branch)\s+[\w\"]")
BLANK = re.compile(r"\s*")
USE = re.compile(r"use\b", re.IGNORECASE)
TEXTS_MAX = 512


def _first_word(text: str) -> int:
    """Where a text begins after blanks and comments. A regular expression for them would backtrack badly."""
    at = 0
    while True:
        blank = BLANK.match(text, at)
        at = blank.end() if blank else at
        if text.startswith("//", at):
            end, closing = text.find("\n", at), 1
        elif text.startswith("/*", at):
            end, closing = text.find("*/", at + 2), 2
        else:
            return at
        if end < 0:
            return len(text)
        at = end + closing


def is_cypher_text(text: str, language: str | None = None) -> bool:
    """Whether a text is Cypher: because the caller says so, or because it can only be that.

    >>> is_cypher_text("MATCH (p:Person) RETURN p.name"), is_cypher_text("match { $p: Person } return { $p }")
    (True, False)
    """
    if language is None:
        return START.match(text, _first_word(text)) is not None
    if language not in LANGUAGES:
        raise OptionInvalid(f"language must be 'gq' or 'cypher', got {language!r}")
    return language == "cypher"


def is_file_text(text: str, language: str | None = None) -> bool:
    """Whether a text in `.gq` begins with a setting or a statement, and not with queries alone.

    >>> is_file_text("show all;"), is_file_text("query show() { match { $p: Person } return { $p } }")
    (True, False)
    """
    return language != "cypher" and FILE_START.match(text, _first_word(text)) is not None


@lru_cache(maxsize=512)
def query_name(text: str, name: str | None, language: str | None = None) -> str:
    """The name of the selected query: the one named, or the only one; a text in Cypher has none."""
    if is_cypher_text(text, language):
        return name or "cypher"
    file = parse_queries(text, bare=True)
    if file.statement is not None and not file.queries:
        return file.statement.words
    return choose(file, name).name


def place_named(text: str, language: str | None = None) -> str | None:
    """The point named by USE in a text in Cypher.

    >>> place_named("USE dev MATCH (p:Person) RETURN p.name")
    'dev'
    """
    if USE.match(text, _first_word(text)) is None or not is_cypher_text(text, language):
        return None
    return _place_named(text)


@lru_cache(maxsize=TEXTS_MAX)
def _place_named(text: str) -> str | None:
    from omnigraph.lang.cypher import parse_cypher

    return parse_cypher(text).use


def parameter_types(params: Mapping[str, Any] | None) -> object:
    """The part of the parameters that a plan depends on."""
    if not params:
        return None
    from omnigraph.lang.cypher import kinds_of

    return kinds_of(params)


def check_cypher(text: str, catalog: Catalog) -> tuple[Diagnostic, ...]:
    """The errors of a text in Cypher; one with parameters is checked as far as possible without their values."""
    from omnigraph.lang import cypher
    from omnigraph.lang.query.params import ParamMissing

    try:
        cypher.compile_cypher(text, catalog)
    except LanguageError as broken:
        return broken.diagnostics
    except ParamMissing:
        pass
    return ()


def lint_cypher(
    text: str, catalog: Catalog, name: str = "", schema_source: Mapping[str, Any] | None = None
) -> LintReport:
    """All errors and warnings of a text in Cypher, as one report, named by its file."""
    from omnigraph.lang.cypher.lint import lint

    return lint(text, catalog, name, dict(schema_source or {"kind": "file"}))


def compile_cypher(
    text: str,
    catalog: Catalog,
    params: Mapping[str, Any] | None = None,
    *,
    want: Want | None = None,
) -> ir.Query:
    """The plan of a text in Cypher."""
    from omnigraph.lang import cypher

    query = cypher.compile_cypher(text, catalog, params)
    if want is not None and query.is_read is not (want is Want.READ):
        found, wanted = ("read", "mutation") if query.is_read else ("mutation", "read")
        raise QueryKindMismatch(f"the query is a {found}, not a {wanted}")
    return query
