"""Requests: the bodies and query strings of routes.

A field for a parameter of a verb has the parameter's name here, whatever its name on the wire.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import field

from omnigraph.model.names import canonical

Mode = Literal["append", "merge", "overwrite"]
Operation = Literal["insert", "update", "delete"]
Lines = Literal["ndjson", "ndjson-0.10", "ndjson-0.13"]  # forms of records, see `read.ndjson`
EntityKind = Literal["node", "edge"]
Name = Annotated[str, msgspec.Meta(max_length=1024)]  # of a branch, or an address
Message = Annotated[str, msgspec.Meta(max_length=4096)]  # of a commit
RowsShown = Annotated[int, msgspec.Meta(ge=0)]  # of a JSON response; its `row_count` counts all


ROW_COUNTS = "row_counts"  # of many runs, in the metadata of an Arrow schema


class Spelled(msgspec.Struct, frozen=True):
    """A request. Branches, tags and points are normalised before anything reads them."""

    names: ClassVar[frozenset[str]] = frozenset(
        (
            "branch",
            "create_from",
            "from_",
            "source",
            "into",
            "at",
            "snapshot",
            "commit",
            "to",
            "a",
            "b",
            "start",
            "before",
        )
    )

    def __post_init__(self) -> None:
        for name in self.names.intersection(self.__struct_fields__):
            given = getattr(self, name)
            if isinstance(given, str):
                msgspec.structs.force_setattr(self, name, canonical(given))


class WireRequest(Spelled, frozen=True):
    """A body or query string; unknown fields are ignored."""


class StrictRequest(Spelled, frozen=True, forbid_unknown_fields=True):
    """A body or query string that refuses unknown fields."""


class TextRequest(WireRequest, frozen=True):
    """A text to run, under the field names of published clients."""

    text: str | None = field(default=None, name="query")
    query_source: str | None = None
    name: str | None = None
    query_name: str | None = None
    params: dict[str, Any] | None = None
    branch: str | None = None


class QueryRequest(TextRequest, frozen=True):
    snapshot: str | None = None
    at: str | None = None
    max_rows: int | None = None
    timeout: float | None = None
    explain: bool = False
    rows_shown: RowsShown | None = None
    column_types: bool = False
    language: str | None = None
    settings: dict[str, str | int] | None = None


class QueryManyRequest(StrictRequest, frozen=True):
    """One query for many sets of parameters, all on the same state."""

    text: str = field(name="query")
    params: list[dict[str, Any] | None]
    name: str | None = None
    branch: str | None = None
    at: str | None = None
    max_rows: int | None = None
    timeout: float | None = None


class MutateRequest(TextRequest, frozen=True):
    message: Message | None = None
    timeout: float | None = None
    dry_run: bool = False
    language: str | None = None


class InvokeRequest(WireRequest, frozen=True):
    params: dict[str, Any] | None = None
    branch: str | None = None
    snapshot: str | None = None
    expect_mutation: bool | None = None
    rows_shown: RowsShown | None = None
    column_types: bool = False
    message: str | None = None  # of the commit of a mutation
    dry_run: bool = False


class LoadRequest(WireRequest, frozen=True):
    """`data` holds NDJSON; `uri` is its address instead. A stream has neither: its body is the data."""

    data: str | None = None
    uri: Name | None = None
    branch: Name | None = None
    create_from: Name | None = field(default=None, name="from")
    mode: Mode = "merge"
    message: Message | None = None
    dry_run: bool = False


class ExportRequest(StrictRequest, frozen=True):
    branch: str | None = None
    type_names: list[str] | None = None
    order: Literal["id"] | None = None
    format: Lines | None = None


class ExportQuery(WireRequest, frozen=True):
    branch: str | None = None
    at: str | None = None
    types: list[str] | None = None
    order: Literal["id"] | None = None
    format: Lines | None = None


class ClusterRequest(StrictRequest, frozen=True):
    """The files of a cluster's folder, by their paths. `plan` is the digest of the plan to apply."""

    files: dict[Name, str]
    plan: str | None = None
    delete: list[Name] = []


class BaselineRequest(StrictRequest, frozen=True):
    branch: str | None = None
    kind: list[EntityKind] | None = None
    type: list[str] | None = None
    op: list[Operation] | None = None


class BranchQuery(WireRequest, frozen=True):
    branch: str | None = None
    at: str | None = None


class CommitsQuery(WireRequest, frozen=True):
    branch: str | None = None
    at: str | None = None
    limit: int | None = None
    actor: str | None = None
    kind: str | None = None
    maintenance: bool = False


class DiffQuery(WireRequest, frozen=True):
    a: str
    b: str
    branch: str | None = None
    types: list[str] | None = None
    operations: list[Operation] | None = field(default=None, name="op")
    from_merge_base: bool = False
    limit: int = 1000


class PageQuery(StrictRequest, frozen=True):
    page_token: str | None = None
    limit: int | None = None
    kind: list[EntityKind] | None = None
    type: list[str] | None = None
    op: list[Operation] | None = None


class FeedQuery(PageQuery, frozen=True):
    branch: str | None = None
    cursor: str | None = None
    start: str | None = None


class BlobQuery(WireRequest, frozen=True):
    entity: EntityKind
    type: str
    id: str
    property: str
    branch: str | None = None
    snapshot: str | None = None


class BranchRequest(WireRequest, frozen=True):
    names = WireRequest.names | {"name"}
    name: str
    from_: str | None = field(default=None, name="from")
    dry_run: bool = False


class RemovalQuery(WireRequest, frozen=True):
    dry_run: bool = False


class MergeRequest(WireRequest, frozen=True):
    source: str
    into: str | None = field(default=None, name="target")
    delete_branch: bool | None = None
    dry_run: bool = False
    strategy: str | dict[str, str] | None = None
    resolutions: list[dict[str, Any]] | None = None
    message: Message | None = None


class UndoRequest(WireRequest, frozen=True):
    commit: str
    branch: str | None = None
    dry_run: bool = False
    strategy: str | dict[str, str] | None = None
    resolutions: list[dict[str, Any]] | None = None
    message: Message | None = None


class ResetRequest(WireRequest, frozen=True):
    to: str = field(name="commit")
    branch: str | None = None
    dry_run: bool = False
    message: Message | None = None


class TagRequest(WireRequest, frozen=True):
    names = WireRequest.names | {"name"}
    name: str
    at: str | None = None
    branch: str | None = None
    dry_run: bool = False


class RetentionRequest(StrictRequest, frozen=True):
    keep: int | None
    days: float | None = None
    every_hours: float = 1.0
    dry_run: bool = False


class SchemaRequest(WireRequest, frozen=True):
    text: str = field(name="schema_source")
    branch: str | None = None
    allow_data_loss: bool = False
    message: Message | None = None
    dry_run: bool = False


class GraphQuery(WireRequest, frozen=True):
    """The graph of the server; without it, the only one."""

    graph: str | None = None


class HistoryQuery(WireRequest, frozen=True):
    limit: int | None = None
    before: int | None = None


class EntityHistoryQuery(WireRequest, frozen=True):
    branch: str | None = None
    at: str | None = None
    limit: int | None = None


class PermissionsQuery(WireRequest, frozen=True):
    branch: str | None = None


class QueryCheckRequest(WireRequest, frozen=True):
    query: str
    branch: str | None = None
    at: str | None = None


class SchemaCheckRequest(WireRequest, frozen=True):
    schema_source: str


FileFormat = Literal["csv", "tsv", "ndjson", "parquet", "arrow"]


class PreviewRequest(WireRequest, frozen=True):
    format: FileFormat = "csv"
    branch: str | None = None


class ImportRequest(WireRequest, frozen=True):
    """`columns` is JSON: names in the file to the properties they fill. Without `type`, lines are graph records."""

    type: str | None = None
    format: FileFormat = "csv"
    columns: str | None = None
    branch: str | None = None
    create_from: str | None = field(default=None, name="from")
    mode: Mode = "merge"
    message: Message | None = None
    check: bool = False


class WriteStep(WireRequest, frozen=True):
    """A mutation (`query`), or rows to `load`: graph records, or rows by type."""

    text: str | None = field(default=None, name="query")
    name: str | None = None
    params: dict[str, Any] | None = None
    load: list[dict[str, Any]] | dict[str, list[dict[str, Any]]] | None = None
    mode: Literal["append", "merge"] = "merge"


class WriteRequest(WireRequest, frozen=True):
    steps: list[WriteStep]
    branch: str | None = None
    message: Message | None = None
    timeout: float | None = None
    dry_run: bool = False


class ExportJobRequest(StrictRequest, frozen=True):
    """An export to fetch later: its state, types and format, and how long it is kept."""

    branch: str | None = None
    at: str | None = None
    types: list[str] | None = None
    format: Lines | Literal["parquet", "arrow", "csv"] = "ndjson"
    ttl_seconds: int | None = None
