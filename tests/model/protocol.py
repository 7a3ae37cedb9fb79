"""What the core does, request by request. `rules` holds the rules in force; a rule left out is a mistake on purpose.

Names follow the code: `publish` is core/publisher.py, `create_branch`, `create_tag`, `delete_branch` and `delete_tag`
are core/branches.py, `collect` is maintenance/collection.py, leases are core/leases.py. Keys:

    ("c", chain, n)   commit n of a chain           ("ref", name, k)  k-th state of a name
    ("gc", epoch)     record of a collection        ("plan", id)      lease of a long operation
    ("f", file)       data file: a tuple of rows

A table is a tuple of files. Rows of N are nodes, rows of E are (edge, from, to).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, NamedTuple

from tests.model.explorer import Process, Request

Rules = frozenset[str]
Place = tuple[str, int]


class Commit(NamedTuple):
    kind: str  # data, first, epoch, room (a question), seal or tomb
    operation: str = ""
    epoch: int = 0
    tables: tuple[tuple[str, tuple[str, ...]], ...] = ()
    touched: tuple[tuple[str, frozenset[str]], ...] = ()
    parent: Place | None = None

    def files(self, table: str) -> tuple[str, ...]:
        return dict(self.tables).get(table, ())


class Name(NamedTuple):
    """A state of a name: a branch on a chain, a tag on a commit, or deleted."""

    kind: str
    chain: str = ""
    number: int | None = None  # of the commit a tag or branch starts from, if it is a certain one
    source: str = ""
    writes: bool = False  # its first commit brings files


class Record(NamedTuple):
    epoch: int
    floors: tuple[tuple[str, int], ...]
    dead: frozenset[str]
    kept: frozenset[Place]
    plans: frozenset[str]
    unfinished: frozenset[str]
    released: frozenset[Place]

    def declares(self, place: Place) -> bool:
        """Whether it says that this commit may be gone."""
        chain, number = place
        if place in self.kept:
            return False
        return chain in self.dead or number < dict(self.floors).get(chain, 0)


class Staged(NamedTuple):
    """One table's new version: the files it takes away and adds, and what it rests on."""

    table: str
    removed: tuple[str, ...]
    added: tuple[str, ...]
    touched: frozenset[str]
    read: tuple[tuple[str, frozenset[str]], ...] = ()
    appends: bool = True  # only adds rows, so its files may be put on another version


NO_RECORD = Record(0, (), frozenset(), frozenset(), frozenset(), frozenset(), frozenset())


# --- heads and names (core/repository.py) ------------------------------------------------------------------------


def head_of(name: str) -> Generator[Request, Any, tuple[str, int, Commit, int] | None]:
    """Chain, number and commit of a branch now, and the state of its name; None if there is no such branch."""
    while True:
        state, at = yield from name_state(name)
        if state is None or state.kind != "branch":
            return None
        last = yield ("newest", ("c", state.chain))
        if last is None:
            return None  # never finished
        commit = yield ("get", ("c", state.chain, last))
        if commit is None or commit.kind == "seal":
            return None
        if commit.kind != "tomb":
            return state.chain, last, commit, at


def name_state(name: str) -> Generator[Request, Any, tuple[Name | None, int]]:
    at = yield ("newest", ("ref", name))
    if at is None:
        return None, -1
    state = yield ("get", ("ref", name, at))
    return state, at


def newest_record() -> Generator[Request, Any, Record]:
    epoch = yield ("newest", ("gc",))
    if epoch is None:
        return NO_RECORD
    record = yield ("get", ("gc", epoch))
    return record  # type: ignore[no-any-return]


# --- writing (core/publisher.py, core/stage.py, core/conflicts.py) -----------------------------------------------


def publish(
    rules: Rules,
    me: str,
    branch: str,
    verb: tuple[Any, ...],
    lease: str = "",
    tries: int = 2,
    asks: bool = False,
) -> Process:
    """Run a verb on the head, stage, create the next commit; after a lost race decide by what was missed. With `asks`
    a lost race is enough to ask the others to make room; whether they do is up to them."""
    held: tuple[Staged, int] | None = None  # what was staged under a lease, and in which epoch
    for attempt in range(tries):
        found = yield from head_of(branch)
        if found is None:
            yield ("told", "op", me, "failed")
            return
        chain, number, base, _ = found
        if asks and attempt:  # one that was overtaken asks before it begins again, too
            yield from ask(rules, me, (chain, number), base, base)
            found = yield from head_of(branch)
            if found is None:
                yield ("told", "op", me, "failed")
                return
            chain, number, base, _ = found
        if lease and not (held and (yield from honoured(rules, lease, held[1], base.epoch))):
            held = None
            if not attempt:
                yield ("put", ("plan", lease), "N")  # the table whose files it holds
        if held is None:
            staged = yield from (
                adopt(rules, verb[1], base)
                if verb[0] == "adopt"
                else stage(rules, f"{me}{attempt}", verb, base)
            )
            if staged == "missing":
                yield from overtaken(base)
                continue
            if not isinstance(staged, Staged):
                yield ("told", "op", me, "failed")
                return
            held = (staged, base.epoch) if lease else None
            if lease:
                yield ("put", ("plan", lease), "N")  # a sign of life, whoever removed it meanwhile
        else:
            staged = held[0]
        done = yield from put_on(rules, me, (chain, number), base, staged, lease, asks)
        if done == "missing":
            yield from overtaken(base)
        elif done != "again":
            yield ("told", "op", me, done)
            return
    yield ("told", "op", me, "failed")


def overtaken(base: Commit) -> Generator[Request, Any, None]:
    """A file is missing. If that is no damage, a collection after the base took it."""
    record = yield from newest_record()
    yield ("claim", record.epoch > base.epoch, "a file is missing and no collection took it")


def stage(
    rules: Rules, new: str, verb: tuple[str, ...], base: Commit
) -> Generator[Request, Any, Staged | str | None]:
    """Read the base and write files nobody sees yet; None: the verb refuses, "missing": the base lost its files."""
    what, row = verb[0], verb[1]
    nodes = yield ("rows", base.files("N"))
    if nodes is None:
        return "missing"
    if what == "link":  # an edge between two nodes that must exist
        ends = frozenset(verb[2:])
        if not ends <= {node[0] for node in nodes}:
            return None
        yield ("files", ((f"E{new}", ((row, *verb[2:]),)),))
        touched = frozenset({row}) | (ends if "footprints" in rules else frozenset())
        return Staged("E", (), (f"E{new}",), touched, (("N", ends),))
    if what == "insert":  # swallows the small files before it, as every append does
        if (row,) in nodes:
            return None
        yield ("files", ((f"N{new}", (*nodes, (row,))),))
        if (yield ("rows", base.files("N"))) is None:  # what is there is counted once more
            return "missing"
        return Staged("N", base.files("N"), (f"N{new}",), frozenset({row}))
    if what == "drop":
        edges = yield ("rows", base.files("E"))
        if edges is None:
            return "missing"
        if (row,) not in nodes or any(row in edge for edge in edges):
            return None  # cascades are two tables at once; here the last edge must go first
        yield ("files", ((f"N{new}", tuple(node for node in nodes if node != (row,))),))
        return Staged(
            "N",
            base.files("N"),
            (f"N{new}",),
            frozenset({row}),
            (("E", frozenset({row})),),
            appends=False,
        )
    raise AssertionError(f"no such verb: {what}")


def adopt(rules: Rules, source: Place, base: Commit) -> Generator[Request, Any, Staged | None]:
    """Take over the nodes of another commit; the record is read after the head."""
    there = yield ("get", ("c", *source))
    if there.kind == "tomb":
        return None
    record = yield from newest_record()
    if "nothing declared is taken over" in rules and record.declares(source):
        return None
    return Staged("N", base.files("N"), there.files("N"), frozenset({"*"}), appends=False)


def put_on(
    rules: Rules, me: str, place: Place, base: Commit, staged: Staged, lease: str, asks: bool
) -> Generator[Request, Any, str]:
    """Create the commit on the newest head: "ok", "again" or "unknown"; "missing": that head lost its files."""
    chain, number = place
    head, at = base, number
    while True:
        tables = on(head, staged)
        touched = ((staged.table, staged.touched),)
        commit = Commit("data", me, head.epoch, tables, touched, (chain, at))
        outcome = yield from create(rules, ("c", chain, at + 1), commit)
        if outcome in ("ok", "failed"):
            return outcome
        while True:
            last = yield ("newest", ("c", chain))
            missed = yield from read_missed(chain, number, last)
            if "own operation" in rules and any(thing.operation == me for thing in missed):
                return "ok"
            if outcome == "unknown":
                return "unknown"
            verdict = yield from decide(rules, base, staged, missed, lease)
            if verdict != "on":
                return verdict
            head, at = missed[-1], last
            moved = head.files(staged.table) != base.files(staged.table)
            if moved and (yield ("rows", head.files(staged.table))) is None:
                return "missing"
            if "what was swallowed" in rules and not fits(head, base, staged):
                return "again"
            if moved:
                yield ("files", ())  # a version nobody sees, of the files there are
            asked, asks = asks, False
            if asked:  # on what is judged, so whoever comes first after it may go on
                question, at = yield from ask(rules, me, (chain, last), head, base)
                asked, head = question is None, question or head
            if not asked:
                break


def ask(
    rules: Rules, me: str, place: Place, head: Commit, base: Commit
) -> Generator[Request, Any, tuple[Commit | None, int]]:
    """Create a commit after the head that shows the same and asks for room. What is the head then, and its number; None
    if another commit came first."""
    chain, number = place
    shown = head if "questions show the head" in rules else head._replace(tables=base.tables)
    operation = f"{me} asks {number + 1}" if "questions are no answers" in rules else me
    question = shown._replace(kind="room", operation=operation, touched=(), parent=place)
    outcome = yield from create(rules, ("c", chain, number + 1), question)
    if outcome == "ok":
        return question, number + 1
    if outcome != "taken":
        return head, number
    if "room is no right" not in rules:  # whatever came first
        last = yield ("newest", ("c", chain))
        there = yield ("get", ("c", chain, last))
        if there.kind not in ("seal", "tomb"):
            return (yield from ask(rules, me, (chain, last), there, base))
    return None, number


def read_missed(chain: str, after: int, last: int) -> Generator[Request, Any, list[Commit]]:
    found: list[Commit] = []
    for number in range(after + 1, last + 1):
        thing = yield ("get", ("c", chain, number))
        found.append(thing)
    return found


def on(head: Commit, staged: Staged) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The head's tables with what was staged."""
    kept = tuple(file for file in head.files(staged.table) if file not in staged.removed)
    return tuple(sorted({**dict(head.tables), staged.table: (*kept, *staged.added)}.items()))


def fits(head: Commit, base: Commit, staged: Staged) -> bool:
    if head.files(staged.table) == base.files(staged.table):
        return True
    return staged.appends and set(staged.removed) <= set(head.files(staged.table))


def decide(
    rules: Rules, base: Commit, staged: Staged, missed: list[Commit], lease: str
) -> Generator[Request, Any, str]:
    """What the loser of a race may do: go on with what it staged, run again, or give up."""
    if any(thing.kind == "seal" for thing in missed):
        return "failed"
    if any(thing.kind == "tomb" for thing in missed):
        return "again"
    epoch = missed[-1].epoch
    if "epoch" in rules and epoch != base.epoch:
        kept = lease and (yield from honoured(rules, lease, base.epoch, epoch))
        if not kept:
            return "again"
    concerns = {staged.table: staged.touched}
    for table, facts in staged.read:
        concerns[table] = concerns.get(table, frozenset()) | facts
    for thing in missed:
        for table, facts in thing.touched:
            if facts & concerns.get(table, frozenset()):
                return "again"
    return "on"


def create(rules: Rules, key: tuple[Any, ...], thing: Commit) -> Generator[Request, Any, str]:
    """Create a chain object; an unanswered create is repeated at the same number until that number is taken."""
    for _ in range(2):
        answer = yield ("create", key, thing)
        if answer != "unknown":
            return "taken" if answer == "exists" else "ok"
        if "same number again" not in rules:
            return "failed"
        there = yield ("get", key)
        if there is not None:
            return "taken"
    return "unknown"


def honoured(rules: Rules, lease: str, since: int, now: int) -> Generator[Request, Any, bool]:
    """Whether every collection since a staging named the lease."""
    if "leases in records" not in rules:
        plan = yield ("get", ("plan", lease))
        return plan is not None
    for epoch in range(since + 1, now + 1):
        record = yield ("get", ("gc", epoch))
        if lease not in record.plans:
            return False
    return True


def give_up_lease(lease: str) -> Process:
    """An operator, or a collection to which the operation was silent for too long."""
    yield ("delete", (("plan", lease),))


# --- names (core/branches.py) ------------------------------------------------------------------------------------


def create_branch(
    rules: Rules, me: str, name: str, source: str, back: int = 0, write: tuple[str, ...] = ()
) -> Process:
    """Write the name, then finish what it stands for."""
    found = yield from head_of(source)
    if found is None:
        yield ("told", "branch", name, "failed", me)
        return
    chain, number = f"{name}.{me}", found[1] - back if back else None
    state = Name("branch", chain, number, found[0], bool(write))
    at = yield from claim_name(rules, name, state)
    if at is None:
        yield ("told", "branch", name, "failed", me)
        return
    yield from finish_branch(rules, me, name, at, state, source, write)


def finish_branch(
    rules: Rules,
    me: str,
    name: str,
    at: int,
    state: Name,
    source: str,
    write: tuple[str, ...] = (),
) -> Generator[Request, Any, None]:
    """Look at what a named branch starts from and at the newest record, then create its commit 0."""
    chain = state.chain
    start = yield from starting_point(source, state.source, state.number)
    record = NO_RECORD
    if "look at the record" in rules:
        record = yield from newest_record()
    staged: Staged | str | None = "nothing"
    if start is not None and write:
        staged = yield from stage(rules, me, write, start[1])
    if start is None or record.declares(start[0]) or staged in (None, "missing"):
        yield ("create", ("c", chain, 0), Commit("seal", me))
        yield ("create", ("ref", name, at + 1), Name("deleted", chain))
        yield ("told", "branch", name, "failed", me)
        return
    place, commit = start
    tables = on(commit, staged) if isinstance(staged, Staged) else commit.tables
    first = commit._replace(kind="first", operation="", tables=tables, touched=(), parent=place)
    outcome = yield from create(rules, ("c", chain, 0), first)
    if outcome == "taken":
        there = yield ("get", ("c", chain, 0))
        outcome = "failed" if there.kind == "seal" else "ok"
    yield ("told", "branch", name, outcome, chain)


def starting_point(
    source: str, chain: str, number: int | None
) -> Generator[Request, Any, tuple[Place, Commit] | None]:
    if number is not None:
        commit = yield ("get", ("c", chain, number))
        return ((chain, number), commit) if commit.kind not in ("tomb", "seal") else None
    found = yield from head_of(source)
    return None if found is None else ((found[0], found[1]), found[2])


def claim_name(rules: Rules, name: str, state: Name) -> Generator[Request, Any, int | None]:
    """Create the next state of a name; None if the name is in use."""
    at = 0
    for _ in range(4):
        answer = yield ("create", ("ref", name, at), state)
        if answer == "ok":
            return at
        there, newest = yield from name_state(name)
        if there is None:
            continue
        if there == state:
            return newest
        if there.kind == "tag" or (
            there.kind == "branch" and (yield from alive(rules, there.chain))
        ):
            return None
        at = newest + 1
    return None


def alive(rules: Rules, chain: str) -> Generator[Request, Any, bool]:
    """Whether the chain of a name is in use; a creation that was never finished is called off."""
    last = yield ("newest", ("c", chain))
    if last is None:
        if "call off" not in rules:
            return False
        yield ("create", ("c", chain, 0), Commit("seal", "called off"))
        last = 0
    there = yield ("get", ("c", chain, last))
    return there is None or there.kind != "seal"


def delete_branch(rules: Rules, me: str, name: str) -> Process:
    """Seal the chain, then end the name."""
    found = yield from head_of(name)
    if found is None:
        return
    chain, number, _, at = found
    while "seal" in rules:
        answer = yield ("create", ("c", chain, number + 1), Commit("seal", me))
        if answer == "ok":
            break
        number = yield ("newest", ("c", chain))
        there = yield ("get", ("c", chain, number))
        if there.kind == "seal":
            break
    yield from end_name(name, at, chain)
    yield ("told", "deleted", chain)


def end_name(name: str, at: int, chain: str) -> Generator[Request, Any, None]:
    answer = "unknown"
    while answer == "unknown":
        answer = yield ("create", ("ref", name, at + 1), Name("deleted", chain))


def create_tag(rules: Rules, me: str, name: str, branch: str, back: int = 0) -> Process:
    """Write the name, then look at the newest record."""
    found = yield from head_of(branch)
    if found is None:
        return
    chain, number = found[0], found[1] - back
    at = yield from claim_name(rules, name, Name("tag", chain, number))
    if at is None:
        yield ("told", "tag", name, "failed")
        return
    if "look at the record" in rules:
        record = yield from newest_record()
        there = yield ("get", ("c", chain, number))
        if record.declares((chain, number)) or there.kind == "tomb":
            yield from end_name(name, at, chain)
            yield ("told", "tag", name, "failed")
            return
    yield ("told", "tag", name, "ok")


def delete_tag(name: str) -> Process:
    state, at = yield from name_state(name)
    if state is not None and state.kind == "tag":
        yield from end_name(name, at, state.chain)


# --- collecting (maintenance/collection.py) ---------------------------------------------------------------------------


def live(names: Iterable[tuple[Any, Name]]) -> dict[str, Name]:
    """The newest state of every name in use."""
    newest: dict[str, tuple[int, Name]] = {}
    for (_, name, number), state in names:
        if name not in newest or newest[name][0] < number:
            newest[name] = (number, state)
    return {name: state for name, (_, state) in newest.items() if state.kind != "deleted"}


def collect(rules: Rules, me: str, keep: int = 1, tries: int = 3) -> Process:
    """Once; and again while something is missing that another collection may have taken."""
    before: tuple[str, ...] = ()
    for _ in range(tries):
        missing = yield from _collect(rules, keep)
        if not missing:
            return
        yield ("claim", missing != before, "a collection takes what another took for damage")
        before = missing


def _collect(rules: Rules, keep: int) -> Generator[Request, Any, tuple[str, ...]]:
    """List, write down what may go, move the epochs, look again, remove, bury. What is missing, if anything is."""
    listed = yield ("list", ("f",))
    there = yield ("folders", ("c",))  # before the names: a chain without a name is dead
    plans = yield ("list", ("plan",))
    names = live((yield ("list", ("ref",))))
    chains = yield from read_chains(rules, sorted(_chains_of(names)))
    record = yield from write_record(rules, there, names, chains, plans, keep)
    if "epoch" in rules:
        yield from move_epochs(rules, chains, record)
    yield from call_off(rules, names, record)
    if "list first" not in rules:
        listed = yield ("list", ("f",))
    later = names
    if "look twice" in rules:
        later = live((yield ("list", ("ref",))))
    if "epochs of new names" in rules:
        made = sorted(_chains_of(later) - set(chains))
        yield from move_epochs(rules, dict.fromkeys(made), record)
    ends = yield from read_chains(rules, sorted(_chains_of(names) | _chains_of(later)))
    listing = yield ("list", ("c",))
    commits = {key[1:]: thing for key, thing in listing if not beyond(ends, key[1:])}
    commits |= {(chain, end[0]): end[1] for chain, end in ends.items() if end is not None}
    wanted = reached(record, [names, later], ends, commits)
    kept = {place for place in wanted if commits[place].kind not in ("seal", "tomb")}
    buried = {place for place in wanted if commits[place].kind == "tomb"}
    if "newer collections" in rules and any(not record.declares(place) for place in buried):
        return tuple(f"tomb {place}" for place in sorted(buried))
    missing: tuple[str, ...] = yield ("missing", tuple(sorted(files_of(kept, commits))))
    broken = {place for place in kept if files_of([place], commits) & set(missing)}
    if "start over" in rules and any(not record.declares(place) for place in broken):
        return missing
    kept -= broken  # what is declared was taken before, and a name that leads there came too late
    needed = {("f", file) for file in files_of(kept, commits)}
    commits = {key[1:]: thing for key, thing in (yield ("list", ("c",)))}
    doomed = condemned(rules, record, commits, kept)
    spared = needed | {key for key, _ in listed if key[1][0] in {table for _, table in plans}}
    yield ("delete", tuple(key for key, _ in listed if key not in spared))
    for place in doomed:
        remembered = commits[place].operation if "tombs remember" in rules else ""
        yield ("put", ("c", *place), Commit("tomb", remembered, parent=commits[place].parent))
    return ()


def _chains_of(names: dict[str, Name]) -> set[str]:
    return {state.chain for state in names.values() if state.kind == "branch"}


def read_chains(
    rules: Rules,
    chains: Iterable[str],
) -> Generator[Request, Any, dict[str, tuple[int, Commit] | None]]:
    found: dict[str, tuple[int, Commit] | None] = {}
    for chain in chains:
        found[chain] = yield from read_chain(rules, chain)
    return found


def read_chain(rules: Rules, chain: str) -> Generator[Request, Any, tuple[int, Commit] | None]:
    """The end of a chain. One that is a tombstone was the end no more when it was read."""
    while True:
        last = yield ("newest", ("c", chain))
        if last is None:
            return None
        thing = yield ("get", ("c", chain, last))
        if thing.kind != "tomb" or "no chain ends in a tomb" not in rules:
            return last, thing


def write_record(
    rules: Rules,
    listed: Iterable[str],
    names: dict[str, Name],
    chains: dict[str, tuple[int, Commit] | None],
    plans: tuple[tuple[Any, str], ...],
    keep: int,
) -> Generator[Request, Any, Record]:
    while True:
        before = yield from newest_record()
        record = _record(rules, before, listed, names, chains, plans, keep)
        for place in sorted(record.released):
            thing = yield ("get", ("c", *place))
            if thing.kind == "tomb":
                record = record._replace(released=record.released - {place})
        answer = yield ("create", ("gc", record.epoch), record)
        if answer == "ok":
            return record
        there = yield from newest_record()
        if there == record:
            return record


def _record(
    rules: Rules,
    before: Record,
    there: Iterable[str],
    names: dict[str, Name],
    chains: dict[str, tuple[int, Commit] | None],
    plans: tuple[tuple[Any, str], ...],
    keep: int,
) -> Record:
    if "records add up" not in rules:
        before = NO_RECORD._replace(epoch=before.epoch)
    floors = dict(before.floors)
    for chain, found in chains.items():
        if found is not None and found[1].kind not in ("seal", "tomb"):
            floors[chain] = max(floors.get(chain, 0), found[0] + 1 - keep)
    open_ = {
        c for c, found in chains.items() if found is None or found[1].kind not in ("seal", "tomb")
    }
    dead = set(there) - open_
    roots = _roots([names])
    held = {place for place in roots if not before.declares(place)}
    once = before.kept | before.released | roots if "released" in rules else frozenset()
    return Record(
        before.epoch + 1,
        tuple(sorted(floors.items())),
        frozenset(dead) | before.dead,
        frozenset(held),
        frozenset(key[1] for key, _ in plans),
        frozenset(chain for chain, found in chains.items() if found is None),
        frozenset(once - held),
    )


def _roots(listings: Iterable[dict[str, Name]]) -> set[Place]:
    found = set()
    for names in listings:
        for state in names.values():
            if state.number is not None:
                found.add((state.source or state.chain, state.number))
    return found


def move_epochs(
    rules: Rules, chains: dict[str, tuple[int, Commit] | None], record: Record
) -> Generator[Request, Any, None]:
    for chain in chains:
        while True:
            found = yield from read_chain(rules, chain)
            if found is None:
                break
            last, head = found
            if head.kind in ("seal", "tomb") or head.epoch >= record.epoch:
                break
            epoch = head._replace(
                kind="epoch", operation="", epoch=record.epoch, touched=(), parent=(chain, last)
            )
            answer = yield ("create", ("c", chain, last + 1), epoch)
            if answer == "ok":
                break


def call_off(rules: Rules, names: dict[str, Name], record: Record) -> Generator[Request, Any, None]:
    before = yield ("get", ("gc", record.epoch - 1))
    twice = before.unfinished if before else frozenset()
    if "call off writes" in rules:
        twice |= {state.chain for state in names.values() if state.writes}
    for chain in sorted(record.unfinished & twice):
        yield ("create", ("c", chain, 0), Commit("seal", "unfinished"))


def beyond(ends: dict[str, tuple[int, Commit] | None], place: Place) -> bool:
    """Whether a commit came after the end of its chain was looked up."""
    end = ends.get(place[0], (10**6, None))
    return end is None or place[1] > end[0]


def files_of(places: Iterable[Place], commits: dict[Place, Commit]) -> set[str]:
    return {file for place in places for _, files in commits[place].tables for file in files}


def reached(
    record: Record,
    listings: list[dict[str, Name]],
    ends: dict[str, tuple[int, Commit] | None],
    commits: dict[Place, Commit],
) -> set[Place]:
    """The commits whose files must stay."""
    wanted = _roots(listings) | record.kept
    for names in listings:
        for state in names.values():
            end = ends.get(state.chain)
            if state.kind != "branch":
                continue
            if end is None:  # it may start from any commit of its source
                wanted |= {place for place in commits if place[0] == state.source}
            floor = dict(record.floors).get(state.chain, 0)
            wanted |= {p for p in commits if p[0] == state.chain and p[1] >= floor}
    return {place for place in wanted if place in commits}


def condemned(
    rules: Rules, record: Record, commits: dict[Place, Commit], kept: set[Place]
) -> list[Place]:
    """The commits to bury: in each chain from the newest down to the first tombstone, buried oldest first."""
    found = [p for p in sorted(record.released) if record.declares(p) and p not in kept]
    floors = {**dict(record.floors), **dict.fromkeys(record.dead, 10**6)}
    for chain, floor in sorted(floors.items()):
        own: list[Place] = []
        for place in sorted((p for p in commits if p[0] == chain and p[1] < floor), reverse=True):
            named = place in record.kept | record.released
            if place in kept and not named and "no gaps" in rules:
                own.clear()  # no record tells of it: whatever is above it is buried another time
            if place in kept:
                continue
            if commits[place].kind == "tomb":
                break
            own.append(place)
        found += own[::-1] if "oldest first" in rules else own
    fresh = [place for place in found if commits[place].kind not in ("seal", "tomb")]
    return list(dict.fromkeys(fresh))
