"""Searches inside tasks: texts are matched and vectors compared batch by batch, by the local engine's code.

A match or a distance needs only the row's own value. BM25 also needs the whole corpus; its statistics are counted by
tasks, fragment by fragment, and added up before anything is scored.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.expressions.scalar import evaluate as evaluate_constant
from omnigraph.lang import ir
from omnigraph.model.catalog import NodeOrEdgeType
from omnigraph.model.frozen import frozen
from omnigraph.pipeline.pinned import Pinned
from omnigraph.pipeline.session import parallelism
from omnigraph.pipeline.stage import RESULT_DDL, answer, answered
from omnigraph.pipeline.table_versions import SHARES_PER_CORE, numbers
from omnigraph.read.context import Context
from omnigraph.read.expressions import bound_mode, highlight_of
from omnigraph.read.search.highlight import highlighted
from omnigraph.read.search.text import Corpus, bm25, corpus_of, text_match
from omnigraph.read.search.vectors import distances
from omnigraph.storage.tables import FragmentInfo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
Floats = npt.NDArray[np.float64]


class Nothing:
    """A cache that keeps nothing: a batch is searched once."""

    def get(self, key: Hashable) -> Any:  # noqa: ARG002
        return None

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Discard the value."""


NOTHING = Nothing()


@frozen
class BatchColumn:
    """See `read.search.source.Columns`: one property of the entities of a batch, all of one type."""

    kind: NodeOrEdgeType
    values: pa.Array
    live: None = None
    objects: None = None
    identity: tuple[Hashable, ...] = ("batch",)
    cache: Nothing = NOTHING

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def fragments(self) -> Sequence[FragmentInfo]:
        return (FragmentInfo(0, self.n, 0, "", ""),)

    def cells(self, name: str, fragment: FragmentInfo) -> Hashable:
        return fragment.files, name

    def column(self, name: str) -> pa.Array:  # noqa: ARG002
        return self.values

    def prefers_column(self, name: str, wanted: int) -> bool:  # noqa: ARG002
        return True

    def alone(self, name: str, positions: npt.NDArray[np.int32]) -> pa.Array:  # noqa: ARG002
        return self.values.take(pa.array(positions))

    def pieces(self, name: str) -> Iterator[tuple[npt.NDArray[np.int32], pa.Array]]:  # noqa: ARG002
        yield np.arange(self.n, dtype=np.int32), self.values

    def derived(self, name: str, make: Callable[[], T], size: Callable[[T], int]) -> T:  # noqa: ARG002
        return make()


def places_of(name: str, types: pa.Array) -> npt.NDArray[np.int64]:
    """The places of the entities of a type."""
    same = pc.equal(types, name).fill_null(False)
    return np.flatnonzero(same.to_numpy(zero_copy_only=False))


@frozen
class SearchedField:
    """A property of a variable's entities in a batch, with their types."""

    types: pa.Array
    values: pa.Array
    known: tuple[str, ...]
    edge: bool

    def parts(self, ctx: Context) -> Iterator[tuple[npt.NDArray[np.int64], str, BatchColumn]]:
        """The positions of the entities of each type, and their values."""
        for name in self.known:
            where = places_of(name, self.types)
            if len(where):
                values = self.values.take(pa.array(where))
                yield where, name, BatchColumn(ctx.kind(name, self.edge), values)


# --- what tasks compute ------------------------------------------------------------------------------------------


def matched(match: ir.TextMatch, field: SearchedField, ctx: Context) -> pa.Array:
    """Whether each text matches; null for null."""
    query = evaluate_constant(match.query, ctx.bound)
    found = np.full(len(field.values), None, object)
    if query is not None:
        mode = bound_mode(match.mode, ctx)
        for where, _, column in field.parts(ctx):
            hits = text_match(column, match.field.property, query, mode)
            found[where] = hits.to_numpy(zero_copy_only=False)
    return pa.array(found, pa.bool_(), from_pandas=True)


def marked(expr: ir.Highlight, field: SearchedField, ctx: Context) -> pa.Array:
    """Each text with the words of the query marked."""
    asked, name = highlight_of(expr, ctx), expr.field.property
    found = np.full(len(field.values), None, object)
    if asked is not None:
        for where, _, column in field.parts(ctx):
            shown = highlighted(column.values, asked[0], column.kind.properties[name], asked[1])
            found[where] = shown.to_numpy(zero_copy_only=False)
    return pa.array(found, pa.string(), from_pandas=True)


@frozen
class Distances:
    """Scores each entity by the distance of its vector."""

    property: str
    query: tuple[float, ...]
    metric: ir.Metric

    def __call__(self, field: SearchedField, ctx: Context) -> Floats:
        found = np.full(len(field.values), np.nan)
        for where, _, column in field.parts(ctx):
            found[where] = distances(column, self.property, self.query, self.metric)
        return found


@frozen
class WordScores:
    """Scores each entity by the words of its text."""

    property: str
    query: str | None
    corpora: Mapping[str, Corpus]  # by type

    def __call__(self, field: SearchedField, ctx: Context) -> Floats:
        found = np.full(len(field.values), np.nan)
        if self.query is None:
            return found
        for where, name, column in field.parts(ctx):
            at, scores = bm25(column, self.property, self.query, self.corpora[name])
            found[where[at]] = scores
        return found


Scorer = Distances | WordScores


# --- statistics --------------------------------------------------------------------------------------------------


def corpus_on_spark(
    session: SparkSession, pinned: Pinned, kind: NodeOrEdgeType, prop: str, query: str
) -> Corpus:
    """The statistics BM25 needs of all texts of a type, counted by tasks."""
    fragments = tuple(i.fragment_id for i in pinned.snapshot().table_of(kind).fragments())
    count = min(len(fragments), parallelism(session) * SHARES_PER_CORE)
    shares = tuple(fragments[place::count] for place in range(count))
    task = _corpus_task(pinned, kind, shares, prop, query)
    rows = numbers(session, count).mapInArrow(task, RESULT_DDL).collect() if count else []
    nothing = corpus_of(BatchColumn(kind, pa.array([], pa.string())), prop, query)
    return reduce(lambda a, b: a + b, answered(rows, Corpus), nothing)


def _corpus_task(
    pinned: Pinned, kind: NodeOrEdgeType, shares: tuple[tuple[int, ...], ...], prop: str, query: str
) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = pinned.snapshot().table(kind.table_id)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for rows in table.batches([prop], fragments=shares[number]):
                    yield answer(corpus_of(BatchColumn(kind, rows.column(0)), prop, query))

    return run
