"""Queries of every kind over the schema of `tests.support.random_queries`, one fixed graph, and how results compare."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path
from typing import Any

from tests.support.random_queries import random_rows

TEXT = (Path(__file__).parent / "queries.gq").read_text(encoding="utf-8")
QUERIES = dict(re.findall(r"^query (\w+)\(\) (\{.*?\})$", TEXT, re.MULTILINE | re.DOTALL))
SAMPLE = ("widths", "optional", "range_of_hops", "groups", "path", "order")


def is_ordered(name: str) -> bool:
    """Whether the order of the rows is part of the answer."""
    return " order {" in QUERIES[name]


def fixed_rows() -> dict[str, list[dict[str, Any]]]:
    """The rows of one graph, with enough of everything."""
    for seed in range(1_000):
        rows = random_rows(random.Random(seed))
        if len(rows["Person"]) >= 8 and all(len(part) >= 3 for part in rows.values()):
            return {kind: [_as_given(row) for row in part] for kind, part in rows.items()}
    raise AssertionError("no seed gives enough rows")


def _as_given(row: dict[str, Any]) -> dict[str, Any]:
    ends = {"src": "from", "dst": "to"}
    return {ends.get(name, name): value for name, value in row.items() if value is not None}


def comparable(rows: list[dict[str, Any]], *, ordered: bool) -> list[Any]:
    """Rows with floats to nine digits; as a bag where the query asks for no order."""
    found = [[_value(v) for v in row.values()] for row in rows]
    return found if ordered else sorted(found, key=repr)


def _value(value: Any) -> Any:
    match value:
        case float():
            return "NaN" if math.isnan(value) else float(f"{value:.9g}")
        case list():
            return [_value(v) for v in value]
        case dict():
            return {name: _value(v) for name, v in value.items()}
    return value
