"""Graphs for machine learning: one state as arrays, samples of neighbours, and PyTorch Geometric's `HeteroData`.

    from omnigraph.learning import arrays_of

    arrays = arrays_of(g, {"Paper": ["face", "year"]})
    arrays.edges["Author", "Wrote", "Paper"]        # two rows: the positions of the ends
    arrays.sample("Paper", [0, 1], steps=[10, 5])   # a smaller graph around two papers
    arrays.to_pyg()                                 # needs torch and torch_geometric

Everything is read from one commit, which `commit` names. Nodes have positions in the order of their ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import OptionInvalid
from omnigraph.expressions.comparing import is_number
from omnigraph.expressions.lists import ranges
from omnigraph.graph import Graph
from omnigraph.model.catalog import Catalog, NodeType
from omnigraph.model.frozen import frozen
from omnigraph.read.result import package

Positions = npt.NDArray[np.int64]
EdgeKind = tuple[str, str, str]  # the type of the source, of the edge, of the target


@frozen
class GraphArrays:
    """One state of a graph: ids and features of nodes by type, ends of edges by kind."""

    ids: Mapping[str, npt.NDArray[np.object_]]
    features: Mapping[str, npt.NDArray[np.float32]]
    edges: Mapping[EdgeKind, Positions]  # two rows: sources and targets
    commit: str = ""
    _inward: dict[EdgeKind, tuple[Positions, Positions]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def sample(
        self, type_name: str, start: Sequence[int], steps: Sequence[int], seed: int = 0
    ) -> GraphArrays:
        """A smaller graph around some nodes, for training in batches.

        Against the direction of edges, as messages flow: each step takes at most that many neighbours of a node by each
        kind of edge. The start nodes come first. The same seed gives the same sample.
        """
        if type_name not in self.ids:
            raise OptionInvalid(f"there are no nodes of type {type_name!r}")
        if any(step < 1 for step in steps):
            raise OptionInvalid("each step takes at least one neighbour")
        random = np.random.default_rng(seed)
        nodes = {name: np.empty(0, np.int64) for name in self.ids}
        nodes[type_name] = np.asarray(start, np.int64)
        latest = dict(nodes)
        kept: dict[EdgeKind, list[Positions]] = {kind: [] for kind in self.edges}
        for most in steps:
            reached: dict[str, list[Positions]] = {name: [] for name in self.ids}
            for kind in self.edges:
                found = self._towards(kind, latest[kind[2]], most, random)
                kept[kind].append(found)
                reached[kind[0]].append(found[0])
            for name, parts in reached.items():
                met = np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)
                latest[name] = np.setdiff1d(met, nodes[name])
                nodes[name] = np.concatenate([nodes[name], latest[name]])
        return self._among(nodes, kept)

    def _towards(
        self, kind: EdgeKind, targets: Positions, most: int, random: np.random.Generator
    ) -> Positions:
        """Up to `most` edges of a kind to each of the targets, chosen without repetition."""
        starts, order = self._inwards(kind)
        counts = starts[targets + 1] - starts[targets]
        rows = ranges(starts[targets], counts)
        owner = np.repeat(np.arange(len(targets)), counts)
        shuffled = np.lexsort((random.random(len(rows)), owner))
        chosen = rows[shuffled][ranges(np.zeros_like(counts), counts) < most]
        return self.edges[kind][:, order[chosen]]

    def _inwards(self, kind: EdgeKind) -> tuple[Positions, Positions]:
        """The edges of a kind by their targets: where those of each target begin, and the edge numbers."""
        if kind not in self._inward:
            targets = self.edges[kind][1]
            counts = np.bincount(targets, minlength=len(self.ids[kind[2]]))
            starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
            self._inward[kind] = starts, np.argsort(targets, kind="stable")
        return self._inward[kind]

    def _among(
        self, nodes: Mapping[str, Positions], kept: Mapping[EdgeKind, list[Positions]]
    ) -> GraphArrays:
        """These nodes and edges, with new positions."""
        places = {}
        for name, chosen in nodes.items():
            places[name] = np.full(len(self.ids[name]), -1, np.int64)
            places[name][chosen] = np.arange(len(chosen))
        edges = {}
        for kind, parts in kept.items():
            ends = np.concatenate(parts, axis=1) if parts else np.empty((2, 0), np.int64)
            edges[kind] = np.stack([places[kind[0]][ends[0]], places[kind[2]][ends[1]]])
        ids = {name: self.ids[name][chosen] for name, chosen in nodes.items()}
        features = {name: values[nodes[name]] for name, values in self.features.items()}
        return GraphArrays(ids, features, edges, self.commit)

    def to_pyg(self) -> Any:
        """The same as PyTorch Geometric's `HeteroData`; memory is shared where torch can."""
        torch, data = package("torch"), package("torch_geometric.data").HeteroData()
        for name, ids in self.ids.items():
            data[name].num_nodes = len(ids)
            if name in self.features:
                data[name].x = torch.from_numpy(self.features[name])
        for kind, ends in self.edges.items():
            data[kind].edge_index = torch.from_numpy(ends)
        return data


def arrays_of(
    graph: Graph,
    features: Mapping[str, Sequence[str]] | None = None,
    branch: str = "main",
    at: object = None,
) -> GraphArrays:
    """One state of a graph as arrays; `features` names number, truth and vector properties by node type."""
    state = graph.snapshot(branch, at)
    wanted = dict(features or {})
    for name in wanted:
        if name not in state.catalog.nodes:
            raise OptionInvalid(f"there is no node type {name!r}")
    ids: dict[str, pa.Array] = {}
    columns: dict[str, npt.NDArray[np.float32]] = {}
    for node in state.catalog.nodes.values():
        table = _rows(graph, node, wanted.get(node.name, ()), branch, state.commit_id)
        ids[node.name] = table["id"].combine_chunks()
        if node.name in wanted:
            columns[node.name] = _features(table, wanted[node.name], node.name)
    edges = _edges(graph, state.catalog, ids, branch, state.commit_id)
    named = {name: values.to_numpy(zero_copy_only=False) for name, values in ids.items()}
    return GraphArrays(named, columns, edges, state.commit_id)


def _rows(graph: Graph, node: NodeType, names: Sequence[str], branch: str, at: str) -> pa.Table:
    unknown = [name for name in names if name not in node.properties]
    if unknown:
        raise OptionInvalid(f"{node.name} has no property {unknown[0]!r}")
    columns = ", ".join(["$n.id as id", *(f"$n.{name} as {name}" for name in names)])
    text = f"match {{ $n: {node.name} }} return {{ {columns} }} order {{ $n.id asc }}"
    return graph.query(text, branch=branch, at=at).to_arrow()


def _edges(
    graph: Graph, catalog: Catalog, ids: Mapping[str, pa.Array], branch: str, at: str
) -> dict[EdgeKind, Positions]:
    found = {}
    for edge in catalog.edges.values():
        walk = edge.name[0].lower() + edge.name[1:]
        text = (
            f"match {{ $a: {edge.from_type}  $b: {edge.to_type}  $a $e:{walk} $b }} "
            "return { $e.id as id, $a.id as a, $b.id as b } order { $e.id asc }"
        )
        table = graph.query(text, branch=branch, at=at).to_arrow()
        ends = [
            pc.index_in(table[column], value_set=ids[kind]).to_numpy().astype(np.int64)
            for column, kind in (("a", edge.from_type), ("b", edge.to_type))
        ]
        found[edge.from_type, edge.name, edge.to_type] = np.stack(ends)
    return found


def _features(table: pa.Table, names: Sequence[str], type_name: str) -> npt.NDArray[np.float32]:
    """Numeric columns side by side; a vector is as many columns as it has numbers."""
    parts = []
    for name in names:
        values = table[name].combine_chunks()
        if values.null_count:
            help = "Use a property that every node has, or give it a default."
            raise OptionInvalid(f"{type_name}.{name} is null in some nodes", help=help)
        if pa.types.is_fixed_size_list(values.type):
            parts.append(values.flatten().to_numpy().reshape(-1, values.type.list_size))
        elif pa.types.is_boolean(values.type) or is_number(values.type):
            parts.append(values.cast(pa.float64(), safe=False).to_numpy().reshape(-1, 1))
        else:
            raise OptionInvalid(f"{type_name}.{name} is neither a number nor a vector")
    return np.hstack(parts).astype(np.float32) if parts else np.empty((len(table), 0), np.float32)
