"""Gives every type and property of a draft its identity: the accepted one if it exists, else a new one.

A declaration keeps the identity of the accepted declaration of its name, or of the one its `@rename_from` names. A new
identity is derived from what is declared: the name, what it belongs to, the type of a property, and how often something
has left that name before. So two branches that add the same property add ONE property, and a property that was dropped
and is added again is another one: its old values do not come back. Values of one identity have types that differ by
widening at most, so each can be read as the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.schema.check import Draft
from omnigraph.lang.schema.ir import AnyType, SchemaIR, T
from omnigraph.lang.schema.rules import ENDS
from omnigraph.lang.source import Place
from omnigraph.model.catalog import EntityType, Property

IDENTITY_BITS = 52  # what a JSON number holds exactly; derived identities have the highest bit set


@dataclass(slots=True)
class Identities:
    """The known identities, by kind and name, and by owner and property."""

    types: dict[tuple[str, str], int] = field(default_factory=dict)
    properties: dict[tuple[str, str, str], int] = field(default_factory=dict)


def identify(accepted: SchemaIR | None, draft: Draft, diagnostics: Diagnostics) -> SchemaIR:
    """The draft with identities. Renames that make no sense are reported."""
    known = Matcher(accepted, draft, diagnostics).match()
    if accepted is None:
        retired: Mapping[str, int] = {}
        _number(draft, known)
    else:
        retired = _retired(accepted, known)
        _derive(draft, known, retired, set(accepted.identities()))
    old = {t.type_id: t for _, t in accepted.types()} if accepted else {}
    interfaces = (
        _with_ids("interface", t, known, old) for _, t in sorted(draft.interfaces.items())
    )
    nodes = (_with_ids("node", t, known, old) for _, t in sorted(draft.nodes.items()))
    edges = (_with_ids("edge", t, known, old) for _, t in sorted(draft.edges.items()))
    return SchemaIR(tuple(interfaces), tuple(nodes), tuple(edges), retired)


def drafted(draft: Draft) -> Iterator[tuple[str, AnyType]]:
    """The types of a draft in the order in which identities are given."""
    for kind, types in (
        ("interface", draft.interfaces),
        ("node", draft.nodes),
        ("edge", draft.edges),
    ):
        yield from ((kind, types[name]) for name in sorted(types))


class Matcher:
    """Finds the accepted declaration each drafted one continues."""

    def __init__(self, accepted: SchemaIR | None, draft: Draft, diagnostics: Diagnostics) -> None:
        self.fresh = accepted is None
        self.accepted = {(kind, t.name): t for kind, t in (accepted or SchemaIR()).types()}
        self.draft = draft
        self.diagnostics = diagnostics
        self.known = Identities()

    def match(self) -> Identities:
        consumed: dict[int, str] = {}
        for kind, wanted in drafted(self.draft):
            old = self._type(kind, wanted.name)
            if old is not None:
                if old.type_id in consumed:
                    place = self._hint_place(
                        kind, (wanted.name, None), (consumed[old.type_id], None)
                    )
                    self._refuse(f"{kind} {old.name} would become two types", place)
                consumed[old.type_id] = wanted.name
                self.known.types[kind, wanted.name] = old.type_id
            self._properties(kind, wanted, old)
        return self.known

    def _type(self, kind: str, name: str) -> AnyType | None:
        hint = self.draft.hints.get((kind, name, None))
        exact = self.accepted.get((kind, name))
        if hint is None:
            return exact
        if self.fresh or exact is not None:
            self._inert(f"{kind} {name}", hint.at)
            return exact
        old = self.accepted.get((kind, hint.old))
        if old is None:
            other = next((k for k, n in self.accepted if n == hint.old), None)
            reason = f"`{hint.old}` is {'an' if other == 'edge' else 'a'} {other}"
            message = f"{kind} {name} cannot be renamed from `{hint.old}`: " + (
                reason if other else f"the graph has no {kind} of that name"
            )
            options = [n for k, n in self.accepted if k == kind]
            self.diagnostics.unknown("S24", message, hint.at, word=hint.old, options=options)
        return old

    def _properties(self, kind: str, wanted: AnyType, old: AnyType | None) -> None:
        consumed: dict[str, str] = {}
        for name in wanted.properties:
            source = self._property(kind, wanted.name, name, old)
            if source is None or self._embeds_anew(wanted, name, old, source):
                continue
            if source.name in consumed:
                owner, other = wanted.name, consumed[source.name]
                place = self._hint_place(kind, (owner, name), (owner, other))
                self._refuse(f"{wanted.name}.{source.name} would become two properties", place)
            consumed[source.name] = name
            self.known.properties[kind, wanted.name, name] = source.property_id

    def _property(self, kind: str, owner: str, name: str, old: AnyType | None) -> Property | None:
        hint = self.draft.hints.get((kind, owner, name))
        exact = old.properties.get(name) if old is not None else None
        if hint is None:
            return exact
        if self.fresh or exact is not None:
            self._inert(f"property {owner}.{name}", hint.at)
            return exact
        source = old.properties.get(hint.old) if old is not None else None
        if source is None and not hint.inherited:
            message = f"{owner}.{name} cannot be renamed from `{hint.old}`: " + (
                f"{kind} {owner} is new" if old is None else f"{owner} has no property of that name"
            )
            options = old.properties if old is not None else ()
            self.diagnostics.unknown("S24", message, hint.at, word=hint.old, options=options)
        return source

    def _embeds_anew(
        self, wanted: AnyType, name: str, old: AnyType | None, source: Property
    ) -> bool:
        """Whether a vector comes from another text or model than before. Vectors of two models cannot be compared, so
        it is a new property, which starts empty; renaming the source changes nothing."""
        new, before = wanted.properties[name].embed, source.embed
        if new is None or before is None or old is None:
            return False
        text = self._property("node", wanted.name, new.source, old)
        same_text = text is not None and text.name == before.source
        return not same_text or new.model != before.model

    def _inert(self, what: str, at: Place) -> None:
        self.diagnostics.warn("S31", f"the @rename_from of {what} has no effect", at)

    def _refuse(self, message: str, at: Place) -> None:
        self.diagnostics.error("S24", message, at)

    def _hint_place(self, kind: str, *subjects: tuple[str, str | None]) -> Place:
        """The place of the first rename annotation among these."""
        hints = (self.draft.hints.get((kind, *subject)) for subject in subjects)
        return next((hint.at for hint in hints if hint), Place(0, 0))


def _number(draft: Draft, known: Identities) -> None:
    """The identities of a graph's first schema: types from 1 by kind and name, then properties by owner and name."""
    numbers = count(1)
    for kind, wanted in drafted(draft):
        known.types[kind, wanted.name] = next(numbers)
    for kind, wanted in drafted(draft):
        for name in wanted.properties:
            known.properties[kind, wanted.name, name] = next(numbers)


def _retired(accepted: SchemaIR, known: Identities) -> dict[str, int]:
    """How often a declaration has left each name, dropped or renamed; names that were never left are not listed."""
    found = dict(accepted.retired)
    names = {type_id: place for place, type_id in known.types.items()}

    def leave(slot: str) -> None:
        found[slot] = found.get(slot, 0) + 1

    for kind, old in accepted.types():
        place = names.get(old.type_id)
        if place != (kind, old.name):
            leave(_slot(kind, old.name))
        if place is None:
            continue
        for prop in old.properties.values():
            if known.properties.get((*place, prop.name)) != prop.property_id:
                leave(_slot(old.type_id, prop.name))
    return dict(sorted(found.items()))


def _derive(draft: Draft, known: Identities, retired: Mapping[str, int], taken: set[int]) -> None:
    """The identities of what a schema change adds."""
    for kind, wanted in drafted(draft):
        if (kind, wanted.name) not in known.types:
            slot = _slot(kind, wanted.name)
            known.types[kind, wanted.name] = _derived(slot, retired.get(slot, 0), taken)
        type_id = known.types[kind, wanted.name]
        for name, prop in wanted.properties.items():
            if (kind, wanted.name, name) not in known.properties:
                slot = _slot(type_id, name)
                what = f"{retired.get(slot, 0)} {replace(prop.type, nullable=False, enum=None)}"
                known.properties[kind, wanted.name, name] = _derived(slot, what, taken)


def _slot(owner: str | int, name: str) -> str:
    """A name in its place: of a type among its kind, of a property in its type."""
    return f"{owner} {name}"


def _derived(slot: str, what: object, taken: set[int]) -> int:
    """An identity for what is added under a name; if a number is already in use, the next one is tried."""
    for attempt in count():
        text = f"{slot} {what} {attempt}"
        number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
        identity = number >> (64 - IDENTITY_BITS) | 1 << (IDENTITY_BITS - 1)
        if identity not in taken:
            taken.add(identity)
            return identity
    raise AssertionError


def _with_ids(kind: str, wanted: T, known: Identities, accepted: Mapping[int, AnyType]) -> T:
    type_id = known.types[kind, wanted.name]
    properties = {
        name: replace(prop, property_id=known.properties[kind, wanted.name, name])
        for name, prop in wanted.properties.items()
    }
    if isinstance(wanted, EntityType):
        key = _ordered_key(wanted.key, properties, accepted.get(type_id))
        return replace(
            wanted, type_id=type_id, table_id=f"{kind[0]}{type_id}", properties=properties, key=key
        )
    return replace(wanted, type_id=type_id, properties=properties)


def _ordered_key(
    key: tuple[str, ...] | None, properties: Mapping[str, Property], old: AnyType | None
) -> tuple[str, ...] | None:
    """Key members in the order that derives ids: as accepted, whatever their names are now; of a new key the ends of an
    edge, then properties by name."""
    if key is None:
        return None
    names = {prop.property_id: name for name, prop in properties.items()}
    if isinstance(old, EntityType) and old.key is not None:
        before = tuple(
            names.get(old.properties[k].property_id, "") if k in old.properties else k
            for k in old.key
        )
        if set(before) == set(key):
            return before
    return (*(end for end in ENDS if end in key), *sorted(k for k in key if k not in ENDS))
