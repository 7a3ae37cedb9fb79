"""What a handler receives and returns, and how the headers and the query string of a request are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.types import ASGIApp

from omnigraph.agents.stored import StoredQuery
from omnigraph.core.snapshot import Snapshot
from omnigraph.graph import Graph
from omnigraph.guarded import GuardedGraph
from omnigraph.model.frozen import frozen
from omnigraph.outcomes import Commit
from omnigraph.policy.guard import Guard, Need
from omnigraph.policy.questions import Action
from omnigraph.server.bodies import Spool
from omnigraph.server.errors import LengthAmbiguous, RequestInvalid
from omnigraph.server.jobs import RunningJob
from omnigraph.server.settings import Bounds
from omnigraph.wire.contracts import HTTP_API, IF_COMMIT, NDJSON, NEWEST, OLDEST

S = TypeVar("S", bound=msgspec.Struct)
JSON = "application/json"
LINES = f"{NDJSON}; charset=utf-8"  # of responses
STREAMED = (NDJSON, "multipart/mixed")  # what loads accept besides JSON
CSV = "text/csv"
BYTES = "application/octet-stream"
OBSERVED = "omnigraph.observed"  # where a scope keeps the record of a request
GONE = "omnigraph.gone"  # where a scope keeps whether the client has disconnected
KEY_CHARACTERS_MAX = 255
BRANCHES = frozenset({"branch", "into"})  # parameters that are left out if they are empty
ONCE = frozenset(
    (b"authorization", b"content-length", b"content-type", b"content-encoding", b"host",
     b"idempotency-key", HTTP_API.encode(), IF_COMMIT.encode(), b"origin", b"sec-fetch-site", b"transfer-encoding")
)  # fmt: skip


@frozen
class Served:
    """One graph of a server."""

    id: str
    graph: Graph
    queries: Mapping[str, StoredQuery] = field(default_factory=dict)
    load_from: tuple[str, ...] = ()


@dataclass
class HttpCall:
    """One parsed request: the actor, the graph, and the parameters."""

    actor: str | None
    bounds: Bounds
    headers: Mapping[str, str]
    path: Mapping[str, str]
    guard: Guard | None  # decides what the actor may do; None if everything is open
    graph_id: str = ""
    served: Served | None = None
    query: Any = None  # the struct of the query string
    body: Any = None  # the struct of the JSON body
    raw: bytes = b""  # the body as received, of a route with its own protocol
    person: str | None = None  # on whose behalf the actor acts, according to their token
    spool: Spool | None = None
    state: Any = None  # the server itself, for routes about it
    job: RunningJob | None = None  # receives the progress of the work
    goes_on: bool = False  # as a job, after the response

    @property
    def wants_ids(self) -> bool:
        """Whether the client dates from when a bare node variable returned the id."""
        return self.headers.get(HTTP_API) == OLDEST

    @property
    def wants_ids_beside(self) -> bool:
        """Whether the client dates from when records got their id beside their type."""
        return self.headers.get(HTTP_API) == NEWEST

    @property
    def unguarded(self) -> Graph:
        """The graph itself: to find out what a request needs, and to return what it was allowed to read."""
        assert self.served is not None  # noqa: S101  routes below /graphs/{id} have one
        return self.served.graph

    @cached_property
    def graph(self) -> Graph:
        """The graph as the actor may use it: every verb is authorised."""
        return self.unguarded if self.guard is None else GuardedGraph(self.unguarded, self.guard)

    def require(self, need: Need) -> None:
        """Raise unless it is allowed."""
        if self.guard is not None:
            self.guard.require(need)

    def passed_on(self, verb: str, **more: Any) -> Any:
        """Run a verb with the fields of the request, which are named like its parameters."""
        request = self.query if self.body is None else self.body
        fields = ((name, getattr(request, name)) for name in request.__struct_fields__)
        given = {n: v for n, v in fields if v is not None and (v != "" or n not in BRANCHES)}
        return getattr(self.graph, verb)(**given | more)

    def snapshot(
        self,
        branch: str | None,
        at: str | None = None,
        types: Iterable[str] = (),
        action: Action = Action.READ,
    ) -> Snapshot:
        """The state a request is about, once the caller is authorised to see it."""
        return self.graph._state(branch or "main", at, types, action)

    def written_on(self, branch: str | None, at: str | None) -> str:
        """The branch a point in time belongs to: the one it was written on. It must be readable."""
        found = self.snapshot(branch, at)
        return branch or "main" if at is None else found.commit.branch

    @property
    def is_async(self) -> bool:
        """Whether the client wants an immediate response, and to poll for the result."""
        wishes = self.headers.get("prefer", "").lower().replace(";", ",").split(",")
        return "respond-async" in (wish.strip() for wish in wishes)

    def close(self) -> None:
        """Release what the request brought."""
        if self.spool is not None:
            self.spool.close()

    @property
    def if_commit(self) -> str | None:
        """The head a conditional write depends on."""
        return self.headers.get(IF_COMMIT)

    def seconds(self, most: float, wanted: float | None = None) -> float:
        """How long the work may take."""
        return most if wanted is None or not 0 < wanted < most else wanted

    def idempotency_key(self) -> str | None:
        """The key of the request, unique per actor.

        The first colon ends the actor: one that is part of their name is escaped.
        """
        key = self.headers.get("idempotency-key")
        if key is not None and not 0 < len(key) <= KEY_CHARACTERS_MAX:
            raise RequestInvalid(f"an Idempotency-Key has 1 to {KEY_CHARACTERS_MAX} characters")
        owner = (self.actor or "").replace("%", "%25").replace(":", "%3A")
        return None if not key else f"{owner}:{key}"


@dataclass(slots=True)
class Answer:
    """What to send: JSON by default, or blocks of bytes as they are made."""

    content: Any = None
    status: int = 200
    media: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    blocks: Iterator[bytes] | None = None
    app: ASGIApp | None = None  # sends the response itself, as files do
    commit: str | None = None  # for the access log
    release: Callable[[], None] | None = None  # releases what it held, once sent or abandoned


def committed(content: Any, commit: Commit | None) -> Answer:
    """The answer to a write, and the commit it made, if there is one."""
    return Answer(content, commit=None if commit is None else commit.id)


# --- reading a request ----------------------------------------------------------------------------------------------


def read_headers(given: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by name. Decisive ones must be unique: two readers might choose differently."""
    found: dict[str, str] = {}
    for name, value in given:
        lower = name.lower()
        key = lower.decode("latin-1")
        if key in found:
            if lower in ONCE:
                raise RequestInvalid(f"duplicate header {key}")
            found[key] += "," + value.decode("latin-1")
        else:
            found[key] = value.decode("latin-1")
    if "content-length" in found and "transfer-encoding" in found:
        raise LengthAmbiguous(
            "a request has Content-Length or Transfer-Encoding, not both", {"Connection": "close"}
        )
    return found


def read_query(raw: bytes, shape: type[S]) -> S:
    """The query string as a struct: only lists may repeat."""
    text = raw.decode("latin-1")
    lists = _lists(shape)
    given: dict[str, Any] = {}
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=1000, errors="strict")
    except (ValueError, UnicodeDecodeError):
        raise RequestInvalid("the query string cannot be read") from None
    for name, value in pairs:
        if name in lists:
            given.setdefault(name, []).append(value)
        elif name in given:
            raise RequestInvalid(f"duplicate parameter {name[:80]!r}")
        else:
            given[name] = value
    try:
        return msgspec.convert(given, shape, strict=False)
    except msgspec.ValidationError as error:
        raise RequestInvalid(f"the query string does not fit: {error}") from None


@cache
def _lists(shape: type[msgspec.Struct]) -> frozenset[str]:
    """The fields that take several values."""
    found = msgspec.inspect.type_info(shape)
    assert isinstance(found, msgspec.inspect.StructType)  # noqa: S101
    return frozenset(field.encode_name for field in found.fields if _is_list(field.type))


def _is_list(kind: msgspec.inspect.Type) -> bool:
    match kind:
        case msgspec.inspect.UnionType(types):
            return any(map(_is_list, types))
        case _:
            return isinstance(kind, msgspec.inspect.ListType)
