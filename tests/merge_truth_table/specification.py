"""What a merge means, row by row over whole states: slow, obvious, and written without a look at the real one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.graph import Graph
from omnigraph.model.catalog import Catalog

Row = Mapping[str, Any]
Facts = dict[tuple[str, ...], Any]  # names and rules of a schema, by what they are about
ENDS = {
    "Knows": ("Person", "Person"),
    "Lives": ("Person", "City"),
    "Likes": ("Person", "Person"),
    "Visits": ("Person", "City"),
}


@dataclass(frozen=True, slots=True)
class Image:
    """A state. Types and properties go by the names they had at the base, whatever they are called now."""

    facts: Facts = field(default_factory=dict)
    rows: Mapping[tuple[str, str], Row] = field(default_factory=dict)  # by type and id


def image_of(graph: Graph, branch: str, base: Catalog) -> Image:
    """Everything a branch holds."""
    snapshot = graph.snapshot(branch)
    types = {kind.type_id: kind.name for kind in base.entities()}
    properties = {p.property_id: p.name for k in base.entities() for p in k.properties.values()}
    facts: Facts = {}
    rows: dict[tuple[str, str], Row] = {}
    for kind in snapshot.catalog.entities():
        type_name = types.get(kind.type_id, kind.name)
        facts["type", type_name] = kind.name
        names = {p.name: properties.get(p.property_id, p.name) for p in kind.properties.values()}
        for now, then in names.items():
            facts["property", type_name, then] = now
        for rule in kind.ranges:
            facts["range", type_name, names[rule.property]] = (rule.minimum, rule.maximum)
        table = snapshot.table_of(kind)
        for row in table.scan(table.schema.names).to_pylist():
            rows[type_name, row["id"]] = {names.get(n, n): v for n, v in row.items()}
    return Image(facts, rows)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What has to come out: the merged state, or what is in conflict."""

    kinds: frozenset[str]
    image: Image


def specified(base: Image, ours: Image, theirs: Image) -> Verdict:
    """Merge three states."""
    facts, broken = _merged_facts(base, ours, theirs)
    if broken:
        return Verdict(frozenset({"schema_conflict"}), ours)
    kinds: set[str] = set()
    rows: dict[tuple[str, str], Row] = {}
    for key in sorted({*base.rows, *ours.rows, *theirs.rows}):
        if ("type", key[0]) not in facts:
            continue
        images = [_projected(side.rows.get(key), key[0], facts) for side in (base, ours, theirs)]
        row, found = _merged_row(*images)
        kinds |= found
        if row is not None:
            rows[key] = row
    kinds |= set(_lost_values(base, (ours, theirs), facts))
    kinds |= set(_broken_rules(rows, facts))
    return Verdict(frozenset(kinds), Image(facts, rows))


def _merged_facts(base: Image, ours: Image, theirs: Image) -> tuple[Facts, bool]:
    merged: Facts = {}
    broken = False
    for fact in sorted({*base.facts, *ours.facts, *theirs.facts}):
        b, o, t = (side.facts.get(fact) for side in (base, ours, theirs))
        if b not in (o, t) and o != t:
            broken = True
        value = t if o == b else o
        if value is not None:
            merged[fact] = value
    for fact in base.facts:
        if fact[0] == "type" and fact not in merged:
            for side in (ours, theirs):
                kept = fact in side.facts
                broken = broken or (kept and _of_type(side, fact[1]) != _of_type(base, fact[1]))
    return merged, broken


def _lost_values(base: Image, sides: tuple[Image, Image], facts: Facts) -> Iterator[str]:
    """Values that a side wrote to a property which the other side dropped."""
    for side in sides:
        for (type_name, id), row in side.rows.items():
            before = base.rows.get((type_name, id), {})
            for name, value in row.items():
                dropped = ("property", type_name, name) in side.facts.keys() - facts.keys()
                if dropped and value is not None and value != before.get(name):
                    yield "lost_value"


def _of_type(image: Image, type_name: str) -> dict[tuple[str, str], Row]:
    return {key: row for key, row in image.rows.items() if key[0] == type_name}


def _projected(row: Row | None, type_name: str, facts: Facts) -> Row | None:
    if row is None:
        return None
    names = [f[2] for f in facts if f[0] == "property" and f[1] == type_name]
    structural = {n: row[n] for n in ("id", "src", "dst") if n in row}
    return structural | {name: row.get(name) for name in names}


def _merged_row(
    base: Row | None, ours: Row | None, theirs: Row | None
) -> tuple[Row | None, set[str]]:
    if theirs in (ours, base):
        return ours, set()
    if ours == base:
        return theirs, set()
    if ours is None or theirs is None:
        return ours, {"delete_vs_update"}
    kinds = set()
    merged = {}
    for name, mine in ours.items():
        old = None if base is None else base[name]
        merged[name] = theirs[name] if base is not None and mine == old else mine
        if mine != theirs[name] and (base is None or old not in (mine, theirs[name])):
            kinds.add("divergent_insert" if base is None else "divergent_update")
    return merged, kinds


def _broken_rules(rows: Mapping[tuple[str, str], Row], facts: Facts) -> Iterator[str]:
    """Rules of a whole state, each looked at for every row."""
    for (type_name, _), row in rows.items():
        for side, node in zip(("src", "dst"), ENDS.get(type_name, ()), strict=False):
            if (node, row[side]) not in rows:
                yield "orphan_edge"
        for name, value in row.items():
            low, high = facts.get(("range", type_name, name), (None, None))
            if value is not None and low is not None and not low <= value <= high:
                yield "value_constraint_violation"
    emails = [r["email"] for (t, _), r in rows.items() if t == "Person" and r["email"]]
    if len(emails) != len(set(emails)):
        yield "unique_violation"
    homes = [row["src"] for (t, _), row in rows.items() if t == "Lives"]
    if len(homes) != len(set(homes)):
        yield "cardinality_violation"


def broken_rules(image: Image) -> list[str]:
    """What is wrong with a state by itself: nothing, ever."""
    return list(_broken_rules(image.rows, image.facts))
