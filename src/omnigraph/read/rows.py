"""Bags of rows: what operators hand to each other.

A row binds variables to positions in tables; values are fetched when needed. `weight` is how many
rows a row stands for: patterns are counted by multiplying weights, not by writing the rows out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace

import numpy as np
import pyarrow as pa

from omnigraph.errors import LimitExceeded
from omnigraph.expressions.lists import ranges
from omnigraph.model.frozen import frozen
from omnigraph.read.arrays import (
    NO_POSITIONS,
    AnyArray,
    Floats,
    Ints,
    Mask,
    Positions,
    runs,
)
from omnigraph.read.budget import Held

COUNT_MAX = 2**63
FEW_ROWS = 64
FEW_ROWS_BYTES = 256  # of each of a few


@frozen
class Entities:
    """The nodes or edges a variable is bound to: positions in the tables of their types; -1 where unbound."""

    types: tuple[str, ...]
    position: Positions
    code: Positions | None = None  # index into `types`, when there are several
    edge: bool = False

    def take(self, index: AnyArray) -> Entities:
        code = None if self.code is None else self.code[index]
        return Entities(self.types, self.position[index], code, self.edge)

    def slice(self, part: slice) -> Entities:
        code = None if self.code is None else self.code[part]
        return Entities(self.types, self.position[part], code, self.edge)

    @property
    def nbytes(self) -> int:
        return self.position.nbytes + (0 if self.code is None else self.code.nbytes)

    def type_names(self) -> pa.Array:
        """The name of the type of each; null where unbound."""
        codes = np.zeros(len(self.position), np.int32) if self.code is None else self.code
        names = pa.array(self.types, pa.string())
        return names.take(pa.array(codes, mask=self.position < 0))

    def of_type(self, i: int) -> Mask:
        """Which rows are bound to an entity of the i-th type."""
        bound: Mask = self.position >= 0
        return bound if self.code is None else bound & (self.code == i)


@frozen
class Paths:
    """The paths a variable is bound to, one run of nodes and edges per row.

    A path of length n has n + 1 nodes and n edges; if only lengths are read, there are no nodes and edges.
    """

    length: Ints  # -1 where unbound
    nodes: Entities | None = None
    edges: Entities | None = None
    node_start: Ints | None = None
    edge_start: Ints | None = None

    def take(self, index: AnyArray) -> Paths:
        if (
            self.nodes is None
            or self.edges is None
            or self.node_start is None
            or self.edge_start is None
        ):
            return Paths(self.length[index])
        length = self.length[index]
        nodes, edges = step_counts(length)
        return Paths.of(
            length,
            self.nodes.take(ranges(self.node_start[index], nodes)),
            self.edges.take(ranges(self.edge_start[index], edges)),
        )

    def slice(self, part: slice) -> Paths:
        return self.take(np.arange(*part.indices(len(self.length))))

    @property
    def nbytes(self) -> int:
        steps = [part.nbytes for part in (self.nodes, self.edges) if part is not None]
        return 3 * self.length.nbytes + sum(steps)

    @classmethod
    def of(cls, length: Ints, nodes: Entities, edges: Entities) -> Paths:
        """Paths whose nodes and edges are stored in consecutive runs."""
        counts = step_counts(length)
        return cls(length, nodes, edges, *(np.cumsum(c) - c for c in counts))

    def turned(self) -> Paths:
        """Every path from its other end."""
        if self.nodes is None or self.edges is None:
            return self
        nodes, edges = step_counts(self.length)
        return Paths.of(
            self.length, self.nodes.take(_mirrored(nodes)), self.edges.take(_mirrored(edges))
        )


def step_counts(length: Ints) -> tuple[Ints, Ints]:
    """The numbers of nodes and edges of paths."""
    return np.where(length < 0, 0, length + 1), np.maximum(length, 0)


def _mirrored(counts: Ints) -> Ints:
    """Consecutive runs, each read backwards."""
    ends = np.cumsum(counts)
    found: Ints = np.repeat(2 * ends - counts - 1, counts) - np.arange(int(counts.sum()))
    return found


@frozen
class Values:
    """The values of a variable, one per row."""

    array: pa.Array

    def take(self, index: AnyArray) -> Values:
        return Values(self.array.take(pa.array(index)))

    def slice(self, part: slice) -> Values:
        start, end, _ = part.indices(len(self.array))
        return Values(self.array.slice(start, end - start))

    @property
    def nbytes(self) -> int:
        return int(self.array.nbytes)


Variable = Entities | Paths | Values


@frozen
class LazyColumn:
    """An output column that is computed when read: of many groups only the first few may ever be seen."""

    rows: Rows
    compute: Callable[[Rows], pa.Array]

    def take(self, index: AnyArray) -> LazyColumn:
        return LazyColumn(self.rows.take(index), self.compute)

    def slice(self, part: slice) -> LazyColumn:
        return LazyColumn(self.rows.slice(part), self.compute)

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes

    def made(self) -> pa.Array:
        return self.compute(self.rows)


@frozen
class Rows:
    """`n` rows, with what they bind."""

    n: int
    variables: dict[str, Variable] = field(default_factory=dict)
    scores: dict[str, Floats] = field(default_factory=dict)  # NaN outside the ranking
    columns: dict[str, pa.Array | LazyColumn] = field(default_factory=dict)
    tags: dict[str, Ints] = field(default_factory=dict)  # rows of enclosing operators, by block
    weight: Ints | None = None

    def take(self, index: AnyArray) -> Rows:
        """Rows by their numbers, in this order, possibly repeated."""
        return Rows(
            len(index),
            {name: v.take(index) for name, v in self.variables.items()},
            {name: s[index] for name, s in self.scores.items()},
            {name: _taken(c, index) for name, c in self.columns.items()},
            {name: t[index] for name, t in self.tags.items()},
            None if self.weight is None else self.weight[index],
        )

    def slice(self, part: slice) -> Rows:
        """Consecutive rows, without copying what they bind."""
        start, end, _ = part.indices(self.n)
        return Rows(
            end - start,
            {name: v.slice(part) for name, v in self.variables.items()},
            {name: s[part] for name, s in self.scores.items()},
            {name: _sliced(c, part) for name, c in self.columns.items()},
            {name: t[part] for name, t in self.tags.items()},
            None if self.weight is None else self.weight[part],
        )

    def pieces(self, sizes: Iterator[int]) -> Iterator[Rows]:
        """The same rows, in blocks of these sizes; at least one block."""
        start, size = 0, next(sizes)
        if self.n <= size:
            yield self
            return
        while start < self.n:
            yield self.slice(slice(start, min(start + size, self.n)))
            start, size = start + size, next(sizes)

    @property
    def nbytes(self) -> int:
        """The memory it takes; of a few rows an estimate, since exact figures cost more than they matter."""
        if self.n <= FEW_ROWS:
            return self.n * FEW_ROWS_BYTES
        parts = (*self.variables.values(), *self.scores.values(), *self.tags.values())
        weight = 0 if self.weight is None else self.weight.nbytes
        held = sum(int(part.nbytes) for part in (*parts, *self.columns.values()))
        return held + weight

    def filter(self, mask: Mask) -> Rows:
        """The rows where the mask is set."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def keep(self, live: frozenset[str]) -> Rows:
        """Without the variables and scores that are no longer read."""
        if live.issuperset(self.variables) and live.issuperset(self.scores):
            return self
        return replace(
            self,
            variables={k: v for k, v in self.variables.items() if k in live},
            scores={k: v for k, v in self.scores.items() if k in live},
        )

    def with_variables(self, variables: dict[str, Variable]) -> Rows:
        return replace(self, variables=self.variables | variables)

    def column(self, name: str) -> pa.Array:
        found = self.columns[name]
        return found.made() if isinstance(found, LazyColumn) else found

    def made(self) -> Rows:
        """With every column computed."""
        return replace(self, columns={name: self.column(name) for name in self.columns})

    def entities(self, name: str) -> Entities:
        found = self.variables[name]
        assert isinstance(found, Entities)  # noqa: S101
        return found

    def weights(self) -> Ints:
        return np.ones(self.n, np.int64) if self.weight is None else self.weight

    def total(self) -> int:
        """The number of rows, weights counted."""
        return self.n if self.weight is None else int(self.weight.sum())

    def spelled_out(self, sizes: Iterator[int]) -> Iterator[Rows]:
        """Every row repeated by its weight, in blocks of these sizes."""
        plain = replace(self, weight=None)
        if self.weight is None or (self.weight == 1).all():
            yield from plain.pieces(sizes)
            return
        for index, _ in runs(np.zeros(self.n, np.int64), self.weight, sizes):
            yield plain.take(index)

    def scaled(self, factor: Ints) -> Rows:
        """Every row multiplied by a count."""
        if self.weight is None:
            return replace(self, weight=factor)
        check_count(self.weight, factor)
        return replace(self, weight=self.weight * factor)


def check_count(weight: Ints, factor: Ints) -> None:
    """Counts are 64-bit integers; one that would not fit is an error, never a wrong number."""
    most = float(weight.max(initial=0)) * float(factor.max(initial=0))
    if most * len(weight) < COUNT_MAX:
        return
    exact = sum(a * b for a, b in zip(weight.tolist(), factor.tolist(), strict=True))
    if exact >= COUNT_MAX:
        raise LimitExceeded(
            f"the pattern has {exact:,} matches, more than can be counted",
            help="Filter the pattern, or count distinct things in it.",
            details={"limit": "matches_max", "limit_value": COUNT_MAX - 1, "observed": exact},
        )


def _taken(column: pa.Array | LazyColumn, index: AnyArray) -> pa.Array | LazyColumn:
    return column.take(index if isinstance(column, LazyColumn) else pa.array(index))


def _sliced(column: pa.Array | LazyColumn, part: slice) -> pa.Array | LazyColumn:
    if isinstance(column, LazyColumn):
        return column.slice(part)
    start, end, _ = part.indices(len(column))
    return column.slice(start, end - start)


def concat_rows(parts: Iterable[Rows]) -> Rows:
    """All rows of several bags that bind the same things."""
    parts = list(parts)
    some = [p for p in parts if p.n] or parts[:1]
    if len(some) == 1:
        return some[0]
    weighted = any(p.weight is not None for p in some)
    first = some[0]
    return Rows(
        sum(p.n for p in some),
        {name: _concat([p.variables[name] for p in some]) for name in first.variables},
        {name: np.concatenate([p.scores[name] for p in some]) for name in first.scores},
        {name: _concat_columns([p.column(name) for p in some]) for name in first.columns},
        {name: np.concatenate([p.tags[name] for p in some]) for name in first.tags},
        np.concatenate([p.weights() for p in some]) if weighted else None,
    )


def collect(blocks: Iterable[Rows], held: Held) -> Rows:
    """All rows of an input that an operator needs together, charged to it."""
    parts: list[Rows] = []
    for rows in blocks:
        held.add(rows.nbytes * (2 if parts else 1))  # several are copied together in the end
        parts.append(rows)
    found = concat_rows(parts)
    held.set(found.nbytes)
    return found


def _concat_columns(parts: list[pa.Array]) -> pa.Array:
    kind = parts[0].type
    return pa.concat_arrays([part if part.type == kind else part.cast(kind) for part in parts])


def _concat(parts: list[Variable]) -> Variable:
    if isinstance(parts[0], Values):
        return Values(_concat_columns([p.array for p in parts if isinstance(p, Values)]))
    if isinstance(parts[0], Entities):
        return concat_entities([p for p in parts if isinstance(p, Entities)])
    return concat_paths([p for p in parts if isinstance(p, Paths)])


def concat_paths(paths: list[Paths]) -> Paths:
    """One column of several."""
    length = np.concatenate([p.length for p in paths])
    nodes, edges = [p.nodes for p in paths], [p.edges for p in paths]
    if any(p is None for p in nodes):
        return Paths(length)
    return Paths.of(
        length,
        concat_entities([p for p in nodes if p is not None]),
        concat_entities([p for p in edges if p is not None]),
    )


def concat_entities(parts: list[Entities]) -> Entities:
    """One column of several; types are renumbered if they differ."""
    types = tuple(dict.fromkeys(name for p in parts for name in p.types))
    position = np.concatenate([p.position for p in parts])
    if len(types) <= 1:
        return Entities(types, position, None, parts[0].edge)
    codes = [_codes(p, types) for p in parts]
    return Entities(types, position, np.concatenate(codes), parts[0].edge)


def _codes(part: Entities, types: tuple[str, ...]) -> Positions:
    numbers = np.array([types.index(name) for name in part.types], np.int32)
    if part.code is None:
        return np.full(len(part.position), numbers[0] if len(numbers) else 0, np.int32)
    return numbers[part.code]


def unbound(like: Variable, n: int) -> Variable:
    """A variable an optional block did not bind."""
    if isinstance(like, Values):
        return Values(pa.nulls(n, like.array.type))
    if isinstance(like, Paths):
        return (
            like.take(NO_POSITIONS)
            if not n
            else Paths(np.full(n, -1, np.int64), *_no_steps(like, n))
        )
    code = np.zeros(n, np.int32) if like.code is not None else None
    return Entities(like.types, np.full(n, -1, np.int32), code, like.edge)


def _no_steps(like: Paths, n: int) -> tuple[Entities, Entities, Ints, Ints] | tuple[()]:
    if like.nodes is None or like.edges is None:
        return ()
    nothing = np.zeros(n, np.int64)
    return like.nodes.take(NO_POSITIONS), like.edges.take(NO_POSITIONS), nothing, nothing
