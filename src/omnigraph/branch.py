"""A branch in the hand: the verbs of a graph, bound to one branch, and blocks that publish once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Self

from omnigraph.core.deadline import Deadline
from omnigraph.core.plan import Verb
from omnigraph.errors import OptionInvalid
from omnigraph.outcomes import Commit
from omnigraph.sameness import fingerprint, named
from omnigraph.write.load import LoadOutcome
from omnigraph.write.mutate import MutateOutcome
from omnigraph.write.together import together

BOUND = frozenset(
    {
        "analytics",
        "apply_schema",
        "blob",
        "changes",
        "check_load",
        "cherry_pick",
        "export",
        "history",
        "load",
        "log",
        "mutate",
        "optimize",
        "plan_schema",
        "query",
        "reset",
        "revert",
        "schema",
        "snapshot",
        "spark",
        "tag",
    }
)


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

    def __init__(self, graph: Any, name: str) -> None:
        self._graph = graph
        self.name = name

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        if verb not in BOUND:
            raise AttributeError(f"a branch has no verb {verb!r}")
        return partial(getattr(self._graph, verb), branch=self.name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *BOUND})

    def __repr__(self) -> str:
        return f"{self._graph!r}.branch({self.name!r})"

    def merge(self, source: str, **options: Any) -> Any:
        """Merge another branch into this one."""
        return self._graph.merge(source, into=self.name, **options)

    def write(
        self,
        message: str | None = None,
        *,
        actor: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> WriteBlock:
        """A block whose writes become one commit at its end, or none if it raises."""
        options = BlockOptions(self.name, message, actor, if_commit, idempotency_key, timeout)
        return WriteBlock(partial(self._publish, options))

    def _publish(self, options: BlockOptions, steps: Sequence[Step]) -> Written:
        """The steps as one commit."""
        done = self._graph.publish(
            together([self._verb(step) for step in steps]),
            branch=options.branch,
            message=options.message,
            actor=options.actor,
            if_commit=options.if_commit,
            idempotency_key=options.idempotency_key,
            fingerprint=fingerprint("write", [step.identity for step in steps]),
            deadline=Deadline(options.timeout),
        )
        if done.replayed:
            results = [outcome_of(told) for told in done.value["steps"]]
            return Written(Commit.published(done), results, replayed=True)
        return Written(Commit.published(done), list(done.value))

    def _verb(self, step: Step) -> Verb:
        match step:
            case Mutation(text, params, name):
                verb: Verb = self._graph.mutation(text, params, name)
                return verb
            case Rows(source, mode):
                rows: Verb = self._graph._rows(source, mode)
                return rows


@dataclass(frozen=True, slots=True)
class BlockOptions:
    """What a block is written with."""

    branch: str
    message: str | None = None
    actor: str | None = None
    if_commit: str | None = None
    idempotency_key: str | None = None
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Mutation:
    """A step of a block: the mutation of a text."""

    text: str
    params: Mapping[str, Any] | None = None
    name: str | None = None

    @property
    def identity(self) -> tuple[Any, ...]:
        """What makes two steps the same."""
        return ("mutate", self.text, self.params, self.name)


@dataclass(frozen=True, slots=True)
class Rows:
    """A step of a block: rows to load."""

    source: Any
    mode: str = "merge"
    digest: str | None = None  # of the rows, where whoever repeats the step sends them again

    @property
    def identity(self) -> tuple[Any, ...]:
        """What makes two steps the same; rows in memory are the caller's word unless they come with a digest."""
        return ("load", self.mode, self.digest or named(self.source))


Step = Mutation | Rows


@dataclass(frozen=True, slots=True)
class Written:
    """What became of the steps of a block."""

    commit: Commit | None
    results: list[Outcome] = field(default_factory=list)
    replayed: bool = False


Outcome = MutateOutcome | LoadOutcome


class WriteBlock:
    """Writes gathered by a `with` block.

    At its end `commit` is what they became, none if they had nothing to do; `results` says what each of them did, and
    `replayed` whether all of that had been done before, under the same idempotency key.
    """

    def __init__(self, publish: Callable[[Sequence[Step]], Written]) -> None:
        self._publish = publish
        self._steps: list[Step] = []
        self.commit: Commit | None = None
        self.results: list[Outcome] = []
        self.replayed = False

    def mutate(
        self, text: str, params: Mapping[str, Any] | None = None, name: str | None = None
    ) -> None:
        """Run a mutation as part of the block."""
        self._steps.append(Mutation(text, params, name))

    def load(self, source: Any, mode: str = "merge", *, digest: str | None = None) -> None:
        """Load rows as part of the block; an overwrite is a write of its own.

        Under an idempotency key, `digest` tells rows of one block from those of another.
        """
        if mode == "overwrite":
            raise OptionInvalid("an overwrite cannot be part of a block; call load directly")
        self._steps.append(Rows(source, mode, digest))

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
        done = self._publish(self._steps)
        self.commit, self.results, self.replayed = done.commit, done.results, done.replayed


def outcome_of(told: Mapping[str, Any]) -> Outcome:
    """What a step did, from what is kept of it; a mutation that matched nothing keeps nothing."""
    if "nodes" in told:
        return LoadOutcome.from_json(told)
    return MutateOutcome(told.get("affected_nodes", 0), told.get("affected_edges", 0))
