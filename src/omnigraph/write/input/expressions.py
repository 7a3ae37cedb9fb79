"""SQL expressions over the columns of one row, as declared mappings use them: checked, then run by DuckDB.

Both planes run them in the same engine, batch by batch, with the same meaning: in process and inside the tasks
of Spark. Anything that makes a row depend on other rows, on the time or on the machine is refused beforehand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.read.ndjson import quoted

GIVEN = "given"  # the rows of a source
ROW = "omnigraph_row"  # the number of a row within them
SETTINGS = {
    "threads": 1,  # Spark tasks have one core each
    "preserve_insertion_order": True,
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
REFUSED = {
    "SUBQUERY": "a subquery",
    "WINDOW": "a window over other rows",
    "STAR": "a star",
    "PARAMETER": "a parameter",
    "DEFAULT": "DEFAULT",
}
NAME_LIKE = re.compile(r"[\w .-]+")
CONSTANT_NAMES = (
    "current_",
    "localtime",
)  # words that look like columns, but depend on the time or the machine


class MappingInvalid(OmnigraphError):
    """A declared mapping cannot be understood, or does not fit the columns of its source."""

    code, kind = "mapping_invalid", Kind.INVALID
    default_help = "Expressions are SQL as DuckDB reads it, over the columns of one row; a text is in single quotes."


def plausible(expression: str) -> None:
    """Refuse what cannot be an expression over any columns; a possible column name is judged with the columns."""
    if not NAME_LIKE.fullmatch(expression):
        checked(expression)


def over(expression: str, columns: Collection[str]) -> str:
    """An expression over columns: a column name as in the source, or SQL."""
    return quoted(expression) if expression in columns else checked(expression)


@lru_cache(maxsize=1024)
def checked(expression: str) -> str:
    """The expression, if it is valid and depends only on the columns of its row."""
    found = _parsed(f"SELECT (\n{expression}\n)")
    if found.get("error"):
        raise MappingInvalid(f"{expression!r} is not an expression: {found.get('error_message')}")
    node = found["statements"][0]["node"] if len(found["statements"]) == 1 else {}
    alone = (
        node.get("type") == "SELECT_NODE"
        and len(node["select_list"]) == 1
        and node["from_table"]["type"] == "EMPTY"
        and not (node["where_clause"] or node["group_expressions"] or node["having"])
    )
    if not alone:
        raise MappingInvalid(f"{expression!r} is more than one expression")
    for part in _inside(node["select_list"][0]):
        _refuse_dependence(part, expression)
    return expression


def _refuse_dependence(part: Mapping[str, Any], expression: str) -> None:
    sort = part.get("class")
    if sort in REFUSED:
        raise MappingInvalid(
            f"{expression!r} has {REFUSED[sort]}: it may use the columns of its row"
        )
    name = str(part.get("function_name", "")).lower()
    if sort == "COLUMN_REF":
        name = str(part["column_names"][-1]).lower()
        if not name.startswith(CONSTANT_NAMES):
            return
    if sort in ("FUNCTION", "COLUMN_REF") and name in _changing():
        raise MappingInvalid(
            f"{expression!r} uses {name}, whose result is not repeatable: "
            "a task that runs twice must make the same rows"
        )


def _inside(tree: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(tree, dict):
        yield tree
        for part in tree.values():
            yield from _inside(part)
    elif isinstance(tree, list):
        for part in tree:
            yield from _inside(part)


def _parsed(query: str) -> dict[str, Any]:
    with connect() as engine:
        row = engine.execute("SELECT json_serialize_sql($1)", [query]).fetchone()
    found: dict[str, Any] = json.loads(row[0])
    return found


@lru_cache(maxsize=1)
def _changing() -> frozenset[str]:
    """Functions that are not deterministic in their arguments, and those over many rows."""
    query = (
        "SELECT DISTINCT lower(function_name) FROM duckdb_functions() "
        "WHERE stability IN ('VOLATILE', 'CONSISTENT_WITHIN_QUERY') AND function_name <> 'error'"
    )
    with connect() as engine:
        found = frozenset(name for (name,) in engine.execute(query).fetchall())
    return found | {"current_timestamp", "current_time", "current_user", "current_role"}


def connect() -> Any:
    """An engine without access to anything but its input."""
    import duckdb

    engine = duckdb.connect(":memory:", config=SETTINGS)
    engine.execute("SET TimeZone = 'UTC'")  # not that of the machine a task happens to run on
    return engine


class RowEngine:
    """Runs queries over the rows it is given."""

    def __init__(self) -> None:
        self._engine = connect()
        self._schema: pa.Schema | None = None

    def given(self, table: pa.Table) -> bool:
        """Set the input rows; returns whether their columns have changed."""
        self._engine.register(GIVEN, table)
        changed = self._schema is None or not self._schema.equals(table.schema)
        self._schema = table.schema
        return changed

    def rows(self, query: str) -> pa.Table:
        """The result of a query; raises `Unworkable` if a row cannot be processed."""
        import duckdb

        try:
            return self._engine.sql(query).to_arrow_table()
        except duckdb.Error as error:
            raise Unworkable(said(error)) from None


class Unworkable(Exception):
    """An expression fails on some row, or on all."""


def said(error: Exception) -> str:
    """The first line of the engine's message."""
    return str(error).strip().partition("\n")[0]


def numbered(table: pa.Table) -> pa.Table:
    """Rows with their numbers, so that results and errors can be traced to lines."""
    if ROW in table.column_names:
        raise MappingInvalid(f"a source may not have a column {ROW}")
    return table.append_column(ROW, pa.array(np.arange(table.num_rows)))
