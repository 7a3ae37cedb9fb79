"""Who may send requests: bearer tokens, cross-origin web pages, and which policy guards which graph."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.model.frozen import frozen
from omnigraph.policy.cedar import Policy
from omnigraph.policy.guard import Guard
from omnigraph.server.bodies import media_of
from omnigraph.server.errors import MediaUnsupported
from omnigraph.server.oidc import Issuer, Issuers, TokenRefused
from omnigraph.server.settings import ServerInvalid

TOKEN = "OMNIGRAPH_SERVER_BEARER_TOKEN"  # noqa: S105  the name of a variable
TOKENS_FILE = "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"
TOKENS_JSON = "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON"
LOOK_SECONDS = 1.0
SCHEME = "Bearer "
ANONYMOUS = "anonymous"
NAME_CHARACTERS_MAX = 100  # of a self-declared name
SAID = "omnigraph-actor"  # the header with that name

log = logging.getLogger("omnigraph.server.identity")


class Unauthenticated(OmnigraphError):
    """The request has no credentials, or they are invalid."""

    code, kind = "unauthenticated", Kind.DENIED
    default_help = "Send the header `Authorization: Bearer <token>`."


@frozen
class Caller:
    """Who sent the request, and on whose behalf, if a token says so."""

    actor: str | None
    person: str | None = None


class Identity:
    """The tokens of a server: only digests are kept, all of them are compared, and a changed file is reloaded.

    A secret is the token of the user who started the server: its holder may do everything, anyone else nothing. The
    holder's name is the configured one, else the one the request declares.
    """

    def __init__(
        self,
        tokens_file: str | None = None,
        environment: Mapping[str, str] = os.environ,
        secret: str | None = None,
        holder: str | None = None,
        issuers: Issuers | None = None,
    ) -> None:
        self._secret = None if secret is None else _digest(secret)
        self._holder = holder
        self._issuers = issuers
        named = tokens_file or environment.get(TOKENS_FILE)
        self._file = Path(named) if named else None
        self._fixed = _from_environment(environment, with_map=self._file is None)
        self._looked = time.monotonic()
        self._stamp = self._file_stamp()
        self._digests = self._fixed | self._read_file()
        _refuse_shared(self._digests)

    @property
    def required(self) -> bool:
        """Whether requests must carry a token."""
        return bool(self._digests) or self._file is not None or bool(self._issuers)

    def actor(self, authorization: str | None, said: str | None = None) -> str | None:
        """The actor the header authenticates; None if tokens are not required."""
        return self.caller(authorization, said).actor

    def renewal(self, authorization: str | None) -> Issuer | None:
        """The issuer whose keys should be renewed, in a thread, before this token is checked; usually None."""
        if not self._issuers or authorization is None or not authorization.startswith(SCHEME):
            return None
        return self._issuers.renewal(authorization.removeprefix(SCHEME))

    def caller(self, authorization: str | None, said: str | None = None) -> Caller:
        """The caller, and for whom. Only the holder of a secret may declare a name, `said`."""
        self._look_again()
        if not self.required and self._secret is None:
            return Caller(None)
        if authorization is None or not authorization.startswith(SCHEME):
            raise Unauthenticated("missing bearer token")
        given = _digest(authorization.removeprefix(SCHEME))
        if self._secret is not None and hmac.compare_digest(given, self._secret):
            return Caller(self._holder or _called(said))
        found: str | None = None
        for actor, digest in self._digests.items():  # all of them: constant time
            if hmac.compare_digest(given, digest):
                found = actor
        return self._claimed(authorization) if found is None else Caller(found)

    def _claimed(self, authorization: str) -> Caller:
        """The caller a token of an issuer names. It must not be an actor with a token of this server."""
        if self._issuers:
            try:
                found = self._issuers.claimed(authorization.removeprefix(SCHEME))
            except TokenRefused as refused:
                log.info("a token was refused: %s", refused)
            else:
                if found.actor not in self._digests:
                    return Caller(found.actor, found.person)
                log.warning("a token of an issuer names an actor who has a token here")
        raise Unauthenticated("invalid bearer token")

    def _look_again(self) -> None:
        """Reload the file if it changed; an invalid one leaves the tokens as they were."""
        now = time.monotonic()
        if self._file is None or now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        stamp = self._file_stamp()
        if stamp == self._stamp:
            return
        try:
            digests = self._fixed | self._read_file()
            _refuse_shared(digests)
        except ServerInvalid as error:
            log.error("tokens were not renewed: %s", error.message)  # noqa: TRY400
            return
        self._stamp, self._digests = stamp, digests
        log.info("tokens were renewed: %d actors", len(digests))

    def _file_stamp(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self._file) if self._file else None
        except OSError:
            return None
        return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)

    def _read_file(self) -> dict[str, bytes]:
        if self._file is None:
            return {}
        try:
            return _digests(self._file.read_text(encoding="utf-8"), str(self._file))
        except (OSError, UnicodeDecodeError) as error:
            raise ServerInvalid(f"the tokens in {self._file} cannot be read: {error}") from error


def _called(said: str | None) -> str | None:
    """A self-declared name, decoded from its header."""
    return unquote(said or "").strip()[:NAME_CHARACTERS_MAX] or None


def _from_environment(environment: Mapping[str, str], *, with_map: bool) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    single = environment.get(TOKEN, "").strip()
    if single:
        found["default"] = _digest(single)
    if with_map and environment.get(TOKENS_JSON):
        found |= _digests(environment[TOKENS_JSON], TOKENS_JSON)
    return found


def _digests(text: str, source: str) -> dict[str, bytes]:
    """Actors and the digests of their tokens. Errors never quote the text: it is full of secrets."""
    try:
        pairs = json.loads(text, object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        raise ServerInvalid(f"{source} is not a JSON object of actor: token") from None
    if not isinstance(pairs, tuple) or any(not _is_pair(pair) for pair in pairs):
        raise ServerInvalid(f"{source} must be a JSON object of actor: token, all of them strings")
    actors = [actor.strip() for actor, _ in pairs]
    if not all(actors) or len(set(actors)) != len(actors):
        raise ServerInvalid(f"{source} has an actor without a name, or a duplicate actor")
    if not all(token.strip() for _, token in pairs):
        raise ServerInvalid(f"{source} has an actor without a token")
    digests = {actor: _digest(pair[1].strip()) for actor, pair in zip(actors, pairs, strict=True)}
    _refuse_shared(digests)
    return digests


def _is_pair(pair: object) -> bool:
    return isinstance(pair, tuple) and all(map(_is_text, pair))


def _is_text(part: object) -> bool:
    """JSON can encode a lone surrogate, which no header can carry."""
    return isinstance(part, str) and part.encode("utf-8", "ignore").decode() == part


def _refuse_shared(digests: Mapping[str, bytes]) -> None:
    if len(set(digests.values())) != len(digests):
        raise ServerInvalid("two actors have the same token")


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


# --- policies --------------------------------------------------------------------------------------------------------


@frozen
class Access:
    """The policies of a server: one for the server itself, at most one for each graph.

    Without tokens everything on a graph is open. With tokens, a graph without a policy is read-only. Actions on the
    server as a whole always need a policy that allows them. Nothing can be changed if `read_only`.
    """

    authenticated: bool
    server: Policy | None = None
    graphs: Mapping[str, Policy] = field(default_factory=dict)
    read_only: bool = False

    def guard(self, actor: str | None, graph: str | None) -> Guard | None:
        """The guard for an actor on a graph, or on the server; None if everything is open."""
        if graph is None:
            return Guard(self.server, actor or ANONYMOUS, None, self.read_only)
        if not self.authenticated and not self.read_only:
            return None
        return Guard(self.graphs.get(graph), actor or ANONYMOUS, graph, self.read_only)


# --- cross-origin pages ----------------------------------------------------------------------------------------------
#
# A page open in a browser can send requests to its own machine. They are recognised by headers that browsers set and
# pages cannot forge: `Host` (after DNS rebinding, it has the name of the page), `Origin`, and `Sec-Fetch-Site`.
# Programs send neither of the last two. With tokens none of this is needed: pages have none, and browsers do not add
# any on their own.

LOCALHOST = "localhost"
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
OURS = frozenset(
    {"same-origin", "none"}
)  # `none`: the user typed the address, or opened a bookmark
# What a page may send cross-origin without a preflight request.
SIMPLE = frozenset({"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"})


class HostRefused(OmnigraphError):
    """The server does not go by this name.

    A web page can make its own host name resolve to your machine, so a server without tokens answers only to
    `localhost`, any IP address, and configured names.
    """

    code, kind = "host_refused", Kind.DENIED
    default_help = "Use localhost or the address, or start the server with `--allow-host NAME`."


class OriginRefused(OmnigraphError):
    """A web page of another origin sent this request.

    A server without tokens would obey any page that is open in a browser on the same machine.
    """

    code, kind = "origin_refused", Kind.DENIED
    default_help = (
        "Use the explorer of this server, or a program; to allow other pages, use tokens."
    )


@frozen
class Origins:
    """The names a server without tokens goes by, besides `localhost` and addresses.

    Configured names are the public ones: a proxy in front may send another name in `Host`, and pages of a configured
    name (with its port, unless that is the default one) are its own.
    """

    given: frozenset[str] = frozenset()
    bound: str = ""  # where it listens

    def check(self, method: str, headers: Mapping[str, str], *, is_page: bool) -> None:
        """Refuse what a page of another origin may have sent; `is_page`: the response is an HTML page."""
        host = headers.get("host", "")
        if host and not self._is_known(host):
            raise HostRefused(f"this server is not called {host[:80]!r}")
        origin = headers.get("origin")
        if origin is not None and not self._is_ours(origin, host):
            raise OriginRefused(f"a page of {origin[:80]!r} may not use this server")
        site = headers.get("sec-fetch-site", "none")
        if origin is None and site not in OURS and not _is_visit(method, headers, is_page=is_page):
            raise OriginRefused("a page of another site may not use this server")
        media = media_of(headers)
        if method == "POST" and media in SIMPLE:
            given = repr(media) if media else "none"
            raise MediaUnsupported(
                f"a POST needs a Content-Type that no page of another site can send; it had {given}",
                help="Send application/json, application/x-ndjson, or for files application/octet-stream.",
            )

    def _is_known(self, host: str) -> bool:
        name = _name(host)
        known = {LOCALHOST, self.bound, *map(_name, self.given)}
        return name in known or _is_address(name)

    def _is_ours(self, origin: str, host: str) -> bool:
        try:
            found = urlsplit(origin)
        except ValueError:
            return False
        place = found.netloc.lower()
        return found.scheme in ("http", "https") and place in {host.lower(), *self.given}


def _is_visit(method: str, headers: Mapping[str, str], *, is_page: bool) -> bool:
    """Whether this is a link to one of our pages, which changes nothing and reveals nothing to the other site."""
    return is_page and method in SAFE and headers.get("sec-fetch-mode") == "navigate"


def _name(host: str) -> str:
    """The name in `name:port`, where an IPv6 address is in brackets."""
    inner, bracket, _ = host.partition("]")
    if bracket:
        return inner.removeprefix("[")
    return host.partition(":")[0].lower().rstrip(".")


def _is_address(name: str) -> bool:
    """An address cannot be rebound by DNS."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
