"""What must be true when the dust has settled, whatever happened before."""

from __future__ import annotations

from collections import Counter

from omnigraph.core import layout
from omnigraph.core.branches import branch_names, live_refs
from omnigraph.core.leases import newest_record, pruned
from omnigraph.core.records import ChainObject, Commit, Seal, Tombstone, operations_of
from omnigraph.core.repository import Repository
from omnigraph.maintenance.collection import Retention, collect
from omnigraph.model.names import MAIN
from tests.sim.actors import ACCOUNTS, START_BALANCE, Log
from tests.sim.reviewing import judge_proposal
from tests.support.verdict import Logged, judged


def judge(repo: Repository, log: Log) -> None:
    """Raise an AssertionError that says what is wrong with the graph, or with what somebody was told."""
    chains = {chain: _chain(repo, chain) for chain in repo.objects.folders(layout.CHAINS)}
    _no_operation_twice(chains)
    _told_the_truth(chains, log)
    _branches_are_readable(repo)
    _acknowledged_branches_exist(chains, log)
    anomalies = judged(repo, Logged(list(log.history.values()), log.names))
    assert not anomalies, f"{anomalies[0]} (and {len(anomalies) - 1} more)"
    _nothing_added_is_lost(repo, chains[repo.stamp.main_chain], log)
    judge_proposal(repo, log)
    _tags_are_readable(repo, log)
    for _ in range(2):
        collect(repo, Retention(keep=2))
    _branches_are_readable(repo)
    _tags_are_readable(repo, log)
    left = collect(repo, Retention(keep=2), dry_run=True)
    assert left.objects_deleted == 0, f"{left.objects_deleted} objects are left over after cleanup"


def _chain(repo: Repository, chain: str) -> list[ChainObject]:
    last = repo.chains.newest(chain)
    numbers = range((last if last is not None else -1) + 1)
    things = [repo.chains.read(chain, number) for number in numbers]
    assert all(thing is not None for thing in things), f"chain {chain} has a gap"
    assert not any(isinstance(thing, Seal) for thing in things[:-1]), (
        f"chain {chain} goes on after its seal"
    )
    return [thing for thing in things if thing is not None]


def _no_operation_twice(chains: dict[str, list[ChainObject]]) -> None:
    counts = Counter(
        operation
        for things in chains.values()
        for thing in things
        if not isinstance(thing, Seal)
        for operation in operations_of(thing)
    )
    twice = [operation for operation, count in counts.items() if count > 1]
    assert not twice, f"operations {twice} are in the history twice"


def _told_the_truth(chains: dict[str, list[ChainObject]], log: Log) -> None:
    """Acknowledged: there, once. Failed: not there. Nothing certain: at most once."""
    seen: Counter[str] = Counter()
    for things in chains.values():
        for thing in things:
            if isinstance(thing, Commit):
                seen.update(str(member.message) for member in thing.members)
    pruned = any(isinstance(thing, Tombstone) for things in chains.values() for thing in things)
    told: dict[str, set[str]] = {}
    for operation in log.operations:
        told.setdefault(operation.name, set()).add(operation.status)
        count = seen[operation.name]
        assert count <= 1, f"{operation.name} was applied {count} times"
        if operation.status == "ok" and operation.commit is not None:
            assert count == 1 or pruned, f"{operation.name} was acknowledged and is not there"
    for name, statuses in told.items():
        if statuses == {"failed"}:
            assert seen[name] == 0, f"{name} was reported as failed and is there"


def _branches_are_readable(repo: Repository) -> None:
    """Every head can be read whole, what it shows obeys every rule, and no collection may ever take what it needs."""
    record = newest_record(repo)
    for branch in branch_names(repo):
        repo.forget(branch)
        head = repo.head(branch).commit
        _check_state(repo, head)
        assert not pruned(record, head.chain, head.number), f"the head of {branch} is given up"
        for place in _to_merge_it(repo, head):
            base = repo.chains.read(*place)
            assert isinstance(base, Commit), f"{branch} cannot be merged: {place} was pruned"
            _check_state(repo, base)


def _to_merge_it(repo: Repository, head: Commit) -> list[tuple[str, int]]:
    """What a merge of a branch is computed from: where it was forked, and what was merged of it last."""
    zero = repo.chains.read(head.chain, 0)
    assert isinstance(zero, Commit | Tombstone)
    merged = repo.head(MAIN).commit.merged.get(head.chain)
    named = [*zero.parents[:1], *([merged] if merged is not None else [])]
    return [layout.parse_commit_id(commit)[:2] for commit in named]


def _check_state(repo: Repository, commit: Commit) -> None:
    snapshot = repo.snapshot(commit)
    people = (
        snapshot.table_of(snapshot.catalog.nodes["Person"]).scan(["id", "email", "age"]).to_pylist()
    )
    ids = [row["id"] for row in people]
    assert len(ids) == len(set(ids)), f"{commit.content} has a key twice"
    mails = [row["email"] for row in people if row["email"] is not None]
    assert len(mails) == len(set(mails)), f"{commit.content} has a unique value twice"
    total = sum(row["age"] for row in people if row["id"] in ACCOUNTS)
    assert total == START_BALANCE * len(ACCOUNTS), (
        f"the accounts of {commit.content} sum up to {total}"
    )
    edges = snapshot.table_of(snapshot.catalog.edges["Knows"]).scan(["src", "dst"]).to_pylist()
    lost = [e for e in edges if not {e["src"], e["dst"]} <= set(ids)]
    assert not lost, f"{commit.content} has edges without their nodes: {lost}"
    cities = snapshot.table_of(snapshot.catalog.nodes["City"]).scan(["id"])["id"].to_pylist()
    assert len(cities) == len(set(cities)), f"{commit.content} shows a row twice"
    for table, entry in commit.tables.items():
        count = snapshot.table(table).count()
        assert count == entry.rows, (
            f"{commit.content} says {entry.rows} rows of {entry.type_name}, there are {count}"
        )


def _nothing_added_is_lost(repo: Repository, main: list[ChainObject], log: Log) -> None:
    """Nothing a commit of main added is lost, nor anything a merge brought."""
    added = {
        member.message
        for thing in main
        if isinstance(thing, Commit)
        for member in thing.members
        if member.message and member.message.startswith(("appender", "retrier", "loader"))
    }
    snapshot = repo.snapshot(repo.head("main").commit)
    cities = set(snapshot.table_of(snapshot.catalog.nodes["City"]).scan(["id"])["id"].to_pylist())
    assert added <= cities, f"rows {sorted(added - cities)} were added and are gone"
    lost = log.merged - cities
    assert not lost, f"rows {sorted(lost)} were merged and are gone"


def _acknowledged_branches_exist(chains: dict[str, list[ChainObject]], log: Log) -> None:
    for name, chain in log.branches_made:
        things = chains.get(chain)
        assert things, f"branch {name} was acknowledged and has no first commit"
        assert chain in log.branches_ended or isinstance(things[-1], Seal | Commit), (
            f"branch {name} was acknowledged and pruned"
        )


def _tags_are_readable(repo: Repository, log: Log) -> None:
    """One that nobody was told of may arrive late, when its commit is pruned already."""
    places = {str(ref.name): ref.state for ref in live_refs(repo) if ref.state.tag}
    for name in sorted(log.tags_made):
        assert name in places, f"tag {name} was acknowledged and is not there"
        state = places[name]
        thing = repo.chains.read(state.chain, state.base_number or 0)
        assert isinstance(thing, Commit), f"tag {name} shows a pruned commit"
        _check_state(repo, thing)
