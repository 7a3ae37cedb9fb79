"""Many runs of one query on one state: as one run where the plan allows it, else one after the other.

A pattern that starts at nodes whose property has the value of a parameter can start at those of many values at once:
`$p.name = $name` becomes `$p.name in $name`, and one more column holds the value a row belongs to. That is valid as
long as no operator above combines rows of different values.
"""

from __future__ import annotations

import datetime as dt
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import OmnigraphError
from omnigraph.lang import ir
from omnigraph.lang.query.params import bind_params
from omnigraph.lang.tree import conjunction, conjuncts, walk
from omnigraph.model.columns import one_array
from omnigraph.model.frozen import frozen
from omnigraph.model.types import INTEGERS, PropType, Scalar
from omnigraph.read.budget import Budget
from omnigraph.read.execute import run_query
from omnigraph.read.result import Result
from omnigraph.read.rows import Rows

KEPT_MAX = 512
WHICH = "which value a row belongs to"
Params = Mapping[str, Any] | None


def run_many(
    query: ir.Query,
    sets: Sequence[Params],
    snapshot: Snapshot,
    *,
    timeout: float | None = None,
    started: float | None = None,
    max_rows: int | None = None,
    memory_bytes_max: int | None = None,
) -> list[Result]:
    """A result for each set of parameters, in their order; the limits are of all of them together."""
    started = time.monotonic() if started is None else started
    now = dt.datetime.now(dt.UTC)
    bound = [_bound(query, i, given, now) for i, given in enumerate(sets)]
    limits: dict[str, Any] = {"now": now, "timeout": timeout, "started": started}
    together = _together(query) if len(sets) > 1 else None
    if together is not None and together.differ_alone(bound):
        found = run_query(
            together.query,
            together.values(sets, bound),
            snapshot,
            max_rows=max_rows,
            memory_bytes_max=memory_bytes_max,
            **limits,
        )
        shared = together.divided(found, bound)
        if shared is not None:
            return shared
    return _one_by_one(query, sets, snapshot, max_rows, Budget(memory_bytes_max), limits)


def _one_by_one(
    query: ir.Query,
    sets: Sequence[Params],
    snapshot: Snapshot,
    max_rows: int | None,
    budget: Budget,
    limits: Mapping[str, Any],
) -> list[Result]:
    """Each run has the memory that the results of those before it leave."""
    results: list[Result] = []
    try:
        for given in sets:
            left = budget.bytes_max - budget.bytes_used
            found = run_query(
                query, given, snapshot, max_rows=max_rows, memory_bytes_max=left, **limits
            )
            budget.charge("Results", found._rows.nbytes)
            results.append(found)
            max_rows = None if max_rows is None else max_rows - len(found)
        return results
    finally:
        budget.close()


def _bound(query: ir.Query, index: int, given: Params, now: dt.datetime) -> Mapping[str, Any]:
    try:
        return bind_params(query, given, now).values
    except OmnigraphError as error:
        error.details["params"] = index
        raise


@frozen
class Together:
    """A query that replaces many runs of another one."""

    original: ir.Query
    query: ir.Query
    param: str  # which may differ; all others are the same for all

    def differ_alone(self, bound: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the runs differ only in that parameter."""
        rest = [{k: v for k, v in each.items() if k != self.param} for each in bound]
        return all(each == rest[0] for each in rest[1:])

    def values(self, sets: Sequence[Params], bound: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        values = [each[self.param] for each in bound if each[self.param] is not None]
        return {**(sets[0] or {}), self.param: list(dict.fromkeys(values))}

    def divided(self, found: Result, bound: Sequence[Mapping[str, Any]]) -> list[Result] | None:
        """The rows of each run; None if the values cannot be compared with the stored ones."""
        *columns, which = (one_array(column) for column in found._arrays)
        wanted = list(dict.fromkeys(each[self.param] for each in bound))
        try:
            members = pa.array(wanted, which.type)
        except (pa.ArrowInvalid, OverflowError):  # larger than any that is stored
            return None
        member = pc.index_in(which, members).to_numpy(zero_copy_only=False)
        order = pa.array(np.argsort(member, kind="stable"))
        rows = [column.take(order) for column in columns]
        counts = np.bincount(member, minlength=len(wanted))
        starts = np.cumsum(counts) - counts
        place = {value: i for i, value in enumerate(wanted) if value is not None}
        return [
            self._one(rows, place.get(each[self.param]), starts, counts, found) for each in bound
        ]

    def _one(
        self, rows: list[pa.Array], place: int | None, starts: Any, counts: Any, found: Result
    ) -> Result:
        start, count = (0, 0) if place is None else (int(starts[place]), int(counts[place]))
        assert isinstance(self.original.body, ir.Read)  # noqa: S101
        columns = self.original.body.columns
        cut = {c.name: a.slice(start, count) for c, a in zip(columns, rows, strict=True)}
        return Result(columns, Rows(count, columns=cut), found.commit)


# --- one query of many -----------------------------------------------------------------------------------------------

_known: OrderedDict[int, tuple[ir.Query, Together | None]] = OrderedDict()


def _together(query: ir.Query) -> Together | None:
    """The query that replaces many runs of this one, if there is one; determined once."""
    found = _known.get(id(query))
    if found is None or found[0] is not query:
        found = _known[id(query)] = query, _made(query)
        while len(_known) > KEPT_MAX:
            _known.popitem(last=False)
    return found[1]


def _made(query: ir.Query) -> Together | None:
    if not isinstance(query.body, ir.Read):
        return None
    start = _start(query.body.plan)
    if start is None:
        return None
    for i, part in enumerate(conjuncts(start.predicate)):
        equality = _equality(part, start.var)
        if equality is not None and _uses(query, equality[1].name) == 1:
            return _with_list(query, start, i, *equality)
    return None


def _start(plan: ir.Op) -> ir.NodeScan | None:
    """Where the pattern starts, if every operator above treats each row separately, or only rows of one value."""
    projected = False
    while not isinstance(plan, ir.NodeScan):
        match plan:
            case ir.Project(below, _) if not projected:
                plan, projected = below, True
            case ir.Sort(below, _, _):
                plan = below
            case ir.Distinct(below) if not projected:
                plan = below
            case ir.Filter(below, _) | ir.SemiJoin(below, _, _) | ir.Optional(below, _, _) if (
                projected
            ):
                plan = below
            case ir.Expand() | ir.ShortestPath() if projected:
                plan = plan.input
            case _:
                return None
    return plan if projected else None


def _equality(part: ir.Expr, var: str) -> tuple[ir.Column | ir.IdOf, ir.Param] | None:
    match part:
        case ir.Compare(ir.CompareOp.EQ, (ir.Column() | ir.IdOf()) as of, ir.Param() as param):
            pass
        case ir.Compare(ir.CompareOp.EQ, ir.Param() as param, (ir.Column() | ir.IdOf()) as of):
            pass
        case _:
            return None
    if not isinstance(param.type, PropType):
        return None
    plain = of.type.is_plain and param.type.is_plain and of.type.scalar is param.type.scalar
    whole = of.type.scalar is Scalar.STRING or of.type.scalar in INTEGERS
    return (of, param) if of.var == var and plain and whole else None


def _uses(query: ir.Query, param: str) -> int:
    return sum(isinstance(node, ir.Param) and node.name == param for node in walk(query.body))


def _with_list(
    query: ir.Query, start: ir.NodeScan, part: int, of: ir.Column | ir.IdOf, param: ir.Param
) -> Together:
    assert isinstance(param.type, PropType)  # noqa: S101 - `_equality` has checked it
    kind = replace(param.type, is_list=True, nullable=False)
    parts = list(conjuncts(start.predicate))
    parts[part] = ir.In(of, ir.Param(param.name, kind))
    begun = replace(start, predicate=conjunction(tuple(parts)))
    assert isinstance(query.body, ir.Read)  # noqa: S101
    plan = _replaced(query.body.plan, start, begun, ir.NamedExpr(WHICH, of))
    columns = (*query.body.columns, ir.OutputColumn(WHICH, of.type))
    params = tuple(replace(p, type=kind) if p.name == param.name else p for p in query.params)
    made = replace(query, params=params, body=ir.Read(plan, columns))
    return Together(query, made, param.name)


def _replaced(plan: Any, start: ir.NodeScan, begun: ir.NodeScan, which: ir.NamedExpr) -> Any:
    """The plan with another start, and one more column."""
    if plan is start:
        return begun
    below = replace(plan, input=_replaced(plan.input, start, begun, which))
    return (
        replace(below, columns=(*below.columns, which)) if isinstance(below, ir.Project) else below
    )
