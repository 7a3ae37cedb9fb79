"""What a route is, and how a path finds its route."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Any
from urllib.parse import unquote_to_bytes

from omnigraph.model.names import canonical
from omnigraph.policy.questions import Action
from omnigraph.server.access import Need
from omnigraph.server.calls import Answer, Call
from omnigraph.server.errors import NotAllowedHere, RequestInvalid, RouteNotFound

SEGMENT_BYTES_MAX = 2048
NAMES = (
    "name",
    "commit_id",
)  # of branches, tags and points, which have one spelling; ids of rows are values


class Work(Enum):
    """What a route makes the server do, and so where it runs and what limits it."""

    NONE = "none"  # answered at once, without a thread or a store
    READ = "read"
    WRITE = "write"
    LOAD = "load"
    EXPORT = "export"


@dataclass(frozen=True, slots=True)
class Route:
    """One line of the table of routes. Paths of a graph's routes start below /graphs/{graph_id}."""

    method: str
    path: str
    handler: Callable[[Call], Answer]
    action: Action | None  # what a policy is asked first; none: nothing
    needs: Callable[[Call], Iterable[Need]]
    work: Work = Work.READ
    body: type[Any] | None = None
    query: type[Any] | None = None
    answer: type[Any] | None = None  # for the description
    flat: bool = False  # about the server, not a graph
    public: bool = False  # no token is asked for
    conditional: bool = False  # takes the header Omnigraph-If-Graph-Commit
    successor: str | None = None  # of a deprecated route
    streams: bool = False  # the body is taken as it is, whatever its media type says
    status: int = 200  # of a good answer, for the description
    page: bool = False  # for people with a browser; not part of the description for programs

    @property
    def full_path(self) -> str:
        return self.path if self.flat else f"/graphs/{{graph_id}}{self.path}"

    @property
    def name(self) -> str:
        return f"{self.method} {self.full_path}"

    @property
    def names(self) -> tuple[str, ...]:
        """The parts of the path that are named, in order."""
        return _names(self.full_path)


@cache
def _names(path: str) -> tuple[str, ...]:
    return tuple(part.strip("{}*") for part in path.split("/") if part.startswith("{"))


@dataclass(frozen=True, slots=True)
class Match:
    route: Route
    params: dict[str, str]


@dataclass(slots=True)
class _Place:
    """A place in the tree of paths: what may follow, and the routes that end here."""

    fixed: dict[str, _Place] = field(default_factory=dict)
    named: _Place | None = None
    routes: list[Route] = field(default_factory=list)
    rest: list[Route] = field(default_factory=list)  # those that take all that is left

    def add(self, parts: Sequence[str], route: Route) -> None:
        if not parts:
            self.routes.append(route)
        elif parts[0].endswith("*}"):
            self.rest.append(route)
        elif parts[0].startswith("{"):
            self.named = self.named or _Place()
            self.named.add(parts[1:], route)
        else:
            self.fixed.setdefault(parts[0], _Place()).add(parts[1:], route)

    def fitting(self, given: Sequence[str], values: tuple[str, ...] = ()) -> Iterator[Match]:
        """The routes of a path; what is written out comes before what is named."""
        if not given:
            yield from (_match(route, values) for route in self.routes)
            return
        if given[0] in self.fixed:
            yield from self.fixed[given[0]].fitting(given[1:], values)
        if self.named is not None and given[0]:
            yield from self.named.fitting(given[1:], (*values, given[0]))
        for route in self.rest:
            yield _match(route, (*values, "/".join(given) or "."))


def _match(route: Route, values: Sequence[str]) -> Match:
    params = dict(zip(route.names, values, strict=True))
    return Match(route, params | {n: canonical(params[n]) for n in NAMES if n in params})


class Router:
    """Finds the route of a path. Segments are decoded one by one, so a name may hold a slash."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._root = _Place()
        for route in routes:
            self._root.add(route.full_path.split("/")[1:], route)

    def match(self, method: str, raw_path: bytes) -> Match:
        given = [_decoded(part) for part in raw_path.split(b"?")[0].split(b"/")[1:]]
        found = list(self._root.fitting(given))
        if not found:
            raise RouteNotFound("there is no such path")
        for match in found:
            if match.route.method == method:
                return match
        if method == "HEAD":
            for match in found:
                if match.route.method == "GET":
                    return match
        allowed = ", ".join(sorted({match.route.method for match in found}))
        raise NotAllowedHere(f"the path takes {allowed}", {"Allow": allowed})


def _decoded(part: bytes) -> str:
    if len(part) > SEGMENT_BYTES_MAX:
        raise RequestInvalid("a part of the path is too long")
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        raise RequestInvalid("the path is not UTF-8") from None


def nothing(_: Call) -> Iterable[Need]:
    """What a route needs that anybody may use."""
    return ()
