"""A planned commit: what changes, which reads it depends on, and how it is to be judged.

A verb (mutate, load, merge, …) is a function of a `WriteTxn` that returns a `PublishPlan`. The plan is a value: it can
be folded with others, staged, staged again on another base, and published; it never publishes itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.core.clock import NEVER, Deadline
from omnigraph.core.records import StoredSchema, TableChange, TableEntry
from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import OptionInvalid
from omnigraph.model.catalog import Catalog
from omnigraph.model.frozen import frozen
from omnigraph.model.names import BranchName, is_unicode
from omnigraph.model.tokens import NO_TOKENS, Tokens, union
from omnigraph.storage.tables import ColumnEdit, IndexEdit, NewFragments, RowAddresses, Staged

if TYPE_CHECKING:
    from omnigraph.core.txn import WriteTxn


# --- actions: a closed union; several on one table become one version ------------------------------------------


@frozen
class Append:
    """Rows with ids that do not exist yet."""

    table_id: str
    rows: pa.Table | NewFragments


@frozen
class Upsert:
    """Whole rows by id; `before` are the rows they replace: `id` (edges: `src`, `dst`) and their addresses.

    Rows written beforehand may include new ones, and name the rows they replace by their addresses alone.
    """

    table_id: str
    rows: pa.Table | NewFragments
    before: pa.Table | RowAddresses


@frozen
class Remove:
    """Remove the rows of `before`: `id` (edges: `src`, `dst`) and their addresses, or of many the addresses alone."""

    table_id: str
    before: pa.Table | RowAddresses


@frozen
class Overwrite:
    """Replace all rows by these."""

    table_id: str
    rows: pa.Table | NewFragments


@frozen
class Register:
    """A new table for a new type."""

    table_id: str
    kind: str
    type_name: str
    schema: pa.Schema


@frozen
class DropTable:
    """The type is dropped: its table leaves the graph."""

    table_id: str


@frozen
class Alter:
    """A type is renamed, or its columns change."""

    table_id: str
    type_name: str
    columns: ColumnEdit | None = None


@frozen
class CreateIndex:
    """Build or complete indices. `done` is what was built beforehand; it is valid for the version it was built for."""

    table_id: str
    indices: tuple[IndexEdit, ...]
    drop: tuple[str, ...] = ()
    done: Staged | None = None


@frozen
class Rewrite:
    """Compact the table: other fragments, the same rows. `done` is as with `CreateIndex`."""

    table_id: str
    indices: tuple[IndexEdit, ...] = ()
    done: Staged | None = None


@frozen
class Adopt:
    """Take over an existing version, as a merge or a reset does. `source` is the commit that has it.

    `instead` are the same rows as actions, for a head on which others have changed other rows of the table meanwhile.
    Without it the plan is valid only on exactly the version it was made for.
    """

    table_id: str
    entry: TableEntry
    change: TableChange
    source: tuple[str, int]
    instead: tuple[TableAction, ...] = ()


TableAction = (
    Append
    | Upsert
    | Remove
    | Overwrite
    | Register
    | DropTable
    | Alter
    | CreateIndex
    | Rewrite
    | Adopt
)
MAINTENANCE_ACTIONS = (CreateIndex, Rewrite)


# --- what a plan depends on -------------------------------------------------------------------------------------


@frozen
class Reads:
    """What a verb read of one table: single facts (tokens), or everything.

    `later` are the facts of rows that were written beforehand, its own rows among them. There may be many, so they
    are computed only when a race is lost, in sorted parts that need not be in memory.
    """

    tokens: Tokens = field(default_factory=lambda: NO_TOKENS)
    everything: bool = False
    later: Callable[[], Sequence[Tokens]] | None = None

    def __or__(self, other: Reads) -> Reads:
        tokens, everything = union([self.tokens, other.tokens]), self.everything or other.everything
        return Reads(tokens, everything, self.later or other.later)


def read_whole(tables: Iterable[str]) -> dict[str, Reads]:
    """The reads of a plan that any change of these tables invalidates."""
    return {table: Reads(everything=True) for table in tables}


@frozen
class NewSchema:
    """A schema that comes into force with the commit."""

    stored: StoredSchema
    catalog: Catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishPlan:
    """Everything needed to stage and publish one write."""

    kind: str  # mutation, load, schema, merge, revert, optimize, …
    actions: tuple[TableAction, ...] = ()
    reads: Mapping[str, Reads] = field(default_factory=dict)
    schema: NewSchema | None = None
    checks: str | None = None  # the text of the checks that come into force; empty: no checks
    verify: Verify | None = None  # the verification of the new state before it is published
    strict: bool = False  # a conflict is reported, never resolved by running again
    schema_strict: bool = False  # the same, but only for a schema change: rows are judged again
    merged: Mapping[str, str] = field(
        default_factory=dict
    )  # per chain: its newest commit whose changes are included
    parents: tuple[str, ...] = ()  # besides the head
    result: Mapping[str, Any] = field(
        default_factory=dict
    )  # stored in the commit, for repeated requests
    value: Any = None  # returned to the caller unchanged
    empty: bool = False  # nothing to do: no commit is made
    plan_id: str | None = None  # the stored plan of a long operation

    @property
    def is_maintenance(self) -> bool:
        """Whether the rows of the graph stay the same."""
        return bool(self.actions) and all(isinstance(a, MAINTENANCE_ACTIONS) for a in self.actions)

    @property
    def written(self) -> frozenset[str]:
        return frozenset(action.table_id for action in self.actions)

    @property
    def sources(self) -> frozenset[tuple[str, int]]:
        """The commits whose versions are adopted."""
        return frozenset(action.source for action in self.actions if isinstance(action, Adopt))


# From the state before and the one about to be published: the part of the result to store in the commit; an error
# prevents publication.
Verify = Callable[[Snapshot, Snapshot], Mapping[str, Any]]
NOTHING = PublishPlan(kind="nothing", empty=True)
Verb = Callable[["WriteTxn"], PublishPlan]


def dry_run(verb: Verb) -> Verb:
    """A verb that reports what another would do, and does nothing."""
    return lambda txn: replace(verb(txn), empty=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A requested write."""

    branch: BranchName
    verb: Verb
    actor: str | None = None
    message: str | None = None
    idempotency_key: str | None = None
    fingerprint: str = ""
    if_commit: str | None = None
    create_from: str | None = (
        None  # create the branch from there, with this write as its first commit
    )
    alone: bool = False  # never folded with other writers
    deadline: Deadline = NEVER

    def __post_init__(self) -> None:
        for name in ("actor", "message", "idempotency_key"):
            text = getattr(self, name)
            if text is not None and not (isinstance(text, str) and is_unicode(text)):
                raise OptionInvalid(f"{name}= is not valid Unicode text")
