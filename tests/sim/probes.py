"""Rare situations: named, counted, and all of them met. A simulation that never gets somewhere proves nothing of it.

A probe watches one function of the core, or one disturbance, and says when the situation it is named after came about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from omnigraph.core import branches, group, leases, publisher, repository, room
from omnigraph.core.chain import Chains
from omnigraph.core.conflicts import Verdict
from omnigraph.core.publisher import Outcome
from omnigraph.core.records import Commit, Tombstone, operations_of
from omnigraph.maintenance import collection as gc
from tests.sim.scheduler import Scheduler
from tests.support.dict_tables import DictTables

Seen = Callable[..., bool]  # the result of the call, then its arguments


def _verdict(wanted: Verdict) -> Seen:
    return lambda found, *_: found.verdict is wanted


def _newer_epoch(found: Any, base: Commit, intents: Any, missed: Any) -> bool:
    last = missed[-1]
    return isinstance(last, Commit) and last.gc_epoch != base.gc_epoch


def _among_missed(kind: type) -> Seen:
    return lambda found, base, intents, missed: any(isinstance(thing, kind) for thing in missed)


def _yes(found: Any, *_: Any) -> bool:
    return True


def _truly(found: Any, *_: Any) -> bool:
    return bool(found)


def _none(found: Any, *_: Any) -> bool:
    return found is None


def _a_tomb(found: Any, *_: Any) -> bool:
    return isinstance(found, Tombstone)


def _outcome(wanted: Outcome) -> Seen:
    return lambda found, *_: found is wanted


def _joined(found: Any, repo: Any, key: str, wanted: Any) -> bool:
    return bool(found.operation_id != wanted.operation_id)


def _another_epoch(found: Any, repo: Any, survey: Any, retention: Any, record: Any) -> bool:
    return bool(found.epoch != record.epoch)


def _released(found: list[tuple[str, int]], record: Any, kept: Any) -> bool:
    return bool(set(found) & set(record.released))


def _across_epochs(found: bool, repo: Any, plan: str | None, staged: int, now: int) -> bool:
    return found and plan is not None and now > staged


def _lost_lease(found: bool, repo: Any, plan: str | None, staged: int, now: int) -> bool:
    return not found and plan is not None


def _over_a_question(found: Any, repo: Any, attempt: Any, commit: Commit, head: Any) -> bool:
    return head.commit.kind == room.ROOM and not _own_question(attempt, head)


def _over_its_own_question(found: Any, repo: Any, attempt: Any, commit: Commit, head: Any) -> bool:
    return head.commit.kind == room.ROOM and _own_question(attempt, head)


def _own_question(attempt: Any, head: Any) -> bool:
    return bool(operations_of(head.commit) & attempt.contest.asked)


# situation -> (owner, function, when it came about)
PROBES: dict[str, tuple[Any, str, Seen]] = {
    "lost a race, same versions on the new head": (publisher, "decide", _verdict(Verdict.SAME)),
    "lost a race, same rows on newer versions": (publisher, "decide", _verdict(Verdict.RESTAGE)),
    "lost a race, ran the verb again": (publisher, "decide", _verdict(Verdict.AGAIN)),
    "lost to the end of the branch": (publisher, "decide", _verdict(Verdict.SEALED)),
    "a collection went by while staging": (publisher, "decide", _newer_epoch),
    "what was missed is pruned already": (publisher, "decide", _among_missed(Tombstone)),
    "overtaken by a collection while reading": (publisher.Overtaken, "__init__", _yes),
    "asked the others to make room": (publisher, "_ask", _truly),
    "could not even ask": (publisher, "_ask", _none),
    "made room for one who asked": (room.Contest, "make_room", _truly),
    "published over a question that was its own": (publisher, "_succeed", _over_its_own_question),
    "published over somebody else's question": (publisher, "_succeed", _over_a_question),
    "found its own operation among the missed": (publisher, "_settle_landed", _truly),
    "a number was taken": (publisher, "create", _outcome(Outcome.TAKEN)),
    "the store never said": (publisher, "create", _outcome(Outcome.UNKNOWN)),
    "fragments committed again as they are": (
        DictTables,
        "recommit",
        lambda found, *_: found is not None,
    ),
    "fragments no longer fit": (DictTables, "recommit", _none),
    "joined somebody's idempotency key": (group, "claim", _joined),
    "found what was done under a key": (publisher, "landed_before", _truly),
    "an end of a chain was pruned while it was looked up": (Chains, "_last", _a_tomb),
    "a warm reader met a seal or a tombstone": (repository.Repository, "_newer", _none),
    "what a branch starts from is gone": (branches, "_begin", _none),
    "a branch was taken back": (branches, "_take_back", _yes),
    "a creation was called off": (branches, "_is_ours", lambda found, *_: not found),
    "a name over a sealed chain is free": (branches, "_alive", lambda found, *_: not found),
    "a commit to start from was declared pruned": (branches, "pruned", _truly),
    "another collection took the record": (gc, "_publish_record", _another_epoch),
    "a branch was unfinished at two collections": (
        gc,
        "pruned_epoch",
        lambda found, repo, record: bool(found & set(record.unfinished)),
    ),
    "a commit that was held is buried": (gc, "_prunable", _released),
    "another collection buried what this one would keep": (gc, "_is_overtaken", _truly),
    "another collection took what this one would keep": (gc, "_is_damage", lambda no, *_: not no),
    "a lease held across a collection": (publisher, "still_honoured", _across_epochs),
    "a lease was not honoured": (leases, "still_honoured", _lost_lease),
    "a lease ended": (gc, "is_expired", _truly),
}
DISTURBANCES = (
    "stall",
    "crash before a write",
    "crash after a write",
    "request lost",
    "answer lost",
    "request late",
    "late request applied",
    "late request refused",
)
SITUATIONS = (*PROBES, *DISTURBANCES)


@contextmanager
def watching(reached: Counter[str]) -> Iterator[None]:
    """Count every situation that comes about inside."""
    with ExitStack() as stack:
        for name, (owner, function, when) in PROBES.items():
            stack.enter_context(_probe(reached, name, owner, function, when))
        stack.enter_context(patch.object(Scheduler, "note", lambda _, what: reached.update([what])))
        yield


@contextmanager
def _probe(
    reached: Counter[str], name: str, owner: Any, function: str, when: Seen
) -> Iterator[None]:
    original = getattr(owner, function)

    def watched(*args: Any, **options: Any) -> Any:
        found = original(*args, **options)
        if when(found, *args):
            reached[name] += 1
        return found

    with patch.object(owner, function, watched):
        yield
