"""Graphs as arrays for machine learning: features, positions of ends, samples of neighbours."""

from __future__ import annotations

import numpy as np
import pytest

import omnigraph
from omnigraph.errors import OptionInvalid
from omnigraph.learning import GraphArrays, arrays_of
from omnigraph.read.result import PackageMissing

SCHEMA = """
node Paper { title: String @key  year: I32  open: Bool  face: Vector(2)  note: String? }
node Author { name: String @key }
edge Wrote: Author -> Paper { @key(src, dst) }
edge Cites: Paper -> Paper { @key(src, dst) }
"""
WROTE, CITES = ("Author", "Wrote", "Paper"), ("Paper", "Cites", "Paper")


@pytest.fixture
def graph(memory_root: str) -> omnigraph.Graph:
    graph = omnigraph.init(memory_root, schema=SCHEMA)
    papers = [
        {"title": f"p{n}", "year": 2000 + n, "open": n % 2 == 0, "face": [float(n), 1.0]}
        for n in range(6)
    ]
    wrote = [{"from": f"a{n % 3}", "to": f"p{n}"} for n in range(6)]
    cites = [{"from": f"p{n}", "to": "p0"} for n in range(1, 6)]
    authors = [{"name": f"a{n}"} for n in range(3)]
    graph.load({"Paper": papers, "Author": authors, "Wrote": wrote, "Cites": cites})
    return graph


def test_one_state_as_arrays(graph: omnigraph.Graph) -> None:
    arrays = arrays_of(graph, {"Paper": ["face", "year", "open"]})
    assert arrays.commit == graph.snapshot().commit_id
    assert list(arrays.ids["Paper"]) == [f"p{n}" for n in range(6)]
    assert arrays.features["Paper"].dtype == np.float32
    assert arrays.features["Paper"][3].tolist() == [3.0, 1.0, 2003.0, 0.0]
    assert set(arrays.edges) == {WROTE, CITES}
    assert pairs(arrays, CITES) == {(f"p{n}", "p0") for n in range(1, 6)}
    assert pairs(arrays, WROTE) == {(f"a{n % 3}", f"p{n}") for n in range(6)}


def test_an_earlier_state(graph: omnigraph.Graph) -> None:
    graph.mutate('delete Paper where title = "p0"')
    assert pairs(arrays_of(graph), CITES) == set()
    assert len(pairs(arrays_of(graph, at="main~1"), CITES)) == 5


def test_a_sample_is_a_smaller_graph_around_its_start(graph: omnigraph.Graph) -> None:
    arrays = arrays_of(graph, {"Paper": ["year"]})
    small = arrays.sample("Paper", [0], steps=[2, 1], seed=7)
    assert small.ids["Paper"][0] == "p0", "where one starts comes first"
    assert len(small.ids["Paper"]) == 3, "p0 and two of the five that cite it"
    assert pairs(small, CITES) <= pairs(arrays, CITES)
    assert pairs(small, WROTE) <= pairs(arrays, WROTE)
    assert len(pairs(small, CITES)) == 2
    assert small.features["Paper"].shape == (3, 1)
    again = arrays.sample("Paper", [0], steps=[2, 1], seed=7)
    assert pairs(again, CITES) == pairs(small, CITES), "the same seed, the same sample"
    seen = {
        p for seed in range(20) for p, _ in pairs(arrays.sample("Paper", [0], [1], seed), CITES)
    }
    assert len(seen) > 2, "another seed, another sample"


def test_a_step_wide_enough_takes_every_neighbour(graph: omnigraph.Graph) -> None:
    arrays = arrays_of(graph)
    whole = arrays.sample("Paper", [0], steps=[100])
    assert pairs(whole, CITES) == pairs(arrays, CITES)
    assert pairs(whole, WROTE) == {("a0", "p0")}


def test_what_cannot_be_learned_from_is_said(graph: omnigraph.Graph) -> None:
    for type_name, name in (
        ("Paper", "note"),
        ("Paper", "titel"),
        ("Papr", "x"),
        ("Paper", "title"),
    ):
        with pytest.raises(OptionInvalid):
            arrays_of(graph, {type_name: [name]})
    arrays = arrays_of(graph)
    for start in (("Nobody", [0], [1]), ("Paper", [0], [0])):
        with pytest.raises(OptionInvalid):
            arrays.sample(*start)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch, while it is imported
def test_pytorch_geometric(graph: omnigraph.Graph) -> None:
    """Runs where torch and torch_geometric are installed; no extra of ours brings them."""
    arrays = arrays_of(graph, {"Paper": ["face"]})
    try:
        data = arrays.to_pyg()
    except PackageMissing as missing:
        pytest.skip(missing.message)
    assert data["Paper"].x.shape == (6, 2)
    assert data[CITES].edge_index.shape == (2, 5)
    assert data[CITES].edge_index.tolist() == arrays.edges[CITES].tolist()
    assert data.validate()
    batch = arrays.sample("Paper", [0], steps=[3]).to_pyg()
    assert batch.validate()
    assert batch["Paper"].x[0].tolist() == data["Paper"].x[0].tolist(), "the start comes first"
    layer = pytest.importorskip("torch_geometric.nn").SAGEConv(2, 4)
    learned = layer(batch["Paper"].x, batch[CITES].edge_index)
    assert learned.shape == (batch["Paper"].num_nodes, 4), "a layer takes it as it is"


def pairs(arrays: GraphArrays, kind: tuple[str, str, str]) -> set[tuple[str, str]]:
    """The ids of the ends of edges."""
    sources, targets = arrays.edges[kind]
    named = zip(arrays.ids[kind[0]][sources], arrays.ids[kind[2]][targets], strict=True)
    return {(str(a), str(b)) for a, b in named}
