"""The verbs of a graph about data quality: checks, profiles, and blame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from omnigraph.core import layout
from omnigraph.core.clock import Deadline
from omnigraph.core.records import Commit as StoredCommit
from omnigraph.core.snapshot import Snapshot
from omnigraph.deferred import Deferred
from omnigraph.errors import EntityNotFound, OptionInvalid, TableNotFound
from omnigraph.policy.questions import Action
from omnigraph.schemas import Schemas
from omnigraph.storage import metrics
from omnigraph.verbs import verb
from omnigraph.versions import HISTORY_COMMITS_MAX

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph import operations as ops
    from omnigraph import outcomes
    from omnigraph.core.plan import Verify
    from omnigraph.lang import ir
    from omnigraph.lang.checks import GraphCheck
    from omnigraph.lang.query import Want
    from omnigraph.outcomes import Blame, ChecksResult
    from omnigraph.policy.guard import Need
    from omnigraph.read.checking import Asking, CheckReport
    from omnigraph.read.profile import Profile
    from omnigraph.read.result import Result
else:
    ops = Deferred("omnigraph.operations")
    outcomes = Deferred("omnigraph.outcomes")


class Checking(Schemas):
    """The verbs of a `Graph` about the quality of a state."""

    _compiled: Callable[[str, str, str | None, Want], ir.Query]
    _permit_query: Callable[[ir.Query, Snapshot, str, object], None]

    def _allows(self, need: Need, actor: str | None = None) -> bool:  # noqa: ARG002
        """Whether an action is allowed; the hook of a policy."""
        return True

    # --- checks --------------------------------------------------------------------------------------------------

    @verb
    def checks(self, branch: str = "main", at: object = None) -> list[GraphCheck]:
        """The checks in force: named queries that say what must hold of the graph.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-checks", schema="node Person { name: String @key age: I32? }")
        >>> _ = g.apply_checks('''
        ... query no_age() @description("everybody has an age") {
        ...   match { $p: Person $p.age is null } return { $p.name as name }
        ... }''')
        >>> [(check.name, check.severity) for check in g.checks()]
        [('no_age', 'error')]
        """
        commit = self._state(branch, at).commit
        return list(ops.parse_checks(self._repo.checks(commit.checks)))

    @verb
    def apply_checks(
        self,
        text: str,
        branch: str = "main",
        message: str | None = None,
        actor: str | None = None,
        *,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> ChecksResult:
        """Replace the checks of a branch with those of a `.gq` text, as one commit.

        They branch, merge and keep their history like the schema. An empty text removes all of them.
        """
        write = ops.apply_checks(self._repo, text)
        need = ops.Need(Action.SCHEMA_APPLY, target_branch=branch)
        done = self._alone("apply_checks", write, branch, need, message, actor, timeout, dry_run)
        changed = done.value
        return outcomes.ChecksResult(
            changed.added, changed.changed, changed.removed, outcomes.Commit.published(done)
        )

    @verb
    def check(
        self,
        branch: str = "main",
        at: object = None,
        *,
        before: object = None,
        only: Sequence[str] | None = None,
        engine: str = "auto",
        timeout: float | None = None,
        record: bool = True,
        actor: str | None = None,
    ) -> CheckReport:
        """Run the checks of a state, all on the same commit; checks that compare states also read `before`, by default
        the preceding commit. `only` selects checks by name. Checks that do not fit into memory run on Spark
        if it is installed, unless `engine` says otherwise.

        The results are stored with the commit, unless `record` is false or the policy does not let you propose.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-check", schema="node Person { name: String @key age: I32? }")
        >>> _ = g.apply_checks("query no_age() { match { $p: Person $p.age is null } return { $p.name as name } }")
        >>> _ = g.load({"Person": [{"name": "Ada"}]})
        >>> found = g.check()
        >>> found.passed, found.results[0].rows
        (False, ({'name': 'Ada'},))
        """
        if engine not in ("auto", "local", "spark"):
            raise OptionInvalid(f"engine must be 'auto', 'local' or 'spark', got {engine!r}")
        with metrics.operation("check"):
            state = self._state(branch, at)
            where = branch if at is None else state.commit.branch
            wanted = self._wanted(self._repo.checks(state.commit.checks), only)
            compares = before is not None or any(check.compares for check in wanted)
            earlier = self._before(state, branch, before) if compares else None
            for check in wanted:
                self._permit_check(check, state, where)
                if earlier is not None and check.compares:
                    self._permit_check(check, earlier, earlier.commit.branch)
            ask = self._asking_by(engine, Deadline(timeout))
            with self._readable(state):
                report = ops.run_checks(wanted, earlier, state, ask)
            need = ops.Need(Action.PROPOSE, target_branch=where)
            if record and wanted and self._allows(need, actor):
                report = self._recorded(state, report, self._actor(actor))
        return report

    def _before(self, state: Snapshot, branch: str, before: object) -> Snapshot | None:
        """The state to compare with."""
        if before is not None:
            return self._state(branch, before)
        here = self._content(state)
        previous = None if here is None else here.previous or next(iter(here.parents), None)
        return self._state(branch, previous) if previous else None

    def _content(self, state: Snapshot) -> StoredCommit | None:
        """The content commit of this state: any later ones are maintenance."""
        chain, number, _ = layout.parse_commit_id(state.commit_id)
        found = self._repo.chains.get(chain, number)
        return found if isinstance(found, StoredCommit) else None

    def _wanted(self, text: str, names: Sequence[str] | None) -> list[GraphCheck]:
        known = {check.name: check for check in ops.parse_checks(text)}
        if names is None:
            return list(known.values())
        missing = [name for name in names if name not in known]
        if missing:
            raise ops.CheckNotFound(f"there is no check {', '.join(missing)}")
        return [known[name] for name in names]

    def _permit_check(self, check: GraphCheck, state: Snapshot, branch: str) -> None:
        """Whether the caller may read what a check reads; one that does not fit the schema reads nothing."""
        try:
            query = self._compiled(state.commit.schema, check.text, None, ops.Want.READ)
        except ops.LanguageError:
            return
        self._permit_query(query, state, branch, None)

    def _asking_by(self, engine: str = "auto", deadline: Deadline | None = None) -> Asking:
        """How a check is run on a state, and whether two states are the same for it."""

        def compiled(state: Snapshot, text: str) -> ir.Query:
            return self._compiled(state.commit.schema, text, None, ops.Want.READ)

        def answer(state: Snapshot, text: str, first: int | None = None) -> tuple[pa.Table, int]:
            query = compiled(state, text)

            def local() -> Result:
                left = None if deadline is None else deadline.remaining()
                memory = self._repo.limits.query_memory_bytes_max
                return ops.run_query(query, None, state, timeout=left, memory_bytes_max=memory)

            found, rows = ops.answer_by(engine, self._repo, state, query, local, first)
            return found.to_arrow(), rows

        def same(one: Snapshot, other: Snapshot, text: str) -> bool:
            read = ops.types_read(compiled(other, text))
            versions = (
                {id: t for id, t in state.commit.tables.items() if t.type_name in read}
                for state in (one, other)
            )
            return one.commit.schema == other.commit.schema and next(versions) == next(versions)

        return ops.Asking(answer, same)

    def _recorded(self, state: Snapshot, report: CheckReport, actor: str | None) -> CheckReport:
        """Store the results of the checks with the commit they were run on."""
        run = ops.stored_run(self._repo, report, actor)
        there = self._content(state)
        if there is not None:
            ops.store_run(self._repo, there, run)
        return ops.replace(report, time=run.time, actor=run.actor)

    @verb
    def check_results(self, commit: str) -> list[CheckReport]:
        """The stored results of check runs on a commit, newest first; without rows."""
        there = self._content(self._state(at=commit))
        if there is None:
            return []
        return [ops.report_of(run) for run in ops.stored_runs(self._repo, there)]

    def _verifier(self, wanted: bool | Sequence[str]) -> Verify:
        """The verification of a state before it is published: it passes the current checks of its target branch
        and the checks it brings along, so a write cannot loosen the checks that apply to it."""

        def verify(before: Snapshot, after: Snapshot) -> dict[str, Any]:
            one, other = before.commit, after.commit
            if (one.tables, one.schema) == (other.tables, other.schema):
                return {}
            texts = dict.fromkeys((one.checks, other.checks))
            found = [c for text in texts for c in ops.parse_checks(self._repo.checks(text))]
            chosen = list(dict.fromkeys(found))
            if not isinstance(wanted, bool):
                chosen = ops.demanded(chosen, wanted)
            report = ops.run_checks(chosen, before, after, self._asking_by())
            report.raise_broken()
            return {"checks": report.summary()} if report.results else {}

        return verify

    # --- profiles ------------------------------------------------------------------------------------------------

    @verb
    def profile(
        self,
        branch: str = "main",
        at: object = None,
        *,
        before: object = None,
        types: Sequence[str] | None = None,
    ) -> Profile:
        """Profile a state: rows, nulls, distinct values and ranges of each column, degrees of edges; with `before`,
        side by side with another point.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-profile", schema="node Person { name: String @key age: I32? }")
        >>> _ = g.load({"Person": [{"name": "Ada", "age": 36}, {"name": "Grace"}]})
        >>> age = g.profile().types[0].columns[0]
        >>> age.name, age.nulls, age.most
        ('age', 1, 36)
        """
        with metrics.operation("profile"):
            state = self._state(branch, at, types)
            with self._readable(state):
                found = ops.profile(state, types)
            if before is None:
                return found
            earlier = self._state(branch, before, types)
            with self._readable(earlier):
                there = {kind.name for kind in earlier.catalog.entities()}
                known = None if types is None else [name for name in types if name in there]
                return ops.replace(found, before=ops.profile(earlier, known))

    # --- blame ---------------------------------------------------------------------------------------------------

    @verb
    def blame(self, type: str, id: str, branch: str = "main", at: object = None) -> Blame:
        """Who wrote the values of a node or edge: the commit that set each property, and the merge that brought it
        here.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-blame", schema="node Person { name: String @key age: I32? }")
        >>> _ = g.load({"Person": [{"name": "Ada"}]}, actor="eve")
        >>> _ = g.load({"Person": [{"name": "Ada", "age": 36}]}, actor="max")
        >>> {cell.property: cell.commit.actor for cell in g.blame("Person", "Ada").cells}
        {'age': 'max', 'name': 'eve'}
        """
        state = self._state(branch, at, (type,))
        kind = state.catalog.entity(type)
        if kind is None:
            raise TableNotFound(f"there is no type {type!r}")
        with metrics.operation("blame"), self._readable(state):
            found = ops.blame(self._repo, state, kind, id, HISTORY_COMMITS_MAX)
        if found is None:
            raise EntityNotFound(f"there is no {type} {id!r}", details={"type": type, "id": id})
        cells = tuple(
            outcomes.BlamedCell(
                cell.name,
                cell.value,
                None if cell.entry is None else outcomes.Commit.of(cell.entry),
                None if cell.via is None else outcomes.Commit.of(cell.via),
            )
            for cell in found
            if cell.name != "id"
        )
        return self._blamed(type, outcomes.Blame(type, id, cells))

    def _blamed(self, type: str, found: Blame) -> Blame:  # noqa: ARG002
        """The part of it that may be read."""
        return found
