"""Vectors made from texts (`@embed`), for the rows of a write whose text is new or changed.

They are made before anything is staged, and each text once: a write that runs again on a newer head asks for nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.txn import WriteTxn
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.merge.cells import equal_cells
from omnigraph.model.catalog import Property
from omnigraph.model.changes import Changes, TypeChanges
from omnigraph.model.columns import arrow_type

if TYPE_CHECKING:
    from omnigraph.read.search.embed import EmbedSettings

Vector = Any  # a sequence of numbers, or an array of them
EmbedTexts = Callable[[Sequence[str], int, str | None], Sequence[Vector]]


class EmbeddingFailed(OmnigraphError):
    """The embedding provider gave no vectors; nothing was staged."""

    code, kind = "embedding_failed", Kind.UNAVAILABLE
    default_help = "Nothing was changed. Try again later, or give the vectors in the data."


class Embedder:
    """Asks a provider for vectors, each text of a model once: a write that runs again asks for nothing."""

    def __init__(self, provider: EmbedTexts) -> None:
        self._provider = provider
        self._known: dict[tuple[str | None, int, str], Vector] = {}

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


def embedder_for(embed: EmbedTexts | None) -> Embedder | None:
    """The given provider, else the one the environment names, else none: vectors are then the caller's to give."""
    if embed is not None:
        return Embedder(embed)
    settings = settings_here()
    return None if settings is None else embedder_of(settings)


def settings_here() -> EmbedSettings | None:
    """What this process was told about embedding; none if nothing."""
    if not os.environ.get("OMNIGRAPH_EMBED_PROVIDER"):
        return None
    from omnigraph.read.search.embed import EmbedSettings

    return EmbedSettings.of_environment()


def embedder_of(settings: EmbedSettings) -> Embedder:
    """What asks the provider of some settings."""
    from omnigraph.read.search.embed import embed_texts, provider_of

    return Embedder(lambda *asked: list(embed_texts(*asked, provider=provider_of(settings))))


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
    # No text before and none after is no change.
    same_text = pa.array(equal_cells(rows[source], before[source]))
    changed = pc.indices_nonzero(pc.invert(same_text))
    old, new = (_one(t[prop.name]).take(changed).to_pylist() for t in (before, rows))
    kept = [b is None or a == b for a, b in zip(old, new, strict=True)]
    stale = changed.filter(pa.array(kept, pa.bool_())).cast(pa.int64())
    return pc.is_in(pa.array(range(rows.num_rows), pa.int64()), value_set=stale)


def _embed(
    rows: pa.Table, wanted: pa.Array | pa.ChunkedArray, prop: Property, embedder: Embedder
) -> pa.Table:
    """The rows with new vectors where they are wanted; a row without a text gets none."""
    mask = _one(wanted)
    if prop.embed is None or not pc.any(mask, min_count=0).as_py():
        return rows
    texts = rows[prop.embed.source].filter(mask).to_pylist()
    given = [text for text in texts if text is not None]
    made = iter(embedder.vectors(given, prop.type.vector_dim or 0, prop.embed.model))
    fresh = [None if text is None else next(made) for text in texts]
    both = pa.concat_arrays([_one(rows[prop.name]), pa.array(fresh, arrow_type(prop.type))])
    places = np.arange(rows.num_rows)
    places[mask.to_numpy(zero_copy_only=False)] = rows.num_rows + np.arange(len(fresh))
    column = both.take(pa.array(places))
    return rows.set_column(rows.schema.get_field_index(prop.name), rows.field(prop.name), column)


def _one(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
