"""Bugs put into proposals on purpose: an approval lost, or counted that was not given, a merge nobody wanted."""

from __future__ import annotations

from typing import Any

import msgspec

from omnigraph import operations as ops
from omnigraph import review
from omnigraph.core import layout
from omnigraph.core import proposals as store
from omnigraph.core.records import encode
from omnigraph.errors import ObjectExists, StoreOutcomeUnknown
from omnigraph.guarded import GuardedGraph
from omnigraph.policy.bundle import Protection
from omnigraph.policy.guard import Guard
from omnigraph.review import Reviewing, _merge_result
from omnigraph.storage.objects import numbered
from tests.sim.patching import Patch, around, swap

TEAM = ("pusher", "approver", "releaser", "releaser")
DISPUTE = ("approver", "doubter", "releaser", "closer")
ALL = ("pusher", "approver", "doubter", "releaser", "closer")


def _head_of_now(original: Any, self: Any, kind: str, number: int, head: Any, *rest: Any) -> Any:
    """A verdict is taken for whatever the branch is at by now."""
    return original(self, kind, number, None, *rest)


def _stale_counts(original: Any, self: Guard, branch: str) -> Protection | None:
    """An approval counts for ever."""
    found: Protection | None = original(self, branch)
    if found is None:
        return None
    return Protection(found.push, found.approvals, checks=found.checks, stale_approvals=True)


def _unclaimed(self: Any, state: Any, theirs: Any, request: Any, need: Any) -> Any:
    """Look whether it may be merged, then merge: whoever objects in between is not heard."""
    self._require_ready(state, theirs)
    done = self._submit(request, need)
    if done.commit is not None:

        def merged(there: Any) -> Any:
            happened = store.event(self._repo, "merged", request.actor, commit=done.commit_id)
            return store.after(there, happened, status=store.MERGED, commit=done.commit_id)

        store.change(self._repo, state.number, merged)
    return _merge_result(done)


def _over_a_claim(self: Any, state: Any, step: Any, dry_run: bool) -> Any:
    """Write the next state although a merge is on its way."""
    return self._shown_proposal(store.change(self._repo, state.number, step))


def _only_noted(self: Any, state: Any, why: str = "") -> Any:
    """Take a merge for called off without making sure that it cannot happen any more."""
    if state.claim is None:
        return state
    return self._note_settled(state.number, state.claim.key, None, why)


def _write_over(repo: Any, state: Any, place: int) -> bool:
    """Take the place whoever has it."""
    repo.objects.put(numbered(layout.proposal_folder(state.number), place), encode(state))
    return True


def _believe(repo: Any, state: Any, place: int) -> bool:
    """Take an unanswered write for done."""
    try:
        repo.objects.put_new(numbered(layout.proposal_folder(state.number), place), encode(state))
    except ObjectExists:
        return False
    except StoreOutcomeUnknown:
        return True
    return True


def _not_ours(repo: Any, state: Any, place: int) -> bool:
    """Do not recognise one's own write after its answer was lost."""
    for _ in range(repo.limits.unknown_attempts_max):
        try:
            key = numbered(layout.proposal_folder(state.number), place)
            repo.objects.put_new(key, encode(state))
            return True
        except ObjectExists:
            return False
        except StoreOutcomeUnknown:
            repo.back_off(0)
    raise StoreOutcomeUnknown("no answer")


def _whatever_head(original: Any, *args: Any, **named: Any) -> Any:
    """Merge what the branch is at by now."""
    return original(*args, **named | {"pinned": None})


def _last_word_only(original: Any, self: Any, state: Any, head: Any) -> Any:
    """Overlook who wants changes."""
    kinds = {a: v for a, v in state.verdicts.items() if v.kind == store.APPROVED}
    return original(self, msgspec.structs.replace(state, verdicts=kinds), head)


def _unverified(original: Any, self: Any, wanted: Any) -> Any:
    return lambda before, after: {}


def _no_readiness(self: Any, state: Any, head: Any) -> None:
    """Merge without a look at what the policy wants."""


def _keyless(original: Any, state: Any) -> Any:
    """Publish the merge under no key, so that calling it off stops nothing."""
    return {**original(state), "idempotency_key": None}


REVIEW_BUGS: dict[str, tuple[Patch, tuple[str, ...]]] = {
    "a verdict is for the head of now": (around(Reviewing, "_judge", _head_of_now), TEAM),
    "an approval counts after the branch moved": (around(Guard, "protection", _stale_counts), TEAM),
    "a merge is not claimed": (swap(Reviewing, "_merge_claimed", _unclaimed), DISPUTE),
    "a verdict goes beside a merge on its way": (
        swap(Reviewing, "_changed", _over_a_claim),
        DISPUTE,
    ),
    "a merge is called off in words alone": (swap(Reviewing, "_settled", _only_noted), ALL),
    "a merge is published without its key": (
        around(review, "_keyed", _keyless),
        ALL,
    ),
    "a state of a proposal is written over": (swap(store, "_create", _write_over), ALL),
    "an unanswered write of a proposal is believed": (swap(store, "_create", _believe), ALL),
    "an own write of a proposal is not recognised": (swap(store, "_create", _not_ours), ALL),
    "whatever the branch is at is merged": (around(ops, "merge", _whatever_head), TEAM),
    "who wants changes is overlooked": (around(GuardedGraph, "_missing", _last_word_only), DISPUTE),
    "a merge is not verified": (around(Reviewing, "_verifier", _unverified), TEAM),
    "what a policy wants is not asked": (swap(Reviewing, "_require_ready", _no_readiness), TEAM),
}
