"""Requests to a server: sent with a token, repeated only if that is safe, and their failures raised as our errors.

A request that certainly did nothing (the server refused it, or was never reached) is repeated. One whose response was
lost is repeated only if it reads, or if it carries an idempotency key; otherwise its outcome is reported as unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec
import urllib3

from omnigraph.errors import (
    AddressInvalid,
    CommitUnknown,
    Kind,
    OmnigraphError,
    OptionInvalid,
    Span,
    StoreUnavailable,
    error_named,
)
from omnigraph.model.frozen import frozen
from omnigraph.remote.credentials import token_for
from omnigraph.storage.retry import RETRY_AFTER, Retry
from omnigraph.values.misfit import Misfit
from omnigraph.values.reading import plain, spelt
from omnigraph.wire.contracts import HTTP_API

RETRY = Retry(attempts_max=5, pause_first_seconds=0.05, pause_seconds_max=5.0)
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 3900.0  # longer than any server lets a load run
Body = bytes | Iterable[bytes]
Answer = urllib3.BaseHTTPResponse
T = TypeVar("T")


class RemoteFailure(OmnigraphError):
    """A server answered with an error code unknown to this version."""

    code, kind = "remote_failure", Kind.INTERNAL
    default_help = "The message is the server's."


class NotServed(OmnigraphError):
    """This is not available on a served graph, only to its operator."""

    code, kind = "not_served", Kind.INVALID
    default_help = "Run the command on the store itself, with --store."
    python_help = (
        "Open the store itself, with omnigraph.open(its path or s3://… address), if you may."
    )


@frozen
class HttpRequest:
    """A request; `safe` and `repeatable` say whether it may be sent again."""

    method: str
    path: str
    query: Mapping[str, Any] | None = None
    body: Callable[[], Body] | None = None
    headers: Mapping[str, str] | None = None
    safe: bool = False  # idempotent
    repeatable: bool = True  # whether the body can be sent again


class Transport:
    """The connection to one graph of a server. Safe to share between threads."""

    def __init__(self, address: str, token: str | None = None, *, whole: bool = False) -> None:
        """`whole`: the address is that of the server, not of one of its graphs."""
        parts = urlsplit(address)
        if "@" in parts.netloc:
            raise AddressInvalid("a token belongs in OMNIGRAPH_TOKEN, not in the address")
        if (
            parts.scheme not in ("http", "https")
            or not parts.hostname
            or not (whole or "/graphs/" in parts.path)
        ):
            raise AddressInvalid(f"{address!r} is not http(s)://host/graphs/id")
        self.address = address.rstrip("/")
        self.contract: str | None = None  # of the Rust project, for the form of responses
        self._token = token if token is not None else token_for(self.address)
        self._pool = urllib3.PoolManager(
            maxsize=16,
            retries=False,
            timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=ANSWER_SECONDS),
        )

    def json(self, answer: type[T], method: str, path: str, content: Any = None, **more: Any) -> T:
        """Send JSON, and receive JSON of this type."""
        headers = {"Content-Type": "application/json", **(more.pop("headers", None) or {})}
        raw = None if content is None else encoded(content)
        body = None if raw is None else (lambda: raw)
        asked = HttpRequest(method, path, body=body, headers=headers, **more)
        return self.send(asked, lambda found: decoded(found, answer))

    def send(self, asked: HttpRequest, read: Callable[[Answer], T]) -> T:
        """The result of `read` for a successful, complete response."""
        return RETRY.run(lambda: self._once(asked, read), lambda error: _may_repeat(error, asked))

    def _once(self, asked: HttpRequest, read: Callable[[Answer], T]) -> T:
        body: Any = None if asked.body is None else asked.body()
        try:
            with self._pool.request(
                asked.method,
                self.address + asked.path + _query(asked.query),
                body=body,
                headers=self._headers(asked),
                preload_content=False,
                redirect=False,
            ) as answer:
                if answer.status >= 300:
                    raise _failure(answer)
                return read(answer)
        except urllib3.exceptions.HTTPError as error:
            raise _lost(error, asked) from error

    def _headers(self, asked: HttpRequest) -> dict[str, str]:
        own = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        if self.contract is not None:
            own[HTTP_API] = self.contract
        return {**own, **(asked.headers or {})}


def encoded(content: Any) -> bytes:
    """A value as JSON that the server decodes to the same value; what it cannot decode is refused here."""
    try:
        return msgspec.json.encode(spelt(plain(content)))
    except Misfit as misfit:
        details = {"violations": [misfit.violation().to_json()]}
        raise OptionInvalid(misfit.message, details=details) from None
    except UnicodeEncodeError:
        raise OptionInvalid("a string in the request is not valid Unicode") from None


def decoded(answer: Answer, kind: type[T]) -> T:
    """The JSON of an answer."""
    try:
        return msgspec.json.decode(answer.data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RemoteFailure(f"the server's answer cannot be read: {error}") from error


def segment(name: str) -> str:
    """A name as one part of a path."""
    return quote(name, safe="")


def _query(given: Mapping[str, Any] | None) -> str:
    found = {name: value for name, value in (given or {}).items() if value is not None}
    plain = {n: str(v).lower() if isinstance(v, bool) else v for n, v in found.items()}
    return "?" + urlencode(plain, doseq=True) if plain else ""


def _may_repeat(error: OmnigraphError, asked: HttpRequest) -> bool:
    if not asked.repeatable:
        return False
    if error.code == "too_many_requests" or error.kind is Kind.UNAVAILABLE:
        return True
    return asked.safe and error.kind is Kind.UNKNOWN_OUTCOME


def _place(error: Any) -> str:
    """The address of the unreachable server."""
    tried = getattr(error, "conn", None) or getattr(error, "pool", None)
    host, port = getattr(tried, "host", None), getattr(tried, "port", None)
    return f" at {host}:{port}" if host else ""


def _lost(error: Exception, asked: HttpRequest) -> OmnigraphError:
    """The error for a missing response."""
    never_sent = (
        urllib3.exceptions.NewConnectionError,
        urllib3.exceptions.ConnectTimeoutError,
        urllib3.exceptions.NameResolutionError,
    )
    if isinstance(error, never_sent):
        place = _place(error)
        return StoreUnavailable(
            f"the server{place} cannot be reached",
            help="Nothing was changed. Check the address, and that the server is running.",
        )
    if asked.safe:
        return CommitUnknown("the connection to the server was lost")
    return CommitUnknown(
        "the connection was lost before the server answered; the write may have happened",
        help="Look at the log, or repeat with an idempotency key.",
    )


# --- failures --------------------------------------------------------------------------------------------------------


def _failure(answer: Answer) -> OmnigraphError:
    """The error a server sent, as its local class."""
    try:
        body = msgspec.json.decode(answer.data, type=ErrorBody)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = ErrorBody()  # from a proxy, not one of our servers
    error = failure_of(body, answer.status)
    if "Retry-After" in answer.headers:
        error.details[RETRY_AFTER] = answer.headers["Retry-After"]
    return error


def failure_of(body: ErrorBody, status: int) -> OmnigraphError:
    """The error in a body, as its local class."""
    message = body.error or f"the server answered with status {status}"
    about: Any = {"span": body.span, "details": body.details}
    error = error_named(body.error_code or "", message, **about)
    if error is None:
        error = RemoteFailure(message, help=body.help, **about)
        _name(error, body, status)
    elif body.help is not None and body.help not in (error.default_help, error.python_help):
        error.help = body.help
    return error


class ErrorBody(msgspec.Struct):
    """The body of a failure."""

    error: str | None = None
    error_code: str | None = None
    kind: str | None = None
    help: str | None = None
    details: dict[str, Any] | None = None
    span: Span | None = None


def _name(error: OmnigraphError, body: ErrorBody, status: int) -> None:
    """Set the code and kind of a failure without a local class."""
    kinds = {str(kind): kind for kind in Kind}
    fallback = Kind.UNAVAILABLE if status in (502, 503, 504) else Kind.INTERNAL
    error.kind = kinds.get(body.kind or "", fallback)
    error.code = body.error_code or error.code
