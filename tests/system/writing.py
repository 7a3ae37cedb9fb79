"""What writes of rows mean: loads of every mode, and statements. Each takes a state and returns the next one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any

from omnigraph.read.search.providers import MockProvider
from tests.system.rules import broken
from tests.system.schema import Impossible, Row, State, Type, fill
from tests.system.values import EPOCH, is_of, same

Given = Mapping[str, Any]  # by name; of edges also "from" and "to"
ENDS_OF = {"src": "from", "dst": "to"}
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    ">": lambda a, b: bool(a > b),
}


class Broken(Exception):
    """A write the rules refuse."""

    def __init__(self, rules: set[str]) -> None:
        super().__init__(sorted(rules))
        self.rules = rules

    @property
    def code(self) -> str:
        return "key_conflict" if self.rules == {"key_conflict"} else "validation_failed"


@dataclass(slots=True)
class Write:
    """One write at work: the state it began with, the one it has reached, and what it counted."""

    before: State
    after: State
    label: str  # names the ids it makes up
    found: set[str] = field(default_factory=set)  # rules the input broke already
    replaced: set[Any] = field(default_factory=set)  # types all rows of which are new
    counts: Counter[str] = field(default_factory=Counter)  # by type, what the input had
    nodes: int = 0
    edges: int = 0
    made: int = 0

    def load(self, mode: str, rows: Mapping[str, Sequence[Given]]) -> None:
        """Rows of any types in one input."""
        for type_name, given in rows.items():
            self.put(self.after.called(type_name), given, mode)
            self.counts[type_name] += len(given)

    def statement(self, verb: str, type_name: str, *rest: Any) -> None:
        """One statement of a mutation."""
        kind = self.after.called(type_name)
        match verb:
            case "insert":
                self._require_all(kind, rest[0])
                self.put(kind, rest[0], "merge")
                self._count(kind, len(rest[0]))
            case "update":
                self._update(kind, *rest)
            case "delete":
                self._delete(kind, *rest)

    def put(self, kind: Type, rows: Sequence[Given], mode: str) -> None:
        """New rows, and in mode merge changes of rows that exist: fields left out stay as they are."""
        stored: dict[str, Row] = {} if mode == "overwrite" else dict(self.after.of(kind))
        there, seen = frozenset(stored), set()
        if mode == "overwrite":
            self.replaced.add(kind.ident)
        for given in rows:
            cells = _by_identity(kind, given)
            id = self._id(kind, given)
            if id is None:
                self.found.add("key")
            elif id in seen and (kind.key is not None or mode != "merge"):
                self.found.add("duplicate")
            elif id in there and mode == "append":
                self.found.add("key_conflict")
            else:
                old = stored.get(id) or {p.ident: fill(p) for p in kind.props.values()}
                stored[id] = {**old, **cells}
            seen.add(id)
        self.after = self.after.with_rows(kind, stored)

    def _id(self, kind: Type, given: Given) -> str | None:
        if kind.key is not None:
            return key_id([given.get(ENDS_OF.get(name, name)) for name in kind.key_names()])
        if given.get("id") is not None:
            return str(given["id"])
        self.made += 1
        return f"new:{self.label}:{self.made};"

    def _require_all(self, kind: Type, rows: Sequence[Given]) -> None:
        needed = {p.name for p in kind.props.values() if not p.nullable and p.default is None}
        if any(needed - row.keys() for row in rows):
            raise Impossible("an insert names every required property")

    def _update(self, kind: Type, values: Given, where: Sequence[Any]) -> None:
        changed = _by_identity(kind, values)
        if not changed.keys().isdisjoint(kind.key or ()):
            raise Impossible("a key is not updated")
        _column(kind, where[0])
        rows = dict(self.after.of(kind))
        chosen = [id for id, row in rows.items() if holds(kind, id, row, where)]
        for id in chosen:
            rows[id] = {**rows[id], **changed}
        self.after = self.after.with_rows(kind, rows)
        self._count(kind, len(chosen))

    def _delete(self, kind: Type, where: Sequence[Any]) -> None:
        _column(kind, where[0])
        rows = self.after.of(kind)
        gone = {id for id, row in rows.items() if holds(kind, id, row, where)}
        self._remove(kind, gone)
        for edge, side in list(self.after.edges_at(kind)) if gone else ():
            edges = self.after.of(edge).items()
            self._remove(edge, {id for id, row in edges if row[side] in gone})

    def _remove(self, kind: Type, gone: set[str]) -> None:
        left = {id: row for id, row in self.after.of(kind).items() if id not in gone}
        self.after = self.after.with_rows(kind, left)
        self._count(kind, len(gone))

    def _count(self, kind: Type, rows: int) -> None:
        if kind.is_edge:
            self.edges += rows
        else:
            self.nodes += rows

    def finished(self) -> State:
        """The state it leads to, if that breaks no rule; vectors are made of texts that came or changed."""
        self.after = _embedded(self.before, self.after, self.replaced)
        rules = self.found | broken(self.before, self.after, frozenset(self.replaced))
        if rules:
            raise Broken(rules)
        return self.after


def _by_identity(kind: Type, given: Given) -> dict[Any, Any]:
    row: dict[Any, Any] = {}
    for name, value in given.items():
        if name == "id":
            continue
        side = next((s for s, word in ENDS_OF.items() if word == name and kind.is_edge), None)
        if side is None and not is_of(value, kind.called(name).type):
            raise Impossible(f"{value!r} was meant for another {name}")
        row[side or kind.called(name).ident] = value
    return row


def holds(kind: Type, id: str, row: Row, where: Sequence[Any]) -> bool:
    """Whether a condition is true of a row: name, operator, value; null is neither true nor false."""
    name, operator, value = where
    held = id if name == "id" else row[_column(kind, name)]
    if operator == "is null":
        return held is None
    return held is not None and OPERATORS[operator](held, value)


def _column(kind: Type, name: str) -> Any:
    """What a condition looks at; it has to be there."""
    if name == "id":
        return name
    for side, word in ENDS_OF.items():
        if kind.is_edge and name == word:
            return side
    return kind.called(name).ident


def key_id(members: Iterable[Any]) -> str | None:
    """The id that a key makes; none where a member is missing."""
    texts = [_key_text(member) for member in members]
    if None in texts:
        return None
    return (
        texts[0]
        if len(texts) == 1
        else json.dumps(texts, separators=(",", ":"), ensure_ascii=False)
    )


def _key_text(value: Any) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case datetime():
            return str((value - EPOCH) // timedelta(milliseconds=1))
        case date():
            return str((value - EPOCH.date()).days)
        case _:
            return str(value)


# --- embeddings --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def vector_of(text: str) -> tuple[float, ...]:
    """What the mock provider makes of a text."""
    return tuple(float(x) for x in MockProvider(None).embed([text], 2, None)[0])


def _embedded(before: State, after: State, replaced: set[Any]) -> State:
    for kind in list(after.types.values()):
        for prop in kind.props.values():
            if prop.embeds is None:
                continue
            old = {} if kind.ident in replaced else before.rows.get(kind.ident, {})
            rows = {
                id: row
                if row is old.get(id)
                else _with_vector(row, old.get(id), prop.ident, prop.embeds)
                for id, row in after.of(kind).items()
            }
            after = after.with_rows(kind, rows)
    return after


def _with_vector(row: Row, old: Row | None, vector: Any, source: Any) -> Row:
    text, held = row[source], row[vector]
    stale = held is None
    if old is not None:
        stale = not same(text, old[source]) and (held is None or same(held, old[vector]))
    if not stale:
        return row
    return {**row, vector: None if text is None else list(vector_of(text))}
