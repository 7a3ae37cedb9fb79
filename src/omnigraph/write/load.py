"""Load rows of many types as one commit: decode, complete, validate, plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.plan import PublishPlan, Verb
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import OptionInvalid, Violation, WriteConflict
from omnigraph.model.catalog import Catalog, EdgeType, NodeOrEdgeType
from omnigraph.model.changes import Changes, Incoming
from omnigraph.model.frozen import frozen
from omnigraph.storage import metrics
from omnigraph.validate import evaluate, require_valid
from omnigraph.validate.listing import EVERY, Destination, Packed, listing, packed
from omnigraph.write.embed import EmbedTexts, embedded, embedders
from omnigraph.write.input.options import Options
from omnigraph.write.input.parts import to_incoming
from omnigraph.write.input.problems import Gathered, Problems, SortedOut
from omnigraph.write.input.quarantine import (
    QUARANTINE_ROUNDS_MAX,
    Place,
    endless,
    left_out,
    refuse_too_many,
    require_new,
    write_quarantine,
)
from omnigraph.write.input.sources import InputSource, source_of
from omnigraph.write.removal import with_incident_edges
from omnigraph.write.repeats import Repeats
from omnigraph.write.resolve import Mode, RowCounts, actions_of, kind_of, resolve

CHECKED_PART = 0.9  # the share of a load before writing, roughly


@frozen
class LoadOutcome:
    """How many rows of each type a load had, and what happened to them.

    `new_each_time` counts edges without an id or a key; `rows` has new, changed and deleted rows by type, and those
    skipped because another row has the same id or because they came too late.
    """

    nodes: Mapping[str, int] = field(default_factory=dict)
    edges: Mapping[str, int] = field(default_factory=dict)
    new_each_time: Mapping[str, int] = field(default_factory=dict)
    rows: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    quarantined: Mapping[str, int] = field(default_factory=dict)  # left out, by type
    cost: Mapping[str, Any] = field(default_factory=dict, compare=False)  # engine, seconds …

    def to_json(self) -> dict[str, Any]:
        """Its form in the commit."""
        counts: dict[str, Any] = {"nodes": dict(self.nodes), "edges": dict(self.edges)}
        others = {
            name: getattr(self, name) for name in ("new_each_time", "rows", "quarantined", "cost")
        }
        return counts | {name: dict(given) for name, given in others.items() if given}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> LoadOutcome:
        """The outcome of an earlier load."""
        return cls(*(kept.get(name, {}) for name in cls.__dataclass_fields__))

    def with_counts(self, counts: Mapping[str, RowCounts], catalog: Catalog) -> LoadOutcome:
        """With the counts of the rows of each table."""
        names = {kind.table_id: _name_of(kind, catalog) for kind in catalog.entities()}
        found = {names[table]: count.to_json() for table, count in counts.items()}
        return replace(self, rows={name: found[name] for name in sorted(found) if found[name]})


def _name_of(kind: NodeOrEdgeType, catalog: Catalog) -> str:
    """The name of a type, with its kind if a node and an edge type share it."""
    both = kind.name in catalog.nodes and kind.name in catalog.edges
    return f"{kind.kind}:{kind.name}" if both else kind.name


def load(
    source: Any,
    mode: str = "merge",
    *,
    options: Options | None = None,
    embed: EmbedTexts | None = None,
    violations: Destination | None = None,
) -> Verb:
    """A write that loads `source`: append, merge or overwrite.

    The source is read once; another attempt on a newer head reuses the rows, unless the types changed meanwhile.
    With a destination for `violations`, all violations are listed there.
    """
    wanted, options = mode_of(mode), options or Options()
    repeats = options.repeats
    reading = _LoadReading(source_of(source, options))
    aside = None
    if options.quarantine is not None:
        aside = _Quarantine(reading, options, wanted)
    embedder_of = embedders(embed)

    def verb(txn: WriteTxn) -> PublishPlan:
        metrics.progress("reading", 0)
        began = monotonic()
        again = violations if reading.source.repeatable else None
        with listing(again, lambda: reading.problems(txn.catalog)):
            incoming = reading.under(txn.catalog) if aside is None else aside.good_rows(txn)
        rows = sum(part.rows.num_rows for part in incoming)
        read = monotonic()
        metrics.progress("checking", rows, metrics.INPUT_PART)
        resolved = resolve(txn, incoming, wanted, repeats=repeats)
        changes = with_incident_edges(resolved.changes, txn)
        embedder = embedder_of(txn.snapshot)
        if embedder is not None:
            changes = embedded(changes, txn, embedder)
        with listing(violations, lambda: _broken(changes, txn, incoming, wanted, repeats)):
            reads = require_valid(changes, txn, found=resolved.violations)
        outcome = outcome_of(incoming, txn.catalog).with_counts(
            counted(resolved.counts, changes), txn.catalog
        )
        if aside is not None:
            outcome = replace(outcome, quarantined=aside.write())
        outcome = replace(outcome, cost=_cost(read - began, monotonic() - read))
        metrics.progress("checking", rows, CHECKED_PART)
        return PublishPlan(
            kind="load",
            actions=actions_of(changes),
            reads=reads,
            strict=wanted is Mode.OVERWRITE,
            result=outcome.to_json(),
            value=outcome,
        )

    return verb


def _cost(read: float, checked: float) -> dict[str, Any]:
    """The cost of a load in process before it is written."""
    size = metrics.input_bytes()
    seconds = {"read": round(read, 3), "check": round(checked, 3)}
    return {"engine": "local", "seconds": seconds} | ({"bytes": size} if size else {})


def _broken(
    changes: Changes, txn: WriteTxn, incoming: Sequence[Incoming], mode: Mode, repeats: Repeats
) -> Iterator[Packed]:
    """All violations, beyond the bound of a report."""
    found = resolve(txn, incoming, mode, limit=EVERY, repeats=repeats).violations
    return packed(evaluate(changes, txn, found=found, limit=EVERY).violations)


def counted(counts: Mapping[str, RowCounts], changes: Changes) -> dict[str, RowCounts]:
    """The row counts, with the edges deleted along with their nodes."""
    found = dict(counts)
    for change in changes:
        table, gone = change.kind.table_id, change.deletes
        if gone is not None and gone.num_rows:
            found[table] = replace(found.get(table, RowCounts()), deleted=gone.num_rows)
    return found


def mode_of(text: str) -> Mode:
    """A mode by its name."""
    try:
        return Mode(text)
    except ValueError:
        modes = ", ".join(Mode)
        raise OptionInvalid(f"mode= is one of {modes}, not {text!r}") from None


@dataclass(slots=True)
class _LoadReading:
    """A source, the rows read from it, and the types they were read under."""

    source: InputSource
    read: Sequence[Incoming] | None = None
    kinds: tuple[NodeOrEdgeType, ...] = ()

    def under(self, catalog: Catalog) -> Sequence[Incoming]:
        """The rows of the source as rows of a schema."""
        if self.read is not None and self._unchanged(catalog):
            return self.read
        if self.read is not None and not self.source.repeatable:
            raise WriteConflict(
                "the schema changed during the load, and its source can be read only once",
                help="Nothing was changed. Load again from the start.",
            )
        problems = Problems()
        read = to_incoming(self.source.read(catalog, problems))
        problems.settle()
        return self.keep(read, catalog)

    def keep(self, read: Sequence[Incoming], catalog: Catalog) -> Sequence[Incoming]:
        """Remember what was read."""
        self.read, self.kinds = read, tuple(kind_of(catalog, part) for part in read)
        return read

    def problems(self, catalog: Catalog) -> Iterator[Packed]:
        """All unreadable rows, found by reading the source again."""
        everything = Gathered()
        for _ in self.source.read(catalog, everything):
            pass
        return packed(everything.found)

    def _unchanged(self, catalog: Catalog) -> bool:
        known = {kind.table_id: kind for kind in catalog.entities()}
        return all(known.get(kind.table_id) == kind for kind in self.kinds)


@dataclass(slots=True)
class _Quarantine:
    """The rows of a source that are left out, and the file they are written to."""

    reading: _LoadReading
    options: Options
    mode: Mode
    unread: dict[Place, tuple[Violation, ...]] = field(default_factory=dict)
    rows: dict[Place, tuple[Violation, ...]] = field(default_factory=dict)
    written: bool = False

    @property
    def path(self) -> str:
        return self.options.quarantine or ""

    def good_rows(self, txn: WriteTxn) -> Sequence[Incoming]:
        """The valid rows. Other rows may need the ones left out: they are judged again."""
        if self.reading.read is None:
            require_new(self.path)
            problems = SortedOut()
            self.reading.keep(
                to_incoming(self.reading.source.read(txn.catalog, problems)), txn.catalog
            )
            self.unread = left_out(problems.found)
        incoming = self.reading.under(txn.catalog)
        self.rows = dict(self.unread)
        refuse_too_many(len(self.rows), self.options)
        for _ in range(QUARANTINE_ROUNDS_MAX):
            resolved = resolve(txn, incoming, self.mode, limit=EVERY, repeats=self.options.repeats)
            changes = with_incident_edges(resolved.changes, txn)
            found = evaluate(changes, txn, found=resolved.violations, limit=EVERY)
            broken = left_out(found.violations)
            if not broken:
                return incoming
            for place, why in broken.items():
                self.rows[place] = (*self.rows.get(place, ()), *why)
            refuse_too_many(len(self.rows), self.options)
            incoming = [_without(part, broken) for part in incoming]
        raise endless()

    def write(self) -> dict[str, int]:
        """Write the rows left out; again, if the load runs again on a newer commit."""
        if not self.rows:
            return {}
        if self.written:
            Path(self.path).unlink(missing_ok=True)
        self.written = True
        return write_quarantine(self.path, self.rows)


def _without(part: Incoming, bad: Mapping[Place, object]) -> Incoming:
    """The rows of a part that are not at one of these places."""
    lines = {
        line for name, file, line in bad if name == part.type_name and file == part.origin.file
    }
    if not lines or part.origin.lines is None:
        return part
    good = pc.invert(pc.is_in(part.origin.lines, value_set=pa.array(lines, pa.int64())))
    return replace(
        part,
        rows=part.rows.filter(good),
        absent={name: mask.filter(good) for name, mask in part.absent.items()},
        origin=part.origin.filter(good),
        marks=part.marks.filter(good),
    )


def outcome_of(incoming: Sequence[Incoming], catalog: Catalog) -> LoadOutcome:
    """How many rows of each type an input has."""
    nodes: dict[str, int] = {}
    edges: dict[str, int] = {}
    fresh: dict[str, int] = {}
    for part in incoming:
        kind, rows = kind_of(catalog, part), part.rows.num_rows
        counts = edges if isinstance(kind, EdgeType) else nodes
        counts[kind.name] = counts.get(kind.name, 0) + rows
        if isinstance(kind, EdgeType) and kind.key is None:
            named = "id" in part.rows.column_names
            nameless = part.rows["id"].null_count if named else rows
            if nameless:
                fresh[kind.name] = fresh.get(kind.name, 0) + nameless
    return LoadOutcome(nodes, edges, fresh)
