"""What must be true in every state of the model, in words."""

from __future__ import annotations

from tests.model.explorer import Store, Told
from tests.model.protocol import NO_RECORD, Commit, Place, Record, live


def invariant(store: Store, told: Told) -> str | None:
    """The first promise that does not hold, in words."""
    commits = {key[1:]: thing for key, thing in store.items() if key[0] == "c"}
    return (
        _history(commits, told)
        or _completeness(store, commits)
        or _contents(store, commits, told)
        or _names(store, commits, told)
    )


def _history(commits: dict[Place, Commit], told: Told) -> str | None:
    operations = [
        c.operation for c in commits.values() if c.kind in ("data", "tomb") and c.operation
    ]
    if len(operations) != len(set(operations)):
        return "an operation is in the history twice"
    for fact in told:
        if fact[0] == "op" and fact[2] == "failed" and fact[1] in operations:
            return "an operation was reported as failed and is in the history"
        if fact[0] == "op" and fact[2] == "ok" and fact[1] not in operations:
            return "an operation was acknowledged and is not in the history"
    for chain, number in commits:
        if number and (chain, number - 1) not in commits:
            return "a chain has a gap"
        if number and commits[chain, number - 1].kind == "seal":
            return "a chain goes on after its seal"
    return None


def _newest_record(store: Store) -> Record:
    epochs = [key[1] for key in store if key[0] == "gc"]
    record: Record = store["gc", max(epochs)] if epochs else NO_RECORD
    return record


def _whole(store: Store, commit: Commit) -> bool:
    return all(("f", file) in store for _, files in commit.tables for file in files)


def _completeness(store: Store, commits: dict[Place, Commit]) -> str | None:
    """A commit has its files, or is declared pruned where the next collection will find and bury it."""
    record = _newest_record(store)
    for place, commit in commits.items():
        if commit.kind in ("seal", "tomb") or _whole(store, commit):
            continue
        if not record.declares(place):
            return "a commit nobody pruned has lost files"
        above = range(place[1], dict(record.floors).get(place[0], 10**6))
        hidden = any(commits.get((place[0], n), commit).kind == "tomb" for n in above if n < 100)
        if hidden and place not in record.released:
            return "a commit has lost files, and no collection will ever bury it"
    return None


def _contents(store: Store, commits: dict[Place, Commit], told: Told) -> str | None:
    failed = {fact[1].lower() for fact in told if fact[0] == "op" and fact[2] == "failed"}
    for (chain, number), commit in commits.items():
        if commit.kind in ("seal", "tomb") or not _whole(store, commit):
            continue
        rows = {t: [r for f in files for r in store["f", f]] for t, files in commit.tables}
        nodes = [row[0] for row in rows.get("N", ())]
        if failed & set(nodes):
            return "a write was reported as failed and its row is there"
        if len(nodes) != len(set(nodes)):
            return "a commit shows a row twice"
        if any(not {edge[1], edge[2]} <= set(nodes) for edge in rows.get("E", ())):
            return "a commit shows an edge without its nodes"
        before = commits.get((chain, number - 1))
        if (
            commit.kind in ("data", "room")
            and before is not None
            and before.tables
            and _whole(store, before)
        ):
            lost = {r[0] for f in before.files("N") for r in store["f", f]} - set(nodes)
            if lost - {commit.operation.removeprefix("drop ")} and "reset" not in commit.operation:
                return "a commit lost rows nobody dropped"
    return None


def _names(store: Store, commits: dict[Place, Commit], told: Told) -> str | None:
    names = live((key, state) for key, state in store.items() if key[0] == "ref")
    for name, state in names.items():
        place = (state.chain, state.number or 0)
        if state.kind == "tag" and ("tag", name, "ok") in told and commits[place].kind == "tomb":
            return "a tag shows a commit that was pruned"
        ends = [number for chain, number in commits if chain == state.chain]
        head = commits[state.chain, max(ends)] if ends and state.kind == "branch" else None
        if head is None or head.kind == "seal":
            continue
        if head.kind == "tomb" or not _whole(store, head):
            return "the head of a branch was pruned"
        if _newest_record(store).declares((state.chain, max(ends))):
            return "the head of a branch is given up"
    ended = {fact[1] for fact in told if fact[0] == "deleted"}
    for fact in told:
        if fact[0] == "branch" and fact[2] == "ok" and fact[3] not in ended:
            own = names.get(fact[1])
            sealed = any(c.kind == "seal" for p, c in commits.items() if p[0] == fact[3])
            if not sealed and (own is None or own.chain != fact[3]):
                return "a branch was acknowledged and its name leads elsewhere"
    for chain in ended:
        if not any(c.kind == "seal" for p, c in commits.items() if p[0] == chain):
            return "a branch was deleted and its chain is open"
    return None
