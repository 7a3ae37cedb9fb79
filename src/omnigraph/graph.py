"""The public graph object, wherever its data lives. The one place that says publish(verb(txn, ...)).

A method under `@verb` is described in `verbs`; its body runs where the graph is, once `_run` lets it: immediately on a
local graph, after a policy check on a `GuardedGraph`, on the server that holds the graph for a `RemoteGraph`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from omnigraph.core.clock import NEVER, Deadline
from omnigraph.core.records import StoredSchema
from omnigraph.core.repository import Repository, open_repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.deferred import Deferred
from omnigraph.errors import BranchNotFound, OptionInvalid
from omnigraph.fingerprint import fingerprint, named
from omnigraph.lang import ir
from omnigraph.lang.languages import (
    compile_cypher,
    is_cypher_text,
    is_file_text,
    parameter_types,
)
from omnigraph.lang.query import Want, compile_query
from omnigraph.model.embedding import EmbedSettings
from omnigraph.model.limits import DEFAULT, Limits
from omnigraph.model.names import branch_name
from omnigraph.policy.questions import Action
from omnigraph.procedures import with_procedure_rows
from omnigraph.read import Result, run_many, run_query
from omnigraph.review import Reviewing
from omnigraph.schemas import schema_text
from omnigraph.statements import (
    ReadOptions,
    Settings,
    WriteOptions,
    check_branch,
    read_file,
    read_place,
    write_statement,
    written_branch,
)
from omnigraph.storage import metrics
from omnigraph.verbs import Description, verb

if TYPE_CHECKING:
    from omnigraph import operations as ops
    from omnigraph import outcomes
    from omnigraph.analytics import Analytics
    from omnigraph.branch import BlockOptions, Branch, Step, WriteBlock, Written
    from omnigraph.core.group import Writers
    from omnigraph.core.plan import PublishPlan, Request, Verb
    from omnigraph.core.publisher import Published
    from omnigraph.core.txn import WriteTxn
    from omnigraph.outcomes import LoadResult, MutateResult
    from omnigraph.pipeline.engine import Progress, Violations
    from omnigraph.pipeline.frames import GraphFrames
    from omnigraph.policy.guard import Need
    from omnigraph.read.blobs import Blob
    from omnigraph.read.export import Exported
    from omnigraph.write.input.options import Options
else:
    ops = Deferred("omnigraph.operations")
    outcomes = Deferred("omnigraph.outcomes")


class Graph(Reviewing):
    """A graph on a disk, on an object store or behind a server, each with the same verbs.

    Safe to share between threads; not carried over a fork.

    >>> import omnigraph
    >>> g = omnigraph.init("memory://doc-graph", schema="node Person { name: String @key }")
    >>> g.branches()
    ['main']
    """

    def __init__(self, repository: Repository, *, group_commit: bool = True) -> None:
        self._repo = repository
        self._grouping = group_commit
        self._queries: dict[tuple[str, str, str | None, Want, object], ir.Query] = {}

    @cached_property
    def _writers(self) -> Writers:  # type: ignore[override]
        return ops.Writers(self._repo, grouping=self._grouping)

    def _run(
        self,
        verb: Description,  # noqa: ARG002  what a policy and a server go by
        body: Callable[..., Any],
        args: tuple[Any, ...],
        named: Mapping[str, Any],
    ) -> Any:
        """Run the body of a verb."""
        return body(self, *args, **named)

    @property
    @verb
    def uri(self) -> str:
        """The address of the graph."""
        return self._repo.place.uri

    @property
    @verb
    def repository(self) -> Repository:
        """The storage behind the verbs, for tools that need it."""
        return self._repo

    def __repr__(self) -> str:
        return f"Graph({self.uri!r})"

    def _repr_html_(self) -> str:
        from omnigraph.drawing.notebook import graph_html

        now = self.snapshot()
        counts = {entry.type_name: entry.rows for entry in now.commit.tables.values()}
        return graph_html(self.uri, self.branches(), now.catalog, counts)

    # --- reading -----------------------------------------------------------------------------------------------

    @verb
    def query(
        self,
        text: str,
        params: Mapping[str, Any] | None = None,
        name: str | None = None,
        branch: str = "main",
        at: object = None,
        engine: str = "local",
        *,
        language: str | None = None,
        timeout: float | None = None,
        max_rows: int | None = None,
        explain: bool = False,
        settings: Settings | None = None,
    ) -> Result:
        """Run a read on the head of a branch, or at any point in time, with the schema in force at that point.

        The text is in `.gq` or in Cypher; `language` ("gq" or "cypher") decides if it could be either. It may also be
        a statement that reads: show, explain or branch list. `settings` are those of `set` lines.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-query", schema="node Person { name: String @key }")
        >>> g.query("query all() { match { $p: Person } return { $p.name } }").rows
        []
        """
        branch, at = read_place(self, text, language, branch, at)
        memory = self._repo.limits.query_memory_bytes_max
        options = ReadOptions(
            params, name, branch, at, engine, language, timeout, max_rows, explain, memory
        )
        if settings or is_file_text(text, language):
            return read_file(self, text, options, settings)
        return self._read(text, options)

    def _read(self, text: str, options: ReadOptions) -> Result:
        """The rows of a query."""
        started = time.monotonic()
        with metrics.operation("query"):
            query, snapshot = self._readable_query(text, options)
            with self._readable(snapshot):
                params = with_procedure_rows(
                    self, query, options.params, snapshot, options.branch, options.at
                )
                bounds = {**options.bounds(started), "explain": options.explain}
                if options.engine == "spark":
                    return ops.query_on_spark(self._repo, snapshot, query, params, **bounds)
                memory = options.memory_bytes_max
                return run_query(query, params, snapshot, memory_bytes_max=memory, **bounds)

    def _readable_query(self, text: str, options: ReadOptions) -> tuple[ir.Query, Snapshot]:
        """A read, compiled for a state that the caller may read."""
        if options.engine not in ("local", "spark"):
            raise OptionInvalid(f"engine must be 'local' or 'spark', got {options.engine!r}")
        snapshot = self._state(options.branch, options.at)
        schema = snapshot.commit.schema
        query = self._compiled(
            schema, text, options.name, Want.READ, options.params, options.language
        )
        self._permit_query(query, snapshot, options.branch, options.at)
        return query, snapshot

    def _permit_any_read(self) -> None:
        """Check that the caller may read what does not belong to a particular branch."""
        self._permit(ops.Need(Action.READ))

    @verb
    def query_many(
        self,
        text: str,
        params: Sequence[Mapping[str, Any] | None],
        name: str | None = None,
        branch: str = "main",
        at: object = None,
        *,
        timeout: float | None = None,
        max_rows: int | None = None,
    ) -> list[Result]:
        """Run a read once for each set of parameters, all on the same state: one result each, in order.

        Where the query starts at nodes with a property of a given value, all of them are looked up together.
        `timeout`, `max_rows` and the memory of a query apply to all runs together.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-many", schema="node Person { name: String @key }")
        >>> done = g.load({"Person": [{"name": "Ada"}, {"name": "Grace"}]})
        >>> one = "query one($n: String) { match { $p: Person $p.name = $n } return { $p.name as name } }"
        >>> [len(found) for found in g.query_many(one, [{"n": "Ada"}, {"n": "Alan"}])]
        [1, 0]
        """
        if is_file_text(text):
            raise OptionInvalid(
                "a text with settings or a statement cannot be run with many parameters: use query"
            )
        if isinstance(params, Mapping) or not isinstance(params, Sequence):
            raise OptionInvalid("params must be a list of parameters, one for each run")
        started = time.monotonic()
        branch, at = read_place(self, text, None, branch, at)
        with metrics.operation("query_many"):
            snapshot = self._state(branch, at)
            query = self._compiled(
                snapshot.commit.schema, text, name, Want.READ, next(iter(params), None)
            )
            self._permit_query(query, snapshot, branch, at)
            with self._readable(snapshot):
                params = [with_procedure_rows(self, query, p, snapshot, branch, at) for p in params]
                return run_many(
                    query,
                    params,
                    snapshot,
                    timeout=timeout,
                    started=started,
                    max_rows=max_rows,
                    memory_bytes_max=self._repo.limits.query_memory_bytes_max,
                )

    def _permit_query(self, query: ir.Query, snapshot: Snapshot, branch: str, at: object) -> None:
        """Check that it may be run; the hook of a policy."""

    def _compiled(
        self,
        schema: str,
        text: str,
        name: str | None,
        want: Want,
        params: Mapping[str, Any] | None = None,
        language: str | None = None,
    ) -> ir.Query:
        """A query is compiled once per text and schema, and in Cypher once per types of its parameters."""
        cypher = is_cypher_text(text, language)
        key = (schema, text, name, want, parameter_types(params) if cypher else None)
        known = self._queries.get(key)
        if known is None:
            catalog = self._repo.schema(schema).catalog
            if cypher:
                known = compile_cypher(text, catalog, params, want=want)
            self._queries[key] = known = known or compile_query(text, catalog, name, want=want)
            while len(self._queries) > self._repo.limits.queries_cached_max:
                self._queries.pop(next(iter(self._queries)), None)
        return known

    @verb
    def blob(
        self, type: str, id: str, property: str, branch: str = "main", at: object = None
    ) -> Blob:
        """A blob of one entity: its size, and its bytes by range."""
        snapshot = self._state(branch, at, (type,))
        with self._readable(snapshot):
            return ops.open_blob(snapshot, type, id, property)

    @verb
    def branch(self, name: str) -> Branch:
        """The same verbs, bound to a branch."""
        return ops.Branch(self, branch_name(name))

    @verb
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

        Rows come as they are stored, or with `order="id"` by their ids. "ndjson-0.10" and "ndjson-0.13" are the forms
        of the omnigraph written in Rust.
        """
        with metrics.operation("export"):
            snapshot = self._state(branch, at, types, Action.EXPORT)
            with self._readable(snapshot):
                return ops.export_by(engine, self._repo, snapshot, dest, format, types, order)

    @verb
    def analytics(
        self, branch: str = "main", at: object = None, engine: str = "local"
    ) -> Analytics:
        """PageRank, components, degrees and more, over one state."""
        from omnigraph.analytics import Analytics

        return Analytics(self, branch, at, engine)

    @verb
    def spark(self, session: Any = None, branch: str = "main", at: object = None) -> GraphFrames:
        """Nodes and edges as Spark DataFrames, pinned to one commit."""
        return self._frames(self.snapshot(branch, at), session)

    def _frames(self, snapshot: Snapshot, session: Any = None) -> GraphFrames:
        return ops.spark_frames(self._repo, snapshot, session)

    # --- writing -----------------------------------------------------------------------------------------------

    @verb
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
        dry_run: bool = False,
    ) -> Published:
        """Publish the plan of a verb, as one commit; with `create_from`, as the first commit of a new branch.

        A dry run does everything except publish: its value, or its error, is that of the write. Since it reveals
        rows, the policy must also allow reading the branch.
        """
        need = replace(need or ops.Need(Action.CHANGE, branch), proposal=False)
        if dry_run:
            verb, idempotency_key = ops.dry_run(verb), None
            need = replace(need, reads=(*need.reads, branch))
        request = ops.Request(
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
        return self._submit(request, need)

    def _submit(self, request: Request, need: Need) -> Published:  # noqa: ARG002  checked by a policy
        """Submit a write to the publisher."""
        with metrics.operation("publish"):
            if request.create_from is not None:
                self._repo.check_process()
                return ops.publish_first(self._repo, request)
            return self._writers.submit(request)

    def _exists(self, branch: str) -> bool:
        try:
            self._repo.head(branch)
        except BranchNotFound:
            return False
        return True

    @verb
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
        language: str | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> MutateResult:
        """Run a mutation as one commit; one that matches nothing makes none, and a dry run only counts.

        The text is in `.gq` or in Cypher, as with `query`; the rows Cypher returns after writing are the `result`.
        Or it is a statement: branch create, delete or merge.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-mutate", schema="node Person { name: String @key }")
        >>> g.mutate('query add() { insert Person { name: "Ada" } }').affected_nodes
        1
        """
        if is_file_text(text, language):
            options = WriteOptions(
                params, name, branch, if_commit, message, actor, idempotency_key, dry_run, timeout
            )
            if (changed := write_statement(self, text, options)) is not None:
                return changed
        with metrics.operation("mutate"):
            done = self.publish(
                self.mutation(text, params, name, language),
                branch=written_branch(text, language, branch),
                actor=actor,
                message=message,
                idempotency_key=idempotency_key,
                fingerprint=fingerprint("mutate", text, name, params),
                if_commit=if_commit,
                deadline=Deadline(timeout),
                dry_run=dry_run,
            )
        commit = outcomes.Commit.published(done)
        return outcomes.MutateResult.of(done, commit)

    @verb
    def mutation(
        self,
        text: str,
        params: Mapping[str, Any] | None = None,
        name: str | None = None,
        language: str | None = None,
    ) -> Verb:
        """A mutation as a verb, compiled for the schema of the state it runs on."""

        def write(txn: WriteTxn) -> PublishPlan:
            check_branch(text, language, txn.branch)
            schema = txn.snapshot.commit.schema
            query = self._compiled(schema, text, name, Want.MUTATION, params, language)
            self._permit_mutation(query, txn)
            given = with_procedure_rows(self, query, params, txn.snapshot, txn.branch)
            return ops.mutate(query, given)(txn)

        return write

    def _permit_mutation(self, query: ir.Query, txn: WriteTxn) -> None:
        """Check that it may be run; the hook of a policy."""

    def _rows(self, source: Any, mode: str) -> Verb:
        """Rows to load as a verb: a step of a block."""
        return ops.load(source, mode)

    @verb
    def write(
        self,
        message: str | None = None,
        branch: str = "main",
        *,
        actor: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
        dry_run: bool = False,
    ) -> WriteBlock:
        """A block whose writes become one commit at its end, or none if it raises.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-write", schema="node Person { name: String @key }")
        >>> with g.write("two people") as block:
        ...     block.mutate('query a() { insert Person { name: "Ada" } }')
        ...     block.load({"Person": [{"name": "Grace"}]})
        >>> block.commit.changes
        {'Person': {'inserted': 2, 'updated': 0, 'deleted': 0}}
        """
        options = ops.BlockOptions(
            branch, message, actor, if_commit, idempotency_key, timeout, dry_run
        )
        return ops.WriteBlock(self._publish_block, options)

    def _publish_block(self, options: BlockOptions, steps: Sequence[Step]) -> Written:
        """The steps of a block as one commit."""
        done = self.publish(
            ops.together([step.verb(self) for step in steps]),
            branch=options.branch,
            message=options.message,
            actor=options.actor,
            if_commit=options.if_commit,
            idempotency_key=options.idempotency_key,
            fingerprint=fingerprint("write", [step.identity for step in steps]),
            deadline=Deadline(options.timeout),
            dry_run=options.dry_run,
        )
        return ops.Written.of(done)

    @verb
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
        dry_run: bool = False,
        timeout: float | None = None,
        options: Options | None = None,
        progress: Progress | None = None,
        violations: Violations = True,
    ) -> LoadResult:
        """Load records, files or tables as one commit: append, merge (upsert by id) or overwrite the types present.

        A dry run reads and checks everything and raises what the load would raise. `violations` names a folder: a
        rejected load lists all violations in a new file there. By default, a load on Spark does so in the folder
        of Spark's log if its error cannot hold them; False lists nothing.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-load", schema="node Person { name: String @key }")
        >>> g.load({"Person": [{"name": "Ada"}, {"name": "Grace"}]}).nodes
        {'Person': 2}
        """
        self._permit(ops.Need(Action.CHANGE, branch, mode=mode), actor)
        created = create_from is not None and not self._exists(branch)
        target = create_from if create_from is not None and created and dry_run else branch
        with (
            metrics.operation("load"),
            ops.loading(
                self._repo,
                source,
                mode,
                None if created and not dry_run else target,
                engine=engine,
                options=options,
                load_id=None if dry_run else idempotency_key,
                progress=progress,
                violations=violations,
            ) as (write, used),
        ):
            done = self.publish(
                write,
                branch=target,
                create_from=create_from if created and not dry_run else None,
                actor=actor,
                message=message,
                idempotency_key=idempotency_key,
                fingerprint=fingerprint("load", mode, named(source)),
                alone=True,
                deadline=Deadline(timeout),
                need=ops.Need(Action.CHANGE, target, mode=mode),
                dry_run=dry_run,
            )
            outcome = ops.LoadOutcome.from_json(done.value) if done.replayed else done.value
            ops.store_loaded(self._repo, done.commit, {**outcome.nodes, **outcome.edges})
        return outcomes.LoadResult(
            commit=outcomes.Commit.published(done),
            branch=branch,
            branch_created=created and not done.replayed and not dry_run,
            nodes=outcome.nodes,
            edges=outcome.edges,
            engine=used,
            replayed=done.replayed,
            new_each_time=outcome.new_each_time,
            quarantined=outcome.quarantined,
            rows=outcome.rows,
            cost=outcome.cost,
        )


def init(
    uri: str | os.PathLike[str],
    schema: str | os.PathLike[str],
    *,
    actor: str | None = None,
    limits: Limits = DEFAULT,
) -> Graph:
    """Create a graph. Raises if one already exists there, or if the schema has mistakes."""
    text = schema_text(schema)
    stored = StoredSchema(text, ops.encode_ir(ops.compile_schema(text)).decode())
    with metrics.operation("init"):
        return Graph(ops.create_graph(uri, stored, limits=limits, actor=actor))


def open_graph(
    uri: str | os.PathLike[str],
    *,
    limits: Limits = DEFAULT,
    group_commit: bool = True,
    embedding: EmbedSettings | None = None,
) -> Graph:
    """Open an existing graph, on a disk or an object store; its texts are embedded as `embedding` says."""
    with metrics.operation("open"):
        repo = open_repository(uri, limits=limits, embedding=embedding)
        return Graph(repo, group_commit=group_commit)
