"""Vectors made from texts (`@embed`): for the rows of a write whose text is new or changed, and for stored rows
without one.

They are made before anything is staged, each text once: a write that runs again on a newer head embeds nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.plan import PublishPlan, Reads, Verb
from omnigraph.core.snapshot import Snapshot
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.expressions.arrow import selected
from omnigraph.lang import ir
from omnigraph.merge.conflicts import Decisions
from omnigraph.merge.lost_cells import States
from omnigraph.merge.rows import Mask, equal_cells, positions
from omnigraph.merge.three_way import Sides, lookup
from omnigraph.model.catalog import NodeType, Property
from omnigraph.model.changes import Changes, TypeChanges
from omnigraph.model.columns import arrow_schema, arrow_type, one_array
from omnigraph.model.tokens import id_tokens
from omnigraph.model.types import PropType, Scalar
from omnigraph.storage.tables import ADDRESS
from omnigraph.validate import require_valid
from omnigraph.write.resolve import actions_of, before_columns

if TYPE_CHECKING:
    from omnigraph.model.embedding import EmbedSettings

Vector = Any  # a sequence of numbers, or an array of them
TEXT = PropType(Scalar.STRING, nullable=True)
EmbedTexts = Callable[[Sequence[str], int, str | None], Sequence[Vector]]


class EmbeddingFailed(OmnigraphError):
    """The embedding provider gave no vectors; nothing was staged."""

    code, kind = "embedding_failed", Kind.UNAVAILABLE
    default_help = "Nothing was changed. Try again later, or give the vectors in the data."


class Embedder:
    """Requests vectors from a provider, each text of a model once: a write that runs again requests nothing."""

    def __init__(self, provider: EmbedTexts) -> None:
        self._provider = provider
        self._known: dict[tuple[str | None, int, str], Vector] = {}

    @property
    def texts(self) -> int:
        """The number of distinct texts that have a vector."""
        return sum(vector is not None for vector in self._known.values())

    @property
    def characters(self) -> int:
        """Their total length."""
        return sum(len(t) for (_, _, t), vector in self._known.items() if vector is not None)

    def vectors(self, texts: Sequence[str], dim: int, model: str | None) -> list[Vector]:
        """The vectors of some texts."""
        unknown = [t for t in dict.fromkeys(texts) if (model, dim, t) not in self._known]
        if unknown:
            made = self._ask(unknown, dim, model)
            self._known |= {(model, dim, t): v for t, v in zip(unknown, made, strict=True)}
        return [self._known[model, dim, text] for text in texts]

    def _ask(self, texts: Sequence[str], dim: int, model: str | None) -> Sequence[Vector]:
        try:
            return self._provider(texts, dim, model)
        except OmnigraphError:
            raise
        except Exception as failure:
            raise EmbeddingFailed(f"the embedding provider failed: {failure}") from failure


def embedders(embed: EmbedTexts | None = None) -> Callable[[Snapshot], Embedder | None]:
    """The embedder for a state, the same one each time a verb runs: of the given provider, else of the one its graph
    or the environment names, else None: the caller then provides vectors."""
    made: dict[EmbedSettings, Embedder] = {}
    given = None if embed is None else Embedder(embed)

    def embedder(snapshot: Snapshot) -> Embedder | None:
        settings = None if given else settings_for(snapshot.embedding)
        if settings is None:
            return given
        return made.setdefault(settings, embedder_of(settings))

    return embedder


def settings_for(given: EmbedSettings | None = None) -> EmbedSettings | None:
    """How to embed: the settings of a graph, else those of the environment; None if neither is set."""
    if given is not None or not os.environ.get("OMNIGRAPH_EMBED_PROVIDER"):
        return given
    from omnigraph.read.search.embed import settings_of_environment

    return settings_of_environment()


def embedder_of(settings: EmbedSettings) -> Embedder:
    """The embedder for some settings."""
    return Embedder(embed_function(settings))


def embed_function(settings: EmbedSettings) -> EmbedTexts:
    """A function that calls the provider of some settings."""
    from omnigraph.read.search.embed import embed_texts, provider_of

    return lambda *args: list(embed_texts(*args, provider=provider_of(settings)))


def embedded(changes: Changes, txn: WriteTxn, embedder: Embedder) -> Changes:
    """The changes with the vectors of all new or changed texts."""
    tables = {
        table: _filled(change, txn, embedder) if _embeds(change) else change
        for table, change in changes.tables.items()
    }
    return replace(changes, tables=tables)


def _embeds(change: TypeChanges) -> list[Property]:
    return [prop for prop in change.kind.properties.values() if prop.embed is not None]


def _filled(change: TypeChanges, txn: WriteTxn, embedder: Embedder) -> TypeChanges:
    for prop in _embeds(change):
        if change.inserts is not None:
            missing = change.inserts[prop.name].is_null()
            change = replace(change, inserts=_embed(change.inserts, missing, prop, embedder))
        if change.updates is not None and change.updates.num_rows:
            stale = _stale(change.updates, prop, change, txn)
            change = replace(change, updates=_embed(change.updates, stale, prop, embedder))
    return change


def _stale(rows: pa.Table, prop: Property, change: TypeChanges, txn: WriteTxn) -> pa.Array:
    """Rows whose text changed while their vector stayed."""
    source = prop.embed.source if prop.embed is not None else ""
    view = txn.view(change.kind.table_id)
    stored = view.lookup("id", one_array(rows["id"]), [source, prop.name])
    at = pc.index_in(one_array(rows["id"]), value_set=one_array(stored["id"]))
    before = stored.take(at)
    # No text before and after is not a change.
    same_text = pa.array(equal_cells(rows[source], before[source]))
    changed = pc.indices_nonzero(pc.invert(same_text))
    old, new = (one_array(t[prop.name]).take(changed).to_pylist() for t in (before, rows))
    kept = [b is None or a == b for a, b in zip(old, new, strict=True)]
    stale = changed.filter(pa.array(kept, pa.bool_())).cast(pa.int64())
    return pc.is_in(pa.array(range(rows.num_rows), pa.int64()), value_set=stale)


def _embed(
    rows: pa.Table, wanted: pa.Array | pa.ChunkedArray, prop: Property, embedder: Embedder
) -> pa.Table:
    """The rows with new vectors where `wanted`; a row without a text gets none."""
    mask = one_array(wanted)
    if prop.embed is None or not pc.any(mask, min_count=0).as_py():
        return rows
    texts = rows[prop.embed.source].filter(mask).to_pylist()
    given = [text for text in texts if text is not None]
    made = iter(embedder.vectors(given, prop.type.vector_dim or 0, prop.embed.model))
    fresh = [None if text is None else next(made) for text in texts]
    both = pa.concat_arrays([one_array(rows[prop.name]), pa.array(fresh, arrow_type(prop.type))])
    places = np.arange(rows.num_rows)
    places[mask.to_numpy(zero_copy_only=False)] = rows.num_rows + np.arange(len(fresh))
    column = both.take(pa.array(places))
    return rows.set_column(rows.schema.get_field_index(prop.name), rows.field(prop.name), column)


# --- merged rows ---------------------------------------------------------------------------------------------------


def embedded_again(changes: Changes, sides: Sides, states: States, decided: Decisions) -> Changes:
    """The changes of a merge, with vectors recomputed that one side made from a text the other side has replaced.

    A vector given by a caller or by a decision stays. So does every vector if no provider is configured, as when a
    text is changed without one; but a vector of a model that the side of the text does not have is cleared, to be made
    later.
    """
    tables = {
        table: _vectors_again(change, sides, states, decided) if _embeds(change) else change
        for table, change in changes.tables.items()
    }
    return replace(changes, tables=tables)


def _vectors_again(
    change: TypeChanges, sides: Sides, states: States, decided: Decisions
) -> TypeChanges:
    rows = change.updates
    if rows is None or not rows.num_rows:
        return change
    ids = one_array(rows["id"])
    both = [(s, lookup(s, change.kind, ids)) for s in (sides.ours, sides.theirs)]
    ours, theirs = (found.take(positions(ids, found["id"])) for _, found in both)
    for prop in _embeds(change):
        for one, other, text_from in ((ours, theirs, states.ours), (theirs, ours, states.theirs)):
            stale = _of_another_text(rows, prop, one, other)
            stale &= ~_decided_about(change, ids, prop, decided, stale)
            if stale.any():
                rows = _made_again(rows, pa.array(stale), prop, text_from)
    return replace(change, updates=rows)


def _of_another_text(rows: pa.Table, prop: Property, one: pa.Table, other: pa.Table) -> Mask:
    """Where the text is from one side and the vector from the other, which had another text."""
    source, name = prop.embed.source if prop.embed is not None else "", prop.name
    text = equal_cells(rows[source], one[source]) & ~equal_cells(rows[source], other[source])
    vector = equal_cells(rows[name], other[name]) & ~equal_cells(rows[name], one[name])
    held: Mask = rows[name].is_valid().to_numpy()
    return text & vector & held


def _decided_about(
    change: TypeChanges, ids: pa.Array, prop: Property, decided: Decisions, among: Mask
) -> Mask:
    found = np.zeros(len(ids), np.bool_)
    for row in np.flatnonzero(among):
        cell = (change.kind.name, ids[int(row)].as_py(), prop.name)
        found[row] = cell in decided.rows
    return found


def _made_again(rows: pa.Table, stale: pa.Array, prop: Property, text_from: Snapshot) -> pa.Table:
    embedder = embedders()(text_from)
    if embedder is not None:
        return _embed(rows, stale, prop, embedder)
    known = {
        p.property_id for kind in text_from.catalog.entities() for p in kind.properties.values()
    }
    if prop.property_id in known or not prop.type.nullable:
        return rows
    nothing = pa.scalar(None, rows.schema.field(prop.name).type)
    cleared = pc.if_else(stale, nothing, rows[prop.name])
    return rows.set_column(rows.schema.get_field_index(prop.name), rows.field(prop.name), cleared)


# --- stored rows ---------------------------------------------------------------------------------------------------


def without_vector(prop: Property, *, every: bool = False) -> ir.Expr:
    """The condition for rows to embed: they have a text, and no vector unless `every` is set."""
    source = prop.embed.source if prop.embed is not None else ""
    text = ir.IsNull(ir.Column("", source, TEXT), negated=True)
    return text if every else ir.And((ir.IsNull(ir.Column("", prop.name, prop.type)), text))


def fill_vectors(
    type_name: str, name: str, ids: pa.Array, embedder: Embedder, *, every: bool = False
) -> Verb:
    """The verb that gives some stored rows their vectors; rows that were deleted, or have one by now, are skipped."""

    def verb(txn: WriteTxn) -> PublishPlan:
        kind = txn.catalog.nodes.get(type_name)
        prop = None if kind is None else kind.properties.get(name)
        if kind is None or prop is None or prop.embed is None:
            return PublishPlan(kind="embed", empty=True, value=0)
        stored = txn.view(kind.table_id).lookup("id", ids, arrow_schema(kind).names)
        rows = selected(without_vector(prop, every=every), stored)
        if not rows.num_rows:
            return PublishPlan(kind="embed", empty=True, value=0)
        change = _with_vectors(rows, kind, prop, embedder)
        if change.is_empty:
            return PublishPlan(kind="embed", empty=True, value=0)
        changes = Changes({kind.table_id: change})
        reads = dict(require_valid(changes, txn))
        reads[kind.table_id] = reads.get(kind.table_id, Reads()) | Reads(id_tokens(ids))
        filled = 0 if change.updates is None else change.updates.num_rows
        return PublishPlan(kind="embed", actions=actions_of(changes), reads=reads, value=filled)

    return verb


def _with_vectors(
    rows: pa.Table, kind: NodeType, prop: Property, embedder: Embedder
) -> TypeChanges:
    wanted = pa.array(np.ones(rows.num_rows, np.bool_))
    updates = _embed(rows.select(arrow_schema(kind).names), wanted, prop, embedder)
    made = updates[prop.name].is_valid()  # a text may have been refused
    return TypeChanges(
        kind,
        updates=updates.filter(made).cast(arrow_schema(kind)),
        before=rows.filter(made).select([*before_columns(kind), ADDRESS]),
    )
