"""Text, vectors and neighbourhood in one call: the context for a question.

>>> import omnigraph
>>> from omnigraph.agents import Retriever
>>> g = omnigraph.init("memory://doc-retriever", schema="node Note { slug: String @key  text: String }")
>>> done = g.load({"Note": [{"slug": "tea", "text": "How to brew tea"}, {"slug": "ship", "text": "Sailing"}]})
>>> [found.id for found in Retriever(g).retrieve("tea").found]
['tea']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.agents.toolbox import catalog_of_text
from omnigraph.agents.walking import EdgeWalk, State, columns, entity, neighbours, steps_from
from omnigraph.errors import OmnigraphError, OptionInvalid
from omnigraph.graph import Graph
from omnigraph.model.catalog import Catalog, NodeType, Property
from omnigraph.model.frozen import frozen
from omnigraph.model.types import Scalar
from omnigraph.policy.questions import PolicyDenied

FUSION = 60  # as in `rrf`: how much less a later place counts
TYPES_MAX = 50  # searched at once
LIMIT_MAX = 200
NEIGHBOURS_MAX = 50  # of one found node
EMBED_CODES = frozenset({"embed_not_configured", "embed_unavailable", "embed_refused"})


@frozen
class FoundNode:
    """A found node, its score (more is better), and some nodes around it."""

    type: str
    id: str
    score: float
    properties: Mapping[str, Any]
    by: tuple[str, ...]  # what found it: text, vector
    neighbours: tuple[Mapping[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "id": self.id,
            "score": round(self.score, 6),
            "by": list(self.by),
            "properties": dict(self.properties),
            "neighbours": [dict(each) for each in self.neighbours],
        }

    def text(self) -> str:
        """Its properties as lines of text."""
        lines = (f"{name}: {value}" for name, value in self.properties.items() if value is not None)
        return "\n".join(lines)


@frozen
class Retrieved:
    """The found nodes, best first, the commit, and the types that could not be searched."""

    found: tuple[FoundNode, ...]
    commit: str | None
    left_out: Mapping[str, str] = field(
        default_factory=dict
    )  # why, by type: a code, or the limit it is beyond


@frozen
class Retriever:
    """Finds nodes by words and by meaning, with their neighbourhood.

    Every type with text is searched by its words, every vector that is made from a text (`@embed`) by meaning;
    positions in these lists are fused as `rrf` does. `vector` searches with your own vector instead. Everything is
    read from one commit, under the policy of the graph.
    """

    graph: Graph
    branch: str = "main"
    types: Sequence[str] | None = None  # node types to look at; all unless given
    limit: int = 10
    neighbours: int = 0  # of each that is found, for each type of edge
    seconds_max: float | None = None  # of each query

    def retrieve(
        self,
        text: str,
        *,
        vector: Sequence[float] | None = None,
        at: str | None = None,
    ) -> Retrieved:
        """Find nodes about a text, best first."""
        self._check()
        catalog = catalog_of_text(self.graph.schema(self.branch, at))
        state = State(self.graph, catalog, self.branch, at, self.seconds_max)
        search = _Search(state, text, vector, self.limit)
        chosen = list(_chosen(catalog, self.types))
        search.left_out = {kind.name: "types_max" for kind in chosen[TYPES_MAX:]}
        for kind in chosen[:TYPES_MAX]:
            try:
                search.look(kind)
            except PolicyDenied as denied:
                if self.types is not None:
                    raise
                search.left_out[kind.name] = str(denied.code)
        found = search.best()
        if self.neighbours and found:
            found = self._surrounded(search.state, found)
        return Retrieved(tuple(found), search.state.at, search.left_out)

    def _check(self) -> None:
        if not 0 < self.limit <= LIMIT_MAX:
            raise OptionInvalid(f"limit must be 1 to {LIMIT_MAX}, got {self.limit}")
        if not 0 <= self.neighbours <= NEIGHBOURS_MAX:
            raise OptionInvalid(f"neighbours must be 0 to {NEIGHBOURS_MAX}, got {self.neighbours}")

    def _surrounded(self, state: State, found: list[FoundNode]) -> list[FoundNode]:
        """The same with their neighbours: a query for each type of edge, not for each node."""
        around: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        by_type: dict[str, list[str]] = {}
        for each in found:
            by_type.setdefault(each.type, []).append(each.id)
        for kind, ids in sorted(by_type.items()):
            for step in steps_from(state, kind):
                for row in _permitted(state, step, ids, self.neighbours):
                    around.setdefault((kind, row.pop("near")), []).append(row)
        return [replace(f, neighbours=tuple(around.get((f.type, f.id), ()))) for f in found]


def _permitted(
    state: State, step: EdgeWalk, ids: Sequence[str], limit: int
) -> list[dict[str, Any]]:
    """Neighbours of a type; none if it may not be read."""
    try:
        return neighbours(state, step, ids, limit)
    except PolicyDenied:
        return []


def _chosen(catalog: Catalog, types: Sequence[str] | None) -> Iterator[NodeType]:
    if types is None:
        yield from (kind for _, kind in sorted(catalog.nodes.items()))
        return
    for name in types:
        if name not in catalog.nodes:
            known = ", ".join(sorted(catalog.nodes)[:20])
            raise OptionInvalid(f"there is no node type {name!r}", help=f"There are: {known}.")
        yield catalog.nodes[name]


def _texts(kind: NodeType) -> list[Property]:
    """The properties to search for words: those with an index over words, else all texts."""
    indexed = kind.indexed("text")
    plain = [
        p
        for p in kind.properties.values()
        if p.type.scalar is Scalar.STRING and p.type.is_plain and p.type.enum is None
    ]
    return [p for p in plain if p.name in indexed] or plain


@dataclass(slots=True)
class _Search:
    """Lists of nodes, fused by their positions."""

    state: State
    text: str
    vector: Sequence[float] | None
    limit: int
    scores: dict[tuple[str, str], float] = field(default_factory=dict)
    rows: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    by: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def look(self, kind: NodeType) -> None:
        """Look for nodes of a type, by words and by vectors."""
        if self.text.strip():
            self._by_words(kind)
        for prop in kind.properties.values():
            if prop.type.is_vector:
                self._by_vector(kind, prop)

    def _by_words(self, kind: NodeType) -> None:
        texts = [p.name for p in _texts(kind)]
        if not texts:
            return
        scores = ", ".join(f"bm25($x.{name}, $t) as s_{name}" for name in texts)
        total = " + ".join(f"coalesce(s_{name}, 0.0)" for name in texts)
        matches = " or ".join(f"search($x.{name}, $t)" for name in texts)
        self._take(
            kind,
            "text",
            f"query q($t: String, $most: I64) {{ match {{ $x: {kind.name} {matches} }} "
            f"return {{ {columns(kind, 'x')}, {scores}, {total} as score }} "
            "order { score desc } limit $most }",
            {"t": self.text},
        )

    def _by_vector(self, kind: NodeType, prop: Property) -> None:
        if self.vector is not None:
            if len(self.vector) != prop.type.vector_dim:
                return
            given: tuple[str, Any] = (f"Vector({prop.type.vector_dim})", list(self.vector))
        elif prop.embed is not None and self.text.strip():
            given = ("String", self.text)
        else:
            return
        try:
            self._take(
                kind,
                "vector",
                f"query q($v: {given[0]}, $most: I64) {{ match {{ $x: {kind.name} }} "
                f"return {{ {columns(kind, 'x')} }} "
                f"order {{ nearest($x.{prop.name}, $v) }} limit $most }}",
                {"v": given[1]},
            )
        except OmnigraphError as error:
            if error.code not in EMBED_CODES:
                raise
            self.left_out[f"{kind.name}.{prop.name}"] = str(error.code)

    def _take(self, kind: NodeType, by: str, text: str, params: dict[str, Any]) -> None:
        rows, commit = self.state.rows(text, params | {"most": self.limit})
        self.state = replace(self.state, at=commit)
        for position, row in enumerate(rows, 1):
            place = (kind.name, str(row["id"]))
            self.scores[place] = self.scores.get(place, 0.0) + 1 / (FUSION + position)
            self.rows.setdefault(place, row)
            ways = self.by.setdefault(place, [])
            if by not in ways:
                ways.append(by)

    def best(self) -> list[FoundNode]:
        ordered = sorted(self.scores, key=lambda place: (-self.scores[place], place))
        return [self._found(place) for place in ordered[: self.limit]]

    def _found(self, place: tuple[str, str]) -> FoundNode:
        node = entity(place[0], self.rows[place])
        ways = tuple(self.by[place])
        return FoundNode(place[0], place[1], self.scores[place], node["properties"], ways)
