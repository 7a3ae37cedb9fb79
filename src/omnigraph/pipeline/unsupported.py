"""What Spark cannot run, refused before anything is run."""

from __future__ import annotations

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.lang import ir
from omnigraph.lang.ir import AggregateFunction as F
from omnigraph.lang.tree import variables, walk
from omnigraph.pipeline.walks import one_type_each


class NotOnSpark(OmnigraphError):
    """The plan has an operator that is not supported on Spark yet."""

    code, kind = "not_on_spark", Kind.INVALID
    default_help = "Run the query with engine='local'."


def not_on_spark(what: str) -> NotOnSpark:
    return NotOnSpark(f"Spark cannot run {what} yet")


def refuse_unknown(plan: ir.Op) -> None:
    """Refuse plans that Spark cannot run, before anything is run."""
    paths = (node for node in walk(plan) if isinstance(node, ir.ShortestPath))
    mixed = {path.path_var for path in paths if one_type_each(path.steps) is None}
    for node in walk(plan):
        match node:
            case ir.Resumed() | ir.Random():
                raise not_on_spark(type(node).__name__)
            case ir.Aggregate(below, _, aggregates) if _in_order(aggregates) and _sorted(below):
                raise not_on_spark("collect() of ordered rows")
            case ir.Trail(edge_predicate=condition) if condition and (
                variables(condition) - {node.edge_var}
            ):
                raise not_on_spark("a condition on relationships that reads other variables")
            case ir.ShortestPath(every=True):
                raise not_on_spark("allShortestPaths")
            case ir.TrailOf(var) if var in mixed:
                raise not_on_spark("shortest paths over several types as values")


def _in_order(aggregates: tuple[ir.NamedAggregate, ...]) -> bool:
    return any(named.function is F.IN_ORDER for named in aggregates)


def _sorted(op: ir.Op) -> bool:
    """Whether the rows of an operator have an order, which groups on Spark do not keep."""
    match op:
        case ir.Sort():
            return True
        case ir.Let() | ir.Slice() | ir.Filter() | ir.Attach() | ir.Unwind() | ir.PerRow():
            return _sorted(op.input)
        case _:
            return False
