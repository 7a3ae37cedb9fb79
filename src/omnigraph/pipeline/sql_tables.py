"""A graph as a schema of Spark SQL: `spark.table("g.Person")`, `SELECT … FROM g.Knows`.

A catalog of one's own is written in Java, which this package has none of. So the types of a graph become views in a
schema of the session's catalog, each over a table of the format `omnigraph`: Spark keeps the columns of such a table,
and takes where it is from the view. A view follows its branch; with `at` it stays with one commit. Names in Spark's
catalog are letters, digits and `_`, so another branch or commit is another schema.
"""

# ruff: noqa: S608 - names are quoted, texts are escaped

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from omnigraph.errors import OptionInvalid
from omnigraph.model.catalog import Catalog
from omnigraph.pipeline.frames import Entity, outer_names
from omnigraph.pipeline.source import OmnigraphSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = re.compile(r"\w+", re.ASCII)
MARK = "omnigraph: "  # begins the comment of a schema that was made here
HIDDEN = "rows_of_"  # tables below the views


def register_tables(
    session: SparkSession, graph: Any, schema: str, branch: str = "main", at: object = None
) -> list[str]:
    """Make the types of a graph tables of a schema, instead of those it had before; returns their names.

    Call it again after the graph's own schema changed. `at` is a commit, a tag or a time to stay with.
    """
    if NAME.fullmatch(schema) is None:
        raise OptionInvalid(
            f"a schema of Spark is named by letters, digits and _, not {schema!r}",
            help="Another branch or commit is another schema, such as g_dev.",
        )
    state = graph.snapshot(branch, at)
    OmnigraphSource.register(session)
    _cleared(session, schema, graph.uri)
    where = {"graph": graph.uri, "branch": branch}
    if at is not None:
        where["at"] = state.commit_id
    named = _names(state.catalog)
    for name, kind in named.items():
        wanted = {
            "type": f"{kind.kind}:{kind.name}",
            "columns": ",".join(outer_names(kind).values()),
        }
        _create(session, schema, name, where | wanted)
    return [f"{schema}.{name}" for name in named]


def _names(catalog: Catalog) -> dict[str, Entity]:
    """Types by their names; Spark does not tell apart what differs in case alone."""
    kinds = list(catalog.entities())
    folded = [kind.name.lower() for kind in kinds]
    return {
        kind.name if folded.count(kind.name.lower()) == 1 else f"{kind.kind}_{kind.name}": kind
        for kind in kinds
    }


def _cleared(session: SparkSession, schema: str, uri: str) -> None:
    """An empty schema of ours; one of somebody else is left alone."""
    if session.catalog.databaseExists(schema):
        comment = session.catalog.getDatabase(schema).description or ""
        if not comment.startswith(MARK):
            raise OptionInvalid(f"Spark has a schema {schema!r} that was not made for a graph")
        session.sql(f"DROP SCHEMA {schema} CASCADE")
    session.sql(f"CREATE SCHEMA {schema} COMMENT {_text(MARK + uri)}")


def _create(session: SparkSession, schema: str, name: str, options: dict[str, str]) -> None:
    told = ", ".join(f"{key} {_text(value)}" for key, value in options.items())
    table = f"{schema}.{HIDDEN}{name}"
    session.sql(f"CREATE TABLE {table} USING omnigraph OPTIONS ({told})")
    session.sql(f"CREATE VIEW {schema}.{name} AS SELECT * FROM {table} WITH ({told})")


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
