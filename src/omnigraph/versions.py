"""The verbs of a graph about its versions: compare, merge, undo, follow and maintain them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from omnigraph.core import history
from omnigraph.core.clock import Deadline
from omnigraph.core.records import Tombstone
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.deferred import Deferred
from omnigraph.errors import OptionInvalid, TableNotFound
from omnigraph.model.names import branch_name, canonical
from omnigraph.policy.questions import Action
from omnigraph.storage import metrics
from omnigraph.verbs import verb

if TYPE_CHECKING:
    from omnigraph import operations as ops
    from omnigraph import outcomes
    from omnigraph.core import branches
    from omnigraph.core.group import Writers
    from omnigraph.core.plan import Verb
    from omnigraph.core.publisher import Published
    from omnigraph.core.records import MaintenanceAction, MaintenanceStatus, RetentionPolicy
    from omnigraph.maintenance.collection import Collected
    from omnigraph.maintenance.doctor import Diagnosis
    from omnigraph.maintenance.embedding import EmbedReport
    from omnigraph.maintenance.upkeep import Upkeep
    from omnigraph.merge.diff import Diff
    from omnigraph.merge.feed import Feed
    from omnigraph.outcomes import Commit, EntityHistory, MergeResult
    from omnigraph.policy.guard import Need
    from omnigraph.write.clone import Cloned
    from omnigraph.write.maintain import TableReport
else:
    ops = Deferred("omnigraph.operations")
    outcomes = Deferred("omnigraph.outcomes")


HISTORY_COMMITS_MAX = 1_000  # that one call reads
EVERY_TYPE = frozenset({"*"})  # including those no longer in the schema


class Versions:
    """What a `Graph` can do with its history."""

    _repo: Repository
    _writers: Writers
    publish: Callable[..., Published]

    @verb
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
        """The state a verb reads; `types` are those whose rows it shows, None for all.

        A policy is checked here, before anything of the state is shown.
        """
        return self._pinned(branch, at)

    def _pinned(self, branch: str = "main", at: object = None) -> Snapshot:
        """A state the caller has already checked may be read."""
        self._repo.check_process()
        if at is None:
            return self._repo.snapshot(self._repo.head(branch).commit)
        return self._repo.snapshot(history.resolve(self._repo, at, branch).commit)

    def _permit(self, need: Need, actor: str | None = None) -> None:
        """Check that an action is allowed; the hook of a policy."""

    def _permit_name(
        self, name: str, branch: str, at: object, types: Iterable[str] | None, actor: str | None
    ) -> None:
        """Check that a point may get a name under which others read it; the hook of a policy."""

    def _actor(self, actor: str | None) -> str | None:
        """The actor of a write; under a policy, there is one even if none is named."""
        return actor

    def _source(self, branch: str, at: object, actor: str | None) -> tuple[str, ...]:  # noqa: ARG002
        """The branch a point was written on, for verbs that take over its content; only under a policy."""
        return ()

    @contextmanager
    def _readable(self, snapshot: Snapshot) -> Iterator[None]:
        """A commit pruned while it is being read says so, instead of looking damaged."""
        with history.readable(self._repo, snapshot.commit):
            yield

    # --- branches, tags, history -----------------------------------------------------------------------------------

    @verb
    def create_branch(
        self, name: str, from_: str = "main", *, actor: str | None = None, dry_run: bool = False
    ) -> None:
        """Create a branch from another's head, or from any point in time. Nothing is copied."""
        self._permit_name(name, "main", from_, None, actor)
        with metrics.operation("create_branch"):
            self._repo.check_process()
            start = self._start(from_)
            if dry_run:
                ops.branches.require_free(self._repo, name)
            else:
                actor = self._actor(actor)
                ops.branches.create_branch(self._repo, name, start, actor=actor)

    def _start(self, from_: object) -> branches.Start:
        name = canonical(from_) if isinstance(from_, str) else ""
        if self._repo.knows(name) and not history.has_form_of_a_point(name):
            return ops.branches.Start(head_of=branch_name(name))
        point = history.resolve(self._repo, from_, "main")
        if point.commit.branch == name:
            return ops.branches.Start(head_of=branch_name(name))
        return ops.branches.Start(commit=point.commit)

    @verb
    def delete_branch(self, name: str, *, actor: str | None = None, dry_run: bool = False) -> None:
        """Delete a branch. Other branches and tags keep what they share with it."""
        self._permit(ops.Need(Action.BRANCH_DELETE, target_branch=name), actor)
        with metrics.operation("delete_branch"):
            self._repo.check_process()
            if dry_run:
                ops.branches.require_deletable(self._repo, name)
            else:
                ops.branches.delete_branch(self._repo, name, actor=self._actor(actor))

    @verb
    def branches(self) -> list[str]:
        """The names of all branches, main first."""
        self._repo.check_process()
        return list(ops.branches.branch_names(self._repo))

    @verb
    def tag(
        self,
        name: str,
        at: object = None,
        *,
        branch: str = "main",
        actor: str | None = None,
        dry_run: bool = False,
    ) -> str:
        """Tag a commit, so that cleanup keeps it readable. Returns its id."""
        self._permit_name(name, branch, at, (), actor)
        self._repo.check_process()
        point = history.resolve(self._repo, branch if at is None else at, branch)
        if dry_run:
            ops.branches.require_free(self._repo, name)
        else:
            ops.branches.create_tag(
                self._repo, name, point.commit, member=point.member, actor=self._actor(actor)
            )
        return point.id

    @verb
    def delete_tag(self, name: str, *, dry_run: bool = False) -> None:
        """Delete a tag; its commit becomes ordinary history."""
        self._permit(ops.Need(Action.BRANCH_DELETE, target_branch=name))
        self._repo.check_process()
        if dry_run:
            ops.branches.live_tag(self._repo, name)
        else:
            ops.branches.delete_tag(self._repo, name)

    @verb
    def tags(self) -> dict[str, str]:
        """All tags and the ids of their commits."""
        self._repo.check_process()
        return ops.branches.tags(self._repo)

    @verb
    def log(
        self,
        branch: str = "main",
        limit: int | None = 50,
        actor: str | None = None,
        kind: str | None = None,
        *,
        at: object = None,
        maintenance: bool = False,
    ) -> list[Commit]:
        """The commits that led to the head of a branch (or to `at`), newest first."""
        if limit is not None and limit < 0:
            raise OptionInvalid(f"limit must not be negative, got {limit}")
        start = self._state(branch, at).commit
        expected = history.LOG_PAGE_COMMITS_MAX if limit is None else limit
        entries = history.walk(self._repo, start, maintenance=maintenance, expected=expected)
        wanted = (e for e in entries if actor in (None, e.actor) and kind in (None, e.kind))
        return outcomes.CommitLog(outcomes.Commit.of(entry) for entry in islice(wanted, limit))

    @verb
    def commit(self, id: str) -> Commit:
        """One commit by its id (or any point in time)."""
        self._repo.check_process()
        point = history.resolve(self._repo, id, "main")
        for entry in history.walk(self._repo, point.commit, maintenance=True, expected=1):
            if entry.id == point.id or isinstance(entry.commit, Tombstone):
                return outcomes.Commit.of(entry)
        raise AssertionError("a resolved commit is in its own log")

    @verb
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
        """Merge the changes of a branch since its last merge into another, as one commit; conflicts are an outcome.

        `strategy` is "ours", "theirs" or one of them by type; `resolutions` lists {type, id, field?, take | value}.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-merge", schema="node Person { name: String @key }")
        >>> g.create_branch("trial")
        >>> _ = g.load({"Person": [{"name": "Ada"}]}, branch="trial")
        >>> g.merge("trial").outcome
        'fast_forward'
        """
        decided = ops.decisions(strategy, resolutions)
        write = ops.merge(self._repo, source, into, decided)
        need = ops.Need(Action.BRANCH_MERGE, source, into, reads=(source,))
        done = self._alone("merge", write, into, need, message, actor, timeout, dry_run)
        return outcomes.MergeResult.published(done)

    def _alone(
        self,
        operation: str,
        write: Verb,
        branch: str,
        need: Need,
        message: str | None,
        actor: str | None,
        timeout: float | None,
        dry_run: bool,
    ) -> Published:
        """Publish a verb that takes over whole tables, or changes the rules for rows: alone, since later writers
        of a group would not see it.
        """
        with metrics.operation(operation):
            return self.publish(
                write,
                branch=branch,
                message=message,
                actor=actor,
                alone=True,
                deadline=Deadline(timeout),
                need=need,
                dry_run=dry_run,
            )

    def _taken(self, commit: object, branch: str, actor: str | None) -> Need:
        """What a policy must allow for a write that takes over the content of a commit."""
        self._permit(ops.Need(Action.CHANGE, branch), actor)
        return ops.Need(Action.CHANGE, branch, reads=self._source(branch, commit, actor))

    @verb
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
        """Undo a commit by publishing its inverse; later changes to the same data are conflicts."""
        decided = ops.decisions(strategy, resolutions)
        write = ops.revert(self._repo, commit, branch, decided)
        need = self._taken(commit, branch, actor)
        done = self._alone("revert", write, branch, need, message, actor, timeout, dry_run)
        return outcomes.MergeResult.published(done)

    @verb
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
        """Apply the changes of one commit, from anywhere, to a branch."""
        decided = ops.decisions(strategy, resolutions)
        write = ops.cherry_pick(self._repo, commit, branch, decided)
        need = self._taken(commit, branch, actor)
        done = self._alone("cherry_pick", write, branch, need, message, actor, timeout, dry_run)
        return outcomes.MergeResult.published(done)

    @verb
    def reset(
        self,
        to: object,
        branch: str = "main",
        dry_run: bool = False,
        *,
        message: str | None = None,
        actor: str | None = None,
        timeout: float | None = None,
    ) -> MergeResult:
        """Reset a branch to another point, as a new commit; nothing is copied and nothing is lost."""
        write = ops.reset(self._repo, to, branch)
        need = self._taken(to, branch, actor)
        done = self._alone("reset", write, branch, need, message, actor, timeout, dry_run)
        return outcomes.MergeResult.published(done)

    @verb
    def diff(
        self,
        a: object,
        b: object,
        *,
        branch: str = "main",
        types: Sequence[str] | None = None,
        operations: Sequence[str] | None = None,
        from_merge_base: bool = False,
    ) -> Diff:
        """The changes from one point (branch, tag, commit, time) to another.

        With `from_merge_base`, the changes of `b` since it diverged from `a`, or was last merged into it: what a merge
        into `a` brings. Changes of `a` in the meantime are left out.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-diff", schema="node Person { name: String @key }")
        >>> _ = g.load({"Person": [{"name": "Ada"}]})
        >>> g.diff("main~1", "main").counts
        {'Person': {'inserted': 1, 'updated': 0, 'deleted': 0}}
        """
        with metrics.operation("diff"):
            one, other = self._state(branch, a, types), self._state(branch, b, types)
            if from_merge_base:
                base = self._repo.snapshot(ops.merge_base(self._repo, one.commit, other.commit))
                one = self._state(branch, base.commit_id, types)
            with self._readable(one), self._readable(other):
                return ops.diff(self._repo, one, other, types=types, operations=operations)

    @verb
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
            return self._feed(branch, after, types, operations, limit)

    def _feed(
        self,
        branch: str,
        after: str | None,
        types: Sequence[str] | None,
        wanted: Sequence[str] | None,
        limit: int | None,
    ) -> Feed:
        """The feed of a branch; under a policy, the part of it that may be read."""
        return ops.changes(self._repo, branch, after, types=types, operations=wanted, limit=limit)

    @verb
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
            found = ops.row_history(
                self._repo, state, kind, id, events_max=limit, commits_max=HISTORY_COMMITS_MAX
            )
        changes = (
            outcomes.EntityChange(outcomes.Commit.of(e.entry), e.operation, e.before, e.after)
            for e in found.events
        )
        return self._shown(type, outcomes.EntityHistory(tuple(changes), found.rest))

    def _shown(self, type: str, found: EntityHistory) -> EntityHistory:  # noqa: ARG002
        """The part of the history of a row of this type that may be read."""
        return found

    # --- keeping it in order -----------------------------------------------------------------------------------------

    @verb
    def optimize(
        self, branch: str = "main", *, engine: str = "auto", timeout: float | None = None
    ) -> list[TableReport]:
        """Rewrite small fragments, complete indices and store topology; one commit per table that needs it.

        Works beside other writers: a table they keep changing gets its indices now and its rewrite later.
        """
        deadline = Deadline(timeout)
        with metrics.operation("optimize"):
            self._repo.check_process()
            return ops.optimize_branch(
                self._repo, self._writers, branch, deadline=deadline, engine=engine
            )

    @verb
    def embed(
        self,
        types: Sequence[str] | None = None,
        property: str | None = None,
        branch: str = "main",
        *,
        every: bool = False,
        dry_run: bool = False,
        timeout: float | None = None,
        message: str | None = None,
        actor: str | None = None,
    ) -> list[EmbedReport]:
        """Compute missing vectors of `@embed` properties: of rows loaded without a provider, or of a new property.

        Each batch is a commit, so the next call resumes interrupted work; the texts of one batch may be sent again.
        Texts the provider refuses are counted and left out. `every` recomputes all vectors. A dry run counts texts and
        characters, and calls no provider.

        >>> import omnigraph
        >>> schema = 'node Note { title: String @key body: String? vector: Vector(4)? @embed("body") }'
        >>> g = omnigraph.init("memory://doc-embed", schema=schema)
        >>> _ = g.load({"Note": [{"title": "a", "body": "tea"}, {"title": "b", "body": "tea"}]})
        >>> g.embed(dry_run=True)
        [EmbedReport(type='Note', property='vector', rows=2, texts=1, characters=3, commits=0, refused=0)]
        """
        with metrics.operation("embed"):
            state = self._state(branch, None, types)
            chosen = ops.embedded_properties(state, types, property)
            with self._readable(state):
                if dry_run:
                    return [ops.count_missing(state, *what, every=every) for what in chosen]
                deadline, settings = Deadline(timeout), ops.settings_of(state)

                def publish(fill: Verb) -> int:
                    done = self.publish(
                        fill,
                        branch=branch,
                        message=message or "embed",
                        actor=actor,
                        deadline=deadline,
                    )
                    return int(done.value)

                return [
                    ops.embed_missing(state, what, settings, publish, every=every)
                    for what in chosen
                ]

    @verb
    def cleanup(
        self,
        keep: int = 10,
        older_than: timedelta | float | None = None,
        *,
        ended_days: float | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> Collected:
        """Remove history beyond the newest `keep` commits of each branch (and older than `older_than` days), and what
        expired: parts of exports, records of jobs, leases; with `ended_days`, also the discussion of proposals that
        ended that long ago. If interrupted, the next call continues.
        """
        self._repo.check_process()
        days = older_than / timedelta(days=1) if isinstance(older_than, timedelta) else older_than
        kept, deadline = ops.retained(self._repo, keep, days), Deadline(timeout)
        with metrics.operation("cleanup"):
            if not dry_run:
                ops.expire(self._repo)
            done = ops.collect(self._repo, kept, dry_run=dry_run, deadline=deadline)
            return ops.forget_reviews(self._repo, done, ended_days)

    @verb
    def maintain(
        self, branches: Sequence[str] | None = None, *, timeout: float | None = None
    ) -> list[MaintenanceAction]:
        """Do the maintenance that is due, whichever process is in charge: compact, index, expire, and clean by policy.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-maintain", schema="node Person { name: String @key }")
        >>> g.maintain()
        []
        """
        with metrics.operation("maintain"):
            self._repo.check_process()
            maintainer = ops.Maintainer(self._repo, self._writers, branches)
            maintainer.measure()
            return maintainer.look(Deadline(timeout))

    @verb
    def upkeep(self, every: float = 30.0, branches: Sequence[str] | None = None) -> Upkeep:
        """Maintain in the background, every `every` seconds, unless another process already does: use it in a
        `with`, or start and stop it. Writers of this process wait while the backlog is far too large."""
        self._repo.check_process()
        return ops.Upkeep(self._repo, self._writers, branches, every)

    @verb
    def maintenance(self) -> MaintenanceStatus:
        """Which process maintains the graph, and what was done last."""
        self._repo.check_process()
        return ops.maintenance_status(self._repo)

    @verb
    def retention(self) -> RetentionPolicy | None:
        """How much history maintenance keeps; None: all of it."""
        self._repo.check_process()
        return ops.retention(self._repo)

    @verb
    def set_retention(
        self,
        keep: int | None,
        days: float | None = None,
        every_hours: float = 1.0,
        *,
        actor: str | None = None,
        dry_run: bool = False,
    ) -> RetentionPolicy | None:
        """Let maintenance remove history beyond the newest `keep` commits of each branch that is older than `days`;
        None keeps everything.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-retention", schema="node Person { name: String @key }")
        >>> g.set_retention(1000, days=30).keep
        1000
        """
        self._repo.check_process()
        policy = None
        if keep is not None:
            by, now = self._actor(actor), self._repo.clock.now()
            policy = ops.checked(ops.RetentionPolicy(keep, days, every_hours, by, now))
        if not dry_run:
            ops.set_retention(self._repo, policy)
        return policy

    @verb
    def doctor(self, deep: bool = False) -> Diagnosis:
        """Examine the graph: names, chains, tables, files, the store itself; `deep` reads all of it.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-doctor", schema="node Person { name: String @key }")
        >>> g.doctor().healthy
        True
        """
        with metrics.operation("doctor"):
            self._repo.check_process()
            return ops.diagnose(self._repo, deep=deep)

    @verb
    def clone(self, dest: object, branch: str | None = None) -> Cloned:
        """Copy the graph with its history to another place; or one branch, without history, as a separate graph."""
        with metrics.operation("clone"):
            self._repo.check_process()
            if branch is None:
                self._permit(ops.Need(Action.READ, types=EVERY_TYPE))
                return ops.clone_graph(self._repo, dest)
            self._state(branch, None, None)
            return ops.clone_branch(self._repo, branch, dest)
