"""One graph in one process: its stores, its caches, and where its branches are now.

Reading is strongly consistent: every `head` asks the store for the next commit; usually there is
none, which costs one request.
"""

from __future__ import annotations

import os
import threading
from functools import lru_cache
from typing import TypeVar

from omnigraph.core import layout
from omnigraph.core.chain import Chains
from omnigraph.core.clock import REAL, Clock
from omnigraph.core.records import (
    FORMAT,
    Commit,
    GcRecord,
    GraphStamp,
    LiveRef,
    RefState,
    StoredChecks,
    StoredSchema,
    decode,
    decode_ref,
)
from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import (
    BranchNotFound,
    Corrupt,
    ForkedProcess,
    FormatUnsupported,
    GraphNotFound,
    ObjectExists,
    ObjectNotFound,
    StoreOutcomeUnknown,
)
from omnigraph.lang.schema import SchemaIR, catalog_of, decode_ir
from omnigraph.model.catalog import Catalog
from omnigraph.model.embedding import EmbedSettings
from omnigraph.model.frozen import frozen
from omnigraph.model.limits import DEFAULT, Limits
from omnigraph.model.names import MAIN, BranchName, branch_name
from omnigraph.storage.local import rely_on
from omnigraph.storage.objects import Location, ObjectStore, locate, numbered, open_objects
from omnigraph.storage.tables import TableStore

T = TypeVar("T")


@frozen
class Head:
    """The newest commit of a branch, and the state of its name that led there."""

    branch: BranchName
    ref_number: int  # -1 for main, whose chain is named by the graph itself
    commit: Commit


@frozen
class SchemaInForce:
    """A schema in force: as written, as stored, and as checked."""

    hash: str
    stored: StoredSchema
    ir: SchemaIR
    catalog: Catalog


class Repository:
    """A graph as this process knows it. Safe to share between threads; not carried over a fork."""

    def __init__(
        self,
        place: Location,
        objects: ObjectStore,
        tables: TableStore,
        stamp: GraphStamp,
        *,
        limits: Limits = DEFAULT,
        clock: Clock = REAL,
        embedding: EmbedSettings | None = None,
    ) -> None:
        self.place = place
        self.objects = objects
        self.tables = tables
        self.stamp = stamp
        self.limits = limits
        self.clock = clock
        self.embedding = embedding
        self.chains = Chains(objects, stamp.graph_id, limits)
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._heads: dict[BranchName, Head] = {}
        self._schemas: dict[str, SchemaInForce] = {}
        self._checks: dict[str, str] = {}
        self.records: dict[int, GcRecord] = {}  # collection records by epoch; they never change

    # --- heads --------------------------------------------------------------------------------------------------

    def head(self, branch: str) -> Head:
        """The newest commit of a branch, now."""
        self.check_process()
        name = branch_name(branch)
        with self._lock:
            known = self._heads.get(name)
        found = self._newer(known) if known is not None else None
        return self.moved(found if found is not None else self._resolve(name))

    def knows(self, branch: str) -> bool:
        """Whether this process has seen the branch."""
        with self._lock:
            return branch in self._heads

    def known_head(self, branch: BranchName) -> Head:
        """Where the branch was when last seen: enough if a create follows, which reveals a newer head."""
        with self._lock:
            known = self._heads.get(branch)
        return known if known is not None else self.head(branch)

    def moved(self, head: Head) -> Head:
        """Remember where a branch is; an older head never replaces a newer one of the same chain."""
        with self._lock:
            known = self._heads.get(head.branch)
            stale = (
                known is not None
                and known.commit.chain == head.commit.chain
                and known.commit.number > head.commit.number
            )
            if not stale:
                self._heads[head.branch] = head
        return head

    def forget(self, branch: BranchName) -> None:
        """Resolve the branch anew next time."""
        with self._lock:
            self._heads.pop(branch, None)

    def _newer(self, known: Head) -> Head | None:
        """The head after a known one; None if the chain was sealed or pruned meanwhile."""
        chain, number = known.commit.chain, known.commit.number
        following = self.chains.read(chain, number + 1)
        if following is None:
            return known
        last = self.chains.newest(chain, number + 1)
        if last is not None and last > number + 1:
            following = self.chains.read(chain, last)
        if isinstance(following, Commit):
            return Head(known.branch, known.ref_number, following)
        self.forget(known.branch)
        return None

    def _resolve(self, name: BranchName) -> Head:
        """From the branch's name."""
        number, chain = -1, self.stamp.main_chain
        if name != MAIN:
            number, state = self.ref_state(layout.ref_folder(name)) or (-1, None)
            if not isinstance(state, LiveRef) or state.tag:
                raise self.no_branch(name)
            chain = state.chain
        commit = self.chains.end(chain)
        if not isinstance(
            commit, Commit
        ):  # never finished; or deleted, whatever its name still says
            raise self.no_branch(name)
        return Head(name, number, commit)

    def no_branch(self, name: str) -> BranchNotFound:
        return BranchNotFound(f"there is no branch {name!r}", details={"branch": name})

    def ref_state(self, folder: str) -> tuple[int, RefState] | None:
        """The newest state of a branch or tag name."""
        number = self.objects.newest(folder)
        if number is None:
            return None
        key = numbered(folder, number)
        try:
            return number, decode_ref(self.objects.get(key), key)
        except ObjectNotFound as error:
            raise Corrupt(
                f"the state {key} of a name is missing", details={"object": key}
            ) from error

    # --- commits and schemas ----------------------------------------------------------------------------------------

    def snapshot(self, commit: Commit) -> Snapshot:
        """Everything needed to read at a commit."""
        catalog = self.schema(commit.schema).catalog
        return Snapshot(commit, catalog, self.tables, self.place.uri, embedding=self.embedding)

    def schema(self, hashed: str) -> SchemaInForce:
        """A schema by its hash, cached."""
        with self._lock:
            known = self._schemas.get(hashed)
        if known is not None:
            return known
        return self.learn(hashed, self._named(StoredSchema, layout.schema_key(hashed), hashed))

    def learn(self, hashed: str, stored: StoredSchema) -> SchemaInForce:
        """Remember a schema that was read or is about to be stored."""
        schema = _understood(hashed, stored)
        with self._lock:
            return self._schemas.setdefault(hashed, schema)

    def checks(self, hashed: str) -> str:
        """The text of checks by its hash; empty for an empty hash."""
        if not hashed:
            return ""
        with self._lock:
            known = self._checks.get(hashed)
        if known is not None:
            return known
        stored = self._named(StoredChecks, layout.checks_key(hashed), hashed)
        with self._lock:
            return self._checks.setdefault(hashed, stored.source)

    def _named(self, kind: type[T], key: str, hashed: str) -> T:
        """An object that is named by its content."""
        try:
            data = self.objects.get(key)
        except ObjectNotFound as error:
            raise Corrupt(f"the object {key} is missing", details={"object": key}) from error
        if layout.schema_hash(data) != hashed:
            raise Corrupt(f"the object {key} does not match its name", details={"object": key})
        found: T = decode(kind, data, key)
        return found

    # --- insisting ----------------------------------------------------------------------------------------------

    def put_once(self, key: str, data: bytes) -> bool:
        """Create an object; whether it is new. An unanswered create is repeated, so an existing object may be ours."""
        attempt = 0
        while True:
            try:
                self.objects.put_new(key, data)
            except ObjectExists:
                return False
            except StoreOutcomeUnknown:
                attempt += 1
                if attempt >= self.limits.unknown_attempts_max:
                    raise
                self.back_off(attempt)
            else:
                return True

    def back_off(self, attempt: int) -> None:
        """Wait before a retry, longer with each attempt."""
        limits = self.limits
        self.clock.back_off(attempt, limits.backoff_first_seconds, limits.backoff_max_seconds)

    def stand_back(self, lost: int) -> None:
        """Wait before the next race. At first as long as a race takes, since among many writers an immediate retry
        mostly fails; shorter the more races were lost, so that the longest waiting writer tries most often."""
        if lost > 1:
            self.clock.pause(self.clock.chance() * self.limits.stand_back_seconds_max / (lost - 1))

    def check_process(self) -> None:
        """A graph opened before a fork is refused in the child: Lance's threads do not survive a fork."""
        if os.getpid() != self._pid:
            raise ForkedProcess(
                "this graph was opened in another process and cannot be used after a fork"
            )


@lru_cache(maxsize=64)
def _understood(hashed: str, stored: StoredSchema) -> SchemaInForce:
    """Graphs of one process share compiled schemas."""
    ir = decode_ir(stored.ir.encode())
    return SchemaInForce(hashed, stored, ir, catalog_of(ir))


def open_repository(
    uri: object, *, limits: Limits = DEFAULT, embedding: EmbedSettings | None = None
) -> Repository:
    """Open the graph at an address; raises if there is none, or if it has another format."""
    place = locate(uri)
    objects = open_objects(place)
    stamp = read_stamp(objects)
    rely_on(objects, layout.GRAPH)
    return repository_at(place, objects, stamp, limits, embedding)


def repository_at(
    place: Location,
    objects: ObjectStore,
    stamp: GraphStamp,
    limits: Limits,
    embedding: EmbedSettings | None = None,
) -> Repository:
    """A repository over stores that are already open."""
    from omnigraph.storage.lance import LanceTables

    tables = LanceTables(place.uri, dict(place.options))
    return Repository(place, objects, tables, stamp, limits=limits, embedding=embedding)


def read_stamp(objects: ObjectStore) -> GraphStamp:
    """The stamp of the graph at this place."""
    try:
        data = objects.get(layout.GRAPH)
    except ObjectNotFound as error:
        refuse_rust_layout(objects)
        raise GraphNotFound(
            f"there is no graph at {objects.uri}", details={"uri": objects.uri}
        ) from error
    return check_stamp(data, objects.uri)


def refuse_rust_layout(objects: ObjectStore) -> None:
    """Raise if the graph is one of the omnigraph written in Rust, whose manifest is a Lance table."""
    if "_versions" in objects.folders(layout.CHAINS):
        raise FormatUnsupported(
            f"{objects.uri} is laid out as a graph of the omnigraph written in Rust, which cannot be opened here",
            help="Import it with `omnigraph import-rust`: docs/tutorial/from-rust.md.",
            details={"uri": objects.uri},
        )


def check_stamp(data: bytes, uri: str) -> GraphStamp:
    """Decode a stamp; the format is checked first, so that another format is not taken for damage."""
    import msgspec

    try:
        found = msgspec.json.decode(data)
        number = found["format"]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError, TypeError) as error:
        raise Corrupt(
            f"graph.json at {uri} is damaged: {error}", details={"object": layout.GRAPH}
        ) from error
    if number != FORMAT:
        age = "older" if isinstance(number, int) and number < FORMAT else "newer"
        raise FormatUnsupported(
            f"the graph at {uri} has storage format {number!r}, {age} than {FORMAT}, which this version reads",
            details={"format": number, "supported": FORMAT},
        )
    try:
        return msgspec.convert(found, GraphStamp)
    except msgspec.ValidationError as error:
        raise Corrupt(
            f"graph.json at {uri} is damaged: {error}", details={"object": layout.GRAPH}
        ) from error
