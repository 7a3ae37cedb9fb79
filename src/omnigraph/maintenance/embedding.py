"""Computing missing vectors later: batch by batch, each batch a commit.

Finished batches are kept whatever happens afterwards, so interrupted work continues where it stopped. Rows that share a
text are embedded together, so that it is paid for once; a text the provider refuses is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.plan import Verb
from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import OptionInvalid, TableNotFound
from omnigraph.model.catalog import NodeType, Property
from omnigraph.model.embedding import EmbedSettings
from omnigraph.model.frozen import frozen
from omnigraph.read.arrays import Ints
from omnigraph.read.search.embed import provider_of
from omnigraph.read.search.providers import EmbedRefused
from omnigraph.storage import metrics
from omnigraph.values.spelling import fields_json
from omnigraph.write.embed import (
    Embedder,
    EmbedTexts,
    Vector,
    embed_function,
    fill_vectors,
    without_vector,
)

BATCH_ROWS_MIN = 512  # of a commit; a provider that takes larger batches gets them
OF_TEXTS = (400, 413, 422)  # how providers refuse a text: too long, empty or not allowed
HARMLESS = "text"

Publish = Callable[[Verb], Any]  # publishes a verb as a commit, and returns its value


@frozen
class EmbedReport:
    """What was embedded of one property, or would be; equal texts count once, since they are paid for once."""

    type: str
    property: str
    rows: int
    texts: int
    characters: int
    commits: int = 0
    refused: int = 0  # texts the provider refused; their rows have no vector

    def to_json(self) -> dict[str, Any]:
        return fields_json(self)


def embedded_properties(
    snapshot: Snapshot, types: Sequence[str] | None, name: str | None
) -> list[tuple[NodeType, Property]]:
    """The properties made by `@embed`, of the given types and name."""
    nodes = snapshot.catalog.nodes
    unknown = next((each for each in types or () if each not in nodes), None)
    if unknown is not None:
        raise TableNotFound(f"there is no node type {unknown!r}")
    found = [
        (kind, prop)
        for kind in nodes.values()
        if types is None or kind.name in types
        for prop in kind.properties.values()
        if prop.embed is not None and name in (None, prop.name)
    ]
    if not found and (types is not None or name is not None):
        wanted = ", ".join(types or ("any type",)) + (f" with the name {name!r}" if name else "")
        raise OptionInvalid(
            f"no property of {wanted} is made by @embed",
            help='Declare one in the schema: embedding: Vector(256)? @embed("body")',
        )
    return found


def count_missing(
    snapshot: Snapshot, kind: NodeType, prop: Property, *, every: bool = False
) -> EmbedReport:
    """How much there is to embed."""
    rows, distinct = 0, pa.array([], pa.string())
    for batch in _missing(snapshot, kind, prop, every):
        rows += batch.num_rows
        texts = batch.column(_source(prop)).cast(pa.string())
        distinct = pa.concat_arrays([distinct, texts]).unique()
    characters = pc.sum(pc.utf8_length(distinct)).as_py() or 0
    return EmbedReport(kind.name, prop.name, rows, len(distinct), characters)


def embed_missing(
    snapshot: Snapshot,
    what: tuple[NodeType, Property],
    settings: EmbedSettings,
    publish: Publish,
    *,
    every: bool = False,
) -> EmbedReport:
    """Compute the vectors missing in a state, in separate commits on top of any concurrent writes."""
    kind, prop = what
    provider, ask = provider_of(settings), _LeavingOut(embed_function(settings))
    batch_rows = max(BATCH_ROWS_MIN, provider.batch_texts_max * provider.requests_max)
    ids, firsts = _by_text(snapshot, kind, prop, every)
    rows = texts = characters = commits = 0
    for start, stop in _batches(firsts, batch_rows):
        # Of this batch only: it keeps its vectors in case the commit is retried.
        embedder = Embedder(ask)
        verb = fill_vectors(kind.name, prop.name, ids[start:stop], embedder, every=every)
        filled = publish(verb)
        rows, commits = rows + filled, commits + bool(filled)
        if not start or firsts[start] != firsts[start - 1]:  # else it is counted already
            texts, characters = texts + embedder.texts, characters + embedder.characters
        metrics.progress(f"embedding {kind.name}.{prop.name}", rows, stop / len(ids))
    return EmbedReport(kind.name, prop.name, rows, texts, characters, commits, ask.refused)


class _LeavingOut:
    """A provider that leaves out the texts it refuses, instead of refusing all that are sent with them."""

    def __init__(self, ask: EmbedTexts) -> None:
        self._ask = ask
        self._works = False  # it has made a vector
        self.refused = 0

    def __call__(self, texts: Sequence[str], dim: int, model: str | None) -> Sequence[Vector]:
        try:
            made = self._ask(texts, dim, model)
        except EmbedRefused as refused:
            if refused.details.get("status") not in OF_TEXTS:
                raise
            return self._in_halves(texts, dim, model)
        self._works = True
        return made

    def _in_halves(self, texts: Sequence[str], dim: int, model: str | None) -> Sequence[Vector]:
        if not self._works:  # a wrong setting is refused with any text
            self._ask([HARMLESS], dim, model)
            self._works = True
        if len(texts) == 1:
            self.refused += 1
            return [None]
        half = len(texts) // 2
        return [*self(texts[:half], dim, model), *self(texts[half:], dim, model)]


def _source(prop: Property) -> str:
    return prop.embed.source if prop.embed is not None else ""


def _missing(
    snapshot: Snapshot, kind: NodeType, prop: Property, every: bool
) -> Iterator[pa.RecordBatch]:
    """The ids and texts of the rows to embed."""
    condition = without_vector(prop, every=every)
    return snapshot.table_of(kind).batches(["id", _source(prop)], condition)


def _by_text(
    snapshot: Snapshot, kind: NodeType, prop: Property, every: bool
) -> tuple[pa.Array, Ints]:
    """The ids of the rows to embed, those with equal texts side by side, and for each the first row with its text."""
    ids, codes = [pa.array([], pa.string())], [np.empty(0, np.int64)]
    for batch in _missing(snapshot, kind, prop, every):
        texts = batch.column(_source(prop)).to_pylist()  # each is sent to a provider anyway
        codes.append(np.fromiter(map(hash, texts), np.int64, len(texts)))
        ids.append(batch.column("id").cast(pa.string()))
    _, first, which = np.unique(np.concatenate(codes), return_index=True, return_inverse=True)
    firsts = first[which]
    order = np.argsort(firsts, kind="stable")
    return pa.concat_arrays(ids).take(pa.array(order)), firsts[order]


def _batches(firsts: Ints, rows_max: int) -> Iterator[tuple[int, int]]:
    """Where batches begin and end. Rows with equal texts share one, or have some for themselves."""
    ends = np.append(np.flatnonzero(np.diff(firsts)) + 1, len(firsts))
    start = 0
    while start < len(firsts):
        is_rest = start > 0 and firsts[start] == firsts[start - 1]
        among = ends[ends > start][:1] if is_rest else ends[(ends > start)]
        fitting = among[among <= start + rows_max]
        stop = int(fitting[-1]) if len(fitting) else min(start + rows_max, len(firsts))
        yield start, stop
        start = stop
