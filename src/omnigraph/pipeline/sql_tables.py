"""A graph as a schema of Spark SQL: `spark.table("g.Person")`, `SELECT … FROM g.Knows`.

A custom catalog would need Java, which this package does not contain. So the types of a graph become views in a
schema of the session's catalog, each over a table of the format `omnigraph`: Spark keeps the columns of the table, and
takes its address from the view. A view follows its branch; with `at` it stays at one commit. Names in Spark's catalog
are letters, digits and `_`, so another branch or commit needs another schema.
"""

# ruff: noqa: S608 - names are quoted, texts are escaped

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from omnigraph.errors import OptionInvalid
from omnigraph.model.catalog import Catalog, NodeOrEdgeType
from omnigraph.pipeline.failures import spark_failures
from omnigraph.pipeline.frames import outer_names
from omnigraph.pipeline.source import OmnigraphSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = re.compile(r"\w+", re.ASCII)
MARK = "omnigraph: "  # the prefix of the comment of our schemas
HIDDEN = "rows_of_"  # tables below the views


def register_tables(
    session: SparkSession, graph: Any, schema: str, branch: str = "main", at: object = None
) -> list[str]:
    """Create or replace the tables of a schema with the types of a graph; returns their names.

    Call it again after the graph's own schema changed. `at` is a commit, a tag or a time to stay at.
    """
    if NAME.fullmatch(schema) is None:
        raise OptionInvalid(
            f"a Spark schema name has letters, digits and _, not {schema!r}",
            help="Use another schema for another branch or commit, such as g_dev.",
        )
    state = graph.snapshot(branch, at)
    where = {"graph": graph.uri, "branch": branch}
    if at is not None:
        where["at"] = state.commit_id
    named = _names(state.catalog)
    with spark_failures():
        OmnigraphSource.register(session)
        _cleared(session, schema, graph.uri)
        for name, kind in named.items():
            wanted = {
                "type": f"{kind.kind}:{kind.name}",
                "columns": ",".join(outer_names(kind).values()),
            }
            _create(session, schema, name, where | wanted)
    return [f"{schema}.{name}" for name in named]


def _names(catalog: Catalog) -> dict[str, NodeOrEdgeType]:
    """Types by their names; Spark ignores case in names."""
    kinds = list(catalog.entities())
    folded = [kind.name.lower() for kind in kinds]
    return {
        kind.name if folded.count(kind.name.lower()) == 1 else f"{kind.kind}_{kind.name}": kind
        for kind in kinds
    }


def _cleared(session: SparkSession, schema: str, uri: str) -> None:
    """Clear our schema; a schema of another origin is left alone."""
    if session.catalog.databaseExists(schema):
        comment = session.catalog.getDatabase(schema).description or ""
        if not comment.startswith(MARK):
            raise OptionInvalid(f"Spark has a schema {schema!r} that was not made for a graph")
        session.sql(f"DROP SCHEMA {schema} CASCADE")
    session.sql(f"CREATE SCHEMA {schema} COMMENT {_text(MARK + uri)}")


def _create(session: SparkSession, schema: str, name: str, options: dict[str, str]) -> None:
    listed = ", ".join(f"{key} {_text(value)}" for key, value in options.items())
    table = f"{schema}.{HIDDEN}{name}"
    session.sql(f"CREATE TABLE {table} USING omnigraph OPTIONS ({listed})")
    session.sql(f"CREATE VIEW {schema}.{name} AS SELECT * FROM {table} WITH ({listed})")


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
