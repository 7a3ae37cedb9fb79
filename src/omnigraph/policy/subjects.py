"""Which types a query reads and which a write changes: the subjects of a policy on types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from omnigraph.core.plan import Adopt, Alter, PublishPlan, Register
from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import OmnigraphError
from omnigraph.lang import ir

QUERIES_KNOWN_MAX = 1024
_known: dict[int, tuple[ir.Query, frozenset[str]]] = {}  # queries are compiled once and then shared


def types_read(query: ir.Query) -> frozenset[str]:
    """The node and edge types a query reads, in intermediate steps as well as in its result."""
    known = _known.get(id(query))
    if known is not None and known[0] is query:
        return known[1]
    found = frozenset(_named(query.body))
    if len(_known) >= QUERIES_KNOWN_MAX:
        _known.clear()
    _known[id(query)] = (query, found)
    return found


def types_searched(query: ir.Query) -> frozenset[str]:
    """The types whose rows a mutation searches: its result, or even its count, reveals them."""
    match query.body:
        case ir.Mutation(statements):
            found = (s.reads if isinstance(s, ir.PatternChange) else s for s in statements)
            searches = tuple(s for s in found if not isinstance(s, ir.Insert))
            return frozenset(_named(searches))
        case _:
            return frozenset()


def _named(part: Any) -> Iterator[str]:
    """Every type named anywhere below a part of a query."""
    match part:
        case ir.EdgeStep(edge, _, near, far):
            yield from (edge, near, far)
        case ir.Target(_, type_name):
            yield type_name
        case ir.NodeScan(_, types) | ir.EntityValue(types) | ir.RefValue(types):
            yield from types
        case ir.TrailValue(nodes, edges):
            yield from (*nodes, *edges)
        case ir.Attach(types=types):
            yield from types
        case ir.Resumed(entities=entities):
            yield from (name for _, _, types, _ in entities for name in types)
        case ir.Expand() | ir.ShortestPath() | ir.Trail():
            yield from part.dst_types
    if isinstance(part, tuple):
        for item in part:
            yield from _named(item)
    elif is_dataclass(part):
        for field in fields(part):
            yield from _named(getattr(part, field.name))


def types_written(plan: PublishPlan, snapshot: Snapshot) -> frozenset[str]:
    """The types whose rows a write changes, or whose planned changes it reports."""
    tables = snapshot.commit.tables
    found = set()
    for action in plan.actions:
        match action:
            case Register(type_name=name) | Alter(type_name=name):
                found.add(name)
            case Adopt(entry=entry):
                found.add(entry.type_name)
        if action.table_id in tables:
            found.add(tables[action.table_id].type_name)
    counted = (getattr(plan.value, name, None) for name in ("counts", "nodes", "edges"))
    reported = {name for counts in counted if isinstance(counts, Mapping) for name in counts}
    return frozenset(found | types_in_conflict(plan) | reported)


def types_in_conflict(plan: PublishPlan) -> frozenset[str]:
    """The types whose rows a merge shows as conflicts to resolve."""
    found = getattr(plan.value, "conflicts", ())
    return frozenset(conflict.type for conflict in found if conflict.type)


def types_revealed(error: OmnigraphError) -> frozenset[str]:
    """The types whose rows a rejected write reveals."""
    broken = error.details.get("violations", ())
    return frozenset(str(rule["type"]) for rule in broken if rule.get("type"))
