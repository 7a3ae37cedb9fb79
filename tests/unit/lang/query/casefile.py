"""Reads the case files of tests/cases/query."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from omnigraph.lang.diagnostics import Diagnostic, LanguageError
from omnigraph.lang.query import check_query, parse_queries
from omnigraph.lang.schema import catalog_of, compile_schema
from omnigraph.lang.source import Source
from omnigraph.model.catalog import Catalog

CASES = Path(__file__).parents[3] / "cases" / "query"
CONFORMANCE = Path(__file__).parents[3] / "conformance"


@cache
def catalog_for(schema: str) -> Catalog:
    return catalog_of(compile_schema(schema))


def harbour() -> Catalog:
    """The schema all cases of rules.txt and typos.txt are about."""
    return catalog_for((CASES / "base.pg").read_text() + (CASES / "extra.pg").read_text())


@dataclass(frozen=True)
class Case:
    """A query, and the lines behind `=>`: findings, or `columns`, or the text of its plan."""

    title: str
    text: str
    expected: str


def rules() -> list[Case]:
    found = []
    for chunk in re.split(r"(?m)^# ", (CASES / "rules.txt").read_text())[1:]:
        title, _, rest = chunk.partition("\n")
        text, _, expected = rest.partition("\n=> ")
        found.append(Case(title, text, expected.strip()))
    return found


@dataclass(frozen=True)
class Typo:
    """What was meant, what was typed in its place, and the word that should be suggested."""

    right: str
    wrong: str
    suggestion: str


def typos() -> list[Typo]:
    lines = (CASES / "typos.txt").read_text().splitlines()
    return [Typo(*line.split(" => ")) for line in lines]


def conformance() -> list[dict[str, Any]]:
    """The conformance cases."""
    lines = (CONFORMANCE / "cases.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def findings(text: str, catalog: Catalog) -> list[Diagnostic]:
    """Every error of a text: those of syntax, or those of each of its queries."""
    try:
        tree = parse_queries(text)
    except LanguageError as error:
        return list(error.diagnostics)
    found: list[Diagnostic] = []
    for query in tree.queries:
        try:
            check_query(query, catalog, Source(text))
        except LanguageError as error:
            found.extend(error.diagnostics)
    return found


def finding_text(found: Diagnostic) -> str:
    """One finding as the case files write it: code, line and column, suggestion, message."""
    meant = f" [{found.suggestion}]" if found.suggestion else ""
    return f"{found.code} {found.span.line}:{found.span.column}{meant} {found.message}"
