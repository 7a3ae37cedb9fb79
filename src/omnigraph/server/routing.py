"""Routes, and how a path is matched to one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any
from urllib.parse import quote, unquote, unquote_to_bytes

import starlette.routing
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from omnigraph.errors import OmnigraphError
from omnigraph.model.frozen import frozen
from omnigraph.model.names import canonical
from omnigraph.policy.guard import Need
from omnigraph.policy.questions import Action
from omnigraph.server.errors import NotAllowedHere, RequestInvalid, RouteNotFound
from omnigraph.server.request import Answer, HttpCall
from omnigraph.verbs import Description

Handler = Callable[[HttpCall], Answer]
SEGMENT_BYTES_MAX = 2048
PATHS_KEPT_MAX = 1024
KEPT_CHARACTERS_MAX = 256
PLAIN = re.compile(rb"[A-Za-z0-9/_.~-]*")
# Of branches, tags and points, which have one spelling; ids of rows are values.
NAMES = ("name", "commit_id")


class RouteWork(Enum):
    """What a route makes the server do, and so where it runs and what limits it."""

    NONE = "none"  # answered immediately, without a thread or a store
    READ = "read"
    WRITE = "write"
    LOAD = "load"
    EXPORT = "export"


@frozen
class Route:
    """One row of the table of routes. Paths of a graph's routes start with /graphs/{graph_id}."""

    method: str
    path: str
    handler: Handler
    action: Action | None  # the permission that is checked first; None: nothing
    needs: Callable[[HttpCall], Iterable[Need]]
    work: RouteWork = RouteWork.READ
    body: type[Any] | None = None
    query: type[Any] | None = None
    answer: type[Any] | None = None  # for the description
    flat: bool = False  # about the server, not a graph
    public: bool = False  # no token is required
    conditional: bool = False  # takes the header Omnigraph-If-Graph-Commit
    successor: str | None = None  # of a deprecated route
    streams: bool = False  # the body is taken as it is, whatever its media type
    status: int = 200  # of a successful response, for the description
    page: bool = False  # for people with a browser; not part of the description for programs
    protocol: bool = (
        False  # has its own protocol: takes its body as bytes, and sends the response itself
    )
    verb: Description | None = None  # of the graph, which it offers

    @property
    def full_path(self) -> str:
        return self.path if self.flat else f"/graphs/{{graph_id}}{self.path}"

    @property
    def name(self) -> str:
        return f"{self.method} {self.full_path}"


class MatchedRoute(starlette.routing.Route):
    """A route in the form of Starlette, and its application."""

    def __init__(self, route: Route, answer: ASGIApp) -> None:
        path = route.full_path.replace("*}", ":path}")  # the rest of the path
        super().__init__(path, answer, methods=[route.method])
        self.app = answer
        self.route = route

    def named(self, parts: Mapping[str, str]) -> dict[str, str]:
        """The named parts of a path, decoded."""
        params = {name: unquote(value) for name, value in parts.items()}
        return params | {n: canonical(params[n]) for n in NAMES if n in params}


class Routes:
    """Finds the route of a path made by `routed_path`; `answer` makes the application of a route.

    Starlette tries routes one after the other, so each method has its own list, and recent paths are cached.
    """

    def __init__(self, routes: Sequence[Route], answer: Callable[[Route], ASGIApp]) -> None:
        first = sorted(routes, key=lambda route: route.method != "HEAD")  # a GET takes HEAD as well
        self._matched = [MatchedRoute(route, answer(route)) for route in first]
        self._of_method = {
            method: [each for each in self._matched if method in (each.methods or ())]
            for method in {"HEAD", *(route.method for route in routes)}
        }
        self._lately: dict[tuple[str, str], tuple[ASGIApp, dict[str, str]]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = scope["method"], scope["path"]
        known = self._lately.get(asked)
        if known is None:
            known = self._found(scope)
            if len(self._lately) >= PATHS_KEPT_MAX:
                self._lately.clear()
            if len(scope["path"]) <= KEPT_CHARACTERS_MAX:
                self._lately[asked] = known
        answer, scope["path_params"] = known
        await answer(scope, receive, send)

    def _found(self, scope: Scope) -> tuple[ASGIApp, dict[str, str]]:
        for each in self._of_method.get(scope["method"], ()):
            match, found = each.matches(scope)
            if match is Match.FULL:
                return each.app, each.named(found["path_params"])
        raise self._refusal(scope)

    def _refusal(self, scope: Scope) -> OmnigraphError:
        fitting = [each for each in self._matched if each.matches(scope)[0] is not Match.NONE]
        if not fitting:
            return RouteNotFound("path not found")
        allowed = ", ".join(sorted({each.route.method for each in fitting}))
        return NotAllowedHere(f"the path takes {allowed}", {"Allow": allowed})


def routed_path(raw: bytes) -> str:
    """A path with every segment percent-encoded canonically, so that a name may contain a slash."""
    path = raw.partition(b"?")[0]
    if len(path) <= SEGMENT_BYTES_MAX and PLAIN.fullmatch(path):
        return path.decode()
    return "/".join(quote(_decoded(part), safe="") for part in path.split(b"/"))


def _decoded(part: bytes) -> str:
    if len(part) > SEGMENT_BYTES_MAX:
        raise RequestInvalid("a part of the path is too long")
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        raise RequestInvalid("the path is not UTF-8") from None


def nothing(_: HttpCall) -> Iterable[Need]:
    """The needs of a route that is open to everyone."""
    return ()
