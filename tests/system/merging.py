"""Three states to one: what two sides did to the schema since they parted, then to every row, then to every cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.system.rules import broken
from tests.system.schema import ENDS, Ident, Prop, Row, State, Type, fill
from tests.system.values import EITHER_ZERO, fits, same, stored, widened
from tests.system.writing import vector_of

Fact = tuple[Any, ...]
Facts = dict[Fact, Any]
Conflict = tuple[str, str | None, str | None, str | None]  # kind, type, id, field
ABSENT = object()
CONFLICT_OF = {
    "unique": "unique_violation",
    "cardinality": "cardinality_violation",
    "endpoint": "orphan_edge",
    "orphan_edge": "orphan_edge",
}


@dataclass(frozen=True, slots=True)
class Decided:
    """What was decided beforehand about conflicts: a side for everything, or by type and id, and field."""

    everywhere: str | None = None
    rows: Mapping[tuple[str, str, str | None], Any] = field(default_factory=dict)

    def of(self, type_name: str, id: str, field: str | None) -> Any:
        for key in ((type_name, id, field), (type_name, id, None)):
            if key in self.rows:
                return self.rows[key]
        return self.everywhere


UNDECIDED = Decided()


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged state, and the conflicts that keep it from standing: kind, type, id and field."""

    state: State
    conflicts: frozenset[Conflict] = frozenset()
    open: bool = (
        False  # a rule is broken although something was decided: which rows stay is not laid down
    )
    may_conflict: bool = False  # one side dropped a type that the other touched and left as it was

    @property
    def kinds(self) -> set[str]:
        return {conflict[0] for conflict in self.conflicts}


def merge(base: State, ours: State, theirs: State, decided: Decided = UNDECIDED) -> Merged:
    """What comes of ours when what theirs did since the base is brought to it."""
    schema, clash = merged_schema(base, ours, theirs)
    if clash:
        return Merged(ours, frozenset({("schema_conflict", None, None, None)}))
    found: set[Conflict] = set()
    found |= set(_lost_cells(base, ours, theirs, schema, decided))
    state = schema
    for kind in schema.types.values():
        rows, conflicts = _merged_rows(kind, (base, ours, theirs), decided)
        state = state.with_rows(kind, rows)
        found |= conflicts
    rules = broken(State(), state)
    found |= {
        (CONFLICT_OF.get(rule, "value_constraint_violation"), None, None, None) for rule in rules
    }
    is_open = bool(rules) and decided != UNDECIDED
    one_sided = any(
        (ident in ours.types) != (ident in theirs.types)
        for ident in base.types.keys() - schema.types.keys()
    )
    return Merged(state, frozenset(found), is_open, one_sided)


# --- the schema --------------------------------------------------------------------------------------------------


def facts_of(state: State) -> Facts:
    """A schema taken apart: what is said, by what it is said about."""
    found: Facts = {}
    for kind in state.types.values():
        found["type", kind.ident, "name"] = kind.name
        found["type", kind.ident, "ends"] = kind.ends
        found["type", kind.ident, "most"] = kind.most
        for prop in kind.props.values():
            found |= _property_facts(kind, prop)
        if kind.key is not None:
            found["rule", kind.ident, "key", frozenset(kind.key)] = kind.key
        for group in kind.uniques:
            found["rule", kind.ident, "unique", group] = True
        for group in kind.indices:
            found["rule", kind.ident, "index", group] = True
        for ident, bounds in kind.ranges.items():
            found["rule", kind.ident, "range", frozenset({ident}), bounds] = True
    return found


def _property_facts(kind: Type, prop: Prop) -> Facts:
    about = "property", kind.ident, prop.ident
    found: Facts = {
        (*about, "name"): prop.name,
        (*about, "type"): prop.type,
        (*about, "nullable"): prop.nullable,
        (*about, "default"): stored(prop.default),
        (*about, "embeds"): prop.embeds,
    }
    return found | {(*about, "enum", value): True for value in prop.enum}


def merged_schema(base: State, ours: State, theirs: State) -> tuple[State, bool]:
    """The schema both sides lead to, without rows; and whether they contradict each other."""
    before, mine, yours = facts_of(base), facts_of(ours), facts_of(theirs)
    merged: Facts = {}
    clash = False
    for fact in {**before, **mine, **yours}:
        b, o, t = (side.get(fact, ABSENT) for side in (before, mine, yours))
        taken = o if t in (b, o) else t
        clash = clash or (o != t and b not in (o, t))
        if taken is not ABSENT:
            merged[fact] = taken
    clash = (
        clash
        or _is_orphaned(merged)
        or _is_ambiguous(merged)
        or _dropped_type(base, ours, theirs, merged)
    )
    return (ours if clash else _assembled(merged, base, ours, theirs)), clash


def _is_orphaned(facts: Facts) -> bool:
    """Whether one side says something about what the other dropped."""
    types = {fact[1] for fact in facts if fact[0] == "type" and fact[2] == "name"}
    props = {fact[1:3] for fact in facts if fact[0] == "property" and fact[3] == "name"}
    for fact, value in facts.items():
        if fact[1] not in types or (fact[0] == "property" and fact[1:3] not in props):
            return True
        if fact[0] == "type" and fact[2] == "ends" and not types.issuperset(value or ()):
            return True
        if fact[0] == "rule" and any((fact[1], f) not in props for f in fact[3] if f not in ENDS):
            return True
        if (
            fact[0] == "property"
            and fact[3] == "embeds"
            and value
            and (fact[1], value) not in props
        ):
            return True
    return False


def _is_ambiguous(facts: Facts) -> bool:
    """Whether one name would be two things, or one type have two keys or ranges."""
    slots: list[Any] = []
    for fact, value in facts.items():
        match fact:
            case ("type", ident, "name"):
                slots.append(("type", value.lower() if ident[0] == "edge" else value, ident[0]))
            case ("property", owner, _, "name"):
                slots.append((owner, value))
            case ("rule", owner, "key", _):
                slots.append((owner, "a key"))
    return len(set(slots)) < len(slots)


def _dropped_type(base: State, ours: State, theirs: State, merged: Facts) -> bool:
    """Whether one side dropped a type the other wrote to."""
    for ident in base.types:
        if ("type", ident, "name") not in merged:
            for side in (ours, theirs):
                if ident in side.types and not _same_rows(base.rows[ident], side.rows[ident]):
                    return True
    return False


def _same_rows(one: Mapping[str, Row], other: Mapping[str, Row]) -> bool:
    return one.keys() == other.keys() and all(same_row(one[id], other[id]) for id in one)


def same_row(one: Row | None, other: Row | None) -> bool:
    """Whether two rows of one type are the same."""
    if one is None or other is None:
        return one is other
    return one.keys() == other.keys() and all(same(one[f], other[f]) for f in one)


def _assembled(facts: Facts, base: State, ours: State, theirs: State) -> State:
    """Facts as a schema again. Defaults were kept in the form they are compared in, so they are looked up."""
    sides = (ours, theirs, base)
    types: dict[Ident, Type] = {}
    for fact, value in facts.items():
        if fact[0] == "type" and fact[2] == "name":
            known = [side.types[fact[1]] for side in sides if fact[1] in side.types]
            left = _most_left(kind.left for kind in known)
            types[fact[1]] = Type(
                fact[1],
                value,
                ends=facts["type", fact[1], "ends"],
                most=facts["type", fact[1], "most"],
                props=_assembled_properties(fact[1], facts, known),
                left=left,
                **_assembled_rules(fact[1], facts),
            )
    return State(types, {}, _most_left(side.left for side in sides))


def _most_left(counts: Iterable[Mapping[Any, int]]) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for one in counts:
        for name, n in one.items():
            found[name] = max(n, found.get(name, 0))
    return found


def _assembled_properties(owner: Ident, facts: Facts, known: list[Type]) -> dict[Ident, Prop]:
    props: dict[Ident, Prop] = {}
    for fact, value in facts.items():
        if fact[0] == "property" and fact[1] == owner and fact[3] == "name":
            ident = fact[2]
            about = "property", owner, ident
            enum = tuple(sorted(f[4] for f in facts if f[:4] == (*about, "enum")))
            written = (kind.props[ident].default for kind in known if ident in kind.props)
            default = next(d for d in written if stored(d) == facts[*about, "default"])
            props[ident] = Prop(
                ident,
                value,
                facts[*about, "type"],
                facts[*about, "nullable"],
                enum,
                default,
                facts[*about, "embeds"],
            )
    return props


def _assembled_rules(owner: Ident, facts: Facts) -> dict[str, Any]:
    rules = [fact for fact in facts if fact[0] == "rule" and fact[1] == owner]
    keys = [facts[fact] for fact in rules if fact[2] == "key"]
    return {
        "key": keys[0] if keys else None,
        "uniques": frozenset(fact[3] for fact in rules if fact[2] == "unique"),
        "indices": frozenset(fact[3] for fact in rules if fact[2] == "index"),
        "ranges": {next(iter(fact[3])): fact[4] for fact in rules if fact[2] == "range"},
    }


# --- rows --------------------------------------------------------------------------------------------------------


def seen_as(row: Row | None, kind: Type) -> Row | None:
    """A row in the properties of a version of its type: what it lacks is filled, what was widened is cast."""
    if row is None:
        return None
    shown: dict[Any, Any] = {side: row[side] for side in kind.structure}
    for prop in kind.props.values():
        value = row[prop.ident] if prop.ident in row else fill(prop)
        shown[prop.ident] = widened(value, prop.type) if fits(value, prop.type) else None
    return shown


def _lost_cells(
    base: State, ours: State, theirs: State, merged: State, decided: Decided
) -> Iterator[Conflict]:
    """Values a side wrote since the base that the merged schema has no place for."""
    for side, other, state in (("ours", "theirs", ours), ("theirs", "ours", theirs)):
        for kind in state.types.values():
            if kind.ident not in merged.types:
                continue
            places = merged.types[kind.ident].props
            for prop in kind.props.values():
                old, new = base.rows.get(kind.ident, {}), state.rows[kind.ident]
                for id, row in new.items():
                    was = old[id].get(prop.ident, fill(prop)) if id in old else fill(prop)
                    written = row[prop.ident] is not None and not same(row[prop.ident], was)
                    if prop.ident not in places:
                        if written and decided.of(kind.name, id, prop.name) != other:
                            yield "lost_value", kind.name, id, prop.name
                    elif not fits(row[prop.ident], places[prop.ident].type):
                        stays = side == "ours" and same_row(
                            theirs.rows.get(kind.ident, {}).get(id), old.get(id)
                        )
                        if written or id not in old or stays:
                            yield "lost_value", kind.name, id, prop.name


def _merged_rows(
    kind: Type, sides: tuple[State, State, State], decided: Decided
) -> tuple[dict[str, Row], set[Conflict]]:
    rows: dict[str, Row] = {}
    conflicts: set[Conflict] = set()
    tables = [side.rows.get(kind.ident, {}) for side in sides]
    for id in dict.fromkeys(id for table in tables for id in table):
        base, ours, theirs = (seen_as(table.get(id), kind) for table in tables)
        row, found = _merged_row(kind, id, base, ours, theirs, decided)
        conflicts |= found
        if row is not None:
            rows[id] = row
    return rows, conflicts


def _merged_row(
    kind: Type, id: str, base: Row | None, ours: Row | None, theirs: Row | None, decided: Decided
) -> tuple[Row | None, set[Conflict]]:
    if same_row(ours, theirs) or same_row(theirs, base):
        return _blurred(ours, theirs), set()
    if same_row(ours, base):
        return _blurred(theirs, ours), set()
    if ours is None or theirs is None:
        side = decided.of(kind.name, id, None)
        found: set[Conflict] = set()
        if side not in ("ours", "theirs"):
            found.add(("delete_vs_update", kind.name, id, None))
        return (theirs if side == "theirs" else ours), found
    word = "divergent_insert" if base is None else "divergent_update"
    merged: dict[Any, Any] = {}
    conflicts: set[Conflict] = set()
    for cell, mine in ours.items():
        old = ABSENT if base is None else base[cell]
        if same(mine, theirs[cell]) or (base is not None and same(theirs[cell], old)):
            merged[cell] = _agreed(mine, theirs[cell]) if same(mine, theirs[cell]) else mine
        elif base is not None and same(mine, old):
            merged[cell] = theirs[cell]
        else:
            merged[cell], clash = _decided(kind, id, cell, mine, theirs[cell], decided)
            conflicts |= {(word, kind.name, id, kind.field_name(cell))} if clash else set()
    return _embedded_again(kind, id, merged, ours, theirs, decided), conflicts


def _embedded_again(
    kind: Type, id: str, row: dict[Any, Any], ours: Row, theirs: Row, decided: Decided
) -> Row:
    """A vector that one side made from a text the other side has replaced is made again."""
    for prop in kind.props.values():
        text, vector = prop.embeds, prop.ident
        if text is None or row[vector] is None or (kind.name, id, prop.name) in decided.rows:
            continue
        for one, other in ((ours, theirs), (theirs, ours)):
            texts = same(row[text], one[text]) and not same(row[text], other[text])
            vectors = same(row[vector], other[vector]) and not same(row[vector], one[vector])
            if texts and vectors:
                row[vector] = None if row[text] is None else list(vector_of(row[text]))
                break
    return row


def _decided(
    kind: Type, id: str, cell: Any, ours: Any, theirs: Any, by: Decided
) -> tuple[Any, bool]:
    match by.of(kind.name, id, kind.field_name(cell)):
        case "ours":
            return ours, False
        case "theirs":
            return theirs, False
        case ("value", value):
            return value, False
        case _:
            return ours, True


def _agreed(one: Any, other: Any) -> Any:
    """A value both sides have; of two zeros with different signs either may stay."""
    return one if stored(one) == stored(other) else EITHER_ZERO


def _blurred(row: Row | None, other: Row | None) -> Row | None:
    """A row that is taken as it is; where the other side differs in the sign of a zero alone, either may stay."""
    if row is None or other is None:
        return row
    return {c: _agreed(v, other[c]) if same(v, other[c]) else v for c, v in row.items()}


def relaid(state: State, kinds: Mapping[Ident, Type]) -> State:
    """A state under other versions of its types."""
    rows: dict[Ident, dict[str, Row]] = {}
    for ident, kind in kinds.items():
        seen = ((id, seen_as(row, kind)) for id, row in state.rows.get(ident, {}).items())
        rows[ident] = {id: row for id, row in seen if row is not None}
    return replace(state, types=dict(kinds), rows=rows)
