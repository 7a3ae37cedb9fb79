"""Which rules of its schema a state breaks, looked at as a whole."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from tests.system.schema import ENDS, Row, State, Type
from tests.system.values import EitherZero, same, stored

NO_TYPES: frozenset[object] = frozenset()


def broken(before: State, after: State, replaced: frozenset[object] = NO_TYPES) -> set[str]:
    """The rules a write would break. `replaced` names the types whose rows are all new."""
    found = {rule for kind in after.types.values() for rule in _of_rows(before, after, kind)}
    for kind in after.types.values():
        if any(_repeats(after.of(kind), group) for group in kind.uniques):
            found.add("unique")
        if kind.is_edge:
            found |= _ends(before, after, kind, kind.ident in replaced)
            if _too_many(after, kind):
                found.add("cardinality")
    return found


def _of_rows(before: State, after: State, kind: Type) -> Iterator[str]:
    old = before.rows.get(kind.ident, {})
    for id, row in after.of(kind).items():
        if row is not old.get(id):
            yield from value_rules(kind, row)


def value_rules(kind: Type, row: Row) -> Iterator[str]:
    """The rules about one row."""
    for prop in kind.props.values():
        value = row[prop.ident]
        if value is None and not prop.nullable:
            yield "required"
        if value is not None and prop.type == "enum" and value not in prop.enum:
            yield "enum"
    for ident, (low, high) in kind.ranges.items():
        value = row[ident]
        if value is not None and not within(value, low, high):
            yield "range"


def within(value: float | EitherZero, low: int | None, high: int | None) -> bool:
    """Whether a number lies in a range; NaN lies in none."""
    number = 0.0 if isinstance(value, EitherZero) else value
    if math.isnan(number):
        return False
    return (low is None or number >= low) and (high is None or number <= high)


def _repeats(rows: object, group: frozenset[object]) -> bool:
    assert isinstance(rows, dict)
    values = [
        tuple(stored(row[field]) for field in sorted(group, key=str)) for row in rows.values()
    ]
    whole = [one for one in values if None not in one]
    return len(set(whole)) < len(whole)


def _ends(before: State, after: State, kind: Type, all_new: bool) -> set[str]:
    """Edges that lead nowhere: one that came or moved is refused, one that stayed keeps its node from going."""
    found = set()
    old = before.rows.get(kind.ident, {})
    for id, row in after.of(kind).items():
        for side, end in zip(ENDS, kind.ends or (), strict=True):
            if row[side] not in after.rows.get(end, {}):
                stayed = not all_new and id in old and same(old[id][side], row[side])
                found.add("orphan_edge" if stayed else "endpoint")
    return found


def _too_many(after: State, kind: Type) -> bool:
    counts = Counter(row["src"] for row in after.of(kind).values())
    return kind.most is not None and any(n > kind.most for n in counts.values())
