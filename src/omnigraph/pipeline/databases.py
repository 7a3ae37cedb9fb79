"""Tables and queries of databases, read through JDBC, in pieces if a column can be cut into ranges.

The options are those of Spark's JDBC source, and two of ours: `split_by` names a column of numbers, dates or times,
whose bounds are queried first, and `splits` is the number of ranges it is cut into.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from omnigraph.errors import Kind, OmnigraphError, OptionInvalid
from omnigraph.pipeline.failures import hide, redacted
from omnigraph.pipeline.session import context_of, parallelism, spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SAID_CHARACTERS_MAX = 500
FETCHED_ROWS = 10_000  # at a time; some drivers fetch all rows by default
SPLITS_PER_TASK_SLOT = 2  # so that a slow range does not block the others
SECRET = re.compile("url|password|pwd|secret|token", re.IGNORECASE)  # in the name of an option
RANGES = ("partitionColumn", "lowerBound", "upperBound", "numPartitions")


class DatabaseFailed(OmnigraphError):
    """A database cannot be read through JDBC."""

    code, kind = "database_failed", Kind.INVALID
    default_help = "Check the url, the table and the credentials, and that Spark finds the driver (`spark.jars`)."


def database_rows(
    options: Mapping[str, Any],
    columns: Mapping[str, str] | None = None,
    session: SparkSession | None = None,
) -> DataFrame:
    """A table or query of a database as a DataFrame to load.

    `columns` pairs its names with properties; a column without one is not read.
    """
    given = {name: str(value) for name, value in options.items()}
    session = spark_session(session)
    renamed = dict(columns or {})
    hide({name: value for name, value in given.items() if SECRET.search(name)})
    with _driver_errors():
        frame = session.read.format("jdbc").options(**_asked(given, session)).load()
        kept = [name for name in frame.columns if renamed.get(name) != ""]
        frame = frame.select(*(f"`{name}`" for name in kept))
        return frame.withColumnsRenamed({a: b for a, b in renamed.items() if b})


def _asked(given: Mapping[str, str], session: SparkSession) -> dict[str, str]:
    """The options of Spark's source."""
    asked = {name: value for name, value in given.items() if name not in ("split_by", "splits")}
    if not any(name.lower() == "fetchsize" for name in asked):
        asked["fetchsize"] = str(FETCHED_ROWS)
    column = given.get("split_by")
    if column is None:
        if "splits" in given:
            raise OptionInvalid("splits: needs split_by:, the column to cut into ranges")
        return asked
    if any(name in asked for name in RANGES):
        raise OptionInvalid(f"split_by: replaces {', '.join(RANGES)}; do not combine them")
    query = asked.pop("query", None)
    table = asked.pop("dbtable", None) if query is None else f"({query}) rows_of_query"
    if table is None:
        raise OptionInvalid("a database needs either dbtable or query")
    splits = given.get("splits") or str(SPLITS_PER_TASK_SLOT * parallelism(session))
    low, high = _bounds(session, asked, table, column)
    asked["dbtable"] = table
    if low is None or int(splits) < 2:  # no rows, or nothing to cut
        return asked
    return asked | dict(zip(RANGES, (column, str(low), str(high), splits), strict=True))


def _bounds(session: SparkSession, asked: Mapping[str, str], table: str, column: str) -> Any:
    """The least and the greatest value of a column, from the database."""
    name = column
    context = context_of(session)
    if context is not None:
        dialects = context._jvm.org.apache.spark.sql.jdbc.JdbcDialects
        name = dialects.get(asked["url"]).quoteIdentifier(column)
    query = f"SELECT MIN({name}) AS low, MAX({name}) AS high FROM {table}"  # noqa: S608 - a table, or a query of theirs
    found = session.read.format("jdbc").options(**asked, query=query).load().first()
    return tuple(found)


@contextmanager
def _driver_errors() -> Iterator[None]:
    """Errors of a driver as ours."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        cause = getattr(error, "java_exception", None)
        said = redacted(str(error if cause is None else cause.getMessage()))
        first = said.strip().partition("\n")[0]
        raise DatabaseFailed(
            f"the database cannot be read: {first[:SAID_CHARACTERS_MAX]}"
        ) from None
