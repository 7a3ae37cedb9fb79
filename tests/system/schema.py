"""Types and properties with their identities, states of a graph, and the edits of a schema.

A property is what it was created as: its name and the type of its values then, and how often something left that name
before. So one that is renamed or widened stays itself, one that is dropped and added again is another, and two branches
that add the same property have added one. Types are identified the same way. Rows are kept by these identities, never
by names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.system.values import WIDENINGS, same, widened

Ident = tuple[Any, ...]  # ("node", name, n) of a type, (name, n, type) of a property
Row = Mapping[Any, Any]  # by identity of the property, and "src", "dst"
Rows = dict[str, Row]  # by id
ENDS = ("src", "dst")


class Impossible(Exception):
    """An edit that cannot be written down as a schema: a name that is not there, or is there already."""


class Refused(Exception):
    """An edit the system refuses, with the code it gives."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Prop:
    """A property."""

    ident: Ident
    name: str
    type: str
    nullable: bool = True
    enum: tuple[str, ...] = ()
    default: Any = None
    embeds: Ident | None = None  # the text a vector is made from

    @property
    def text(self) -> str:
        base = f"enum({', '.join(self.enum)})" if self.type == "enum" else self.type
        return base + ("?" if self.nullable else "")


@dataclass(frozen=True, slots=True)
class Type:
    """A node or edge type."""

    ident: Ident
    name: str
    props: Mapping[Ident, Prop] = field(default_factory=dict)
    key: tuple[Any, ...] | None = None  # identities of properties, and ends
    uniques: frozenset[frozenset[Any]] = frozenset()
    indices: frozenset[frozenset[Any]] = frozenset()
    ranges: Mapping[Ident, tuple[int | None, int | None]] = field(default_factory=dict)
    ends: tuple[Ident, Ident] | None = None  # identities of node types
    most: int | None = None  # edges that may leave a node
    left: Mapping[str, int] = field(default_factory=dict)  # how often a name was left

    @property
    def is_edge(self) -> bool:
        return self.ends is not None

    @property
    def structure(self) -> tuple[str, ...]:
        return ENDS if self.is_edge else ()

    def called(self, name: str) -> Prop:
        for prop in self.props.values():
            if prop.name == name:
                return prop
        raise Impossible(f"{self.name} has no {name}")

    def field_name(self, ident: Any) -> str:
        return ident if isinstance(ident, str) else self.props[ident].name

    def field(self, name: str) -> Any:
        return name if name in self.structure else self.called(name).ident

    def key_names(self) -> tuple[str, ...]:
        return tuple(self.field_name(f) for f in self.key or ())

    def names(self) -> list[str]:
        return sorted(prop.name for prop in self.props.values())


@dataclass(frozen=True, slots=True)
class State:
    """Everything a commit shows."""

    types: Mapping[Ident, Type] = field(default_factory=dict)
    rows: Mapping[Ident, Mapping[str, Row]] = field(default_factory=dict)
    left: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def called(self, name: str) -> Type:
        for kind in self.types.values():
            if kind.name == name:
                return kind
        raise Impossible(f"there is no type {name}")

    def of(self, kind: Type) -> Mapping[str, Row]:
        return self.rows.get(kind.ident, {})

    def with_type(self, kind: Type) -> State:
        return replace(self, types={**self.types, kind.ident: kind})

    def with_rows(self, kind: Type, rows: Mapping[str, Row]) -> State:
        return replace(self, rows={**self.rows, kind.ident: rows})

    def edges_at(self, node: Type) -> Iterator[tuple[Type, str]]:
        """The edge types that end at a node type, with the side."""
        for kind in self.types.values():
            for side, end in zip(ENDS, kind.ends or (), strict=False):
                if end == node.ident:
                    yield kind, side


def fill(prop: Prop) -> Any:
    """What a row shows of a property it was written without."""
    return prop.default


# --- edits -------------------------------------------------------------------------------------------------------

Edit = tuple[Any, ...]


def edited(state: State, edit: Edit) -> State:
    """The state after one edit of its schema, rows and all."""
    verb, *rest = edit
    after: State = EDITS[verb](state, *rest)
    return after


def _add_type(
    state: State,
    name: str,
    props: Iterable[tuple[Any, ...]],
    key: tuple[str, ...] | None,
    ends: tuple[str, str] | None = None,
    most: int | None = None,
) -> State:
    word = "edge" if ends else "node"
    if any(kind.name.lower() == name.lower() for kind in state.types.values()):
        raise Impossible(f"{name} is there")
    ident = (word, name, state.left.get((word, name), 0))
    joined = (state.called(ends[0]).ident, state.called(ends[1]).ident) if ends else None
    kind = Type(ident, name, ends=joined, most=most)
    for given in props:
        kind = _with_new(kind, *given)
    if key is not None:
        kind = replace(kind, key=tuple(kind.field(member) for member in key))
    return state.with_type(kind).with_rows(kind, {})


def _drop_type(state: State, name: str) -> State:
    gone = state.called(name)
    if any(True for _ in state.edges_at(gone)):
        raise Impossible(f"{name} has edges")
    types = {i: k for i, k in state.types.items() if i != gone.ident}
    rows = {i: r for i, r in state.rows.items() if i != gone.ident}
    return State(types, rows, _leave(state.left, (gone.ident[0], name)))


def _rename_type(state: State, old: str, new: str) -> State:
    kind = state.called(old)
    if any(k.name.lower() == new.lower() for k in state.types.values()):
        raise Impossible(f"{new} is there")
    after = state.with_type(replace(kind, name=new))
    return replace(after, left=_leave(state.left, (kind.ident[0], old)))


def _leave(left: Mapping[Any, int], name: Any) -> dict[Any, int]:
    return {**left, name: left.get(name, 0) + 1}


def _with_new(
    kind: Type,
    name: str,
    type_name: str,
    nullable: bool,
    enum: tuple[str, ...] = (),
    default: Any = None,
    embeds: str | None = None,
) -> Type:
    if name in kind.names():
        raise Impossible(f"{kind.name}.{name} is there")
    stored_as = "String" if type_name == "enum" else type_name
    ident = (name, kind.left.get(name, 0), stored_as)
    source = kind.called(embeds).ident if embeds else None
    prop = Prop(ident, name, type_name, nullable, enum, default, source)
    return replace(kind, props={**kind.props, ident: prop})


def _add_property(state: State, type_name: str, *given: Any) -> State:
    kind = _with_new(state.called(type_name), *given)
    prop = kind.called(given[0])
    if not prop.nullable and prop.default is None:
        raise Refused("OG-MF-103")
    rows = {id: {**row, prop.ident: fill(prop)} for id, row in state.of(kind).items()}
    return state.with_type(kind).with_rows(kind, rows)


def _drop_property(state: State, type_name: str, name: str) -> State:
    kind = state.called(type_name)
    gone = kind.called(name).ident
    if gone in (kind.key or ()) or any(p.embeds == gone for p in kind.props.values()):
        raise Impossible(f"{type_name}.{name} is needed")
    after = replace(
        kind,
        props={i: p for i, p in kind.props.items() if i != gone},
        uniques=frozenset(group for group in kind.uniques if gone not in group),
        indices=frozenset(group for group in kind.indices if gone not in group),
        ranges={i: r for i, r in kind.ranges.items() if i != gone},
        left=_leave(kind.left, name),
    )
    rows = {id: {i: v for i, v in row.items() if i != gone} for id, row in state.of(kind).items()}
    return state.with_type(after).with_rows(after, rows)


def _rename_property(state: State, type_name: str, old: str, new: str) -> State:
    kind = state.called(type_name)
    prop = kind.called(old)
    if new in kind.names():
        raise Impossible(f"{type_name}.{new} is there")
    kind = _with(kind, replace(prop, name=new))
    return state.with_type(replace(kind, left=_leave(kind.left, old)))


def _with(kind: Type, prop: Prop) -> Type:
    return replace(kind, props={**kind.props, prop.ident: prop})


def _retype(state: State, type_name: str, name: str, new: str) -> State:
    kind = state.called(type_name)
    prop = kind.called(name)
    if (
        prop.type == new
        or prop.default is not None
        or any(p.embeds == prop.ident for p in kind.props.values())
    ):
        raise Impossible(f"{type_name}.{name} is {new}")
    if prop.embeds or (prop.ident in kind.ranges and new not in NUMBERS):
        raise Impossible(f"{type_name}.{name} is bound to its type")
    used = prop.ident in (kind.key or ()) or any(
        prop.ident in g for g in (*kind.uniques, *kind.indices)
    )
    if used and new not in KEYS:
        raise Impossible(f"{type_name}.{name} is bound to its type")
    if (prop.type, new) not in WIDENINGS:
        raise Refused("OG-MF-106")
    rows = {
        id: {**row, prop.ident: widened(row[prop.ident], new)} for id, row in state.of(kind).items()
    }
    return state.with_type(_with(kind, replace(prop, type=new))).with_rows(kind, rows)


NUMBERS = ("I32", "I64", "U32", "U64", "F32", "F64")
KEYS = (*NUMBERS[:4], "String", "Bool", "Date")


def _nullable(state: State, type_name: str, name: str, nullable: bool) -> State:
    kind = state.called(type_name)
    prop = kind.called(name)
    if prop.nullable == nullable or prop.ident in (kind.key or ()):
        raise Impossible(f"{type_name}.{name} cannot change so")
    if not nullable:
        raise Refused("OG-MF-106")
    return state.with_type(_with(kind, replace(prop, nullable=True)))


def _extend(state: State, type_name: str, name: str, values: tuple[str, ...]) -> State:
    kind = state.called(type_name)
    prop = kind.called(name)
    if prop.type != "enum" or {*values} == {*prop.enum} or prop.default not in (None, *values):
        raise Impossible(f"{type_name}.{name} cannot have these values")
    if not {*prop.enum} < {*values}:
        raise Refused("OG-MF-106")
    return state.with_type(_with(kind, replace(prop, enum=tuple(sorted(values)))))


def _default(state: State, type_name: str, name: str, value: Any) -> State:
    kind = state.called(type_name)
    prop = kind.called(name)
    if prop.ident in (kind.key or ()) or prop.embeds or same(prop.default, value):
        raise Impossible(f"{type_name}.{name} cannot have this default")
    return state.with_type(_with(kind, replace(prop, default=value)))


def _group(state: State, type_name: str, rule: str, names: tuple[str, ...], wanted: bool) -> State:
    """A unique group or an index comes or goes."""
    kind = state.called(type_name)
    group = frozenset(kind.field(name) for name in names)
    groups: frozenset[frozenset[Any]] = getattr(kind, rule)
    if (group in groups) == wanted or group == frozenset(kind.key or ()):
        raise Impossible(f"{rule} of {type_name} is so")
    changed = groups | {group} if wanted else groups - {group}
    after: Any = {rule: changed}
    return state.with_type(replace(kind, **after))


def _range(state: State, type_name: str, name: str, low: int | None, high: int | None) -> State:
    """A range of a property, or none if it has no bounds."""
    kind = state.called(type_name)
    prop = kind.called(name)
    bounds = None if low is None and high is None else (low, high)
    if prop.type not in NUMBERS or kind.ranges.get(prop.ident) == bounds:
        raise Impossible(f"{type_name}.{name} cannot have this range")
    if prop.default is not None:
        raise Impossible("a default would have to be looked at too")
    ranges = {i: r for i, r in kind.ranges.items() if i != prop.ident}
    return state.with_type(
        replace(kind, ranges=ranges if bounds is None else {**ranges, prop.ident: bounds})
    )


def _most(state: State, type_name: str, most: int | None) -> State:
    kind = state.called(type_name)
    if not kind.is_edge or kind.most == most:
        raise Impossible(f"{type_name} cannot have this cardinality")
    return state.with_type(replace(kind, most=most))


EDITS: dict[str, Any] = {
    "add_type": _add_type,
    "drop_type": _drop_type,
    "rename_type": _rename_type,
    "add_property": _add_property,
    "drop_property": _drop_property,
    "rename_property": _rename_property,
    "retype": _retype,
    "nullable": _nullable,
    "extend": _extend,
    "default": _default,
    "group": _group,
    "range": _range,
    "most": _most,
}


# --- as text -----------------------------------------------------------------------------------------------------


def text_of(state: State, edits: Iterable[Edit] = ()) -> str:
    """The schema as a text; renames among the edits that led to it are hinted at."""
    hints: dict[tuple[str, ...], str] = {}
    for edit in edits:
        if edit[0] == "rename_property":
            hints[edit[1], edit[3]] = edit[2]
        elif edit[0] == "rename_type":
            hints[(edit[2],)] = edit[1]
    nodes = [kind for kind in state.types.values() if not kind.is_edge]
    edges = [kind for kind in state.types.values() if kind.is_edge]
    return "\n".join(_type_text(kind, state, hints) for kind in (*nodes, *edges)) + "\n"


def _type_text(kind: Type, state: State, hints: Mapping[tuple[str, ...], str]) -> str:
    head = f"node {kind.name}"
    if kind.ends:
        source, target = (state.types[end].name for end in kind.ends)
        head = f"edge {kind.name}: {source} -> {target}"
        head += "" if kind.most is None else f" @card(0..{kind.most})"
    if (kind.name,) in hints:
        head += f' @rename_from("{hints[kind.name,]}")'
    lines = [_property_text(p, kind, hints.get((kind.name, p.name))) for p in kind.props.values()]
    lines += [f"  @key({', '.join(kind.key_names())})"] if kind.key else []
    for word, groups in (("unique", kind.uniques), ("index", kind.indices)):
        named = sorted(", ".join(sorted(map(kind.field_name, group))) for group in groups)
        lines += [f"  @{word}({names})" for names in named]
    for ident, (low, high) in kind.ranges.items():
        bounds = f"{'' if low is None else low}..{'' if high is None else high}"
        lines.append(f"  @range({kind.field_name(ident)}, {bounds})")
    return "\n".join([head + " {", *lines, "}"])


def _property_text(prop: Prop, kind: Type, old: str | None) -> str:
    text = f"  {prop.name}: {prop.text}"
    if prop.default is not None:
        text += f" @default({_literal(prop.default)})"
    if prop.embeds is not None:
        text += f' @embed("{kind.field_name(prop.embeds)}")'
    return text + (f' @rename_from("{old}")' if old else "")


def _literal(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t") + '"'
        case list():
            return "[" + ", ".join(map(_literal, value)) + "]"
        case _:
            return repr(value)
