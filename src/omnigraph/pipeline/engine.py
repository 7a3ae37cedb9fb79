"""Chooses the plane of a load, and starts it there. Imports Spark only when it is used."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from omnigraph.core.idempotency import existing_claim
from omnigraph.core.plan import Verb
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import Kind, OmnigraphError, OptionInvalid
from omnigraph.lang import ir
from omnigraph.pipeline.deadlines import ending_with
from omnigraph.pipeline.failures import repeated_read, spark_failures
from omnigraph.pipeline.log_file import log_file
from omnigraph.pipeline.pinned import NotShared, pin
from omnigraph.pipeline.session import (
    SparkMissing,
    is_configured,
    is_installed,
    spark_session,
)
from omnigraph.pipeline.sources import as_sources, input_bytes, wants_spark
from omnigraph.policy.subjects import types_read
from omnigraph.read import Result
from omnigraph.read.budget import Budget, MemoryExceeded, budget_of
from omnigraph.read.export import Exported, export
from omnigraph.validate.listing import Destination, named
from omnigraph.write.input.options import Options
from omnigraph.write.load import load
from omnigraph.write.maintain import optimize

if TYPE_CHECKING:
    from omnigraph.pipeline.frames import GraphFrames

log = logging.getLogger("omnigraph.pipeline")
ENGINES = ("auto", "local", "spark")
Progress = Callable[[str, int, int], None]  # phase, done, total; it may raise to stop the work
Violations = str | os.PathLike[str] | bool  # the folder of their lists, the default one, or none
NOT_ON_SPARK = "not_on_spark"  # the code of a plan Spark has no way to run
FINAL = (Kind.INVALID, Kind.NOT_FOUND, Kind.CONFLICT, Kind.DENIED, Kind.LIMIT)


def engine_for(engine: str, source: Any, repo: Repository) -> str:
    """`local` or `spark`: as requested, else by the size of the input files."""
    if engine not in ENGINES:
        raise OptionInvalid(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    if wants_spark(source) and engine != "local":
        return "spark"
    if engine != "auto" or repo.place.scheme == "memory":
        return "local" if engine == "auto" else engine
    size = input_bytes(source)
    if size is None or (size <= repo.limits.interactive_bytes_max and not is_configured()):
        return "local"
    if is_installed():
        return "spark"
    log.warning("%d bytes are loaded in process: %s", size, SparkMissing.default_help)
    return "local"


@contextmanager
def loading(
    repo: Repository,
    source: Any,
    mode: str,
    branch: str | None,
    *,
    engine: str,
    options: Options | None,
    load_id: str | None,
    progress: Progress | None = None,
    violations: Violations = True,
) -> Iterator[tuple[Verb, str]]:
    """The write that loads a source, and the engine it runs on; `branch` is None if it has to be created first.

    On Spark, everything up to publishing is done when the write is returned, unless it may have been done before.
    """
    chosen = engine_for(engine, source, repo)
    lists = None if isinstance(violations, bool) else named(violations)
    if chosen == "local" and not _is_bulk(repo, source, options or Options()):
        yield load(source, mode, options=options, violations=lists), chosen
        return
    from omnigraph.pipeline.load import bulk_load, logged

    work = bulk_load(
        repo,
        None if chosen == "local" else spark_session(),
        source,
        mode,
        branch or "",
        options=options,
        load_id=load_id,
        progress=progress or logged,
        violations=lists if chosen == "local" else _destination(violations),
    )
    try:
        if branch is not None and (load_id is None or existing_claim(repo, load_id) is None):
            work.prepare(repo.snapshot(repo.head(branch).commit))
        yield work.verb, chosen
    except BaseException as error:
        if load_id is None or (isinstance(error, OmnigraphError) and error.kind in FINAL):
            work.finish()
        raise
    work.finish()


def _is_bulk(repo: Repository, source: Any, options: Options) -> bool:
    """Whether a load in process goes piece by piece, as on Spark, because its files are large."""
    size = None if repo.place.scheme == "memory" else input_bytes(source)
    if size is None or size <= repo.limits.interactive_bytes_max:
        return False
    mapped = (wide.mapping.changes is not None for wide in as_sources(source).wide)
    return not (options.repeats.chooses or any(mapped))  # which needs all rows of an id together


def _destination(violations: Violations) -> Destination | None:
    """Where a refused load lists violations beyond its report: by default beside Spark's log."""
    if isinstance(violations, bool):
        return Destination(log_file().parent) if violations else None
    return named(violations)


def answer_by(
    engine: str,
    repo: Repository,
    snapshot: Snapshot,
    query: ir.Query,
    local: Callable[[], Result],
    first: int | None = None,
) -> tuple[Result, int]:
    """The answer of a query that may read whole tables, and its number of rows; of an answer from Spark, only the first
    rows if so many are given. It runs in process (as `local` does it) or on Spark: as it was asked for, else on Spark
    where much is read and a cluster is named, or where it does not fit into the memory here."""
    if engine not in ENGINES:
        raise OptionInvalid(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    if engine == "spark":
        return counted_on_spark(repo, snapshot, query, None, budget_of(), first=first)
    shared = engine == "auto" and repo.place.scheme != "memory" and is_installed()
    try:
        much = _rows_read(snapshot, query) > repo.limits.interactive_rows_max
        if shared and much and is_configured():
            return counted_on_spark(repo, snapshot, query, None, budget_of(), first=first)
    except OmnigraphError as error:
        if error.code != NOT_ON_SPARK:
            raise
    try:
        found = local()
        return found, len(found)
    except MemoryExceeded as error:
        if not shared:
            raise
        log.info("a query goes on on Spark: %s", error.message)
        return counted_on_spark(repo, snapshot, query, None, budget_of(), first=first)


def _rows_read(snapshot: Snapshot, query: ir.Query) -> int:
    read = types_read(query)
    entries = snapshot.commit.tables.values()
    return sum(entry.rows for entry in entries if entry.type_name in read)


def query_on_spark(
    repo: Repository,
    snapshot: Snapshot,
    query: ir.Query,
    params: Mapping[str, Any] | None,
    *,
    explain: bool = False,
    timeout: float | None = None,
    started: float | None = None,
    max_rows: int | None = None,
) -> Result:
    """Run a read on Spark. Its jobs are cancelled when its time is over, or when it is cancelled."""
    budget = budget_of(timeout, started)
    found, _ = counted_on_spark(repo, snapshot, query, params, budget, explain, max_rows=max_rows)
    return found


def counted_on_spark(
    repo: Repository,
    snapshot: Snapshot,
    query: ir.Query,
    params: Mapping[str, Any] | None,
    budget: Budget,
    explain: bool = False,
    first: int | None = None,
    max_rows: int | None = None,
) -> tuple[Result, int]:
    """Run a read on Spark: the result, or its first rows, and how many there are."""
    pinned = pin(repo, snapshot)
    session = spark_session()
    from omnigraph.pipeline.query import run_on_spark

    options: dict[str, Any] = {"explain": explain, "first": first, "max_rows": max_rows}
    with ending_with(budget, session):
        return repeated_read(
            lambda: run_on_spark(query, params, snapshot, pinned, session, **options)
        )


def spark_frames(repo: Repository, snapshot: Snapshot, session: Any = None) -> GraphFrames:
    """A pinned state for Spark programs; `session` may be their own."""
    found = spark_session(session)
    from omnigraph.pipeline.frames import graph_frames

    return graph_frames(found, repo, snapshot)


def export_by(
    engine: str,
    repo: Repository,
    snapshot: Snapshot,
    dest: str | os.PathLike[str],
    format: str,
    types: Sequence[str] | None,
    order: str | None = None,
) -> Exported:
    """Export in process, or on Spark if requested, or if a cluster is configured and no order is required."""
    if engine not in ENGINES:
        raise OptionInvalid(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    shared = repo.place.scheme != "memory" and is_installed() and order is None
    if engine == "local" or (engine == "auto" and not (is_configured() and shared)):
        return export(snapshot, dest, format, types, order)
    if order is not None:
        raise OptionInvalid("an export on Spark has no order; omit order= or engine=")
    pinned = pin(repo, snapshot)
    session = spark_session()
    from omnigraph.pipeline.export import export_on_spark

    with spark_failures():
        return export_on_spark(session, pinned, snapshot, dest, format, types)


@contextmanager
def maintaining(
    repo: Repository, table_id: str, branch: str, engine: str = "local"
) -> Iterator[Verb]:
    """The write that maintains a table; on Spark, all of its work is done when it is returned."""
    if engine not in ENGINES:
        raise OptionInvalid(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    shared = repo.place.scheme != "memory" and is_installed()
    if engine == "local" or (engine == "auto" and not (is_configured() and shared)):
        yield optimize(table_id)
        return
    if repo.place.scheme == "memory":
        raise NotShared(f"{repo.place.uri} lives in the memory of this process")
    session = spark_session()
    from omnigraph.pipeline.maintain import BulkUpkeep

    work = BulkUpkeep(repo, session, table_id, branch)
    try:
        work.prepare(repo.snapshot(repo.head(branch).commit))
        yield work.verb
    finally:
        work.finish()
