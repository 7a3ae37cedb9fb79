"""The reads a stage depends on: if another write touches them first, it runs again.

A plan that names its nodes by id or key, for all rows or for each of them, depends on those ids, and a hop from them on
the edges that end there. Rows found in any other way depend on whole tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.core.plan import Reads
from omnigraph.expressions.filters import closed
from omnigraph.lang import ir
from omnigraph.lang.tree import conjuncts, variables, walk
from omnigraph.model.catalog import Catalog, NodeType
from omnigraph.model.tokens import endpoint_tokens, id_tokens
from omnigraph.read.context import Handed, LookedUp
from omnigraph.write.matching import EVERYTHING, named_rows

# Expressions that may read entities no variable of the plan is bound to.
FARTHER = (ir.RefEnd, ir.TrailOf, ir.Trail, ir.ShortestPath)
SIDES = {
    ir.Direction.OUT: ("src",),
    ir.Direction.IN: ("dst",),
    ir.Direction.BOTH: ("src", "dst"),
}
# By variable, and for nodes of several types by type: the ids its entities must have one of.
Named = dict[str, dict[str, pa.Array]]


@dataclass(slots=True)
class Resting:
    """The facts of one plan, collected from its operators."""

    plan: ir.Op
    catalog: Catalog
    bound: ir.Bound
    made: Mapping[str, pa.Array] = field(default_factory=dict)  # the ids in slots a MERGE completes
    handed: Handed | None = None
    looked_up: LookedUp = field(default_factory=dict)  # the ids joins looked up, by variable
    named: Named = field(default_factory=dict)
    found: dict[str, Reads] = field(default_factory=dict)

    def reads(self) -> dict[str, Reads]:
        """The reads of the plan, by table."""
        nodes = list(walk(self.plan))
        if any(isinstance(node, FARTHER) for node in nodes):
            self.whole(nodes)
            return self.found
        for node in nodes:
            match node:
                case ir.NodeScan():
                    self.scan(node, nodes)
                case ir.Resumed(_, entities):
                    self.resumed(entities)
        seen = _read_beyond_identity(nodes)
        for node in nodes:
            if isinstance(node, ir.Expand):
                self.hop(node, seen)
        return self.found

    def add(self, kind_table: str, reads: Reads) -> None:
        self.found[kind_table] = self.found.get(kind_table, Reads()) | reads

    def whole(self, nodes: Iterable[object]) -> None:
        """All rows of every named type."""
        for table in _tables(nodes, self.catalog):
            self.add(table, EVERYTHING)

    def scan(self, op: ir.NodeScan, nodes: list[object]) -> None:
        for name in op.types:
            kind = self.catalog.nodes[name]
            ids = self.ids_of(op, kind, nodes)
            if ids is None:
                self.add(kind.table_id, EVERYTHING)
                continue
            self.named.setdefault(op.var, {})[name] = ids
            self.add(kind.table_id, Reads(id_tokens(ids)))

    def ids_of(self, op: ir.NodeScan, kind: NodeType, nodes: list[object]) -> pa.Array | None:
        """The only ids a scan can find; None if unknown."""
        if op.predicate is not None:
            anchor = named_rows(closed(op.predicate, self.bound), kind)
            if anchor is not None and anchor[0] == "id":
                return anchor[1]
        asked = self.looked_up.get(op.var)
        if asked is not None:
            return pa.concat_arrays(asked)
        made = self.made.get(op.var)
        if made is not None and _asks_for_key(op.var, kind, nodes):
            return made.drop_null()
        return None

    def resumed(self, entities: tuple[tuple[str, str, tuple[str, ...], bool], ...]) -> None:
        """Entities from the previous stage are counted there."""
        if self.handed is None:
            return
        for var, slot, types, edge in entities:
            if not edge:
                ids = self.handed.slots[slot][0].drop_null()
                self.named[var] = dict.fromkeys(types, ids)

    def hop(self, op: ir.Expand, seen: frozenset[str]) -> None:
        """The edges that end at named nodes; and of the nodes behind them more only if more is read."""
        start = self.named.get(op.src)
        one = (op.min_hops, op.max_hops) == (1, 1)
        for step in op.steps:
            ids = start.get(step.near) if start is not None and one else None
            edge = self.catalog.edges[step.edge]
            if ids is None:
                tables = _tables([step], self.catalog)
                for table in tables:
                    self.add(table, EVERYTHING)
                continue
            for side in SIDES[step.direction]:
                self.add(edge.table_id, Reads(endpoint_tokens(side, ids)))
            known = op.into and op.dst in self.named
            if not known and (op.dst in seen or op.predicate is not None):
                self.add(self.catalog.nodes[step.far].table_id, EVERYTHING)


def _asks_for_key(var: str, kind: NodeType, nodes: list[object]) -> bool:
    """Whether every property of the key is compared with a value of the row."""
    if kind.key is None:
        return False
    asked = {name for name, other in _equalities(var, nodes) if var not in variables(other)}
    return set(kind.key) <= asked


def _equalities(var: str, nodes: list[object]) -> Iterator[tuple[str, ir.Expr]]:
    """Properties of a variable that must equal some expression."""
    pairs: list[tuple[ir.Expr, ir.Expr]] = []
    for node in nodes:
        match node:
            case ir.Filter(_, predicate) | ir.NodeScan(_, _, predicate):
                equal = (p for p in conjuncts(predicate) if isinstance(p, ir.Compare))
                pairs.extend((p.left, p.right) for p in equal if p.op is ir.CompareOp.EQ)
            case ir.Join(_, _, on):
                pairs.extend(on)
    for left, right in pairs:
        for own, other in ((left, right), (right, left)):
            if isinstance(own, ir.Column) and own.var == var:
                yield own.property, other


def _read_beyond_identity(nodes: list[object]) -> frozenset[str]:
    """The variables of which more is read than which entity they are bound to."""
    found = set()
    for node in nodes:
        match node:
            case ir.Column(var=var) | ir.RefOf(var=var) | ir.EntityOf(var=var):
                found.add(var)
    return frozenset(found)


def _tables(nodes: Iterable[object], catalog: Catalog) -> set[str]:
    found: set[str] = set()
    for node in nodes:
        match node:
            case ir.NodeScan(types=types) | ir.Expand(dst_types=types) | ir.Trail(dst_types=types):
                found |= {catalog.nodes[name].table_id for name in types}
            case ir.EdgeStep(edge, _, near, far):
                found |= {catalog.nodes[name].table_id for name in (near, far)}
                found.add(catalog.edges[edge].table_id)
    return found
