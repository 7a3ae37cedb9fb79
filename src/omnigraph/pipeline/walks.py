"""Hops on Spark: joins with adjacency, and breadth-first walks one level at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.lang import ir
from omnigraph.lang.tree import conjunction
from omnigraph.pipeline.rowset import Bag, RowColumn, fresh_name
from omnigraph.pipeline.scans import PARTS, Scanner

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NEAR, FAR, EDGE = ("near_type", "near"), ("far_type", "far"), ("edge_type", "edge")
SOURCE = ("source_type", "source")
Pair = tuple[str, str]
Ids = tuple[str, ...]
FEW = 4_096  # nodes whose edges a scan is asked for by name


def starts_anywhere(op: ir.Expand, scanner: Scanner) -> bool:
    """Whether a hop starts from all nodes of its source's types, and reads nothing of them: edges name them all."""
    match op.input:
        case ir.NodeScan(var, types, None):
            near = {step.near for step in op.steps}
            one_hop = (op.min_hops, op.max_hops) == (1, 1)
            free = var == op.src and not scanner.fields.get(var) and not op.into
            return one_hop and free and near <= set(types)
        case _:
            return False


def expand(op: ir.Expand, rows: Bag | None, scanner: Scanner) -> Bag:
    """For each row the nodes its source reaches; without rows, for each node."""
    if rows is not None and (op.min_hops, op.max_hops) != (1, 1):
        return _arrived(op, rows, Bag(_reached(op, rows, scanner), {}), scanner)
    near = None
    if rows is not None and rows.few:
        rows = rows.with_frame(rows.frame.localCheckpoint())
        near = _few(rows.frame, rows.slots[op.src, "id"].name)
    if op.edge_var is not None:
        ways = _along_edges(op, op.edge_var, scanner, near)
    else:
        ways = Bag(_renamed(_pairs(op.steps, scanner, near), NEAR, SOURCE), {})
    return replace(_arrived(op, rows, ways, scanner), few=near is not None)


# --- ways from few nodes -------------------------------------------------------------------------------------------


def _few(frame: DataFrame, column: str) -> Ids | None:
    """The ids in a column, if they are so few that the edges at them can be asked for."""
    found = frame.select(column).dropna().distinct().limit(FEW + 1).collect()
    return None if len(found) > FEW else tuple(sorted(row[0] for row in found))


def _at_nodes(step: ir.EdgeStep, var: str, near: Ids | None) -> ir.Expr | None:
    """The condition that a step starts at one of these nodes."""
    if near is None:
        return None
    ends = {ir.Direction.OUT: [ir.End.SRC], ir.Direction.IN: [ir.End.DST]}
    ids = ir.Literal(near, ir.STRINGS)
    tests = [ir.In(ir.EndpointOf(var, e), ids) for e in ends.get(step.direction, list(ir.End))]
    return tests[0] if len(tests) == 1 else ir.Or(tuple(tests))


@dataclass(slots=True)
class _LevelWays:
    """The ways of a walk, level by level: while few nodes are reached the edges at them are read, then all, once."""

    read: Callable[[Ids | None], DataFrame]
    few: bool
    every: DataFrame | None = None

    def of(self, level: DataFrame) -> DataFrame:
        """At least the ways from the near ends of a level."""
        near = _few(level, NEAR[1]) if self.few else None
        if near is not None:
            return self.read(near)
        self.few = False
        if self.every is None:
            self.every = self.read(None).localCheckpoint()
        return self.every


# --- ways of one hop -----------------------------------------------------------------------------------------------


def _pairs(steps: tuple[ir.EdgeStep, ...], scanner: Scanner, near: Ids | None = None) -> DataFrame:
    """The pairs of ends of one hop, each once; those from some nodes, or all."""
    by_types: dict[Pair, list[ir.EdgeStep]] = {}
    for step in steps:
        by_types.setdefault((step.near, step.far), []).append(step)
    found = [_pairs_between(types, own, scanner, near) for types, own in by_types.items()]
    return reduce(lambda a, b: a.unionByName(b), found)


def _pairs_between(
    types: Pair, steps: list[ir.EdgeStep], scanner: Scanner, near: Ids | None
) -> DataFrame:
    """The pairs of nodes of two types, of which Spark compares only the ids.

    They are partitioned by the near end before they are compared, as the next join needs that partitioning.
    """
    from pyspark.sql import functions as f

    pairs = adjacency(tuple(steps), scanner, near=near).select(NEAR[1], FAR[1])
    catalog = scanner.run.pinned.snapshot().catalog
    one_way = len(steps) == 1 and steps[0].direction is not ir.Direction.BOTH
    if not (one_way and catalog.edges[steps[0].edge].key == ("src", "dst")):
        pairs = pairs.repartition(NEAR[1]).distinct()
    names = zip((NEAR[0], FAR[0]), types, strict=True)
    return pairs.withColumns({column: f.lit(name) for column, name in names})


def adjacency(
    steps: tuple[ir.EdgeStep, ...],
    scanner: Scanner,
    *,
    edges: bool = False,
    var: str = "",
    predicate: ir.Expr | None = None,
    near: Ids | None = None,
) -> DataFrame:
    """Every way to take one hop: near end, far end, and with `edges` the edge, of those that satisfy a predicate; with
    `near` none but those from these nodes are needed."""
    from pyspark.sql import functions as f

    found = []
    for step in steps:
        parts = PARTS if edges else PARTS[1:]
        tests = [test for test in (_at_nodes(step, var, near), predicate) if test is not None]
        wanted = conjunction(tuple(tests))
        bag = scanner.scan(var, (step.edge,), edge=True, predicate=wanted, parts=parts)
        names = (
            [f.lit(step.edge).alias(EDGE[0]), bag.col((var, "id")).alias(EDGE[1])] if edges else []
        )
        found.append(_orientations(step, bag, var, names))
    return reduce(lambda a, b: a.unionByName(b), found)


def _orientations(step: ir.EdgeStep, bag: Bag, var: str, more: Sequence[Column | str]) -> DataFrame:
    """The ends of edges in walking direction. A self-loop of an undirected step occurs once."""
    from pyspark.sql import functions as f

    src, dst = bag.col((var, "src")), bag.col((var, "dst"))

    def way(near: Column, far: Column) -> DataFrame:
        return bag.frame.select(
            f.lit(step.near).alias(NEAR[0]),
            near.alias(NEAR[1]),
            f.lit(step.far).alias(FAR[0]),
            far.alias(FAR[1]),
            *more,
        )

    match step.direction:
        case ir.Direction.OUT:
            return way(src, dst)
        case ir.Direction.IN:
            return way(dst, src)
        case ir.Direction.BOTH:
            return way(src, dst).unionByName(way(dst, src).where(f"{NEAR[1]} <> {FAR[1]}"))


def _renamed(frame: DataFrame, old: Pair, new: Pair) -> DataFrame:
    return frame.withColumnsRenamed(dict(zip(old, new, strict=True)))


def _reached(op: ir.Expand, rows: Bag, scanner: Scanner) -> DataFrame:
    """Pairs of a source and a node at a requested distance."""
    from pyspark.sql import functions as f

    ways = _LevelWays(lambda near: _pairs(op.steps, scanner, near), rows.few)
    itself = f"{NEAR[0]} = {FAR[0]} AND {NEAR[1]} = {FAR[1]}"
    start = _sources(op.src, rows)
    level = start.withColumns(
        {NEAR[0]: f.col(SOURCE[0]), NEAR[1]: f.col(SOURCE[1])}
    ).localCheckpoint()
    seen, found = level, [level] if op.min_hops == 0 else []
    for distance in range(1, op.max_hops + 1):
        known = ways.of(level)
        if distance == op.min_hops == 1:  # a source is one hop from itself by its own loop
            loops = known.where(itself).select(*NEAR)
            found.append(level.join(loops, list(NEAR), "left_semi"))
        known = known.where(f"NOT ({itself})")
        steps = level.join(known, list(NEAR)).select(*SOURCE, *FAR).distinct()
        level = (
            _renamed(steps, FAR, NEAR).join(seen, [*SOURCE, *NEAR], "left_anti").localCheckpoint()
        )
        if level.isEmpty():
            break
        seen = seen.unionByName(level)
        if distance >= op.min_hops:
            found.append(level)
    none = level.limit(0)
    pairs = reduce(lambda a, b: a.unionByName(b), found, none)
    return _renamed(pairs, NEAR, FAR)


def _at(bag: Bag, var: str, place: Pair) -> Column:
    """Whether a variable is bound to the node in two columns."""
    from pyspark.sql import functions as f

    same_type = bag.col((var, "type")) == f.col(place[0])
    return same_type & (bag.col((var, "id")) == f.col(place[1]))


def trail(op: ir.Trail, rows: Bag, scanner: Scanner) -> Bag:
    """A row for every walk that follows no edge twice: level by level, each with the edges it has followed."""
    from pyspark.sql import functions as f

    texts = pa.list_(pa.string())
    kinds = dict.fromkeys(TRAIL_PARTS, texts) | {"length": pa.int64()}
    slots = {(op.path_var, part): RowColumn(fresh_name(), kind) for part, kind in kinds.items()}
    named = [f.col(part).alias(slots[op.path_var, part].name) for part in TRAIL_PARTS]
    length = f.size("edges").cast("long").alias(slots[op.path_var, "length"].name)
    ways = _trails(op, rows, scanner).select(*SOURCE, *FAR, *named, length)
    return _arrived(op, rows, Bag(ways, slots), scanner)


TRAIL_PARTS = ("nodes", "edges", "nodes types", "edges types")


def _trails(op: ir.Trail, rows: Bag, scanner: Scanner) -> DataFrame:
    from pyspark.sql import functions as f

    def read(near: Ids | None) -> DataFrame:
        var, predicate = op.edge_var, op.edge_predicate
        return adjacency(op.steps, scanner, edges=True, var=var, predicate=predicate, near=near)

    ways = _LevelWays(read, rows.few)
    none = f.array().cast("array<string>")
    level = (
        _sources(op.src, rows)
        .select(
            *SOURCE,
            f.col(SOURCE[0]).alias(NEAR[0]),
            f.col(SOURCE[1]).alias(NEAR[1]),
            f.array(SOURCE[1]).alias("nodes"),
            none.alias("edges"),
            f.array(SOURCE[0]).alias("nodes types"),
            none.alias("edges types"),
            none.alias("followed"),
        )
        .localCheckpoint()
    )
    edge = f.concat(EDGE[0], f.lit("/"), EDGE[1])

    def longer(part: str, new: str) -> Column:
        parts = (f.array(new), part) if op.backwards else (part, f.array(new))
        return f.concat(*parts).alias(part)

    found, distance = [level] if op.min_hops == 0 else [], 0
    while op.max_hops is None or distance < op.max_hops:
        distance += 1
        steps = level.join(ways.of(level), list(NEAR)).where(~f.array_contains("followed", edge))
        level = steps.select(
            *SOURCE,
            f.col(FAR[0]).alias(NEAR[0]),
            f.col(FAR[1]).alias(NEAR[1]),
            longer("nodes", FAR[1]),
            longer("edges", EDGE[1]),
            longer("nodes types", FAR[0]),
            longer("edges types", EDGE[0]),
            f.concat("followed", f.array(edge)).alias("followed"),
        ).localCheckpoint()
        if level.isEmpty():
            break
        if distance >= op.min_hops:
            found.append(level)
    pairs = reduce(lambda a, b: a.unionByName(b), found, level.limit(0))
    return _renamed(pairs, NEAR, FAR)


def _sources(var: str, rows: Bag) -> DataFrame:
    """The start nodes of walks, each once."""
    kind, id = rows.col((var, "type")), rows.col((var, "id"))
    return rows.frame.select(kind.alias(SOURCE[0]), id.alias(SOURCE[1])).dropna().distinct()


def _arrived(
    op: ir.Expand | ir.ShortestPath | ir.Trail, rows: Bag | None, ways: Bag, scanner: Scanner
) -> Bag:
    """Rows joined with their destinations, with the bindings of the ways and the destination's columns."""
    if op.into and rows is not None:
        both = _at(rows, op.src, SOURCE) & _at(rows, op.dst, FAR)
        frame = rows.frame.join(ways.frame, both, "inner" if ways.slots else "left_semi")
        return rows.also(frame.drop(*SOURCE, *FAR), ways)
    if rows is None:
        gone = _bound(ways, op.src, SOURCE, {step.near for step in op.steps})
    else:
        gone = rows.also(rows.frame.join(ways.frame, _at(rows, op.src, SOURCE)), ways)
    there = _destination(op, gone, scanner)
    return there.with_frame(there.frame.drop(*SOURCE, *FAR))


def _destination(op: ir.Expand | ir.ShortestPath | ir.Trail, gone: Bag, scanner: Scanner) -> Bag:
    """Add the node each row has reached. Edges lead to existing nodes, so it is read only if its columns are needed."""
    late = isinstance(op, ir.Expand) and op.edge_var is not None  # a condition on edges, too
    early = None if late else op.predicate
    far = {step.far for step in op.steps}
    if early is None and not scanner.fields.get(op.dst) and far <= set(op.dst_types):
        return _bound(gone, op.dst, FAR, op.dst_types)
    there = scanner.scan(op.dst, op.dst_types, predicate=early)
    return gone.also(gone.frame.join(there.frame, _at(there, op.dst, FAR)), there)


def _bound(bag: Bag, var: str, place: Pair, types: Iterable[str]) -> Bag:
    """Bind a variable to the nodes in two columns."""
    from pyspark.sql import functions as f

    slots = {(var, part): RowColumn(fresh_name(), pa.string()) for part in ("type", "id")}
    named = zip(slots.values(), place, strict=True)
    frame = bag.frame.withColumns({slot.name: f.col(name) for slot, name in named})
    return bag.also(frame, Bag(frame, slots, {var: tuple(types)}))


def _along_edges(op: ir.Expand, var: str, scanner: Scanner, near: Ids | None) -> Bag:
    """One way for each stored edge and orientation; those from some nodes, or all."""
    types = tuple(dict.fromkeys(step.edge for step in op.steps))
    tests = [_at_nodes(step, var, near) for step in op.steps]
    wanted = None if near is None else ir.Or(tuple(test for test in tests if test is not None))
    edges = scanner.scan(var, types, edge=True, predicate=wanted)
    found = []
    for step in op.steps:
        own = edges.frame.where(edges.col((var, "type")) == step.edge)
        found.append(_orientations(step, edges.with_frame(own), var, edges.names()))
    pairs = reduce(lambda a, b: a.unionByName(b), found)
    return edges.with_frame(_renamed(pairs, NEAR, SOURCE))


def shortest_path(op: ir.ShortestPath, rows: Bag, scanner: Scanner) -> Bag:
    """One shortest path for each row and destination: the one whose list of edge ids is smallest."""
    from pyspark.sql import functions as f

    ids = pa.list_(pa.string())
    kinds = {"nodes": ids, "edges": ids, "length": pa.int64()}
    slots = {(op.path_var, part): RowColumn(fresh_name(), kind) for part, kind in kinds.items()}
    nodes, edges, length = (slot.name for slot in slots.values())
    types = one_type_each(op.steps)
    more = []
    for part, name in zip(("nodes", "edges"), types or (), strict=False):
        slot = slots[op.path_var, f"{part} types"] = RowColumn(fresh_name(), ids)
        more.append(f.array_repeat(f.lit(name), f.size(part)).alias(slot.name))
    ways = _paths(op, rows, scanner).select(
        *SOURCE,
        *FAR,
        f.col("nodes").alias(nodes),
        f.col("edges").alias(edges),
        f.size("edges").cast("long").alias(length),
        *more,
    )
    return _arrived(op, rows, Bag(ways, slots), scanner)


def one_type_each(steps: tuple[ir.EdgeStep, ...]) -> tuple[str, str] | None:
    """The type of all nodes and that of all edges on a walk, if it has one of each."""
    nodes = {end for step in steps for end in (step.near, step.far)}
    edges = {step.edge for step in steps}
    return (nodes.pop(), edges.pop()) if len(nodes) == len(edges) == 1 else None


def _paths(op: ir.ShortestPath, rows: Bag, scanner: Scanner) -> DataFrame:
    """Level by level the best path to every new node; the best of best paths is the best."""
    from pyspark.sql import functions as f

    itself = f"{NEAR[0]} = {FAR[0]} AND {NEAR[1]} = {FAR[1]}"
    ways = _LevelWays(lambda near: adjacency(op.steps, scanner, edges=True, near=near), rows.few)
    start = _sources(op.src, rows)
    none = f.array().cast("array<string>")
    level = start.select(
        *SOURCE,
        f.col(SOURCE[0]).alias(NEAR[0]),
        f.col(SOURCE[1]).alias(NEAR[1]),
        f.array(SOURCE[1]).alias("nodes"),
        none.alias("edges"),
    ).localCheckpoint()

    def longer(to: str) -> list[object]:
        node, edge = f.array(to), f.array(EDGE[1])
        turned = op.backwards
        nodes = f.concat(node, "nodes") if turned else f.concat("nodes", node)
        edges = f.concat(edge, "edges") if turned else f.concat("edges", edge)
        return [nodes.alias("nodes"), edges.alias("edges")]

    seen, found = level.select(*SOURCE, *NEAR), [level] if op.min_hops == 0 else []
    for distance in range(1, op.max_hops + 1):
        known = ways.of(level)
        if distance == op.min_hops == 1:
            loops = known.where(itself).groupBy(*NEAR).agg(f.min(EDGE[1]).alias(EDGE[1]))
            looped = level.join(loops, list(NEAR)).select(*SOURCE, *NEAR, *longer(NEAR[1]))
            found.append(looped)
        known = known.where(f"NOT ({itself})")
        steps = level.join(known, list(NEAR)).select(*SOURCE, *FAR, *longer(FAR[1]))
        new = _renamed(steps, FAR, NEAR).join(seen, [*SOURCE, *NEAR], "left_anti")
        best = new.groupBy(*SOURCE, *NEAR).agg(f.min(f.struct("edges", "nodes")).alias("best"))
        level = best.select(*SOURCE, *NEAR, "best.nodes", "best.edges").localCheckpoint()
        if level.isEmpty():
            break
        seen = seen.unionByName(level.select(*SOURCE, *NEAR))
        if distance >= op.min_hops:
            found.append(level)
    pairs = reduce(lambda a, b: a.unionByName(b), found, level.limit(0))
    return _renamed(pairs, NEAR, FAR)
