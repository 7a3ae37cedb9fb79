"""Who meets whom, within which bounds, and which rule each scenario needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.model.explorer import Budget, Explored, Explorer, Process, Store
from tests.model.promises import invariant
from tests.model.protocol import (
    NO_RECORD,
    Commit,
    Name,
    Rules,
    collect,
    create_branch,
    create_tag,
    delete_branch,
    delete_tag,
    finish_branch,
    give_up_lease,
    publish,
)

RULES: Rules = frozenset(
    {
        "own operation",  # look for one's own operation among what was missed
        "same number again",  # repeat an unanswered create there, and never call it failed
        "footprints",  # changes of edges name their ends
        "what was swallowed",  # put fragments on a new version only if all they replace is there
        "epoch",  # a collection moves the epoch, and a writer behind it stages again
        "tombs remember",  # tombstones keep operation ids
        "oldest first",  # in each chain
        "list first",  # the data is listed before the record is written
        "look twice",  # names are listed again after the epochs have moved
        "records add up",  # a record contains what earlier ones declared
        "no chain ends in a tomb",  # whoever finds that has to look again
        "newer collections",  # a collection begins again when one buried what its record does not declare
        "epochs of new names",  # branches made after the survey get a commit of the epoch, too
        "nothing declared is taken over",  # by a reset, a merge, …
        "start over",  # a collection begins again when files are missing
        "no gaps",  # nothing is buried above what is held and in no record
        "released",  # a commit once kept is buried when nothing keeps it any more
        "leases in records",  # a lease counts as far as the records name it
        "look at the record",  # whoever writes a name reads the newest record after it
        "call off",  # a creation that was never finished is sealed before its name is used again
        "call off writes",  # a collection ends an unfinished branch that brings files
        "seal",  # deleting a branch ends its chain first
        "questions show the head",  # what asks for room shows the state it follows
        "questions are no answers",  # it has an operation of its own
        "room is no right",  # whoever asked judges what it missed, as if nobody had listened
    }
)


World = dict[tuple[Any, ...], Any]


@dataclass(frozen=True, slots=True)
class Scenario:
    """Processes over a start, and what may go wrong."""

    start: Callable[[], Store]
    processes: Callable[[Rules], dict[str, Callable[[], Process]]]
    small: Budget
    large: Budget


def base() -> World:
    """Main with two commits; the older one has a file of its own."""
    old = Commit("data", "first", 0, (("E", ()), ("N", ("Nold",))), (), None)
    new = Commit("data", "second", 0, (("E", ()), ("N", ("Nnew",))), (), ("m", 0))
    return {
        ("ref", "main", 0): Name("branch", "m"),
        ("c", "m", 0): old,
        ("c", "m", 1): new,
        ("f", "Nold"): (("a",),),
        ("f", "Nnew"): (("a",), ("b",)),
    }


def with_branch() -> World:
    """And a branch dev, forked from main's head, with a commit of its own."""
    store = base()
    zero = store["c", "m", 1]._replace(kind="first", operation="", parent=("m", 1))
    own = zero._replace(kind="data", operation="third", tables=(("E", ()), ("N", ("Ndev",))))
    store.update(
        {
            ("ref", "dev", 0): Name("branch", "d", None, "m"),
            ("c", "d", 0): zero,
            ("c", "d", 1): own._replace(parent=("d", 0)),
            ("f", "Ndev"): (("a",), ("b",), ("d",)),
        }
    )
    return store


def with_edge() -> World:
    """And an edge, in a table that nobody touches."""
    store = base()
    head = store["c", "m", 1]
    linked = head._replace(tables=(("E", ("Eold",)), ("N", ("Nnew",))))
    return {**store, ("c", "m", 1): linked, ("f", "Eold"): (("e", "a", "b"),)}


def with_dead() -> World:
    """A branch that was deleted, with two commits of its own."""
    dead = [Commit("data", f"dead{n}", 0, (("N", (f"Ndead{n}",)),), ()) for n in range(2)]
    chain: World = {
        ("c", "d", n): commit for n, commit in enumerate([*dead, Commit("seal", "gone")])
    }
    files: World = {("f", f"Ndead{n}"): (("x",),) for n in range(2)}
    names: World = {
        ("ref", "dev", 0): Name("branch", "d", None, "m"),
        ("ref", "dev", 1): Name("deleted", "d"),
    }
    return {**base(), **chain, **files, **names}


def three() -> World:
    """Main with three commits."""
    store = base()
    head = Commit("data", "third", 0, (("E", ()), ("N", ("Nlast",))), (), ("m", 1))
    return {**store, ("c", "m", 2): head, ("f", "Nlast"): (("a",), ("b",), ("c",))}


def with_tag() -> World:
    """And a tag on the oldest."""
    return {**three(), ("ref", "t", 0): Name("tag", "m", 0)}


def with_tagged_head() -> World:
    """And a tag on the newest, whose file stays whatever is pruned."""
    return {**three(), ("ref", "t", 0): Name("tag", "m", 2)}


def with_unfinished() -> World:
    """A name whose branch was not there yet when a collection came by."""
    store = base()
    head = store["c", "m", 1]
    record = NO_RECORD._replace(epoch=1, floors=(("m", 0),), unfinished=frozenset({"x.B"}))
    store.update(
        {
            ("c", "m", 2): head._replace(kind="epoch", operation="", epoch=1, parent=("m", 1)),
            ("gc", 1): record,
            ("ref", "x", 0): Name("branch", "x.B", None, "m"),
        }
    )
    return store


def _in_turn(*processes: Callable[[], Process]) -> Process:
    for process in processes:
        yield from process()


NOTHING = Budget()
CRASH = Budget(crashes=1)
LOSS = Budget(losses=1)
BOTH = Budget(crashes=1, losses=1)
LATE = Budget(crashes=1, losses=2, late=1)

SCENARIOS: dict[str, Scenario] = {
    "an edge to a node that is dropped": Scenario(
        base,
        lambda r: {
            "L": partial(publish, r, "link", "main", ("link", "e", "a", "b")),
            "D": partial(publish, r, "drop b", "main", ("drop", "b")),
        },
        BOTH,
        LATE,
    ),
    "three inserts": Scenario(
        base,
        lambda r: {
            who: partial(publish, r, who, "main", ("insert", who.lower()))
            for who in ("P", "Q", "R")
        },
        NOTHING,
        BOTH,
    ),
    "an answer that never comes": Scenario(
        base,
        lambda r: {
            "P": partial(publish, r, "P", "main", ("insert", "p")),
            "L": partial(publish, r, "link", "main", ("link", "e", "a", "b")),
        },
        Budget(losses=2, late=1),
        Budget(crashes=1, losses=3, late=2),
    ),
    "a collection and two writers": Scenario(
        base,
        lambda r: {
            "P": partial(publish, r, "P", "main", ("insert", "p")),
            "L": partial(publish, r, "link", "main", ("link", "e", "a", "b"), tries=1),
            "G": partial(collect, r, "G"),
        },
        NOTHING,
        BOTH,
    ),
    "a lost answer, pruned meanwhile": Scenario(
        base,
        lambda r: {
            "P": partial(publish, r, "P", "main", ("insert", "p"), tries=2),
            "Q": partial(publish, r, "Q", "main", ("insert", "q"), tries=1),
            "G": partial(collect, r, "G"),
        },
        LOSS,
        BOTH,
    ),
    "two collections": Scenario(
        with_tag,
        lambda r: {
            "T": partial(delete_tag, "t"),
            "G": partial(collect, r, "G"),
            "H": partial(collect, r, "H"),
        },
        NOTHING,
        CRASH,
    ),
    "a collection after one that was killed": Scenario(
        with_dead,
        lambda r: {"G": partial(collect, r, "G"), "H": partial(collect, r, "H")},
        CRASH,
        Budget(crashes=2, losses=1),
    ),
    "a collection that slept through writes and another": Scenario(
        with_edge,
        lambda r: {
            "G": partial(collect, r, "G"),
            "W": partial(
                _in_turn,
                partial(publish, r, "P", "main", ("insert", "p")),
                partial(collect, r, "H"),
                partial(publish, r, "Q", "main", ("insert", "q")),
            ),
        },
        CRASH,
        BOTH,
    ),
    "a writer that slept through writes and a collection": Scenario(
        with_edge,
        lambda r: {
            "P": partial(publish, r, "P", "main", ("insert", "p")),
            "W": partial(
                _in_turn,
                partial(publish, r, "Q", "main", ("insert", "q")),
                partial(publish, r, "R", "main", ("insert", "r")),
                partial(collect, r, "H"),
            ),
        },
        BOTH,
        LATE,
    ),
    "a reset beside a collection": Scenario(
        base,
        lambda r: {
            "R": partial(publish, r, "reset", "main", ("adopt", ("m", 0))),
            "G": partial(collect, r, "G"),
        },
        BOTH,
        LATE,
    ),
    "a reset of a branch made meanwhile": Scenario(
        base,
        lambda r: {
            "R": partial(
                _in_turn,
                partial(create_branch, r, "B", "x", "main"),
                partial(publish, r, "reset", "x", ("adopt", ("m", 0))),
            ),
            "G": partial(collect, r, "G"),
        },
        CRASH,
        BOTH,
    ),
    "a branch made while nothing is to be buried": Scenario(
        base,
        lambda r: {
            "B": partial(
                _in_turn,
                partial(create_branch, r, "B", "x", "main"),
                partial(publish, r, "W", "x", ("insert", "w")),
            ),
            "G": partial(collect, r, "G", keep=9),
        },
        CRASH,
        BOTH,
    ),
    "a branch made before a collection is overtaken": Scenario(
        base,
        lambda r: {
            "B": partial(
                _in_turn,
                partial(create_branch, r, "B", "x", "main"),
                partial(publish, r, "P", "main", ("insert", "p")),
                partial(collect, r, "H"),
            ),
            "G": partial(collect, r, "G"),
        },
        NOTHING,
        BOTH,
    ),
    "a reset between two collections": Scenario(
        with_tagged_head,
        lambda r: {
            "R": partial(
                _in_turn,
                partial(publish, r, "reset", "main", ("adopt", ("m", 1))),
                partial(collect, r, "H"),
            ),
            "G": partial(collect, r, "G", keep=2),
        },
        NOTHING,
        BOTH,
    ),
    "a tag on an older commit": Scenario(
        base,
        lambda r: {
            "T": partial(create_tag, r, "T", "t", "main", back=1),
            "G": partial(collect, r, "G"),
            "H": partial(collect, r, "H", keep=2),
        },
        NOTHING,
        CRASH,
    ),
    "a branch from a branch that is deleted": Scenario(
        with_branch,
        lambda r: {
            "B": partial(create_branch, r, "B", "x", "dev"),
            "D": partial(delete_branch, r, "D", "dev"),
            "G": partial(collect, r, "G"),
        },
        NOTHING,
        CRASH,
    ),
    "a branch from an older commit": Scenario(
        base,
        lambda r: {
            "B": partial(create_branch, r, "B", "x", "main", back=1),
            "G": partial(collect, r, "G"),
            "W": partial(publish, r, "W", "x", ("insert", "w")),
        },
        NOTHING,
        BOTH,
    ),
    "a branch that begins with a write": Scenario(
        base,
        lambda r: {
            "B": partial(create_branch, r, "B", "x", "main", write=("insert", "w")),
            "G": partial(collect, r, "G"),
            "P": partial(publish, r, "P", "main", ("insert", "p")),
        },
        NOTHING,
        BOTH,
    ),
    "a creator that slept through a collection": Scenario(
        with_unfinished,
        lambda r: {
            "B": partial(finish_branch, r, "B", "x", 0, Name("branch", "x.B", None, "m"), "main"),
            "G": partial(collect, r, "G"),
            "Q": partial(create_branch, r, "Q", "x", "main"),
        },
        NOTHING,
        BOTH,
    ),
    "an unfinished branch and two collections": Scenario(
        with_unfinished,
        lambda r: {"G": partial(collect, r, "G"), "H": partial(collect, r, "H")},
        LOSS,
        BOTH,
    ),
    "two who create one branch": Scenario(
        base,
        lambda r: {
            "P": partial(create_branch, r, "P", "x", "main"),
            "Q": partial(create_branch, r, "Q", "x", "main"),
            "D": partial(delete_branch, r, "D", "x"),
        },
        BOTH,
        LATE,
    ),
    "a branch deleted under its writer": Scenario(
        with_branch,
        lambda r: {
            "P": partial(publish, r, "P", "dev", ("insert", "p")),
            "D": partial(delete_branch, r, "D", "dev"),
            "Q": partial(create_branch, r, "Q", "dev", "main"),
        },
        CRASH,
        LATE,
    ),
    "a question among inserts": Scenario(
        base,
        lambda r: {
            "P": partial(publish, r, "P", "main", ("insert", "p"), asks=True),
            "Q": partial(publish, r, "Q", "main", ("insert", "q")),
            "R": partial(publish, r, "R", "main", ("insert", "r")),
        },
        NOTHING,
        BOTH,
    ),
    "a question for an edge to a node that is dropped": Scenario(
        base,
        lambda r: {
            "P": partial(publish, r, "P", "main", ("link", "p", "b", "b"), asks=True),
            "Q": partial(publish, r, "Q", "main", ("link", "q", "a", "a")),
            "D": partial(publish, r, "drop b", "main", ("drop", "b")),
        },
        NOTHING,
        BOTH,
    ),
    "two who ask, and may die of it": Scenario(
        with_edge,
        lambda r: {
            "P": partial(publish, r, "P", "main", ("insert", "p"), asks=True),
            "Q": partial(publish, r, "Q", "main", ("link", "q", "a", "b"), asks=True),
        },
        BOTH,
        LATE,
    ),
    "a question beside a collection": Scenario(
        base,
        lambda r: {
            "P": partial(publish, r, "P", "main", ("insert", "p"), asks=True),
            "G": partial(collect, r, "G"),
        },
        CRASH,
        LATE,
    ),
    "a question of a writer whose base is collected": Scenario(
        base,
        lambda r: {
            "P": partial(publish, r, "P", "main", ("insert", "p"), asks=True),
            "Q": partial(publish, r, "Q", "main", ("insert", "q")),
            "G": partial(collect, r, "G", keep=1),
        },
        NOTHING,
        LOSS,
    ),
    "a question of a reset beside a collection": Scenario(
        base,
        lambda r: {
            "R": partial(publish, r, "reset", "main", ("adopt", ("m", 0)), asks=True),
            "Q": partial(publish, r, "Q", "main", ("insert", "q")),
            "G": partial(collect, r, "G"),
        },
        NOTHING,
        LATE,
    ),
    "a question on a branch that is deleted": Scenario(
        with_branch,
        lambda r: {
            "P": partial(publish, r, "P", "dev", ("insert", "p"), asks=True),
            "Q": partial(publish, r, "Q", "dev", ("insert", "q")),
            "D": partial(delete_branch, r, "D", "dev"),
        },
        NOTHING,
        LOSS,
    ),
    "a long load whose lease is given up": Scenario(
        base,
        lambda r: {
            "P": partial(publish, r, "P", "main", ("insert", "p"), lease="l"),
            "R": partial(give_up_lease, "l"),
            "G": partial(collect, r, "G"),
        },
        NOTHING,
        BOTH,
    ),
}

# where leaving a rule out shows
NEEDED: dict[str, str] = {
    "own operation": "an answer that never comes",
    "same number again": "an answer that never comes",
    "footprints": "an edge to a node that is dropped",
    "what was swallowed": "three inserts",
    "epoch": "a collection and two writers",
    "tombs remember": "a lost answer, pruned meanwhile",
    "oldest first": "a collection after one that was killed",
    "list first": "a collection and two writers",
    "look twice": "a tag on an older commit",
    "records add up": "a tag on an older commit",
    "released": "two collections",
    "no chain ends in a tomb": "a collection that slept through writes and another",
    "no gaps": "a tag on an older commit",
    "newer collections": "a reset between two collections",
    "epochs of new names": "a reset of a branch made meanwhile",
    "nothing declared is taken over": "a reset beside a collection",
    "start over": "a collection that slept through writes and another",
    "leases in records": "a long load whose lease is given up",
    "look at the record": "a tag on an older commit",
    "call off": "two who create one branch",
    "call off writes": "a branch that begins with a write",
    "seal": "a branch deleted under its writer",
    "questions show the head": "two who ask, and may die of it",
    "questions are no answers": "two who ask, and may die of it",
    "room is no right": "a question for an edge to a node that is dropped",
}


def explore(
    name: str, rules: Rules = RULES, *, large: bool = False, states_max: int = 1_000_000
) -> Explored:
    return explorer(name, rules, large=large, states_max=states_max).run()


def explorer(
    name: str, rules: Rules = RULES, *, large: bool = False, states_max: int = 1_000_000
) -> Explorer:
    scenario = SCENARIOS[name]
    return Explorer(
        scenario.start(),
        scenario.processes(rules),
        invariant,
        scenario.large if large else scenario.small,
        states_max,
    )
