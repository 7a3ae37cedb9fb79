"""Gives every type and property of a draft its identity: the accepted one where there is one, else a new one.

A declaration keeps the identity of the accepted declaration of its name, or of the one its `@rename_from` names. New
identities are drawn from a block of numbers the caller chose. Blocks are chosen at random, so that two branches which
add types at once do not give one identity to two things.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from omnigraph.errors import OptionInvalid
from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.schema.check import Draft
from omnigraph.lang.schema.ir import AnyType, SchemaIR, T
from omnigraph.lang.schema.rules import ENDS
from omnigraph.lang.source import Place
from omnigraph.model.catalog import EntityType, Property

BLOCK_SIZE = 4096
BLOCK_MAX = 2**52


@dataclass(slots=True)
class Identities:
    """What is known of identities so far, by kind and name, and by owner and property."""

    types: dict[tuple[str, str], int] = field(default_factory=dict)
    properties: dict[tuple[str, str, str], int] = field(default_factory=dict)


def identify(
    accepted: SchemaIR | None, draft: Draft, block: int, diagnostics: Diagnostics
) -> SchemaIR:
    """The draft with identities. Renames that make no sense are reported."""
    _check_block(accepted, block)
    known = Matcher(accepted, draft, diagnostics).match()
    _allocate(draft, known, block, diagnostics)
    return SchemaIR(
        tuple(_with_ids("interface", t, known) for _, t in sorted(draft.interfaces.items())),
        tuple(_with_ids("node", t, known) for _, t in sorted(draft.nodes.items())),
        tuple(_with_ids("edge", t, known) for _, t in sorted(draft.edges.items())),
    )


def _check_block(accepted: SchemaIR | None, block: int) -> None:
    if not 0 <= block < BLOCK_MAX or block % BLOCK_SIZE:
        raise OptionInvalid(f"block must be a multiple of {BLOCK_SIZE} below 2**52, not {block}")
    taken = range(block + 1, block + BLOCK_SIZE)
    if accepted is not None and any(identity in taken for identity in accepted.identities()):
        raise OptionInvalid(f"the identities of block {block} are in use by the accepted schema")


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
            if source is None:
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

    def _inert(self, what: str, at: Place) -> None:
        self.diagnostics.warn("S31", f"the @rename_from of {what} has no effect", at)

    def _refuse(self, message: str, at: Place) -> None:
        self.diagnostics.error("S24", message, at)

    def _hint_place(self, kind: str, *subjects: tuple[str, str | None]) -> Place:
        """Where the first of these says what it was renamed from."""
        hints = (self.draft.hints.get((kind, *subject)) for subject in subjects)
        return next((hint.at for hint in hints if hint), Place(0, 0))


def _allocate(draft: Draft, known: Identities, block: int, diagnostics: Diagnostics) -> None:
    """New identities: types first, by kind and name, then properties by owner and name."""
    following = block
    for kind, wanted in drafted(draft):
        if (kind, wanted.name) not in known.types:
            following += 1
            known.types[kind, wanted.name] = following
    owners = sorted(drafted(draft), key=lambda pair: known.types[pair[0], pair[1].name])
    for kind, wanted in owners:
        for name in wanted.properties:
            if (kind, wanted.name, name) not in known.properties:
                following += 1
                known.properties[kind, wanted.name, name] = following
    if block and following - block >= BLOCK_SIZE:
        message = (
            f"one change can add {BLOCK_SIZE - 1} types and properties, not {following - block}"
        )
        diagnostics.error("S25", message, Place(0, 0))


def _with_ids(kind: str, wanted: T, known: Identities) -> T:
    type_id = known.types[kind, wanted.name]
    properties = {
        name: replace(prop, property_id=known.properties[kind, wanted.name, name])
        for name, prop in wanted.properties.items()
    }
    if isinstance(wanted, EntityType):
        table_id, key = f"{kind[0]}{type_id}", order_key(wanted.key, properties)
        return replace(wanted, type_id=type_id, table_id=table_id, properties=properties, key=key)
    return replace(wanted, type_id=type_id, properties=properties)


def order_key(
    key: tuple[str, ...] | None, properties: dict[str, Property]
) -> tuple[str, ...] | None:
    """Key members in the order that derives ids: the ends of an edge, then properties by identity."""
    if key is None:
        return None
    members = sorted((k for k in key if k not in ENDS), key=lambda k: properties[k].property_id)
    return (*(end for end in ENDS if end in key), *members)
