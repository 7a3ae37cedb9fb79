"""Queries of every kind over the schema of `tests.support.random_queries`, one fixed graph, and how results compare."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path
from typing import Any

from tests.support.random_queries import json_value, random_rows

SAMPLE = (
    "widths",
    "optional",
    "range_of_hops",
    "groups",
    "path",
    "order",
    "two_self_loops",
    "exactly_two_hops",
    "floats_compared",
    "floats_joined",
    "floats_grouped",
    "measured_counts",
    "measured_values",
    "tests_of_integers",
    "tests_of_texts_and_truths",
    "tests_between_columns",
    "edge_variable_of_two_types_both_ways",
    "destinations_nobody_reads",
    "sources_and_destinations_by_id",
)
SEARCH_SAMPLE = ("search_of_several_types", "bm25", "rrf")
SEARCH_SCHEMA = """
interface Text { title: String  body: String?  place: Vector(2)? }
node Doc implements Text { title: String @key  body: String?  place: Vector(2)?  year: I64? }
node Note implements Text { title: String @key  body: String?  place: Vector(2)? }
node Author { name: String @key }
edge Wrote: Author -> Doc
"""
WORDS = ["red", "fox", "jumps", "over", "the", "blue", "whale", "and", "a", "lazy", "dog"]


def _queries(file: str) -> tuple[str, dict[str, str]]:
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    found = re.findall(r"^query (\w+)\(\) (\{.*?\})$", text, re.MULTILINE | re.DOTALL)
    return text, dict(found)


TEXT, QUERIES = _queries("queries.gq")
SEARCH_TEXT, SEARCHES = _queries("searches.gq")


def is_ordered(query: str) -> bool:
    """Whether the order of the rows is part of the answer."""
    return re.search(r"\border \{", query) is not None


def documents() -> dict[str, list[dict[str, Any]]]:
    """Texts and vectors, some of them missing, some equal."""
    rng = random.Random(7)

    def text(number: int) -> dict[str, Any]:
        body = " ".join(rng.choice(WORDS) for _ in range(rng.randrange(1, 9)))
        place = [rng.randrange(4) / 2, rng.randrange(4) / 2]
        row: dict[str, Any] = {"title": f"t{number:02}"}
        row |= {"body": body} if number % 5 else {}
        return row | ({"place": place} if number % 7 else {})

    docs = [{**text(i), "year": i % 3} for i in range(24)]
    authors = [{"name": name} for name in "xyz"]
    wrote = [{"from": rng.choice("xy"), "to": f"t{rng.randrange(24):02}"} for _ in range(30)]
    return {"Doc": docs, "Note": [text(i) for i in range(9)], "Author": authors, "Wrote": wrote}


def fixed_rows() -> dict[str, list[dict[str, Any]]]:
    """The rows of one graph, with enough of everything."""
    for seed in range(1_000):
        rows = random_rows(random.Random(seed))
        if len(rows["Person"]) >= 8 and all(len(part) >= 3 for part in rows.values()):
            return {kind: [_as_given(row) for row in part] for kind, part in rows.items()}
    raise AssertionError("no seed gives enough rows")


def _as_given(row: dict[str, Any]) -> dict[str, Any]:
    ends = {"src": "from", "dst": "to"}
    return {ends.get(name, name): json_value(v) for name, v in row.items() if v is not None}


def comparable(rows: list[dict[str, Any]], *, ordered: bool) -> list[Any]:
    """Rows with floats to nine digits; as a bag where the query asks for no order."""
    found = [[_value(v) for v in row.values()] for row in rows]
    return found if ordered else sorted(found, key=repr)


def _value(value: Any) -> Any:
    match value:
        case float():
            return "NaN" if math.isnan(value) else float(f"{value:.9g}") + 0.0  # one zero
        case list():
            return [_value(v) for v in value]
        case dict():
            return {name: _value(v) for name, v in value.items()}
    return value
