"""Maps failures to HTTP statuses and bodies, in one place.

The kind of an error determines its status; a few codes that published clients distinguish have their own. The body
keeps the fields those clients read (`error`, `code` and one structured field) and adds ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.errors import CODES, Kind, LimitExceeded, OmnigraphError, is_discreet

STATUSES = {
    Kind.INVALID: 400,
    Kind.DENIED: 403,
    Kind.NOT_FOUND: 404,
    Kind.CONFLICT: 409,
    Kind.LIMIT: 413,
    Kind.INTERNAL: 500,
    Kind.CORRUPT: 500,
    Kind.UNKNOWN_OUTCOME: 500,
    Kind.UNAVAILABLE: 503,
}
STATUSES_OF_CODES = {
    "unauthenticated": 401,
    "method_not_allowed": 405,
    "not_acceptable": 406,
    "change_feed_gap": 410,
    "job_expired": 410,
    "precondition_failed": 412,
    "blob_changed": 412,
    "media_unsupported": 415,
    "range_unsatisfiable": 416,
    "too_many_requests": 429,
    "store_denied": 500,  # the server's credentials, not the caller's
    "query_not_found": 400,  # a name inside the submitted text
    "type_not_found": 400,
    "object_not_found": 500,
    "graph_not_found": 500,  # its folder is gone
    "source_not_found": 400,
}
WORDS = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    406: "bad_request",
    409: "conflict",
    413: "bad_request",
    415: "bad_request",
    416: "bad_request",
    429: "too_many_requests",
    500: "internal",
}
SUMMARY_CONFLICTS_MAX = 3
MESSAGE_CHARACTERS_MAX = 8192  # a message may quote the request


class Headed(OmnigraphError):
    """A failure that sets headers of its response."""

    def __init__(
        self, message: str, headers: Mapping[str, str], details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message, details=details)
        self.headers = dict(headers)


class NotAllowedHere(Headed):
    """The path exists, but not with this method."""

    code, kind = "method_not_allowed", Kind.INVALID
    default_help = "The header Allow lists the methods; `/docs` shows all routes."


class RouteNotFound(OmnigraphError):
    """The path does not exist."""

    code, kind = "route_not_found", Kind.NOT_FOUND
    default_help = "`/docs` shows all routes; those of a graph start with /graphs/{id}."


class RequestInvalid(OmnigraphError):
    """The request is malformed."""

    code, kind = "request_invalid", Kind.INVALID
    default_help = "`/docs` shows the fields of every route."


class LengthAmbiguous(Headed):
    """The request specifies the length of its body in two ways.

    A proxy and the server might each believe a different one, and take the end of a body for the next request.
    """

    code, kind = "length_ambiguous", Kind.INVALID
    default_help = "Send Content-Length or Transfer-Encoding, not both."


class MediaUnsupported(OmnigraphError):
    """The route does not accept this media type."""

    code, kind = "media_unsupported", Kind.INVALID
    default_help = "The message names what is accepted."


class ContractUnknown(Headed):
    """The client requires a version of the HTTP interface that is not served."""

    code, kind = "http_api_unsupported", Kind.INVALID
    default_help = (
        "Leave out the header Omnigraph-Http-Api, or send one of those the message names."
    )


class NotAcceptable(OmnigraphError):
    """The response is not available in the requested format."""

    code, kind = "not_acceptable", Kind.INVALID
    default_help = "The message names what is available."


class TooManyRequests(OmnigraphError):
    """An actor exceeds its share of concurrent work."""

    code, kind = "too_many_requests", Kind.LIMIT
    default_help = "Wait for earlier requests to end; the header Retry-After says how long at most."
    retry_after = 60


class ServerBusy(OmnigraphError):
    """The server is at capacity; nothing was changed."""

    code, kind = "server_busy", Kind.UNAVAILABLE
    default_help = "Try again in a moment."
    retry_after = 1


def exceeded(name: str, limit: float, observed: float) -> dict[str, object]:
    """The details of an exceeded limit: its name, its value, and the observed value."""
    return {"limit": name, "limit_value": limit, "observed": observed}


def within(name: str, most: int, given: int, least: int = 0) -> int:
    """The requested number, if it is within bounds."""
    if least <= given <= most:
        return given
    what = f"{least} to {most}" if least else f"at most {most}"
    raise LimitExceeded(f"limit is {what}", details=exceeded(name, most, given))


def status_of(error: OmnigraphError) -> int:
    """The HTTP status of a failure."""
    return STATUSES_OF_CODES.get(str(error.code), STATUSES[error.kind])


def headers_of(error: OmnigraphError) -> dict[str, str]:
    """The response headers of a failure."""
    if isinstance(error, Headed):
        return error.headers
    if isinstance(error, TooManyRequests | ServerBusy):
        return {"Retry-After": str(error.retry_after)}
    return {"WWW-Authenticate": "Bearer"} if str(error.code) == "unauthenticated" else {}


def body_of(error: OmnigraphError) -> dict[str, Any]:
    """The JSON of a failure. What might reveal paths and stores only goes to the log."""
    status = status_of(error)
    discreet = is_discreet(error)
    known = CODES.get(str(error.code))
    message = (known.title if known else "internal error") if discreet else _message(error)
    body: dict[str, Any] = {"error": message[:MESSAGE_CHARACTERS_MAX]}
    word = None if _is_wordless(error, status) else WORDS.get(status)
    if word is not None:
        body["code"] = word
    body |= {} if discreet else _structured(error)
    return body | {
        "error_code": str(error.code),
        "kind": str(error.kind),
        "help": error.help_on("cli"),
        "span": error.span.to_json() if error.span else None,
        "details": {} if discreet else error.details,
        "retryable": error.retryable,
    }


def _is_wordless(error: OmnigraphError, status: int) -> bool:
    return status not in WORDS or str(error.code) == "precondition_failed"


def _message(error: OmnigraphError) -> str:
    details = error.details
    match str(error.code):
        case "precondition_failed" if "branch" in details:
            expected, actual = details.get("expected"), details.get("actual")
            return (
                f"precondition failed on branch '{details['branch']}': "
                f"expected head '{expected}' but current is {actual}"
            )
        case "key_conflict" if details.get("violations"):
            first = details["violations"][0]
            kind = details.get("entity_kind", "node")
            return f"{kind} type '{first['type']}' already has id '{first['id']}'"
        case _:
            return error.message


def _structured(error: OmnigraphError) -> Mapping[str, Any]:
    """The structured field published clients read for this failure."""
    details = error.details
    match str(error.code):
        case "precondition_failed":
            return {"precondition_failure": _present(details, "expected", "actual")}
        case "merge_conflicts":
            return {"merge_conflicts": details.get("merge_conflicts", [])}
        case "key_conflict" if details.get("violations"):
            first = details["violations"][0]
            return {
                "key_conflict": {
                    "entity_kind": details.get("entity_kind", "node"),
                    "type_name": first["type"],
                    "entity_id": first["id"],
                }
            }
        case "conflict" | "branch_deleted" | "retries_exhausted":
            return {"read_set_conflict": {"member": str(details.get("branch", "branch"))}}
        case "change_feed_gap":
            return {"change_feed_gap": _present(details, "cursor", "first_unreadable_commit_id")}
        case "change_diff_refused":
            return {
                "change_diff_refusal": _present(details, "reason", "graph_commit_id", "type_name")
            }
        case "range_unsatisfiable":
            return {"blob_range": _present(details, "start", "end", "length")}
        case _ if error.kind is Kind.LIMIT and "limit" in details:
            return {"resource_limit": _limit(details)}
        case _:
            return {}


def _present(details: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: details[name] for name in names if details.get(name) is not None}


def _limit(details: Mapping[str, Any]) -> dict[str, Any]:
    limit = details.get("limit_value", details.get("seconds"))
    return {
        "resource": details["limit"],
        "limit": limit,
        "actual": details.get("observed", limit),
    }


def merge_summary(conflicts: list[dict[str, Any]]) -> str:
    """A few conflicts in one sentence."""
    shown = "; ".join(str(c["message"]) for c in conflicts[:SUMMARY_CONFLICTS_MAX])
    more = len(conflicts) - SUMMARY_CONFLICTS_MAX
    return f"merge conflicts: {shown}" + (f"; and {more} more" if more > 0 else "")
