"""The verbs of a graph that deal with its versions: compare, merge, take back, follow, and keep them in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from omnigraph.core import history
from omnigraph.core.deadline import Deadline
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.deferred import Deferred
from omnigraph.errors import Corrupt, ObjectNotFound, TableNotFound
from omnigraph.model.names import branch_name
from omnigraph.storage import metrics

if TYPE_CHECKING:
    from omnigraph import outcomes, verbs
    from omnigraph.core.doctor import Diagnosis
    from omnigraph.core.group import Writers
    from omnigraph.core.plan import Request, Verb
    from omnigraph.core.publisher import Published
    from omnigraph.merge.diff import Diff
    from omnigraph.merge.feed import Feed
    from omnigraph.outcomes import EntityHistory, MergeResult
    from omnigraph.policy.guard import Need
    from omnigraph.policy.questions import Action
    from omnigraph.upkeep import Upkeep
    from omnigraph.write.clone import Cloned
    from omnigraph.write.maintain import TableReport
else:
    outcomes = Deferred("omnigraph.outcomes")
    verbs = Deferred("omnigraph.verbs")

HISTORY_COMMITS_MAX = 1_000  # that one call looks into


class Versions:
    """What a `Graph` can do with its history."""

    _repo: Repository
    _writers: Writers

    def _submit(self, request: Request, need: Need) -> Published:
        """Bring a write to the publisher; `need` is what a policy is asked."""
        raise NotImplementedError

    def snapshot(self, branch: str = "main", at: object = None) -> Snapshot:
        """One pinned state: the head of a branch, or the point `at` names."""
        return self._state(branch, at, None)

    def _state(
        self,
        branch: str = "main",
        at: object = None,
        types: Iterable[str] | None = (),  # noqa: ARG002  what a policy is asked
        action: Action | None = None,  # noqa: ARG002
    ) -> Snapshot:
        """The state a verb looks at, and the types whose rows it shows: none, or all where `types` is None.

        Under a policy, this is where it is asked, before anything of the state is told.
        """
        return self._pinned(branch, at)

    def _pinned(self, branch: str = "main", at: object = None) -> Snapshot:
        """A state, for whoever knows already that it may be read."""
        self._repo.check_process()
        if at is None:
            return self._repo.snapshot(self._repo.head(branch).commit)
        return self._repo.snapshot(history.resolve(self._repo, at, branch).commit)

    def _permit(self, need: Need, actor: str | None = None) -> None:
        """Whether something may be done; under a policy, that is asked here."""

    def _source(self, branch: str, at: object, actor: str | None) -> tuple[str, ...]:  # noqa: ARG002
        """The branch a point was written on, for verbs that take over what it holds; under a policy alone."""
        return ()

    @contextmanager
    def _readable(self, snapshot: Snapshot) -> Iterator[None]:
        """A commit pruned while it is being read says so, instead of looking damaged."""
        try:
            yield
        except (Corrupt, ObjectNotFound) as error:
            if history.is_pruned_now(self._repo, snapshot.commit):
                raise history.pruned_error(snapshot.commit_id) from error
            raise

    def merge(
        self,
        source: str,
        into: str = "main",
        dry_run: bool = False,
        *,
        strategy: str | Mapping[str, str] | None = None,
        resolutions: Sequence[Mapping[str, Any]] | None = None,
        message: str | None = None,
        actor: str | None = None,
        timeout: float | None = None,
    ) -> MergeResult:
        """Bring what a branch did since it was last merged to another, as one commit; conflicts are an outcome.

        `strategy` is "ours", "theirs" or one of them by type; `resolutions` lists {type, id, field?, take | value}.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-merge", schema="node Person { name: String @key }")
        >>> g.create_branch("trial")
        >>> _ = g.load({"Person": [{"name": "Ada"}]}, branch="trial")
        >>> g.merge("trial").outcome
        'fast_forward'
        """
        decided = verbs.decisions(strategy, resolutions)
        verb = verbs.merge(self._repo, source, into, decided, dry_run=dry_run)
        reads = (source, into) if dry_run else (source,)
        need = verbs.Need(verbs.Action.BRANCH_MERGE, source, into, reads=reads)
        return self._merged("merge", verb, into, message, actor, timeout, need)

    def _merged(
        self,
        operation: str,
        verb: Verb,
        branch: str,
        message: str | None,
        actor: str | None,
        timeout: float | None,
        need: Need,
    ) -> MergeResult:
        """Publish a verb that takes over whole tables: alone, since later writers of a group would not see them."""
        request = verbs.Request(
            branch=branch_name(branch),
            verb=verb,
            message=message,
            actor=actor,
            alone=True,
            deadline=Deadline(timeout),
        )
        with metrics.operation(operation):
            done = self._submit(request, need)
        found = done.value
        return outcomes.MergeResult(
            found.outcome, outcomes.Commit.published(done), found.conflicts, found.counts
        )

    def revert(
        self,
        commit: str,
        branch: str = "main",
        dry_run: bool = False,
        *,
        strategy: str | Mapping[str, str] | None = None,
        resolutions: Sequence[Mapping[str, Any]] | None = None,
        message: str | None = None,
        actor: str | None = None,
        timeout: float | None = None,
    ) -> MergeResult:
        """Undo a commit by publishing its inverse; what was built on it since is a conflict."""
        decided = verbs.decisions(strategy, resolutions)
        verb = verbs.revert(self._repo, commit, branch, decided, dry_run=dry_run)
        reads = self._source(branch, commit, actor) + ((branch,) if dry_run else ())
        need = verbs.Need(verbs.Action.CHANGE, branch, reads=reads)
        return self._merged("revert", verb, branch, message, actor, timeout, need)

    def cherry_pick(
        self,
        commit: str,
        branch: str = "main",
        dry_run: bool = False,
        *,
        strategy: str | Mapping[str, str] | None = None,
        resolutions: Sequence[Mapping[str, Any]] | None = None,
        message: str | None = None,
        actor: str | None = None,
        timeout: float | None = None,
    ) -> MergeResult:
        """Do what one commit did, wherever it is, on a branch."""
        decided = verbs.decisions(strategy, resolutions)
        verb = verbs.cherry_pick(self._repo, commit, branch, decided, dry_run=dry_run)
        reads = self._source(branch, commit, actor) + ((branch,) if dry_run else ())
        need = verbs.Need(verbs.Action.CHANGE, branch, reads=reads)
        return self._merged("cherry_pick", verb, branch, message, actor, timeout, need)

    def reset(
        self,
        to: object,
        branch: str = "main",
        *,
        message: str | None = None,
        actor: str | None = None,
        timeout: float | None = None,
    ) -> MergeResult:
        """Make a branch what it was at another point, as a new commit; nothing is copied and nothing is lost."""
        verb = verbs.reset(self._repo, to, branch)
        need = verbs.Need(verbs.Action.CHANGE, branch, reads=self._source(branch, to, actor))
        return self._merged("reset", verb, branch, message, actor, timeout, need)

    def diff(
        self,
        a: object,
        b: object,
        *,
        branch: str = "main",
        types: Sequence[str] | None = None,
        operations: Sequence[str] | None = None,
    ) -> Diff:
        """What turns one point (branch, tag, commit, time) into another.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-diff", schema="node Person { name: String @key }")
        >>> _ = g.load({"Person": [{"name": "Ada"}]})
        >>> g.diff("main~1", "main").counts
        {'Person': {'inserted': 1, 'updated': 0, 'deleted': 0}}
        """
        with metrics.operation("diff"):
            one, other = self._state(branch, a, types), self._state(branch, b, types)
            with self._readable(one), self._readable(other):
                return verbs.diff(self._repo, one, other, types=types, operations=operations)

    def changes(
        self,
        after: str | None = None,
        branch: str = "main",
        types: Sequence[str] | None = None,
        operations: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> Feed:
        """The changes after a commit, in order, with rows before and after; `baseline()` is where to start.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-changes", schema="node Person { name: String @key }")
        >>> start = g.changes().baseline().cursor
        >>> _ = g.load({"Person": [{"name": "Ada"}]})
        >>> [(c.operation, c.id) for c in g.changes(after=start)]
        [('insert', 'Ada')]
        """
        with metrics.operation("changes"):
            self._repo.check_process()
            return verbs.changes(
                self._repo, branch, after, types=types, operations=operations, limit=limit
            )

    def history(
        self, type: str, id: str, branch: str = "main", at: object = None, limit: int = 50
    ) -> EntityHistory:
        """What happened to one node or edge: the commits that changed it, newest first, with the row on both sides.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-history", schema="node Person { name: String @key }")
        >>> _ = g.load({"Person": [{"name": "Ada"}]})
        >>> [change.operation for change in g.history("Person", "Ada").changes]
        ['insert']
        """
        state = self._state(branch, at, (type,))
        kind = state.catalog.entity(type)
        if kind is None:
            raise TableNotFound(f"there is no type {type!r}")
        with metrics.operation("history"), self._readable(state):
            found = verbs.biography(
                self._repo, state, kind, id, events_max=limit, commits_max=HISTORY_COMMITS_MAX
            )
        changes = (
            outcomes.EntityChange(outcomes.Commit.of(e.entry), e.operation, e.before, e.after)
            for e in found.events
        )
        return outcomes.EntityHistory(tuple(changes), found.rest)

    # --- keeping it in order -----------------------------------------------------------------------------------------

    def optimize(
        self, branch: str = "main", *, engine: str = "auto", timeout: float | None = None
    ) -> list[TableReport]:
        """Rewrite small fragments, complete indices and store topology; a commit per table that needs it.

        Other writers are not in the way: a table they keep changing gets its indices, and its rewrite another time.
        """
        deadline = Deadline(timeout)
        with metrics.operation("optimize"):
            self._repo.check_process()
            return verbs.optimize_branch(
                self._repo, self._writers, branch, deadline=deadline, engine=engine
            )

    def upkeep(self, every: float = 60.0, branches: Sequence[str] = ("main",)) -> Upkeep:
        """Maintenance in the background, every so many seconds: use it in a `with`, or start and stop it."""
        self._repo.check_process()
        return verbs.Upkeep(self._repo, self._writers, branches, every)

    def doctor(self, deep: bool = False) -> Diagnosis:
        """Examine the graph: names, chains, tables, files, the store itself; `deep` reads all of it.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-doctor", schema="node Person { name: String @key }")
        >>> g.doctor().healthy
        True
        """
        with metrics.operation("doctor"):
            self._repo.check_process()
            return verbs.diagnose(self._repo, deep=deep)

    def clone(self, dest: object, branch: str | None = None) -> Cloned:
        """Copy the graph with its history to another place; or one branch, without history, as a graph of its own."""
        with metrics.operation("clone"):
            self._repo.check_process()
            if branch is None:
                return verbs.clone_graph(self._repo, dest)
            return verbs.clone_branch(self._repo, branch, dest)
