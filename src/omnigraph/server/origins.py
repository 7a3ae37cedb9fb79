"""Requests that a web page somewhere else makes a browser send. Where there are no tokens, they are all refused.

Whoever opens a page lets it send requests from their machine, to their machine. It can be told by what browsers say and
pages cannot forge: the name in `Host` (a page whose own name was made to lead here, by DNS, shows that name), `Origin`,
and `Sec-Fetch-Site`. Programs send neither of the last two. Where there are tokens none of this is needed: pages have
none, and browsers send none by themselves.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.server.errors import MediaUnsupported

LOCALHOST = "localhost"
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
OURS = frozenset(
    {"same-origin", "none"}
)  # `none`: somebody typed the address, or opened a bookmark
# What a page may send to anybody without asking first.
SIMPLE = frozenset({"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"})


class HostRefused(OmnigraphError):
    """The server does not go by this name.

    A web page can make its own name lead to your machine, so a server without tokens answers only to names it knows:
    `localhost`, any IP address, and those it was given.
    """

    code, kind = "host_refused", Kind.DENIED
    default_help = "Use localhost or the address, or start the server with `--allow-host NAME`."


class OriginRefused(OmnigraphError):
    """A web page of another origin sent this request.

    A server without tokens would do what any page asks that is open in a browser on the same machine.
    """

    code, kind = "origin_refused", Kind.DENIED
    default_help = (
        "Use the explorer of this server, or a program; to allow pages of others, use tokens."
    )


@dataclass(frozen=True, slots=True)
class Origins:
    """The names a server without tokens goes by, besides `localhost` and addresses.

    Those it was given are what people see: a proxy in front may say another name in `Host`, and pages of a name it was
    given (with its port, unless that is the usual one) are its own.
    """

    given: frozenset[str] = frozenset()
    bound: str = ""  # where it listens

    def check(self, method: str, headers: Mapping[str, str], *, is_page: bool) -> None:
        """Refuse what a page of somebody else may have sent; `is_page`: the answer is one to look at."""
        host = headers.get("host", "")
        if host and not self._is_known(host):
            raise HostRefused(f"this server does not go by the name {host[:80]!r}")
        origin = headers.get("origin")
        if origin is not None and not self._is_ours(origin, host):
            raise OriginRefused(f"a page of {origin[:80]!r} may not use this server")
        site = headers.get("sec-fetch-site", "none")
        if origin is None and site not in OURS and not _is_visit(method, headers, is_page=is_page):
            raise OriginRefused("a page of another site may not use this server")
        if method == "POST" and _media(headers) in SIMPLE:
            given = repr(_media(headers)) if _media(headers) else "none"
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
    """Whether somebody followed a link to a page of ours, which changes nothing and shows the other site nothing."""
    return is_page and method in SAFE and headers.get("sec-fetch-mode") == "navigate"


def _media(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _name(host: str) -> str:
    """The name in `name:port`, where an address of version 6 is in brackets."""
    inner, bracket, _ = host.partition("]")
    if bracket:
        return inner.removeprefix("[")
    return host.partition(":")[0].lower().rstrip(".")


def _is_address(name: str) -> bool:
    """An address cannot be made to lead elsewhere."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
