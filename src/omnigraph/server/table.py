"""What a route is, and how a path finds its route."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import unquote_to_bytes

from omnigraph.policy.questions import Action
from omnigraph.server.access import Need
from omnigraph.server.calls import Answer, Call
from omnigraph.server.errors import NotAllowedHere, RequestInvalid, RouteNotFound

SEGMENT_BYTES_MAX = 2048


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


@dataclass(frozen=True, slots=True)
class Match:
    route: Route
    params: dict[str, str]


class Router:
    """Finds the route of a path. Segments are decoded one by one, so a name may hold a slash."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = [(_segments(route.full_path), route) for route in routes]

    def match(self, method: str, raw_path: bytes) -> Match:
        given = [_decoded(part) for part in raw_path.split(b"?")[0].split(b"/")[1:]]
        found = list(self._fitting(given))
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

    def _fitting(self, given: list[str]) -> Iterator[Match]:
        for pattern, route in self._routes:
            parts = _with_rest(pattern, given)
            if len(pattern) == len(parts) and all(
                p == g or (p.startswith("{") and g) for p, g in zip(pattern, parts, strict=True)
            ):
                names = zip(pattern, parts, strict=True)
                yield Match(route, {p.strip("{}*"): g for p, g in names if p.startswith("{")})


def _with_rest(pattern: list[str], given: list[str]) -> list[str]:
    """The parts of a path; where a pattern ends in `{name*}`, all that is left is one part."""
    if not pattern[-1].endswith("*}") or len(given) < len(pattern):
        return given
    fixed = len(pattern) - 1
    return [*given[:fixed], "/".join(given[fixed:]) or "."]


def _segments(path: str) -> list[str]:
    return path.split("/")[1:]


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
