"""A graph as dictionaries: branches, commits, tags and keys, and every verb in a few lines.

A commit holds everything it shows, so that looking back, merging and undoing need no more than reading. A verb answers
with an `Answer`: what the real one has to say. Points are named by labels (the number of the step that made a commit),
by branches and by tags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unicodedata import normalize

from tests.system import merging, policy, schema
from tests.system.merging import Decided, Merged
from tests.system.rules import broken
from tests.system.schema import Edit, Impossible, Refused, State
from tests.system.writing import Broken, Given, Write

MAIN = "main"


@dataclass(slots=True)
class Commit:
    """A commit, and all it shows."""

    label: str
    state: State
    parents: tuple[str, ...]
    branch: str
    kind: str
    number: int
    life: int = 0  # which branch of the name it was made on
    kept: bool = True  # whether it certainly still can be read: cleanup may have taken it


@dataclass(frozen=True, slots=True)
class Answer:
    """What a verb has to answer: a failure by its code, or a result; `commit` labels the commit it makes."""

    error: str | None = None
    rules: frozenset[str] = frozenset()
    commit: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    open: bool = False  # the real outcome decides, among those that are valid
    merged: Merged | None = None
    replayed: bool = False


@dataclass(slots=True)
class Claim:
    """An idempotency key in use."""

    request: Any
    branch: str
    life: int
    answer: Answer | None = None


class Model:
    """The whole graph."""

    def __init__(self, start: State) -> None:
        self.commits: dict[str, Commit] = {}
        self.heads: dict[str, str] = {}
        self.tags: dict[str, str] = {}
        self.claims: dict[str, Claim] = {}
        self.lives: dict[str, int] = {MAIN: 0}  # how often a branch of a name was made
        self.cleaned = 0  # how many commits there were at the last cleanup
        self.borrowing: set[str] = (
            set()
        )  # tags of heads, which may be hidden commits that show the same
        self._commit("0", MAIN, start, (), "init")

    def do(self, step: Mapping[str, Any]) -> Answer:
        """A step: whether its actor may, whether it was done before under its key, and then the verb."""
        arguments = {name: value for name, value in step.items() if name != "verb"}
        verb: Callable[..., Answer] = getattr(self, step["verb"])
        actor = step.get("actor")
        if actor is not None and not policy.allows(actor, step):
            getattr(self.copied(), step["verb"])(
                **arguments
            )  # what makes no sense is not asked about
            return Answer(policy.DENIED)
        return verb(**arguments) if step.get("key") is None else self._keyed(step, verb, arguments)

    def _keyed(self, step: Mapping[str, Any], verb: Callable[..., Answer], given: Any) -> Answer:
        """A key belongs to one request on one branch; through a server everybody has their own.

        What was done under it is told again, also if its branch is gone and there is another of its name; what was
        not can be tried again on that very branch alone.
        """
        branch = step["branch"]
        self.head(branch)
        key = f"{step['actor']}:{step['key']}" if step.get("door") == "server" else step["key"]
        getattr(self.copied(), step["verb"])(
            **given
        )  # what cannot be written down is not asked for
        asked = (request_of(step, self.state(branch)), branch, self.lives[branch])
        known = self.claims.get(key)
        if known is not None and (known.request, known.branch) != asked[:2]:
            return Answer("idempotency_mismatch")
        if known is not None and known.answer is not None:
            return replace(known.answer, replayed=True)
        if known is not None and known.life != self.lives[branch]:
            return Answer("idempotency_mismatch")
        answer = verb(**given)
        self.claims[key] = Claim(*asked, answer if answer.error is None else None)
        return answer

    # --- what is there -----------------------------------------------------------------------------------------------

    def head(self, branch: str) -> Commit:
        branch = normalize("NFC", branch)  # which all names are kept in
        if branch not in self.heads:
            raise Impossible(f"no branch {branch}")
        return self.commits[self.heads[branch]]

    def state(self, branch: str) -> State:
        return self.head(branch).state

    def point(self, at: str) -> Commit:
        """A branch, a tag, or a label; `name~n` goes back."""
        name, _, back = at.partition("~")
        label = self.heads.get(name) or self.tags.get(name) or name
        if label not in self.commits:
            raise Impossible(f"no point {at}")
        found = self.commits[label]
        for _ in range(int(back or 0)):
            if not found.parents:
                raise Impossible(f"nothing before {found.label}")
            found = self.commits[found.parents[0]]
        return found

    def is_sure(self, at: str) -> bool:
        """Whether a point certainly can be read: names are, commits as far as cleanup left them."""
        return at in self.heads or at in self.tags or self.point(at).kept

    def is_sure_change(self, commit: Commit) -> bool:
        """Whether what a commit changed can certainly be told. Between it and the one before there may be a hidden
        commit (a fork, maintenance, a key without a change), whose files a cleanup takes."""
        return commit.kept and commit.number >= self.cleaned

    def may_lack_base(self, into: str, source: str) -> bool:
        """Whether what a merge begins from may be gone: a cleanup keeps it for branches, not for those made later."""
        base = self.base(self.head(into), self.head(source))
        return not base.kept and (self._is_new(into) or self._is_new(source))

    def _is_new(self, branch: str) -> bool:
        """Whether nothing was written on a branch before the last cleanup."""
        own = (branch, self.lives[branch])
        made = (c.number for c in self.commits.values() if (c.branch, c.life) == own)
        return min(made, default=self.cleaned) >= self.cleaned

    def line(self, at: str) -> Iterator[Commit]:
        """A commit and those before it, along first parents."""
        found = self.point(at)
        yield found
        while found.parents:
            found = self.commits[found.parents[0]]
            yield found

    def _commit(
        self, label: str, branch: str, state: State, parents: Iterable[str], kind: str
    ) -> str:
        number, life = len(self.commits), self.lives[branch]
        self.commits[label] = Commit(label, state, tuple(parents), branch, kind, number, life)
        self.heads[branch] = label
        return label

    def _next(self, label: str, branch: str, state: State, kind: str, *others: str) -> str:
        return self._commit(label, branch, state, (self.heads[branch], *others), kind)

    # --- rows and schemas --------------------------------------------------------------------------------------------

    def load(
        self, label: str, branch: str, mode: str, rows: Mapping[str, Sequence[Given]], **_: Any
    ) -> Answer:
        write = Write(self.state(branch), self.state(branch), label)
        write.load(mode, rows)
        return self._written(write, label, branch, "load", {"counts": dict(write.counts)})

    def mutate(
        self,
        label: str,
        branch: str,
        statements: Sequence[Sequence[Any]],
        if_commit: str | None = None,
        dry: bool = False,
        **_: Any,
    ) -> Answer:
        self.head(branch)
        if if_commit is not None and self.point(if_commit).label != self.heads.get(branch):
            return Answer("precondition_failed")
        write = Write(self.state(branch), self.state(branch), label)
        for statement in statements:
            write.statement(*statement)
        facts = {"affected": (write.nodes, write.edges)}
        if dry or (write.nodes + write.edges == 0 and not write.found):
            return self._tried(write, facts)
        return self._written(write, label, branch, "mutation", facts)

    def _tried(self, write: Write, facts: Mapping[str, Any]) -> Answer:
        try:
            write.finished()
        except Broken as refused:
            return Answer(refused.code, frozenset(refused.rules))
        return Answer(facts=facts)

    def _written(
        self, write: Write, label: str, branch: str, kind: str, facts: Mapping[str, Any]
    ) -> Answer:
        try:
            state = write.finished()
        except Broken as refused:
            return Answer(refused.code, frozenset(refused.rules))
        return Answer(commit=self._next(label, branch, state, kind), facts=facts)

    def block(self, label: str, branch: str, parts: Sequence[Sequence[Any]], **_: Any) -> Answer:
        """Several writes as one: each is judged where it stands, and all of them count or none."""
        state = self.state(branch)
        idle = True
        for number, (verb, *rest) in enumerate(parts):
            write = Write(state, state, f"{label}.{number}")
            if verb == "load":
                write.load(*rest)
                idle = False
            else:
                for statement in rest[0]:
                    write.statement(*statement)
            try:
                state = write.finished()
            except Broken as refused:
                return Answer(refused.code, frozenset(refused.rules))
            idle = idle and write.nodes + write.edges == 0
        return Answer() if idle else Answer(commit=self._next(label, branch, state, "write"))

    def schema(self, label: str, branch: str, edits: Sequence[Edit], **_: Any) -> Answer:
        before = state = self.state(branch)
        try:
            for edit in edits:
                state = schema.edited(state, edit)
        except Refused as refused:
            return Answer(refused.code)
        rules = broken(State(), state) & {"unique", "range", "cardinality"}
        if rules:
            return Answer("validation_failed", frozenset(rules))
        if merging.facts_of(before) == merging.facts_of(state):
            return Answer(facts={"applied": False})
        return Answer(commit=self._next(label, branch, state, "schema"), facts={"applied": True})

    # --- names -------------------------------------------------------------------------------------------------------

    def create_branch(self, label: str, name: str, from_: str, **_: Any) -> Answer:
        start = self.point(from_).label
        if name in self.heads or name in self.tags:
            return Answer("branch_exists")
        self.heads[name] = start
        self.lives[name] = self.lives.get(name, 0) + 1
        return Answer()

    def delete_branch(self, label: str, name: str, **_: Any) -> Answer:
        if name == MAIN:
            return Answer("branch_protected")
        if name not in self.heads:
            return Answer("branch_not_found")
        del self.heads[name]
        return Answer()

    def tag(self, label: str, name: str, at: str, **_: Any) -> Answer:
        point = self.point(at).label
        if name in self.heads or name in self.tags:
            return Answer("branch_exists")
        self.tags[name] = point
        if at in self.borrowing or at in self.heads:
            self.borrowing.add(name)
        return Answer()

    def delete_tag(self, label: str, name: str, **_: Any) -> Answer:
        if name not in self.tags:
            raise Impossible(f"no tag {name}")
        del self.tags[name]
        self.borrowing.discard(name)
        return Answer()

    # --- histories ---------------------------------------------------------------------------------------------------

    def merge(
        self,
        label: str,
        source: str,
        into: str,
        decided: Decided = merging.UNDECIDED,
        dry: bool = False,
        **_: Any,
    ) -> Answer:
        ours, theirs = self.head(into), self.head(source)
        if source == into:
            return Answer("option_invalid")
        base = self.base(ours, theirs)
        if base is theirs:
            return Answer(facts={"outcome": "already_up_to_date"})
        if base is ours:
            found, outcome = Merged(theirs.state), "fast_forward"
        else:
            found, outcome = merging.merge(base.state, ours.state, theirs.state, decided), "merged"
        return self._outcome(label, into, found, outcome, "merge", dry, theirs.label)

    def _outcome(
        self,
        label: str,
        branch: str,
        found: Merged,
        outcome: str,
        kind: str,
        dry: bool,
        *others: str,
    ) -> Answer:
        if found.open:
            return Answer(open=True, merged=found)
        if found.conflicts:
            return Answer(facts={"outcome": "conflict", "kinds": found.kinds}, merged=found)
        if dry:
            return Answer(facts={"outcome": outcome}, merged=found)
        made = self._next(label, branch, found.state, kind, *others)
        return Answer(commit=made, facts={"outcome": outcome}, merged=found)

    def base(self, ours: Commit, theirs: Commit) -> Commit:
        """The newest commit both sides know; of several, none of which knows the others, the youngest."""
        mine, yours = self.known(ours), self.known(theirs)
        common = [self.commits[label] for label in mine & yours]
        best = [c for c in common if not any(c.label in self.known(d) - {d.label} for d in common)]
        return max(best, key=lambda commit: commit.number)

    def known(self, commit: Commit) -> set[str]:
        """A commit and everything that led to it."""
        found, left = set(), [commit.label]
        while left:
            label = left.pop()
            if label not in found:
                found.add(label)
                left.extend(self.commits[label].parents)
        return found

    def revert(
        self,
        label: str,
        commit: str,
        branch: str,
        decided: Decided = merging.UNDECIDED,
        dry: bool = False,
        **_: Any,
    ) -> Answer:
        done = self.point(commit)
        return self._redone(label, "revert", done, self._before(done), branch, decided, dry)

    def cherry_pick(
        self,
        label: str,
        commit: str,
        branch: str,
        decided: Decided = merging.UNDECIDED,
        dry: bool = False,
        **_: Any,
    ) -> Answer:
        done = self.point(commit)
        return self._redone(label, "cherry_pick", self._before(done), done, branch, decided, dry)

    def _before(self, commit: Commit) -> Commit:
        if not commit.parents:
            raise Impossible("nothing before the first commit")
        return self.commits[commit.parents[0]]

    def _redone(
        self,
        label: str,
        verb: str,
        base: Commit,
        theirs: Commit,
        branch: str,
        decided: Decided,
        dry: bool,
    ) -> Answer:
        ours = self.head(branch)
        found = merging.merge(base.state, ours.state, theirs.state, decided)
        if not found.open and not found.conflicts and is_same(found.state, ours.state):
            return Answer(facts={"outcome": "already_up_to_date"}, merged=found)
        return self._outcome(label, branch, found, "merged", verb, dry)

    def reset(self, label: str, to: str, branch: str, **_: Any) -> Answer:
        wanted = self.point(to)
        if wanted.label == self.heads.get(branch):
            return Answer(facts={"outcome": "already_up_to_date"})
        self.head(branch)
        made = self._next(label, branch, wanted.state, "reset")
        return Answer(commit=made, facts={"outcome": "merged"})

    # --- order -------------------------------------------------------------------------------------------------------

    def optimize(self, label: str, branch: str, **_: Any) -> Answer:
        self.head(branch)
        return Answer()

    def cleanup(self, label: str, keep: int, **_: Any) -> Answer:
        """What is not among the newest commits made on a branch, nor tagged, may be gone; names can be read."""
        named = {commit for name, commit in self.tags.items() if name not in self.borrowing}
        sure = set() if self.cleaned else named
        self.cleaned = len(self.commits)
        for branch in self.heads:
            own = [c.label for c in self.line(branch) if self._is_own(c, branch)]
            sure |= {*own[:keep]}
        for commit in self.commits.values():
            commit.kept = commit.kept and commit.label in sure
        return Answer()

    def _is_own(self, commit: Commit, branch: str) -> bool:
        """Whether it was made on the branch; a new branch shows a commit of another."""
        return (commit.branch, commit.life) == (branch, self.lives[branch])

    def reopen(self, label: str, **_: Any) -> Answer:
        return Answer()

    clone = reopen

    def copied(self) -> Model:
        """The same again; what is done to it is not done to this one."""
        copy = Model.__new__(Model)
        copy.commits, copy.heads, copy.tags = dict(self.commits), dict(self.heads), dict(self.tags)
        copy.claims, copy.lives, copy.cleaned = dict(self.claims), dict(self.lives), self.cleaned
        copy.borrowing = set(self.borrowing)
        return copy

    # --- what the real one decided -----------------------------------------------------------------------------------

    def undo(self, label: str) -> None:
        """Take back the commit of a step: the real one made none."""
        gone = self.commits.pop(label, None)
        if gone is not None:
            self.heads[gone.branch] = gone.parents[0]

    def adopt(self, label: str, branch: str, state: State, kind: str, *others: str) -> None:
        """Make the commit the real one made of a choice the model leaves open."""
        self._next(label, branch, state, kind, *others)


def request_of(step: Mapping[str, Any], state: State) -> Any:
    """What makes two requests the same. Of rows in memory only their types count, unless a server receives them."""
    match step["verb"]:
        case "load":
            is_named = step.get("door") == "server" or step["shape"] == "file"
            by_type = step["shape"] in ("rows", "arrow")
            sent = repr(step["rows"]) if is_named else sorted(step["rows"]) if by_type else None
            return "load", step["mode"], step["shape"] in ("file", "records"), sent
        case "mutate":
            return "mutate", repr(step["statements"]), _words(step["statements"], state)
        case _:
            statements = [s for verb, *rest in step["parts"] if verb == "mutate" for s in rest[0]]
            loads = [(p[1], sorted(p[2])) for p in step["parts"] if p[0] == "load"]
            known = repr(step["parts"]) if step.get("door") == "server" else repr(loads)
            return "block", known, repr(statements), _words(statements, state)


def _words(statements: Sequence[Sequence[Any]], state: State) -> Any:
    """What parameters are declared as depends on the types of the properties that are named."""
    found = []
    for verb, type_name, *rest in statements:
        kind = state.called(type_name)
        parts = rest[0] if verb == "insert" else [{rest[-1][0]: None}, *rest[:-1]]
        names = [name for part in parts for name in part if name in kind.names()]
        found.append((type_name, [(name, kind.called(name).type) for name in names]))
    return found


def is_same(one: State, other: State) -> bool:
    """Whether two states show the same schema and the same rows."""
    if merging.facts_of(one) != merging.facts_of(other):
        return False
    return all(
        one.rows.get(i, {}).keys() == other.rows.get(i, {}).keys()
        and all(merging.same_row(row, other.rows[i][id]) for id, row in one.rows[i].items())
        for i in one.types
    )


def renamed_ids(state: State, ids: Mapping[str, str]) -> State:
    """A state with other ids, in rows and at the ends of edges."""
    rows = {
        ident: {
            ids.get(id, id): {f: ids.get(v, v) if f in schema.ENDS else v for f, v in row.items()}
            for id, row in table.items()
        }
        for ident, table in state.rows.items()
    }
    return replace(state, rows=rows)
