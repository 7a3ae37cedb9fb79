"""The retriever, and the tool boxes of LangChain and LlamaIndex through their own interfaces."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever as LangChainRetriever
from langchain_core.runnables import RunnableLambda
from llama_index.core.base.base_retriever import BaseRetriever as LlamaRetriever
from llama_index.core.graph_stores.types import (
    ChunkNode,
    EntityNode,
    PropertyGraphStore,
    Relation,
)
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import VectorStoreQuery

import omnigraph
from omnigraph.agents import Retriever
from omnigraph.agents.langchain import OmnigraphGraph, OmnigraphRetriever, agent_tools
from omnigraph.agents.llama_index import OmnigraphNodeRetriever, OmnigraphPropertyGraphStore
from omnigraph.agents.toolbox import Toolbox
from omnigraph.errors import OmnigraphError, OptionInvalid
from omnigraph.graph import Graph

SCHEMA = """
node Article {
  slug: String @key
  title: String
  text: String?
  shape: Vector(2)?
  more: String?
}
node Person { name: String @key  role: String? }
edge Wrote: Person -> Article { @key(src, dst) }
edge Cites: Article -> Article { note: String?  @key(src, dst) }
"""


@pytest.fixture
def graph() -> Graph:
    made = omnigraph.init(f"memory://boxes-{uuid.uuid4().hex}", SCHEMA)
    made.load(
        {
            "Article": [
                {"slug": "tea", "title": "Brewing tea", "text": "Boil water", "shape": [1, 0]},
                {"slug": "ships", "title": "Ships", "text": "Hulls and tea trade", "shape": [0, 1]},
                {"slug": "maths", "title": "Numbers", "text": "Primes", "shape": [0.9, 0.1]},
            ],
            "Person": [{"name": "Ada", "role": "writes about tea"}, {"name": "Grace"}],
            "Wrote": [{"from": "Ada", "to": "tea"}, {"from": "Grace", "to": "ships"}],
            "Cites": [{"from": "ships", "to": "tea", "note": "trade"}],
        }
    )
    return made


# --- the retriever ---------------------------------------------------------------------------------------------------


def test_words_vectors_and_neighbours_in_one_call(graph: Graph) -> None:
    found = Retriever(graph, neighbours=2, limit=4).retrieve("tea", vector=[1.0, 0.0])
    first = found.found[0]
    assert (first.type, first.id, first.by) == ("Article", "tea", ("text", "vector"))
    assert {(n["edge"], n["direction"], n["id"]) for n in first.neighbours} == {
        ("Wrote", "in", "Ada"),
        ("Cites", "in", "ships"),
    }
    assert {each.id for each in found.found} == {"tea", "ships", "maths", "Ada"}
    scores = [each.score for each in found.found]
    assert scores == sorted(scores, reverse=True)
    assert found.commit == graph.snapshot().commit_id


def test_branches_points_types_and_bounds(graph: Graph) -> None:
    before = graph.snapshot().commit_id
    graph.create_branch("draft")
    graph.load({"Article": [{"slug": "chai", "title": "Chai tea"}]}, branch="draft")
    assert "chai" in {f.id for f in Retriever(graph, "draft").retrieve("chai").found}
    assert not Retriever(graph).retrieve("chai").found
    assert not Retriever(graph, "draft").retrieve("chai", at=before).found
    only = Retriever(graph, types=["Person"]).retrieve("tea").found
    assert [f.id for f in only] == ["Ada"]
    for wrong in (
        {"types": ["Nobody"]},
        {"limit": 0},
        {"limit": 1_000},
        {"neighbours": 99},
    ):
        with pytest.raises(OptionInvalid):
            Retriever(graph, **wrong).retrieve("tea")
    assert not Retriever(graph).retrieve("   ").found


def test_vectors_made_from_texts_need_a_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one the words still answer, and it is said what was left out; with one both do."""
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    schema = "node Note { slug: String @key\n text: String\n v: Vector(8)? @embed(text) }"
    notes = omnigraph.init("memory://embedded", schema)
    notes.load({"Note": [{"slug": "a", "text": "tea"}, {"slug": "b", "text": "ships"}]})
    both = Retriever(notes).retrieve("tea")
    assert both.found[0].by == ("text", "vector")
    monkeypatch.delenv("OMNIGRAPH_EMBED_PROVIDER")
    words = Retriever(notes).retrieve("tea")
    assert [f.id for f in words.found] == ["a"]
    assert words.left_out == {"Note.v": "embed_not_configured"}


def test_a_hub_does_not_starve_the_others() -> None:
    """Each node that is found has neighbours of its own, however many another one has."""
    schema = "node Word { text: String @key }\nedge Next: Word -> Word"
    words = omnigraph.init("memory://hub", schema)
    many = [{"text": f"leaf{n}"} for n in range(300)]
    words.load(
        {
            "Word": [{"text": "hub one"}, {"text": "hub two"}, *many],
            "Next": [{"from": "hub one", "to": w["text"]} for w in many]
            + [{"from": "hub two", "to": "leaf7"}],
        }
    )
    found = Retriever(words, neighbours=3).retrieve("hub").found
    assert {f.id: len(f.neighbours) for f in found} == {"hub one": 3, "hub two": 1}


# --- LangChain -------------------------------------------------------------------------------------------------------


def test_langchain_retrieves_documents(graph: Graph) -> None:
    retriever = OmnigraphRetriever(graph=graph, neighbours=1, limit=2)
    assert isinstance(retriever, LangChainRetriever)
    documents = retriever.invoke("tea")
    assert documents[0].id == "Article/tea"
    assert "Brewing tea" in documents[0].page_content
    assert documents[0].metadata["neighbours"]
    again = asyncio.run(retriever.ainvoke("tea"))
    assert [d.id for d in again] == [d.id for d in documents]

    def ids(found: list[Document]) -> list[str]:
        return [document.metadata["id"] for document in found]

    chain = retriever | RunnableLambda(ids)
    assert chain.invoke("tea")[0] == "tea"
    assert len(retriever.batch(["tea", "ships"])) == 2


def test_langchain_has_a_graph(graph: Graph) -> None:
    made = OmnigraphGraph(graph)
    assert "node Article" in made.get_schema
    assert {"start": "Person", "type": "Wrote", "end": "Article"} in (
        made.get_structured_schema["relationships"]
    )
    text = (
        "query q($n: String) { match { $p: Person { name: $n } $p wrote $a } return { $a.slug } }"
    )
    assert made.query(text, {"n": "Ada"}) == [{"a.slug": "tea"}]
    with pytest.raises(OmnigraphError):
        made.query("query q() { delete Person }")
    graph.apply_schema(SCHEMA + "node Topic { name: String @key }")
    made.refresh_schema()
    assert "Topic" in made.get_schema


def test_langchain_has_the_tools(graph: Graph) -> None:
    """The same table, rules and answers as over MCP."""
    made = {tool.name: tool for tool in agent_tools(Toolbox(graph))}
    assert "merge_branch" not in made
    found = made["find_entity"].invoke({"type": "Person", "id": "Ada"})
    assert found["data"]["count"] == 1
    main = graph.snapshot().commit_id
    done = made["load_records"].invoke({"records": {"Person": [{"name": "New"}]}})
    assert done["data"]["branch"].startswith("agents/")
    wrong = made["change"].invoke({"query": "query q() { delete Person }", "branch": "main"})
    assert wrong["error"]["code"] == "agent_branch_required"
    assert graph.snapshot().commit_id == main


# --- LlamaIndex ------------------------------------------------------------------------------------------------------


def test_llama_index_retrieves_nodes(graph: Graph) -> None:
    retriever = OmnigraphNodeRetriever(Retriever(graph, limit=2))
    assert isinstance(retriever, LlamaRetriever)
    found = retriever.retrieve("tea")
    assert found[0].node.node_id == "Article/tea"
    assert "Brewing tea" in found[0].node.get_content()
    assert (found[0].score or 0) >= (found[1].score or 0)


@pytest.fixture
def store(graph: Graph) -> OmnigraphPropertyGraphStore:
    labels = {"text_chunk": "Article", "entity": "Person", "MENTIONS": "Wrote"}
    graph.create_branch("llama")
    return OmnigraphPropertyGraphStore(graph, "llama", labels=labels, rest="more", actor="llama")


def test_llama_index_stores_and_finds(store: OmnigraphPropertyGraphStore, graph: Graph) -> None:
    assert isinstance(store, PropertyGraphStore)
    main = graph.snapshot().commit_id
    store.upsert_nodes(
        [
            EntityNode(name="Joan", properties={"role": "editor"}),
            ChunkNode(
                text="Steam",
                id_="steam",
                properties={"title": "Steam", "page": 3},
                embedding=[0.5, 0.5],
            ),
        ]
    )
    store.upsert_relations([Relation(label="MENTIONS", source_id="Joan", target_id="steam")])
    (joan,) = store.get(ids=["Joan"])
    assert isinstance(joan, EntityNode)
    assert (joan.name, joan.label, joan.properties["role"]) == ("Joan", "Person", "editor")
    (steam,) = store.get(properties={"title": "Steam"})
    assert isinstance(steam, ChunkNode)
    assert (steam.text, steam.properties["page"]) == ("Steam", 3)
    ((start, relation, end),) = store.get_triplets(entity_names=["Joan"])
    assert (start.id, relation.label, end.id) == ("Joan", "Wrote", "steam")
    assert store.get_triplets() == []
    assert len(store.get_triplets(relation_names=["Cites"])) == 1
    assert graph.snapshot().commit_id == main, "main did not move"
    assert graph.log("llama")[0].actor == "llama"


def test_llama_index_walks_queries_and_searches(store: OmnigraphPropertyGraphStore) -> None:
    (ada,) = store.get(ids=["Ada"])
    near = store.get_rel_map([ada], depth=1)
    assert [(t[0].id, t[1].label, t[2].id) for t in near] == [("Ada", "Wrote", "tea")]
    far = {(t[1].label, t[2].id) for t in store.get_rel_map([ada], depth=3)}
    assert far == {("Wrote", "tea"), ("Cites", "tea"), ("Wrote", "ships")}
    assert len(store.get_rel_map([ada], depth=3, limit=2)) == 2
    assert all(t[1].label != "Cites" for t in store.get_rel_map([ada], 3, 30, ["Cites"]))
    rows = store.structured_query("query q() { match { $p: Person } return { count($p) as n } }")
    assert rows == [{"n": 2}]
    nodes, scores = store.vector_query(
        VectorStoreQuery(query_embedding=[1.0, 0.0], similarity_top_k=2)
    )
    assert [n.id for n in nodes] == ["tea", "maths"]
    assert len(scores) == 2
    assert "node Article" in store.get_schema_str()


def test_llama_index_deletes(store: OmnigraphPropertyGraphStore) -> None:
    store.delete(relation_names=["Cites"])
    assert store.get_triplets(relation_names=["Cites"]) == []
    store.delete(entity_names=["Ada"])
    assert store.get(ids=["Ada"]) == []
    assert [n.id for n in store.get(ids=["tea", "Grace"])] == ["tea", "Grace"]
    store.delete(properties={"title": "Ships"})
    assert store.get(ids=["ships"]) == []


def test_llama_index_keeps_its_own_nodes(store: OmnigraphPropertyGraphStore) -> None:
    """What its indices store and read back: nodes of texts with their metadata."""
    node = TextNode(id_="n1", text="About steam", metadata={"title": "Steam"})
    store.upsert_llama_nodes([node])
    (back,) = store.get_llama_nodes(["n1"])
    assert (back.get_content(), back.metadata["title"]) == ("About steam", "Steam")
    store.delete_llama_nodes(node_ids=["n1"])
    assert store.get(ids=["n1"]) == []


def test_labels_without_a_type_are_refused(store: OmnigraphPropertyGraphStore) -> None:
    wrong: list[Any] = [
        lambda: store.upsert_nodes([EntityNode(name="x", label="Ghost")]),
        lambda: store.upsert_relations([Relation(label="HAUNTS", source_id="x", target_id="y")]),
    ]
    for call in wrong:
        with pytest.raises(OptionInvalid):
            call()
