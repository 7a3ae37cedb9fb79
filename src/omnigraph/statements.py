"""Texts that are more than queries: settings for one run, and statements that show settings, plans and branches.

`Graph.query` and `Graph.mutate` come here with a text that begins with such a word; it runs on the
verbs of the graph, so a policy applies as it does to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from omnigraph.errors import BranchNotFound, Kind, OmnigraphError, OptionInvalid
from omnigraph.lang.languages import is_file_text, place_named
from omnigraph.lang.query import ast, parse_queries
from omnigraph.lang.query.settings import Effective, Value, effective, why_not
from omnigraph.model.frozen import frozen
from omnigraph.model.limits import memory_bytes
from omnigraph.model.names import MAIN, branch_name

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.graph import Graph
    from omnigraph.lang import ir
    from omnigraph.outcomes import MutateResult
    from omnigraph.read import Result

TEXTS_MAX = 512
Settings = Mapping[str, Value]


class StatementMisplaced(OmnigraphError):
    """A statement was given to a verb that does not run it, or with options it does not take."""

    code, kind = "statement_misplaced", Kind.INVALID
    default_help = (
        "`query` runs show, explain and branch list; `mutate` runs branch create, delete and merge."
    )


class UseContradicted(OmnigraphError):
    """USE names another branch or point than the call, or a point that cannot be written to.

    `USE dev` is `branch="dev"`, and USE 'dev@v1' is `branch="dev", at="v1"`. Where both are given they say the same.
    """

    code, kind = "use_contradicted", Kind.INVALID
    default_help = "Name the branch in one place: in the text with USE, or beside it."


@frozen
class ReadOptions:
    """The options of a read, besides its text."""

    params: Mapping[str, Any] | None
    name: str | None
    branch: str
    at: object
    engine: str
    language: str | None
    timeout: float | None
    max_rows: int | None
    explain: bool
    memory_bytes_max: int | None = None

    def bounds(self, started: float) -> dict[str, Any]:
        """What a run that began at `started` may take, on any engine."""
        return {"timeout": self.timeout, "started": started, "max_rows": self.max_rows}

    def under(self, settings: Mapping[str, Effective]) -> ReadOptions:
        """The same with the settings of a file. A setting may lower a given limit, but not raise it."""
        chosen = {name: found.value for name, found in settings.items()}
        said = settings["engine"].source != "default"
        engine = "local" if chosen["engine"] == "v2" else str(chosen["engine"])
        return replace(
            self,
            engine=engine if said else self.engine,
            timeout=_least(self.timeout, chosen["timeout_seconds"]),
            max_rows=_least(self.max_rows, chosen["rows_max"]),
            memory_bytes_max=_memory(self.memory_bytes_max, chosen["memory_bytes_max"]),
        )


def _least(*limits: Any) -> Any:
    return min((limit for limit in limits if limit is not None), default=None)


def _memory(limit: int | None, wanted: Any) -> int | None:
    """The memory limit of a query: without one of its graph, that of the process."""
    if wanted is None:
        return limit
    return min(int(wanted), memory_bytes().query if limit is None else limit)


def lone_statement(
    text: str, language: str | None = None
) -> ast.ShowSettings | ast.BranchStatement | None:
    """The statement of a text without a query; the statement names its own targets."""
    found = file_of(text).statement if is_file_text(text, language) else None
    return found if isinstance(found, ast.ShowSettings | ast.BranchStatement) else None


def target_of(statement: ast.BranchStatement) -> str:
    """The branch a statement changes."""
    return (statement.other or "main") if statement.verb == "merge" else statement.name or "main"


@lru_cache(maxsize=TEXTS_MAX)
def file_of(text: str) -> ast.QueryFile:
    """The tree of a text."""
    return parse_queries(text, bare=True)


def settings_of(file: ast.QueryFile, requested: Settings | None) -> dict[str, Effective]:
    """The settings in force for one run; those of a caller are checked like those of a file."""
    for name, value in (requested or {}).items():
        if (wrong := why_not(name, value)) is not None:
            raise OptionInvalid(wrong)
    return effective(file.settings, requested)


# --- where a text is run -------------------------------------------------------------------------------------------


def named_place(
    text: str, language: str | None, branch: str = "main", at: object = None
) -> tuple[str, object]:
    """The branch and the point a text is about: what USE names, or what the call does. `main` counts as no name."""
    used = place_named(text, language)
    if used is None:
        return branch, at
    name, _, point = used.partition("@")
    named = branch_name(name) if name else branch_name(branch)
    if named != branch_name(branch) != MAIN:
        raise UseContradicted(f"the text uses {named!r}, the call names {branch!r}")
    if point and at not in (None, point):
        raise UseContradicted(f"the text uses {used!r}, the call names the point {str(at)!r}")
    return named, point or at


def read_place(
    graph: Graph, text: str, language: str | None, branch: str, at: object
) -> tuple[str, object]:
    """Where a read is run; a name that is not a branch may be a tag."""
    found = named_place(text, language, branch, at)
    if found[1] is not None or place_named(text, language) is None:
        return found
    try:
        graph._state(found[0])
    except BranchNotFound as missing:
        try:
            graph._state("main", found[0])
        except OmnigraphError:
            raise missing from None
        return "main", found[0]
    return found


def written_branch(text: str, language: str | None, branch: str = "main") -> str:
    """The branch a write goes to."""
    named, point = named_place(text, language, branch)
    if point is not None:
        raise UseContradicted(f"a write goes to a branch, not to the point {str(point)!r}")
    return named


def check_branch(text: str, language: str | None, branch: str) -> None:
    """Raise if a mutation on a branch uses another."""
    if written_branch(text, language, branch) != branch_name(branch):
        raise UseContradicted(f"the text uses another branch than {branch!r}, on which it runs")


# --- reading -------------------------------------------------------------------------------------------------------


def read_file(graph: Graph, text: str, options: ReadOptions, settings: Settings | None) -> Result:
    """Run a text that has settings, or is a statement that reads."""
    file = file_of(text)
    found = settings_of(file, settings)
    match file.statement:
        case None:
            return graph._read(text, options.under(found))
        case ast.Explain():
            query, snapshot = graph._readable_query(text, options)
            return _table(PLAN_COLUMNS, _plan_rows(query, options, snapshot), snapshot.commit_id)
        case ast.ShowSettings(name):
            graph._permit_any_read()
            shown = found.values() if name is None else [found[name]]
            return _table(SHOWN_COLUMNS, [_shown(each) for each in shown])
        case ast.BranchStatement(verb="list"):
            _check_alone(
                file.statement, options.params, options.name, options.branch, at=options.at
            )
            return _table(("name",), [(name,) for name in sorted(graph.branches())])
        case statement:
            message = f"`{statement.words}` changes branches; run it with mutate"
            raise StatementMisplaced(message)


SHOWN_COLUMNS = ("name", "value", "default", "source", "scope")
PLAN_COLUMNS = ("tree", "depth", "node", "detail")


def _shown(found: Effective) -> tuple[str | None, ...]:
    value, default = (None if v is None else str(v) for v in (found.value, found.default))
    return found.row.name, value, default, found.source, found.row.scope


def _plan_rows(
    query: ir.Query, options: ReadOptions, snapshot: Any
) -> Iterator[tuple[str | int | None, ...]]:
    """One row per operator: the plan as written, then in execution order; nothing is run."""
    from omnigraph.read.execute import planned

    written, ordered = planned(query, options.params, snapshot)
    yield from _tree("logical", written, 0)
    yield from _tree("physical", ordered, 0)
    yield "plan", None, "route", options.engine
    yield "plan", None, "commit", snapshot.commit_id


def _tree(tree: str, op: ir.Op, depth: int) -> Iterator[tuple[str | int | None, ...]]:
    from omnigraph.lang.plan_text import describe, inputs

    yield tree, depth, *describe(op)
    for part in inputs(op):
        yield from _tree(tree, part, depth + 1)


def _table(columns: tuple[str, ...], rows: Any, commit: str = "") -> Result:
    import pyarrow as pa

    from omnigraph.read import Result

    held = list(rows)
    made: dict[str, pa.Array] = {}
    for place, name in enumerate(columns):
        kind = pa.int64() if name == "depth" else pa.string()
        made[name] = pa.array([row[place] for row in held], kind)
    return Result.of_columns(made, commit)


# --- branches ------------------------------------------------------------------------------------------------------


@frozen
class WriteOptions:
    """The options of a write, besides its text."""

    params: Mapping[str, Any] | None
    name: str | None
    branch: str
    if_commit: str | None
    message: str | None
    actor: str | None
    idempotency_key: str | None
    dry_run: bool
    timeout: float | None


def write_statement(graph: Graph, text: str, options: WriteOptions) -> MutateResult | None:
    """Run a statement about branches; None if the text is a mutation below settings."""
    statement = file_of(text).statement
    if statement is None:
        return None
    if not isinstance(statement, ast.BranchStatement) or not statement.writes:
        raise StatementMisplaced(f"`{statement.words}` reads; run it with query")
    _check_alone(
        statement,
        options.params,
        options.name,
        options.branch,
        if_commit=options.if_commit,
        idempotency_key=options.idempotency_key,
    )
    return _changed(graph, statement, options)


def _changed(graph: Graph, statement: ast.BranchStatement, options: WriteOptions) -> MutateResult:
    from omnigraph.outcomes import MutateResult

    name, other = statement.name or "", statement.other or "main"
    done: dict[str, str]
    commit = None
    if statement.verb == "create":
        graph.create_branch(name, other, actor=options.actor, dry_run=options.dry_run)
        done = {"kind": "created", "name": name, "from": other}
    elif statement.verb == "delete":
        graph.delete_branch(name, actor=options.actor, dry_run=options.dry_run)
        done = {"kind": "deleted", "name": name}
    else:
        merged = graph.merge(
            name,
            other,
            options.dry_run,
            message=options.message,
            actor=options.actor,
            timeout=options.timeout,
        ).settled()
        commit = merged.commit
        done = {"kind": "merged", "source": name, "target": other, "merge": merged.outcome}
    return MutateResult(0, 0, commit, outcome=done)


def _check_alone(
    statement: ast.FileStatement,
    params: object,
    name: str | None,
    branch: str,
    **others: object,
) -> None:
    """A statement names its branches itself, so nothing else may."""
    given = {"params": params, "name": name, **others}
    named = [key for key, value in given.items() if value]
    if branch != "main":
        named.insert(0, "branch")
    if named:
        message = f"`{statement.words}` takes no {' and no '.join(named)}: the statement itself names its targets"
        raise StatementMisplaced(message)
