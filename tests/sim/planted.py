"""Bugs put into the core on purpose, one at a time. A simulation that does not catch them proves nothing."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import msgspec

from omnigraph.core import (
    branches,
    conflicts,
    footprints,
    group,
    history,
    idempotency,
    layout,
    leases,
    publisher,
    repository,
    stage,
)
from omnigraph.core.chain import Chains
from omnigraph.core.conflicts import Decision, Facts, Intent, Verdict
from omnigraph.core.publisher import Outcome, Published
from omnigraph.core.records import Commit, GcRecord, LiveRef, Seal, encode, operations_of
from omnigraph.core.room import Contest
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import ObjectExists, RetriesExhausted, StoreOutcomeUnknown
from omnigraph.maintenance import collection as gc
from omnigraph.model.names import branch_name
from omnigraph.model.tokens import NO_TOKENS
from omnigraph.storage.objects import numbered
from tests.sim.patching import Patch, around, both, swap
from tests.sim.planted_reviews import REVIEW_BUGS
from tests.sim.scheduler import Weather
from tests.support.dict_tables import DictTables


def _blind_decide(_: Any, base: Commit, intents: Any, missed: Any) -> Decision:
    """Go on as if the winners had touched nothing."""
    return Decision(Verdict.SAME, missed[-1] if isinstance(missed[-1], Commit) else None)


def _without_tokens(original: Any, *args: Any) -> Any:
    return {table: replace(touch, shown=NO_TOKENS) for table, touch in original(*args).items()}


def _ignore_reads(self: Intent, table: str) -> Facts:
    """Compare what is written alone."""
    return Facts((self.touches[table].own if table in self.touches else NO_TOKENS,), False)


def _same_epoch(original: Any, base: Commit, intents: Any, missed: Any) -> Decision:
    """Do not notice that a collection went by."""
    last = missed[-1]
    epoch = last.gc_epoch if isinstance(last, Commit) else base.gc_epoch
    found: Decision = original(msgspec.structs.replace(base, gc_epoch=epoch), intents, missed)
    return found


def _ignore_seals(original: Any, base: Commit, intents: Any, missed: Any) -> Decision:
    """Take the end of a chain for a commit like any other."""
    seen = [
        msgspec.structs.replace(base, number=thing.number) if isinstance(thing, Seal) else thing
        for thing in missed
    ]
    found: Decision = original(base, intents, seen)
    return found


def _fail_on_unknown(repo: Any, thing: Any) -> Outcome:
    """Call an unanswered create a failure."""
    key = numbered(layout.chain_folder(thing.chain), thing.number)
    try:
        repo.objects.put_new(key, encode(thing))
    except ObjectExists:
        return Outcome.TAKEN
    except StoreOutcomeUnknown as error:
        raise RetriesExhausted("no answer") from error
    return Outcome.CREATED


def _next_number_on_unknown(original: Any, repo: Any, thing: Any) -> Outcome:
    """Repeat an unanswered create under the next number."""
    key = numbered(layout.chain_folder(thing.chain), thing.number)
    try:
        repo.objects.put_new(key, encode(thing))
    except ObjectExists:
        return Outcome.TAKEN
    except StoreOutcomeUnknown:
        if isinstance(thing, Commit):
            found: Outcome = original(repo, msgspec.structs.replace(thing, number=thing.number + 1))
            return found
        return Outcome.TAKEN
    return Outcome.CREATED


def _recommit_blindly(self: DictTables, staged: Any, base: Any) -> Any:
    """Add our fragments again, although the rows they swallowed are still there."""
    version = self._version(base)
    fragments = (*version.fragments, *self._numbered(version, staged.appended))
    ref = self._put(
        type(base)(base.path, self.disk.fresh()), type(version)(version.schema, fragments)
    )
    return replace(staged, ref=ref, base=base, rows=self._count(fragments))


def _stale_addresses(original: Any, tables: Any, base: Any, overlay: Any, planned_on: Any) -> Any:
    return original(tables, base, overlay, None)


def _delete_without_seal(repo: Any, name: str, *, actor: str | None = None) -> None:
    branch = branch_name(name)
    head = repo.known_head(branch)
    repo.forget(branch)
    folder = layout.ref_folder(branch)
    branches.end_name(repo, folder, head.ref_number, LiveRef(head.commit.chain, "x"))


def _no_key_claim(original: Any, repo: Any, key: str, wanted: Any) -> Any:
    return wanted


def _forgetful_tomb(original: Any, commit: Commit) -> Any:
    return original(msgspec.structs.replace(commit, members=(), recent=()))


def _delete_commits(original: Any, repo: Any, chain: str, number: int) -> None:
    repo.objects.delete([numbered(layout.chain_folder(chain), number)])
    repo.chains.forget(chain, number)


def _late_listing(original: Any, repo: Any, survey: Any, record: Any, kept: Any) -> Any:
    """Take everything there is now, not only what was there before the epoch."""
    survey.objects = [i for f in gc.DATA_FOLDERS for i in repo.objects.list(f)]
    return original(repo, survey, record, kept)


def _keep_nothing_below(original: Any, repo: Any, refs: Any, heads: Any) -> Any:
    return set()


def _forget_earlier(original: Any, repo: Any, survey: Any, retention: Any, before: Any) -> GcRecord:
    made: GcRecord = original(repo, survey, retention, None)
    return msgspec.structs.replace(made, epoch=before.epoch + 1 if before is not None else 1)


def _stale_refs(original: Any, repo: Any, record: Any, refs: Any, survey: Any) -> Any:
    """Mark only what the first listing of names reaches."""
    return original(repo, record, survey.refs, survey)


def _never_newer(self: Any, known: Any) -> Any:
    """A warm reader that trusts its cache."""
    return known


def _seal_is_fine(original: Any, self: Any, known: Any) -> Any:
    """A warm reader that does not notice the end of its chain."""
    following = self.chains.read(known.commit.chain, known.commit.number + 1)
    return known if isinstance(following, Seal) else original(self, known)


def _fold_on_base(self: Any, plan: Any) -> Any:
    """Judge every folded write on the base alone."""
    return self


def _believed(original: Any, repo: Any, plan: str | None, staged_in: int, now_in: int) -> bool:
    """Take a lease for honoured because it was once granted."""
    return plan is not None


def _overlook_leases(original: Any, repo: Any, survey: Any, record: Any, kept: Any) -> Any:
    """Name the leases in the record, and take their files all the same."""
    return original(repo, replace(survey, plans={}), record, kept)


def _keep_less(original: Any, repo: Any, ref: Any, states: Any, certain: bool) -> Any:
    """Leave out what is gone, and go by the rest."""
    return original(repo, ref, states, False)


def _buried_is_sealed(self: Any, chain: str) -> Any:
    """Take a chain for ended because the end that was listed is buried by now."""
    return self._last(chain)


def _stale_heads(original: Any, repo: Any, record: Any, refs: Any, survey: Any) -> Any:
    """Hold the merges and forks the survey knew of, and none that were made since."""
    roots = gc._roots(repo, refs, survey.heads) | set(record.kept)
    floors = record.floors
    kept = original(repo, record, refs, survey)
    return {p: c for p, c in kept.items() if p in roots or p[1] >= floors.get(p[0], 0)}


def _question_for_answer(original: Any, attempt: Any, missed: Any, ours: Commit) -> bool:
    """Take the question for the write it was asked for."""
    for thing in missed:
        if operations_of(thing) & attempt.contest.asked:
            for one in attempt.accepted:
                one.ticket.outcome = Published(thing, 0, one.plan.value)
            return True
    found: bool = original(attempt, missed, ours)
    return found


def _stale_question(original: Any, self: Contest, head: Commit, *rest: Any) -> Commit:
    """Ask with the state before the head."""
    before = self.repo.chains.get(head.chain, head.number - 1)
    tables = before.tables if isinstance(before, Commit) else head.tables
    made: Commit = msgspec.structs.replace(original(self, head, *rest), tables=tables)
    return made


def _forgetful_question(original: Any, self: Contest, *rest: Any) -> Commit:
    made: Commit = msgspec.structs.replace(original(self, *rest), recent=())
    return made


def _room_is_a_right(original: Any, repo: Any, contest: Contest, head: Any, *rest: Any) -> Any:
    """Ask after whatever came first, and go on from there as if it had been judged."""
    while (found := original(repo, contest, head, *rest)) is None:
        end = repo.chains.end(head.commit.chain)
        if not isinstance(end, Commit):
            break
        head = replace(head, commit=end)
    return found


def _stale_after_a_question(
    original: Any, repo: Any, attempt: Any, staged: Any, decision: Any
) -> Any:
    """Believe that a question keeps the tables where they were, too."""
    return staged if attempt.contest.room_until else original(repo, attempt, staged, decision)


def _wait_for_ever(original: Any, self: Contest, newest: Any, is_over: Any) -> bool:
    """Believe that whoever asked comes back."""
    waited: bool = original(self, newest, is_over)
    while waited and self.repo.chains.read(newest.chain, newest.number + 1) is None:
        self.repo.clock.pause(1.0)
    return waited


SWEPT_RESET = ("resetter", "sweeper", "sweeper")
RESETS = ("resetter", "resetter", "collector", "collector", "appender")
SWEPT = ("appender", "sweeper", "sweeper")
SWEPT_TAG = ("tagger", "sweeper", "sweeper")
SWEPT_NAMES = ("brancher", "brancher", "sweeper", "collector")
SWEPT_MERGE = ("merger", "sweeper", "sweeper")
BRANCHES_TWICE = ("brancher", "appender", "collector", "collector")
LOADS = ("loader", "loader", "collector", "collector")
GARDEN = ("gardener", "gardener", "gardener")
FOLD = ("folder", "folder", "gardener")
BANK = ("banker", "banker", "auditor")
ROWS = ("appender", "appender", "collector", "auditor")
KEYS = ("retrier", "retrier", "appender", "collector")
SLEEP = ("sleeper", "appender", "appender", "collector")
VISITS = ("brancher", "visitor", "visitor", "brancher")
BRANCHES = ("brancher", "brancher", "collector", "auditor")
TAGS = ("tagger", "appender", "collector", "collector")

# name -> (what to break, who has to show it)
BUGS: dict[str, tuple[Patch, tuple[str, ...]]] = {
    "a question is taken for the write itself": (
        around(publisher, "_settle_landed", _question_for_answer),
        ROWS,
    ),
    "a question shows an older state": (around(Contest, "question", _stale_question), ROWS),
    "a question forgets the keys before it": (
        around(Contest, "question", _forgetful_question),
        KEYS,
    ),
    "whoever asked does not look at what came before": (
        around(publisher, "_ask", _room_is_a_right),
        ROWS,
    ),
    "whoever asked stays on the tables it was staged on": (
        around(publisher, "_onto", _stale_after_a_question),
        ROWS,
    ),
    "whoever asked is waited for until it comes": (
        around(Contest, "make_room", _wait_for_ever),
        ROWS,
    ),
    "no look for our own operation among the missed": (
        swap(publisher, "_settle_landed", lambda attempt, missed, ours: False),
        ROWS,
    ),
    "no judgement of what was missed": (around(publisher, "decide", _blind_decide), ROWS),
    "footprints are empty": (around(publisher, "touches", _without_tokens), GARDEN),
    "footprints without endpoints": (
        swap(footprints, "endpoint_tokens", lambda side, ids: NO_TOKENS),
        GARDEN,
    ),
    "reads are not compared": (swap(Intent, "facts", _ignore_reads), GARDEN),
    "unique values are not shown": (
        swap(footprints, "unique_tokens", lambda g, c: NO_TOKENS),
        GARDEN,
    ),
    "a newer epoch is not noticed": (around(publisher, "decide", _same_epoch), ROWS),
    "a seal is not noticed": (around(publisher, "decide", _ignore_seals), VISITS),
    "an unanswered create is called a failure": (
        swap(publisher, "create", _fail_on_unknown),
        ROWS,
    ),
    "an unanswered create is repeated at the next number": (
        around(publisher, "create", _next_number_on_unknown),
        ROWS,
    ),
    "fragments are committed again whatever they swallowed": (
        swap(DictTables, "recommit", _recommit_blindly),
        ROWS,
    ),
    "rows are deleted at stale addresses": (around(stage, "_addresses", _stale_addresses), GARDEN),
    "a branch is deleted without a seal": (
        swap(branches, "delete_branch", _delete_without_seal),
        VISITS,
    ),
    "a name is written without a look at the record": (
        swap(branches, "pruned", lambda r, c, n: False),
        SWEPT_TAG,
    ),
    "keys are not claimed": (around(group, "claim", _no_key_claim), KEYS),
    "no search for what was done under a key": (
        swap(publisher, "landed_before", lambda *a: None),
        KEYS,
    ),
    "tombstones forget their operations": (around(gc, "buried", _forgetful_tomb), SLEEP),
    "pruned commits are deleted": (around(gc, "_bury_one", _delete_commits), ROWS),
    "a collection lists its prey after the epoch": (around(gc, "_doomed", _late_listing), ROWS),
    "a collection does not move the epoch": (
        swap(gc, "_move_epochs", lambda r, chains, rec: None),
        ROWS,
    ),
    "a collection forgets tags, forks and merges": (
        around(gc, "_roots", _keep_nothing_below),
        TAGS,
    ),
    "a collection forgets what earlier ones declared": (
        around(gc, "_record", _forget_earlier),
        SWEPT_NAMES,
    ),
    "a collection looks at the names only once": (
        around(gc, "_kept_commits", _stale_refs),
        TAGS,
    ),
    "a warm reader trusts its cache": (
        swap(repository.Repository, "_newer", _never_newer),
        BANK,
    ),
    "a warm reader misses the end of its chain": (
        around(repository.Repository, "_newer", _seal_is_fine),
        BRANCHES,
    ),
    "folded writes are judged on the base alone": (
        swap(WriteTxn, "after", _fold_on_base),
        FOLD,
    ),
    "touched tables are taken from summaries alone": (
        swap(conflicts, "_same_version", lambda one, other: True),
        ROWS,
    ),
    "a writer takes what a collection removed for damage": (
        swap(publisher, "unless_overtaken", lambda repo, attempt: nullcontext()),
        ROWS,
    ),
    "a collection takes what another removed for damage": (
        swap(gc, "_is_damage", lambda missing, before: True),
        BRANCHES_TWICE,
    ),
    "a collection goes on without what another took": (
        around(gc, "_files", _keep_less),
        SWEPT,
    ),
    "a collection goes on beside a newer one": (
        swap(gc, "_is_overtaken", lambda record, thing: False),
        RESETS,
    ),
    "a branch that went on is taken for deleted": (
        swap(Chains, "end", _buried_is_sealed),
        SWEPT_MERGE,
    ),
    "a collection forgets merges made since its survey": (
        around(gc, "_kept_commits", _stale_heads),
        SWEPT_MERGE,
    ),
    "what is about to be removed is taken over": (
        both(
            swap(publisher, "_check_sources", lambda repo, plan: None),
            swap(history, "newest_record", lambda repo: None),
        ),
        SWEPT_RESET,
    ),
    "an unfinished branch is left its files": (
        swap(gc, "_call_off", lambda repo, survey, record: None),
        ("founder", "sweeper", "collector"),
    ),
    "a lease is believed whatever the records say": (
        both(
            around(publisher, "still_honoured", _believed),
            around(leases, "still_honoured", _believed),
        ),
        LOADS,
    ),
    "a collection takes the files of a lease it named": (
        around(gc, "_doomed", _overlook_leases),
        LOADS,
    ),
    "a key somebody claimed is claimed again": (
        swap(idempotency, "joined", lambda r, k, w: w),
        KEYS,
    ),
    **REVIEW_BUGS,
}

# Bugs that show soonest when nothing but the order of requests is unusual: whoever dies or repeats itself does not get
# as far as the moment that matters.
WEATHER = {"a collection goes on beside a newer one": Weather(0, 0, 0, 0, stall=0.03)}
