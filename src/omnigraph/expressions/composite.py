"""Lists, maps, references and the expressions over them, on whole columns.

Iterating over a list means evaluating an expression for all members of all lists together, as separate
rows that each reference the row they come from.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import LimitExceeded
from omnigraph.expressions import lists
from omnigraph.expressions.arrow import RowSource, column
from omnigraph.expressions.comparing import Value, to_mask
from omnigraph.expressions.lists import Ints, Lists
from omnigraph.expressions.shapes import arrow_shape
from omnigraph.lang import ir
from omnigraph.model.frozen import frozen

NUMBERS_MAX = 50_000_000  # members range() makes for all rows of a block


@frozen
class MemberRows:
    """See `RowSource`: the members of the lists of other rows, each with all its row holds."""

    outer: RowSource
    parents: Ints
    values: dict[str, pa.Array] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return len(self.parents)

    @property
    def bound(self) -> ir.Bound:
        return self.outer.bound

    def read(self, expr: ir.Expr) -> Value:
        if isinstance(expr, ir.ValueOf) and expr.var in self.values:
            return self.values[expr.var]
        found = self.outer.read(expr)
        return found if isinstance(found, pa.Scalar) else found.take(pa.array(self.parents))

    def resolve(self, expr: ir.Expr, given: pa.Array) -> pa.Array:
        return self.outer.resolve(expr, given)


def computed(expr: ir.Expr, source: RowSource) -> pa.Array:
    """The value of a composite expression for every row."""
    match expr:
        case ir.RefGet() | ir.RefType() | ir.RefEnd() | ir.RefKeys():
            return source.resolve(expr, column(expr.part, source))
        case ir.WrittenOut() | ir.Carried():
            return source.resolve(expr, column(expr.part, source))
        case ir.Each():
            return _each(expr, source)
        case ir.Quantified():
            return _quantified(expr, source)
        case ir.Fold():
            return _fold(expr, source)
        case ir.Choice():
            return _case(expr, source)
        case _:
            return _plain(expr, source)


def _plain(expr: ir.Expr, source: RowSource) -> pa.Array:
    def of(part: ir.Expr) -> pa.Array:
        return column(part, source)

    match expr:
        case ir.MakeList(items, kind):
            return _list([of(item) for item in items], arrow_shape(kind), source.n)
        case ir.MakeMap(items, kind):
            shape = arrow_shape(kind)
            parts = [lists.fitted(of(i), f.type) for i, f in zip(items, shape, strict=True)]
            return lists.structs(parts, shape, np.ones(source.n, np.bool_))
        case ir.MakeTrail(items):
            return _trail(items, [of(item) for item in items])
        case ir.TrailGet(part, edges):
            return _field(of(part), "edges" if edges else "nodes")
        case ir.FieldOf(part, name):
            return _field(of(part), name)
        case ir.MemberAt(part, index):
            return lists.member(of(part), of(index))
        case ir.Sublist(part, low, high):
            return lists.sliced(of(part), low and of(low), high and of(high))
        case ir.JoinedLists(parts):
            return lists.joined([of(part) for part in parts])
        case ir.Numbers(first, last, step):
            return _numbers(of(first), of(last), of(step))
        case ir.Random():
            return pa.array(np.random.default_rng().random(source.n))
        case ir.As(part, kind):
            return lists.fitted(of(part), arrow_shape(kind))
        case ir.Alike(left, right):
            ours = of(left)
            return lists.alike(ours, lists.fitted(of(right), ours.type))
        case ir.Among(item, members):
            return _among(of(item), of(members))
        case _:
            raise AssertionError(f"{type(expr).__name__} is not composite")


def _field(whole: pa.Array, name: str) -> pa.Array:
    """A field of a struct column; null where the struct is."""
    return pc.struct_field(whole, name)


def _list(items: list[pa.Array], kind: pa.DataType, n: int) -> pa.Array:
    count = len(items)
    if not count:
        members = pa.nulls(0, kind.value_type)
    else:
        stacked = pa.concat_arrays([lists.fitted(item, kind.value_type) for item in items])
        order = np.arange(n)[:, None] + n * np.arange(count)[None, :]
        members = stacked.take(pa.array(order.ravel()))
    return Lists(np.full(n, count, np.int64), members, np.ones(n, np.bool_)).made()


def _trail(items: tuple[ir.Expr, ...], values: list[pa.Array]) -> pa.Array:
    """Nodes and edges one after the other; a trail between two nodes includes both."""
    nodes, edges = [lists.single(values[0])], []
    one = pa.array(np.ones(len(values[0]), np.int64))
    for i in range(1, len(items), 2):
        if isinstance(items[i].type, ir.TrailValue):
            nodes.append(lists.sliced(_field(values[i], "nodes"), one, None))
            edges.append(_field(values[i], "edges"))
        else:
            nodes.append(lists.single(values[i + 1]))
            edges.append(lists.single(values[i]))
    whole = lists.joined(nodes)
    if edges:
        used = lists.joined(edges)
    else:
        empty = np.zeros(len(whole), np.int64)
        valid = whole.is_valid().to_numpy(zero_copy_only=False)
        used = Lists(empty, pa.nulls(0, pa.int64()), valid).made()
    mask = pc.or_(whole.is_null(), used.is_null())
    return pa.StructArray.from_arrays([whole, used], names=["nodes", "edges"], mask=mask)


def _numbers(first: pa.Array, last: pa.Array, step: pa.Array) -> pa.Array:
    valid = np.logical_and.reduce([a.is_valid().to_numpy(False) for a in (first, last, step)])
    low, high, by = (a.fill_null(1).to_numpy(zero_copy_only=False) for a in (first, last, step))
    valid &= by != 0
    by = np.where(by == 0, 1, by)
    counts = np.where(valid, np.maximum((high - low) // by + 1, 0), 0).astype(np.int64)
    if counts.sum() > NUMBERS_MAX:
        raise LimitExceeded(
            f"range() would make {int(counts.sum()):,} numbers",
            help="Make fewer numbers at a time.",
            details={"limit": "numbers_max", "limit_value": NUMBERS_MAX},
        )
    place = lists.ranges(np.zeros(len(counts), np.int64), counts)
    members = np.repeat(low, counts) + place * np.repeat(by, counts)
    return Lists(counts, pa.array(members.astype(np.int64)), valid).made()


def _among(item: pa.Array, members: pa.Array) -> pa.Array:
    apart = lists.taken_apart(members)
    owners = apart.owners
    wanted = lists.fitted(item.take(pa.array(owners)), apart.members.type)
    yes, _, unknown = lists.counted(lists.alike(apart.members, wanted), owners, len(item))
    return pa.array(yes > 0, mask=~apart.valid | ((yes == 0) & (unknown > 0)))


def _case(expr: ir.Choice, source: RowSource) -> pa.Array:
    """The conditions decide for each row which of the values is taken."""
    kind = arrow_shape(expr.type)
    chosen = np.full(source.n, len(expr.whens), np.int64)
    for number in reversed(range(len(expr.whens))):
        test = column(expr.whens[number][0], source)
        chosen[to_mask(test)] = number
    values = [lists.fitted(column(v, source), kind) for _, v in expr.whens]
    values.append(lists.fitted(column(expr.default, source), kind))
    index = chosen * source.n + np.arange(source.n)
    return pa.concat_arrays(values).take(pa.array(index))


# --- going through lists -------------------------------------------------------------------------------------------


def _each(expr: ir.Each, source: RowSource) -> pa.Array:
    apart = lists.taken_apart(column(expr.part, source))
    counts, owners, members = apart.counts, apart.owners, apart.members
    if expr.predicate is not None:
        inner = MemberRows(source, owners, {expr.var: members})
        kept = np.flatnonzero(to_mask(column(expr.predicate, inner)))
        owners, members = owners[kept], members.take(pa.array(kept))
        counts = np.bincount(owners, minlength=source.n).astype(np.int64)
    inner = MemberRows(source, owners, {expr.var: members})
    made = lists.fitted(column(expr.body, inner), arrow_shape(expr.type).value_type)
    return Lists(counts, made, apart.valid).made()


def _quantified(expr: ir.Quantified, source: RowSource) -> pa.Array:
    apart = lists.taken_apart(column(expr.part, source))
    inner = MemberRows(source, apart.owners, {expr.var: apart.members})
    yes, no, unknown = lists.counted(column(expr.predicate, inner), apart.owners, source.n)
    truth, unsettled = _answer(expr.test, yes, no, unknown)
    return pa.array(truth, mask=~apart.valid | unsettled)


def _answer(test: ir.Test, yes: Ints, no: Ints, unknown: Ints) -> tuple[lists.Mask, lists.Mask]:
    """The result for these numbers of true, false and unknown members, and whether it is unknown."""
    match test:
        case ir.Test.ALL:
            return no + unknown == 0, (no == 0) & (unknown > 0)
        case ir.Test.ANY:
            return yes > 0, (yes == 0) & (unknown > 0)
        case ir.Test.NONE:
            return yes + unknown == 0, (yes == 0) & (unknown > 0)
        case ir.Test.SINGLE:
            return yes == 1, (yes < 2) & (unknown > 0)


def _fold(expr: ir.Fold, source: RowSource) -> pa.Array:
    """The first members of all lists, then all second ones, and so on."""
    kind = arrow_shape(expr.type)
    apart = lists.taken_apart(column(expr.part, source))
    total = lists.fitted(column(expr.first, source), kind)
    for place in range(int(apart.counts.max(initial=0))):
        rows = np.flatnonzero(apart.counts > place)
        given = {
            expr.total: total.take(pa.array(rows)),
            expr.var: apart.members.take(pa.array(apart.starts[rows] + place)),
        }
        made = lists.fitted(column(expr.body, MemberRows(source, rows, given)), kind)
        index = np.arange(source.n)
        index[rows] = source.n + np.arange(len(rows))
        total = pa.concat_arrays([total, made]).take(pa.array(index))
    return total.take(pa.array(np.arange(source.n), mask=~apart.valid))
