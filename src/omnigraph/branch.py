"""A branch in the hand: the verbs of a graph, bound to one branch, and blocks that publish once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from omnigraph.core.plan import Verb
from omnigraph.errors import OptionInvalid
from omnigraph.outcomes import Commit
from omnigraph.write.load import load
from omnigraph.write.together import together

if TYPE_CHECKING:
    from omnigraph.graph import Graph

BOUND = frozenset(
    {
        "apply_schema",
        "changes",
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

    def __init__(self, graph: Graph, name: str) -> None:
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
        self, message: str | None = None, *, actor: str | None = None, if_commit: str | None = None
    ) -> WriteBlock:
        """A block whose writes become one commit at its end, or none if it raises."""
        return WriteBlock(self._graph, self.name, message, actor, if_commit)


class WriteBlock:
    """Writes gathered by a `with` block. `commit` is what they became; none if they had nothing to do."""

    def __init__(
        self,
        graph: Graph,
        branch: str,
        message: str | None,
        actor: str | None,
        if_commit: str | None,
    ) -> None:
        self._graph = graph
        self._options: dict[str, Any] = {
            "branch": branch,
            "message": message,
            "actor": actor,
            "if_commit": if_commit,
        }
        self._verbs: list[Verb] = []
        self.commit: Commit | None = None
        self.results: list[Any] = []

    def mutate(
        self, text: str, params: Mapping[str, Any] | None = None, name: str | None = None
    ) -> None:
        """Run a mutation as part of the block."""
        self._verbs.append(self._graph.mutation(text, params, name))

    def load(self, source: Any, mode: str = "merge") -> None:
        """Load rows as part of the block; an overwrite is a write of its own."""
        if mode == "overwrite":
            raise OptionInvalid("an overwrite cannot be part of a block; call load directly")
        self._verbs.append(load(source, mode))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None or not self._verbs:
            return
        done = self._graph.publish(together(self._verbs), **self._options)
        self.results = list(done.value)
        self.commit = Commit.published(done)
