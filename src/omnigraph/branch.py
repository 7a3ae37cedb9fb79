"""A branch handle: the verbs of a graph, bound to one branch, and blocks that publish once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from omnigraph.core.plan import Verb
from omnigraph.core.publisher import Published
from omnigraph.errors import OptionInvalid
from omnigraph.fingerprint import named
from omnigraph.graph import Graph
from omnigraph.model.frozen import frozen
from omnigraph.outcomes import Commit
from omnigraph.write.load import LoadOutcome
from omnigraph.write.mutate import MutateOutcome

P = ParamSpec("P")
R = TypeVar("R")


def bound(
    verb: Callable[Concatenate[Graph, P], R], branch: str = "branch"
) -> Callable[Concatenate[Branch, P], R]:
    """A verb of a graph as a verb of a branch: `branch` defaults to that branch."""
    signature = inspect.signature(verb)

    @wraps(verb)
    def on_branch(self: Branch, /, *args: P.args, **given: P.kwargs) -> R:
        call = signature.bind(self._graph, *args, **given)
        call.arguments.setdefault(branch, self.name)
        return verb(*call.args, **call.kwargs)

    return on_branch


class Branch:
    """The verbs of a graph without naming the branch each time.

    >>> import omnigraph
    >>> g = omnigraph.init("memory://doc-branch", schema="node Person { name: String @key }")
    >>> g.create_branch("draft")
    >>> draft = g.branch("draft")
    >>> with draft.write("two people") as tx:
    ...     tx.mutate('query a() { insert Person { name: "Ada" } }')
    ...     tx.load({"Person": [{"name": "Grace"}]})
    >>> len(draft.query("query q() { match { $p: Person } return { $p.name } }"))
    2
    >>> len(draft.log(limit=1)), tx.commit.message
    (1, 'two people')
    """

    def __init__(self, graph: Graph, name: str) -> None:
        self._graph = graph
        self.name = name

    def __repr__(self) -> str:
        return f"{self._graph!r}.branch({self.name!r})"

    query = bound(Graph.query)
    query_many = bound(Graph.query_many)
    schema = bound(Graph.schema)
    snapshot = bound(Graph.snapshot)
    blob = bound(Graph.blob)
    export = bound(Graph.export)
    analytics = bound(Graph.analytics)
    spark = bound(Graph.spark)
    mutate = bound(Graph.mutate)
    load = bound(Graph.load)
    write = bound(Graph.write)
    plan_schema = bound(Graph.plan_schema)
    apply_schema = bound(Graph.apply_schema)
    create_branch = bound(Graph.create_branch, "from_")
    tag = bound(Graph.tag)
    log = bound(Graph.log)
    history = bound(Graph.history)
    blame = bound(Graph.blame)
    checks = bound(Graph.checks)
    apply_checks = bound(Graph.apply_checks)
    check = bound(Graph.check)
    profile = bound(Graph.profile)
    propose = bound(Graph.propose, "into")
    changes = bound(Graph.changes)
    merge = bound(Graph.merge, "into")
    revert = bound(Graph.revert)
    cherry_pick = bound(Graph.cherry_pick)
    reset = bound(Graph.reset)
    optimize = bound(Graph.optimize)
    embed = bound(Graph.embed)


@frozen
class BlockOptions:
    """The options of a write block."""

    branch: str
    message: str | None = None
    actor: str | None = None
    if_commit: str | None = None
    idempotency_key: str | None = None
    timeout: float | None = None
    dry_run: bool = False


@frozen
class MutateStep:
    """A step of a block: a mutation."""

    text: str
    params: Mapping[str, Any] | None = None
    name: str | None = None

    @property
    def identity(self) -> tuple[Any, ...]:
        """What identifies the step."""
        return ("mutate", self.text, self.params, self.name)

    def verb(self, graph: Graph) -> Verb:
        """The write it stands for."""
        return graph.mutation(self.text, self.params, self.name)


@frozen
class LoadStep:
    """A step of a block: rows to load."""

    source: Any
    mode: str = "merge"
    digest: str | None = None  # of the rows, if a retry sends them again

    @property
    def identity(self) -> tuple[Any, ...]:
        """What identifies the step; rows in memory only by their digest, if the caller gives one."""
        return ("load", self.mode, self.digest or named(self.source))

    def verb(self, graph: Graph) -> Verb:
        """The write it stands for."""
        return graph._rows(self.source, self.mode)


Step = MutateStep | LoadStep
Outcome = MutateOutcome | LoadOutcome


@frozen
class Written:
    """The outcomes of the steps of a block."""

    commit: Commit | None
    results: list[Outcome] = field(default_factory=list)
    replayed: bool = False

    @classmethod
    def of(cls, done: Published) -> Written:
        """The outcomes recorded in a publication."""
        results = map(outcome_of, done.value["steps"]) if done.replayed else done.value
        return cls(Commit.published(done), list(results), done.replayed)


class WriteBlock:
    """Writes gathered by a `with` block.

    At its end `commit` is their commit, None if there was nothing to do; `results` says what each write did, and
    `replayed` whether the block was already published under the same idempotency key.
    """

    def __init__(
        self, publish: Callable[[BlockOptions, Sequence[Step]], Written], options: BlockOptions
    ) -> None:
        self._publish = publish
        self._options = options
        self._steps: list[Step] = []
        self.commit: Commit | None = None
        self.results: list[Outcome] = []
        self.replayed = False

    def mutate(
        self, text: str, params: Mapping[str, Any] | None = None, name: str | None = None
    ) -> None:
        """Run a mutation as part of the block."""
        self._steps.append(MutateStep(text, params, name))

    def load(self, source: Any, mode: str = "merge", *, digest: str | None = None) -> None:
        """Load rows as part of the block; an overwrite needs a separate load.

        Under an idempotency key, `digest` distinguishes the rows of one block from those of another.
        """
        if mode == "overwrite":
            raise OptionInvalid("an overwrite cannot be part of a block; call load directly")
        self._steps.append(LoadStep(source, mode, digest))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None or not self._steps:
            return
        done = self._publish(self._options, self._steps)
        self.commit, self.results, self.replayed = done.commit, done.results, done.replayed


def outcome_of(kept: Mapping[str, Any]) -> Outcome:
    """The outcome of a step, from its stored form; empty for a mutation that matched nothing."""
    if "nodes" in kept:
        return LoadOutcome.from_json(kept)
    return MutateOutcome(kept.get("affected_nodes", 0), kept.get("affected_edges", 0))
