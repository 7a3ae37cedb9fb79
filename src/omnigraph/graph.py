"""What a person holds: a graph, a branch of it, a commit. The one place that says publish(verb(txn, ...))."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from omnigraph.core import history
from omnigraph.core.deadline import NEVER, Deadline
from omnigraph.core.records import StoredSchema, Tombstone
from omnigraph.core.repository import Repository, open_repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.deferred import Deferred
from omnigraph.errors import BranchNotFound, OptionInvalid
from omnigraph.lang import ir
from omnigraph.lang.query import Want, compile_query
from omnigraph.model.limits import DEFAULT, Limits
from omnigraph.model.names import branch_name, canonical
from omnigraph.read import Result, run_query
from omnigraph.sameness import fingerprint, named
from omnigraph.storage import metrics
from omnigraph.versions import Versions

if TYPE_CHECKING:
    from omnigraph import outcomes, verbs
    from omnigraph.analytics import Analytics
    from omnigraph.branch import Branch
    from omnigraph.core import branches
    from omnigraph.core.gc import Collected
    from omnigraph.core.group import Writers
    from omnigraph.core.plan import PublishPlan, Request, Verb
    from omnigraph.core.publisher import Published
    from omnigraph.core.txn import WriteTxn
    from omnigraph.lang.schema import MigrationPlan
    from omnigraph.outcomes import Commit, LoadResult, MutateResult, SchemaResult
    from omnigraph.pipeline.engine import Progress, Violations
    from omnigraph.pipeline.frames import GraphFrames
    from omnigraph.policy.guard import Need
    from omnigraph.read.blobs import Blob
    from omnigraph.read.export import Exported
    from omnigraph.write.apply_schema import SchemaOutcome
    from omnigraph.write.input.options import Options
    from omnigraph.write.load import LoadOutcome
else:
    outcomes = Deferred("omnigraph.outcomes")
    verbs = Deferred("omnigraph.verbs")


class Graph(Versions):
    """A graph, local or on an object store. Safe to share between threads; not carried over a fork.

    >>> import omnigraph
    >>> g = omnigraph.init("memory://doc-graph", schema="node Person { name: String @key }")
    >>> g.branches()
    ['main']
    """

    def __init__(self, repository: Repository, *, group_commit: bool = True) -> None:
        self._repo = repository
        self._grouping = group_commit
        self._queries: dict[tuple[str, str, str | None, Want], ir.Query] = {}

    @cached_property
    def _writers(self) -> Writers:  # type: ignore[override]
        return verbs.Writers(self._repo, grouping=self._grouping)

    @property
    def uri(self) -> str:
        """Where the graph lives."""
        return self._repo.place.uri

    @property
    def repository(self) -> Repository:
        """What the verbs work on, for tools that stand beside them."""
        return self._repo

    def __repr__(self) -> str:
        return f"Graph({self.uri!r})"

    def _repr_html_(self) -> str:
        from omnigraph.drawing.notebook import graph_html

        now = self.snapshot()
        counts = {entry.type_name: entry.rows for entry in now.commit.tables.values()}
        return graph_html(self.uri, self.branches(), now.catalog, counts)

    # --- reading -----------------------------------------------------------------------------------------------

    def query(
        self,
        text: str,
        params: Mapping[str, Any] | None = None,
        name: str | None = None,
        branch: str = "main",
        at: object = None,
        engine: str = "local",
        *,
        timeout: float | None = None,
        max_rows: int | None = None,
        explain: bool = False,
    ) -> Result:
        """Run a read on the head of a branch, or at any point in time, with the schema that was in force there.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-query", schema="node Person { name: String @key }")
        >>> g.query("query all() { match { $p: Person } return { $p.name } }").rows
        []
        """
        if engine not in ("local", "spark"):
            raise OptionInvalid(f"engine must be 'local' or 'spark', got {engine!r}")
        started = time.monotonic()
        with metrics.operation("query"):
            snapshot = self._state(branch, at)
            query = self._compiled(snapshot.commit.schema, text, name, Want.READ)
            self._permit_query(query, snapshot, branch, at)
            with self._readable(snapshot):
                if engine == "spark":
                    return verbs.query_on_spark(self._repo, snapshot, query, params)
                return run_query(
                    query,
                    params,
                    snapshot,
                    timeout=timeout,
                    started=started,
                    max_rows=max_rows,
                    explain=explain,
                )

    def _permit_query(self, query: ir.Query, snapshot: Snapshot, branch: str, at: object) -> None:
        """Whether it may be run; under a policy, that is asked here."""

    def _compiled(self, schema: str, text: str, name: str | None, want: Want) -> ir.Query:
        """A query is compiled once per text and schema."""
        key = (schema, text, name, want)
        known = self._queries.get(key)
        if known is None:
            known = compile_query(text, self._repo.schema(schema).catalog, name, want=want)
            self._queries[key] = known
            while len(self._queries) > self._repo.limits.queries_cached_max:
                self._queries.pop(next(iter(self._queries)), None)
        return known

    def blob(
        self, type: str, id: str, property: str, branch: str = "main", at: object = None
    ) -> Blob:
        """A blob of one entity: its size, and its bytes by range."""
        snapshot = self._state(branch, at, (type,))
        with self._readable(snapshot):
            return verbs.open_blob(snapshot, type, id, property)

    def branch(self, name: str) -> Branch:
        """The same verbs, bound to a branch."""
        return verbs.Branch(self, branch_name(name))

    def schema(self, branch: str = "main", at: object = None) -> str:
        """The text of the schema in force."""
        commit = self._state(branch, at).commit
        return self._repo.schema(commit.schema).stored.source

    def export(
        self,
        dest: str | os.PathLike[str],
        format: str = "ndjson",
        branch: str = "main",
        at: object = None,
        types: Sequence[str] | None = None,
        engine: str = "auto",
        *,
        order: str | None = None,
    ) -> Exported:
        """Write one state to files in the folder `dest`: ndjson (loads again), parquet, arrow or csv.

        Rows come as they are stored, or with `order="id"` by their ids.
        """
        with metrics.operation("export"):
            snapshot = self._state(branch, at, types, verbs.Action.EXPORT)
            with self._readable(snapshot):
                return verbs.export_by(engine, self._repo, snapshot, dest, format, types, order)

    def analytics(
        self, branch: str = "main", at: object = None, engine: str = "local"
    ) -> Analytics:
        """PageRank, components, degrees and more, over one state."""
        from omnigraph.analytics import Analytics

        return Analytics(self, branch, at, engine)

    def spark(self, session: Any = None, branch: str = "main", at: object = None) -> GraphFrames:
        """Nodes and edges as Spark DataFrames, pinned to one commit."""
        return self._frames(self.snapshot(branch, at), session)

    def _frames(self, snapshot: Snapshot, session: Any = None) -> GraphFrames:
        return verbs.spark_frames(self._repo, snapshot, session)

    # --- writing -----------------------------------------------------------------------------------------------

    def publish(
        self,
        verb: Verb,
        *,
        branch: str = "main",
        actor: str | None = None,
        message: str | None = None,
        idempotency_key: str | None = None,
        fingerprint: str = "",
        if_commit: str | None = None,
        create_from: str | None = None,
        alone: bool = False,
        deadline: Deadline = NEVER,
        need: Need | None = None,
    ) -> Published:
        """Publish what a verb wants, as one commit; with `create_from`, as the first commit of a new branch."""
        request = verbs.Request(
            branch=branch_name(branch),
            verb=verb,
            actor=actor,
            message=message,
            idempotency_key=idempotency_key,
            fingerprint=fingerprint,
            if_commit=if_commit,
            create_from=create_from,
            alone=alone,
            deadline=deadline,
        )
        return self._submit(request, need or verbs.Need(verbs.Action.CHANGE, branch))

    def _submit(self, request: Request, need: Need) -> Published:  # noqa: ARG002  what a policy is asked
        """Bring a write to the publisher."""
        with metrics.operation("publish"):
            if request.create_from is not None:
                self._repo.check_process()
                return verbs.publish_first(self._repo, request)
            return self._writers.submit(request)

    def _exists(self, branch: str) -> bool:
        try:
            self._repo.head(branch)
        except BranchNotFound:
            return False
        return True

    def mutate(
        self,
        text: str,
        params: Mapping[str, Any] | None = None,
        name: str | None = None,
        branch: str = "main",
        if_commit: str | None = None,
        message: str | None = None,
        actor: str | None = None,
        idempotency_key: str | None = None,
        *,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> MutateResult:
        """Run a mutation as one commit; one that matches nothing makes none, and a dry run only counts.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-mutate", schema="node Person { name: String @key }")
        >>> g.mutate('query add() { insert Person { name: "Ada" } }').affected_nodes
        1
        """
        verb = self.mutation(text, params, name)
        with metrics.operation("mutate"):
            done = self.publish(
                verbs.rehearsed(verb) if dry_run else verb,
                branch=branch,
                actor=actor,
                message=message,
                idempotency_key=None if dry_run else idempotency_key,
                fingerprint=fingerprint("mutate", text, name, params),
                if_commit=if_commit,
                deadline=Deadline(timeout),
                need=verbs.Need(verbs.Action.CHANGE, branch, reads=(branch,) if dry_run else ()),
            )
        counts = done.value if isinstance(done.value, dict) else done.value.to_json()
        return outcomes.MutateResult(
            counts["affected_nodes"],
            counts["affected_edges"],
            outcomes.Commit.published(done),
            done.replayed,
        )

    def mutation(
        self, text: str, params: Mapping[str, Any] | None = None, name: str | None = None
    ) -> Verb:
        """A mutation as a verb, compiled for the schema of whatever state it meets."""

        def verb(txn: WriteTxn) -> PublishPlan:
            query = self._compiled(txn.snapshot.commit.schema, text, name, Want.MUTATION)
            return verbs.mutate(query, params)(txn)

        return verb

    def _rows(self, source: Any, mode: str) -> Verb:
        """Rows to load as a verb: a step of a block."""
        return verbs.load(source, mode)

    def load(
        self,
        source: Any,
        mode: str = "merge",
        branch: str = "main",
        create_from: str | None = None,
        engine: str = "auto",
        message: str | None = None,
        actor: str | None = None,
        idempotency_key: str | None = None,
        *,
        timeout: float | None = None,
        options: Options | None = None,
        progress: Progress | None = None,
        violations: Violations = True,
    ) -> LoadResult:
        """Load records, files or tables as one commit: append, merge (upsert by id) or overwrite the types present.

        `violations` names a folder: a load that is refused lists everything that is wrong in a new file there. Left
        alone, a load on Spark does so in the folder of Spark's log when its error has no room; False lists nothing.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-load", schema="node Person { name: String @key }")
        >>> g.load({"Person": [{"name": "Ada"}, {"name": "Grace"}]}).nodes
        {'Person': 2}
        """
        need = verbs.Need(verbs.Action.CHANGE, branch, mode=mode)
        self._permit(need, actor)
        created = create_from is not None and not self._exists(branch)
        with (
            metrics.operation("load"),
            verbs.loading(
                self._repo,
                source,
                mode,
                None if created else branch,
                engine=engine,
                options=options,
                load_id=idempotency_key,
                progress=progress,
                violations=violations,
            ) as (verb, used),
        ):
            done = self.publish(
                verb,
                branch=branch,
                create_from=create_from if created else None,
                actor=actor,
                message=message,
                idempotency_key=idempotency_key,
                fingerprint=fingerprint("load", mode, named(source)),
                alone=True,
                deadline=Deadline(timeout),
                need=need,
            )
        outcome = verbs.LoadOutcome.from_json(done.value) if done.replayed else done.value
        return outcomes.LoadResult(
            commit=outcomes.Commit.published(done),
            branch=branch,
            branch_created=created and not done.replayed,
            nodes=outcome.nodes,
            edges=outcome.edges,
            engine=used,
            replayed=done.replayed,
            new_each_time=outcome.new_each_time,
        )

    def check_load(
        self,
        source: Any,
        mode: str = "merge",
        branch: str = "main",
        *,
        options: Options | None = None,
    ) -> LoadOutcome:
        """Everything a load does up to the point where it would write; it raises what the load would raise.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-check", schema="node Person { name: String @key }")
        >>> g.check_load({"Person": [{"name": "Ada"}]}).nodes, len(g.log())
        ({'Person': 1}, 1)
        """
        verb = verbs.rehearsed(verbs.load(source, mode, options=options))
        need = verbs.Need(verbs.Action.CHANGE, branch, mode=mode, reads=(branch,))
        outcome: LoadOutcome = self.publish(verb, branch=branch, alone=True, need=need).value
        return outcome

    def plan_schema(
        self, text: str, branch: str = "main", *, allow_data_loss: bool = False
    ) -> MigrationPlan:
        """What applying a schema would do, step by step. Nothing is changed."""
        from omnigraph.lang.schema import plan_migration

        accepted = self._repo.schema(self._state(branch).commit.schema).ir
        return plan_migration(accepted, schema_text(text), allow_data_loss=allow_data_loss)

    def apply_schema(
        self,
        text: str,
        branch: str = "main",
        allow_data_loss: bool = False,
        message: str | None = None,
        actor: str | None = None,
        *,
        timeout: float | None = None,
    ) -> SchemaResult:
        """Bring a schema into force on a branch, as one commit; new rules are checked against the rows that exist."""
        verb = verbs.apply_schema(
            schema_text(text),
            lambda hashed: self._repo.schema(hashed).ir,
            allow_data_loss=allow_data_loss,
        )
        with metrics.operation("apply_schema"):
            done = self.publish(
                verb,
                branch=branch,
                message=message,
                actor=actor,
                alone=True,
                deadline=Deadline(timeout),
                need=verbs.Need(verbs.Action.SCHEMA_APPLY, target_branch=branch),
            )
        outcome: SchemaOutcome = done.value
        if (
            outcome.collect and done.commit is not None
        ):  # hard drops: the branch's own past goes with the data
            verbs.collect(self._repo, verbs.Retention(keep=1, chain=done.commit.chain))
        return outcomes.SchemaResult(
            outcome.plan.supported,
            outcome.plan.steps,
            outcome.applied,
            outcomes.Commit.published(done),
        )

    # --- branches, tags, history -----------------------------------------------------------------------------------

    def create_branch(self, name: str, from_: str = "main", *, actor: str | None = None) -> None:
        """Make a branch from another's head, or from any point in time. Nothing is copied."""
        with metrics.operation("create_branch"):
            self._repo.check_process()
            verbs.branches.create_branch(self._repo, name, self._start(from_), actor=actor)

    def _start(self, from_: object) -> branches.Start:
        name = canonical(from_) if isinstance(from_, str) else ""
        if self._repo.knows(name) and not history.has_form_of_a_point(name):
            return verbs.branches.Start(head_of=branch_name(name))
        point = history.resolve(self._repo, from_, "main")
        if point.commit.branch == name:
            return verbs.branches.Start(head_of=branch_name(name))
        return verbs.branches.Start(commit=point.commit)

    def delete_branch(self, name: str, *, actor: str | None = None) -> None:
        """Delete a branch. Other branches and tags keep what they share with it."""
        with metrics.operation("delete_branch"):
            self._repo.check_process()
            verbs.branches.delete_branch(self._repo, name, actor=actor)

    def branches(self) -> list[str]:
        """The names of all branches, main first."""
        self._repo.check_process()
        return list(verbs.branches.branch_names(self._repo))

    def tag(
        self, name: str, at: object = None, *, branch: str = "main", actor: str | None = None
    ) -> str:
        """Name a commit; it stays readable whatever cleanup removes. Returns its id."""
        self._repo.check_process()
        point = history.resolve(self._repo, branch if at is None else at, branch)
        verbs.branches.create_tag(self._repo, name, point.commit, member=point.member, actor=actor)
        return point.id

    def delete_tag(self, name: str) -> None:
        """Take a tag away; its commit becomes ordinary history."""
        self._repo.check_process()
        verbs.branches.delete_tag(self._repo, name)

    def tags(self) -> dict[str, str]:
        """All tags and the ids of their commits."""
        self._repo.check_process()
        return verbs.branches.tags(self._repo)

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
        entries = history.walk(self._repo, start, maintenance=maintenance)
        wanted = (e for e in entries if actor in (None, e.actor) and kind in (None, e.kind))
        return [outcomes.Commit.of(entry) for entry in islice(wanted, limit)]

    def commit(self, id: str) -> Commit:
        """One commit by its id (or any point in time)."""
        self._repo.check_process()
        point = history.resolve(self._repo, id, "main")
        for entry in history.walk(self._repo, point.commit, maintenance=True):
            if entry.id == point.id or isinstance(entry.commit, Tombstone):
                return outcomes.Commit.of(entry)
        raise AssertionError("a resolved commit is in its own log")

    # --- maintenance -----------------------------------------------------------------------------------------------

    def cleanup(
        self, keep: int = 10, older_than: timedelta | float | None = None, *, dry_run: bool = False
    ) -> Collected:
        """Remove history beyond the newest `keep` commits of each branch (and older than `older_than` days)."""
        self._repo.check_process()
        if keep < 1:
            raise OptionInvalid(f"keep must be at least 1, got {keep}")
        horizon = None
        if older_than is not None:
            span = older_than if isinstance(older_than, timedelta) else timedelta(days=older_than)
            horizon = self._repo.world.now() - int(span.total_seconds() * 1_000_000)
        with metrics.operation("cleanup"):
            return verbs.collect(self._repo, verbs.Retention(keep, horizon), dry_run=dry_run)


def schema_text(schema: str | os.PathLike[str]) -> str:
    """A schema given as text, or as the path of a file that holds it."""
    if isinstance(schema, os.PathLike):
        return Path(schema).read_text(encoding="utf-8")
    looks_like_path = schema.strip().endswith(".pg") and "\n" not in schema and "{" not in schema
    return Path(schema).read_text(encoding="utf-8") if looks_like_path else schema


def init(
    uri: str | os.PathLike[str],
    schema: str | os.PathLike[str],
    *,
    actor: str | None = None,
    limits: Limits = DEFAULT,
) -> Graph:
    """Create a graph. A clear error if there is one already, or if the schema has mistakes."""
    text = schema_text(schema)
    ir = verbs.compile_schema(text)
    stored = StoredSchema(source=text, ir=verbs.encode_ir(ir).decode())
    with metrics.operation("init"):
        return Graph(verbs.create_graph(uri, stored, limits=limits, actor=actor))


def open_graph(
    uri: str | os.PathLike[str], *, limits: Limits = DEFAULT, group_commit: bool = True
) -> Graph:
    """Open a graph that exists: on a disk, an object store, or behind a server."""
    if isinstance(uri, str) and uri.startswith(("http://", "https://")):
        from omnigraph.remote.graph import RemoteGraph

        return cast(Graph, RemoteGraph(uri))  # the same verbs, over HTTP
    with metrics.operation("open"):
        return Graph(open_repository(uri, limits=limits), group_commit=group_commit)
