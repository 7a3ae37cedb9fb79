"""Garbage collection over the whole graph, without clocks.

A collection first records what it may remove (the record), then moves every branch to a new epoch, then looks again at
what refers to what, and only then removes objects. A writer that staged before the epoch loses its race to the epoch's
commit and stages again; a file created after the first listing is not in it; a name created meanwhile is either seen
here or its creator sees the record. If another collection removes something meanwhile, this one notices and starts
over. So no interleaving loses data, and no waiting time is assumed.

Whatever a record declares is gone for all readers, so files are removed first, a thousand per request; then the commit
objects are replaced by tombstones, as many as time allows, and the next collection continues where this one stopped.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec

from omnigraph.core import layout
from omnigraph.core.branches import Ref, live_refs
from omnigraph.core.clock import NEVER, Deadline
from omnigraph.core.leases import (
    is_expired,
    newest_record,
    pruned,
    remove_plan,
    stored_plans,
)
from omnigraph.core.leases import (
    record as read_record,
)
from omnigraph.core.publisher import Outcome, create
from omnigraph.core.records import (
    ChainObject,
    Commit,
    GcRecord,
    Member,
    Seal,
    Tombstone,
    buried,
    encode,
)
from omnigraph.core.repository import Repository
from omnigraph.core.room import following
from omnigraph.core.snapshot import Snapshot, table_ref
from omnigraph.errors import (
    CommitUnknown,
    Corrupt,
    ObjectExists,
    OptionInvalid,
    RetriesExhausted,
    StoreOutcomeUnknown,
)
from omnigraph.model.frozen import frozen
from omnigraph.model.names import MAIN
from omnigraph.read.search.storing import text_suffixes
from omnigraph.storage import metrics
from omnigraph.storage.objects import ObjectInfo, numbered
from omnigraph.storage.tables import TableRef

FROM_TABLES = "_topology"  # files derived from a table and named after it; removed with it
FROM_FILES = "_search"  # folders named after a table, with files derived from its data files and named after those
MANIFESTS = "/_versions/"  # one for each version of a table
DATA_FOLDERS = ("nodes", "edges", "_tmp", FROM_TABLES, FROM_FILES)
DELETED_AT_ONCE = 1000  # files, in one request if the store supports it
PAGE_COMMITS = 64


@frozen
class Retention:
    """How much history stays readable: the newest `keep` commits of each branch, and all that are recent enough."""

    keep: int = 10
    younger_than: int | None = None  # microseconds since 1970; commits from then on stay
    chain: str | None = None  # prune only the history of this chain
    tombstones_max: int | None = None  # how many pruned commits are replaced this time; None: all


def retained(repo: Repository, keep: int, days: float | None) -> Retention:
    """The history to keep: `keep` commits of each branch, and all younger than `days`. The limits bound how many
    commits are replaced by tombstones."""
    if keep < 1:
        raise OptionInvalid(f"keep must be at least 1, got {keep}")
    young = None if days is None else repo.clock.now() - int(days * 86_400_000_000)
    return Retention(keep, young, tombstones_max=repo.limits.tombstones_max)


@frozen
class CollectedTable:
    """What a collection removed, or would remove, of the table of one type."""

    type: str  # node:Person; for a dropped type, the folder
    objects: int
    bytes: int
    versions: int


@frozen
class Collected:
    """What a collection did, or would do."""

    epoch: int
    commits_pruned: int
    objects_deleted: int
    bytes_deleted: int
    dry_run: bool = False
    left: tuple[tuple[str, int], ...] = ()  # pruned commits still to be replaced by tombstones
    tables: tuple[CollectedTable, ...] = ()

    @property
    def pending(self) -> int:
        return len(self.left)


class SurveyOutdated(Exception):
    """A newer collection has removed something that this one would keep."""


@dataclass(slots=True)
class Survey:
    """The state of the graph before anything is decided."""

    objects: list[ObjectInfo]
    chains: tuple[str, ...]  # listed before the refs: a chain here without a ref is dead
    plans: dict[str, tuple[str, ...]]  # plan -> tables it holds
    expired: list[str]  # plans of operations that died
    refs: list[Ref]
    heads: dict[str, Commit] = field(default_factory=dict)  # live chains
    unfinished: list[Ref] = field(default_factory=list)


def collect(
    repo: Repository, retention: Retention, *, dry_run: bool = False, deadline: Deadline = NEVER
) -> Collected:
    """One collection. Safe with any number of concurrent writers, readers and other collections.

    It may be interrupted anywhere; the next one continues.
    """
    missing = ""
    for attempt in range(repo.limits.publish_attempts_max):
        try:
            return _collect(repo, retention, deadline, dry_run=dry_run)
        except SurveyOutdated:
            pass
        except Corrupt as error:
            if _is_damage(error.message, missing):
                raise
            missing = error.message
            repo.chains.forget_all()
        repo.back_off(attempt)
    raise RetriesExhausted("other collections kept removing what this one would keep")


def _is_damage(missing: str, before: str) -> bool:
    """Whether the same object is missing again: another collection may have removed what one survey misses."""
    return missing == before


def _collect(
    repo: Repository, retention: Retention, deadline: Deadline, *, dry_run: bool
) -> Collected:
    """One attempt.

    What may be removed follows from a head of each branch, from what the record does not declare, and from their files:
    a later head has the same files, and others that are not in the survey. If any of these no longer exist when read,
    the conclusion does not hold.
    """
    metrics.progress("looking for unneeded files")
    survey = _survey(repo)
    before = newest_record(repo)
    record = _record(repo, survey, retention, before)
    deadline.check()
    if not dry_run:
        record = _publish_record(repo, survey, retention, record)
        before = read_record(repo, record.epoch - 1) if record.epoch > 1 else None
        _move_epochs(repo, survey.heads, record)
        _call_off(repo, survey, record)
    later = live_refs(repo)
    if not dry_run:
        made = {ref.state.chain for ref in later if not ref.state.tag} - set(survey.heads)
        _move_epochs(repo, made, record)
    kept = _kept_commits(repo, record, [*survey.refs, *later], survey)
    doomed = _doomed(repo, survey, record, kept)
    prunable = _prunable(record, kept)
    now = prunable[: retention.tombstones_max]
    if not dry_run:
        _delete(repo, doomed, deadline)
        bury(repo, now, deadline)
        for plan in survey.expired:
            remove_plan(repo, plan)
    return Collected(
        record.epoch,
        _newly_pruned(before, record, kept),
        len(doomed),
        sum(info.size for info in doomed),
        dry_run,
        tuple(prunable[len(now) :]),
        tuple(_by_table(doomed, survey.heads.values())),
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
    """Everything this and earlier collections may remove."""
    floors = {chain: _floor(repo, head, retention) for chain, head in survey.heads.items()}
    for chain, floor in before.floors.items() if before is not None else ():
        floors[chain] = max(floor, floors.get(chain, 0))
    live = set(survey.heads) | {ref.state.chain for ref in survey.unfinished}
    dead = {chain for chain in survey.chains if chain not in live}
    dead |= set(before.dead) if before is not None else set()
    unknown = sorted(dead - floors.keys())
    tasks = [partial(_end_of_dead, repo, chain) for chain in unknown]
    ends = metrics.parallel(tasks, repo.limits.read_threads_max)
    floors |= dict(zip(unknown, ends, strict=True))
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
        buried=_buried_below(repo, before) if before is not None else {},
    )


def _end_of_dead(repo: Repository, chain: str) -> int:
    """The number below which everything of a dead chain may be removed: that of its seal, if it has one.

    One without a seal may be left over from an unfinished `init` at the same address.
    """
    last = repo.chains.newest(chain)
    if last is None:
        return 0
    return last + (not isinstance(repo.chains.read(chain, last, of_any_graph=True), Seal))


def _buried_below(repo: Repository, before: GcRecord) -> dict[str, int]:
    """Per chain the number below which earlier collections have replaced all commits not held."""
    found, held = dict(before.buried), {*before.kept, *before.released}
    for chain, floor in before.floors.items():
        first = found.get(chain, 0)
        numbers = [number for number in range(first, floor) if (chain, number) not in held]
        found[chain] = _first_unburied(repo, chain, numbers) if numbers else floor
    return found


def _first_unburied(repo: Repository, chain: str, numbers: list[int]) -> int:
    """The oldest commit that was not replaced yet.

    Collections begin with the oldest, so a binary search finds it; only commits replaced in parallel may be out of
    order.
    """

    def is_left(number: int) -> bool:
        return not _is_buried(repo, chain, number)

    at = bisect_left(numbers, True, key=is_left)
    beside = numbers[max(0, at - repo.limits.read_threads_max) : at]
    tasks = [partial(is_left, number) for number in beside]
    left = metrics.parallel(tasks, repo.limits.read_threads_max)
    return next(
        (n for n, is_it in zip(beside, left, strict=True) if is_it), [*numbers, numbers[-1] + 1][at]
    )


def _is_buried(repo: Repository, chain: str, number: int) -> bool:
    return not isinstance(repo.chains.read(chain, number, of_any_graph=True), Commit)


def _floor(repo: Repository, head: Commit, retention: Retention) -> int:
    """The oldest number of a chain that is kept because of its age or its position."""
    if retention.chain not in (None, head.chain):
        return 0
    floor = _by_place(repo, head, max(retention.keep, 1))
    if retention.younger_than is not None:
        numbers = range(floor)
        floor = bisect_left(
            numbers,
            retention.younger_than,
            key=lambda number: repo.chains.expect(head.chain, number).time,
        )
    return floor


def _by_place(repo: Repository, head: Commit, keep: int) -> int:
    """The number of the oldest of the newest `keep` commits that have content."""
    last, kept = head.number, 0
    while last >= 0 and keep <= head.number:
        first = max(0, last + 1 - min(keep, PAGE_COMMITS))
        for thing in reversed(repo.chains.range(head.chain, first, last)):
            if not isinstance(thing, Commit):
                return thing.number + 1
            kept += layout.parse_commit_id(thing.content)[:2] == (thing.chain, thing.number)
            if kept == keep:
                return thing.number
        last = first - 1
    return 0


def _roots(
    repo: Repository, refs: Iterable[Ref], heads: Mapping[str, Commit]
) -> set[tuple[str, int]]:
    """Commits outside the retained history that must be kept: tags, forks, and the newest merged of each source."""
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
    """Where a chain was forked, and its origin, and so on: a branch in between may have been deleted."""
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
    """Give every branch a commit of the new epoch, so that writers that staged before it must check again."""
    tasks = [lambda c=chain: _move_epoch(repo, c, record.epoch) for chain in sorted(chains)]
    metrics.parallel(tasks, repo.limits.read_threads_max)


def _call_off(repo: Repository, survey: Survey, record: GcRecord) -> None:
    """End unfinished creations of branches: those with files, which nothing refers to yet, and those already
    unfinished at the previous collection. Their creators, if still running, fail cleanly."""
    before = pruned_epoch(repo, record)
    for ref in survey.unfinished:
        if ref.state.writes or ref.state.chain in before:
            create(repo, Seal(ref.state.chain, 0, repo.clock.fresh_id(), None, repo.clock.now()))


def pruned_epoch(repo: Repository, record: GcRecord) -> frozenset[str]:
    """The chains that were unfinished at the previous collection."""
    earlier = read_record(repo, record.epoch - 1).unfinished if record.epoch > 1 else ()
    return frozenset(earlier)


def _move_epoch(repo: Repository, chain: str, epoch: int) -> None:
    for attempt in range(repo.limits.publish_attempts_max):
        head = repo.chains.end(chain)
        if not isinstance(head, Commit) or head.gc_epoch >= epoch:
            return
        member = Member("epoch", repo.clock.fresh_id(), message=f"cleanup {epoch}")
        next_one = following(repo, head, "epoch", gc_epoch=epoch)
        outcome = create(repo, msgspec.structs.replace(next_one, members=(member,)))
        if outcome is Outcome.CREATED:
            return
        if outcome is Outcome.UNKNOWN:
            raise CommitUnknown(
                "the store did not say whether the collection's epoch was published"
            )
        repo.back_off(attempt)
    raise RetriesExhausted(f"other writers kept chain {chain} moving")


# --- what stays --------------------------------------------------------------------------------------------------


def _kept_commits(
    repo: Repository, record: GcRecord, refs: list[Ref], survey: Survey
) -> dict[tuple[str, int], Commit]:
    """Every commit whose files must be kept: the current heads, retained history, and roots of either listing."""
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
    """Whether something is buried that the record does not declare: a newer collection has overtaken this one."""
    return isinstance(thing, Tombstone) and not pruned(record, thing.chain, thing.number)


def _all_numbers(repo: Repository, chain: str) -> set[tuple[str, int]]:
    last = repo.chains.newest(chain)
    return {(chain, number) for number in range((last if last is not None else -1) + 1)}


def _doomed(
    repo: Repository, survey: Survey, record: GcRecord, kept: dict[tuple[str, int], Commit]
) -> list[ObjectInfo]:
    """The listed objects nothing refers to.

    An object held by a name although the record declares it may be missing: the name came too late. Anything else
    missing was removed by another collection since, or is damage.
    """
    certain = {
        table_ref(entry)
        for place, commit in kept.items()
        if not pruned(record, *place)
        for entry in commit.tables.values()
    }
    others: dict[TableRef, dict[str, tuple[Commit, str]]] = {}  # by version and schema, one state
    for commit in kept.values():
        for table_id, entry in commit.tables.items():
            others.setdefault(table_ref(entry), {})[commit.schema] = (commit, table_id)
    needed: dict[str, set[str]] = {}
    tasks = [
        lambda r=ref: _files(repo, r, others[r].values(), r in certain)
        for ref in sorted(others, key=_place)
    ]
    for path, files in metrics.parallel(tasks, repo.limits.read_threads_max):
        needed.setdefault(path, set()).update(files)
    held = {table for tables in survey.plans.values() for table in tables}
    return [info for info in survey.objects if not _is_needed(info.key, needed, held)]


def _by_table(doomed: list[ObjectInfo], heads: Iterable[Commit]) -> Iterator[CollectedTable]:
    """What is removed of each table, by the current name of its type."""
    entries = (entry for head in heads for entry in head.tables.values())
    names = {entry.path: f"{entry.kind}:{entry.type_name}" for entry in entries}
    found: dict[str, list[ObjectInfo]] = {path: [] for path in names}
    for info in doomed:
        folder, _, rest = info.key.partition("/")
        if folder in ("nodes", "edges"):
            found.setdefault(f"{folder}/{rest.partition('/')[0]}", []).append(info)
    for path, taken in sorted(found.items(), key=lambda item: names.get(item[0], item[0])):
        versions = sum(MANIFESTS in info.key for info in taken)
        size = sum(info.size for info in taken)
        yield CollectedTable(names.get(path, path), len(taken), size, versions)


def _files(
    repo: Repository, ref: TableRef, states: Iterable[tuple[Commit, str]], certain: bool
) -> tuple[str, frozenset[str]]:
    """The files of a table version, and how the names of files derived from them may end."""
    try:
        derived = (_suffixes(repo.snapshot(commit), table_id) for commit, table_id in states)
        return ref.path, repo.tables.open(ref).files().union(*derived)
    except Corrupt:
        if certain:
            raise
        return ref.path, frozenset()


def _suffixes(snapshot: Snapshot, table_id: str) -> frozenset[str]:
    kinds = (kind for kind in snapshot.catalog.entities() if kind.table_id == table_id)
    return frozenset().union(*(text_suffixes(snapshot, kind) for kind in kinds))


def _place(ref: TableRef) -> tuple[str, int]:
    return ref.path, ref.version


def _is_needed(key: str, needed: dict[str, set[str]], held: set[str]) -> bool:
    folder, name, *rest = key.split("/", 2)
    if folder == FROM_TABLES:
        return name.partition(".")[0].replace("_", "/", 1) in needed
    derived = folder == FROM_FILES
    table = name.replace("_", "/", 1) if derived else f"{folder}/{name}"
    if table in held:
        return True
    files = needed.get(table)
    if files is None or not rest:
        return False
    if derived:
        data, _, suffix = rest[0].partition(".")
        return f"data/{data}.lance" in files and suffix in files
    inside = rest[0]
    parts = inside.split("/")
    folders = ("/".join(parts[:i]) + "/" for i in range(1, len(parts)))
    return inside in files or any(name in files for name in folders)


# --- removing ----------------------------------------------------------------------------------------------------


def _newly_pruned(
    before: GcRecord | None, record: GcRecord, kept: Mapping[tuple[str, int], Commit]
) -> int:
    """How many commits this record declares that the one before it did not."""
    earlier = before.floors if before is not None else {}
    spans = {chain: range(earlier.get(chain, 0), floor) for chain, floor in record.floors.items()}
    held = sum(number in spans.get(chain, ()) for chain, number in kept)
    let_go = set(before.kept if before is not None else ()) - set(record.kept) - set(kept)
    released = sum(pruned(before, c, n) is False and pruned(record, c, n) for c, n in let_go)
    return sum(map(len, spans.values())) - held + released


def _prunable(record: GcRecord, kept: Mapping[tuple[str, int], Commit]) -> list[tuple[str, int]]:
    """Commits below their floor that were not replaced yet, and those no longer held there.

    In each chain the oldest comes first, so that after an interruption everything below a tombstone is buried.
    """
    found = [place for place in record.released if pruned(record, *place) and place not in kept]
    # held by a name written since the survey: no record mentions it, so everything above it is buried next time
    unnamed = set(kept) - {*record.kept, *record.released}
    for chain, floor in sorted(record.floors.items()):
        for number in range(record.buried.get(chain, 0), floor):
            if (chain, number) in unnamed:
                break
            if (chain, number) not in kept:
                found.append((chain, number))
    return list(dict.fromkeys(found))


def _delete(repo: Repository, doomed: list[ObjectInfo], deadline: Deadline) -> None:
    for start in range(0, len(doomed), DELETED_AT_ONCE):
        deadline.check()
        metrics.progress("removing files", start, start / len(doomed))
        repo.objects.delete([info.key for info in doomed[start : start + DELETED_AT_ONCE]])


def bury(repo: Repository, places: Sequence[tuple[str, int]], deadline: Deadline) -> None:
    """Replace commits a collection pruned by tombstones. They are never removed: their numbers must not be reused."""
    beside = repo.limits.read_threads_max
    for start in range(0, len(places), beside):
        deadline.check()
        metrics.progress("replacing commits by tombstones", start, start / len(places))
        some = places[start : start + beside]
        metrics.parallel([partial(_bury_one, repo, *place) for place in some], beside)


def _bury_one(repo: Repository, chain: str, number: int) -> None:
    thing = repo.chains.get(chain, number, of_any_graph=True)
    if isinstance(thing, Commit):
        where = numbered(layout.chain_folder(chain), number)
        repo.objects.put(where, encode(buried(thing)))
        repo.chains.forget(chain, number)
