"""Garbage collection over the whole graph, without clocks.

A collection first writes down what it may take (the record), then moves every branch to a new epoch, then looks again
at who refers to what, and only then removes things. A writer that staged before the epoch loses its race to the epoch's
commit and stages again; a file made after the first listing is not in it; a name made meanwhile is either seen here or
its maker sees the record. What another collection takes meanwhile is missed, and then this one starts over. So no
interleaving loses data, and no waiting time is assumed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from omnigraph.core import layout
from omnigraph.core.branches import Ref, live_refs
from omnigraph.core.clock import commit_time
from omnigraph.core.leases import (
    is_expired,
    newest_record,
    pruned,
    remove_plan,
    stored_plans,
)
from omnigraph.core.publisher import Outcome, create
from omnigraph.core.records import (
    ChainObject,
    Commit,
    GcRecord,
    Recent,
    Seal,
    Tombstone,
    buried,
    encode,
)
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import table_ref
from omnigraph.errors import (
    CommitUnknown,
    Corrupt,
    ObjectExists,
    RetriesExhausted,
    StoreOutcomeUnknown,
)
from omnigraph.model.names import MAIN
from omnigraph.storage import metrics
from omnigraph.storage.objects import ObjectInfo, numbered
from omnigraph.storage.tables import TableRef

DERIVED = "_topology"  # files made from a table, named after it; they go when it goes
DATA_FOLDERS = ("nodes", "edges", "_tmp", DERIVED)


@dataclass(frozen=True, slots=True)
class Retention:
    """How much history stays readable: the newest `keep` commits of each branch, and all that are young enough."""

    keep: int = 10
    younger_than: int | None = None  # microseconds since 1970; commits from then on stay
    chain: str | None = None  # prune the history of this chain alone


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collection did, or would do."""

    epoch: int
    commits_pruned: int
    objects_deleted: int
    bytes_deleted: int
    dry_run: bool = False


class SurveyOutdated(Exception):
    """A newer collection has taken something that this one would keep."""


@dataclass(slots=True)
class Survey:
    """What there is before anything is decided."""

    objects: list[ObjectInfo]
    chains: tuple[str, ...]  # listed before the refs: a chain here without a ref there is dead
    plans: dict[str, tuple[str, ...]]  # plan -> tables it holds
    expired: list[str]  # plans of operations that died
    refs: list[Ref]
    heads: dict[str, Commit] = field(default_factory=dict)  # live chains
    unfinished: list[Ref] = field(default_factory=list)


def collect(repo: Repository, retention: Retention, *, dry_run: bool = False) -> Collected:
    """One collection. Safe beside any number of writers, readers and other collections."""
    missing = ""
    for attempt in range(repo.limits.publish_attempts_max):
        try:
            return _collect(repo, retention, dry_run=dry_run)
        except SurveyOutdated:
            pass
        except Corrupt as error:
            if _is_damage(str(error), missing):
                raise
            missing = str(error)
            repo.chains.forget_all()
        repo.back_off(attempt)
    raise RetriesExhausted("other collections kept taking what this one would keep")


def _is_damage(missing: str, before: str) -> bool:
    """Whether the same is missing again: what one survey misses may have been taken by another collection since."""
    return missing == before


def _collect(repo: Repository, retention: Retention, *, dry_run: bool) -> Collected:
    """The same, once.

    What may be removed follows from a head of each branch, from what the record does not declare, and from their files:
    a later head has the same files, and others that are not in the survey. If any of that is gone when it is looked at,
    nothing follows any more.
    """
    survey = _survey(repo)
    record = _record(repo, survey, retention, newest_record(repo))
    if not dry_run:
        record = _publish_record(repo, survey, retention, record)
        _move_epochs(repo, survey.heads, record)
        _call_off(repo, survey, record)
    later = live_refs(repo)
    if not dry_run:
        made = {ref.state.chain for ref in later if not ref.state.tag} - set(survey.heads)
        _move_epochs(repo, made, record)
    kept = _kept_commits(repo, record, [*survey.refs, *later], survey)
    doomed = _doomed(repo, survey, kept)
    condemned = _prunable(repo, record, kept)
    if not dry_run:
        for commit in condemned:
            _bury(repo, commit)
        _delete(repo, doomed)
        for plan in survey.expired:
            remove_plan(repo, plan)
    return Collected(
        record.epoch, len(condemned), len(doomed), sum(info.size for info in doomed), dry_run
    )


# --- what there is -----------------------------------------------------------------------------------------------


def _survey(repo: Repository) -> Survey:
    objects = [info for folder in DATA_FOLDERS for info in repo.objects.list(folder)]
    chains = repo.objects.folders(layout.CHAINS)
    stored = {plan.plan: plan for plan in stored_plans(repo)}
    expired = [name for name, plan in stored.items() if is_expired(repo, plan)]
    plans = {name: plan.tables for name, plan in stored.items() if name not in expired}
    survey = Survey(objects, chains, plans, expired, live_refs(repo))
    survey.heads[repo.stamp.main_chain] = repo.head(MAIN).commit
    branches = [ref for ref in survey.refs if not ref.state.tag]
    ends = _ends(repo, [ref.state.chain for ref in branches])
    survey.heads |= {chain: end for chain, end in ends.items() if isinstance(end, Commit)}
    survey.unfinished += [ref for ref in branches if ends[ref.state.chain] is None]
    return survey


def _ends(repo: Repository, chains: Iterable[str]) -> dict[str, Commit | Seal | None]:
    """How chains end, now."""
    ordered = sorted(chains)
    tasks = [lambda c=chain: repo.chains.end(c) for chain in ordered]
    return dict(zip(ordered, metrics.parallel(tasks, repo.limits.read_threads_max), strict=True))


# --- the record --------------------------------------------------------------------------------------------------


def _record(
    repo: Repository, survey: Survey, retention: Retention, before: GcRecord | None
) -> GcRecord:
    """Everything this and earlier collections may take."""
    floors = {chain: _floor(repo, head, retention) for chain, head in survey.heads.items()}
    for chain, floor in before.floors.items() if before is not None else ():
        floors[chain] = max(floor, floors.get(chain, 0))
    live = set(survey.heads) | {ref.state.chain for ref in survey.unfinished}
    dead = {chain for chain in survey.chains if chain not in live}
    dead |= set(before.dead) if before is not None else set()
    roots = _roots(repo, survey.refs, survey.heads)
    held = {place for place in roots if not pruned(before, *place)}
    once = roots | {*before.kept, *before.released} if before is not None else roots
    return GcRecord(
        epoch=before.epoch + 1 if before is not None else 1,
        floors=floors,
        dead=tuple(sorted(dead)),
        kept=tuple(sorted(held)),
        released=tuple(place for place in sorted(once - held) if not _is_buried(repo, *place)),
        plans=tuple(sorted(survey.plans)),
        unfinished=tuple(sorted(ref.state.chain for ref in survey.unfinished)),
    )


def _is_buried(repo: Repository, chain: str, number: int) -> bool:
    return isinstance(repo.chains.read(chain, number), Tombstone)


def _floor(repo: Repository, head: Commit, retention: Retention) -> int:
    """The oldest number of a chain that stays because of its age or its place."""
    if retention.chain not in (None, head.chain):
        return 0
    kept = 0
    for number in reversed(range(head.number + 1)):
        found = head if number == head.number else repo.chains.expect(head.chain, number)
        if not isinstance(found, Commit):
            return number + 1
        young = retention.younger_than is not None and found.time >= retention.younger_than
        if kept >= max(retention.keep, 1) and not young:
            return number + 1
        kept += layout.parse_commit_id(found.content)[:2] == (found.chain, found.number)
    return 0


def _roots(
    repo: Repository, refs: Iterable[Ref], heads: Mapping[str, Commit]
) -> set[tuple[str, int]]:
    """Commits outside the retained history that must stay: tags, forks, and the newest merged of each source."""
    found: set[tuple[str, int]] = set()
    for ref in refs:
        state = ref.state
        if state.tag and state.base_number is not None:
            found.add((state.chain, state.base_number))
        elif state.base_number is not None and state.source_chain is not None:
            found.add((state.source_chain, state.base_number))
    for chain, head in heads.items():
        found |= {layout.parse_commit_id(merged)[:2] for merged in head.merged.values()}
        found |= set(_forks(repo, chain))
    return found


def _forks(repo: Repository, chain: str) -> Iterator[tuple[str, int]]:
    """Where a chain was forked, where that one was, and so on: a branch in between may be deleted by now."""
    zero = repo.chains.get(chain, 0)
    while isinstance(zero, Commit | Tombstone) and zero.parents:
        chain, number, _ = layout.parse_commit_id(zero.parents[0])
        yield chain, number
        zero = repo.chains.get(chain, 0)


def _publish_record(
    repo: Repository, survey: Survey, retention: Retention, record: GcRecord
) -> GcRecord:
    for attempt in range(repo.limits.publish_attempts_max):
        try:
            repo.objects.put_new(layout.record_key(record.epoch), encode(record))
            return record
        except (ObjectExists, StoreOutcomeUnknown):
            there = newest_record(repo)
            if there == record:
                return record
            record = _record(repo, survey, retention, there)
            repo.back_off(attempt)
    raise RetriesExhausted("other collections kept taking the next record")


# --- epochs ------------------------------------------------------------------------------------------------------


def _move_epochs(repo: Repository, chains: Iterable[str], record: GcRecord) -> None:
    """Every branch gets a commit of the new epoch, so that whoever staged before it has to look again."""
    tasks = [lambda c=chain: _move_epoch(repo, c, record.epoch) for chain in sorted(chains)]
    metrics.parallel(tasks, repo.limits.read_threads_max)


def _call_off(repo: Repository, survey: Survey, record: GcRecord) -> None:
    """End unfinished creations of branches: those that bring files, which nothing refers to yet, and those that were
    unfinished at the collection before this one, too. Their creators, if there are any, fail cleanly."""
    before = pruned_epoch(repo, record)
    for ref in survey.unfinished:
        if ref.state.writes or ref.state.chain in before:
            create(repo, Seal(ref.state.chain, 0, repo.world.fresh_id(), None, repo.world.now()))


def pruned_epoch(repo: Repository, record: GcRecord) -> frozenset[str]:
    """The chains that were unfinished at the collection before this one."""
    from omnigraph.core.leases import record as read

    return frozenset(read(repo, record.epoch - 1).unfinished) if record.epoch > 1 else frozenset()


def _move_epoch(repo: Repository, chain: str, epoch: int) -> None:
    import msgspec

    for attempt in range(repo.limits.publish_attempts_max):
        head = repo.chains.end(chain)
        if not isinstance(head, Commit) or head.gc_epoch >= epoch:
            return
        following: Commit = msgspec.structs.replace(
            head,
            number=head.number + 1,
            parents=(layout.commit_id(chain, head.number),),
            previous=head.content,
            time=commit_time(repo, head.time),
            kind="epoch",
            gc_epoch=epoch,
            members=(),
            recent=_recent(repo, head),
        )
        outcome = create(repo, following)
        if outcome is Outcome.CREATED:
            return
        if outcome is Outcome.UNKNOWN:
            raise CommitUnknown(
                "the store did not say whether the collection's epoch was published"
            )
        repo.back_off(attempt)
    raise RetriesExhausted(f"other writers kept chain {chain} moving")


def _recent(repo: Repository, head: Commit) -> tuple[Recent, ...]:
    oldest = head.number + 1 - repo.limits.recent_commits
    return tuple(known for known in head.recent if known.number > oldest)


# --- what stays --------------------------------------------------------------------------------------------------


def _kept_commits(
    repo: Repository, record: GcRecord, refs: list[Ref], survey: Survey
) -> dict[tuple[str, int], Commit]:
    """Every commit whose files must stay: the heads of now, retained history, and roots of either listing."""
    chains = set(survey.heads) | {ref.state.chain for ref in refs if not ref.state.tag}
    ends = _ends(repo, chains)
    heads = {chain: end for chain, end in ends.items() if isinstance(end, Commit)}
    wanted = _roots(repo, refs, heads) | set(record.kept)
    for ref in refs:
        source = ref.state.source_chain
        if source is not None and ref.state.base_number is None and ends[ref.state.chain] is None:
            wanted |= _all_numbers(repo, source)  # it is unfinished, and may start from any of them
    for chain, end in ends.items():
        first, last = record.floors.get(chain, 0), -1 if end is None else end.number
        wanted |= {(chain, number) for number in range(first, last + 1)}
    wanted -= {(chain, head.number) for chain, head in heads.items()}
    places = sorted(wanted)
    tasks = [lambda c=chain, n=number: repo.chains.get(c, n) for chain, number in places]
    found = [*metrics.parallel(tasks, repo.limits.read_threads_max), *heads.values()]
    if any(_is_overtaken(record, thing) for thing in found):
        raise SurveyOutdated
    return {(c.chain, c.number): c for c in found if isinstance(c, Commit)}


def _is_overtaken(record: GcRecord, thing: ChainObject | None) -> bool:
    """Whether something is buried that the record does not declare: somebody who read it may have taken it over."""
    return isinstance(thing, Tombstone) and not pruned(record, thing.chain, thing.number)


def _all_numbers(repo: Repository, chain: str) -> set[tuple[str, int]]:
    last = repo.chains.newest(chain)
    return {(chain, number) for number in range((last if last is not None else -1) + 1)}


def _doomed(
    repo: Repository, survey: Survey, kept: dict[tuple[str, int], Commit]
) -> list[ObjectInfo]:
    """The listed objects nothing refers to."""
    versions = {table_ref(entry) for commit in kept.values() for entry in commit.tables.values()}
    needed: dict[str, set[str]] = {}
    tasks = [lambda r=ref: (r, repo.tables.open(r).files()) for ref in sorted(versions, key=_place)]
    for ref, files in metrics.parallel(tasks, repo.limits.read_threads_max):
        needed.setdefault(ref.path, set()).update(files)
    held = {table for tables in survey.plans.values() for table in tables}
    return [info for info in survey.objects if not _is_needed(info.key, needed, held)]


def _place(ref: TableRef) -> tuple[str, int]:
    return ref.path, ref.version


def _is_needed(key: str, needed: dict[str, set[str]], held: set[str]) -> bool:
    folder, name, *rest = key.split("/", 2)
    if folder == DERIVED:
        return name.partition(".")[0] in {path.replace("/", "_") for path in needed}
    table = f"{folder}/{name}"
    if table in held:
        return True
    files = needed.get(table)
    if files is None or not rest:
        return False
    inside = rest[0]
    parts = inside.split("/")
    folders = ("/".join(parts[:i]) + "/" for i in range(1, len(parts)))
    return inside in files or any(name in files for name in folders)


# --- removing ----------------------------------------------------------------------------------------------------


def _prunable(
    repo: Repository, record: GcRecord, kept: dict[tuple[str, int], Commit]
) -> list[Commit]:
    """Commits below their floor or of dead chains, and those that nothing holds below a floor any more.

    In each chain the oldest comes first: whatever interrupts the burying, everything below a tombstone is buried.
    """
    found: list[Commit] = []
    for place in record.released:
        thing = repo.chains.read(*place) if pruned(record, *place) and place not in kept else None
        if isinstance(thing, Commit):
            found.append(thing)
    # what a name written since the survey holds: no record tells of it, so whatever is above it is buried another time
    unnamed = set(kept) - {*record.kept, *record.released}
    for chain, floor in record.floors.items():
        found += _commits_below(repo, chain, floor, kept, unnamed)
    for chain in record.dead:
        last = repo.chains.newest(chain)
        if last is not None:
            found += _commits_below(repo, chain, last + 1, kept, unnamed)
    return list({(commit.chain, commit.number): commit for commit in found}.values())


def _commits_below(
    repo: Repository,
    chain: str,
    floor: int,
    kept: Collection[tuple[str, int]],
    unnamed: Collection[tuple[str, int]],
) -> list[Commit]:
    found: list[Commit] = []
    for number in reversed(range(floor)):
        if (chain, number) in unnamed:
            found.clear()
        if (chain, number) in kept:
            continue
        # A dead chain may be what an unfinished `init` at the same address left behind.
        thing = repo.chains.read(chain, number, of_any_graph=True)
        if isinstance(thing, Tombstone):
            break  # everything below was buried before
        if isinstance(thing, Commit):
            found.append(thing)
    return found[::-1]


def _bury(repo: Repository, commit: Commit) -> None:
    """Replace a commit by its tombstone. It is never removed: its number must not become free again."""
    where = numbered(layout.chain_folder(commit.chain), commit.number)
    repo.objects.put(where, encode(buried(commit)))
    repo.chains.forget(commit.chain, commit.number)


def _delete(repo: Repository, doomed: list[ObjectInfo]) -> None:
    for start in range(0, len(doomed), 1000):
        repo.objects.delete([info.key for info in doomed[start : start + 1000]])
