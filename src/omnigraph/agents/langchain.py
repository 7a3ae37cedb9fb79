"""LangChain: a retriever, and a graph with the names its chains call. Needs `pip install 'omnigraph[langchain]'`.

>>> import omnigraph
>>> from omnigraph.agents.langchain import OmnigraphRetriever
>>> g = omnigraph.init("memory://doc-langchain", schema="node Note { slug: String @key  text: String }")
>>> done = g.load({"Note": [{"slug": "tea", "text": "How to brew tea"}]})
>>> [document.metadata["id"] for document in OmnigraphRetriever(graph=g).invoke("tea")]
['tea']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import ConfigDict

from omnigraph.agents import tools
from omnigraph.agents.retriever import FoundNode, Retriever
from omnigraph.agents.toolbox import Toolbox, catalog_of_text
from omnigraph.graph import Graph


class OmnigraphRetriever(BaseRetriever):
    """Documents of the nodes that are about a question; text, vectors and neighbourhood in one call."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    graph: Graph
    branch: str = "main"
    types: Sequence[str] | None = None
    limit: int = 10
    neighbours: int = 0
    at: str | None = None  # a commit, tag or time

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002
    ) -> list[Document]:
        retriever = Retriever(self.graph, self.branch, self.types, self.limit, self.neighbours)
        found = retriever.retrieve(query, at=self.at)
        return [_document(each, found.commit) for each in found.found]


def _document(found: FoundNode, commit: str | None) -> Document:
    about = {"type": found.type, "id": found.id, "score": found.score, "by": list(found.by)}
    around = [dict(each) for each in found.neighbours]
    return Document(
        found.text(),
        id=f"{found.type}/{found.id}",
        metadata={**about, "commit": commit, "neighbours": around},
    )


class OmnigraphGraph:
    """A graph with the names that chains over graphs call: `get_schema`, `query`, `refresh_schema`.

    `langchain-core` has no class for it; those of other packages only look for these names. Queries are in the language
    of omnigraph, and read.
    """

    def __init__(self, graph: Graph, branch: str = "main", rows_max: int = 1_000) -> None:
        self._graph, self._branch, self._rows_max = graph, branch, rows_max
        self.refresh_schema()

    @property
    def get_schema(self) -> str:
        """The types in force, as text."""
        return self._schema

    @property
    def get_structured_schema(self) -> dict[str, Any]:
        """The types in force: properties of nodes and edges, and what edges lead from and to."""
        catalog = catalog_of_text(self._schema)
        described = {
            kind.name: [{"property": p.name, "type": str(p.type)} for p in kind.properties.values()]
            for kind in catalog.entities()
        }
        return {
            "node_props": {name: described[name] for name in sorted(catalog.nodes)},
            "rel_props": {name: described[name] for name in sorted(catalog.edges)},
            "relationships": [
                {"start": edge.from_type, "type": edge.name, "end": edge.to_type}
                for _, edge in sorted(catalog.edges.items())
            ],
        }

    def refresh_schema(self) -> None:
        """Look at the schema again."""
        self._schema = self._graph.schema(self._branch)

    def query(self, query: str, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """The rows of a query that reads."""
        found = self._graph.query(query, params, branch=self._branch, max_rows=self._rows_max)
        return found.json_rows()


def agent_tools(box: Toolbox) -> list[BaseTool]:
    """The tools of the table for an agent of LangChain: the same names, arguments, answers and rules as over MCP."""
    return [_tool(box, tool) for tool in tools.offered(box)]


def _tool(box: Toolbox, tool: tools.Tool) -> BaseTool:
    def call(**given: Any) -> dict[str, Any]:
        return tools.call(tool, box, given).to_json()

    return StructuredTool.from_function(
        call,
        name=tool.name,
        description=f"{tool.description} It {tool.effect.value}.",
        args_schema=tools.schema_of(tool),
    )
