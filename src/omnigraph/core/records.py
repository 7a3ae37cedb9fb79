"""The objects that make up a graph's history, exactly as they are stored: compact JSON, compressed.

Everything read back is checked against these types; what does not fit is reported as damage, never skipped.
"""

from __future__ import annotations

import zlib
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec

from omnigraph.errors import Corrupt, LimitExceeded, ObjectNotFound
from omnigraph.model.limits import DEFAULT

if TYPE_CHECKING:
    from omnigraph.storage.objects import ObjectStore

FORMAT = 1
T = TypeVar("T")

# Names that become keys or folders: even in a tampered object, none of them leads out of the graph.
Chain = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-z]{1,64}\Z")]
Hash = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
TablePath = Annotated[str, msgspec.Meta(pattern=r"\A(?:nodes|edges)/[0-9A-Za-z_-]{1,128}\Z")]
MaybeHash = Annotated[str, msgspec.Meta(pattern=r"\A(?:[0-9a-f]{64})?\Z")]
Version = Annotated[str, msgspec.Meta(pattern=r"\A[0-9]{1,20}\Z")]  # unsigned 64-bit, as text


class Struct(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Base of all stored objects."""


class GraphStamp(Struct, frozen=True):
    """`graph.json`: creating it is what creates a graph."""

    format: int
    graph_id: str
    main_chain: Chain
    created: int  # microseconds since 1970, UTC


class TableEntry(Struct, frozen=True):
    """The exact version of one table of a commit."""

    kind: str  # node or edge
    type_name: str
    path: TablePath  # relative to the graph's root
    version: Version
    rows: int


class TableChange(Struct, frozen=True):
    """What a commit did to one table. `touched` is a footprint: ids, endpoints and unique values."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    all: bool = False  # the table was replaced as a whole, or nothing more is known
    touched: str = "="
    inserted_ids: tuple[str, ...] | None = None  # listed only if there are few
    updated_ids: tuple[str, ...] | None = None
    deleted_ids: tuple[str, ...] | None = None


class Member(Struct, frozen=True):
    """One write inside a commit. A commit has one, or several if writers of a process were folded together."""

    kind: str
    operation_id: str
    actor: str | None = None
    message: str | None = None
    idempotency_key: str | None = None
    fingerprint: str | None = None
    changes: dict[str, TableChange] = {}
    result: dict[str, Any] = {}


class Recent(Struct, frozen=True):
    """A write under an idempotency key, remembered by the commits after it."""

    operation_id: str
    number: int


class Commit(Struct, frozen=True, tag="commit"):
    """Commit `number` of a chain. It names every table, so that one read gives the whole state."""

    graph_id: str
    chain: Chain
    number: int
    branch: str
    parents: tuple[str, ...]
    time: int  # microseconds; later than the parent's
    kind: str
    schema: Hash
    gc_epoch: int
    content: str  # id of the newest commit that is not maintenance: this one, or an older one
    tables: dict[str, TableEntry]
    members: tuple[Member, ...] = ()
    recent: tuple[Recent, ...] = ()
    merged: dict[str, str] = {}  # per source chain: its newest commit that was merged here
    format: int = FORMAT
    previous: str = ""  # the first parent users see: the newest earlier commit with content
    checks: MaybeHash = ""  # the checks in force; empty if none


class Seal(Struct, frozen=True, tag="seal"):
    """The last object of a deleted branch's chain."""

    chain: Chain
    number: int
    operation_id: str
    actor: str | None = None
    time: int = 0


class Tombstone(Struct, frozen=True, tag="tombstone"):
    """The remains of a commit removed by garbage collection: enough to answer repeated writes and walk lineage."""

    chain: Chain
    number: int
    branch: str
    parents: tuple[str, ...]
    time: int
    kind: str
    content: str
    operations: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    recent: tuple[Recent, ...] = ()
    answers: tuple[tuple[int, Member], ...] = ()  # writes under a key by place; changes: counts
    types: dict[str, str] = {}  # the type names of the tables they changed
    previous: str = ""


ChainObject = Commit | Seal | Tombstone


class LiveRef(Struct, frozen=True, tag="live"):
    """A branch or tag name in use. A branch owns `chain`; a tag points at commit `base_number` of it."""

    chain: Chain
    operation_id: str
    tag: bool = False
    source_chain: Chain | None = None
    base_number: int | None = None
    member: int | None = None
    actor: str | None = None
    time: int = 0
    writes: bool = False  # the first commit brings files: a collection cancels it while unfinished


class DeletedRef(Struct, frozen=True, tag="deleted"):
    """A branch or tag name no longer in use."""

    chain: Chain
    operation_id: str


RefState = LiveRef | DeletedRef


class GcRecord(Struct, frozen=True):
    """What this and all earlier collections may have removed. `epoch` is its own number."""

    epoch: int
    floors: dict[Chain, int]  # per chain: commits below may be gone
    dead: tuple[Chain, ...]  # chains that may be gone as a whole
    kept: tuple[tuple[Chain, int], ...]  # commits below a floor that stay
    plans: tuple[str, ...]  # plans of long operations that were honoured
    unfinished: tuple[Chain, ...] = ()  # chains of branches whose creation was not finished
    released: tuple[tuple[Chain, int], ...] = ()  # commits once kept that are not buried yet
    buried: dict[
        Chain, int
    ] = {}  # per chain: commits below are replaced by tombstones, but for those held


class StoredSchema(Struct, frozen=True):
    """A schema as written, and its form with stable identities."""

    source: str
    ir: str


class StoredChecks(Struct, frozen=True):
    """Checks as written."""

    source: str


class KeyClaim(Struct, frozen=True):
    """Which operation uses an idempotency key, and where the search for its commit starts."""

    operation_id: str
    fingerprint: str
    branch: str
    chain: str  # empty while a write that creates its branch has none; only compared
    base_number: int


class StoredPlan(Struct, frozen=True):
    """The plan of a long operation: a lease on its staged files, its progress, and where to resume."""

    plan: str
    operation_id: str
    kind: str
    branch: str
    gc_epoch: int
    created: int
    tables: tuple[TablePath, ...]  # folders whose unreferenced files must be kept
    state: dict[str, Any] = {}
    renewed: int = 0  # the last heartbeat, in microseconds


class RetentionPolicy(Struct, frozen=True):
    """How much history maintenance keeps: the newest commits of each branch, and all that are recent enough."""

    keep: int
    days: float | None = None
    every_hours: float = 1.0  # how often maintenance looks for history to remove
    actor: str | None = None
    time: int = 0  # when it was set


class MaintenanceAction(Struct, frozen=True):
    """One maintenance action."""

    time: int  # when it ended, in microseconds
    kind: str  # optimize, embed, expire or cleanup
    branch: str | None
    detail: str
    seconds: float


class MaintenanceStatus(Struct, frozen=True):
    """Which process maintains a graph, when its claim expires, and what was done last."""

    holder: str = ""
    until: int = 0
    cleaned: int = 0
    expired: int = 0
    actions: tuple[MaintenanceAction, ...] = ()  # newest first


_encoder = msgspec.json.Encoder(order="deterministic")
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
_learning = Lock()  # msgspec may crash when two threads make it inspect one class concurrently


def encode(thing: Struct) -> bytes:
    """The stored form of an object."""
    return zlib.compress(_encoder.encode(thing), 1)


def unpack(data: bytes, key: str) -> bytes:
    """Decompress an object, refusing one that would not fit."""
    try:
        stream = zlib.decompressobj()
        raw = stream.decompress(data, DEFAULT.object_bytes_max)
    except zlib.error as error:
        raise Corrupt(f"the object {key} is damaged: {error}", details={"object": key}) from error
    if stream.unconsumed_tail:
        raise LimitExceeded(
            f"the object {key} is larger than object_bytes_max ({DEFAULT.object_bytes_max})",
            details={"limit": "object_bytes_max", "object": key},
        )
    if not stream.eof:
        raise Corrupt(f"the object {key} is cut short", details={"object": key})
    return raw


def decode(kind: Any, data: bytes, key: str) -> Any:
    """The object of this kind stored under a key; anything else is damage."""
    decoder = _decoders.get(kind)
    if decoder is None:
        with _learning:
            decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    try:
        return decoder.decode(unpack(data, key))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Corrupt(f"the object {key} is damaged: {error}", details={"object": key}) from error


def object_at(objects: ObjectStore, kind: type[T], key: str) -> T | None:
    """The object of this kind under a key, if it exists."""
    try:
        found: T = decode(kind, objects.get(key), key)
    except ObjectNotFound:
        return None
    return found


def decode_chain_object(data: bytes, key: str) -> ChainObject:
    found: ChainObject = decode(ChainObject, data, key)
    return found


def decode_ref(data: bytes, key: str) -> RefState:
    found: RefState = decode(RefState, data, key)
    return found


def buried(commit: Commit) -> Tombstone:
    """The tombstone of a commit that is removed."""
    keyed = {place: m for place, m in enumerate(commit.members) if m.idempotency_key}
    changed = {table for member in keyed.values() for table in member.changes}
    return Tombstone(
        chain=commit.chain,
        number=commit.number,
        branch=commit.branch,
        parents=commit.parents,
        time=commit.time,
        kind=commit.kind,
        content=commit.content,
        operations=tuple(member.operation_id for member in commit.members),
        keys=tuple(sorted(keys_of(commit))),
        recent=commit.recent,
        answers=tuple((place, _counted(member)) for place, member in keyed.items()),
        previous=commit.previous,
        types={table: commit.tables[table].type_name for table in changed & commit.tables.keys()},
    )


def _counted(member: Member) -> Member:
    """A write without the names of what it touched."""
    counts = {
        table: TableChange(change.inserted, change.updated, change.deleted)
        for table, change in member.changes.items()
    }
    return msgspec.structs.replace(member, changes=counts, fingerprint=None, idempotency_key=None)


def written_by(thing: Commit | Tombstone) -> dict[int, Member]:
    """The writes of a commit by their place in it; of a removed one, those made under an idempotency key."""
    return dict(enumerate(thing.members)) if isinstance(thing, Commit) else dict(thing.answers)


def type_names(thing: Commit | Tombstone) -> dict[str, str]:
    """The type names of the tables a commit knows; of a removed one, those its answers mention."""
    if isinstance(thing, Tombstone):
        return thing.types
    return {table: entry.type_name for table, entry in thing.tables.items()}


def operations_of(thing: ChainObject) -> frozenset[str]:
    """The ids of the operations a chain object holds."""
    match thing:
        case Commit():
            return frozenset(m.operation_id for m in thing.members)
        case Tombstone():
            return frozenset(thing.operations)
        case Seal():
            return frozenset({thing.operation_id})


def keys_of(thing: ChainObject) -> frozenset[str]:
    """The idempotency keys a chain object holds."""
    match thing:
        case Commit():
            return frozenset(m.idempotency_key for m in thing.members if m.idempotency_key)
        case Tombstone():
            return frozenset(thing.keys)
        case Seal():
            return frozenset()
