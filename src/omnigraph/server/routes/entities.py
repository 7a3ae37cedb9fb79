"""One node or edge: what it holds, how many edges meet it, and what happened to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import Kind, LimitExceeded, OmnigraphError, TableNotFound
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.columns import arrow_schema
from omnigraph.model.types import Scalar
from omnigraph.policy.guard import Need
from omnigraph.policy.questions import Action
from omnigraph.read.degrees import Degree, degrees
from omnigraph.read.result import to_json
from omnigraph.server.calls import Answer, Call
from omnigraph.server.limits import exceeded
from omnigraph.server.routes.reading import read_on
from omnigraph.server.routes.session import may
from omnigraph.server.wire import (
    EntityChangeOutput,
    EntityHistoryOutput,
    EntityHistoryQuery,
    EntityOutput,
    Neighbours,
    commit_output,
)

EVENTS = 50
EVENTS_MAX = 1000


class EntityNotFound(OmnigraphError):
    """There is no such node or edge in this state."""

    code, kind = "entity_not_found", Kind.NOT_FOUND
    default_help = "It may be on another branch, or only in history: ask for its history."


def entity_needs(call: Call) -> Iterable[Need]:
    """Reading rows of the type; a point in time belongs to the branch it was written on."""
    types = frozenset({call.path["type"]})
    return (need.of(types) for need in read_on(call))


def entity(call: Call) -> Answer:
    """One node or edge with all its properties, and how many edges of each type meet it."""
    asked, types = call.query, frozenset({call.path["type"]})
    snapshot = call.snapshot(asked.branch, asked.at, types)
    kind, id = _kind(snapshot, call.path["type"]), call.path["id"]
    row = _row(snapshot, kind, id)
    if row is None:
        raise EntityNotFound(f"there is no {kind.name} {id!r}")
    found = () if isinstance(kind, EdgeType) else degrees(snapshot, kind, id) or ()
    shown = [d for d in found if _may_see(call, d, snapshot)]
    output = EntityOutput(
        type=kind.name,
        kind=kind.kind,
        id=id,
        ends=_ends(row, kind),
        properties=_properties(row),
        neighbours=[Neighbours(d.edge, d.direction, d.type, d.count) for d in shown],
        graph_commit_id=snapshot.commit_id,
    )
    return Answer(output, commit=snapshot.commit_id)


def _may_see(call: Call, degree: Degree, snapshot: Snapshot) -> bool:
    asked = call.query
    branch = asked.branch or "main" if asked.at is None else snapshot.commit.branch
    return may(call.guard, Need(Action.READ, branch, types=frozenset({degree.edge})))


def _kind(snapshot: Snapshot, name: str) -> NodeType | EdgeType:
    kind = snapshot.catalog.entity(name)
    if kind is None:
        raise TableNotFound(f"there is no type {name!r}")
    return kind


def _row(snapshot: Snapshot, kind: NodeType | EdgeType, id: str) -> dict[str, Any] | None:
    blobs = {p.name for p in kind.properties.values() if p.type.scalar is Scalar.BLOB}
    names = [name for name in arrow_schema(kind).names if name not in blobs]
    found = snapshot.table_of(kind).lookup("id", pa.array([id], pa.string()), names).to_pylist()
    return dict(found[0]) if found else None


def _ends(row: dict[str, Any], kind: NodeType | EdgeType) -> dict[str, str] | None:
    if not isinstance(kind, EdgeType):
        return None
    return {
        "from": row["src"],
        "to": row["dst"],
        "from_type": kind.from_type,
        "to_type": kind.to_type,
    }


def _properties(row: dict[str, Any]) -> dict[str, Any]:
    return {name: to_json(v) for name, v in row.items() if name not in ("id", "src", "dst")}


def _image(row: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A row as a history shows it: of blobs only how large they are."""
    if row is None:
        return None
    return {
        name: {"blob_bytes": len(value)} if isinstance(value, bytes) else to_json(value)
        for name, value in row.items()
    }


def history(call: Call) -> Answer:
    """The commits that changed one node or edge, newest first; `at` goes on from an earlier answer's `next`."""
    asked: EntityHistoryQuery = call.query
    limit = EVENTS if asked.limit is None else asked.limit
    if not 0 < limit <= EVENTS_MAX:
        raise LimitExceeded(
            f"limit is 1 to {EVENTS_MAX}", details=exceeded("events_max", EVENTS_MAX, limit)
        )
    found = call.graph.history(
        call.path["type"], call.path["id"], asked.branch or "main", asked.at, limit
    )
    changes = [
        EntityChangeOutput(commit_output(c.commit), c.operation, _image(c.before), _image(c.after))
        for c in found.changes
    ]
    return Answer(EntityHistoryOutput(changes, found.rest))
