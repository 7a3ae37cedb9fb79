"""The change feed: what commits changed, page by page, from any position."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from omnigraph.errors import (
    CommitNotFound,
    CommitPruned,
    Kind,
    LimitExceeded,
    OmnigraphError,
    OptionInvalid,
)
from omnigraph.merge.feed import Change, Feed
from omnigraph.policy.guard import Need
from omnigraph.policy.questions import Action
from omnigraph.read.export import chosen_types, stream
from omnigraph.server.errors import exceeded
from omnigraph.server.request import LINES, Answer, HttpCall
from omnigraph.server.routes.exports import streamed
from omnigraph.wire.feed import (
    Cause,
    ChangedRow,
    FeedBlock,
    FeedOutput,
    changed_rows,
    in_order,
    types_of,
)
from omnigraph.wire.requests import BaselineRequest, FeedQuery, PageQuery

PAGE_CHANGES = 1000
PAGE_CHANGES_MAX = 8192
PAGE_BYTES = 4 << 20
POLL_COMMITS_MAX = 128
TOKEN_CHARACTERS_MAX = 4096
CHECK_BYTES = 16


class ChangeFeedGap(OmnigraphError):
    """History the feed needs was removed by cleanup."""

    code, kind = "change_feed_gap", Kind.NOT_FOUND
    default_help = "Start again from `POST /changes/baseline`."


class ChangeDiffRefused(OmnigraphError):
    """The changes of this commit cannot be computed."""

    code, kind = "change_diff_refused", Kind.CONFLICT
    default_help = "The first commit of a graph has no parent to compare with."


# --- positions -------------------------------------------------------------------------------------------------------


class CursorRejected(OmnigraphError):
    """A cursor or page token does not belong to this request."""

    code, kind = "cursor_rejected", Kind.INVALID
    default_help = "Start again from `POST /changes/baseline`, or with `start=`."


class Position(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """After a commit; with `offset`, after this many changes of the commit that follows it.

    Clients hold it as an opaque string, bound to graph, branch and filters, which is verified when they send it.
    """

    kind: str  # cursor, or page
    graph: str
    branch: str
    filters: str
    after: str
    offset: int = 0


def filters_of(**filters: Iterable[str] | None) -> str:
    """The fingerprint of a set of filters."""
    named = {name: sorted(set(values)) for name, values in filters.items() if values is not None}
    return hashlib.sha256(msgspec.json.encode(named, order="sorted")).hexdigest()[:16]


def token_of(position: Position) -> str:
    raw = msgspec.json.encode(position)
    return base64.urlsafe_b64encode(raw + _check(raw)).decode().rstrip("=")


def position_of(text: str, kind: str, graph: str, branch: str, filters: str) -> Position:
    """The position a text encodes, if it was made for this request."""
    found = _decoded(text)
    wanted = {"kind": kind, "graph": graph, "branch": branch, "filters": filters}
    for name, value in wanted.items():
        if getattr(found, name) != value:
            raise CursorRejected(f"change cursor rejected: it was made for another {name}")
    return found


def _decoded(text: str) -> Position:
    try:
        if len(text) > TOKEN_CHARACTERS_MAX:
            raise ValueError("too long")
        whole = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        raw, check = whole[:-CHECK_BYTES], whole[-CHECK_BYTES:]
        if check != _check(raw):
            raise ValueError("damaged")
        return msgspec.json.decode(raw, type=Position)
    except (ValueError, binascii.Error, msgspec.MsgspecError):
        raise CursorRejected("change cursor rejected: it is not one of ours") from None


def _check(raw: bytes) -> bytes:
    return hashlib.sha256(b"omnigraph feed\0" + raw).digest()[:CHECK_BYTES]


# --- pages -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Page:
    """Changes that fit on a page; `room` says whether one more does."""

    limit: int
    changes: int = 0
    bytes: int = 0
    blocks: list[FeedBlock] = field(default_factory=list)

    @property
    def room(self) -> bool:
        return self.changes < self.limit and self.bytes < PAGE_BYTES

    def add(self, cause: Cause, changes: Iterator[ChangedRow]) -> int:
        """Begin a block and fill it while there is room; returns how many were taken."""
        taken: list[ChangedRow] = []
        self.blocks.append(FeedBlock(cause, taken))
        for change in changes:
            taken.append(change)
            self.changes += 1
            self.bytes += len(msgspec.json.encode(change))
            if not self.room:
                break
        return len(taken)


def _limit(given: int | None) -> int:
    limit = PAGE_CHANGES if given is None else given
    if limit < 1:
        raise OptionInvalid(f"limit must be at least 1, got {limit}")
    if limit > PAGE_CHANGES_MAX:
        name = "commit_changes_page_changes"
        raise LimitExceeded(
            f"resource limit exceeded for {name}: actual {limit}, limit {PAGE_CHANGES_MAX}",
            details=exceeded(name, PAGE_CHANGES_MAX, limit),
        )
    return limit


# --- polling a branch ----------------------------------------------------------------------------------------------


def poll(call: HttpCall) -> Answer:
    """The changes of a branch after a position."""
    request: FeedQuery = call.query
    limit, branch = _limit(request.limit), request.branch or "main"
    filters = filters_of(kind=request.kind, type=request.type, op=request.op)
    start = _start(call, request, branch, filters)
    feed = _feed(call, request, branch, start)
    page = Page(limit)
    rest, last, count = None, start.after, 0
    with_gap = _commits(feed, request.cursor)
    for count, (id, changes) in enumerate(with_gap, 1):
        offset = start.offset if count == 1 else 0
        wanted = changes[offset:]
        taken = page.add(Cause.of(call.unguarded.commit(id)), _shown(call, branch, wanted))
        if taken < len(wanted):
            rest = msgspec.structs.replace(start, kind="page", after=last, offset=offset + taken)
            break
        last = id
        if not page.room:
            rest = msgspec.structs.replace(start, kind="page", after=last, offset=0)
            break
    return _poll_answer(page, start, last, rest, feed, count)


def _poll_answer(
    page: Page, start: Position, last: str, rest: Position | None, feed: Feed, count: int
) -> Answer:
    if rest is not None and (rest.offset or last != feed.head.content):
        return Answer(FeedOutput(page.blocks, token_of(rest)))
    caught_up = count < POLL_COMMITS_MAX or last == feed.head.content
    cursor = msgspec.structs.replace(start, kind="cursor", after=last, offset=0)
    return Answer(FeedOutput(page.blocks, cursor=token_of(cursor), caught_up=caught_up))


def _start(call: HttpCall, request: FeedQuery, branch: str, filters: str) -> Position:
    """Where to begin: a cursor, a page, or the position `start` names."""
    if sum(p is not None for p in (request.cursor, request.start, request.page_token)) > 1:
        raise OptionInvalid("cursor, start and page_token exclude each other")
    if request.cursor is not None:
        return position_of(request.cursor, "cursor", call.graph_id, branch, filters)
    if request.page_token is not None:
        return position_of(request.page_token, "page", call.graph_id, branch, filters)
    return Position("cursor", call.graph_id, branch, filters, _point(call, request.start, branch))


def _point(call: HttpCall, start: str | None, branch: str) -> str:
    match start:
        case None | "now":
            return call.unguarded.snapshot(branch).commit_id
        case "beginning":
            return ""
        case str() if start.startswith("after:"):
            point = start.removeprefix("after:")
            call.snapshot(branch, point)
            return call.unguarded.commit(point).id
        case _:
            raise OptionInvalid("start is now, beginning or after:<commit id>")


def _feed(call: HttpCall, request: PageQuery, branch: str, start: Position) -> Feed:
    types = types_of(call.unguarded.snapshot(branch).catalog, request.kind, request.type)
    try:
        return call.graph.changes(
            start.after or None, branch, types=types, operations=request.op, limit=POLL_COMMITS_MAX
        )
    except CommitNotFound as lost:
        raise CursorRejected(f"change cursor rejected: {lost.message}") from lost
    except CommitPruned as pruned:
        raise _gap(pruned, start.after) from pruned


def _commits(feed: Feed, cursor: str | None) -> Iterator[tuple[str, list[Change]]]:
    try:
        for id, changes in feed.commits():
            yield id, in_order(changes)
    except CommitNotFound as lost:
        raise CursorRejected(f"change cursor rejected: {lost.message}") from lost
    except CommitPruned as pruned:
        raise _gap(pruned, cursor) from pruned


def _gap(pruned: CommitPruned, cursor: str | None) -> ChangeFeedGap:
    commit = str(pruned.details.get("commit", ""))
    return ChangeFeedGap(
        "the history after this position was removed by cleanup",
        details={"cursor": cursor, "first_unreadable_commit_id": commit},
    )


def _shown(call: HttpCall, branch: str, changes: Iterable[Change]) -> Iterator[ChangedRow]:
    return changed_rows(changes, call.unguarded.snapshot(branch).catalog)


# --- one commit ----------------------------------------------------------------------------------------------------


def commit_needs(call: HttpCall) -> Iterator[Need]:
    """Reading the branch the commit landed on; to an actor who may not, the commit does not exist."""
    yield Need(Action.READ, call.written_on("main", call.path["commit_id"]))


def commit_changes(call: HttpCall) -> Answer:
    """What one commit changed."""
    request: PageQuery = call.query
    limit, commit = _limit(request.limit), call.unguarded.commit(call.path["commit_id"])
    if not commit.parents:
        raise ChangeDiffRefused(
            "the first commit has no parent to compare with",
            details={"reason": "parentless_commit", "graph_commit_id": commit.id},
        )
    filters = filters_of(kind=request.kind, type=request.type, op=request.op, commit=[commit.id])
    start = Position("page", call.graph_id, commit.branch, filters, commit.parents[0])
    if request.page_token is not None:
        start = position_of(request.page_token, "page", call.graph_id, commit.branch, filters)
    feed = _feed(call, request, commit.branch, start)
    changes = next((found for id, found in _commits(feed, None) if id == commit.id), [])
    page = Page(limit)
    wanted = changes[start.offset :]
    taken = page.add(Cause.of(commit), _shown(call, commit.branch, wanted))
    content = page.blocks[0]
    if taken < len(wanted):
        rest = msgspec.structs.replace(start, offset=start.offset + taken)
        content = msgspec.structs.replace(content, next_page_token=token_of(rest))
    return Answer(content, commit=commit.id)


# --- a place to start ------------------------------------------------------------------------------------------------


def export_on(call: HttpCall) -> Iterable[Need]:
    request = call.body if call.body is not None else call.query
    return (Need(Action.EXPORT, request.branch or "main"),)


def baseline(call: HttpCall) -> Answer:
    """The current state, then the cursor from which the feed continues."""
    request: BaselineRequest = call.body
    branch = request.branch or "main"
    snapshot = call.unguarded.snapshot(branch)
    filters = filters_of(kind=request.kind, type=request.type, op=request.op)
    resume = Position("cursor", call.graph_id, branch, filters, snapshot.commit_id)
    types = types_of(snapshot.catalog, request.kind, request.type)
    chosen = frozenset(kind.name for kind in chosen_types(snapshot, types))
    call.require(Need(Action.EXPORT, branch, types=chosen))
    last = {"snapshot_commit_id": snapshot.commit_id, "resume_cursor": token_of(resume)}

    def blocks() -> Iterator[bytes]:
        yield from stream(snapshot, types)
        yield msgspec.json.encode({"baseline": last}) + b"\n"

    return streamed(call, snapshot, Answer(media=LINES, blocks=blocks()))
