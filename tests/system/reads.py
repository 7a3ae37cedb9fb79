"""Reads of every kind, asked of the real system and worked out from the model. Each raises where they differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.system import observe
from tests.system.merging import relaid, same_row, seen_as
from tests.system.model import Commit
from tests.system.observe import Shown, shape_of
from tests.system.rules import broken
from tests.system.schema import Impossible, Row, State, Type
from tests.system.values import shows

if TYPE_CHECKING:
    from tests.system.run import Run


def _check(holds: bool, what: str, *more: Any) -> None:
    from tests.system.run import check

    check(holds, what, *more)


def _reader(run: Run, step: Mapping[str, Any], point: Commit) -> Any:
    """The door a step names. A row whose id is the empty text has no address on a server."""
    nameless = any("" in table for table in point.state.rows.values())
    return run.world.graph if nameless else run.world.door(step)


def rows(run: Run, step: Mapping[str, Any], point: Commit) -> None:
    """Everything at a point."""
    if step["way"] == "fresh":
        if run.program.disk:
            run.fresh([(step["at"], point)])
        return
    at = run.world.point(run.model, step["at"])
    door = run.world.graph if step["way"] == "tables" else _reader(run, step, point)
    found = observe.WAYS[step["way"]](door, at, shape_of(point.state))
    if step["way"] == "export":
        _compare_export(run, point.state, found, at)
    else:
        run._compare(point.state, found, f"{step['way']} of a point")


def _compare_export(run: Run, state: State, found: Shown, at: str) -> None:
    """Ids of rows with a key are not written; they are those the key makes."""
    wanted = observe.shown(state, run.world.real)
    for kind in state.types.values():
        if kind.key is None:
            continue
        by_content = dict(wanted[kind.name])
        named: dict[str, dict[str, Any]] = {}
        for row in found[kind.name].values():
            match = next((i for i, r in by_content.items() if _is_row(row, r)), None)
            named[match if match is not None else f"?{len(named)}"] = row
            by_content.pop(match or "", None)
        found[kind.name] = named
    from tests.system.run import compare

    compare(wanted, found, "an export")


def _is_row(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return found.keys() == wanted.keys() and all(shows(found[n], v) for n, v in wanted.items())


def entity(run: Run, step: Mapping[str, Any], point: Commit) -> None:
    """One row by its id."""
    kind = point.state.called(step["type"])
    row = point.state.of(kind).get(step["id"])
    columns = next(c for c in shape_of(point.state) if c.name == kind.name)
    at = run.world.point(run.model, step["at"])
    text = observe.query_text(columns).replace("query q()", "query q($id: String)")
    text = text.replace("} return", "$x.id = $id } return")
    found = _reader(run, step, point).query(text, {"id": run.world.real(step["id"])}, at=at).rows
    _check(len(found) == (row is not None), "an entity is there or not", found)
    if row is not None:
        cells = {
            n.removeprefix("c_"): v for n, v in found[0].items() if n not in ("id", "src", "dst")
        }
        for prop in kind.props.values():
            if prop.type != "Blob":
                _check(
                    shows(cells[prop.name], row[prop.ident]),
                    f"entity: {prop.type}",
                    prop.name,
                    cells,
                    row,
                )


def count(run: Run, step: Mapping[str, Any], point: Commit) -> None:
    """How many rows each type has, as a query counts them and as the commit says."""
    at = run.world.point(run.model, step["at"])
    entries = run.world.graph.snapshot(at=at).commit.tables.values()
    told = {entry.type_name: entry.rows for entry in entries}
    wanted = {kind.name: len(point.state.of(kind)) for kind in point.state.types.values()}
    _check(told == wanted, "a commit tells other counts", told, wanted)
    for kind in point.state.types.values():
        if not kind.is_edge:
            text = f"query q() {{ match {{ $x: {kind.name} }} return {{ count($x) as n }} }}"
            found = _reader(run, step, point).query(text, at=at).rows
            _check(found == [{"n": wanted[kind.name]}], "a query counts otherwise", found, wanted)


def log(run: Run, step: Mapping[str, Any], point: Commit) -> None:
    """The commits that led to a point."""
    at = run.world.point(run.model, step["at"])
    found = [(c.id, c.kind) for c in _reader(run, step, point).log(at=at, limit=None)]
    wanted = [(run.world.commits[c.label], c.kind) for c in run.model.line(step["at"])]
    if found[: len(wanted)] != wanted:
        kept = [w for w, c in zip(wanted, run.model.line(step["at"]), strict=True) if c.kept]
        _check(found[: len(kept)] == kept and len(kept) < len(wanted), "another log", found, wanted)


def check_schema(run: Run, at: str, state: State) -> None:
    """The schema in force says what the model's says."""
    found = observe.schema_shown(run.world.graph, run.world.point(run.model, at))
    wanted = {k.name: {p.name: p.text for p in k.props.values()} for k in state.types.values()}
    _check(found == wanted, "another schema", found, wanted)


# --- differences -------------------------------------------------------------------------------------------------


def diff(run: Run, step: Mapping[str, Any], point: Commit) -> None:
    """Applied to one state, in the words of the other, a diff gives the other."""
    one, other = point.state, run.model.point(step["to"]).state
    found = _reader(run, step, point).diff(
        run.world.point(run.model, step["at"]), run.world.point(run.model, step["to"])
    )
    _check_changes(run, found, one, other, "diff", partial=True)


def _check_changes(
    run: Run, found: Any, one: State, other: State, what: str, *, partial: bool
) -> None:
    wanted = differences(one, other)
    seen = {}
    for change in found:
        key = (change.type, change.operation, change.id)
        _check(key not in seen, f"{what} names a row twice", key)
        seen[key] = change
    real = run.world.real
    named = {(name, operation, real(id)): rows for (name, operation, id), rows in wanted.items()}
    _check(seen.keys() == named.keys(), f"{what} names other rows", sorted(seen), sorted(named))
    for key, (kind, before, after) in named.items():
        for side, row in (("before", before), ("after", after)):
            _check_image(
                run,
                kind,
                getattr(seen[key], side),
                row,
                f"{what}: {side}",
                whole=not (partial and key[1] == "update"),
            )
        if partial and key[1] == "update":
            cells = {
                kind.field_name(f) for f in after if not same_row({f: before[f]}, {f: after[f]})
            }
            _check(cells == set(seen[key].after), f"{what} shows other cells", cells, seen[key])


def _check_image(
    run: Run, kind: Type, found: Any, row: Row | None, what: str, *, whole: bool
) -> None:
    if row is None or found is None:
        _check(row is None and found is None, what, found, row)
        return
    cells = {
        kind.field_name(f): run.world.real(v) if f in kind.structure else v for f, v in row.items()
    }
    names = cells if whole else [n for n in found if n != "id"]
    types = {p.name: p.text for p in kind.props.values()}
    for name in names:
        _check(name in found, f"{what}: a cell is missing", name, found)
        value = found[name]
        if not shows(value, cells[name]) and name in types:
            value = observe.parsed(value, types[name])  # a server writes values as records do
        _check(shows(value, cells[name]), f"{what}: a cell", name, found, cells)


Difference = tuple[Type, Any, Any]


def differences(one: State, other: State) -> dict[tuple[str, str, str], Difference]:
    """What turns one state into another, in the words of the second; a type that went takes its rows with it."""
    seen = relaid(one, other.types)
    found: dict[tuple[str, str, str], Difference] = {}
    for kind in other.types.values():
        before, after = seen.rows.get(kind.ident, {}), other.of(kind)
        for id in {**before, **after}:
            old, new = before.get(id), after.get(id)
            if not same_row(old, new):
                operation = "insert" if old is None else "delete" if new is None else "update"
                found[kind.name, operation, id] = (kind, old, new)
    for kind in one.types.values():
        if kind.ident not in other.types:
            for id, row in one.of(kind).items():
                found[kind.name, "delete", id] = (kind, row, None)
    return found


def changes(run: Run, step: Mapping[str, Any], point: Commit) -> None:
    """The feed after a commit of a branch: each later commit with its rows, whole."""
    branch = step["at"]
    if branch not in run.model.heads:
        raise Impossible("a feed follows a branch")
    line = list(run.model.line(branch))[:4]
    after = line.pop()
    feed = list(
        _reader(run, step, point).changes(after=run.world.commits[after.label], branch=branch)
    )
    for commit in reversed(line):
        before = run.model.commits[commit.parents[0]].state
        own = [change for change in feed if change.commit == run.world.commits[commit.label]]
        _check_changes(run, own, before, commit.state, "feed", partial=False)
    known = {run.world.commits[commit.label] for commit in line}
    _check({change.commit for change in feed} <= known, "the feed names other commits", known)


def history(run: Run, step: Mapping[str, Any], point: Commit) -> None:
    """What happened to one row, as the schema of the point shows it: which commits changed it, and how."""
    kind = point.state.called(step["type"])
    at = run.world.point(run.model, step["at"])
    found = _reader(run, step, point).history(
        kind.name, run.world.real(step["id"]), at=at, limit=100
    )
    told = [(change.commit.id, change.operation) for change in found.changes]
    may, must = [], []
    for commit in run.model.line(step["at"]):
        if not commit.parents:
            break
        before = run.model.commits[commit.parents[0]]
        event = (
            run.world.commits[commit.label],
            _event(before.state, commit.state, kind, step["id"]),
        )
        if event[1] is not None:
            may.append(event)
            own = commit.state.types.get(kind.ident)
            if (
                own
                and _event(before.state, commit.state, own, step["id"])
                and run.model.is_sure_change(commit)
            ):
                must.append(event)  # a change of the schema alone need not be an event of the row
    if any(not commit.kept for commit in run.model.line(step["at"])):
        must = must[: len(told)]
    _check(
        [e for e in may if e in told] == told and set(must) <= set(told),
        "another history",
        told,
        may,
    )


def _event(before: State, after: State, kind: Type, id: str) -> str | None:
    """What happened to a row between two states, as a version of its type shows it."""
    old, new = (seen_as(s.rows.get(kind.ident, {}).get(id), kind) for s in (before, after))
    if same_row(old, new):
        return None
    return "insert" if old is None else "delete" if new is None else "update"


# --- states from outside -----------------------------------------------------------------------------------------


def state_from(shape: State, found: Shown, ids: Mapping[str, str]) -> State:
    """A state of a schema with the rows that were read, in the ids of the model."""

    def made_up(text: str) -> str:
        for made, real in ids.items():
            text = text.replace(real, made)
        return text

    state = shape
    for kind in shape.types.values():
        table: dict[str, Row] = {}
        for id, row in found[kind.name].items():
            cells: dict[Any, Any] = {p.ident: row[p.name] for p in kind.props.values()}
            cells |= {side: made_up(row[side]) for side in kind.structure}
            table[made_up(id)] = cells
        state = state.with_rows(kind, table)
    return state


def broken_rules(state: State) -> set[str]:
    return broken(State(), state)
