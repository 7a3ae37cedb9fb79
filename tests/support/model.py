"""A graph as dictionaries of dictionaries: what every write means, written down a second time, as plainly as can be.

Nothing here is quick or shares code with what it checks. A write is tried on a copy; `broken` says which rules the copy
breaks, and the copy replaces the original only if there are none.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from omnigraph.model.catalog import Catalog, EdgeType, NodeOrEdgeType

Row = dict[str, Any]
Given = Mapping[str, Any]
Table = dict[str, Row]


@dataclass(slots=True)
class Model:
    """The rows of every type by id, and the counts of the write at hand."""

    catalog: Catalog
    tables: dict[str, Table] = field(default_factory=dict)
    nodes: int = 0
    edges: int = 0
    found: set[str] = field(default_factory=set)  # rules the input of the write broke already
    replaced: set[str] = field(default_factory=set)  # types all rows of which are new
    _numbers: Iterable[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        for kind in self.catalog.entities():
            self.tables.setdefault(kind.name, {})

    def begin(self) -> Model:
        """A copy for one write."""
        return Model(self.catalog, copy.deepcopy(self.tables), _numbers=self._numbers)

    # --- statements ----------------------------------------------------------------------------------------------

    def insert(self, type_name: str, rows: Sequence[Given]) -> None:
        """A statement of a mutation: keys that exist are changed in the fields given."""
        self.write(type_name, rows)
        self._count(type_name, len(rows))

    def write(self, type_name: str, rows: Sequence[Given], mode: str = "merge") -> None:
        """Rows of one input."""
        kind, table = self._kind(type_name), self.tables[type_name]
        stored = {} if mode == "overwrite" else dict(table)
        if mode == "overwrite":
            table.clear()
            self.replaced.add(type_name)
        seen: set[str] = set()
        for given in rows:
            entity = self._id(kind, given)
            if entity is None:
                self.found.add("key")
            elif entity in seen and (kind.key is not None or mode != "merge"):
                self.found.add("duplicate")
            elif entity in stored and mode == "append":
                self.found.add("key_conflict")
            else:
                base = table.get(entity) or _defaults(kind)
                table[entity] = {**base, **given, "id": entity}
            if entity is not None:
                seen.add(entity)

    def update(
        self, type_name: str, holds: Callable[[Row], bool | None], values: Callable[[Row], Given]
    ) -> None:
        """Every row for which the condition is true, from the row as it was."""
        for entity, row in list(self.tables[type_name].items()):
            if holds(row):
                self.tables[type_name][entity] = {**row, **values(row)}
                self._count(type_name, 1)

    def delete(self, type_name: str, holds: Callable[[Row], bool | None]) -> None:
        """Every row for which the condition is true, and with nodes their edges."""
        gone = [entity for entity, row in self.tables[type_name].items() if holds(row)]
        self._remove(type_name, gone)
        for edge in self.catalog.edges.values() if type_name in self.catalog.nodes else ():
            touches = [
                entity
                for entity, row in self.tables[edge.name].items()
                if (edge.from_type == type_name and row["src"] in gone)
                or (edge.to_type == type_name and row["dst"] in gone)
            ]
            self._remove(edge.name, touches)

    def _remove(self, type_name: str, ids: list[str]) -> None:
        for entity in ids:
            del self.tables[type_name][entity]
        self._count(type_name, len(ids))

    def _count(self, type_name: str, rows: int) -> None:
        if type_name in self.catalog.nodes:
            self.nodes += rows
        else:
            self.edges += rows

    def _kind(self, type_name: str) -> NodeOrEdgeType:
        kind = self.catalog.entity(type_name)
        assert kind is not None
        return kind

    def _id(self, kind: NodeOrEdgeType, given: Given) -> str | None:
        if kind.key is None:
            return given.get("id") or f"fresh-{next(iter(self._numbers))}"
        members = [given.get(name) for name in kind.key]
        if any(member is None for member in members):
            return None
        texts = [str(member) for member in members]
        return texts[0] if len(texts) == 1 else json.dumps(texts, separators=(",", ":"))

    # --- rules -----------------------------------------------------------------------------------------------------

    def broken(self, before: Model) -> set[str]:
        """The rules this state breaks, coming from a state that broke none."""
        rules = set(self.found)
        for kind in self.catalog.entities():
            rows = list(self.tables[kind.name].values())
            changed = [row for row in rows if before.tables[kind.name].get(row["id"]) != row]
            rules |= {rule for row in changed for rule in _row_rules(kind, row)}
            rules |= {"unique" for group in kind.uniques if _repeats(rows, group)}
            if isinstance(kind, EdgeType):
                rules |= self._end_rules(kind, before)
                rules |= self._count_rules(kind, before)
        return rules

    def _end_rules(self, kind: EdgeType, before: Model) -> set[str]:
        rules = set()
        for entity, row in self.tables[kind.name].items():
            old = before.tables[kind.name].get(entity)
            for side, node in (("src", kind.from_type), ("dst", kind.to_type)):
                if row[side] not in self.tables[node]:
                    stayed = old is not None and old[side] == row[side]
                    stayed = stayed and kind.name not in self.replaced
                    rules.add("orphan_edge" if stayed else "endpoint")
        return rules

    def _count_rules(self, kind: EdgeType, before: Model) -> set[str]:
        old, new = _sources(before.tables[kind.name]), _sources(self.tables[kind.name])
        moved = [e for e in {*old, *new} if old.get(e) != new.get(e)]
        touched = {s for e in moved for s in (old.get(e), new.get(e)) if s is not None}
        gone = {s for s in touched if s in before.tables[kind.from_type]}
        gone = {s for s in gone if s not in self.tables[kind.from_type]}
        counts = Counter(new.values())
        low, high = kind.cardinality.minimum, kind.cardinality.maximum
        fits = all(
            low <= counts[source] and (high is None or counts[source] <= high)
            for source in touched - gone
        )
        return set() if fits else {"cardinality"}


def _sources(edges: Table) -> dict[str, str]:
    return {entity: row["src"] for entity, row in edges.items()}


def _defaults(kind: NodeOrEdgeType) -> Row:
    return {name: prop.default for name, prop in kind.properties.items()}


def _row_rules(kind: NodeOrEdgeType, row: Row) -> set[str]:
    rules = set()
    for name, prop in kind.properties.items():
        value = row[name]
        if value is None:
            rules |= set() if prop.type.nullable else {"required"}
        elif prop.type.enum is not None and value not in prop.type.enum:
            rules.add("enum")
    for bound in kind.ranges:
        value = row[bound.property]
        if value is not None and not _within(value, bound.minimum, bound.maximum):
            rules.add("range")
    return rules


def _within(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def _repeats(rows: list[Row], group: tuple[str, ...]) -> bool:
    tuples = [tuple(row[name] for name in group) for row in rows]
    whole = [values for values in tuples if None not in values]
    return len(set(whole)) < len(whole)
