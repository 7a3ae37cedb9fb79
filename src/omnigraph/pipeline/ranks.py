"""Rankings on Spark: scores are computed in tasks, places among all entities by sorting them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnigraph.expressions.scalar import evaluate as evaluate_constant
from omnigraph.lang import ir
from omnigraph.model.frozen import frozen
from omnigraph.pipeline.rowset import (
    SCORE,
    VALUE,
    Bag,
    Formula,
    Key,
    RowColumn,
    ddl,
    fresh_name,
)
from omnigraph.pipeline.scans import Scanner
from omnigraph.pipeline.searches import Distances, Scorer, WordScores, corpus_on_spark
from omnigraph.read.rank import is_descending, query_vector, whole_number

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ENTITY = ("ranked_type", "ranked")
PLACE = "place"
Simple = ir.Nearest | ir.Bm25


def score(op: ir.Score, bag: Bag, scanner: Scanner) -> Bag:
    """All rows, with the score of each row's entity; null outside the ranking."""
    return _scored(bag, op.ranking, _score_key(op.name), scanner)


def rank(op: ir.Rank, bag: Bag, scanner: Scanner) -> Bag:
    """The rows inside the ranking, of the best entities only."""
    key = _score_key(op.name)
    bag = _scored(bag, op.ranking, key, scanner)
    bag = bag.with_frame(bag.frame.where(bag.col(key).isNotNull()))
    if op.keep is None:
        return bag
    var, descending = op.ranking.field.var, isinstance(op.ranking, ir.Bm25)
    count = whole_number(op.keep, scanner.run.context())
    kept = Ranking.of(bag, var, key, descending).best(count)
    here = _is_entity(bag, var)
    return bag.with_frame(bag.frame.join(kept, here, "left_semi"))


def _score_key(name: str) -> Key:
    return SCORE + name, VALUE


# --- scores ------------------------------------------------------------------------------------------------------


def _scored(bag: Bag, ranking: ir.Ranking, key: Key, scanner: Scanner) -> Bag:
    if isinstance(ranking, ir.Rrf):
        return _fused(bag, ranking, key, scanner)
    slot = RowColumn(fresh_name(), pa.float64())
    task = ScoreTask(_formula(bag, scanner), ranking.field, _scorer(ranking, bag, scanner), slot)
    kept = {s.name: s.type for s in bag.slots.values()}
    frame = bag.frame.select(*kept).mapInArrow(task, ddl(kept | {slot.name: slot.type}))
    return replace(bag, frame=frame, slots={**bag.slots, key: slot})


def _formula(bag: Bag, scanner: Scanner) -> Formula:
    return Formula(scanner.run, bag.slots, bag.types, bag.edges, kept=tuple(bag.names()))


def _scorer(ranking: Simple, bag: Bag, scanner: Scanner) -> Scorer:
    """The scorer for tasks; a text is embedded, and a corpus counted, once."""
    ctx = scanner.run.context()
    field = ranking.field
    if isinstance(ranking, ir.Nearest):
        return Distances(field.property, tuple(query_vector(ranking, ctx)), ranking.metric)
    query = evaluate_constant(ranking.query, ctx.bound)
    kinds = [ctx.kind(name, field.var in bag.edges) for name in bag.types[field.var]]
    corpora = {
        kind.name: corpus_on_spark(scanner.session, scanner.run.pinned, kind, field.property, query)
        for kind in (kinds if query is not None else ())
    }
    return WordScores(field.property, query, corpora)


@frozen
class ScoreTask:
    """Adds the scores of a batch's entities."""

    formula: Formula
    field: ir.Column
    scorer: Scorer
    slot: RowColumn

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ctx = self.formula.run.context()
        for batch in batches:
            if batch.num_rows:
                field = self.formula.field(self.field, batch)
                scores = self.scorer(field, ctx)
                column = pa.array(scores, mask=np.isnan(scores))
                names = [*self.formula.kept, self.slot.name]
                arrays = [batch.column(name) for name in self.formula.kept]
                yield pa.RecordBatch.from_arrays([*arrays, column], names)


# --- places ------------------------------------------------------------------------------------------------------


@frozen
class Ranking:
    """Entities with their best scores, and the order that puts the best first."""

    entities: DataFrame
    order: tuple[Column, ...]  # ties by id, then by type as the pattern names them

    @classmethod
    def of(cls, bag: Bag, var: str, score: Key, descending: bool) -> Ranking:
        from pyspark.sql import functions as f

        scored = bag.frame.where(bag.col(score).isNotNull())
        names = zip(ENTITY, ("type", "id"), strict=True)
        keys = [bag.col((var, part)).alias(name) for name, part in names]
        best = (f.max if descending else f.min)(bag.col(score)).alias("best")
        first = f.desc("best") if descending else f.asc("best")
        types = f.array(*(f.lit(name) for name in bag.types[var]))
        order = (first, f.asc(ENTITY[1]), f.array_position(types, f.col(ENTITY[0])).asc())
        return cls(scored.groupBy(*keys).agg(best), order)

    def best(self, count: int) -> DataFrame:
        """The first entities."""
        return self.entities.orderBy(*self.order).limit(count)

    def places(self) -> DataFrame:
        """All entities with their places from 0. They pass through one task; rows never do."""
        from pyspark.sql import Window
        from pyspark.sql import functions as f

        place = f.row_number().over(Window.orderBy(*self.order)) - 1
        return self.entities.withColumn(PLACE, place).drop("best")


def _is_entity(bag: Bag, var: str) -> Column:
    from pyspark.sql import functions as f

    same_type = bag.col((var, "type")) == f.col(ENTITY[0])
    return same_type & (bag.col((var, "id")) == f.col(ENTITY[1]))


def _reciprocal(place: Any, constant: int) -> Column:
    from pyspark.sql import functions as f

    return f.coalesce(f.lit(1.0) / (place + f.lit(constant + 1)), f.lit(0.0))


def _fused(bag: Bag, ranking: ir.Rrf, key: Key, scanner: Scanner) -> Bag:
    """The fused scores of two rankings: an entity takes the best place among its rows."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    constant = whole_number(ranking.constant, scanner.run.context())
    entity = [bag.col((ranking.primary.field.var, part)) for part in ("type", "id")]
    frame, total = bag.frame, f.lit(0.0)
    for part in (ranking.primary, ranking.secondary):
        var, own = part.field.var, (SCORE + fresh_name(), VALUE)
        scored = _scored(bag.with_frame(frame), part, own, scanner)
        places = Ranking.of(scored, var, own, isinstance(part, ir.Bm25)).places()
        place = fresh_name()
        found = scored.frame.join(places, _is_entity(bag, var), "left").drop(*ENTITY)
        best = f.min(PLACE).over(Window.partitionBy(*entity))
        frame = found.withColumn(place, best).drop(PLACE, scored.slots[own].name)
        bag = replace(
            bag, slots={**bag.slots, (SCORE + place, PLACE): RowColumn(place, pa.int32())}
        )
        total = total + _reciprocal(f.col(place), constant)
    slot = RowColumn(fresh_name(), pa.float64())
    slots = {k: s for k, s in bag.slots.items() if k[1] != PLACE}
    fused = frame.withColumn(slot.name, f.when(total > 0, total))
    return replace(bag, frame=fused, slots={**slots, key: slot})


# --- fusion of two runs ------------------------------------------------------------------------------------------


def fuse(op: ir.Fuse, primary: Bag, secondary: Bag, scanner: Scanner) -> Bag:
    """The best entities of two runs of one pattern, with their rows of the first run that has them."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    ctx = scanner.run.context()
    runs = [
        Ranking.of(bag, op.var, _score_key(name), is_descending(plan, name))
        .places()
        .withColumnRenamed(PLACE, place)
        for bag, name, plan, place in (
            (primary, op.primary_score, op.primary, "first"),
            (secondary, op.secondary_score, op.secondary, "second"),
        )
    ]
    constant = whole_number(op.constant, ctx)
    fused = _reciprocal(f.col("first"), constant) + _reciprocal(f.col("second"), constant)
    places = runs[0].join(runs[1], list(ENTITY), "full").withColumn("fused", fused)
    order = (f.desc("fused"), f.asc_nulls_last("first"), f.asc_nulls_last("second"))
    number = f.row_number().over(Window.orderBy(*order)) - 1
    places = places.withColumn("place", number.cast("double"))
    if op.keep is not None:
        places = places.where(f.col("place") < whole_number(op.keep, ctx))
    places = places.localCheckpoint()  # both runs below must see the same entities
    keys = [k for k in primary.slots if k in secondary.slots and not k[0].startswith(SCORE)]
    slots = {key: primary.slots[key] for key in keys}
    fresh = {_score_key(n): RowColumn(fresh_name(), pa.float64()) for n in (op.name, op.place)}
    frames = [
        _chosen(bag, op.var, keys, chosen)
        for bag, chosen in (
            (primary, places.where("first IS NOT NULL")),
            (secondary, places.where("first IS NULL")),
        )
    ]
    slots |= fresh
    frame = frames[0].union(frames[1]).toDF(*(s.name for s in slots.values()))
    return replace(primary, frame=frame, slots=slots)


def _chosen(bag: Bag, var: str, keys: list[Key], places: DataFrame) -> DataFrame:
    found = bag.frame.join(places, _is_entity(bag, var))
    return found.select(*(bag.col(key) for key in keys), "fused", "place")
