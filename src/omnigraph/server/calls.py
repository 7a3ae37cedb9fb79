"""What a handler is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from omnigraph.graph import Graph
from omnigraph.server.access import Need
from omnigraph.server.bodies import Spool
from omnigraph.server.errors import RequestInvalid
from omnigraph.server.settings import Bounds
from omnigraph.server.stored import StoredQuery

JSON = "application/json"
NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"
BYTES = "application/octet-stream"
IF_COMMIT = "omnigraph-if-graph-commit"
KEY_CHARACTERS_MAX = 255
COMMIT_HEADER = "Omnigraph-Graph-Commit"


@dataclass(frozen=True, slots=True)
class Served:
    """One graph of a server."""

    id: str
    graph: Graph
    queries: Mapping[str, StoredQuery] = field(default_factory=dict)
    load_from: tuple[str, ...] = ()


@dataclass
class Call:
    """One request, understood: who asks, of which graph, and what."""

    actor: str | None
    bounds: Bounds
    headers: Mapping[str, str]
    path: Mapping[str, str]
    require: Callable[[Need], None]  # raises unless it is allowed
    graph_id: str = ""
    served: Served | None = None
    query: Any = None  # the struct of the query string
    body: Any = None  # the struct of the JSON body
    spool: Spool | None = None
    state: Any = None  # the server itself, for routes about it

    @cached_property
    def graph(self) -> Graph:
        assert self.served is not None  # noqa: S101  routes below /graphs/{id} have one
        return self.served.graph

    @property
    def if_commit(self) -> str | None:
        """The head a conditional write depends on."""
        return self.headers.get(IF_COMMIT)

    def seconds(self, most: float, wanted: float | None = None) -> float:
        """How long the work may take."""
        return most if wanted is None or not 0 < wanted < most else wanted

    def idempotency_key(self) -> str | None:
        """The key of the request; everybody has their own."""
        key = self.headers.get("idempotency-key")
        if key is not None and not 0 < len(key) <= KEY_CHARACTERS_MAX:
            raise RequestInvalid(f"an Idempotency-Key has 1 to {KEY_CHARACTERS_MAX} characters")
        return None if not key else f"{self.actor or ''}:{key}"


@dataclass(slots=True)
class Answer:
    """What to send: JSON by default, or blocks of bytes as they are made."""

    content: Any = None
    status: int = 200
    media: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    blocks: Iterator[bytes] | None = None
    commit: str | None = None  # for the access log
