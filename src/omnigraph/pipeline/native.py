"""Expressions with the same meaning in Spark: plain columns, and tests of strings, integers and booleans.

All others are evaluated in tasks by the local engine's code (`rowset.Formula`), for which rows leave the Java process
and return. Floats are among them, because NaN equals itself in Spark, and so are times, which have zones.
"""

from __future__ import annotations

import operator
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as at

from omnigraph.expressions.comparing import fit
from omnigraph.expressions.scalar import OPERATORS
from omnigraph.expressions.scalar import evaluate as evaluate_constant
from omnigraph.lang import ir
from omnigraph.lang.ir import AggregateFunction as F
from omnigraph.lang.ir import CompareOp as Op
from omnigraph.lang.tree import conjunction, conjuncts, is_constant
from omnigraph.model.frozen import frozen
from omnigraph.pipeline.rowset import Bag, ddl, expression_type, key_of

if TYPE_CHECKING:
    from pyspark.sql import Column


class _NotNative(Exception):
    """Spark has no expression known to have the same meaning."""


def native(expr: ir.Expr, bag: Bag, bound: ir.Bound) -> Column | None:
    """An expression over the rows of a bag as a Spark column; None if its meaning might differ."""
    try:
        return _InSpark(bag, bound).value(expr)
    except _NotNative:
        return None


def divided(predicate: ir.Expr, bag: Bag, bound: ir.Bound) -> tuple[list[Column], ir.Expr | None]:
    """The parts of a condition that Spark evaluates itself, and the rest."""
    tests, rest = [], []
    for part in conjuncts(predicate):
        found = native(part, bag, bound)
        if found is None:
            rest.append(part)
        else:
            tests.append(found)
    return tests, conjunction(tuple(rest))


@frozen
class _InSpark:
    bag: Bag
    bound: ir.Bound

    def value(self, expr: ir.Expr) -> Column:
        key = key_of(expr)
        if key is not None:
            slot = self.bag.slots.get(key)
            if slot is None or slot.type != expression_type(expr):
                raise _NotNative
            return self.bag.col(key)
        return self._test(expr)

    def _test(self, expr: ir.Expr) -> Column:
        match expr:
            case ir.And(parts):
                return reduce(operator.and_, map(self.value, parts))
            case ir.Or(parts):
                return reduce(operator.or_, map(self.value, parts))
            case ir.Not(part):
                return ~self.value(part)
            case ir.IsNull(part, negated):
                column = self.value(part)
                return column.isNotNull() if negated else column.isNull()
            case ir.Compare(op, left, right) if is_constant(left):
                return self._with_constant(op.flipped, right, left)
            case ir.Compare(op, left, right) if is_constant(right):
                return self._with_constant(op, left, right)
            case ir.Compare(op, left, right):
                return self._between(op, left, right)
            case ir.In(item, members) if is_constant(members):
                return self._among(item, evaluate_constant(members, self.bound))
            case ir.Same(left, right):
                return self._same(left, right)
        raise _NotNative

    def _between(self, op: Op, left: ir.Expr, right: ir.Expr) -> Column:
        kinds = expression_type(left), expression_type(right)
        integers = all(map(at.is_integer, kinds))
        if not integers and (kinds[0] != kinds[1] or not _is_plain(kinds[0])):
            raise _NotNative
        found: Column = OPERATORS[op](self.value(left), self.value(right))
        return found

    def _with_constant(self, op: Op, part: ir.Expr, constant: ir.Expr) -> Column:
        return self._compared(op, part, evaluate_constant(constant, self.bound))

    def _compared(self, op: Op, part: ir.Expr, value: Any) -> Column:
        column, kind = self.value(part), expression_type(part)
        if value is None:
            return _truth(None)
        if at.is_integer(kind) and isinstance(value, int | float) and not isinstance(value, bool):
            fitted = fit(op, value, kind)
            if isinstance(fitted, bool):
                return _where_known(column, fitted)
            op, value = fitted
        elif not (_is_plain(kind) and isinstance(value, str if at.is_string(kind) else bool)):
            raise _NotNative
        found: Column = OPERATORS[op](column, _literal(value, kind))
        return found

    def _among(self, item: ir.Expr, members: Any) -> Column:
        if members is None:
            return _truth(None)
        tests = [self._compared(Op.EQ, item, member) for member in members if member is not None]
        return reduce(operator.or_, tests, _where_known(self.value(item), False))

    def _same(self, left: str, right: str) -> Column:
        keys = [(var, part) for var in (left, right) for part in ("id", "type")]
        if any(key not in self.bag.slots for key in keys):
            raise _NotNative
        first, its_type, second, other_type = map(self.bag.col, keys)
        found: Column = (first == second) & (its_type == other_type)
        return found


def _is_plain(kind: pa.DataType) -> bool:
    return bool(at.is_string(kind) or at.is_integer(kind) or at.is_boolean(kind))


def _literal(value: Any, kind: pa.DataType) -> Column:
    from pyspark.sql import functions as f

    given = Decimal(value) if at.is_uint64(kind) else value
    return f.lit(given).cast(ddl({"value": kind})["value"].dataType)


def _truth(value: bool | None) -> Column:
    from pyspark.sql import functions as f

    return f.lit(value).cast("boolean")


def _where_known(column: Column, truth: bool) -> Column:
    """The given truth for every value, and unknown for null."""
    from pyspark.sql import functions as f

    return f.when(column.isNotNull(), f.lit(truth))


def aggregated(named: ir.NamedAggregate, arg: Any) -> Any:
    """The aggregate of a column."""
    from pyspark.sql import functions as f

    match named.function:
        case F.COUNT_ROWS:
            return f.count(f.lit(1))
        case F.COUNT:
            return f.count_distinct(arg) if named.distinct else f.count(arg)
        case F.SUM:
            return (f.sum_distinct if named.distinct else f.sum)(arg.cast("double"))
        case F.AVG:
            value = arg.cast("double")
            return (
                f.sum_distinct(value) / f.count_distinct(value) if named.distinct else f.avg(value)
            )
        case F.MIN:
            return f.min(arg)
        case F.MAX:
            return f.max(arg)
        case F.TOTAL:
            whole = arg.cast("long")
            total = f.sum_distinct(whole) if named.distinct else f.sum(whole)
            return f.coalesce(total, f.lit(0).cast("long"))
        case F.IN_ORDER:
            return f.collect_set(arg) if named.distinct else f.collect_list(arg)
        case F.COLLECT:
            return f.sort_array(
                f.collect_set(_one_zero(named, arg)) if named.distinct else f.collect_list(arg)
            )


def _one_zero(named: ir.NamedAggregate, arg: Any) -> Any:
    """Spark collects 0.0 and -0.0 as two values, unlike everywhere else."""
    from pyspark.sql import functions as f

    is_float = named.arg is not None and pa.types.is_floating(expression_type(named.arg))
    return arg + f.lit(0.0) if is_float else arg
