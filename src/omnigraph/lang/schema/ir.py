"""The stored form of a schema: the catalog's types with their identities, as canonical JSON.

Identities are numbers that are never reused, so that a renamed type keeps its table and a renamed
property its column. Fields at their default are left out of the JSON: a field that a later version adds does not make
stored schemas unreadable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, field, fields, is_dataclass
from enum import Enum
from threading import Lock
from typing import Any, TypeVar

import msgspec

from omnigraph.errors import Corrupt, FormatUnsupported
from omnigraph.model.catalog import Catalog, EdgeType, InterfaceType, NodeType
from omnigraph.model.frozen import frozen

VERSION = 2  # of schemas in which a name was left; others are written as version 1
STORED_BYTES_MAX = 64 * 1024 * 1024
AnyType = InterfaceType | NodeType | EdgeType
T = TypeVar("T", InterfaceType, NodeType, EdgeType)


@frozen
class SchemaIR:
    """All types with their identities, each kind in order of name.

    `retired` counts what has left a name, dropped or renamed: see `identity`.
    """

    interfaces: tuple[InterfaceType, ...] = ()
    nodes: tuple[NodeType, ...] = ()
    edges: tuple[EdgeType, ...] = ()
    retired: Mapping[str, int] = field(default_factory=dict)

    def types(self) -> Iterator[tuple[str, AnyType]]:
        """Every type with its kind: interfaces, nodes, edges."""
        yield from (("interface", t) for t in self.interfaces)
        yield from (("node", t) for t in self.nodes)
        yield from (("edge", t) for t in self.edges)

    def identities(self) -> Iterator[int]:
        """Every identity in use."""
        for _, kind in self.types():
            yield kind.type_id
            yield from (p.property_id for p in kind.properties.values())


def catalog_of(ir: SchemaIR) -> Catalog:
    """The schema as used by everything outside the languages."""
    return Catalog(
        nodes={n.name: n for n in ir.nodes},
        edges={e.name: e for e in ir.edges},
        interfaces={i.name: i for i in ir.interfaces},
    )


# --- JSON ---


def encode_ir(ir: SchemaIR) -> bytes:
    """The schema as canonical JSON: the same schema gives the same bytes."""
    return msgspec.json.encode({"version": VERSION if ir.retired else 1, **_plain(ir)})


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        found = {}
        for f in fields(value):
            item = getattr(value, f.name)
            if item != _default_of(f):
                found[f.name] = _plain(item)
        return found
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


def _default_of(f: Field[Any]) -> Any:
    return f.default if f.default_factory is MISSING else f.default_factory()


# msgspec inspects a class on first use; two threads doing that concurrently can crash it.
_one_at_a_time = Lock()


def decode_ir(data: bytes) -> SchemaIR:
    """The schema that `encode_ir` wrote; anything else is reported as damage."""
    if len(data) > STORED_BYTES_MAX:
        raise Corrupt(f"a stored schema has {len(data)} bytes; at most {STORED_BYTES_MAX} are read")
    try:
        document = msgspec.json.decode(data, type=dict[str, Any])
        version = document.pop("version")
        if version in (1, VERSION):
            with _one_at_a_time:
                ir = msgspec.convert(document, SchemaIR)
    except (msgspec.MsgspecError, KeyError, RecursionError, UnicodeError) as damage:
        raise Corrupt(f"a stored schema is damaged: {damage}") from None
    if version not in (1, VERSION):
        raise FormatUnsupported(
            f"a stored schema has format {version!r}; this version reads up to {VERSION}"
        )
    _verify(ir, data)
    return ir


def _verify(ir: SchemaIR, data: bytes) -> None:
    """Whether the bytes are what we would have written, and the identities are sound."""
    if encode_ir(ir) != data:
        raise Corrupt("a stored schema is damaged: it is not in canonical form")
    used = list(ir.identities())
    if len(used) != len(set(used)) or 0 in used:
        raise Corrupt("a stored schema is damaged: identities repeat")
    for _, kind in ir.types():
        if any(name != prop.name for name, prop in kind.properties.items()):
            raise Corrupt(
                f"a stored schema is damaged: the properties of {kind.name} are mislabelled"
            )
