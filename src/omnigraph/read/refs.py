"""References to entities: numbers made of the type and the position, and what they name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.expressions import lists
from omnigraph.expressions.comparing import to_mask
from omnigraph.expressions.lists import Lists
from omnigraph.expressions.shapes import arrow_shape
from omnigraph.lang import ir
from omnigraph.model.types import PropType
from omnigraph.read import values
from omnigraph.read.arrays import Ints, Mask, Positions
from omnigraph.read.context import Context
from omnigraph.read.rows import Entities, Paths, Variable, step_counts

POSITION_BITS = 32
TEXT = pa.string()
Remade = Callable[[pa.Array, ir.RefValue, Context], pa.Array]
CARRIED = pa.struct([("type", TEXT), ("id", TEXT)])
EDGE = "-"  # before the name of an edge type, for a node type may have the same


def _numbers(ctx: Context) -> dict[str, int]:
    """The number of each type of the schema that is read."""
    if not ctx.numbers:
        catalog = ctx.snapshot.catalog
        names = (*sorted(catalog.nodes), *(EDGE + name for name in sorted(catalog.edges)))
        ctx.numbers.update({name: number for number, name in enumerate(names)})
    return ctx.numbers


def _number_of(name: str, edge: bool, ctx: Context) -> int:
    return _numbers(ctx)[EDGE + name if edge else name]


def references(found: Entities, ctx: Context) -> pa.Array:
    """Bound entities as references; null where unbound."""
    return pa.array(_encoded(found, ctx), mask=found.position < 0)


def _encoded(found: Entities, ctx: Context) -> Ints:
    if not found.types:
        return np.zeros(len(found.position), np.int64)
    numbers = np.array([_number_of(t, found.edge, ctx) for t in found.types], np.int64)
    own = numbers[0] if found.code is None else numbers[found.code]
    encoded: Ints = (own << POSITION_BITS) | np.maximum(found.position, 0).astype(np.int64)
    return encoded


def entities(given: pa.Array, types: tuple[str, ...], edge: bool, ctx: Context) -> Entities:
    """What references name, which all have one of these types."""
    known = given.is_valid().to_numpy(zero_copy_only=False)
    plain = given.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    position = np.where(known, plain & (2**POSITION_BITS - 1), -1).astype(np.int32)
    if len(types) == 1:
        return Entities(types, position, None, edge)
    local = np.zeros(len(_numbers(ctx)), np.int32)
    for place, name in enumerate(types):
        local[_number_of(name, edge, ctx)] = place
    return Entities(types, position, local[plain >> POSITION_BITS], edge)


def trails(found: Paths, ctx: Context) -> pa.Array:
    """Bound paths as references."""
    assert found.nodes is not None  # noqa: S101 - the planner keeps steps whenever they are read
    assert found.edges is not None  # noqa: S101
    valid = found.length >= 0
    parts = [
        Lists(counts, references(members, ctx), valid).made()
        for members, counts in zip(
            (found.nodes, found.edges), step_counts(found.length), strict=True
        )
    ]
    mask = None if valid.all() else pa.array(~valid)
    return pa.StructArray.from_arrays(parts, names=["nodes", "edges"], mask=mask)


def apart(left: Variable, right: Variable) -> pa.Array:
    """Whether two variables, each edges or paths, have no edge in common, row by row."""
    ours, counts = _edges(left)
    theirs, others = _edges(right)
    rows = np.repeat(np.arange(len(counts)), counts * others)
    pairs = counts * others
    place = lists.ranges(np.zeros(len(pairs), np.int64), pairs)
    inner = np.maximum(others[rows], 1)
    first = ours.take((np.cumsum(counts) - counts)[rows] + place // inner)
    second = theirs.take((np.cumsum(others) - others)[rows] + place % inner)
    from omnigraph.read.expand import same_entity

    shared = np.bincount(rows[same_entity(first, second)], minlength=len(counts))
    return pa.array(shared == 0)


def _edges(variable: Variable) -> tuple[Entities, Ints]:
    if isinstance(variable, Entities):
        return variable, np.ones(len(variable.position), np.int64)
    assert isinstance(variable, Paths)  # noqa: S101
    assert variable.edges is not None  # noqa: S101
    return variable.edges, np.maximum(variable.length, 0)


# --- what is read of them ------------------------------------------------------------------------------------------


def resolve(expr: ir.Expr, given: pa.Array, ctx: Context) -> pa.Array:
    """The value of an expression over references."""
    match expr:
        case ir.RefGet(part, name, kind):
            return _property(_named(part, given, ctx), name, kind, ctx)
        case ir.RefType(part):
            return _named(part, given, ctx).type_names()
        case ir.RefEnd(part, end):
            return _ends(_named(part, given, ctx), end, ctx)
        case ir.RefKeys(part):
            return _keys(_named(part, given, ctx), ctx)
        case ir.WrittenOut(part):
            return _written(given, part.type, ctx)
        case ir.Carried(part):
            return each_reference(given, part.type, ctx, carried)
        case _:
            raise AssertionError(f"{type(expr).__name__} reads no reference")


def _named(part: ir.Expr, given: pa.Array, ctx: Context) -> Entities:
    kind = part.type
    assert isinstance(kind, ir.RefValue)  # noqa: S101 - the languages see to it
    return entities(given, kind.types, kind.edge, ctx)


def _property(found: Entities, name: str, kind: PropType, ctx: Context) -> pa.Array:
    shape = arrow_shape(kind)

    def fetch(i: int, positions: Positions) -> pa.Array:
        columns = ctx.columns(found.types[i], found.edge)
        if name != "id" and name not in columns.kind.properties:
            return pa.nulls(len(positions), shape)
        return lists.fitted(columns.take(name, positions), shape)

    return values.by_type(found, fetch)


def _ends(found: Entities, end: ir.End, ctx: Context) -> pa.Array:
    def fetch(i: int, positions: Positions) -> pa.Array:
        edge = ctx.snapshot.catalog.edges[found.types[i]]
        name = edge.from_type if end is ir.End.SRC else edge.to_type
        ids = ctx.columns(found.types[i], edge=True).take(end.value, positions)
        place = ctx.columns(name).find_all(ids)
        return references(Entities((name,), place.astype(np.int32)), ctx)

    return values.by_type(found, fetch)


def _keys(found: Entities, ctx: Context) -> pa.Array:
    def fetch(i: int, positions: Positions) -> pa.Array:
        columns = ctx.columns(found.types[i], found.edge)
        names = sorted(n for n, p in columns.kind.properties.items() if not p.type.is_blob)
        there = np.zeros((len(positions), len(names)), np.bool_)
        for place, name in enumerate(names):
            there[:, place] = columns.take(name, positions).is_valid().to_numpy(False)
        members = pa.array(names, pa.string()).take(pa.array(np.nonzero(there)[1]))
        return Lists(there.sum(axis=1), members, np.ones(len(positions), np.bool_)).made()

    return values.by_type(found, fetch)


def _written(given: pa.Array, kind: ir.ValueType, ctx: Context) -> pa.Array:
    """A value with every reference in it as a whole entity, every trail as a path, and temporal values as texts."""
    match kind:
        case ir.RefValue((), _):
            return pa.nulls(len(given), pa.string())
        case ir.RefValue(types, edge):
            found = entities(given, types, edge, ctx)
            return values.entities(found, ir.EntityValue(types), ctx)
        case ir.TrailValue():
            return _path(given, kind, ctx)
        case ir.TemporalValue():
            from omnigraph.expressions.temporal import texts

            return texts(given, kind)
        case ir.ListValue(item):
            apart = lists.taken_apart(given)
            return Lists(apart.counts, _written(apart.members, item, ctx), apart.valid).made()
        case ir.MapValue(fields):
            parts = [
                _written(pc.struct_field(given, [i]), k, ctx) for i, (_, k) in enumerate(fields)
            ]
            shape = pa.struct([(n, a.type) for (n, _), a in zip(fields, parts, strict=True)])
            return lists.structs(parts, shape, given.is_valid().to_numpy(zero_copy_only=False))
        case _:
            return given


def _path(given: pa.Array, kind: ir.TrailValue, ctx: Context) -> pa.Array:
    parts = []
    for name, types in (("nodes", kind.nodes), ("edges", kind.edges)):
        apart = lists.taken_apart(pc.struct_field(given, name))
        if types:
            named = entities(apart.members, types, name == "edges", ctx)
            ids = values.entity_column(named, "id", ctx)
        else:
            ids = pa.nulls(len(apart.members), pa.string())
        parts.append(Lists(apart.counts, ids, apart.valid).made())
    length = pc.cast(pc.list_value_length(parts[1]), pa.int64())
    mask = given.is_null() if given.null_count else None
    names = [part.value for part in ir.PathPart]
    return pa.StructArray.from_arrays([*parts, length], names=names, mask=mask)


# --- from one state to another -------------------------------------------------------------------------------------


def each_reference(given: pa.Array, kind: ir.ValueType, ctx: Context, made: Remade) -> pa.Array:
    """A value with every reference in it made into something else."""
    match kind:
        case ir.RefValue():
            return made(given, kind, ctx)
        case ir.TrailValue() | ir.MapValue():
            fields = _fields(kind)
            parts = [each_reference(pc.struct_field(given, n), k, ctx, made) for n, k in fields]
            shape = pa.struct([(n, a.type) for (n, _), a in zip(fields, parts, strict=True)])
            return lists.structs(parts, shape, _valid(given))
        case ir.ListValue(item):
            apart = lists.taken_apart(given)
            members = each_reference(apart.members, item, ctx, made)
            return Lists(apart.counts, members, apart.valid).made()
        case _:
            return given


def carried(given: pa.Array, kind: ir.RefValue, ctx: Context) -> pa.Array:
    """References as the types and the ids of what they name."""
    named = entities(given, kind.types, kind.edge, ctx)
    ids = values.entity_column(named, "id", ctx) if kind.types else pa.nulls(len(given), TEXT)
    return lists.structs([named.type_names(), ids], CARRIED, _valid(given))


def arrived(given: pa.Array, kind: ir.RefValue, ctx: Context) -> pa.Array:
    """The inverse of `carried`, in this state; what no longer exists is null."""
    ids, names = pc.struct_field(given, "id"), pc.struct_field(given, "type")
    return references(found(ids, names, kind.types, kind.edge, ctx), ctx)


def found(
    ids: pa.Array, names: pa.Array, types: tuple[str, ...], edge: bool, ctx: Context
) -> Entities:
    """The entities with these ids and types; unbound if it does not exist."""
    position = np.full(len(ids), -1, np.int32)
    code = np.zeros(len(ids), np.int32)
    for place, name in enumerate(types):
        mine = np.flatnonzero(to_mask(pc.equal(names, name)))
        if len(mine):
            wanted = ids.take(pa.array(mine))
            position[mine] = ctx.columns(name, edge).find_all(wanted)
            code[mine] = place
    return Entities(types, position, None if len(types) == 1 else code, edge)


def _fields(kind: ir.TrailValue | ir.MapValue) -> tuple[tuple[str, ir.ValueType], ...]:
    if isinstance(kind, ir.MapValue):
        return kind.fields
    nodes, edges = ir.RefValue(kind.nodes), ir.RefValue(kind.edges, edge=True)
    return (("nodes", ir.ListValue(nodes)), ("edges", ir.ListValue(edges)))


def _valid(given: pa.Array) -> Mask:
    valid: Mask = given.is_valid().to_numpy(zero_copy_only=False)
    return valid
