"""The order in which a pattern is walked.

The clauses of a pattern mean the same in any order, and can differ by orders of magnitude in the rows they make on the
way. A chain of scans, hops and filters is taken apart into variables and links, and put together again in the order
with the fewest rows expected, found by trying all of them: patterns are small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.lang import ir
from omnigraph.lang.ir import CompareOp as Op
from omnigraph.lang.tree import conjunction, conjuncts, is_constant, rebuild, variables
from omnigraph.model.frozen import frozen

Sizes = Callable[[str, bool], int]  # rows of a node type, or of an edge type
Shares = Callable[
    [ir.Expr, str, str], float | None
]  # of a type's nodes a condition on a variable keeps, if known
Keyed = Callable[[ir.Join], bool]  # whether the rows on the left name the nodes on the right

VARIABLES_MAX = 9
GAIN_MIN = 2.0  # the written order is kept unless another promises this much
HOPS_WEIGHED_MAX = 16  # more hops than this are expected to reach no further
SCAN_COST = 0.1  # of a row scanned, in rows made by a hop
SHARE = {Op.EQ: 0.05, Op.NE: 0.95}  # of rows a comparison keeps, without statistics
SHARE_OF_RANGE = 0.33


def reorder(op: ir.Op, sizes: Sizes, shares: Shares, is_keyed: Keyed) -> ir.Op:
    """The same plan with its patterns in the best order; one that starts at nodes its join names is already in it."""

    def ordered(child: Any) -> Any:
        return reorder(child, sizes, shares, is_keyed) if _is_operator(child) else child

    if isinstance(op, ir.Join) and is_keyed(op):
        return replace(op, left=ordered(op.left))
    chain = _take_apart(op)
    if chain is None:
        return rebuild(op, ordered)
    return _Orders(chain, sizes, shares).best() or op


def _is_operator(node: object) -> bool:
    return isinstance(node, ir.Op)


@dataclass(slots=True)
class _Chain:
    """A pattern: what its variables have to satisfy, the links between them, and conditions on several."""

    types: dict[str, tuple[str, ...]] = field(default_factory=dict)
    conditions: list[ir.Expr] = field(default_factory=list)
    links: list[ir.Expand] = field(default_factory=list)
    order: list[str] = field(default_factory=list)  # of the variables, as written


def _take_apart(op: ir.Op) -> _Chain | None:
    """A chain that starts at a scan and has a link."""
    chain = _Chain()
    while not isinstance(op, ir.NodeScan):
        match op:
            case ir.Expand():
                chain.links.insert(0, op)
                chain.conditions[:0] = conjuncts(op.predicate)
            case ir.Filter(_, predicate):
                chain.conditions[:0] = conjuncts(predicate)
            case _:
                return None
        op = op.input
    if not chain.links or len(chain.links) > VARIABLES_MAX:
        return None
    chain.types[op.var] = op.types
    chain.conditions[:0] = conjuncts(op.predicate)
    chain.types |= {link.dst: link.dst_types for link in chain.links if not link.into}
    chain.order = list(chain.types)
    return chain


@frozen
class _State:
    """Some variables bound: how, at what cost so far, and how many rows that makes."""

    cost: float
    rows: float
    steps: tuple[tuple[str, int | None], ...]  # variable, and the link it was reached by


class _Orders:
    """The search for the best order of one chain."""

    def __init__(self, chain: _Chain, sizes: Sizes, shares: Shares) -> None:
        self.chain = chain
        self.own = {v: [c for c in chain.conditions if variables(c) == {v}] for v in chain.types}
        self.count = {
            v: max(1.0, sum(sizes(t, False) for t in types)) for v, types in chain.types.items()
        }
        self.share = {v: self._share_of(v, shares) for v in chain.types}
        self.edges = [max(1.0, sum(sizes(s.edge, True) for s in k.steps)) for k in chain.links]

    def best(self) -> ir.Op | None:
        """The plan in the best order; None when it is as good as written."""
        written = self._as_written()
        found = self._search()
        if found is None or found.cost * GAIN_MIN >= written.cost:
            return None
        return self._put_together(found)

    # --- expectations ------------------------------------------------------------------------------------------

    def _share_of(self, var: str, shares: Shares) -> float:
        share = 1.0
        for condition in self.own[var]:
            known = [shares(condition, var, name) for name in self.chain.types[var]]
            estimates = [k for k in known if k is not None]
            share *= max(estimates) if len(estimates) == len(known) else expected_share(condition)
        return max(share, 1 / self.count[var])

    def _fan_out(self, k: int, source: str) -> float:
        """How many edges of a link leave one node of a variable."""
        link = self.chain.links[k]
        one = self.edges[k] * (2 if link.steps[0].direction is ir.Direction.BOTH else 1)
        one /= self.count[source]
        if link.max_hops == 1:
            return one
        far = self.count[link.dst if source == link.src else link.src]
        hops = min(link.max_hops, HOPS_WEIGHED_MAX)
        return float(min(one**hops, far))

    def _closing(self, k: int) -> float:
        """The share of rows kept by a link both of whose ends are bound."""
        link = self.chain.links[k]
        return min(1.0, self._fan_out(k, link.src) / self.count[link.dst])

    # --- search ------------------------------------------------------------------------------------------------

    def _start(self, var: str) -> _State:
        rows = self.count[var] * self.share[var]
        scanned = SCAN_COST * (self.count[var] if rows > 1 else 1)
        return _State(scanned + rows, rows, ((var, None),))

    def _extended(self, state: _State, bound: frozenset[str], var: str, k: int) -> _State:
        link = self.chain.links[k]
        source = link.src if var == link.dst else link.dst
        made = state.rows * self._fan_out(k, source)
        rows = made * self.share[var]
        for other, closing in enumerate(self.chain.links):
            ends = {closing.src, closing.dst}
            if other != k and var in ends and ends <= bound | {var}:
                rows *= self._closing(other)
        return _State(state.cost + made + rows, rows, (*state.steps, (var, k)))

    def _as_written(self) -> _State:
        state, bound = self._start(self.chain.order[0]), frozenset(self.chain.order[:1])
        for var in self.chain.order[1:]:
            k = next(
                i for i, link in enumerate(self.chain.links) if link.dst == var and not link.into
            )
            state = self._extended(state, bound, var, k)
            bound |= {var}
        # What is written later binds later: a cycle is closed at its place in the text, not as soon as it can be.
        late = [k for k, link in enumerate(self.chain.links) if link.into]
        return replace(state, cost=state.cost * (1 + len(late)))

    def _search(self) -> _State | None:
        reached = {frozenset([v]): self._start(v) for v in self.chain.types}
        for _ in range(len(self.chain.types) - 1):
            wider: dict[frozenset[str], _State] = {}
            for bound, state in reached.items():
                for var, k in self._next(bound):
                    new = self._extended(state, bound, var, k)
                    known = wider.get(bound | {var})
                    if known is None or new.cost < known.cost:
                        wider[bound | {var}] = new
            reached = wider
        return next(iter(reached.values()), None)

    def _next(self, bound: frozenset[str]) -> list[tuple[str, int]]:
        """The variables one link away; several hops and what they bind can only be walked as written."""
        found = []
        for k, link in enumerate(self.chain.links):
            if link.src in bound and link.dst not in bound:
                found.append((link.dst, k))
            elif link.dst in bound and link.src not in bound and link.max_hops == 1:
                found.append((link.src, k))
        return found

    # --- the plan ----------------------------------------------------------------------------------------------

    def _put_together(self, state: _State) -> ir.Op:
        first = state.steps[0][0]
        single = [frozenset({v}) for v in self.chain.types]
        pending = [c for v in self.chain.types for c in self.own[v] if v != first]
        pending += [c for c in self.chain.conditions if variables(c) not in single]
        plan: ir.Op = ir.NodeScan(
            first, self.chain.types[first], conjunction(tuple(self.own[first]))
        )
        bound = {first}
        used: set[int] = set()
        plan = self._closed(plan, bound, used)
        plan = _filtered(plan, bound, pending)
        for var, k in state.steps[1:]:
            assert k is not None  # noqa: S101 - only the first variable is scanned
            plan = self._walked(plan, var, k, pending)
            used.add(k)
            bound |= {var, *self._edge_variable(k)}
            plan = self._closed(plan, bound, used)
            plan = _filtered(plan, bound, pending)
        return plan

    def _edge_variable(self, k: int) -> set[str]:
        name = self.chain.links[k].edge_var
        return set() if name is None else {name}

    def _walked(self, plan: ir.Op, var: str, k: int, pending: list[ir.Expr]) -> ir.Op:
        link = self.chain.links[k]
        predicate = _taken(pending, {var, *self._edge_variable(k)})
        if var == link.dst:
            return replace(
                link, input=plan, predicate=predicate, into=False, dst_types=self.chain.types[var]
            )
        steps = tuple(ir.EdgeStep(s.edge, s.direction.flipped, s.far, s.near) for s in link.steps)
        return replace(
            link,
            input=plan,
            src=link.dst,
            dst=link.src,
            steps=steps,
            dst_types=self.chain.types[var],
            predicate=predicate,
            into=False,
        )

    def _closed(self, plan: ir.Op, bound: set[str], used: set[int]) -> ir.Op:
        for k, link in enumerate(self.chain.links):
            if k not in used and {link.src, link.dst} <= bound:
                used.add(k)
                bound |= self._edge_variable(k)
                plan = replace(link, input=plan, predicate=None, into=True)
        return plan


def _filtered(plan: ir.Op, bound: set[str], pending: list[ir.Expr]) -> ir.Op:
    predicate = _taken(pending, bound)
    return plan if predicate is None else ir.Filter(plan, predicate)


def _taken(pending: list[ir.Expr], bound: set[str]) -> ir.Expr | None:
    """The conditions that read nothing else; they are then no longer pending."""
    ready = [variables(c) <= bound for c in pending]
    taken = tuple(c for c, is_ready in zip(pending, ready, strict=True) if is_ready)
    pending[:] = [c for c, is_ready in zip(pending, ready, strict=True) if not is_ready]
    return conjunction(taken)


def expected_share(condition: ir.Expr) -> float:
    """The share of rows a condition keeps, guessed from its form."""
    match condition:
        case ir.Compare(op):
            return SHARE.get(op, SHARE_OF_RANGE)
        case (
            ir.In() | ir.Has() | ir.Contains() | ir.StartsWith() | ir.TextMatch() | ir.RegexMatch()
        ):
            return 0.1
        case ir.IsNull(_, negated):
            return 0.9 if negated else 0.1
        case ir.Not(part):
            return max(0.1, 1 - expected_share(part))
        case ir.Or(parts):
            return min(1.0, sum(expected_share(p) for p in parts))
        case _ if is_constant(condition):
            return 1.0
        case _:
            return 0.5
