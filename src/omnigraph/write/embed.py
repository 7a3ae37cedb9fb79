"""Vectors made from texts (`@embed`), for the rows of a write whose text is new or changed.

They are made before anything is staged, and each text once: a write that runs again on a newer head asks for nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.txn import WriteTxn
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.merge.cells import equal_cells
from omnigraph.model.catalog import Property
from omnigraph.model.changes import Changes, TypeChanges
from omnigraph.model.columns import arrow_type

EmbedTexts = Callable[[Sequence[str], int, str | None], Sequence[Sequence[float]]]


class EmbeddingFailed(OmnigraphError):
    """The embedding provider gave no vectors; nothing was staged."""

    code, kind = "embedding_failed", Kind.UNAVAILABLE
    default_help = "Nothing was changed. Try again later, or give the vectors in the data."


class Embedder:
    """Asks a provider for vectors, each text of a model once: a write that runs again asks for nothing."""

    def __init__(self, provider: EmbedTexts) -> None:
        self._provider = provider
        self._known: dict[tuple[str | None, int, str], Sequence[float]] = {}

    def vectors(self, texts: Sequence[str], dim: int, model: str | None) -> list[Sequence[float]]:
        """The vectors of some texts."""
        unknown = [t for t in dict.fromkeys(texts) if (model, dim, t) not in self._known]
        if unknown:
            made = self._ask(unknown, dim, model)
            self._known |= {(model, dim, t): v for t, v in zip(unknown, made, strict=True)}
        return [self._known[model, dim, text] for text in texts]

    def _ask(self, texts: Sequence[str], dim: int, model: str | None) -> Sequence[Sequence[float]]:
        try:
            return self._provider(texts, dim, model)
        except OmnigraphError:
            raise
        except Exception as failure:
            raise EmbeddingFailed(f"the embedding provider failed: {failure}") from failure


def embedder_for(embed: EmbedTexts | None) -> Embedder | None:
    """The given provider, else the one the environment names, else none: vectors are then the caller's to give."""
    if embed is not None:
        return Embedder(embed)
    if not os.environ.get("OMNIGRAPH_EMBED_PROVIDER"):
        return None
    from omnigraph.read.search.embed import embed_texts

    return Embedder(lambda texts, dim, model: embed_texts(texts, dim, model).tolist())


def embedded(changes: Changes, txn: WriteTxn, embedder: Embedder) -> Changes:
    """The changes with every vector filled that its text calls for."""
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
    stored = view.lookup("id", _one(rows["id"]), [source, prop.name])
    at = pc.index_in(_one(rows["id"]), value_set=_one(stored["id"]))
    before = stored.take(at)
    same_text = pa.array(equal_cells(rows[source], before[source]))  # no text before and after is no change
    old, new = before[prop.name].to_pylist(), rows[prop.name].to_pylist()
    kept = pa.array([a == b or b is None for a, b in zip(old, new, strict=True)], pa.bool_())
    return pc.and_(kept, pc.invert(same_text))


def _embed(
    rows: pa.Table, wanted: pa.Array | pa.ChunkedArray, prop: Property, embedder: Embedder
) -> pa.Table:
    if prop.embed is None:
        return rows
    mask = _one(wanted)
    if not pc.any(mask, min_count=0).as_py():
        return rows
    texts = rows[prop.embed.source].filter(mask).to_pylist()
    given = [text for text in texts if text is not None]
    made = iter(embedder.vectors(given, prop.type.vector_dim or 0, prop.embed.model))
    fresh = iter([None if text is None else next(made) for text in texts])
    old = rows[prop.name].to_pylist()
    vectors = [next(fresh) if new else v for new, v in zip(mask.to_pylist(), old, strict=True)]
    column = pa.array(vectors, arrow_type(prop.type))
    return rows.set_column(rows.schema.get_field_index(prop.name), rows.field(prop.name), column)


def _one(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
