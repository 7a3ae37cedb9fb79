"""Rankings: by distance of vectors, by the words of a text, or both fused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa

from omnigraph.errors import OptionInvalid
from omnigraph.expressions.scalar import evaluate as evaluate_constant
from omnigraph.lang import ir
from omnigraph.lang.tree import walk
from omnigraph.read.arrays import Floats, Ints, Positions, Whole, distinct
from omnigraph.read.columns import TableColumns
from omnigraph.read.context import Context
from omnigraph.read.plan import PlanStep
from omnigraph.read.relational import rows_wanted
from omnigraph.read.rows import Entities, Rows, concat_rows
from omnigraph.read.sorting import order_by
from omnigraph.read.values import entity_column


def score(step: PlanStep, rows: Rows, ctx: Context) -> Rows:
    """All rows, with the score of each row's entity."""
    op = step.op
    assert isinstance(op, ir.Score)  # noqa: S101
    return _with_score(rows, op.name, _scores(op.ranking, rows, ctx)).keep(step.live)


def rank(step: PlanStep, rows: Rows, ctx: Context) -> Rows:
    """The rows inside the ranking, of the best entities only."""
    op = step.op
    assert isinstance(op, ir.Rank)  # noqa: S101
    keep = None if op.keep is None else whole_number(op.keep, ctx)
    best = keep if step.slice is None else rows_wanted(step.slice, ctx)
    rows = _inside(op, rows, ctx, best)
    if keep is not None and rows.n > keep:  # at most this many rows are not deduplicated first
        entities = rows.entities(op.ranking.field.var)
        place = _places(entities, rows.scores[op.name], isinstance(op.ranking, ir.Bm25), ctx)
        rows = rows.filter(place < keep)
    return rows.keep(step.live)


def _inside(op: ir.Rank, rows: Rows, ctx: Context, best: int | None) -> Rows:
    """The rows with a score. Where they are a whole table, no array is made of those without one."""
    columns = _whole_table(op.ranking, rows, ctx)
    if columns is None:
        scores = _scores(op.ranking, rows, ctx, best)
        return _with_score(rows, op.name, scores).filter(~np.isnan(scores))
    positions, scores = _ranked(op.ranking, columns, ctx, best)
    at = positions if columns.live is None else columns.everything.searchsorted(positions)
    return _with_score(rows.take(at), op.name, scores)


def _whole_table(ranking: ir.Ranking, rows: Rows, ctx: Context) -> TableColumns | None:
    """The table whose rows these are, each once; None if another operator came first."""
    if isinstance(ranking, ir.Rrf):
        return None
    entities = rows.entities(ranking.field.var)
    if entities.code is not None or not rows.n:
        return None
    columns = ctx.columns(entities.types[0], entities.edge)
    return columns if entities.position is columns.everything else None


def _ranked(
    ranking: ir.Nearest | ir.Bm25, columns: TableColumns, ctx: Context, best: int | None
) -> tuple[Whole, Floats]:
    """The rows of a table that have a score, ascending; with `best`, those that may be among the best ones."""
    match ranking:
        case ir.Bm25(field):
            return _texts(
                field.property, evaluate_constant(ranking.query, ctx.bound), best, columns
            )
        case ir.Nearest():
            query = query_vector(ranking, ctx)
            if best:
                return _nearest(ranking, query, best, ctx, columns, None)
            scores = _distances(ranking, query, None, ctx, columns, columns.everything)
            known = np.flatnonzero(~np.isnan(scores))
            return columns.everything[known], scores[known]


def _with_score(rows: Rows, name: str, scores: Floats) -> Rows:
    return Rows(
        rows.n, rows.variables, rows.scores | {name: scores}, rows.columns, rows.tags, rows.weight
    )


def whole_number(expr: ir.Expr, ctx: Context) -> int:
    """How many entities a ranking keeps, or the constant of a fusion."""
    value = evaluate_constant(expr, ctx.bound)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise OptionInvalid(f"a ranking keeps a whole number of entities from 0, not {value!r}")
    return value


# --- scores ------------------------------------------------------------------------------------------------------


def _scores(ranking: ir.Ranking, rows: Rows, ctx: Context, keep: int | None = None) -> Floats:
    """The score of every row's entity; NaN outside the ranking, and where it cannot be among the `keep` best."""
    match ranking:
        case ir.Nearest(field):
            query = query_vector(ranking, ctx)
            return _by_type(
                rows.entities(field.var), ctx, partial(_distances, ranking, query, keep, ctx)
            )
        case ir.Bm25(field):
            query = evaluate_constant(ranking.query, ctx.bound)
            rank = partial(_bm25, field.property, query, keep)
            return _by_type(rows.entities(field.var), ctx, rank)
        case ir.Rrf():
            return _fused_scores(ranking, rows, ctx)


def _by_type(
    entities: Entities, ctx: Context, compute: Callable[[TableColumns, Positions], Floats]
) -> Floats:
    """Scores of entities, computed type by type; unbound ones have none."""
    if entities.code is None and int(entities.position.min(initial=0)) >= 0:
        return compute(ctx.columns(entities.types[0], entities.edge), entities.position)
    found = np.full(len(entities.position), np.nan)
    for i, name in enumerate(entities.types):
        where = np.flatnonzero(entities.of_type(i))
        if len(where):
            found[where] = compute(ctx.columns(name, entities.edge), entities.position[where])
    return found


def query_vector(ranking: ir.Nearest, ctx: Context) -> list[float]:
    """What vectors are compared with; a text is embedded."""
    value = evaluate_constant(ranking.query, ctx.bound)
    if value is None:
        raise OptionInvalid("nearest needs a vector or a text to compare with, not null")
    if isinstance(value, str):
        from omnigraph.read.search.embed import embed_text, provider_of, settings_of

        assert ranking.field.type.vector_dim is not None  # noqa: S101
        provider = provider_of(settings_of(ctx.snapshot))
        dim = ranking.field.type.vector_dim
        return list(embed_text(value, dim, ranking.model, provider=provider))
    return list(value)


def _distances(
    ranking: ir.Nearest,
    query: list[float],
    keep: int | None,
    ctx: Context,
    columns: TableColumns,
    at: Positions,
) -> Floats:
    """Distances at these positions; with `keep`, of the nearest only, which need not compute all of them."""
    from omnigraph.read.search.vectors import distances

    if not keep:
        return distances(columns, ranking.field.property, query, ranking.metric, at)
    among = None if at is columns.everything else distinct(at, columns.n)
    positions, found = _nearest(ranking, query, keep, ctx, columns, among)
    if not len(positions):
        return np.full(len(at), np.nan)
    where = np.minimum(positions.searchsorted(at), len(positions) - 1)
    return np.where(positions[where] == at, found[where], np.nan)


def _nearest(
    ranking: ir.Nearest,
    query: list[float],
    keep: int,
    ctx: Context,
    columns: TableColumns,
    among: Positions | None,
) -> tuple[Whole, Floats]:
    """The `keep` nearest, by position."""
    from omnigraph.read.search.vectors import nearest

    prop, metric = ranking.field.property, ranking.metric
    if not ranking.approx:
        return nearest(columns, prop, query, metric, count=keep, positions=among)
    from omnigraph.read.search.approximate import approximate

    return approximate(columns, prop, query, metric, count=keep, positions=among, note=ctx.note)


def _bm25(
    prop: str, query: str | None, keep: int | None, columns: TableColumns, at: Positions
) -> Floats:
    """Scores at these positions; with `keep`, where all may be among the best, of those that may be."""
    table = np.full(columns.n, np.nan)
    positions, scores = _texts(prop, query, keep if at is columns.everything else None, columns)
    table[positions] = scores
    found: Floats = table[at]
    return found


def _texts(
    prop: str, query: str | None, best: int | None, columns: TableColumns
) -> tuple[Ints, Floats]:
    from omnigraph.read.search.text import bm25

    if query is None:
        return np.empty(0, np.int64), np.empty(0)
    return bm25(columns, prop, query, best=best)


# --- places in a ranking -----------------------------------------------------------------------------------------


def _numbers(entities: Entities) -> Ints:
    """Equal for equal entities."""
    position = entities.position.astype(np.int64)
    return position if entities.code is None else position + (entities.code.astype(np.int64) << 32)


def _places(entities: Entities, scores: Floats, descending: bool, ctx: Context) -> Ints:
    """The place of each row's entity, from 0, by its best score; ties by id. Rows without a score have none: a
    place beyond all others."""
    nowhere = np.iinfo(np.int64).max
    places = np.full(len(scores), nowhere, np.int64)
    inside = np.flatnonzero(~np.isnan(scores))
    if not len(inside):
        return places
    kinds, of = np.unique(_numbers(entities)[inside], return_inverse=True)
    best = np.full(len(kinds), -np.inf if descending else np.inf)
    (np.maximum if descending else np.minimum).at(best, of, scores[inside])
    first = np.full(len(kinds), -1, np.int64)
    first[of] = inside
    ids = entity_column(entities.take(first), "id", ctx)
    order = order_by([(pa.array(best), descending), (ids, False)], len(kinds))
    place = np.empty(len(kinds), np.int64)
    place[order] = np.arange(len(kinds))
    places[inside] = place[of]
    return places


def _fused_scores(ranking: ir.Rrf, rows: Rows, ctx: Context) -> Floats:
    constant = whole_number(ranking.constant, ctx)
    entities = rows.entities(ranking.primary.field.var)
    total = np.zeros(rows.n)
    for part in (ranking.primary, ranking.secondary):
        own = rows.entities(part.field.var)
        place = _places(own, _scores(part, rows, ctx), isinstance(part, ir.Bm25), ctx)
        total += _reciprocal(_best_of(place, entities), constant)
    return np.where(total > 0, total, np.nan)


def _best_of(place: Ints, entities: Entities) -> Ints:
    """The best place among the rows of each row's entity."""
    kinds, of = np.unique(_numbers(entities), return_inverse=True)
    best = np.full(len(kinds), np.iinfo(np.int64).max)
    np.minimum.at(best, of, place)
    found: Ints = best[of]
    return found


def _reciprocal(place: Ints, constant: int) -> Floats:
    inside = place < np.iinfo(np.int64).max
    return np.where(inside, 1.0 / (constant + np.where(inside, place, 0) + 1), 0.0)


# --- fusion of two runs ------------------------------------------------------------------------------------------


def fuse(step: PlanStep, primary: Rows, secondary: Rows, ctx: Context) -> Rows:
    """The best entities of two runs of one pattern, with their rows of the first run that has them."""
    op = step.op
    assert isinstance(op, ir.Fuse)  # noqa: S101
    first = _run(primary, op.primary_score, op.primary, op.var, ctx)
    second = _run(secondary, op.secondary_score, op.secondary, op.var, ctx)
    constant = whole_number(op.constant, ctx)
    kinds = np.union1d(first[0], second[0])
    places = [_places_of(kinds, run) for run in (first, second)]
    fused = _reciprocal(places[0], constant) + _reciprocal(places[1], constant)
    order = np.lexsort((places[1], places[0], -fused))
    place = np.empty(len(kinds))
    place[order] = np.arange(len(kinds))
    if op.keep is not None:
        order = order[: whole_number(op.keep, ctx)]
    kept = np.zeros(len(kinds), np.bool_)
    kept[order] = True
    parts = []
    for rows, only in ((primary, None), (secondary, first[0])):
        numbers = _numbers(rows.entities(op.var))
        mask = kept[kinds.searchsorted(numbers)] if len(kinds) else np.zeros(rows.n, np.bool_)
        if only is not None:
            mask &= ~np.isin(numbers, only)
        chosen = rows.take(np.flatnonzero(mask))
        at = kinds.searchsorted(numbers[mask])
        scores = {op.name: fused[at], op.place: place[at]}
        parts.append(Rows(chosen.n, chosen.variables, scores, weight=chosen.weight))
    return concat_rows(parts).keep(step.live)


def _run(rows: Rows, name: str, op: ir.Op, var: str, ctx: Context) -> tuple[Ints, Ints]:
    """The entities of a run, ascending, and their places in it."""
    entities = rows.entities(var)
    descending = is_descending(op, name)
    place = _places(entities, rows.scores[name], descending, ctx)
    kinds, first = np.unique(_numbers(entities), return_index=True)
    return kinds, place[first]


def is_descending(op: ir.Op, name: str) -> bool:
    """Whether the ranking that made a score calls larger ones better."""
    return any(
        isinstance(node, ir.Rank) and node.name == name and isinstance(node.ranking, ir.Bm25)
        for node in walk(op)
    )


def _places_of(kinds: Ints, run: tuple[Ints, Ints]) -> Ints:
    found = np.full(len(kinds), np.iinfo(np.int64).max)
    found[kinds.searchsorted(run[0])] = run[1]
    return found
