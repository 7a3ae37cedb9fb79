"""Computing missing vectors later: batch by batch, each batch a commit.

Finished batches are kept whatever happens afterwards, so interrupted work continues where it stopped. Texts that rows
share are embedded once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.plan import Verb
from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import OptionInvalid, TableNotFound
from omnigraph.model.catalog import NodeType, Property
from omnigraph.model.embedding import EmbedSettings
from omnigraph.model.frozen import frozen
from omnigraph.read.search.embed import provider_of
from omnigraph.storage import metrics
from omnigraph.values.spelling import fields_json
from omnigraph.write.embed import Embedder, embed_function, fill_vectors, without_vector

BATCH_ROWS_MIN = 512  # of a commit; a provider that takes larger batches gets them

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
    for batch in _missing(snapshot, kind, prop, every, ["id", _source(prop)]):
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
    provider, ask = provider_of(settings), embed_function(settings)
    batch_rows = max(BATCH_ROWS_MIN, provider.batch_texts_max * provider.requests_max)
    todo = snapshot.table_of(kind).count(without_vector(prop, every=every))
    seen = rows = texts = characters = commits = 0
    for batch in _missing(snapshot, kind, prop, every, ["id"], batch_rows) if todo else ():
        embedder = Embedder(
            ask
        )  # of this batch only: it keeps its vectors in case the commit is retried
        verb = fill_vectors(kind.name, prop.name, batch.column("id"), embedder, every=every)
        filled = publish(verb)
        rows, commits = rows + filled, commits + bool(filled)
        texts, characters = texts + embedder.texts, characters + embedder.characters
        seen += batch.num_rows
        metrics.progress(f"embedding {kind.name}.{prop.name}", rows, seen / todo)
    return EmbedReport(kind.name, prop.name, rows, texts, characters, commits)


def _source(prop: Property) -> str:
    return prop.embed.source if prop.embed is not None else ""


def _missing(
    snapshot: Snapshot,
    kind: NodeType,
    prop: Property,
    every: bool,
    columns: list[str],
    batch_rows: int = 65_536,
) -> Iterator[pa.RecordBatch]:
    """The rows to embed, in batches of about this size."""
    condition = without_vector(prop, every=every)
    found = snapshot.table_of(kind).batches(columns, condition, batch_rows=batch_rows)
    waiting: list[pa.RecordBatch] = []
    for batch in found:  # the table store cuts batches before it filters them
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= batch_rows:
            yield from _joined(waiting, batch_rows)
            waiting = []
    yield from _joined(waiting, batch_rows)


def _joined(parts: list[pa.RecordBatch], rows_max: int) -> list[pa.RecordBatch]:
    if not parts:
        return []
    whole = pa.Table.from_batches(parts).combine_chunks()
    return [batch for batch in whole.to_batches(max_chunksize=rows_max) if batch.num_rows]
