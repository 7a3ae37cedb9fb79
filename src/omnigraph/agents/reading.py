"""Read-only tools."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from omnigraph.agents import arguments as args
from omnigraph.agents.answers import ArgumentsInvalid, RowPage, ToolAnswer, paged
from omnigraph.agents.retriever import Retriever
from omnigraph.agents.stored import run_stored, stored_names
from omnigraph.agents.toolbox import Toolbox
from omnigraph.agents.walking import (
    State,
    columns,
    count_neighbours,
    entity,
    neighbours,
    shortest_path,
    steps_from,
)
from omnigraph.errors import (
    CODES,
    EntityNotFound,
    Kind,
    LimitExceeded,
    OmnigraphError,
    TableNotFound,
)
from omnigraph.model.catalog import EdgeType, NodeOrEdgeType, Property
from omnigraph.policy.questions import PolicyDenied
from omnigraph.read import Result

TYPES_SHOWN_MAX = 100
BRANCHES_SHOWN_MAX = 50
DIFF_ROWS_MAX = 10_000  # read for a page

NO_ROWS = "Nothing was found. Look at the types with `describe`, or search with other words."
MORE_PAGES = "There are more rows: call again with `cursor`, or narrow it with a condition."
ALL_SHOWN = ""


class CodeMissing(OmnigraphError):
    """The error code is unknown."""

    code, kind = "error_code_unknown", Kind.NOT_FOUND
    default_help = "Use `error.code` of an answer unchanged."


def _state(box: Toolbox, branch: str, at: str | None) -> State:
    seconds = box.limits.query_seconds_max
    return State(box.graph, box.catalog(branch, at), branch, at, seconds)


# --- the graph -------------------------------------------------------------------------------------------------------


def describe(box: Toolbox, arguments: args.DescribeArguments) -> ToolAnswer:
    """The types of the graph with their properties and row counts, its branches and stored queries."""
    catalog = box.catalog(arguments.branch, arguments.at)
    counts, commit = _counts(box, arguments)
    kinds = list(catalog.entities())
    if arguments.type is not None:
        kinds = [kind for kind in kinds if kind.name == arguments.type]
        if not kinds:
            raise TableNotFound(f"there is no type {arguments.type!r}")
    shown = [
        _type(kind, counts, full=arguments.type is not None) for kind in kinds[:TYPES_SHOWN_MAX]
    ]
    data: dict[str, Any] = {"branch": arguments.branch, "commit": commit, "type_count": len(kinds)}
    data["types"] = shown
    if arguments.type is None:
        data |= {"your_branch": box.provenance.branch, **_names(box)}
    if counts is None:
        data["rows_hidden"] = True  # a policy hides some types
    return ToolAnswer(
        data, "Use `search` or `find_entity` for rows, `describe` with `type` for one type."
    )


def _names(box: Toolbox) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, tell in (
        ("branches", box.graph.branches),
        ("stored_queries", lambda: stored_names(box)),
    ):
        try:
            all_names = tell()
        except PolicyDenied:
            continue
        found |= {f"{name}_count": len(all_names), name: all_names[:BRANCHES_SHOWN_MAX]}
    return found


def _counts(
    box: Toolbox, arguments: args.DescribeArguments
) -> tuple[Mapping[str, int] | None, str | None]:
    """Row counts by type, if all types may be read."""
    try:
        now: Any = box.graph.snapshot(arguments.branch, arguments.at)
    except PolicyDenied:
        return None, None
    if hasattr(now, "rows"):  # of a server
        return {name: rows for (_, name), rows in now.rows.items()}, now.commit_id
    return {e.type_name: e.rows for e in now.commit.tables.values()}, now.commit_id


def _type(kind: NodeOrEdgeType, counts: Mapping[str, int] | None, *, full: bool) -> dict[str, Any]:
    about: dict[str, Any] = {"name": kind.name, "kind": kind.kind}
    if counts is not None:
        about["rows"] = counts.get(kind.name, 0)
    if isinstance(kind, EdgeType):
        about |= {"from": kind.from_type, "to": kind.to_type}
    about["properties"] = {p.name: _property(p, full=full) for p in kind.properties.values()}
    if kind.key:
        about["key"] = list(kind.key)
    if full:
        about |= {
            "description": kind.description,
            "unique": [list(group) for group in kind.uniques],
            "indexed": [list(group) for group in kind.indices],
            "ranges": [[r.property, r.minimum, r.maximum] for r in kind.ranges],
            "checks": [[c.property, c.pattern] for c in kind.checks],
        }
    return about


def _property(prop: Property, *, full: bool) -> Any:
    if not full:
        return str(prop.type)
    about: dict[str, Any] = {"type": str(prop.type), "description": prop.description}
    if prop.default is not None:
        about["default"] = prop.default
    if prop.embed is not None:
        about["made_from"] = prop.embed.source
    return about


# --- finding ---------------------------------------------------------------------------------------------------------


def search(box: Toolbox, arguments: args.SearchArguments) -> ToolAnswer:
    """Nodes about a text, by words and by meaning, with some neighbours if wanted."""
    retriever = Retriever(
        box.graph,
        arguments.branch,
        arguments.types,
        arguments.limit,
        arguments.neighbours,
        box.limits.query_seconds_max,
    )
    found = retriever.retrieve(arguments.text, at=arguments.at)
    rows = [each.to_json() for each in found.found]
    data = paged(rows, RowPage(arguments.limit), found.commit or "")
    data.pop("next_cursor", None)
    if found.left_out:
        data["left_out"] = dict(found.left_out)
    step = "Use `neighbours` or `find_entity` with a type and id to continue." if rows else NO_ROWS
    return ToolAnswer(data, step)


def find_entity(box: Toolbox, arguments: args.FindEntityArguments) -> ToolAnswer:
    """Nodes of a type by id, or by equal values of properties."""
    page = RowPage.of(arguments.limit, arguments.cursor)
    state = _state(box, arguments.branch, page.at or arguments.at)
    kind = state.node_type(arguments.type)
    conditions, declared, params = [], [], {}
    for name, value in (arguments.where or {}).items():
        prop = kind.properties.get(name)
        if prop is None:
            raise ArgumentsInvalid(f"{kind.name} has no property {name!r}")
        if not prop.type.is_plain:
            raise ArgumentsInvalid(f"{name} cannot be compared: it is a {prop.type}")
        conditions.append(f"$x.{name} is null" if value is None else f"$x.{name} = ${'v_' + name}")
        if value is not None:
            declared.append(f"$v_{name}: {prop.type.scalar}")
            params[f"v_{name}"] = value
    if arguments.id is not None:
        conditions.append("$x.id = $id")
        declared.append("$id: String")
        params["id"] = arguments.id
    text = (
        f"query q({', '.join(declared)}) {{ match {{ $x: {kind.name} {' '.join(conditions)} }} "
        f"return {{ {columns(kind, 'x')} }} order {{ id }} }}"
    )
    result = _run(box, text, params, None, arguments.branch, page.at or arguments.at)
    rows = [entity(kind.name, row) for row in _rows(result, page)]
    data = paged(rows, page, result.commit, total=len(result))
    return ToolAnswer(data, _next_step(data))


def around(box: Toolbox, arguments: args.NeighboursArguments) -> ToolAnswer:
    """The neighbourhood of a node: edge counts by type, and the first nodes at their ends."""
    state = _state(box, arguments.branch, arguments.at)
    commit = _require_node(state, arguments.type, arguments.id)
    state = State(state.graph, state.catalog, state.branch, commit, state.seconds_max)
    groups = []
    for step in steps_from(state, arguments.type, arguments.edges, arguments.direction):
        try:
            count, _ = count_neighbours(state, step, arguments.id)
        except PolicyDenied:
            if arguments.edges is not None:
                raise
            continue
        rows = neighbours(state, step, [arguments.id], arguments.limit) if count else []
        for row in rows:
            del row["near"], row["edge"], row["direction"]
        about = {"edge": step.edge.name, "direction": step.direction, "neighbour_type": step.far}
        groups.append(about | paged(rows, RowPage(arguments.limit), commit, total=count))
    for group in groups:
        group.pop("next_cursor", None)
        group.pop("commit", None)
    total = sum(group["count"] for group in groups)
    data = {"count": total, "commit": commit, "edges": groups}
    return ToolAnswer(
        data, "Name `edges` and a higher `limit` to see more of one type." if total else NO_ROWS
    )


def _require_node(state: State, type: str, id: str) -> str:
    """The commit with the node; raises if it does not exist."""
    kind = state.node_type(type)
    text = f"query q($id: String) {{ match {{ $x: {kind.name} $x.id = $id }} return {{ $x.id as id }} }}"
    rows, commit = state.rows(text, {"id": id})
    if not rows:
        raise EntityNotFound(f"there is no {type} {id!r}")
    return commit


def path(box: Toolbox, arguments: args.PathArguments) -> ToolAnswer:
    """One of the shortest paths between two nodes, over edges in both directions."""
    state = _state(box, arguments.branch, arguments.at)
    commit = _require_node(state, arguments.from_type, arguments.from_id)
    state = State(state.graph, state.catalog, state.branch, commit, state.seconds_max)
    _require_node(state, arguments.to_type, arguments.to_id)
    start, end = (arguments.from_type, arguments.from_id), (arguments.to_type, arguments.to_id)
    found = shortest_path(state, start, end, arguments.edges, arguments.hops_max)
    hops = None if found is None else len(found) // 2
    data = {"found": found is not None, "hops": hops, "commit": commit, "path": found or []}
    step = "Use `neighbours` on a node of the path to see more." if found else NO_PATH
    return ToolAnswer(data, step)


NO_PATH = "There is no path within these bounds. Try a higher `hops_max`, or without `edges`."


# --- queries -----------------------------------------------------------------------------------------------------


def run_query(box: Toolbox, arguments: args.RunQueryArguments) -> ToolAnswer:
    """The rows of a query that reads; a mutation is refused."""
    page = RowPage.of(arguments.limit, arguments.cursor)
    at = page.at or arguments.at
    result = _run(box, arguments.query, arguments.params, arguments.name, arguments.branch, at)
    data = paged(_rows(result, page), page, result.commit, total=len(result))
    return ToolAnswer(data, _next_step(data))


def run_stored_query(box: Toolbox, arguments: args.RunStoredQueryArguments) -> ToolAnswer:
    """The rows of a stored query that reads."""
    page = RowPage.of(arguments.limit, arguments.cursor)
    at = page.at or arguments.at
    rows, total, commit = run_stored(box, arguments, at, page)
    data = paged(rows, page, commit, total=total)
    return ToolAnswer(data, _next_step(data))


def _run(
    box: Toolbox,
    text: str,
    params: Mapping[str, Any] | None,
    name: str | None,
    branch: str,
    at: str | None,
) -> Result:
    limits = box.limits
    return box.graph.query(
        text,
        params,
        name,
        branch=branch,
        at=at,
        timeout=limits.query_seconds_max,
        max_rows=limits.query_rows_max,
    )


def _rows(result: Result, page: RowPage) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = result.to_arrow().slice(page.skip, page.limit).to_pylist()
    return found


def _next_step(data: Mapping[str, Any]) -> str:
    if not data["count"]:
        return NO_ROWS
    return MORE_PAGES if "next_cursor" in data else ALL_SHOWN


def explain_error(_: Toolbox, arguments: args.ExplainErrorArguments) -> ToolAnswer:
    """The meaning of an error code, and how to fix it."""
    from omnigraph.lang.query import codes as _query  # noqa: F401  they register themselves
    from omnigraph.lang.schema import codes as _schema  # noqa: F401

    for spelt in (arguments.code, arguments.code.upper(), arguments.code.lower()):
        found = CODES.get(spelt)
        if found is not None:
            about = {"code": found.code, "kind": str(found.kind), "title": found.title}
            about |= {"explanation": found.explanation, "help": found.help}
            return ToolAnswer(about)
    raise CodeMissing(f"no error has the code {arguments.code!r}")


# --- differences -------------------------------------------------------------------------------------------------


def diff(box: Toolbox, arguments: args.DiffArguments) -> ToolAnswer:
    """The changes of a branch since it diverged from another: counts by type, then rows with changed cells."""
    page = RowPage.of(arguments.limit, arguments.cursor)
    branch = arguments.branch or box.provenance.branch
    head = page.at or branch
    found = box.graph.diff(arguments.against, head, types=arguments.types, from_merge_base=True)
    counts = found.counts
    total = sum(sum(each.values()) for each in counts.values())
    if page.skip >= DIFF_ROWS_MAX:
        raise LimitExceeded(f"only the first {DIFF_ROWS_MAX} changed rows are shown; name `types`")
    rows = [row.to_json() for row in islice(found, page.skip, page.skip + page.limit)]
    data: dict[str, Any] = {"branch": branch, "against": arguments.against, "counts": counts}
    data |= {"schema_changes": [dict(step) for step in found.schema]}
    data |= paged(rows, page, found.to_commit, total=total)
    step = MORE_PAGES if "next_cursor" in data else "" if total else "The branch changed no rows."
    return ToolAnswer(data, step)
