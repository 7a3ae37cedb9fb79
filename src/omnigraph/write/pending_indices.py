"""Which indices the schema declares, and how far each is built.

Writes never build indices; maintenance does. Until then reads find the same rows without them, only slower.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.core.snapshot import Snapshot
from omnigraph.model.catalog import Catalog, NodeType, Property
from omnigraph.model.types import Scalar

KINDS = {
    "value": frozenset({"BTREE", "BITMAP"}),
    "text": frozenset({"INVERTED", "TEXT"}),
    "vector": frozenset({"IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ"}),
}


@dataclass(frozen=True, slots=True)
class DeclaredIndex:
    """An index the schema asks for: by value (equality, ranges), over words, or over vectors."""

    type_name: str
    table_id: str
    column: str
    kind: str  # value, text or vector


@dataclass(frozen=True, slots=True)
class PendingIndex:
    """A declared index that does not cover all rows of its table yet."""

    index: DeclaredIndex
    rows: int  # of the table
    uncovered_rows: int


def declared_indices(catalog: Catalog) -> Iterator[DeclaredIndex]:
    """Every index a schema asks for, types by name: ids and ends always, keys, unique groups and `@index`."""
    for kind in catalog.entities():
        columns = ["id"] if isinstance(kind, NodeType) else ["id", "src", "dst"]
        groups = [*kind.uniques, *([kind.key] if kind.key else [])]
        members = [name for group in groups for name in group if name not in columns]
        for name in dict.fromkeys([*columns, *members]):
            yield DeclaredIndex(kind.name, kind.table_id, name, "value")
        for group in kind.indices:
            prop = kind.properties.get(group[0]) if len(group) == 1 else None
            wanted = _kind_of(prop) if prop is not None else None
            if wanted is not None and not (wanted == "value" and group[0] in members):
                yield DeclaredIndex(kind.name, kind.table_id, group[0], wanted)


def _kind_of(prop: Property) -> str | None:
    kind = prop.type
    if kind.is_vector:
        return "vector"
    if not kind.is_plain:
        return None
    return "text" if kind.scalar is Scalar.STRING and kind.enum is None else "value"


def pending_indices(snapshot: Snapshot) -> list[PendingIndex]:
    """The declared indices that are missing or incomplete in a state of the graph."""
    found = []
    for index in declared_indices(snapshot.catalog):
        table = snapshot.table(index.table_id)
        fragments = table.fragments()
        covered: frozenset[int] = frozenset().union(
            *(
                built.covered_fragments
                for built in table.indices()
                if built.column == index.column and built.kind in KINDS[index.kind]
            )
        )
        rows = {f.fragment_id: f.physical_rows - f.deleted_rows for f in fragments}
        uncovered = sum(count for fragment, count in rows.items() if fragment not in covered)
        if uncovered:
            found.append(PendingIndex(index, sum(rows.values()), uncovered))
    return found
